"""Random Arrow data for files of 2.1 and later.

Beyond the arrays of `random_arrays` there are null structs, maps, and fixed-size lists of structs. Nulls hide other
values.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from support.arrays.random_arrays import FLAT_TYPES, random_array

__all__ = ["nested_array", "nested_tables", "nested_types"]


def nested_array(kind: pa.DataType, length: int, share: float, rng: np.random.Generator) -> pa.Array:
    """Return random values of a type, with a share of nulls on every level."""
    if pa.types.is_struct(kind):
        children = [nested_array(child.type, length, share if child.nullable else 0.0, rng) for child in kind]
        return pa.Array.from_buffers(kind, length, [_bitmap(length, share, rng)], children=children)
    if pa.types.is_map(kind):
        return _lists(kind, length, share, rng, pa.struct([kind.key_field, kind.item_field]))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(kind, length, share, rng, kind.value_type)
    if pa.types.is_fixed_size_list(kind) and pa.types.is_struct(kind.value_type):
        items = nested_array(kind.value_type, length * kind.list_size, share, rng)
        return pa.Array.from_buffers(kind, length, [_bitmap(length, share, rng)], children=[items])
    return random_array(kind, length, share, rng)


def _bitmap(length: int, share: float, rng: np.random.Generator) -> pa.Buffer | None:
    if share == 0.0:
        return None
    return pa.py_buffer(np.packbits(rng.random(length) >= share, bitorder="little").tobytes())


def _lists(kind: pa.DataType, length: int, share: float, rng: np.random.Generator, item: pa.DataType) -> pa.Array:
    """Return lists of a type, or maps, with `item` as items; some are empty, and some null lists have items."""
    lengths = rng.integers(0, 4, length) * (rng.random(length) < rng.choice([0.1, 0.8, 1.0]))
    if length and rng.random() < 0.2:
        lengths[rng.integers(0, length)] = 300
    valid = np.ones(length, bool) if share == 0.0 else rng.random(length) >= share
    if rng.random() < 0.5:
        lengths[~valid] = 0
    before = int(rng.integers(0, 3))
    offsets = before + np.concatenate([[0], np.cumsum(lengths)])
    inner = share if share < 1.0 else 0.3
    if pa.types.is_map(kind):
        # entries are never null or sliced, because pyarrow forgets their offset
        keys = nested_array(kind.key_type, int(offsets[-1]), 0.0, rng)
        values = nested_array(kind.item_type, int(offsets[-1]), inner, rng)
        items = pa.StructArray.from_arrays([keys, values], fields=list(item))
    else:
        items = nested_array(item, int(offsets[-1]), inner, rng)
    width = "i8" if pa.types.is_large_list(kind) else "i4"
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(kind, length, [bits, pa.py_buffer(offsets.astype(width).tobytes())], children=[items])


# -- hypothesis ------------------------------------------------------------------------------------------------------

_INDEX_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_flat = st.sampled_from([kind for name, kind in FLAT_TYPES.items() if name != "fixed_binary_0"])
_fixed_items = st.sampled_from(
    [kind for name, kind in FLAT_TYPES.items() if "string" not in name and "binary" not in name]
)
_fixed_lists = st.recursive(
    st.builds(pa.list_, _fixed_items, st.sampled_from([1, 2, 3, 8, 16, 100])),
    lambda inner: st.builds(pa.list_, inner, st.integers(1, 3)),
    max_leaves=2,
)
_dictionaries = st.builds(
    pa.dictionary, st.sampled_from(_INDEX_TYPES), st.sampled_from([pa.string(), pa.large_string(), pa.binary()])
)
_leaves = st.one_of(_flat, _flat, _flat, _dictionaries, _fixed_lists, st.just(pa.null()))


def _struct(children: list[pa.DataType]) -> pa.DataType:
    return pa.struct([pa.field(f"f{number}", child) for number, child in enumerate(children)])


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(inner, min_size=1, max_size=3).map(_struct)


def nested_types(version: str) -> st.SearchStrategy[pa.DataType]:
    """Draw Arrow types that a file version (2.1 or 2.2) supports, except fixed-size lists of structs."""

    def grow(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        ways = [st.builds(pa.list_, inner), st.builds(pa.large_list, inner), _structs(inner)]
        if version != "2.1":
            ways.append(st.builds(pa.map_, st.sampled_from([pa.string(), pa.int32()]), inner))
        return st.one_of(ways)

    return st.recursive(_leaves, grow, max_leaves=5)


def _schemas(version: str) -> st.SearchStrategy[list[pa.DataType]]:
    several = st.lists(nested_types(version), min_size=1, max_size=3)
    if version == "2.1":
        return several
    # the reference reads fixed-size lists of structs only if they are the only column, even in its own files
    fixed = st.builds(pa.list_, _structs(_leaves), st.integers(1, 3))
    return st.one_of(several, several, several, fixed.map(lambda kind: [kind]))


@st.composite
def nested_tables(draw: st.DrawFn, version: str) -> pa.Table:
    """Draw tables of random schema and data, in chunks that are slices of larger arrays."""
    kinds = draw(_schemas(version))
    rows = draw(st.one_of(st.integers(0, 20), st.sampled_from([1, 100, 1025, 3000])))
    shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=len(kinds), max_size=len(kinds)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=3)))
    before = draw(st.integers(0, 9))
    bounds = list(zip([0, *cuts], [*cuts, rows], strict=True))
    columns = {}
    for number, (kind, share) in enumerate(zip(kinds, shares, strict=True)):
        array = nested_array(kind, rows + before, share, rng)
        slices = [array.slice(before + start, stop - start) for start, stop in bounds]
        columns[f"c{number}"] = pa.chunked_array(slices, array.type)
    return pa.table(columns)
