"""Moves of rows: they are masked in their old fragments and written to new ones at the end, perhaps with new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.fragments.masks import Masks, write_masks
from lance_dataset.changes.write.blob_files import BlobPolicy
from lance_dataset.changes.write.fragment_files import WriteOptions, write_fragment_files
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_fields import check_table_blobs, version_for_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.goals import configured_goal
from lance_dataset.file.versions import resolve_version
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.checks import is_mixture
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of, fragments_in, remove_superseded
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import check_dictionaries_kept
from lance_dataset.table.operations import CompactedSsTable, KeyFilter, Update, UpdateMode
from lance_dataset.table.paths import DataFolder
from lance_dataset.threads.pools import job_pool
from lance_dataset.threads.tasks import Background
from lance_dataset.types.schema import Schema

__all__ = ["RowMoves", "commit_row_moves", "discard_row_moves", "prepare_row_moves"]

MovedIds: TypeAlias = "NDArray[np.uint64] | Callable[[], NDArray[np.uint64]] | None"


@dataclass(frozen=True)
class RowMoves:
    """Moves of rows that were computed against one version. Their files are written.

    Attributes
    ----------
    operation
        Operation to commit.
    affected_rows
        Newly masked physical offsets by fragment id.
    folders
        Folders of the new data files; empty for the table itself.
    """

    operation: Update
    affected_rows: dict[int, NDArray[np.uint32]]
    folders: Sequence[DataFolder] = ()


def prepare_row_moves(
    snapshot: Snapshot,
    masked: Mapping[int, NDArray[np.int64]],
    schema: Schema | None,
    batches: Iterable[pa.RecordBatch],
    moved_ids: MovedIds,
    *,
    fields: Sequence[int],
    storage_version: str | None = None,
    inserted_rows: KeyFilter | None = None,
    compacted: Sequence[CompactedSsTable] = (),
    folders: Sequence[DataFolder] = (),
) -> RowMoves:
    """Write the new fragments of rows that move, and the deletion files that mask the rows in their old fragments.

    If that fails, all new files are removed.

    Parameters
    ----------
    snapshot
        Version to change.
    masked
        Ascending physical offsets of the live rows to mask, by fragment id. It is read after all batches are written,
        so the iterator of batches may fill it.
    schema
        Schema of the new rows, with field ids; None for that of the table.
    batches
        The new rows: first the moved ones in the order of `moved_ids`, then the added ones. Without any row, no
        fragment is written.
    moved_ids
        Row ids of the moved rows, or a function that returns them, which is called after all batches are written.
        Ignored for tables without stable row ids.
    fields
        Ids of the fields whose values may have changed.
    storage_version
        File version of the new fragments; None for that of the table.
    inserted_rows, compacted
        See `Update`.
    folders
        Folders that new data files are spread over in turn; empty for the table itself.

    Returns
    -------
    RowMoves
        Moves to commit or to discard.

    Raises
    ------
    InvalidInputError
        The storage version cannot be mixed with that of the table, there are more moved rows than new ones, or a
        fragment does not exist.
    UnsupportedError
        The storage version cannot hold the schema.
    SchemaError
        The rows do not fit the schema, or a legacy table lacks dictionary values that they need.
    """
    base, store, root = snapshot.manifest, snapshot.store, snapshot.root
    check_writable(base.writer_flags, base.path)
    schema = base.schema if schema is None else schema
    options = WriteOptions(
        _file_version(base, schema, storage_version),
        blobs=BlobPolicy(snapshot.reader.locator),
        goal=configured_goal(base.config),
    )
    masks: list[Masks] = []
    fragments: list[Fragment] = []

    def mask() -> None:
        masks.append(write_masks(store, root, _hits(snapshot, masked), base.version))

    try:
        with Background(job_pool) as background:

            def then_masked() -> Iterator[pa.RecordBatch]:
                """Yield the rows. After the last one the masked rows are known, and are written concurrently."""
                yield from batches
                background.start(mask)

            fragments, written_schema = write_fragment_files(store, root, schema, then_masked(), options, folders)
            check_dictionaries_kept(schema, written_schema)
            if base.uses_stable_row_ids:
                fragments = _with_row_ids(fragments, moved_ids() if callable(moved_ids) else moved_ids)
    except BaseException:
        updated = [fragment for made in masks for fragment in made.updated]
        ChangeFiles(store, root, data_files_of(fragments), updated, folders).remove()
        raise
    (made,) = masks
    operation = Update(
        removed_fragment_ids=made.removed,
        updated_fragments=made.updated,
        new_fragments=tuple(fragments),
        compacted_sstables=tuple(compacted),
        fields_for_preserving_bitmap=tuple(fields),
        mode=UpdateMode.REWRITE_ROWS,
        inserted_rows=inserted_rows,
    )
    return RowMoves(operation, made.affected_rows, folders)


def commit_row_moves(snapshot: Snapshot, moves: RowMoves) -> Snapshot:
    """Commit moves, and remove deletion files that the new version does not use. If that fails, remove all files.

    Parameters
    ----------
    snapshot
        Version that the moves were prepared for.
    moves
        The moves.

    Returns
    -------
    Snapshot
        The new version.

    Raises
    ------
    CommitConflictError
        Other writers changed some of the same rows, or made another conflicting change. The files are removed.
    """
    with _files(snapshot, moves).taken_back(snapshot.version):
        made = commit_change(snapshot, moves.operation, affected_rows=moves.affected_rows)
    written = moves.operation.updated_fragments
    remove_superseded(snapshot.store, snapshot.root, written, fragments_in(made.manifest, written))
    return made


def discard_row_moves(snapshot: Snapshot, moves: RowMoves) -> None:
    """Remove the files of moves that will not be committed."""
    _files(snapshot, moves).remove()


def _files(snapshot: Snapshot, moves: RowMoves) -> ChangeFiles:
    written, new = moves.operation.updated_fragments, moves.operation.new_fragments
    return ChangeFiles(snapshot.store, snapshot.root, data_files_of(new), written, moves.folders)


def _file_version(base: Manifest, schema: Schema, asked: str | None) -> str:
    """Return the file version of new fragments, after checking it against the schema and the other fragments."""
    version = resolve_version(version_for_blobs(schema, base.storage_version) if asked is None else asked)
    present = base.fragment_list.columns.storage_versions or {base.storage_version}
    if is_mixture(present | {version}):
        raise InvalidInputError(
            f"the dataset has files of storage version {', '.join(sorted(present))}; rows cannot be written to files "
            f"of version {version}, because version 0.1 cannot be mixed with later ones"
        )
    family_of(version).check_schema(schema, version)
    check_table_blobs(schema, version)
    return version


def _hits(
    snapshot: Snapshot, masked: Mapping[int, NDArray[np.int64]]
) -> list[tuple[FragmentReader, NDArray[np.int64]]]:
    hits = []
    for fragment_id, rows in sorted(masked.items()):
        fragment = snapshot.reader.fragment(fragment_id)
        if fragment is None:
            version = snapshot.manifest.version
            raise InvalidInputError(f"fragment {fragment_id}, whose rows should be masked, is not in version {version}")
        hits.append((fragment, rows))
    return hits


def _with_row_ids(fragments: Sequence[Fragment], moved: NDArray[np.uint64] | None) -> list[Fragment]:
    """Give new fragments the ids of moved rows. The added rows after them get their ids at commit."""
    ids = np.empty(0, np.uint64) if moved is None else moved
    rows = sum(fragment.physical_rows for fragment in fragments)
    if len(ids) > rows:
        raise InvalidInputError(f"{len(ids)} rows should move, but only {rows} were written")
    cut = []
    start = 0
    for fragment in fragments:
        mine = ids[start : start + fragment.physical_rows]
        start += fragment.physical_rows
        cut.append(replace(fragment, row_ids=RowIds.from_values(mine).encode()) if len(mine) else fragment)
    return cut
