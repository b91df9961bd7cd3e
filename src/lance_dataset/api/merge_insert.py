"""Builder of `LanceDataset.merge_insert`: merge a source into a dataset by key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from lance_dataset.api.scanner.progress import ProgressOption, metrics_of, reported_progress
from lance_dataset.arguments import check_duration, checked_integer
from lance_dataset.changes.write.input import ReaderLike, as_batches, has_no_rows
from lance_dataset.changes.write.lossless import fit_batches
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.versions import resolve_version
from lance_dataset.memory import limited_memory
from lance_dataset.read.shown import Shown
from lance_dataset.records.defaults import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_dataset.records.operations import Transaction
from lance_dataset.records.results import ExecuteResult

if TYPE_CHECKING:
    from lance_dataset.changes.merge.execution import Merge
    from lance_dataset.scan.explain.plan_picture import PlanText

__all__ = ["MergeInsertBuilder"]

_Value = TypeVar("_Value")


class MergeInsertBuilder:
    """Merge of a source into a dataset, built clause by clause; see `LanceDataset.merge_insert`.

    Methods that set clauses and options return the builder. If several of the three `when_matched` methods are called,
    the last call wins.

    Parameters
    ----------
    dataset
        The dataset.
    on
        Key columns; None for the unenforced primary key.

    Raises
    ------
    InvalidInputError
        No key column is given, and the dataset does not declare a primary key.
    FieldNotFoundError
        A key column does not exist.
    TypeError
        `on` is not a name or a list of names.
    """

    def __init__(self, dataset: Shown, on: str | Iterable[str] | None = None) -> None:
        from lance_dataset.changes.merge.clauses import MergeClauses, key_columns
        from lance_dataset.changes.merge.execution import MergeOptions

        self._dataset = dataset
        self._clauses = MergeClauses(key_columns(dataset.snapshot.manifest.schema, _names(on)))
        self._options = MergeOptions()
        self._retries = DEFAULT_CONFLICT_RETRIES
        self._timeout = DEFAULT_RETRY_TIMEOUT

    # -- clauses -------------------------------------------------------------------------------------------------

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Update rows of the dataset that also exist in the source.

        Columns that the source lacks keep their values, including nested ones.

        Parameters
        ----------
        condition
            SQL over ``source.x`` and ``target.x``. Only rows for which it is true are updated. The other rows still
            count as matched.
        """
        from lance_dataset.changes.merge.clauses import WhenMatched

        text = None if condition is None else _checked("condition", condition, str)
        self._clauses = replace(self._clauses, matched=WhenMatched.UPDATE, condition=text)
        return self

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Delete rows of the dataset that also exist in the source. The source needs only the key columns."""
        from lance_dataset.changes.merge.clauses import WhenMatched

        self._clauses = replace(self._clauses, matched=WhenMatched.DELETE, condition=None)
        return self

    def when_matched_fail(self) -> MergeInsertBuilder:
        """Raise InvalidInputError, and change nothing, if a row of the source exists in the dataset."""
        from lance_dataset.changes.merge.clauses import WhenMatched

        self._clauses = replace(self._clauses, matched=WhenMatched.FAIL, condition=None)
        return self

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Insert rows of the source that do not exist in the dataset. Columns that the source lacks become null.

        A key that contains a null matches nothing, so rows with such a key are always inserted.
        """
        self._clauses = replace(self._clauses, inserts=True)
        return self

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> MergeInsertBuilder:
        """Delete rows of the dataset that do not exist in the source.

        Parameters
        ----------
        expr
            SQL over the columns of the dataset. Only rows for which it is true are deleted.

        Raises
        ------
        FilterError, FieldNotFoundError
            The expression is malformed or does not fit the columns.
        """
        from lance_dataset.expr.compiled import compile_filter

        if expr is not None:
            compile_filter(_checked("expr", expr, str), self._dataset.snapshot.scanned_schema.storage_arrow)
        self._clauses = replace(self._clauses, deletes_rest=True, rest_condition=expr)
        return self

    # -- options -------------------------------------------------------------------------------------------------

    def write_mode(self, mode: Literal["auto", "rewrite_rows", "rewrite_columns"]) -> MergeInsertBuilder:
        """Choose how changed rows are stored.

        Parameters
        ----------
        mode
            ``rewrite_rows`` writes whole rows to new fragments. ``rewrite_columns`` leaves the rows in their fragments
            and writes new files for the columns of the source, with a value for every row of each fragment that has a
            changed row. It requires a source with only some of the columns, and `when_matched_update_all` as the only
            clause. ``auto``, the default, chooses ``rewrite_columns`` where it writes much less.

        Raises
        ------
        InvalidInputError
            The mode is unknown.
        """
        from lance_dataset.changes.merge.clauses import WriteMode

        _checked("mode", mode, str)
        if mode not in [each.value for each in WriteMode]:
            raise InvalidInputError(
                f"Invalid write_mode: {mode}. Expected one of 'auto', 'rewrite_rows', 'rewrite_columns'"
            )
        self._clauses = replace(self._clauses, write_mode=WriteMode(mode))
        return self

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """Set how often to repeat the merge if other writers changed the same rows (10 by default)."""
        self._retries = checked_integer("max_retries", max_retries, bits=32)
        return self

    def retry_timeout(self, timeout: dt.timedelta) -> MergeInsertBuilder:
        """Set the time after which the merge is not repeated any more (30 seconds by default)."""
        check_duration("timeout", timeout)
        self._timeout = timeout
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Set whether an index of a key column may find the rows that match, if that is faster (True by default)."""
        self._clauses = replace(self._clauses, use_index=_checked("use_index", use_index, bool))
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """Set the file version of new files. The default is that of the dataset.

        Raises
        ------
        InvalidInputError
            The version is unknown.
        """
        _checked("version", version, str)
        self._options = replace(self._options, storage_version=resolve_version(version))
        return self

    def target_bases(self, bases: Sequence[str]) -> MergeInsertBuilder:
        """Write files of new rows to the given base paths in turn.

        Parameters
        ----------
        bases
            Names or paths of base paths. The location of the dataset means the dataset itself.
        """
        if isinstance(bases, str) or not all(isinstance(base, str) for base in bases):
            raise TypeError(f"bases must be a list of names or paths, not {bases!r}")
        self._options = replace(self._options, target_bases=tuple(bases))
        return self

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """Write files of new rows to all base paths in turn.

        Parameters
        ----------
        include_primary
            True to start with the dataset itself, False to leave it out.
        """
        self._options = replace(self._options, target_all_bases=_checked("include_primary", include_primary, bool))
        return self

    def mark_sstables_as_compacted(self, sstables: Sequence[object]) -> MergeInsertBuilder:
        """Record in the same commit which SSTables of a MemWAL the source is made of.

        Parameters
        ----------
        sstables
            Objects with ``shard_id`` and ``generation``, such as `lance_dataset.mem_wal.CompactedSsTable`: the highest
            generation of each shard.

        Raises
        ------
        TypeError
            An object is something else.
        InvalidInputError
            A shard id is not a UUID.
        """
        from lance_dataset.api.mem_wal.shards import compacted_sstables

        self._options = replace(self._options, compacted=compacted_sstables(sstables))
        return self

    # -- running -------------------------------------------------------------------------------------------------

    def execute(
        self,
        data_obj: ReaderLike,
        *,
        schema: pa.Schema | None = None,
        progress: ProgressOption = None,
        memory_limit: int | None = None,
    ) -> ExecuteResult:
        """Merge a source in one commit and move the handle that made the builder to the new version.

        Parameters
        ----------
        data_obj
            The source: anything that `write_dataset` accepts. It is read once. Data that exceeds the memory budget is
            kept in a temporary file.
        schema
            Schema of the data; required for iterables.
        progress
            True for a bar (tqdm), or a function of the numbers of rows of the dataset that were looked at and in all.
        memory_limit
            Bytes of memory that the merge may use, at least 16 MiB, without the source if that is in memory. The
            default is that of `lance_dataset.limited_memory`, or ``LANCE_MEMORY_LIMIT``, or none.

        Returns
        -------
        dict
            ``num_inserted_rows``, ``num_updated_rows`` and ``num_deleted_rows``.

        Raises
        ------
        InvalidInputError
            The builder has no clause, several source rows match a row to update or delete, or a row matches and
            `when_matched_fail` was called.
        SchemaError
            The source has other columns or types than the dataset, or nulls in a column that is not nullable.
        FilterError, FieldNotFoundError
            A condition does not fit the columns, or the source lacks a key column.
        CommitConflictError
            The dataset was replaced by another, or all retries failed.
        """
        with limited_memory(memory_limit), (merge := self._collected(data_obj, schema)).source:
            snapshot = self._dataset.snapshot
            with reported_progress(progress, lambda: snapshot.manifest.num_rows, "merge") as told:
                made, statistics = merge.execute(snapshot, self._retries, self._timeout, metrics_of(told))
                self._dataset.show(made)
        return statistics

    def execute_batches(self, new_data: ReaderLike) -> ExecuteResult:
        """Merge a source, like `execute`."""
        return self.execute(new_data)

    def execute_uncommitted(
        self, data_obj: ReaderLike, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, ExecuteResult]:
        """Write the files of a merge without committing it. Parameters and errors are those of `execute`.

        Returns
        -------
        transaction : Transaction
            Input for `LanceDataset.commit`.
        statistics : dict
            As returned by `execute`.
        """
        from lance_dataset.records.conversion import from_table_transaction
        from lance_dataset.table.transaction import Transaction as TableTransaction

        merge, snapshot = self._collected(data_obj, schema), self._dataset.snapshot
        with merge.source:
            prepared = merge.prepare(snapshot)
        change = TableTransaction(snapshot.version, prepared.operation)
        return from_table_transaction(change), prepared.statistics

    def execute_uncommitted_batches(self, new_data: ReaderLike) -> tuple[Transaction, ExecuteResult]:
        """Write the files of a merge, like `execute_uncommitted`."""
        return self.execute_uncommitted(new_data)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> PlanText:
        """Describe the steps that `execute` would run, as text.

        Parameters
        ----------
        schema
            Schema of the source. The default is that of the dataset.
        verbose
            True to show details of every step.
        """
        from lance_dataset.changes.merge.plan import explained_plan

        self._clauses.check()
        if schema is None:
            schema = self._dataset.snapshot.manifest.schema.arrow
        _checked("schema", schema, pa.Schema)
        return explained_plan(self._dataset.snapshot, self._clauses, self._options, schema, verbose)

    def analyze_plan(self, data_obj: ReaderLike, *, schema: pa.Schema | None = None) -> PlanText:
        """Run a merge without committing it, delete its files, and describe what each step did.

        Parameters and errors are those of `execute`.
        """
        from lance_dataset.changes.merge.plan import analyzed_plan

        merge = self._collected(data_obj, schema)
        with merge.source:
            return analyzed_plan(self._dataset.snapshot, merge)

    def analyze_plan_batches(self, new_data: ReaderLike) -> PlanText:
        """Run and describe a merge, like `analyze_plan`."""
        return self.analyze_plan(new_data)

    def _collected(self, data_obj: ReaderLike, schema: pa.Schema | None) -> Merge:
        from lance_dataset.changes.merge.columns import empty_source
        from lance_dataset.changes.merge.execution import Merge
        from lance_dataset.changes.write.blob_files import with_checked_references

        self._clauses.check()
        options = self._options
        if options.target_all_bases is not None and options.target_bases is not None:
            raise InvalidInputError("Cannot specify target_all_bases together with target_bases")
        table = self._dataset.snapshot.manifest.schema
        given, batches = as_batches(data_obj, schema)
        batches = with_checked_references(given, batches, self._dataset.snapshot.reader.locator)
        if self._clauses.writes_source:
            given, batches = fit_batches(given, batches, table)
        if has_no_rows(data_obj):
            given, batches = empty_source(table, given, self._clauses), iter(())
        return Merge.collect(table, self._clauses, self._options, given, batches)


def _names(on: object) -> list[str]:
    if on is None:
        return []
    if isinstance(on, str):
        return [on]
    names: list[Any] = list(on) if isinstance(on, Iterable) else [on]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"The `on` argument to merge_insert must be a str or iterable of str, not {on!r}")
    return names


def _checked(name: str, value: object, kind: type[_Value]) -> _Value:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    return value
