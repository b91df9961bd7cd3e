"""Smallest and largest value of each batch, as the statistics of legacy (0.1) files define them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.file.kinds import is_binary_like, is_text
from lance_dataset.file.v0_1.arrays import fixed_bytes, valid_bytes, value_offsets, without_nulls

__all__ = ["batch_bounds", "has_bounds", "value_bounds"]

#: Maximum size in bytes of the bounds of strings and binaries.
_MAX_BYTES = 64
#: A string is cut at the end of a character, which is at most three bytes earlier.
_SURE_BYTES = _MAX_BYTES - 3
_FIRST_NOT_ASCII = 0x80


def has_bounds(arrow_type: pa.DataType) -> bool:
    """Return True if there are statistics for values of a type."""
    kinds = pa.types
    return (
        kinds.is_boolean(arrow_type)
        or kinds.is_integer(arrow_type)
        or kinds.is_float32(arrow_type)
        or kinds.is_float64(arrow_type)
        or kinds.is_date(arrow_type)
        or kinds.is_decimal128(arrow_type)
        or is_binary_like(arrow_type)
    )


def batch_bounds(array: pa.Array, rows: int) -> tuple[pa.Array, pa.Array]:
    """Return the minimum and maximum of each run of `rows` values.

    Parameters
    ----------
    array
        Values of a type that has bounds (see `has_bounds`); a whole number of runs.
    rows
        Number of values in a run, at least 1.

    Returns
    -------
    minimum, maximum : pyarrow.Array
        One value per run, of the type of `array`; strings and binaries as binary. A run without values (only nulls or
        NaNs) has the widest bounds of the type, or null for strings and binaries. Their bounds are also null if no
        bound of at most 64 bytes exists.
    """
    kinds = pa.types
    if is_binary_like(array.type):
        cut_short = is_text(array.type) and _may_be_cut_short(array)
        pairs = [_text_bounds(array.slice(start, rows), cut_short) for start in range(0, len(array), rows)]
        minimum, maximum = zip(*pairs, strict=True)
        return pa.array(minimum, pa.large_binary()), pa.array(maximum, pa.large_binary())
    if kinds.is_boolean(array.type):
        return _bool_bounds(array, rows)
    if kinds.is_decimal128(array.type):
        return _decimal_bounds(array, rows)
    if kinds.is_floating(array.type):
        return _float_bounds(array, rows)
    return _integer_bounds(array, rows)


# -- numbers ---------------------------------------------------------------------------------------------------------


def _runs(array: pa.Array, rows: int, dtype: np.dtype) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the values as [run, row] with nulls as zeros, and the validity; None if all are valid."""
    values = np.frombuffer(fixed_bytes(array), dtype).reshape(-1, rows)
    return values, valid_bytes(array).reshape(-1, rows) if array.null_count else None


def _as_arrow(values: NDArray[np.generic], arrow_type: pa.DataType) -> pa.Array:
    count = values.nbytes * 8 // arrow_type.bit_width
    return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(np.ascontiguousarray(values))])


