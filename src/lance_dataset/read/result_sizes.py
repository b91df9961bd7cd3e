"""Bytes of results that are known before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from lance_dataset.limits import ResultLimit

__all__ = ["check_planned", "fits", "has_fixed_width", "least_row_bytes"]

_Data = TypeVar("_Data", pa.Table, pa.RecordBatch)


def least_row_bytes(schema: pa.Schema) -> float:
    """Return the bytes that each row takes at least: values of fixed width, and the offsets of others."""
    return sum(_least_bytes(field.type) for field in schema)


def has_fixed_width(schema: pa.Schema) -> bool:
    """Return True if all rows take the same number of bytes."""
    return all(_is_fixed(field.type) for field in schema)


def check_planned(limit: ResultLimit, rows: int, schema: pa.Schema) -> None:
    """Raise `MemoryLimitError` if this number of rows takes more memory than a result may.

    Parameters
    ----------
    limit
        Limit of the result.
    rows
        Number of rows.
    schema
        Schema of the result, with storage types.
    """
    if limit.max_bytes is not None:
        limit.check(rows * least_row_bytes(schema), f"the result of {rows:,} rows")


def fits(limit: ResultLimit, make: Callable[[], _Data]) -> _Data:
    """Return a result. Raise `MemoryLimitError` if it is larger than the limit."""
    made = limit.around(make)()
    if limit.max_bytes is not None:
        limit.check(made.nbytes, f"the result of {made.num_rows:,} rows")
    return made


def _is_fixed(arrow_type: pa.DataType) -> bool:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _is_fixed(arrow_type.storage_type)
    if pa.types.is_fixed_size_list(arrow_type):
        return _is_fixed(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return all(_is_fixed(arrow_type.field(number).type) for number in range(arrow_type.num_fields))
    return pa.types.is_primitive(arrow_type) or pa.types.is_fixed_size_binary(arrow_type)


def _least_bytes(arrow_type: pa.DataType) -> float:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _least_bytes(arrow_type.storage_type)
    if pa.types.is_fixed_size_list(arrow_type):
        return arrow_type.list_size * _least_bytes(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return sum(_least_bytes(arrow_type.field(number).type) for number in range(arrow_type.num_fields))
    if pa.types.is_dictionary(arrow_type):
        return _least_bytes(arrow_type.index_type)
    if pa.types.is_primitive(arrow_type):
        return arrow_type.bit_width / 8
    if pa.types.is_fixed_size_binary(arrow_type):
        return arrow_type.byte_width
    if (
        pa.types.is_large_string(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_large_list(arrow_type)
    ):
        return 8
    return 0 if pa.types.is_null(arrow_type) else 4
