"""Functions that inspect lists: membership, lengths, elements, order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.casts import cast_kernel
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import (
    Lists,
    Mask,
    Positions,
    among,
    columnar,
    common_item_type,
    item_codes,
    list_of,
    mask_of,
    repeated,
    row_keys,
)
from lance_dataset.expr.type_rules import is_list

__all__ = ["ALIASES", "FUNCTIONS", "list_element", "make_array", "with_items"]

_BITS_OF_FLOAT = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


# -- membership ----------------------------------------------------------------------------------------------------


def _rows_with(found: Mask, lists: Lists) -> pa.Array:
    """Return True for the rows that own a found item, null for null lists."""
    hit = np.zeros(len(lists.lengths), bool)
    hit[lists.rows[found]] = True
    return pa.array(hit, mask=~lists.valid)


def _meeting(items: Any, target: pa.DataType) -> Any:
    if items.type.equals(target):
        return items
    convert = cast_kernel(items.type, target, lenient=False)
    if convert is None:
        raise pa.ArrowInvalid(f"list elements of type {items.type} are not comparable with {target}")
    return convert(items)


def _found(items: pa.Array, wanted: Any) -> Mask:
    """Return a mask of the items that equal a value, or one value per item."""
    if pa.types.is_nested(items.type):
        left, right = item_codes(items, repeated(wanted, len(items)))
        return left == right
    if pa.types.is_floating(items.type):
        bits = _BITS_OF_FLOAT[items.type.bit_width]
        items = items.view(bits)
        wanted = repeated(wanted, 1).view(bits)[0] if isinstance(wanted, pa.Scalar) else wanted.view(bits)
    return mask_of(pc.fill_null(pc.equal(items, wanted), False))


def _array_has(array: pa.Array, element: Any) -> pa.Array:
    if isinstance(element, pa.Scalar) and not element.is_valid:
        return pa.nulls(len(array), pa.bool_())
    lists = Lists.of(array)
    items = _meeting(lists.items, element.type)
    if isinstance(element, pa.Scalar):
        return _rows_with(_found(items, element), lists)
    wanted = element.take(pa.array(lists.rows))
    result = _rows_with(_found(items, wanted), lists)
    return pc.if_else(pc.is_valid(element), result, pa.scalar(None, pa.bool_()))


def _array_has_any(array: pa.Array, others: Any) -> pa.Array:
    lists = Lists.of(array)
    if isinstance(others, pa.Scalar) and others.is_valid and not pa.types.is_nested(lists.items.type):
        wanted = _meeting(others.values, lists.items.type)
        return _rows_with(mask_of(pc.is_in(lists.items, value_set=wanted)), lists)
    others = Lists.of(repeated(others, len(array)))
    left, right = _row_keys(lists, others)
    result = _rows_with(among(left, right), lists)
    return pc.if_else(pa.array(others.valid), result, pa.scalar(None, pa.bool_()))


def _array_has_all(array: pa.Array, others: Any) -> pa.Array:
    if isinstance(others, pa.Scalar) and others.is_valid and len(others.values) == 0:
        return pa.array(np.ones(len(array), bool))  # also for null lists, as in the reference
    lists = Lists.of(array)
    others = Lists.of(repeated(others, len(array)))
    left, right = _row_keys(lists, others)
    result = np.ones(len(array), bool)
    result[others.rows[~among(right, left)]] = False
    return pa.array(result, mask=~(lists.valid & others.valid))


def _row_keys(left: Lists, right: Lists) -> list[Positions]:
    items = _meeting(right.items, left.items.type)
    return row_keys(left, Lists(items, right.lengths, right.valid, right.large))


def _position(array: pa.Array, element: pa.Array, start: pa.Array | None = None) -> pa.Array:
    lists = Lists.of(array)
    found = _found_or_null(lists, element)
    if start is not None:
        first = pc.fill_null(pc.cast(start, pa.int64()), 1).to_numpy(zero_copy_only=False)
        outside = lists.valid & ((first < 1) | (first > np.maximum(lists.lengths, 1)))
        if outside.any():
            raise pa.ArrowInvalid(f"array_position starts at {first[outside][0]}, outside the list")
        found &= lists.places >= np.repeat(first - 1, lists.lengths)
    result = np.zeros(len(array), np.int64)
    hits = np.flatnonzero(found)[::-1]
    result[lists.rows[hits]] = lists.places[hits] + 1
    return pa.array(result, pa.uint64(), mask=result == 0)


def _found_or_null(lists: Lists, element: pa.Array) -> Mask:
    """Return a mask of the items that equal the value of their row; nulls count as values."""
    items, wanted = item_codes(lists.items, element)
    return items == wanted[lists.rows]


def _positions(array: pa.Array, element: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    found = _found_or_null(lists, element)
    lengths = np.bincount(lists.rows[found], minlength=len(array))
    return list_of(pa.array(lists.places[found] + 1, pa.uint64()), lengths, lists.valid)


def with_items(*places: int, numbers: Sequence[int] = (), name: str) -> Any:
    """Return a coercion: the list and the values at `places` get one item type, and `numbers` become int64.

    The first of `places` is the list.
    """

    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        array, members = places[0], places[1:]
        result = list(types)
        if pa.types.is_null(types[array]):
            result[array] = pa.list_(pa.null())
        if not is_list(result[array]):
            raise pa.ArrowInvalid(f"{name} needs a list, not {types[array]}")
        given = [types[place] for place in members if place < len(types)]
        item = common_item_type([result[array].value_type, *given], name)
        large = pa.types.is_large_list(types[array])
        result[array] = pa.large_list(item) if large else pa.list_(item)
        for place in members:
            if place < len(types):
                result[place] = item
        for place in numbers:
            if place < len(types):
                result[place] = _count_type(types[place], name)
        return result

    return coercion


def _count_type(arrow: pa.DataType, name: str) -> pa.DataType:
    if not (pa.types.is_integer(arrow) or pa.types.is_null(arrow)):
        raise pa.ArrowInvalid(f"{name} needs an integer, not {arrow}")
    return pa.int64()


# -- lengths -------------------------------------------------------------------------------------------------------


def _dimensions(array: pa.Array) -> tuple[list[Positions], Mask]:
    """Return the lengths of each list, its first item, that item's first item and so on, and a mask of valid lists."""
    lists = Lists.of(array)
    found, holds = [lists.lengths], lists.lengths > 0
    items, firsts = lists.items, lists.starts
    while is_list(items.type):
        inner = Lists.of(items)
        lengths, starts = np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
        lengths[holds], starts[holds] = inner.lengths[firsts[holds]], inner.starts[firsts[holds]]
        found.append(lengths)
        items, firsts, holds = inner.items, starts, holds & (lengths > 0)
    return found, lists.valid


