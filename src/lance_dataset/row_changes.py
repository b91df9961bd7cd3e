"""Rows that come, go and change: what datasets offer to writers of rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow.compute as pc

from lance_dataset.changes.retry import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT, repeated_on_conflict
from lance_dataset.changes.update import update_rows
from lance_dataset.io.base import ObjectStore
from lance_dataset.query.delete import commit_delete, plan_delete
from lance_dataset.query.expr import compile_filter
from lance_dataset.query.projection import full_schema
from lance_dataset.table.manifest import Manifest

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset
    from lance_dataset.merge_insert import MergeInsertBuilder

__all__ = ["RowChanges"]

Predicate: TypeAlias = "str | pc.Expression"


class RowChanges:
    """A dataset whose rows can be changed."""

    _store: ObjectStore
    _root: str

    if TYPE_CHECKING:

        def _show(self, manifest: Manifest) -> None: ...

    def insert(self, data: Any, *, mode: str = "append", **kwargs: Any) -> None:
        """Write data into this dataset (append by default) and move this handle to the new version."""
        from lance_dataset.write import write_dataset

        self._show(write_dataset(data, cast("LanceDataset", self), mode=mode, **kwargs)._manifest)

    def delete(
        self,
        predicate: Predicate,
        *,
        conflict_retries: int | None = DEFAULT_CONFLICT_RETRIES,
        retry_timeout: dt.timedelta | None = DEFAULT_RETRY_TIMEOUT,
    ) -> dict[str, int]:
        """Delete the rows a predicate holds for, in one commit; this handle moves to the new version.

        Parameters
        ----------
        predicate
            SQL text or a pyarrow expression; rows where it is null stay.
        conflict_retries, retry_timeout
            How often, and how long, to compute the delete anew when other writers change the same rows; None for the
            defaults.

        Returns
        -------
        dict
            ``{"num_deleted_rows": n}``

        Raises
        ------
        FilterError, FieldNotFoundError
            The predicate does not fit.
        InvalidInputError
            A negative `conflict_retries`.
        TypeError
            No predicate.
        CommitConflictError
            The dataset was replaced by another, or retries did not help.
        """

        def change(handle: LanceDataset) -> tuple[Manifest, dict[str, int]]:
            bound = compile_filter(predicate, full_schema(handle._scanned_schema))
            if bound is None:
                raise TypeError("delete needs a predicate; 'true' deletes all rows")
            plan = plan_delete(self._store, self._root, handle._reader, bound)
            made = commit_delete(self._store, self._root, handle._manifest, plan)
            return made, {"num_deleted_rows": plan.num_rows}

        return repeated_on_conflict(cast("LanceDataset", self), change, conflict_retries, retry_timeout)

    def update(
        self,
        updates: Mapping[str, str],
        where: Predicate | None = None,
        conflict_retries: int | None = DEFAULT_CONFLICT_RETRIES,
        retry_timeout: dt.timedelta | None = DEFAULT_RETRY_TIMEOUT,
        data_storage_version: str | None = None,
    ) -> dict[str, int]:
        """Give rows new values in some columns, in one commit; this handle moves to the new version.

        Updated rows move behind all others; with stable row ids they keep their ids. Memory stays bounded whatever
        the number of rows.

        Parameters
        ----------
        updates
            SQL expression by top-level column, such as ``{"price": "price * 2"}``. All of them read the values that a
            row had before, and are converted to the type of the column.
        where
            SQL text or a pyarrow expression: which rows; None for all. Rows where it is null stay.
        conflict_retries, retry_timeout
            How often, and how long, to compute the update anew when other writers change the same rows; None for the
            defaults.
        data_storage_version
            File version of the new files, by default that of the dataset.

        Returns
        -------
        dict
            ``{"num_rows_updated": n}``

        Raises
        ------
        FieldNotFoundError, FilterError
            There is no such column, or an expression does not fit the schema.
        InvalidInputError
            Nothing to update is given, a value does not convert, or the file version does not go with the dataset.
        SchemaError
            Null for a column that cannot be null.
        UnsupportedError
            A nested field is named, or the file version cannot hold the data.
        CommitConflictError
            The dataset was replaced by another, or retries did not help.
        """

        def change(handle: LanceDataset) -> tuple[Manifest, dict[str, int]]:
            made, rows = update_rows(handle, updates, where, data_storage_version)
            return made, {"num_rows_updated": rows}

        return repeated_on_conflict(cast("LanceDataset", self), change, conflict_retries, retry_timeout)

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Merge a source into this dataset by key: update, insert and delete rows in one commit.

        Parameters
        ----------
        on
            Key columns, by which rows of the source and of the dataset are the same; None for the unenforced primary
            key. Keys with a null in them equal none.

        Returns
        -------
        MergeInsertBuilder
            Says what becomes of rows that both have, that only the source has, and that only the dataset has; its
            `execute` takes the source and moves this handle to the new version. Updated and inserted rows come last,
            updated ones in the order of the source, or in that of the dataset if the source has only some columns.

        Raises
        ------
        InvalidInputError
            No key column is given, and the dataset declares no primary key.
        FieldNotFoundError
            There is no such column.

        Examples
        --------
        >>> dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        {'num_inserted_rows': 1, 'num_updated_rows': 2, 'num_deleted_rows': 0}
        """
        from lance_dataset.merge_insert import MergeInsertBuilder

        return MergeInsertBuilder(cast("LanceDataset", self), on)

    def truncate_table(self) -> None:
        """Delete all rows, keep the schema."""
        self.delete("true")
