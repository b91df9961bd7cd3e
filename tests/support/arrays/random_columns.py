"""Random columns for files of 2.1 and 2.2, and hypothesis strategies for them.

Hypothesis draws the type of a column, options of the writer and a short description of the data (`Data`: share of
nulls, kind of values). The data itself follows from a seed. So hypothesis shrinks what a person would vary first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from support.arrays.random_arrays import FLAT_TYPES, random_array, whole

__all__ = [
    "VALUES",
    "Column",
    "Data",
    "column_array",
    "columns",
    "for_reference",
    "make_table",
    "random_column",
    "types",
]

#: Kinds of values; each makes other encodings worthwhile.
VALUES = ("random", "few", "runs", "constant", "narrow", "ascending", "long")


@dataclass(frozen=True)
class Data:
    """Description of the data of a column.

    Attributes
    ----------
    nulls
        Share of nulls on every level that allows them.
    empties
        Share of empty lists.
    values
        One of `VALUES`.
    """

    nulls: float = 0.0
    empties: float = 0.2
    values: str = "random"


@dataclass(frozen=True)
class Column:
    """A column of a random table.

    Attributes
    ----------
    type
        Arrow type.
    data
        Description of the data.
    options
        ``lance-encoding:*`` metadata of the field, without the prefix.
    nullable
        True if the top-level field is nullable; otherwise there are no nulls on the top level.
    seed
        Seed of the values.
    """

    type: pa.DataType
    data: Data = Data()
    options: tuple[tuple[str, str], ...] = ()
    nullable: bool = True
    seed: int = 0

    def field(self, name: str) -> pa.Field:
        """Arrow field of the column."""
        metadata = {f"lance-encoding:{key}": value for key, value in self.options} or None
        return pa.field(name, self.type, self.nullable, metadata)


# -- values ------------------------------------------------------------------------------------------------------


def _valid(length: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the validity of each value; sometimes nulls come in runs."""
    if share in (0.0, 1.0) or not length:
        return np.full(length, share < 1.0)
    valid = rng.random(length) >= share
    if rng.random() < 0.3:
        low, high = np.sort(rng.integers(0, length + 1, 2))
        valid[low:high] = rng.random() < 0.5
    return valid


def _bitmap(valid: np.ndarray) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


def _numbers(kind: pa.DataType, numbers: np.ndarray) -> pa.Array:
    """Return small integers as values of a fixed-width type."""
    width = kind.bit_width // 8
    out = np.zeros((len(numbers), width), np.uint8)
    low = numbers.astype("<i8").view(np.uint8).reshape(-1, 8)
    out[:, : min(width, 8)] = low[:, : min(width, 8)]
    if pa.types.is_date64(kind):
        out = (numbers.astype("<i8") * 86_400_000).view(np.uint8)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(out.tobytes())])


def _long_texts(kind: pa.DataType, length: int, rng: np.random.Generator) -> pa.Array:
    """Return texts, some of them longer than a chunk."""
    sizes = rng.integers(0, 400, length)
    sizes[rng.random(length) < 0.02] = 9_000
    if length:
        sizes[rng.integers(0, length)] = rng.choice([0, 255, 256, 40_000])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    letters = rng.integers(97, 97 + int(rng.choice([2, 26])), int(offsets[-1])).astype(np.uint8)
    buffers = [None, pa.py_buffer(offsets.astype("i8").tobytes()), pa.py_buffer(letters.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), length, buffers).cast(pa.large_string()).cast(kind)


def _is_counted(kind: pa.DataType) -> bool:
    """Return True if every small number is a value of the type."""
    wide = kind.bit_width >= 16 if not pa.types.is_boolean(kind) else False
    return wide and not pa.types.is_floating(kind) and not pa.types.is_fixed_size_binary(kind)


def _flat_values(kind: pa.DataType, length: int, values: str, rng: np.random.Generator) -> pa.Array:
    """Return values without nulls."""
    binary = kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
    if binary:
        if values == "long":
            return _long_texts(kind, length, rng)
        if values in ("narrow", "ascending"):
            return pa.array([f"item {number % 1000:05d}" for number in range(length)], pa.large_string()).cast(kind)
    elif values == "ascending" and _is_counted(kind):
        return _numbers(kind, np.arange(length) % 30_000)
    elif values == "narrow" and _is_counted(kind):
        return _numbers(kind, rng.integers(0, 1 << int(rng.integers(1, 12)), length))
    if values in ("few", "runs", "constant") and length:
        pool = random_array(kind, 1 if values == "constant" else 9, 0.0, rng)
        chosen = rng.integers(0, len(pool), length)
        if values == "runs":
            lengths = rng.integers(1, 600, length)
            runs = int(np.searchsorted(np.cumsum(lengths), length)) + 1
            chosen = np.repeat(chosen[:runs], lengths[:runs])[:length]
        return pool.take(pa.array(chosen))
    if pa.types.is_floating(kind):
        # without NaN, because tables with NaN are slow to compare; the few values above include it
        return pa.array(rng.normal(0, 100, length).astype(kind.to_pandas_dtype()))
    return random_array(kind, length, 0.0, rng)


