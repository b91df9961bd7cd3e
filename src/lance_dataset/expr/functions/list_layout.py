"""Layout of list columns: split into items, lengths and validity, and assemble them again."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.type_rules import common_type, is_list
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "ITEM_LIMIT",
    "Lists",
    "among",
    "columnar",
    "common_item_type",
    "firsts",
    "item_codes",
    "list_of",
    "mask_of",
    "repeated",
    "require_room",
    "row_keys",
]

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Maximum number of items with 32-bit offsets.
ITEM_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Lists:
    """Lists of a column.

    Attributes
    ----------
    items
        Items of all lists in order; null lists have none.
    lengths
        Number of items of each list, 0 if it is null.
    valid
        False if the list is null.
    large
        True if the lists have 64-bit offsets.
    """

    items: pa.Array
    lengths: Positions
    valid: Mask
    large: bool = False

    @classmethod
    def of(cls, array: pa.Array) -> Lists:
        """Split a list array of any layout."""
        if pa.types.is_fixed_size_list(array.type):
            if array.null_count == 0:
                return cls(array.flatten(), np.full(len(array), array.type.list_size), np.ones(len(array), bool))
            array = pc.cast(array, pa.list_(array.type.value_type))
        lengths = pc.fill_null(pc.cast(pc.list_value_length(array), pa.int64()), 0).to_numpy(zero_copy_only=False)
        return cls(array.flatten(), lengths, mask_of(pc.is_valid(array)), pa.types.is_large_list(array.type))

    @property
    def starts(self) -> Positions:
        """Start of the items of each list."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def rows(self) -> Positions:
        """Row of every item."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def places(self) -> Positions:
        """Place of every item in its list, 0-based."""
        return np.arange(len(self.items)) - np.repeat(self.starts, self.lengths)

    def array(self) -> pa.Array:
        """Return the lists as an array."""
        return list_of(self.items, self.lengths, self.valid, large=self.large)

    def kept(self, keep: Mask, valid: Mask | None = None) -> pa.Array:
        """Return the lists with only the items for which `keep` is true."""
        valid = self.valid if valid is None else valid
        keep = keep & np.repeat(valid, self.lengths)
        lengths = np.bincount(self.rows[keep], minlength=len(self.lengths))
        return list_of(self.items.filter(pa.array(keep)), lengths, valid, large=self.large)

    def only(self, valid: Mask) -> Lists:
        """Return the lists for which `valid` is true, with nulls in place of the others."""
        keep = pa.array(np.repeat(valid, self.lengths))
        return Lists(self.items.filter(keep), np.where(valid, self.lengths, 0), valid, self.large)

    def picked(self, places: Positions, lengths: Positions, valid: Mask | None = None) -> pa.Array:
        """Return lists of the items at `places` (numbers into `items`, -1 for null), with `lengths` items per row."""
        indices = pa.array(places, pa.int64(), mask=places < 0)
        return list_of(self.items.take(indices), lengths, self.valid if valid is None else valid, large=self.large)


def mask_of(flags: pa.Array) -> Mask:
    """Convert a boolean array without nulls to NumPy."""
    return flags.to_numpy(zero_copy_only=False)


def list_of(items: pa.Array, lengths: Positions, valid: Mask | None, *, large: bool = False) -> pa.Array:
    """Build a list array from items in order, the length of each list, and the mask of lists that are not null."""
    require_room(len(items), large=large)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    missing = None if valid is None or valid.all() else pa.array(~valid)
    if large:
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, mask=missing)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=missing)


def require_room(count: int, *, large: bool = False) -> None:
    """Raise if lists would have more items than their offsets can count."""
    if count > ITEM_LIMIT and not large:
        raise pa.ArrowInvalid(f"the lists of one batch would have {count} items, more than {ITEM_LIMIT}")


def repeated(datum: Any, count: int) -> pa.Array:
    """Repeat a scalar to an array of `count` values; return arrays unchanged."""
    if not isinstance(datum, pa.Scalar):
        return datum
    return pa.repeat(datum, count) if count else pa.nulls(0, datum.type)


def columnar(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel over arrays to take scalars too; the result is a scalar if all inputs are."""

    @wraps(kernel)
    def spread(*data: Any) -> Any:
        length = next((len(datum) for datum in data if not isinstance(datum, pa.Scalar)), None)
        count = 1 if length is None else length
        result = kernel(*(repeated(datum, count) for datum in data))
        return result[0] if length is None else result

    return spread


