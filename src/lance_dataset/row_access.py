"""Rows by their id, as programs that sample or search ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, TypeAlias

import pyarrow as pa

from lance_dataset.query.projection import Projection, project_structs
from lance_dataset.query.table_reader import TableReader
from lance_dataset.query.take import row_ids as checked_row_ids
from lance_dataset.query.take import take_row_ids
from lance_dataset.schema import Schema

__all__ = ["RowAccess"]

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"


class RowAccess:
    """What datasets offer for rows known by their id."""

    _reader: TableReader
    _scanned_schema: Schema
    _projections: dict[tuple[str, ...] | None, Projection]

    def _take_projection(self, columns: Columns) -> Projection:
        """What a take returns; kept for the next one."""
        if not isinstance(columns, list | tuple | NoneType):
            return project_structs(self._scanned_schema, columns)
        key = None if columns is None else tuple(columns)
        known = self._projections.get(key)
        if known is None:
            known = self._projections[key] = project_structs(self._scanned_schema, columns)
        return known

    def _take_rows(
        self,
        row_ids: Sequence[int] | pa.Array,
        columns: Columns = None,
        *,
        ignore_deletions: bool = False,
        **kwargs: Any,
    ) -> pa.Table:
        """Rows by their id (`_rowid`), in the order asked, repeats kept; deleted rows are left out.

        Parameters
        ----------
        row_ids
            Stable row ids where the dataset has such: ids that no row has are left out as well. Otherwise row
            addresses.
        columns
            As for `take`.
        ignore_deletions
            Whether the rows are known to be there, so that deletion files need not be read but where an id is in
            several fragments; otherwise a deleted row may come back.
        **kwargs
            Accepted for compatibility.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        RowIndexError
            A negative number, or an address outside the dataset.
        TypeError
            Something that is no integer.
        """
        projection = self._take_projection(columns)
        ids = checked_row_ids(row_ids)
        found = take_row_ids(self._reader, ids, projection, self._scanned_schema, ignore_deletions=ignore_deletions)
        return projection.for_user(found)
