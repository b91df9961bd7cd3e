"""Merges that only change some columns. These columns get new files beside the old ones, and rows stay in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.fragments.column_files import commit_column_files, remove_column_files
from lance_dataset.changes.fragments.column_rewrites import rewrite_columns
from lance_dataset.changes.keys.source import Source, source_row_bytes
from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched
from lance_dataset.changes.merge.columns import MergeColumns
from lance_dataset.changes.merge.matching import Matches
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import project, with_stored_blobs
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.read.take import take_fragment_rows
from lance_dataset.table.flags import check_writable
from lance_dataset.table.fragment import DataFile
from lance_dataset.table.operations import CompactedSsTable, Update, UpdateMode
from lance_dataset.table.row_addresses import by_fragment, offsets_of

__all__ = [
    "ColumnChanges",
    "commit_column_changes",
    "is_cheaper_in_place",
    "prepare_column_changes",
    "why_not_in_place",
]

#: Bytes that new column files must save before the automatic mode chooses them.
_WORTHWHILE_BYTES = 1 << 20


@dataclass(frozen=True)
class ColumnChanges:
    """Changes of columns that were computed against one version. Their files are written.

    Attributes
    ----------
    operation
        Operation to commit.
    files
        The new files.
    """

    operation: Update
    files: tuple[DataFile, ...]


def why_not_in_place(clauses: MergeClauses, columns: MergeColumns) -> str | None:
    """Return the reason that a merge cannot leave rows in place; None if it can."""
    if clauses.matched is not WhenMatched.UPDATE:
        return "when_matched must update rather than delete or do nothing"
    if clauses.inserts:
        return "inserting unmatched source rows adds rows, which patching cannot do"
    if clauses.deletes_rest:
        return "deleting target rows unmatched by the source removes rows"
    if not columns.target_columns:
        return "the source covers every dataset column, so there is nothing to skip"
    if not columns.changed.fields:
        return "the source carries no column besides the join key"
    if columns.changes_blobs:
        return "the source carries a blob column, whose stored form differs from the one it provides"
    return None


def is_cheaper_in_place(snapshot: Snapshot, source: Source, matches: Matches) -> bool:
    """Return True if new files for the columns of the source need far fewer bytes than the complete changed rows.

    New files have a value for every row of the fragments that have a changed one.
    """
    if not len(matches.addresses):
        return False
    written = kept = 0.0
    source_bytes = source_row_bytes(source)
    for owner, mine in by_fragment(matches.addresses):
        fragment = _fragment(snapshot, owner)
        written += fragment.physical_rows * source_bytes
        kept += len(mine) * fragment.bytes_per_row
    return kept > 2 * written + _WORTHWHILE_BYTES


def prepare_column_changes(
    snapshot: Snapshot,
    columns: MergeColumns,
    source: Source,
    matches: Matches,
    *,
    storage_version: str | None = None,
    compacted: Sequence[CompactedSsTable] = (),
) -> ColumnChanges:
    """Write the new column files of a merge whose source has some of the columns.

    If that fails, all new files are removed.

    Parameters
    ----------
    snapshot
        Version to change.
    columns, source, matches
        The source, and the rows that it changes.
    storage_version
        File version of the new files; None for that of the table.
    compacted
        See `Update`.

    Returns
    -------
    ColumnChanges
        Changes to commit or to discard.
    """
    base = snapshot.manifest
    check_writable(base.writer_flags, base.path)
    made = []
    try:
        for owner, mine in by_fragment(matches.addresses):
            fragment = _fragment(snapshot, owner)
            offsets = offsets_of(matches.addresses[mine])
            values = partial(_values, snapshot, columns, source, fragment, offsets, matches.source_rows[mine])
            made.append(
                rewrite_columns(snapshot, fragment, columns.changed, offsets, values, storage_version=storage_version)
            )
    except BaseException:
        remove_column_files(snapshot, [each.file for each in made])
        raise
    offsets_by_fragment = {each.fragment.id: each.offsets for each in made}
    operation = Update(
        updated_fragments=tuple(each.fragment for each in made),
        fields_modified=tuple(node.id for node in columns.changed.walk()) if made else (),
        compacted_sstables=tuple(compacted),
        mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=offsets_by_fragment if base.uses_stable_row_ids else {},
    )
    return ColumnChanges(operation, tuple(each.file for each in made))


def commit_column_changes(snapshot: Snapshot, changes: ColumnChanges) -> Snapshot:
    """Commit changes of columns. If that fails, remove their files."""
    return commit_column_files(snapshot, changes.operation, changes.files)


def _values(
    snapshot: Snapshot,
    columns: MergeColumns,
    source: Source,
    fragment: FragmentReader,
    offsets: NDArray[np.int64],
    source_rows: NDArray[np.int64],
    first: int,
    stop: int,
) -> pa.RecordBatch:
    """Return the new values of the changed rows of a fragment from number `first` up to (excluding) `stop`."""
    wanted = [field.name for field in columns.changed.fields]
    mine = source.take(source_rows[first:stop], wanted)
    mixed = [name for name in columns.target_columns if name in wanted]
    if not mixed:
        return mine
    schema = snapshot.scanned_schema
    kept = take_fragment_rows(fragment, offsets[first:stop], with_stored_blobs(project(schema, mixed)), schema)
    return columns.updated(mine, kept, columns.changed)


def _fragment(snapshot: Snapshot, fragment_id: int) -> FragmentReader:
    found = snapshot.reader.fragment(fragment_id)
    assert found is not None, "addresses come from a scan of this version"
    return found
