"""Order of the values of an index: ascending, floats in IEEE total order, text and bytes bytewise."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lancecodec.search.sorting import sort_keys

__all__ = ["KeyedOrder", "ValueOrder", "order_of"]

_Keys = NDArray[np.uint64]
_Places = NDArray[np.int64]

#: Values that are looked at to see whether there are few distinct ones, and how many of these are few.
_SAMPLE_VALUES = 1 << 12
_FEW_VALUES = 1 << 11
_SIGN = np.uint64(1 << 63)
_SIGNED: dict[int, pa.DataType] = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_FLOATS: dict[pa.DataType, tuple[pa.DataType, int]] = {
    pa.float16(): (pa.uint16(), 16),
    pa.float32(): (pa.uint32(), 32),
    pa.float64(): (pa.uint64(), 64),
}


class ValueOrder(Protocol):
    """Order of the values of one type. No method takes nulls."""

    def sort(self, values: pa.Array) -> tuple[pa.Array, _Places]:
        """Return the values in ascending order and their places before; equal values keep their order."""

    def changes(self, values: pa.Array) -> NDArray[np.bool_]:
        """Return for each value but the first whether it differs from the one before, bit by bit."""

    def bounds(self, values: pa.Array) -> Any:
        """Return values in a form that `below` searches; its items compare like the values."""

    def below(self, bounds: Any, value: Any, *, or_equal: bool) -> int:
        """Return the number of leading bounds, which are ascending, that are less than (or equal to) a value."""

    def bound(self, value: pa.Scalar) -> Any:
        """Return one value in the form of the items of `bounds`."""


@lru_cache(maxsize=256)
def order_of(kind: pa.DataType) -> ValueOrder:
    """Return the order of the values of a type that is not nested."""
    if kind in _FLOATS:
        return _FloatOrder(kind)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return _IntegerOrder(kind)
    return _ComparedOrder(kind)


class KeyedOrder:
    """Order by unsigned keys of 64 bits, which are computed from the values and turned into values again."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def keys(self, values: pa.Array) -> _Keys:
        """Return the keys of values."""
        raise NotImplementedError

    def values(self, keys: _Keys) -> pa.Array:
        """Return the values of keys."""
        raise NotImplementedError

    def sort(self, values: pa.Array) -> tuple[pa.Array, _Places]:
        """Return the values in ascending order and their places before."""
        keys = self.keys(values)
        ordered, places = _sorted_keys(keys)
        return values if ordered is keys else self.values(ordered), places

    def changes(self, values: pa.Array) -> NDArray[np.bool_]:
        """Return for each value but the first whether it differs from the one before."""
        keys = self.keys(values)
        return keys[1:] != keys[:-1]

    def bounds(self, values: pa.Array) -> _Keys:
        """Return the keys of values."""
        return self.keys(values)

    def bound(self, value: pa.Scalar) -> np.uint64:
        """Return the key of a value."""
        return self.keys(pa.array([value], self._kind))[0]

    def below(self, bounds: _Keys, value: np.uint64, *, or_equal: bool) -> int:
        """Return the number of leading keys that are less than (or equal to) another."""
        return int(bounds.searchsorted(value, "right" if or_equal else "left"))


def _sorted_keys(keys: _Keys) -> tuple[_Keys, _Places]:
    """Sort keys; return them and their places before, ascending among equal keys."""
    keys = np.ascontiguousarray(keys)
    ordered, places = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint32)
    scratch = np.empty_like(ordered), np.empty_like(places)
    if not sort_keys(keys.data, ordered.data, places.data, scratch[0].data, scratch[1].data):
        return keys, np.arange(len(keys))
    return ordered, places.astype(np.int64)


class _IntegerOrder(KeyedOrder):
    """Order of integers, booleans, dates, times and durations, by their integer value."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._is_bool = pa.types.is_boolean(kind)
        self._integers = pa.uint8() if self._is_bool else _SIGNED[kind.bit_width]
        if pa.types.is_unsigned_integer(kind):
            self._integers = kind
        self._is_signed = pa.types.is_signed_integer(self._integers)

    def bound(self, value: pa.Scalar) -> np.uint64:
        if not pa.types.is_integer(self._kind):
            return super().bound(value)
        number = value.as_py()
        return np.uint64(number + (1 << 63) if self._is_signed else number)

    def keys(self, values: pa.Array) -> _Keys:
        integers = values.cast(pa.uint8()) if self._is_bool else values.view(self._integers)
        found = integers.to_numpy(zero_copy_only=False)
        if self._is_signed:
            keys = found.astype(np.int64).view(np.uint64)
            keys ^= _SIGN
            return keys
        return found.astype(np.uint64)

    def values(self, keys: _Keys) -> pa.Array:
        integers = (keys ^ _SIGN).view(np.int64) if self._is_signed else keys
        found = pa.array(integers.astype(self._integers.to_pandas_dtype(), copy=not self._is_signed))
        return found.cast(pa.bool_()) if self._is_bool else found.view(self._kind)


class _FloatOrder(KeyedOrder):
    """Total order of floats: negative NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self._bits, self._width = _FLOATS[kind]

    def keys(self, values: pa.Array) -> _Keys:
        found = values.view(self._bits).to_numpy().astype(np.uint64)
        sign = np.uint64(1 << (self._width - 1))
        ones = np.uint64((1 << self._width) - 1)
        return np.where(found & sign, found ^ ones, found ^ sign)

    def values(self, keys: _Keys) -> pa.Array:
        sign = np.uint64(1 << (self._width - 1))
        ones = np.uint64((1 << self._width) - 1)
        found = np.where(keys & sign, keys ^ sign, keys ^ ones)
        return pa.array(found.astype(self._bits.to_pandas_dtype())).view(self._kind)


def _repeats(values: pa.Array) -> bool:
    """Return True if a sample has so few distinct values that sorting these alone is faster."""
    step = len(values) // _SAMPLE_VALUES
    if step < 2:
        return False
    sample = values.take(pa.array(np.arange(0, len(values), step)))
    return pc.count_distinct(sample).as_py() < _FEW_VALUES  # type: ignore[no-any-return]


class _Items(Sequence[Any]):
    """Values of an array, converted one by one: a search looks at few of many."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        found = self._values[place]
        return _Items(found) if isinstance(place, slice) else found.as_py()


class _ComparedOrder:
    """Order of decimals, text and bytes, which are compared as they are."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def sort(self, values: pa.Array) -> tuple[pa.Array, _Places]:
        if not _repeats(values):
            order = pc.array_sort_indices(values)
        else:
            encoded = values.dictionary_encode()
            places = pc.array_sort_indices(encoded.dictionary).to_numpy()
            ranks = np.empty(len(places), np.uint64)
            ranks[places] = np.arange(len(places), dtype=np.uint64)
            order = pa.array(_sorted_keys(ranks[encoded.indices.to_numpy()])[1].view(np.uint64))
        return values.take(order), order.to_numpy().view(np.int64)

    def changes(self, values: pa.Array) -> NDArray[np.bool_]:
        return np.asarray(pc.not_equal(values[1:], values[:-1]), bool)

    def bounds(self, values: pa.Array) -> _Items:
        return _Items(values)

    def bound(self, value: pa.Scalar) -> Any:
        return value.as_py()

    def below(self, bounds: _Items, value: Any, *, or_equal: bool) -> int:
        return bisect_right(bounds, value) if or_equal else bisect_left(bounds, value)
