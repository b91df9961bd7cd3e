"""Functions of lists as sets: union, intersection, difference, distinct items. Nulls count as items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import (
    Lists,
    Positions,
    among,
    columnar,
    common_item_type,
    firsts,
    list_of,
    row_keys,
)
from lance_dataset.expr.type_rules import is_list

__all__ = ["ALIASES", "FUNCTIONS"]


def _lists_of(items: pa.Array, rows: Positions, chosen: Positions, like: Sequence[Lists]) -> pa.Array:
    valid = np.logical_and.reduce([part.valid for part in like])
    chosen = chosen[valid[rows[chosen]]]
    lengths = np.bincount(rows[chosen], minlength=len(valid))
    return list_of(items.take(pa.array(chosen)), lengths, valid, large=any(part.large for part in like))


@columnar
def _distinct(array: pa.Array) -> pa.Array:
    lists = Lists.of(array)
    (keys,) = row_keys(lists)
    return _lists_of(lists.items, lists.rows, firsts(keys, np.arange(len(keys))), [lists])


@columnar
def _except(array: pa.Array, others: pa.Array) -> pa.Array:
    left, right = Lists.of(array), Lists.of(others)
    keys, taken = row_keys(left, right)
    chosen = firsts(keys, np.flatnonzero(~among(keys, taken)))
    return _lists_of(left.items, left.rows, chosen, [left, right])


@columnar
def _union(array: pa.Array, others: pa.Array) -> pa.Array:
    left, right = Lists.of(array), Lists.of(others)
    keys, rows = np.concatenate(row_keys(left, right)), np.concatenate([left.rows, right.rows])
    chosen = firsts(keys, np.argsort(rows, kind="stable"))
    return _lists_of(pa.concat_arrays([left.items, right.items]), rows, chosen, [left, right])


@columnar
def _intersect(array: pa.Array, others: pa.Array) -> pa.Array:
    """Intersect lists, in the order of the longer list, or of the left one if both have the same length."""
    left, right = Lists.of(array), Lists.of(others)
    keys = row_keys(left, right)
    from_right = right.lengths > left.lengths
    chosen = np.concatenate(
        [
            np.flatnonzero(among(keys[0], keys[1]) & ~from_right[left.rows]),
            np.flatnonzero(among(keys[1], keys[0]) & from_right[right.rows]) + len(keys[0]),
        ]
    )
    rows = np.concatenate([left.rows, right.rows])
    chosen = firsts(np.concatenate(keys), chosen)
    chosen = chosen[np.argsort(rows[chosen], kind="stable")]
    return _lists_of(pa.concat_arrays([left.items, right.items]), rows, chosen, [left, right])


def _same_lists(name: str) -> Any:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        wrong = next((arrow for arrow in types if not (is_list(arrow) or pa.types.is_null(arrow))), None)
        if wrong is not None:
            raise pa.ArrowInvalid(f"{name} needs lists, not {wrong}")
        items = [arrow.value_type if is_list(arrow) else pa.null() for arrow in types]
        item = common_item_type(items, name)
        large = any(pa.types.is_large_list(arrow) for arrow in types)
        return [pa.large_list(item) if large else pa.list_(item)] * len(types)

    return coercion


_TWO = (Kind.ANY, Kind.ANY)
FUNCTIONS = [
    Function("array_distinct", (Kind.LIST,), _distinct),
    *(
        Function(name, _TWO, kernel, coercion=_same_lists(name))
        for name, kernel in (("array_except", _except), ("array_union", _union), ("array_intersect", _intersect))
    ),
]
ALIASES = {f"list_{name}": f"array_{name}" for name in ("distinct", "except", "union", "intersect")}
