"""Rules for the common Arrow type of two operands."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.types.logical import JSON_TEXT_EXTENSION

__all__ = ["common_type", "is_binary", "is_list", "is_number", "is_text", "plain_type"]

_UNIT_ORDER = {"s": 0, "ms": 1, "us": 2, "ns": 3}


def _is_view(arrow: pa.DataType, name: str) -> bool:
    return str(arrow) == name  # pyarrow 15 has no predicate for the view types


def is_text(arrow: pa.DataType) -> bool:
    """Return True for the string types."""
    return pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or _is_view(arrow, "string_view")


def is_binary(arrow: pa.DataType) -> bool:
    """Return True for the variable-length binary types and fixed-size binary."""
    return (
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or _is_view(arrow, "binary_view")
        or pa.types.is_fixed_size_binary(arrow)
    )


def is_list(arrow: pa.DataType) -> bool:
    """Return True for list, large list and fixed-size list."""
    return pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow)


def is_number(arrow: pa.DataType) -> bool:
    """Return True for integers, floats and decimals."""
    return pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow)


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """Return the type a column is computed in: extension storage, dictionary values, no views, no half floats."""
    if isinstance(arrow, pa.BaseExtensionType):
        if arrow.extension_name == JSON_TEXT_EXTENSION:
            return pa.large_binary()  # the form in which documents are stored
        return plain_type(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return plain_type(arrow.value_type)
    if pa.types.is_run_end_encoded(arrow):
        return plain_type(arrow.value_type)
    if _is_view(arrow, "string_view"):
        return pa.string()
    if _is_view(arrow, "binary_view"):
        return pa.binary()
    if pa.types.is_float16(arrow):
        return pa.float32()
    return arrow


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type that both can be converted to without surprises, or None."""
    if left.equals(right):
        return left
    if pa.types.is_null(left):
        return right
    if pa.types.is_null(right):
        return left
    if is_number(left) and is_number(right):
        return _numbers(left, right)
    if is_text(left) and is_text(right):
        return pa.large_string() if pa.types.is_large_string(left) or pa.types.is_large_string(right) else pa.string()
    if is_binary(left) and is_binary(right):
        large = pa.types.is_large_binary(left) or pa.types.is_large_binary(right)
        return pa.large_binary() if large else pa.binary()
    if is_list(left) and is_list(right):
        value = common_type(left.value_type, right.value_type)
        return None if value is None else pa.list_(value)
    return _temporal(left, right)


def _numbers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        wide = 8 * max(_float_bytes(left), _float_bytes(right))
        return pa.float64() if wide == 64 else pa.float32()
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        return _decimals(_as_decimal(left), _as_decimal(right))
    signed = pa.types.is_signed_integer(left), pa.types.is_signed_integer(right)
    if signed[0] == signed[1]:
        return left if left.bit_width >= right.bit_width else right
    with_sign, without = (left, right) if signed[0] else (right, left)
    if with_sign.bit_width > without.bit_width:
        return with_sign
    if without.bit_width == 64:
        return pa.decimal128(20, 0)
    return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}[without.bit_width]


def _float_bytes(arrow: pa.DataType) -> int:
    """Return the width of the float that holds the type; integers of 32 bits and less count as single precision."""
    if pa.types.is_floating(arrow):
        return 8 if pa.types.is_float64(arrow) else 4
    return 4 if pa.types.is_integer(arrow) and arrow.bit_width <= 32 else 8


def _as_decimal(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(arrow):
        return arrow
    return pa.decimal128({8: 3, 16: 5, 32: 10, 64: 20}[arrow.bit_width], 0)


def _decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    precision = min(max(left.precision - left.scale, right.precision - right.scale) + scale, 76)
    narrow = precision <= 38 and not (pa.types.is_decimal256(left) or pa.types.is_decimal256(right))
    return pa.decimal128(precision, scale) if narrow else pa.decimal256(precision, scale)


def _temporal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_date(left) and pa.types.is_date(right):
        return pa.date64()
    if pa.types.is_date(left) and pa.types.is_timestamp(right):
        return pa.timestamp(right.unit)  # in UTC, where the date begins
    if pa.types.is_timestamp(left) and pa.types.is_date(right):
        return pa.timestamp(left.unit)
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return pa.timestamp(_coarser(left, right), left.tz or right.tz)
    if pa.types.is_duration(left) and pa.types.is_duration(right):
        return pa.duration(_finer(left, right))
    if pa.types.is_time(left) and pa.types.is_time(right):
        unit = _finer(left, right)
        return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
    return None


def _finer(left: pa.DataType, right: pa.DataType) -> str:
    return max(str(left.unit), str(right.unit), key=_UNIT_ORDER.__getitem__)


def _coarser(left: pa.DataType, right: pa.DataType) -> str:
    """Return the unit that timestamps of two units are compared in; digits that only one of them has do not count."""
    return min(str(left.unit), str(right.unit), key=_UNIT_ORDER.__getitem__)
