"""Search in indices of zones: which zones may have a value, and exact answers to whether values are null."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexTable
from lance_dataset.index.scalar.conditions import EVERYTHING, Condition, ValueCondition
from lance_dataset.index.scalar.zones import NULL_ROWS, Zones, null_rows
from lance_dataset.properties import cached_property
from lance_dataset.table.address_ranges import NO_ADDRESSES, AddressRanges

__all__ = ["ZoneSearch", "described", "is_about_nulls"]

_Chosen = NDArray[np.bool_]


def is_about_nulls(condition: Condition) -> bool:
    """Return True if only whether values are null decides about a condition."""
    return isinstance(condition, ValueCondition) and all(each == EVERYTHING for each in condition.intervals)


class ZoneSearch:
    """The part of a search in zones that all kinds share.

    Parameters
    ----------
    table
        The file.
    zones
        Its zones.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment.
    """

    def __init__(self, table: IndexTable, zones: Zones, rows_in: Callable[[int], int]) -> None:
        self._table = table
        self._zones = zones
        self._rows_in = rows_in
        self._has_null_rows = NULL_ROWS in table.metadata
        self._last: tuple[ValueCondition, _Chosen] | None = None

    def with_values(self, condition: ValueCondition) -> _Chosen:
        """Return for each zone whether a value other than null may satisfy a condition."""
        raise NotImplementedError

    def with_nulls(self) -> _Chosen:
        """Return for each zone whether it may have nulls."""
        raise NotImplementedError

    @cached_property
    def _nulls(self) -> AddressRanges | None:
        return null_rows(self._table, self._rows_in)

    @cached_property
    def _exists(self) -> _Chosen:
        return self._zones.existing(self._rows_in, self._table)

    def is_exact(self, condition: Condition) -> bool:
        """Return True if `search` returns just the rows for which the condition is true."""
        if not isinstance(condition, ValueCondition):
            return False
        is_nothing = not condition.intervals and not condition.nulls
        return is_nothing or (self._has_null_rows and is_about_nulls(condition))

    def _chosen(self, condition: ValueCondition) -> _Chosen:
        """Return for each zone whether it is needed; the last answer is kept."""
        last = self._last
        if last is not None and last[0] is condition:
            return last[1]
        chosen = self.with_values(condition)
        if condition.nulls and not self._has_null_rows:
            chosen = chosen | self.with_nulls()
        self._last = condition, chosen
        return chosen

    def estimate(self, condition: Condition) -> int:
        """Return an upper estimate of the number of rows."""
        if not isinstance(condition, ValueCondition):
            return 0
        found = int(self._zones.num_rows[self._chosen(condition)].sum())
        nulls = self._nulls if condition.nulls else None
        return found if nulls is None else found + nulls.num_rows

    def search(self, condition: Condition) -> AddressRanges:
        """Return all rows for which the condition is true; others may be among them, see `is_exact`.

        Raises
        ------
        CorruptFileError
            The file contradicts the format.
        """
        if not isinstance(condition, ValueCondition):
            return NO_ADDRESSES
        found = self._zones.ranges(self._chosen(condition) & self._exists)
        nulls = self._nulls if condition.nulls or is_about_nulls(condition) else None
        if nulls is None:
            return found
        return AddressRanges.union([found, nulls]) if condition.nulls else found.difference(nulls)


def described(table: IndexTable, batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column that describes zones.

    Raises
    ------
    CorruptFileError
        It has another type, or nulls.
    """
    column = batch.column(batch.schema.get_field_index(name))
    if column.type != kind or column.null_count:
        raise table.corrupt(f"has a column {name} of {column.type} with {column.null_count} nulls, not of {kind}")
    return column