def value_bounds(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the minimum and maximum along the last axis; see `batch_bounds`. No value is null."""
    if values.dtype.kind != "f":
        return values.min(axis=-1), values.max(axis=-1)
    minimum, maximum = np.fmin.reduce(values, axis=-1), np.fmax.reduce(values, axis=-1)
    nothing = np.isnan(minimum)
    minimum[nothing], maximum[nothing] = -np.inf, np.inf
    minimum[minimum == 0] = -0.0
    maximum[maximum == 0] = 0.0
    return minimum, maximum


def _integer_bounds(array: pa.Array, rows: int) -> tuple[pa.Array, pa.Array]:
    unsigned = pa.types.is_unsigned_integer(array.type)
    dtype = np.dtype(f"{'u' if unsigned else 'i'}{array.type.bit_width // 8}")
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values, valid = _runs(array, rows, dtype)
    if valid is None:
        minimum, maximum = value_bounds(values)
    else:
        minimum = np.where(valid, values, dtype.type(high)).min(axis=1)
        maximum = np.where(valid, values, dtype.type(low)).max(axis=1)
        nothing = ~valid.any(axis=1)
        minimum[nothing], maximum[nothing] = low, high
    return _as_arrow(minimum, array.type), _as_arrow(maximum, array.type)


def _float_bounds(array: pa.Array, rows: int) -> tuple[pa.Array, pa.Array]:
    dtype = np.dtype(f"f{array.type.bit_width // 8}")
    values, valid = _runs(array, rows, dtype)
    if valid is not None:
        values = np.where(valid, values, dtype.type(np.nan))  # ignored, as NaNs are
    minimum, maximum = value_bounds(values)
    return _as_arrow(minimum, array.type), _as_arrow(maximum, array.type)


def _bool_bounds(array: pa.Array, rows: int) -> tuple[pa.Array, pa.Array]:
    valid = valid_bytes(array).reshape(-1, rows)
    values = without_nulls(array).to_numpy(zero_copy_only=False).reshape(-1, rows)
    any_true = (values & valid).any(axis=1)
    any_false = (~values & valid).any(axis=1)
    some = any_true | any_false
    return pa.array(some & ~any_false), pa.array(~some | any_true)


def _decimal_bounds(array: pa.Array, rows: int) -> tuple[pa.Array, pa.Array]:
    """Return the bounds of 128-bit numbers, given as a low unsigned and a high signed half."""
    words = np.frombuffer(fixed_bytes(array), np.uint64).reshape(-1, rows, 2)
    low, high = words[:, :, 0], words[:, :, 1].view(np.int64)
    valid = valid_bytes(array).reshape(-1, rows)
    some = valid.any(axis=1)
    word, sign = np.iinfo(np.uint64), np.iinfo(np.int64)
    top = np.where(valid, high, sign.max).min(axis=1)
    least = np.where(valid & (high == top[:, None]), low, word.max).min(axis=1)
    minimum = np.stack([np.where(some, least, 0), np.where(some, top, sign.min).view(np.uint64)], axis=1)
    top = np.where(valid, high, sign.min).max(axis=1)
    most = np.where(valid & (high == top[:, None]), low, 0).max(axis=1)
    maximum = np.stack([np.where(some, most, word.max), np.where(some, top, sign.max).view(np.uint64)], axis=1)
    return _as_arrow(minimum.astype(np.uint64), array.type), _as_arrow(maximum.astype(np.uint64), array.type)


# -- strings and binaries --------------------------------------------------------------------------------------------


def _may_be_cut_short(array: pa.Array) -> bool:
    """Return True if strings may be cut before byte 64 because a character of several bytes spans it."""
    offsets = value_offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    if last == first or int(np.diff(offsets).max()) <= _MAX_BYTES:
        return False
    return int(np.frombuffer(array.buffers()[2], np.uint8, last - first, first).max()) >= _FIRST_NOT_ASCII


def _text_bounds(array: pa.Array, cut_short: bool) -> tuple[bytes | None, bytes | None]:
    extremes = pc.min_max(array)
    minimum, maximum = extremes["min"], extremes["max"]
    if not minimum.is_valid:
        return None, None
    least, most = _bytes(minimum), _bytes(maximum)
    if int(np.diff(value_offsets(array)).max()) <= _MAX_BYTES:
        return least, most
    text = is_text(array.type)
    if cut_short:
        least = min(_cut(value, text) for value in _alike(array, least))
        most = max(_cut(value, text) for value in _alike(array, most))
    least, most = _cut(least, text), _cut(most, text)
    return least, _next_text(most) if text else _next_bytes(most)


def _bytes(value: pa.Scalar) -> bytes:
    return bytes(value.as_buffer())


def _alike(array: pa.Array, value: bytes) -> Iterator[bytes]:
    """Yield all values that may be as extreme as this one after cutting.

    Cutting preserves the order of the bytes that every cut keeps. Only the last three bytes of a cut string depend on
    where its characters end.
    """
    yield value
    if len(value) >= _SURE_BYTES:
        known = pc.unique(pc.binary_slice(array.cast(pa.large_binary()), 0, _MAX_BYTES + 1))
        yield from (_bytes(other) for other in known.filter(pc.starts_with(known, value[:_SURE_BYTES])))


def _cut(value: bytes, text: bool) -> bytes:
    """Return the first bytes of a value; a string is cut at the end of a character."""
    if len(value) <= _MAX_BYTES:
        return value
    end = _MAX_BYTES
    while text and value[end] & 0xC0 == 0x80:
        end -= 1
    return value[:end]


@lru_cache(maxsize=256)
def _next_bytes(value: bytes) -> bytes | None:
    """Return a value larger than any that starts with these bytes, by incrementing them as one number."""
    stripped = value.rstrip(b"\xff")
    if not stripped:
        return None
    return stripped[:-1] + bytes([stripped[-1] + 1]) + bytes(len(value) - len(stripped))


@lru_cache(maxsize=256)
def _next_text(value: bytes) -> bytes | None:
    """Return a string larger than any that starts with this one, by incrementing the last byte that allows it."""
    for position in range(len(value) - 1, -1, -1):
        for byte in range(value[position] + 1, 256):
            raised = value[:position] + bytes([byte]) + value[position + 1 :]
            if _is_text(raised):
                return raised
    return None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
