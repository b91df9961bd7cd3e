"""Distances and products of lists of numbers, computed in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import Lists, Mask, Positions, columnar, mask_of, repeated
from lance_dataset.expr.type_rules import is_list, is_number

__all__ = ["ALIASES", "FUNCTIONS"]

Floats = npt.NDArray[np.float64]


def _numbers(items: pa.Array) -> Floats:
    if pa.types.is_decimal(items.type):
        items = pc.cast(items, pa.float64())
    filled = items if items.null_count == 0 else pc.fill_null(items, pa.scalar(0, items.type))
    return filled.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


Dot = Callable[[Floats, Floats], Floats]
#: Number of rows computed together, so that they stay in the cache.
_ROWS_AT_ONCE = 1024
#: Longer lists of different lengths are summed pairwise; the last digit may then differ.
_LONGEST = 65536


def _row_dots(left: Floats, right: Floats) -> Floats:
    """Return the sum of products of each pair of rows, added from first to last as in the reference."""
    return np.asarray(np.add.reduce(np.ascontiguousarray((left * right).T), axis=0))


def _list_dots(lengths: Positions) -> Dot:
    """Return the same function for lists of any lengths whose items are stored one after another."""
    starts, longest = np.cumsum(lengths) - lengths, int(lengths.max(initial=0))

    def dot(left: Floats, right: Floats) -> Floats:
        products, result = left * right, np.zeros(len(lengths))
        rows = np.flatnonzero(lengths)
        if longest > _LONGEST:
            result[rows] = np.add.reduceat(products, starts[rows])
            return result
        for place in range(longest):
            rows = rows[lengths[rows] > place]
            result[rows] += products[starts[rows] + place]
        return result

    return dot


def _usable(lists: Lists) -> Mask:
    """Return a mask of the lists that are not null and have no null items."""
    if lists.items.null_count == 0:
        return lists.valid
    usable = lists.valid.copy()
    usable[lists.rows[mask_of(pc.is_null(lists.items))]] = False
    return usable


Kernel = Callable[[Floats, Floats, Dot], tuple[Floats, "Mask | None"]]


def _pairwise(name: str, kernel: Kernel) -> Callable[[Any, Any], Any]:
    """Return a function of two lists with the same number of numbers; null if either list or an item is null."""

    def run(left: Any, right: Any) -> Any:
        counts = [len(side) for side in (left, right) if not isinstance(side, pa.Scalar)]
        count = counts[0] if counts else 1
        sides = [Lists.of(repeated(side, 1)) for side in (left, right)]  # one row if constant
        lengths = [np.broadcast_to(side.lengths, count) for side in sides]
        both = np.broadcast_to(sides[0].valid & sides[1].valid, count)
        uneven = np.flatnonzero(both & (lengths[0] != lengths[1]))
        if len(uneven):
            found = " and ".join(str(length[uneven[0]]) for length in lengths)
            raise pa.ArrowInvalid(f"{name} needs lists of one length, not of {found} items")
        values, defined = np.zeros(count), np.broadcast_to(_usable(sides[0]) & _usable(sides[1]), count).copy()
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            values[both], sound = _computed(kernel, sides, both, lengths[0][both])
        defined[both] &= sound
        result = pa.array(values, pa.float64(), mask=~defined)
        return result if counts else result[0]

    return run


def _computed(kernel: Kernel, sides: Sequence[Lists], rows: Mask, lengths: Positions) -> tuple[Floats, Mask]:
    """Return the values for rows where both lists are given, and a mask of where they are meaningful."""
    values, sound = np.zeros(len(lengths)), np.ones(len(lengths), bool)
    constant = [len(side.valid) == 1 < len(rows) for side in sides]
    items = [
        side.items if fixed or rows.all() else side.only(rows).items
        for side, fixed in zip(sides, constant, strict=True)
    ]
    if not len(lengths):
        return values, sound
    if (lengths != lengths[0]).any():
        values, defined = kernel(_numbers(items[0]), _numbers(items[1]), _list_dots(lengths))
        return values, sound if defined is None else defined
    width = int(lengths[0])
    for start in range(0, len(lengths), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(lengths))
        blocks = [
            _numbers(part if fixed else part[start * width : stop * width]).reshape(1 if fixed else stop - start, width)
            for part, fixed in zip(items, constant, strict=True)
        ]
        values[start:stop], defined = kernel(blocks[0], blocks[1], _row_dots)
        if defined is not None:
            sound[start:stop] = defined
    return values, sound


def _distance(left: Floats, right: Floats, dot: Dot) -> tuple[Floats, Mask | None]:
    difference = left - right
    return np.sqrt(dot(difference, difference)), None


def _product(left: Floats, right: Floats, dot: Dot) -> tuple[Floats, Mask | None]:
    return dot(left, right), None


def _cosine(left: Floats, right: Floats, dot: Dot) -> tuple[Floats, Mask | None]:
    """Return one minus the cosine; null for a vector of length 0."""
    norms = np.sqrt(dot(left, left)), np.sqrt(dot(right, right))
    return 1.0 - dot(left, right) / (norms[0] * norms[1]), (norms[0] != 0) & (norms[1] != 0)


@columnar
def _normalize(array: pa.Array) -> pa.Array:
    """Divide vectors by their length; null for those of length 0 or with null items, unless they are empty."""
    lists = Lists.of(array)
    values = _numbers(lists.items)
    norms = np.sqrt(_list_dots(lists.lengths)(values, values))
    valid = _usable(lists) & ((norms != 0) | (lists.lengths == 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = values / np.repeat(norms, lists.lengths)
    return Lists(pa.array(scaled), lists.lengths, lists.valid, lists.large).only(valid).array()


def _types(name: str) -> Callable[[Sequence[pa.DataType]], list[pa.DataType]]:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        return [_vector(arrow, name) for arrow in types]

    return coercion


def _vector(arrow: pa.DataType, name: str) -> pa.DataType:
    if pa.types.is_null(arrow) or (is_list(arrow) and pa.types.is_null(arrow.value_type)):
        return pa.list_(pa.float64())
    if not (is_list(arrow) and is_number(arrow.value_type)):
        raise pa.ArrowInvalid(f"{name} needs lists of numbers, not {arrow}")
    return arrow


FUNCTIONS = [
    *(
        Function(name, (Kind.ANY, Kind.ANY), _pairwise(name, kernel), coercion=_types(name))
        for name, kernel in (("array_distance", _distance), ("inner_product", _product), ("cosine_distance", _cosine))
    ),
    Function("array_normalize", (Kind.ANY,), _normalize, coercion=_types("array_normalize")),
]
ALIASES = {
    "list_distance": "array_distance",
    "dot_product": "inner_product",
    "list_normalize": "array_normalize",
}
