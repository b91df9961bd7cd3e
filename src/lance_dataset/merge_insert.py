"""`LanceDataset.merge_insert`: a source is merged into a dataset by key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from lance_dataset.arguments import check_duration, checked_integer
from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched, WriteMode, key_columns
from lance_dataset.changes.merge.columns import empty_source
from lance_dataset.changes.merge.execution import Merge, MergeOptions, commit_merge
from lance_dataset.changes.merge.plan import analyzed_plan, explained_plan
from lance_dataset.changes.retry import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT, repeated_on_conflict
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.file.versions import resolve_version
from lance_dataset.input import as_batches, has_no_rows
from lance_dataset.operations import Transaction
from lance_dataset.operations.conversion import from_table_transaction
from lance_dataset.query.expr import compile_filter
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.transaction import Transaction as TableTransaction

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

__all__ = ["MergeInsertBuilder"]

_Value = TypeVar("_Value")


class MergeInsertBuilder:
    """A merge of a source into a dataset, clause by clause; see `LanceDataset.merge_insert`.

    Every method but the last ones returns the builder. Of the three `when_matched` clauses the last one that is called
    counts.

    Parameters
    ----------
    dataset
        The dataset.
    on
        Key columns; None for the unenforced primary key.

    Raises
    ------
    InvalidInputError
        No key column is given, and the dataset declares no primary key.
    FieldNotFoundError
        There is no such column.
    TypeError
        `on` is no name and no list of names.
    """

    def __init__(self, dataset: LanceDataset, on: str | Iterable[str] | None = None) -> None:
        self._dataset = dataset
        self._clauses = MergeClauses(key_columns(dataset._manifest.schema, _names(on)))
        self._options = MergeOptions()
        self._retries = DEFAULT_CONFLICT_RETRIES
        self._timeout = DEFAULT_RETRY_TIMEOUT

    # -- clauses -------------------------------------------------------------------------------------------------

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Update rows of the dataset that the source has too.

        Columns that the source lacks keep their values, nested ones too.

        Parameters
        ----------
        condition
            SQL over ``source.x`` and ``target.x``: only where it is true is a row updated. A row where it is not still
            counts as matched.
        """
        text = None if condition is None else _checked("condition", condition, str)
        self._clauses = replace(self._clauses, matched=WhenMatched.UPDATE, condition=text)
        return self

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Delete rows of the dataset that the source has too; of the source only the key columns are needed."""
        self._clauses = replace(self._clauses, matched=WhenMatched.DELETE, condition=None)
        return self

    def when_matched_fail(self) -> MergeInsertBuilder:
        """Change nothing and raise InvalidInputError if the dataset has a row that the source has too."""
        self._clauses = replace(self._clauses, matched=WhenMatched.FAIL, condition=None)
        return self

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Insert rows of the source that the dataset does not have; columns that the source lacks are null in them.

        A key with a null in it matches nothing, so such rows are inserted each time.
        """
        self._clauses = replace(self._clauses, inserts=True)
        return self

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> MergeInsertBuilder:
        """Delete rows of the dataset that the source does not have.

        Parameters
        ----------
        expr
            SQL over the columns of the dataset: only rows for which it is true are deleted.

        Raises
        ------
        FilterError, FieldNotFoundError
            The expression does not fit the columns.
        """
        if expr is not None:
            compile_filter(_checked("expr", expr, str), self._dataset._scanned_schema.storage_arrow)
        self._clauses = replace(self._clauses, deletes_rest=True, rest_condition=expr)
        return self

    # -- options -------------------------------------------------------------------------------------------------

    def write_mode(self, mode: Literal["auto", "rewrite_rows", "rewrite_columns"]) -> MergeInsertBuilder:
        """Choose how changed rows are stored.

        Parameters
        ----------
        mode
            ``rewrite_rows`` writes them as a whole to new fragments. ``rewrite_columns`` leaves them where they are and
            writes new files for the columns of the source, with a value for every row of the fragments that have a
            changed row; it needs a source with some of the columns, and no other clause than
            `when_matched_update_all`. ``auto``, the default, does that where it writes much less.

        Raises
        ------
        InvalidInputError
            Another mode.
        """
        _checked("mode", mode, str)
        if mode not in [each.value for each in WriteMode]:
            raise InvalidInputError(
                f"Invalid write_mode: {mode}. Expected one of 'auto', 'rewrite_rows', 'rewrite_columns'"
            )
        self._clauses = replace(self._clauses, write_mode=WriteMode(mode))
        return self

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """How often to compute the merge anew when other writers changed the same rows (10 by default)."""
        self._retries = checked_integer("max_retries", max_retries, bits=32)
        return self

    def retry_timeout(self, timeout: dt.timedelta) -> MergeInsertBuilder:
        """How long to go on doing so (30 seconds by default)."""
        check_duration("timeout", timeout)
        self._timeout = timeout
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Accepted for compatibility: keys are always looked up in a hash table of the source."""
        _checked("use_index", use_index, bool)
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """File version of new files, by default that of the dataset; raises InvalidInputError for an unknown one."""
        _checked("version", version, str)
        self._options = replace(self._options, storage_version=resolve_version(version))
        return self

    def target_bases(self, bases: Sequence[str]) -> MergeInsertBuilder:
        """Let files of new rows go to base paths in turn, given by name or path; the dataset itself by its location."""
        if isinstance(bases, str) or not all(isinstance(base, str) for base in bases):
            raise TypeError(f"bases must be a list of names or paths, not {bases!r}")
        self._options = replace(self._options, target_bases=tuple(bases))
        return self

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """Let files of new rows go to all base paths in turn, with the dataset itself first unless told otherwise."""
        self._options = replace(self._options, target_all_bases=_checked("include_primary", include_primary, bool))
        return self

    def mark_sstables_as_compacted(self, sstables: Sequence[Any]) -> MergeInsertBuilder:
        """Record in the same commit how far logs were taken over; not in this release, but for an empty list."""
        if len(list(sstables)):
            raise UnsupportedError("mark_sstables_as_compacted: MemWAL is not supported by this release")
        return self

    # -- running -------------------------------------------------------------------------------------------------

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> dict[str, int]:
        """Merge a source in one commit; the handle that the builder was made from moves to the new version.

        Parameters
        ----------
        data_obj
            The source, anything that `write_dataset` accepts. It is read once; what exceeds a memory budget is kept in
            a temporary file.
        schema
            Schema of the data; required for iterables.

        Returns
        -------
        dict
            ``num_inserted_rows``, ``num_updated_rows`` and ``num_deleted_rows``.

        Raises
        ------
        InvalidInputError
            No clause was called; several source rows match one row that is to be updated or deleted; or a row matches
            and `when_matched_fail` was called.
        SchemaError
            The source has other columns or types than the dataset, or nulls where that has none.
        FilterError, FieldNotFoundError
            A condition does not fit the columns, or the source lacks a key column.
        CommitConflictError
            The dataset was replaced by another, or retries did not help.
        """
        merge = self._collected(data_obj, schema)

        def change(handle: LanceDataset) -> tuple[Manifest, dict[str, int]]:
            prepared = merge.prepare(handle)
            return commit_merge(handle, prepared), prepared.statistics

        with merge.source:
            return repeated_on_conflict(self._dataset, change, self._retries, self._timeout)

    def execute_batches(self, new_data: Any) -> dict[str, int]:
        """The same as `execute`."""
        return self.execute(new_data)

    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, dict[str, int]]:
        """Write the files of a merge without committing it; parameters and errors as for `execute`.

        Returns
        -------
        transaction : Transaction
            What `LanceDataset.commit` takes.
        statistics : dict
            As of `execute`.
        """
        merge, dataset = self._collected(data_obj, schema), self._dataset
        with merge.source:
            prepared = merge.prepare(dataset)
        change = TableTransaction(dataset._manifest.version, prepared.operation)
        return from_table_transaction(change), prepared.statistics

    def execute_uncommitted_batches(self, new_data: Any) -> tuple[Transaction, dict[str, int]]:
        """The same as `execute_uncommitted`."""
        return self.execute_uncommitted(new_data)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """What `execute` would do, step by step, as text.

        Parameters
        ----------
        schema
            Schema of the source, by default that of the dataset.
        verbose
            Show details of every step.
        """
        self._clauses.check()
        if schema is None:
            schema = self._dataset.schema
        _checked("schema", schema, pa.Schema)
        return explained_plan(self._dataset, self._clauses, self._options, schema, verbose)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Run a merge, take its files back instead of committing them, and say what each step did.

        Parameters and errors as for `execute`.
        """
        merge = self._collected(data_obj, schema)
        with merge.source:
            return analyzed_plan(self._dataset, merge)

    def analyze_plan_batches(self, new_data: Any) -> str:
        """The same as `analyze_plan`."""
        return self.analyze_plan(new_data)

    def _collected(self, data_obj: Any, schema: pa.Schema | None) -> Merge:
        self._clauses.check()
        options = self._options
        if options.target_all_bases is not None and options.target_bases is not None:
            raise InvalidInputError("Cannot specify target_all_bases together with target_bases")
        table = self._dataset._manifest.schema
        given, batches = as_batches(data_obj, schema)
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
