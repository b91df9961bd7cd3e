"""Casts of intervals: the casts that keep the order of values, and the values for which they fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.expr.casts import cast_kernel
from lance_dataset.scan.pruning.intervals import Values

__all__ = ["cast_always_succeeds", "cast_is_monotone", "cast_values"]

_UNITS = ("s", "ms", "us", "ns")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def cast_is_monotone(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if values keep their order, and every value between two that convert also converts.

    NaN, which has no place in the order of numbers, is not considered.
    """
    if pa.types.is_boolean(source):
        return bool(pa.types.is_integer(target))
    if pa.types.is_integer(source):
        return bool(pa.types.is_integer(target) or _is_float(target) or pa.types.is_decimal(target))
    if _is_float(source):
        return bool(_is_float(target) or pa.types.is_integer(target))
    if pa.types.is_decimal(source):
        return bool(pa.types.is_decimal(target) or pa.types.is_integer(target))
    if pa.types.is_date32(source):
        return bool(pa.types.is_date64(target) or pa.types.is_timestamp(target))
    if pa.types.is_date64(source):
        return bool(pa.types.is_timestamp(target) and target.unit != "s")
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        same_kind = (source.tz is None) == (target.tz is None)
        return same_kind and _UNITS.index(target.unit) >= _UNITS.index(source.unit)
    return _widens_offsets(source, target)


def cast_always_succeeds(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if every value converts."""
    if pa.types.is_boolean(source):
        return bool(pa.types.is_integer(target))
    if pa.types.is_integer(source):
        return _holds_integers(source, target)
    if _is_float(source):
        return _is_float(target)
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        digits = target.precision - target.scale >= source.precision - source.scale
        return bool(target.scale >= source.scale and digits)
    return bool(pa.types.is_date32(source) and pa.types.is_date64(target)) or _widens_offsets(source, target)


def _holds_integers(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_float(target):
        return source.bit_width <= (16 if pa.types.is_float32(target) else 32)
    if pa.types.is_decimal(target):
        return target.precision - target.scale >= _DIGITS[source.bit_width]
    if not pa.types.is_integer(target):
        return False
    signed = pa.types.is_signed_integer(source), pa.types.is_signed_integer(target)
    if signed[0] == signed[1]:
        return target.bit_width >= source.bit_width
    return signed[1] and target.bit_width > source.bit_width


def _is_float(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_float32(arrow) or pa.types.is_float64(arrow))


def _widens_offsets(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_string(source):
        return bool(pa.types.is_large_string(target))
    return bool(pa.types.is_binary(source) and pa.types.is_large_binary(target))


def cast_values(values: Values, source: pa.DataType, target: pa.DataType, *, lenient: bool) -> Values:
    """Convert values by a monotone cast.

    Parameters
    ----------
    values
        Values of type `source`.
    source, target
        Types for which `cast_is_monotone` is true.
    lenient
        If true, a value that does not convert becomes null instead of raising an error.
    """
    kernel = cast_kernel(source, target, lenient=True)
    if kernel is None:
        raise TypeError(f"no conversion from {source} to {target}")
    low, high = kernel(values.minimum), kernel(values.maximum)
    if cast_always_succeeds(source, target):
        nan = values.nan if _is_float(target) else np.zeros_like(values.nan)
        return Values(low, high, values.null, values.number, nan, values.fails)
    # if both bounds convert, so do all between them
    refused = values.number & ~(_is_known(low, values.null) & _is_known(high, values.null)) | values.nan
    null = values.null | refused if lenient else values.null
    fails = values.fails if lenient else values.fails | refused
    return Values(low, high, null, values.number, np.zeros_like(refused), fails)


def _is_known(bound: Any, like: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if isinstance(bound, pa.Scalar):
        return np.full(like.shape, bound.is_valid)
    return np.asarray(pc.is_valid(bound).to_numpy(zero_copy_only=False))
