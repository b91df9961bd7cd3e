"""Rows that come, go and change: what datasets offer to writers of rows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow.compute as pc

from lance_dataset.changes.retry import DEFAULT_CONFLICT_RETRIES, DEFAULT_RETRY_TIMEOUT, repeated_on_conflict
from lance_dataset.errors import InvalidInputError
from lance_dataset.io.base import ObjectStore
from lance_dataset.query.delete import commit_delete, plan_delete
from lance_dataset.query.expr import compile_filter
from lance_dataset.query.projection import full_schema
from lance_dataset.table.manifest import Manifest

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset

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
        conflict_retries: int = DEFAULT_CONFLICT_RETRIES,
        retry_timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
    ) -> dict[str, int]:
        """Delete the rows a predicate holds for, in one commit; this handle moves to the new version.

        Parameters
        ----------
        predicate
            SQL text or a pyarrow expression; rows where it is null stay.
        conflict_retries, retry_timeout
            How often, and how long, to compute the delete anew when other writers change the same rows.

        Returns
        -------
        dict
            ``{"num_deleted_rows": n}``

        Raises
        ------
        FilterError, FieldNotFoundError
            The predicate does not fit.
        InvalidInputError
            No predicate, or a negative `conflict_retries`.
        CommitConflictError
            The dataset was replaced by another, or retries did not help.
        """

        def change(handle: LanceDataset) -> tuple[Manifest, dict[str, int]]:
            bound = compile_filter(predicate, full_schema(handle._scanned_schema))
            if bound is None:
                raise InvalidInputError("delete needs a predicate; 'true' deletes all rows")
            plan = plan_delete(self._store, self._root, handle._reader, bound)
            made = commit_delete(self._store, self._root, handle._manifest, plan)
            return made, {"num_deleted_rows": plan.num_rows}

        return repeated_on_conflict(cast("LanceDataset", self), change, conflict_retries, retry_timeout)

    def truncate_table(self) -> None:
        """Delete all rows, keep the schema."""
        self.delete("true")
