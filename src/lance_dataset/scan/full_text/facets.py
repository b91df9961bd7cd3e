"""Facets: how many of the rows that a search finds have each value of a column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.read.projection import OutputColumn, Projection, project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.types.logical import user_schema
from lance_dataset.types.schema import Schema

__all__ = ["facet_columns", "facets"]

#: Rows that are read together.
_ROWS = 1 << 16
_ROW, _VALUE, _COUNT = "row", "value", "count"


def facet_columns(schema: Schema, names: Sequence[str]) -> list[OutputColumn]:
    """Find columns by name, those of fields of structs with dots.

    Raises
    ------
    FieldNotFoundError
        There is no such column.
    InvalidInputError
        Values of a column cannot be compared.
    """
    found = [project(schema, [name]).columns[0] for name in names]
    for name, column in zip(names, found, strict=True):
        kind = _values_of(column.arrow.type)
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            raise InvalidInputError(
                f"facets count single values or lists of them; column {name!r} has {column.arrow.type}"
            )
    return found


def facets(
    reader: TableReader, schema: Schema, addresses: NDArray[np.uint64], columns: Sequence[OutputColumn], most: int
) -> list[pa.Table]:
    """Count the rows with each value, for each column.

    A row with a list counts once for each different element. Nulls count as a value; nulls in lists, and empty lists,
    do not.

    Parameters
    ----------
    reader, schema
        The version, and the schema of scans.
    addresses : uint64[n]
        Addresses of the rows.
    columns
        Columns of `facet_columns`.
    most
        Number of values of each column: the most frequent, then the smallest.

    Returns
    -------
    list of pyarrow.Table
        Columns ``value`` and ``count`` (int64), the most frequent value first.
    """
    return [_counted(reader, schema, addresses, column, most) for column in columns]


def _values_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values that are counted."""
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    kind = kind.value_type if lists else kind
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _counted(
    reader: TableReader, schema: Schema, addresses: NDArray[np.uint64], column: OutputColumn, most: int
) -> pa.Table:
    rows = np.unique(addresses)
    projection = Projection((column,), pa.schema([column.arrow]))
    parts = []
    for start in range(0, len(rows), _ROWS):
        values = take_addresses(reader, rows[start : start + _ROWS], projection, schema).column(0)
        mine = _different(values)
        parts.append(_summed(pa.table({_VALUE: mine, _COUNT: pa.array(np.ones(len(mine), np.int64))})))
    kind = _values_of(column.arrow.type)
    empty = pa.table({_VALUE: pa.array([], kind), _COUNT: pa.array([], pa.int64())})
    found = _summed(pa.concat_tables([empty, *parts]))
    # Arrow does not sort numbers of 16 bits.
    keys = found.set_column(0, _VALUE, found[_VALUE].cast(pa.float32())) if pa.types.is_float16(kind) else found
    order = pc.sort_indices(keys, [(_COUNT, "descending"), (_VALUE, "ascending")])
    best = found.take(order.slice(0, most))
    shown = user_schema(pa.schema([column.arrow.with_type(kind).with_name(_VALUE), best.schema.field(_COUNT)]))
    return best.select([_VALUE, _COUNT]).cast(shown)


def _different(values: pa.Array) -> pa.Array:
    """Return the values of rows: for lists, the different elements of each."""
    kind = _values_of(values.type)
    if not (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)):
        return values.cast(kind)
    pairs = pa.table({_ROW: pc.list_parent_indices(values), _VALUE: pc.list_flatten(values).cast(kind)})
    found = pairs.filter(pc.is_valid(pairs[_VALUE])).group_by([_ROW, _VALUE]).aggregate([])
    return found[_VALUE].combine_chunks()


def _summed(counts: pa.Table) -> pa.Table:
    return (
        counts.group_by(_VALUE).aggregate([(_COUNT, "sum")]).rename_columns({_VALUE: _VALUE, f"{_COUNT}_sum": _COUNT})
    )
