"""Updates, deletes and merges of rows of a dataset."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow.compute as pc

from lance_dataset.api.merge_insert import MergeInsertBuilder
from lance_dataset.api.scanner.progress import ProgressOption, metrics_of, reported_progress
from lance_dataset.read.shown import Shown
from lance_dataset.records.defaults import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_dataset.records.purge import PurgeReport
from lance_dataset.records.results import DeleteResult, UpdateResult

__all__ = ["RowChanges"]

Predicate: TypeAlias = "str | pc.Expression"


class RowChanges(Shown):
    """Updates, deletes and merges of rows of a dataset."""

    def delete(
        self,
        predicate: Predicate,
        *,
        conflict_retries: int | None = DEFAULT_CONFLICT_RETRIES,
        retry_timeout: dt.timedelta | None = DEFAULT_RETRY_TIMEOUT,
        progress: ProgressOption = None,
    ) -> DeleteResult:
        """Delete the rows for which a predicate is true, in one commit; move this handle to the new version.

        Parameters
        ----------
        predicate
            SQL text or a pyarrow expression. Rows for which it is null are kept.
        conflict_retries, retry_timeout
            Number of times to repeat the delete if other writers change the same rows, and time after which it is not
            repeated any more. None for the defaults.
        progress
            True for a bar (tqdm), or a function of the numbers of rows that were looked at and in all.

        Returns
        -------
        dict
            ``{"num_deleted_rows": n}``

        Raises
        ------
        FilterError, FieldNotFoundError
            The predicate is malformed or does not fit the schema.
        InvalidInputError
            `conflict_retries` is negative.
        TypeError
            `predicate` is missing or has another type.
        CommitConflictError
            The dataset was replaced by another, or all retries failed.
        """
        from lance_dataset.changes.rows.delete import delete_rows

        with reported_progress(progress, self._rows_to_scan, "delete") as told:
            made, rows = delete_rows(self.snapshot, predicate, conflict_retries, retry_timeout, metrics_of(told))
            self.show(made)  # before the last report, which may raise
        return {"num_deleted_rows": rows}

    def purge(
        self,
        where: Predicate,
        *,
        branches: Sequence[str] | None = None,
        delete_unverified: bool = False,
        progress: ProgressOption = None,
    ) -> PurgeReport:
        """Erase the rows for which a condition is true, and their copies in old versions; move this handle.

        The rows are deleted, every fragment whose data files hold them is rewritten (also where an earlier delete only
        marked them), all indices are dropped, and all versions before the newest one are removed with their files.
        Tagged versions stay and are reported. If no version holds such rows, nothing changes. If a purge was
        interrupted, run it again.

        Parameters
        ----------
        where
            SQL text or a pyarrow expression. Rows for which it is null are kept.
        branches
            Names of the branches to purge, ``main`` for the main one. The default is the current one.
        delete_unverified
            True to also remove files that no version refers to, such as those that an interrupted purge or write left.
            Use it only while nobody writes.
        progress
            True for a bar (tqdm), or a function of the numbers of rows rewritten and in all, as far as they are known.

        Returns
        -------
        PurgeReport
            What was removed, and what still holds the rows: tags, branches, base paths. Clones are not known.

        Raises
        ------
        FilterError, FieldNotFoundError
            The condition is malformed or does not fit the schema of a branch.
        TypeError
            `where` is missing or has another type.
        VersionNotFoundError, InvalidInputError
            A branch does not exist, or `branches` is empty.
        UnsupportedError
            A fragment cannot be rewritten.
        CommitConflictError
            The dataset was replaced by another, or all retries failed.

        Examples
        --------
        >>> print(dataset.purge("id = 77777"))
        """
        from lance_dataset.changes.purge.purging import purge

        with reported_progress(progress, lambda: None, "purge") as told:
            return purge(
                self.snapshot,
                where,
                branches,
                delete_unverified=bool(delete_unverified),
                show=self.show,
                progress=told,
            )

    def update(
        self,
        updates: Mapping[str, str],
        where: Predicate | None = None,
        conflict_retries: int | None = DEFAULT_CONFLICT_RETRIES,
        retry_timeout: dt.timedelta | None = DEFAULT_RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        *,
        progress: ProgressOption = None,
    ) -> UpdateResult:
        """Set columns of some rows to new values, in one commit; move this handle to the new version.

        Updated rows move behind all others. With stable row ids they keep their ids. Memory use does not depend on the
        number of rows.

        Parameters
        ----------
        updates
            SQL expressions by top-level column, such as ``{"price": "price * 2"}``. All expressions read the old values
            of the row. Their results are cast to the type of the column.
        where
            SQL text or a pyarrow expression that selects the rows to update; None for all. Rows for which it is null
            are kept.
        conflict_retries, retry_timeout
            Number of times to repeat the update if other writers change the same rows, and time after which it is not
            repeated any more. None for the defaults.
        data_storage_version
            File version of the new files. The default is that of the dataset.
        progress
            True for a bar (tqdm), or a function of the numbers of rows that were looked at and in all.

        Returns
        -------
        dict
            ``{"num_rows_updated": n}``

        Raises
        ------
        FieldNotFoundError, FilterError
            A column does not exist, or an expression does not fit the schema.
        InvalidInputError
            `updates` is empty, a value cannot be cast, or the file version does not fit the dataset.
        SchemaError
            A value is null and the column is not nullable.
        UnsupportedError
            `updates` names a nested field, or the file version cannot hold the data.
        CommitConflictError
            The dataset was replaced by another, or all retries failed.
        """
        from lance_dataset.changes.rows.update import update_rows

        with reported_progress(progress, self._rows_to_scan, "update") as told:
            made, rows = update_rows(
                self.snapshot, updates, where, data_storage_version, conflict_retries, retry_timeout, metrics_of(told)
            )
            self.show(made)
        return {"num_rows_updated": rows}

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Merge a source into this dataset by key: update, insert and delete rows in one commit.

        Parameters
        ----------
        on
            Key columns that match rows of the source with rows of the dataset; None for the unenforced primary key. A
            key that contains a null matches nothing.

        Returns
        -------
        MergeInsertBuilder
            Builder of the merge. Its clauses choose what to do with rows that exist in both, only in the source, or
            only in the dataset. Its `execute` takes the source and moves this handle to the new version. Updated and
            inserted rows come last. Updated rows are in the order of the source, or in that of the dataset if the
            source has only some of the columns.

        Raises
        ------
        InvalidInputError
            No key column is given, and the dataset does not declare a primary key.
        FieldNotFoundError
            A key column does not exist.

        Examples
        --------
        >>> dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        {'num_inserted_rows': 1, 'num_updated_rows': 2, 'num_deleted_rows': 0}
        """
        return MergeInsertBuilder(self, on)

    def _rows_to_scan(self) -> int | None:
        return self.snapshot.manifest.num_rows

    def truncate_table(self) -> None:
        """Delete all rows and keep the schema."""
        self.delete("true")