def _array_dims(array: pa.Array) -> pa.Array:
    found, valid = _dimensions(array)
    valid = valid & (found[0] > 0)
    values = np.stack(found, axis=1)[valid].ravel()
    return list_of(pa.array(values, pa.uint64()), np.where(valid, len(found), 0), valid)


def _array_ndims(array: pa.Array) -> pa.Array:
    depth, arrow = 0, array.type
    while is_list(arrow):
        depth, arrow = depth + 1, arrow.value_type
    missing = mask_of(pc.is_null(array))
    return pa.array(np.full(len(array), depth), pa.uint64(), mask=missing)


def _array_length(array: pa.Array, dimension: pa.Array | None = None) -> pa.Array:
    if dimension is None:
        return pc.cast(pc.list_value_length(array), pa.uint64())
    found, valid = _dimensions(array)
    wanted = pc.fill_null(pc.cast(dimension, pa.int64()), 0).to_numpy(zero_copy_only=False)
    inside = valid & (wanted >= 1) & (wanted <= len(found))
    table = np.stack(found)
    result = table[np.where(inside, wanted - 1, 0), np.arange(len(array))] if len(array) else np.zeros(0, np.int64)
    return pa.array(result, pa.uint64(), mask=~inside)


def _cardinality(array: pa.Array) -> pa.Array:
    """Return the number of leaves of regular nested lists, or the number of entries of maps."""
    if pa.types.is_map(array.type):
        return pa.array(np.diff(array.offsets), pa.uint64(), mask=mask_of(pc.is_null(array)))
    found, valid = _dimensions(array)
    return pa.array(np.prod(np.stack(found), axis=0), pa.uint64(), mask=~valid)