def common_item_type(types: Sequence[pa.DataType], name: str) -> pa.DataType:
    """Return the type that values of several types have as items of one list.

    Raises
    ------
    pyarrow.ArrowInvalid
        The types have no common type.
    """
    target = types[0]
    for other in types[1:]:
        met = _item_type(target, other)
        if met is None:
            raise pa.ArrowInvalid(f"{name} needs values of one type, not {target} and {other}; use CAST")
        target = met
    return target


def _item_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    for single, other in ((left, right), (right, left)):
        if pa.types.is_float32(single) and pa.types.is_integer(other):
            return single
    if is_list(left) and is_list(right) and not left.equals(right):
        value = _item_type(left.value_type, right.value_type)
        large = pa.types.is_large_list(left) or pa.types.is_large_list(right)
        return None if value is None else pa.large_list(value) if large else pa.list_(value)
    return common_type(left, right)


def item_codes(*arrays: pa.Array) -> list[Positions]:
    """Return a number per value; values of all arrays (which have one type) share a number if they are the same.

    Nulls are values. Floats are compared by their bits: NaN equals itself, and the two zeros differ.
    """
    whole = pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0]
    codes = _codes(whole)
    return np.split(codes, np.cumsum([len(array) for array in arrays])[:-1])


def row_keys(*parts: Lists) -> list[Positions]:
    """Return a small number per item of several list columns, the same for the same items of the same row."""
    codes = item_codes(*(part.items for part in parts))
    width = max((int(code.max()) + 1 for code in codes if len(code)), default=1)
    keys = [part.rows * width + code for part, code in zip(parts, codes, strict=True)]
    count = sum(map(len, keys))
    if len(parts[0].lengths) * width <= 8 * count + 65536:
        return keys
    encoded = pa.array(np.concatenate(keys)).dictionary_encode().indices
    return np.split(
        encoded.to_numpy(zero_copy_only=False).astype(np.int64), np.cumsum([len(part) for part in keys])[:-1]
    )


def among(keys: Positions, others: Positions) -> Mask:
    """Return where numbers of `row_keys` are among others."""
    table = np.zeros(1 + max((int(part.max()) for part in (keys, others) if len(part)), default=0), bool)
    table[others] = True
    return table[keys]


def firsts(keys: Positions, chosen: Positions) -> Positions:
    """Return the first of the chosen items with each number of `row_keys`, in their order."""
    wanted = keys[chosen]
    table = np.zeros(1 + (int(wanted.max()) if len(wanted) else 0), np.int64)
    order = np.arange(len(wanted))
    table[wanted[::-1]] = order[::-1]  # if several assignments hit one place, the last one wins
    return chosen[table[wanted] == order]


def _codes(array: pa.Array) -> Positions:
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_floating(array.type):
        array = array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
    if pa.types.is_nested(array.type):
        known: dict[Any, int] = {}
        return np.array([known.setdefault(_frozen(value), len(known)) for value in array.to_pylist()], np.int64)
    encoded = array.dictionary_encode(null_encoding="encode")
    return pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)


def _frozen(value: Any) -> Any:
    """Return a hashable stand-in that is equal for equal values."""
    if isinstance(value, float):
        return ("float", struct.pack("d", value))
    if isinstance(value, dict):
        return tuple((name, _frozen(member)) for name, member in value.items())
    if isinstance(value, (list, tuple)):
        return ("list", *(_frozen(item) for item in value))
    return value
