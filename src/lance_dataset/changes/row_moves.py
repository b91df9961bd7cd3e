"""Rows that move: masked where they were, written anew to fragments behind all others, perhaps with more rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_fields import check_table_blobs
from lance_dataset.file.families import family_of
from lance_dataset.file.versions import resolve_version
from lance_dataset.query.delete import Masks, write_masks
from lance_dataset.query.fragment_reader import FragmentReader
from lance_dataset.schema import Schema
from lance_dataset.table.checks import is_mixture
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of, fragments_in, remove_superseded
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.old_tables.legacy_dictionaries import check_dictionaries_kept
from lance_dataset.table.operations import CompactedSsTable, KeyFilter, Update, UpdateMode
from lance_dataset.table.paths import DataFolder
from lance_dataset.table.transaction import Transaction
from lance_dataset.writer import WriteOptions, write_fragment_files

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["RowMoves", "commit_row_moves", "discard_row_moves", "prepare_row_moves"]

MovedIds: TypeAlias = "NDArray[np.uint64] | Callable[[], NDArray[np.uint64]] | None"


@dataclass(frozen=True)
class RowMoves:
    """Moves computed against one version; their files are written.

    Attributes
    ----------
    base
        The version.
    operation
        What to commit.
    affected_rows
        Newly masked physical offsets by fragment id.
    folders
        Where the new data files are; nothing for the table itself.
    """

    base: Manifest
    operation: Update
    affected_rows: dict[int, NDArray[np.uint32]]
    folders: Sequence[DataFolder] = ()


def prepare_row_moves(
    dataset: LanceDataset,
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
    """Write the new fragments of rows that move, and the deletion files that mask them where they were.

    Parameters
    ----------
    dataset
        The version that is changed is the one it shows.
    masked
        Physical offsets of the live rows to mask, ascending, by fragment id. It is looked at when all batches are
        written, so whatever makes them may fill it.
    schema
        Schema with field ids of the new rows, None for that of the table.
    batches
        The new rows: moved ones first, in the order of `moved_ids`, then added ones. No row, no new fragment.
    moved_ids
        Row ids of the moved rows, or a function that is called for them when all batches are written; tables without
        stable row ids do not look at it.
    fields
        Ids of the fields whose values may have changed.
    storage_version
        File version of the new fragments, None for that of the table.
    inserted_rows, compacted
        See `Update`.
    folders
        Where new data files go in turn; nothing for the table itself.

    Returns
    -------
    RowMoves
        If anything fails, all files are removed again.

    Raises
    ------
    InvalidInputError
        The storage version does not go with that of the table; there are more moved rows than new ones; or there is no
        such fragment.
    UnsupportedError
        The storage version cannot hold the schema.
    SchemaError
        The rows do not fit the schema, or a legacy table lacks dictionary values that they need.
    """
    base, store, root = dataset._manifest, dataset._store, dataset._root
    check_writable(base.writer_flags, base.path)
    schema = base.schema if schema is None else schema
    options = WriteOptions(_file_version(base, schema, storage_version))
    with ThreadPoolExecutor(1, thread_name_prefix="lance-masks") as beside:
        masking: list[Future[Masks]] = []

        def then_masked() -> Iterator[pa.RecordBatch]:
            """The rows; with the last one it is known what to mask, and files need not wait for each other's sync."""
            yield from batches
            masking.append(beside.submit(write_masks, store, root, _hits(dataset, masked), base.version))

        fragments: list[Fragment] = []
        try:
            fragments, written_schema = write_fragment_files(store, root, schema, then_masked(), options, folders)
            check_dictionaries_kept(schema, written_schema)
            if base.uses_stable_row_ids:
                fragments = _with_row_ids(fragments, moved_ids() if callable(moved_ids) else moved_ids)
            masks = masking[0].result()
        except BaseException:
            done = masking and masking[0].exception() is None
            masked_there = masking[0].result().updated if done else ()
            ChangeFiles(store, root, data_files_of(fragments), masked_there, folders).remove()
            raise
    operation = Update(
        removed_fragment_ids=masks.removed,
        updated_fragments=masks.updated,
        new_fragments=tuple(fragments),
        compacted_sstables=tuple(compacted),
        fields_for_preserving_bitmap=tuple(fields),
        mode=UpdateMode.REWRITE_ROWS,
        inserted_rows=inserted_rows,
    )
    return RowMoves(base, operation, masks.affected_rows, folders)


def commit_row_moves(dataset: LanceDataset, moves: RowMoves) -> Manifest:
    """Commit moves; deletion files that the new version does not use are removed, and all files if it fails.

    Parameters
    ----------
    dataset
        A handle on the dataset, which stays on its version.
    moves
        The moves.

    Raises
    ------
    CommitConflictError
        Others changed some of the same rows, or the table otherwise; the files of the moves are gone.
    """
    store, root = dataset._store, dataset._root
    change = Transaction(moves.base.version, moves.operation)
    with _files(dataset, moves).taken_back(moves.base.version):
        made = commit_transaction(store, root, change, read_manifest=moves.base, affected_rows=moves.affected_rows)
    written = moves.operation.updated_fragments
    remove_superseded(store, root, written, fragments_in(made, written))
    return made


def discard_row_moves(dataset: LanceDataset, moves: RowMoves) -> None:
    """Remove the files of moves that nobody will commit."""
    _files(dataset, moves).remove()


def _files(dataset: LanceDataset, moves: RowMoves) -> ChangeFiles:
    written, new = moves.operation.updated_fragments, moves.operation.new_fragments
    return ChangeFiles(dataset._store, dataset._root, data_files_of(new), written, moves.folders)


def _file_version(base: Manifest, schema: Schema, asked: str | None) -> str:
    """File version of new fragments, after a look whether it holds the schema and goes with the others."""
    version = resolve_version(base.storage_version if asked is None else asked)
    present = base.fragment_list.columns.storage_versions or {base.storage_version}
    if is_mixture(present | {version}):
        raise InvalidInputError(
            f"the dataset has files of storage version {', '.join(sorted(present))}; rows cannot be written to files "
            f"of version {version}, as version 0.1 never mixes with later ones"
        )
    family_of(version).check_schema(schema, version)
    check_table_blobs(schema, version)
    return version


def _hits(
    dataset: LanceDataset, masked: Mapping[int, NDArray[np.int64]]
) -> list[tuple[FragmentReader, NDArray[np.int64]]]:
    hits = []
    for fragment_id, rows in sorted(masked.items()):
        fragment = dataset._reader.fragment(fragment_id)
        if fragment is None:
            version = dataset._manifest.version
            raise InvalidInputError(f"version {version} has no fragment {fragment_id} to mask rows of")
        hits.append((fragment, rows))
    return hits


def _with_row_ids(fragments: Sequence[Fragment], moved: NDArray[np.uint64] | None) -> list[Fragment]:
    """New fragments with the ids of moved rows; added rows behind those get theirs at commit."""
    ids = np.empty(0, np.uint64) if moved is None else moved
    rows = sum(fragment.physical_rows for fragment in fragments)
    if len(ids) > rows:
        raise InvalidInputError(f"{len(ids)} rows were to move, but only {rows} were written")
    cut = []
    start = 0
    for fragment in fragments:
        mine = ids[start : start + fragment.physical_rows]
        start += fragment.physical_rows
        cut.append(replace(fragment, row_ids=RowIds.from_values(mine).encode()) if len(mine) else fragment)
    return cut