def _lengths(length: int, valid: np.ndarray, data: Data, rng: np.random.Generator) -> np.ndarray:
    lengths = rng.integers(1, 5, length)
    lengths[rng.random(length) < data.empties] = 0
    if length and rng.random() < 0.2:
        lengths[rng.integers(0, length)] = 1_500
    if rng.random() < 0.5:
        lengths[~valid] = 0  # otherwise null lists would hide items
    return lengths


def _list_array(kind: pa.DataType, length: int, data: Data, rng: np.random.Generator, nullable: bool) -> pa.Array:
    """Return lists, large lists or maps."""
    valid = _valid(length, data.nulls if nullable else 0.0, rng)
    lengths = _lengths(length, valid, data, rng)
    before = 0 if pa.types.is_map(kind) else int(rng.integers(0, 3))
    offsets = before + np.concatenate([[0], np.cumsum(lengths)])
    total = int(offsets[-1])
    inner = replace(data, nulls=data.nulls if data.nulls < 1.0 else float(rng.choice([0.3, 1.0])))
    if pa.types.is_map(kind):
        keys = random_column(kind.key_type, total, replace(inner, nulls=0.0), rng, False)
        items = random_column(kind.item_type, total, inner, rng, kind.item_field.nullable)
        below: pa.Array = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    else:
        below = random_column(kind.value_type, total, inner, rng, kind.value_field.nullable)
    width = "i8" if pa.types.is_large_list(kind) else "i4"
    buffers = [_bitmap(valid), pa.py_buffer(offsets.astype(width).tobytes())]
    return pa.Array.from_buffers(kind, length, buffers, children=[below])


def _dictionary_array(
    kind: pa.DictionaryType, length: int, data: Data, rng: np.random.Generator, nullable: bool
) -> pa.Array:
    # the reference adds up the dictionaries of all pages that a batch spans, even if entries are equal
    most = 25 if kind.index_type.bit_width == 8 else 100
    size = {"constant": 1, "few": 5}.get(data.values, most)
    entries = random_array(kind.value_type, size, 0.0, rng).unique()
    if nullable and data.nulls > 0.0 and rng.random() < 0.3:
        entries = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
    valid = _valid(length, data.nulls if nullable else 0.0, rng)
    indices = pa.array(rng.integers(0, len(entries), length), mask=~valid).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, entries.cast(kind.value_type))


def random_column(
    kind: pa.DataType, length: int, data: Data, rng: np.random.Generator, nullable: bool = True
) -> pa.Array:
    """Return random values of any type that files of 2.1 or 2.2 support; most nulls hide a value."""
    if pa.types.is_null(kind):
        return pa.nulls(length)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _list_array(kind, length, data, rng, nullable)
    if pa.types.is_dictionary(kind):
        return _dictionary_array(kind, length, data, rng, nullable)
    valid = _valid(length, data.nulls if nullable else 0.0, rng)
    if pa.types.is_struct(kind):
        children = [random_column(child.type, length, data, rng, child.nullable) for child in kind]
        return pa.Array.from_buffers(kind, length, [_bitmap(valid)], children=children)
    if pa.types.is_fixed_size_list(kind):
        inner = data if data.nulls < 1.0 else replace(data, nulls=float(rng.choice([0.0, 0.3, 1.0])))
        items = random_column(kind.value_type, length * kind.list_size, inner, rng, kind.value_field.nullable)
        return pa.Array.from_buffers(kind, length, [_bitmap(valid)], children=[items])
    values = _flat_values(kind, length, data.values, rng)
    return pa.Array.from_buffers(kind, length, [_bitmap(valid), *values.buffers()[1:]])


def column_array(column: Column, rows: int) -> pa.Array:
    """Return the values of a column."""
    return random_column(column.type, rows, column.data, np.random.default_rng(column.seed), column.nullable)


def make_table(drawn: Sequence[Column], rows: int, cuts: Sequence[int] = (), before: int = 0) -> pa.Table:
    """Make a table of columns ``c0``, ``c1`` ... in chunks up to `cuts`, slices of arrays with `before` more rows."""
    bounds = list(zip([0, *cuts], [*cuts, rows], strict=True))
    arrays = []
    for column in drawn:
        array = column_array(column, rows + before)
        arrays.append(pa.chunked_array([array.slice(before + low, high - low) for low, high in bounds], column.type))
    return pa.table(arrays, schema=pa.schema([column.field(f"c{index}") for index, column in enumerate(drawn)]))


