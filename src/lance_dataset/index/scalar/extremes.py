"""Least and greatest values of parts of an array."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.scalar.value_order import KeyedOrder, order_of

__all__ = ["extremes", "without_nulls"]

#: Values from which on a part is worth a call.
_LARGE_PART = 256
_LOWEST, _HIGHEST = np.uint64(0), np.uint64((1 << 64) - 1)


def extremes(values: pa.Array, starts: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Return the least and the greatest value of each part of an array; null for parts of nothing but nulls.

    Parameters
    ----------
    values
        Values of a type that `order_of` knows. NaNs count as the least or greatest values, by their signs.
    starts : int64[n]
        Positions at which the parts start, ascending. The first one is 0, and no part is empty.
    """
    kind = values.type
    if values.null_count == len(values):
        return pa.nulls(len(starts), kind), pa.nulls(len(starts), kind)
    numbers = _stored_integers(values)
    if numbers is not None:
        return _extreme_integers(values, numbers, starts)
    if not pa.types.is_floating(kind) and len(values) >= _LARGE_PART * len(starts):
        found = [
            pc.min_max(values.slice(start, stop - start)) for start, stop in pairwise([*starts.tolist(), len(values)])
        ]
        return pa.array([each["min"] for each in found], kind), pa.array([each["max"] for each in found], kind)
    order = order_of(kind)
    valid = None if not values.null_count else np.asarray(values.is_valid(), bool)
    if isinstance(order, KeyedOrder):
        lows, highs = _extreme_numbers(order.keys(without_nulls(values)), valid, starts)
        known = np.ones(len(starts), bool) if valid is None else np.logical_or.reduceat(valid, starts)
        return _with_nulls(order.values(lows), known), _with_nulls(order.values(highs), known)
    ordered, places = order.sort(values.drop_null())
    ranks = np.zeros(len(values), np.uint64)
    present = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
    ranks[present[places]] = np.arange(len(places), dtype=np.uint64)
    lows, highs = _extreme_numbers(ranks, valid, starts)
    known = lows <= highs
    return ordered.take(pa.array(lows, mask=~known)), ordered.take(pa.array(highs, mask=~known))


def _stored_integers(values: pa.Array) -> NDArray[Any] | None:
    """Return integers in the order of the values, which they are stored as; None if there are none of 64 bits."""
    kind, chosen = values.type, slice(values.offset, values.offset + len(values))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        sign = "u" if pa.types.is_unsigned_integer(kind) else "i"
        return np.frombuffer(values.buffers()[1], f"<{sign}{kind.bit_width // 8}")[chosen]
    if not pa.types.is_decimal128(kind):
        return None
    words = np.frombuffer(values.buffers()[1], "<i8").reshape(-1, 2)[chosen]
    return words[:, 0] if (words[:, 0] >> 63 == words[:, 1]).all() else None


def _extreme_integers(values: pa.Array, numbers: NDArray[Any], starts: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    low = high = numbers
    known = np.ones(len(starts), bool)
    if values.null_count:
        valid, limits = np.asarray(values.is_valid(), bool), np.iinfo(numbers.dtype)
        low, high = (np.where(valid, numbers, numbers.dtype.type(limit)) for limit in (limits.max, limits.min))
        known = np.logical_or.reduceat(valid, starts)
    least, greatest = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
    return _of_integers(least, known, values.type), _of_integers(greatest, known, values.type)


def _of_integers(numbers: NDArray[Any], known: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Return the values that are stored as integers."""
    if not pa.types.is_decimal(kind):
        return _with_nulls(pa.array(numbers).view(kind), known)
    words = pa.py_buffer(np.stack([numbers, numbers >> 63], axis=1))
    return _with_nulls(pa.Array.from_buffers(kind, len(numbers), [None, words]), known)


def _extreme_numbers(
    numbers: NDArray[np.uint64], valid: NDArray[np.bool_] | None, starts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the extremes of numbers; without a valid one, the least is the greater one."""
    low, high = (
        (numbers, numbers) if valid is None else (np.where(valid, numbers, _HIGHEST), np.where(valid, numbers, _LOWEST))
    )
    return np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)


def without_nulls(values: pa.Array) -> pa.Array:
    """Return an array with the same values, in which nulls are arbitrary values."""
    if not values.null_count:
        return values
    return pa.Array.from_buffers(values.type, len(values), [None, values.buffers()[1]], offset=values.offset)


def _with_nulls(values: pa.Array, valid: NDArray[Any]) -> pa.Array:
    """Return an array that begins where its buffer does with nulls where it is not valid."""
    if valid.all():
        return values
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [bits, values.buffers()[1]])
