"""Functions that edit lists: add, remove, replace and reorder items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import (
    Lists,
    Mask,
    Positions,
    columnar,
    common_item_type,
    item_codes,
    list_of,
    mask_of,
    require_room,
)
from lance_dataset.expr.functions.lists import with_items
from lance_dataset.expr.type_rules import is_list

__all__ = ["ALIASES", "FUNCTIONS", "flatten"]


def _counts(numbers: pa.Array) -> Positions:
    """Return integers with 0 for null."""
    return pc.fill_null(pc.cast(numbers, pa.int64()), 0).to_numpy(zero_copy_only=False)


# -- adding --------------------------------------------------------------------------------------------------------


def _joined(parts: Sequence[Lists], valid: Mask | None) -> pa.Array:
    """Concatenate the items of several lists of each row."""
    rows = np.concatenate([part.rows for part in parts])
    items = pa.concat_arrays([part.items for part in parts])
    lengths = np.sum([part.lengths for part in parts], axis=0)
    large = any(part.large for part in parts)
    return list_of(items.take(pa.array(np.argsort(rows, kind="stable"))), lengths, valid, large=large)


def _single(element: pa.Array) -> Lists:
    return Lists(element, np.ones(len(element), np.int64), np.ones(len(element), bool))


@columnar
def _append(array: pa.Array, element: pa.Array) -> pa.Array:
    return _joined([Lists.of(array), _single(element)], None)


@columnar
def _prepend(element: pa.Array, array: pa.Array) -> pa.Array:
    return _joined([_single(element), Lists.of(array)], None)


@columnar
def _concat(*arrays: pa.Array) -> pa.Array:
    parts = [Lists.of(array) for array in arrays]
    return _joined(parts, np.any([part.valid for part in parts], axis=0))


def _depth(arrow: pa.DataType) -> int:
    return 1 + _depth(arrow.value_type) if is_list(arrow) else 0


def _concat_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    """Bring all lists to one type; a list of fewer dimensions is an item of the others."""
    if not all(is_list(arrow) for arrow in types):
        wrong = next(arrow for arrow in types if not is_list(arrow))
        raise pa.ArrowInvalid(f"array_concat needs lists, not {wrong}")
    depth = max(map(_depth, types))
    lifted = [_lifted(arrow, depth) for arrow in types]
    item = common_item_type([arrow.value_type for arrow in lifted], "array_concat")
    target = pa.large_list(item) if any(pa.types.is_large_list(arrow) for arrow in types) else pa.list_(item)
    return [_lowered(target, depth - _depth(arrow)) for arrow in types]


def _lifted(arrow: pa.DataType, depth: int) -> pa.DataType:
    return arrow if _depth(arrow) == depth else _lifted(pa.list_(arrow), depth)


def _lowered(arrow: pa.DataType, levels: int) -> pa.DataType:
    return arrow if levels == 0 else _lowered(arrow.value_type, levels - 1)


def _concat_of_any_depth(*arrays: Any) -> Any:
    depth = max(_depth(array.type) for array in arrays)
    while (shallow := min(_depth(array.type) for array in arrays)) < depth:
        arrays = tuple(_wrapped(array) if _depth(array.type) == shallow else array for array in arrays)
    return _concat(*arrays)


@columnar
def _wrapped(array: pa.Array) -> pa.Array:
    return _single(array).array()


@columnar
def _repeat(element: pa.Array, count: pa.Array) -> pa.Array:
    times = np.maximum(_counts(count), 0)
    require_room(int(times.sum()))
    rows = np.repeat(np.arange(len(element)), times)
    return list_of(element.take(pa.array(rows)), times, mask_of(pc.is_valid(count)))


@columnar
def _resize(array: pa.Array, size: pa.Array, filler: pa.Array | None = None) -> pa.Array:
    lists, sizes = Lists.of(array), _counts(size)
    if (sizes < 0).any():
        raise pa.ArrowInvalid(f"array_resize needs a size of 0 or more, not {int(sizes.min())}")
    sizes = np.where(lists.valid, sizes, 0)
    require_room(int(sizes.sum()), large=lists.large)
    rows = np.repeat(np.arange(len(array)), sizes)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    inside = places < lists.lengths[rows]
    numbers = np.where(inside, lists.starts[rows] + places, -1)
    if filler is None:
        return lists.picked(numbers, sizes)
    numbers = np.where(inside, numbers, len(lists.items) + rows)
    filled = Lists(pa.concat_arrays([lists.items, filler]), lists.lengths, lists.valid, lists.large)
    return filled.picked(numbers, sizes)


# -- taking out ----------------------------------------------------------------------------------------------------


@columnar
def _pop_back(array: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    return lists.kept(lists.places < np.repeat(lists.lengths - 1, lists.lengths))


@columnar
def _pop_front(array: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    return lists.kept(lists.places > 0)


@columnar
def _compact(array: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    return lists.kept(mask_of(pc.is_valid(lists.items)))


def _matches(lists: Lists, element: pa.Array, limit: Positions | None) -> Mask:
    """Return where the first `limit` items equal to the element of the row are; all of them if `limit` is None."""
    items, wanted = item_codes(lists.items, element)
    found = items == wanted[lists.rows]
    if limit is None:
        return found
    seen = np.cumsum(found)
    before = np.concatenate([[0], seen])[lists.starts]
    return found & (seen - np.repeat(before, lists.lengths) <= np.repeat(limit, lists.lengths))


def _remove(limit: int | None) -> Any:
    @columnar
    def kernel(array: pa.Array, element: pa.Array, count: pa.Array | None = None) -> pa.Array:
        lists = Lists.of(array)
        most = _limits(limit, count, len(array))
        valid = lists.valid & mask_of(pc.is_valid(element))
        return lists.kept(~_matches(lists, element, most), valid)

    return kernel


def _limits(limit: int | None, count: pa.Array | None, length: int) -> Positions | None:
    if count is not None:
        return _counts(count)
    return None if limit is None else np.full(length, limit)


def _replace(limit: int | None) -> Any:
    @columnar
    def kernel(array: pa.Array, old: pa.Array, new: pa.Array, count: pa.Array | None = None) -> pa.Array:
        lists = Lists.of(array)
        found = _matches(lists, old, _limits(limit, count, len(array)))
        numbers = np.where(found, len(lists.items) + lists.rows, np.arange(len(lists.items)))
        both = Lists(pa.concat_arrays([lists.items, new]), lists.lengths, lists.valid, lists.large)
        return both.picked(numbers, lists.lengths)

    return kernel


# -- ranges and order ----------------------------------------------------------------------------------------------


@columnar
def _reverse(array: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    last = np.repeat(2 * lists.starts + lists.lengths - 1, lists.lengths)
    return lists.picked(last - np.arange(len(lists.items)), lists.lengths)


@columnar
def _slice(array: pa.Array, begin: pa.Array, end: pa.Array, stride: pa.Array | None = None) -> pa.Array:
    lists = Lists.of(array)
    options = [begin, end] if stride is None else [begin, end, stride]
    valid = np.logical_and.reduce([lists.valid, *(mask_of(pc.is_valid(option)) for option in options)])
    step = np.ones(len(array), np.int64) if stride is None else np.where(valid, _counts(stride), 1)
    first, last = _bounds(lists.lengths, _counts(begin), _counts(end))
    inside = valid & (first >= 0) & (last >= 0)
    if (step[inside] == 0).any():
        raise pa.ArrowInvalid("array_slice needs a stride other than 0")
    counts = np.where(inside, np.maximum((last - first) // np.where(inside, step, 1) + 1, 0), 0)
    rows = np.repeat(np.arange(len(array)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return lists.picked(lists.starts[rows] + first[rows] + within * step[rows], counts, valid)


def _bounds(lengths: Positions, begin: Positions, end: Positions) -> tuple[Positions, Positions]:
    """Return the 0-based first and last places of slices; -1 for either if a slice is empty."""
    first = np.where(begin > 0, begin - 1, np.where(begin < 0, np.maximum(lengths + begin, 0), 0))
    last = np.where(end > 0, np.minimum(end, lengths) - 1, np.where(end < 0, lengths + end, -1))
    return np.where(first < lengths, first, -1), np.maximum(last, -1)


@columnar
def flatten(array: pa.Array) -> pa.Array:
    """Flatten lists of lists by one level; null inner lists have no items."""
    lists = Lists.of(array)
    if not is_list(lists.items.type):
        return lists.array() if pa.types.is_fixed_size_list(array.type) else array
    inner = Lists.of(lists.items)
    ends = np.concatenate([[0], np.cumsum(inner.lengths)])
    begins = lists.starts
    lengths = ends[begins + lists.lengths] - ends[begins]
    return list_of(inner.items, lengths, lists.valid, large=lists.large or inner.large)


@columnar
def _zip(*arrays: pa.Array) -> pa.Array:
    parts = [Lists.of(array) for array in arrays]
    lengths = np.max([part.lengths for part in parts], axis=0)
    require_room(int(lengths.sum()))
    rows = np.repeat(np.arange(len(arrays[0])), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = []
    for part in parts:
        missing = places >= part.lengths[rows]
        columns.append(part.items.take(pa.array(np.where(missing, 0, part.starts[rows] + places), mask=missing)))
    names = [str(number) for number in range(1, len(parts) + 1)]
    valid = np.any([part.valid for part in parts], axis=0)
    return list_of(pa.StructArray.from_arrays(columns, names), lengths, valid)


def _any_lists(name: str) -> Any:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        wrong = next((arrow for arrow in types if not (is_list(arrow) or pa.types.is_null(arrow))), None)
        if wrong is not None:
            raise pa.ArrowInvalid(f"{name} needs lists, not {wrong}")
        return [pa.list_(pa.null()) if pa.types.is_null(arrow) else arrow for arrow in types]

    return coercion


def _prepend_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    array, element = with_items(0, 1, name="array_prepend")([types[1], types[0]])
    return [element, array]


_LIST, _ANY, _INTEGER = Kind.LIST, Kind.ANY, Kind.INTEGER


def _editing(name: str, kernel: Any, values: int, numbers: int = 0, optional: int = 0) -> Function:
    """Return a function of a list, some values of the kind of its items, and some integers."""
    parameters = (_ANY, *(_ANY,) * values, *(_INTEGER,) * numbers)
    members, counts = range(1, values + 1), range(values + 1, values + numbers + 1)
    coercion = with_items(0, *members, numbers=counts, name=name)
    return Function(name, parameters, kernel, optional=optional, coercion=coercion)


def _resize_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    return with_items(0, 2, numbers=(1,), name="array_resize")(types)


FUNCTIONS = [
    _editing("array_append", _append, 1),
    Function("array_prepend", (_ANY, _ANY), _prepend, coercion=_prepend_types),
    Function("array_concat", (_ANY,), _concat_of_any_depth, variadic=True, coercion=_concat_types),
    Function("array_repeat", (_ANY, _INTEGER), _repeat),
    Function("array_resize", (_ANY, _INTEGER, _ANY), _resize, optional=1, coercion=_resize_types),
    Function("array_pop_back", (_LIST,), _pop_back),
    Function("array_pop_front", (_LIST,), _pop_front),
    Function("array_compact", (_LIST,), _compact),
    _editing("array_remove", _remove(1), 1),
    _editing("array_remove_all", _remove(None), 1),
    _editing("array_remove_n", _remove(1), 1, numbers=1),
    _editing("array_replace", _replace(1), 2),
    _editing("array_replace_all", _replace(None), 2),
    _editing("array_replace_n", _replace(1), 2, numbers=1),
    Function("array_reverse", (_LIST,), _reverse),
    Function("array_slice", (_LIST, _INTEGER, _INTEGER, _INTEGER), _slice, optional=1),
    Function("flatten", (_LIST,), flatten),
    Function("arrays_zip", (_ANY,), _zip, variadic=True, coercion=_any_lists("arrays_zip")),
]
_SAME_AS_ARRAY = (
    "append",
    "compact",
    "concat",
    "pop_back",
    "pop_front",
    "prepend",
    "remove",
    "remove_all",
    "remove_n",
    "repeat",
    "replace",
    "replace_all",
    "replace_n",
    "resize",
    "reverse",
    "slice",
)
ALIASES = {
    **{f"list_{name}": f"array_{name}" for name in _SAME_AS_ARRAY},
    "array_cat": "array_concat",
    "list_cat": "array_concat",
    "array_push_back": "array_append",
    "list_push_back": "array_append",
    "array_push_front": "array_prepend",
    "list_push_front": "array_prepend",
    "list_zip": "arrays_zip",
}