def for_reference(table: pa.Table) -> pa.Table:
    """Copy rows into a form that the writer of the reference accepts.

    It panics on slices, on lists that do not start at their first item, and on nested batches without rows.
    """
    pieces = []
    for batch in table.to_batches():
        if batch.num_rows:
            taken = whole(pa.Table.from_batches([batch])).take(np.arange(batch.num_rows))
            pieces.append(whole(taken))
    return pa.concat_tables(pieces) if pieces else table.schema.empty_table()


# -- hypothesis --------------------------------------------------------------------------------------------------

_INDEX_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_WIDE_BINARY = [pa.binary(255), pa.binary(256), pa.binary(300)]
_FLAT = [kind for name, kind in FLAT_TYPES.items() if name != "fixed_binary_0"]
_ITEMS = [kind for kind in _FLAT if not any(word in str(kind) for word in ("string", "binary"))] + [pa.binary(3)]
_TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]

_one_in_six = st.integers(0, 5).map(lambda number: number == 5)
_flat = st.sampled_from([*_FLAT, *_WIDE_BINARY])
_texts = st.sampled_from(_TEXTS)
_dictionaries = st.builds(pa.dictionary, st.sampled_from(_INDEX_TYPES), st.sampled_from(_TEXTS))
_fixed_lists = st.recursive(
    st.builds(pa.list_, st.sampled_from(_ITEMS), st.sampled_from([1, 2, 3, 8, 16, 100])),
    lambda inner: st.builds(pa.list_, inner, st.integers(1, 3)),
    max_leaves=2,
)
_leaves = st.one_of(_flat, _flat, _texts, _dictionaries, _fixed_lists, st.just(pa.null()))


@st.composite
def _structs(draw: st.DrawFn, inner: st.SearchStrategy[pa.DataType]) -> pa.DataType:
    kinds = draw(st.lists(inner, min_size=1, max_size=3))
    # null columns cannot be declared otherwise
    nullable = [pa.types.is_null(kind) or not draw(_one_in_six) for kind in kinds]
    return pa.struct([pa.field(f"f{number}", *pair) for number, pair in enumerate(zip(kinds, nullable, strict=True))])


@lru_cache
def types(version: str, depth: int = 3) -> st.SearchStrategy[pa.DataType]:
    """Draw Arrow types that a file version (2.1 or 2.2) supports, nested to a depth."""
    grown = _leaves
    for _ in range(depth):
        ways = [st.builds(pa.list_, grown), st.builds(pa.large_list, grown), _structs(grown)]
        if version != "2.1":
            ways.append(st.builds(pa.map_, st.sampled_from([pa.string(), pa.int32(), pa.large_binary()]), grown))
        grown = st.one_of(_leaves, *ways)
    if version == "2.1":
        return grown
    return st.one_of(grown, grown, grown, st.builds(pa.list_, _structs(_leaves), st.integers(1, 3)))


_COMPRESSIONS = st.sampled_from(["lz4", "zstd", "fsst", "none"])
_OPTIONS: dict[str, st.SearchStrategy[str]] = {
    "compression": _COMPRESSIONS,
    "compression-level": st.sampled_from(["1", "3"]),
    "bss": st.sampled_from(["on", "off", "auto"]),
    "rle-threshold": st.sampled_from(["0.0", "0.5", "1.0"]),
    "dict-divisor": st.sampled_from(["1", "2", "100"]),
    "dict-size-ratio": st.sampled_from(["0.1", "1.0"]),
    "dict-values-compression": st.sampled_from(["lz4", "zstd", "none"]),
    "minichunk-size": st.sampled_from(["128", "1024", "16384"]),
    "structural-encoding": st.sampled_from(["miniblock", "fullzip"]),
}


_option = st.one_of([st.tuples(st.just(key), values) for key, values in _OPTIONS.items()])
_options = st.lists(_option, max_size=2, unique_by=lambda option: option[0]).map(tuple)
_nulls = st.sampled_from([0.0, 0.1, 0.5, 1.0])
_empties = st.sampled_from([0.0, 0.2, 0.9, 1.0])
_values = st.sampled_from(VALUES)


@st.composite
def columns(draw: st.DrawFn, version: str) -> Column:
    """Draw columns that a file version supports."""
    kind = draw(types(version))
    data = Data(draw(_nulls), draw(_empties), draw(_values))
    # only leaves have options, and null columns cannot be declared otherwise
    is_leaf = not pa.types.is_nested(kind) or pa.types.is_fixed_size_list(kind)
    options = draw(_options) if is_leaf else ()
    nullable = pa.types.is_null(kind) or not draw(_one_in_six)
    return Column(kind, data, options, nullable, draw(st.integers(0, 2**16)))