# -- elements ------------------------------------------------------------------------------------------------------


def _list_element(array: pa.Array, index: Any) -> pa.Array:
    lists = Lists.of(array)
    if isinstance(index, pa.Scalar):
        places = np.full(len(array), index.as_py() or 0, np.int64)
    else:
        places = pc.fill_null(pc.cast(index, pa.int64()), 0).to_numpy(zero_copy_only=False)
    offsets = np.where(places > 0, places - 1, lists.lengths + places)
    outside = (places == 0) | (offsets < 0) | (offsets >= lists.lengths)
    return lists.items.take(pa.array(np.where(outside, 0, lists.starts + offsets), mask=outside))


def _with_constant_second(kernel: Any) -> Any:
    """Wrap a kernel like `columnar`, but pass it a constant second argument unchanged."""

    def spread(array: Any, other: Any) -> Any:
        if isinstance(array, pa.Scalar) and isinstance(other, pa.Scalar):
            return kernel(pa.repeat(array, 1), other)[0]
        return kernel(repeated(array, len(other)) if isinstance(array, pa.Scalar) else array, other)

    return spread


list_element = _with_constant_second(_list_element)


def _any_value(array: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    valid = np.flatnonzero(mask_of(pc.is_valid(lists.items)))[::-1]
    result = np.full(len(array), -1)
    result[lists.rows[valid]] = valid
    return lists.items.take(pa.array(result, mask=result < 0))


def _in_order(lists: Lists) -> Positions:
    """Return the numbers of the non-null items, ascending in each list; NaN is greatest."""
    valid = np.flatnonzero(mask_of(pc.is_valid(lists.items)))
    items = lists.items.take(pa.array(valid))
    if pa.types.is_nested(items.type):
        items = _ranks(items)
    elif pa.types.is_float16(items.type):
        items = items.cast(pa.float32())
    table = pa.table([pa.array(lists.rows[valid]), items], ["row", "item"])
    order = pc.sort_indices(table, sort_keys=[("row", "ascending"), ("item", "ascending")])
    return valid[order.to_numpy(zero_copy_only=False)]


def _ranks(items: pa.Array) -> pa.Array:
    """Rank lists and structs, which are compared member by member with nulls least."""
    keys = [_order_key(value) for value in items.to_pylist()]
    places = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return pa.array([places[key] for key in keys], pa.int64())


def _order_key(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(_order_key, value.values()))
    if isinstance(value, (list, tuple)):
        return (1, *map(_order_key, value))
    return (2,) if isinstance(value, float) and value != value else (1, value)


def _extreme(largest: bool) -> Any:
    def kernel(array: pa.Array) -> pa.Array:
        lists = Lists.of(array)
        order = _in_order(lists) if largest else _in_order(lists)[::-1]
        result = np.full(len(array), -1)
        result[lists.rows[order]] = order  # if several assignments hit a row, the last one wins
        return lists.items.take(pa.array(result, mask=result < 0))

    return columnar(kernel)


def _array_sort(array: Any, direction: Any = None, nulls: Any = None) -> Any:
    descending = _choice(direction, {"ASC": False, "DESC": True}, False)
    nulls_first = _choice(nulls, {"NULLS FIRST": True, "NULLS LAST": False}, True)
    if descending is None or nulls_first is None:
        count = 1 if isinstance(array, pa.Scalar) else len(array)
        missing = pa.nulls(count, _plain_list(array.type))
        return missing[0] if isinstance(array, pa.Scalar) else missing
    return columnar(lambda lists: _sorted(lists, descending, nulls_first))(array)


def _plain_list(arrow: pa.DataType) -> pa.DataType:
    return pa.list_(arrow.value_type) if pa.types.is_fixed_size_list(arrow) else arrow


def _choice(given: Any, meanings: dict[str, bool], default: bool) -> bool | None:
    """Return the meaning of an option; None for a null option."""
    if given is None:
        return default
    if not isinstance(given, pa.Scalar):
        raise pa.ArrowInvalid(f"array_sort needs a constant, one of {', '.join(meanings)}")
    if not given.is_valid:
        return None
    word = str(given.as_py()).upper()
    if word not in meanings:
        raise pa.ArrowInvalid(f"array_sort knows {' and '.join(meanings)}, not {given.as_py()!r}")
    return meanings[word]


def _sorted(array: pa.Array, descending: bool, nulls_first: bool) -> pa.Array:
    lists = Lists.of(array)
    order = _in_order(lists)
    rows = lists.rows
    if descending:
        order = order[::-1][np.argsort(rows[order][::-1], kind="stable")]
    missing = np.flatnonzero(mask_of(pc.is_null(lists.items)))
    parts = [missing, order] if nulls_first else [order, missing]
    joined = np.concatenate(parts)
    places = joined[np.argsort(rows[joined], kind="stable")]
    return lists.picked(places, lists.lengths)


def make_array(*items: Any) -> Any:
    """Return one list per row, made of the arguments, which have one type."""
    if not items:
        return pa.scalar([], pa.list_(pa.null()))
    return _make_array(*items)


@columnar
def _make_array(*columns: pa.Array) -> pa.Array:
    length, width = len(columns[0]), len(columns)
    order = np.arange(length * width).reshape(width, length).T.ravel()
    return list_of(pa.concat_arrays(columns).take(pa.array(order)), np.full(length, width), None)


_LIST, _ELEMENT, _INTEGER, _ANY = Kind.LIST, Kind.ELEMENT, Kind.INTEGER, Kind.ANY


def _countable(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    if not (is_list(types[0]) or pa.types.is_map(types[0])):
        raise pa.ArrowInvalid(f"cardinality needs a list or a map, not {types[0]}")
    return types


FUNCTIONS = [
    Function("array_has", (_LIST, _ELEMENT), _with_constant_second(_array_has)),
    Function("array_has_any", (_LIST, _LIST), _with_constant_second(_array_has_any)),
    Function("array_has_all", (_LIST, _LIST), _with_constant_second(_array_has_all)),
    Function("array_length", (_LIST, _INTEGER), columnar(_array_length), optional=1),
    Function("array_dims", (_LIST,), columnar(_array_dims)),
    Function("array_ndims", (_LIST,), columnar(_array_ndims)),
    Function("cardinality", (_ANY,), columnar(_cardinality), coercion=_countable),
    Function("empty", (_LIST,), lambda lists: pc.equal(pc.list_value_length(lists), 0)),
    Function("array_element", (_LIST, _INTEGER), list_element),
    Function("array_any_value", (_LIST,), columnar(_any_value)),
    Function(
        "array_position",
        (_ANY, _ANY, _INTEGER),
        columnar(_position),
        optional=1,
        coercion=with_items(0, 1, numbers=(2,), name="array_position"),
    ),
    Function("array_positions", (_ANY, _ANY), columnar(_positions), coercion=with_items(0, 1, name="array_positions")),
    Function("array_sort", (_LIST, Kind.TEXT, Kind.TEXT), _array_sort, optional=2),
    Function("array_max", (_LIST,), _extreme(largest=True)),
    Function("array_min", (_LIST,), _extreme(largest=False)),
    Function("make_array", (Kind.SAME,), make_array, optional=1, variadic=True),
]
_SAME_AS_ARRAY = (
    "any_value",
    "dims",
    "element",
    "has",
    "has_all",
    "has_any",
    "length",
    "max",
    "min",
    "ndims",
    "position",
    "positions",
    "sort",
)
ALIASES = {
    **{f"list_{name}": f"array_{name}" for name in _SAME_AS_ARRAY},
    "array_contains": "array_has",
    "list_contains": "array_has",
    "arrays_overlap": "array_has_any",
    "array_extract": "array_element",
    "list_extract": "array_element",
    "array_empty": "empty",
    "list_empty": "empty",
    "array_indexof": "array_position",
    "list_indexof": "array_position",
    "make_list": "make_array",
}
