"""Execution of a merge: matching rows, writing the changed ones, and committing them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from lance_dataset.changes.fragments.column_files import remove_column_files
from lance_dataset.changes.fragments.row_moves import RowMoves, commit_row_moves, discard_row_moves, prepare_row_moves
from lance_dataset.changes.keys.key_columns import cast_keys
from lance_dataset.changes.keys.source import DEFAULT_BUDGET, Source
from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched, WriteMode, primary_key
from lance_dataset.changes.merge.columns import MergeColumns
from lance_dataset.changes.merge.conditions import PairCondition
from lance_dataset.changes.merge.in_place import (
    ColumnChanges,
    commit_column_changes,
    is_cheaper_in_place,
    prepare_column_changes,
    why_not_in_place,
)
from lance_dataset.changes.merge.matching import Matches, Matching, find_matches
from lance_dataset.changes.merge.rows import in_write_order, masked_rows, new_rows, row_ids_of
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.changes.write.bases import data_folders
from lance_dataset.errors import InvalidInputError
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.results import ExecuteResult
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.table.conflicts.key_filter import build_key_filter
from lance_dataset.table.operations import CompactedSsTable, KeyFilter, Update
from lance_dataset.table.paths import DataFolder
from lance_dataset.types.schema import Schema

__all__ = ["Merge", "MergeOptions", "PreparedMerge", "discard_merge"]


@dataclass(frozen=True)
class MergeOptions:
    """Options for the files that a merge writes.

    Attributes
    ----------
    storage_version
        File version of new files; None for that of the table.
    target_bases, target_all_bases
        Base paths for the files of new rows, see `data_folders`.
    compacted
        See `Update`.
    """

    storage_version: str | None = None
    target_bases: tuple[str, ...] | None = None
    target_all_bases: bool | None = None
    compacted: tuple[CompactedSsTable, ...] = ()


@dataclass(frozen=True)
class PreparedMerge:
    """Merge that was computed against one version. Its files are written.

    Attributes
    ----------
    change
        Change to commit.
    inserted, updated, deleted
        Numbers of rows.
    """

    change: RowMoves | ColumnChanges
    inserted: int
    updated: int
    deleted: int

    @property
    def operation(self) -> Update:
        """Operation to commit."""
        return self.change.operation

    @property
    def statistics(self) -> ExecuteResult:
        """Numbers of rows, in the form that users see."""
        return {
            "num_inserted_rows": self.inserted,
            "num_updated_rows": self.updated,
            "num_deleted_rows": self.deleted,
        }


def _committed(snapshot: Snapshot, prepared: PreparedMerge) -> Snapshot:
    """Commit a merge. If that fails, remove its files.

    Raises
    ------
    CommitConflictError
        Other writers changed some of the same rows, inserted some of the same keys, or made another conflicting change.
    """
    if isinstance(prepared.change, ColumnChanges):
        return commit_column_changes(snapshot, prepared.change)
    return commit_row_moves(snapshot, prepared.change)


def discard_merge(snapshot: Snapshot, prepared: PreparedMerge) -> None:
    """Remove the files of a merge that was not committed."""
    if isinstance(prepared.change, ColumnChanges):
        remove_column_files(snapshot, prepared.change.files)
    else:
        discard_row_moves(snapshot, prepared.change)


@dataclass
class Merge:
    """Merge with a collected source, which can be computed against several versions.

    Attributes
    ----------
    clauses, options
        Clauses of the merge, and options for its files.
    source_schema
        Original schema of the source.
    columns
        Relation of its columns to the table at the time it was collected.
    source
        Collected rows.
    num_written
        Number of its first rows that are written. Those after them only name keys whose target rows are deleted.
    """

    clauses: MergeClauses
    options: MergeOptions
    source_schema: pa.Schema
    columns: MergeColumns
    source: Source
    num_written: int

    @classmethod
    def collect(
        cls,
        table: Schema,
        clauses: MergeClauses,
        options: MergeOptions,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        deletions: Iterable[pa.RecordBatch] = (),
    ) -> Merge:
        """Read a source to its end; raises like `MergeColumns.of`.

        Parameters
        ----------
        table
            Schema of the table.
        schema, batches
            The source.
        deletions
            More rows of the source, of which only the keys count: the target rows with these keys are deleted in the
            same commit. They are for merges that update and insert rows.
        """
        columns = MergeColumns.of(table, schema, clauses)
        _check_mode(clauses, columns)
        written = 0

        def kept() -> Iterator[pa.RecordBatch]:
            nonlocal written
            for batch in batches:
                written += batch.num_rows
                yield columns.collected(batch)
            for batch in deletions:
                yield columns.collected(batch)

        budget = share_of_memory(DEFAULT_BUDGET, MemoryUse.TEMPORARY)
        source = Source.collect(kept(), columns.collected_schema(schema), budget=budget)
        return cls(clauses, options, schema, columns, source, written)

    def prepare(self, snapshot: Snapshot, metrics: ScanMetrics | None = None) -> PreparedMerge:
        """Compute the merge against a snapshot and write its files.

        Raises
        ------
        InvalidInputError
            Several source rows match one target row, or a row matches although the clauses say that matches fail.
        SchemaError
            The source does not fit the table, or has nulls in a column that is not nullable.
        FilterError, FieldNotFoundError
            A condition does not fit the columns.
        """
        clauses, source = self.clauses, self.source
        columns, matching = self.resolved(snapshot)
        folders = _folders(snapshot, self.options)
        matches = find_matches(snapshot, matching, metrics)
        written = matches if self.num_written == source.num_rows else matches.of_first(self.num_written)
        updated = len(written.addresses) if clauses.matched is WhenMatched.UPDATE else 0
        change: RowMoves | ColumnChanges
        if self._stays_in_place(snapshot, columns, matches):
            change = prepare_column_changes(
                snapshot,
                columns,
                source,
                matches,
                storage_version=self.options.storage_version,
                compacted=self.options.compacted,
            )
        else:
            change = self._moves(snapshot, columns, matches, written, folders)
        return PreparedMerge(
            change,
            inserted=written.num_new,
            updated=updated,
            deleted=len(matches.rest) + len(matches.addresses) - updated,
        )

    def execute(
        self,
        snapshot: Snapshot,
        conflict_retries: int | None,
        retry_timeout: dt.timedelta | None,
        metrics: Callable[[], ScanMetrics | None] = lambda: None,
    ) -> tuple[Snapshot, ExecuteResult]:
        """Compute and commit the merge; return the new version and the numbers of rows.

        Errors are those of `prepare` and `repeated_on_conflict`.
        """

        def change(latest: Snapshot) -> tuple[Snapshot, ExecuteResult]:
            prepared = self.prepare(latest, metrics())
            return _committed(latest, prepared), prepared.statistics

        return repeated_on_conflict(snapshot, change, conflict_retries, retry_timeout)

    def resolved(self, snapshot: Snapshot) -> tuple[MergeColumns, Matching]:
        """Return the columns of the source and the search for matches, for a snapshot."""
        clauses, source = self.clauses, self.source
        columns = self.columns
        if columns.table is not snapshot.manifest.schema:
            columns = MergeColumns.of(snapshot.manifest.schema, self.source_schema, clauses)
            _check_mode(clauses, columns)
        target = snapshot.scanned_schema.storage_arrow
        condition = None
        if clauses.matched is WhenMatched.UPDATE and clauses.condition is not None:
            condition = PairCondition.compile(clauses.condition, source.schema, target)
        rest = compile_filter(clauses.rest_condition, target) if clauses.deletes_rest else None
        types = [target.field(name).type for name in columns.keys]
        keys = [
            cast_keys(source.column(name), arrow, name) for name, arrow in zip(columns.source_keys, types, strict=True)
        ]
        return columns, Matching(clauses, source, keys, condition, rest)

    def _stays_in_place(self, snapshot: Snapshot, columns: MergeColumns, matches: Matches) -> bool:
        mode = self.clauses.write_mode
        if mode is not WriteMode.AUTO:
            return mode is WriteMode.COLUMNS
        if not self.clauses.updates_only or why_not_in_place(self.clauses, columns) is not None:
            return False
        return is_cheaper_in_place(snapshot, self.source, matches)

    def _moves(
        self,
        snapshot: Snapshot,
        columns: MergeColumns,
        matches: Matches,
        written: Matches,
        folders: Sequence[DataFolder],
    ) -> RowMoves:
        """Mask all matched rows, and write those of the source that are not only keys to delete."""
        clauses, source, options = self.clauses, self.source, self.options
        table = snapshot.manifest.schema
        batches: Iterable[pa.RecordBatch] = ()
        moved = written.addresses[:0]
        if clauses.writes_source:
            updates = clauses.matched is WhenMatched.UPDATE
            ordered = in_write_order(columns, written, source.num_rows) if updates else (moved, written.source_rows[:0])
            moved = ordered[0]
            batches = new_rows(snapshot, columns, source, ordered, written.is_new)
        return prepare_row_moves(
            snapshot,
            masked_rows(matches.addresses, matches.rest),
            table,
            batches,
            partial(row_ids_of, snapshot.reader, moved),
            fields=[node.id for node in (table.walk() if clauses.writes_source else table.fields)],
            storage_version=options.storage_version,
            inserted_rows=_key_filter(table, source, clauses, written),
            compacted=options.compacted,
            folders=folders,
        )


def _check_mode(clauses: MergeClauses, columns: MergeColumns) -> None:
    """Raise InvalidInputError if the clauses require changes in place, but the merge cannot make them."""
    if clauses.write_mode is WriteMode.COLUMNS:
        reason = why_not_in_place(clauses, columns)
        if reason is not None:
            raise InvalidInputError(
                f"write_mode 'rewrite_columns' cannot express this merge insert: {reason}; use 'auto' or 'rewrite_rows'"
            )


def _folders(snapshot: Snapshot, options: MergeOptions) -> Sequence[DataFolder]:
    if options.target_bases is None and options.target_all_bases is None:
        return ()
    if options.target_bases == ():
        raise InvalidInputError("target_bases cannot be empty; leave it out to write to the dataset itself")
    bases = snapshot.manifest.base_paths
    return data_folders(snapshot.location, bases, options.target_bases, options.target_all_bases)


def _key_filter(table: Schema, source: Source, clauses: MergeClauses, matches: Matches) -> KeyFilter | None:
    """Build a filter of the keys of inserted rows, if the merge is on the primary key; None otherwise."""
    key = primary_key(table)
    if not key or set(key) != set(clauses.on):
        return None
    ids = [table.top_level(name).id for name in key]
    if not matches.num_new or matches.is_new is None:
        return build_key_filter(ids, [pa.array([], table.top_level(name).storage_type) for name in key])
    chosen = pa.array(matches.is_new)
    return build_key_filter(ids, [source.column(name).filter(chosen) for name in key])
