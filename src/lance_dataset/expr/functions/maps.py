"""Functions that build maps and take them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.list_layout import (
    Lists,
    Positions,
    columnar,
    common_item_type,
    item_codes,
    list_of,
    mask_of,
)
from lance_dataset.expr.type_rules import is_list

__all__ = ["ALIASES", "FUNCTIONS"]


def _parts(array: pa.Array) -> tuple[pa.Array, pa.Array, Positions, Any]:
    """Return keys and values of all entries in order, the number of entries of each map, and the mask of valid maps."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    valid = mask_of(pc.is_valid(array))
    begin, end = int(offsets[0]), int(offsets[-1])
    keys, items = array.keys[begin:end], array.items[begin:end]
    lengths = np.diff(offsets)
    if (lengths[~valid] > 0).any():
        keep = pa.array(np.repeat(valid, lengths))
        keys, items = keys.filter(keep), items.filter(keep)
    return keys, items, np.where(valid, lengths, 0), valid


@columnar
def _keys(array: pa.Array) -> pa.Array:
    keys, _, lengths, valid = _parts(array)
    return list_of(keys, lengths, valid)


@columnar
def _values(array: pa.Array) -> pa.Array:
    _, items, lengths, valid = _parts(array)
    return list_of(items, lengths, valid)


@columnar
def _entries(array: pa.Array) -> pa.Array:
    keys, items, lengths, valid = _parts(array)
    fields = [pa.field("key", keys.type, nullable=False), pa.field("value", items.type)]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    lists = list_of(entries, lengths, valid)
    return lists.cast(pa.list_(pa.field("item", entries.type, nullable=False)))


@columnar
def _extract(array: pa.Array, key: pa.Array) -> pa.Array:
    """Return a list of the one value under a key; the item is null if the key is missing or the map is null."""
    keys, items, lengths, _ = _parts(array)
    rows = np.repeat(np.arange(len(array)), lengths)
    codes, wanted = item_codes(keys, key)
    found = np.flatnonzero(codes == wanted[rows])[::-1]
    chosen = np.full(len(array), -1)
    chosen[rows[found]] = found
    values = items.take(pa.array(chosen, mask=chosen < 0))
    return list_of(values, np.ones(len(array), np.int64), None)


@columnar
def _map_of_lists(keys: pa.Array, values: pa.Array) -> pa.Array:
    left, right = Lists.of(keys), Lists.of(values)
    valid = left.valid & right.valid
    uneven = valid & (left.lengths != right.lengths)
    if uneven.any():
        row = int(np.flatnonzero(uneven)[0])
        raise pa.ArrowInvalid(f"map has {left.lengths[row]} keys and {right.lengths[row]} values in one row")
    return _map_array(left.only(valid), right.only(valid))


@columnar
def _map_of_pairs(*pairs: pa.Array) -> pa.Array:
    length, width = len(pairs[0]), len(pairs) // 2
    order = pa.array(np.arange(length * width).reshape(width, length).T.ravel())
    lengths, valid = np.full(length, width), np.ones(length, bool)
    keys, values = (pa.concat_arrays(pairs[side::2]).take(order) for side in (0, 1))
    return _map_array(Lists(keys, lengths, valid), Lists(values, lengths, valid))


def _map_array(keys: Lists, values: Lists) -> pa.Array:
    if keys.items.null_count:
        raise pa.ArrowInvalid("a key of a map is null")
    (codes,) = item_codes(keys.items)
    named = keys.rows * (int(codes.max()) + 1 if len(codes) else 1) + codes
    if len(np.unique(named)) < len(named):
        repeats = np.setdiff1d(np.arange(len(named)), np.unique(named, return_index=True)[1])
        raise pa.ArrowInvalid(f"a map has the key {keys.items[int(repeats[0])].as_py()!r} twice")
    offsets = np.concatenate([[0], np.cumsum(keys.lengths)])
    masked = pa.array(offsets, pa.int32(), mask=np.append(~keys.valid, False))
    return pa.MapArray.from_arrays(masked, keys.items, values.items)


def _make_map(*data: Any) -> Any:
    if len(data) == 2 and all(is_list(datum.type) for datum in data):
        return _map_of_lists(*data)
    return _map_of_pairs(*data)


def _map_types(types: Sequence[pa.DataType]) -> list[pa.DataType]:
    if len(types) % 2:
        raise pa.ArrowInvalid(f"map needs as many values as keys, not {len(types)} arguments")
    if len(types) == 2 and all(map(is_list, types)):
        return list(types)
    key, value = (common_item_type(types[side::2], "map") for side in (0, 1))
    return [key, value] * (len(types) // 2)


def _of_map(name: str) -> Any:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        if not pa.types.is_map(types[0]):
            raise pa.ArrowInvalid(f"{name} needs a map, not {types[0]}")
        return [types[0], *(types[0].key_type for _ in types[1:])]

    return coercion


FUNCTIONS = [
    Function("map", (Kind.ANY, Kind.ANY), _make_map, variadic=True, coercion=_map_types),
    Function("map_keys", (Kind.ANY,), _keys, coercion=_of_map("map_keys")),
    Function("map_values", (Kind.ANY,), _values, coercion=_of_map("map_values")),
    Function("map_entries", (Kind.ANY,), _entries, coercion=_of_map("map_entries")),
    Function("map_extract", (Kind.ANY, Kind.ANY), _extract, coercion=_of_map("map_extract")),
]
ALIASES = {"make_map": "map", "element_at": "map_extract"}
