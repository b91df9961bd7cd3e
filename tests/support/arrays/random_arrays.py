"""Random Arrow data of any type that file version 2.0 supports, and hypothesis strategies of schemas and tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

__all__ = ["FLAT_TYPES", "NULLS", "random_array", "random_table", "tables", "types", "whole"]

#: Share of nulls by the name of the case.
NULLS = {"none": 0.0, "some": 0.3, "all": 1.0}

_UNITS = ("s", "ms", "us", "ns")

FLAT_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal128": pa.decimal128(38, 10),
    "decimal128_small": pa.decimal128(5, 2),
    "decimal128_negative_scale": pa.decimal128(10, -2),
    "decimal256": pa.decimal256(60, 20),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "fixed_binary_0": pa.binary(0),
    "fixed_binary_1": pa.binary(1),
    "fixed_binary_3": pa.binary(3),
    "fixed_binary_40": pa.binary(40),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32_s": pa.time32("s"),
    "time32_ms": pa.time32("ms"),
    "time64_us": pa.time64("us"),
    "time64_ns": pa.time64("ns"),
    **{f"timestamp_{unit}": pa.timestamp(unit) for unit in _UNITS},
    **{f"timestamp_{unit}_utc": pa.timestamp(unit, "UTC") for unit in _UNITS},
    "timestamp_zone": pa.timestamp("us", "Europe/Berlin"),
    "timestamp_offset": pa.timestamp("ms", "+08:00"),
    **{f"duration_{unit}": pa.duration(unit) for unit in _UNITS},
}

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_WORDS = ["", "a", "ä€😀", "null", "x" * 13, "\0", "Zürich", "\n\t'\"\\"]


def _validity(rng: np.random.Generator, length: int, share: float) -> np.ndarray | None:
    """Return the validity of each value; None if all are valid."""
    return None if share == 0.0 else rng.random(length) >= share


def _bitmap(valid: np.ndarray | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


def _integers(kind: pa.DataType, length: int, rng: np.random.Generator) -> np.ndarray | None:
    """Return physical values of the types whose values are integers of a limited range."""
    if pa.types.is_time(kind):
        return rng.integers(0, _DAY[kind.unit], length).astype(f"i{kind.bit_width // 8}")
    if kind == pa.date64():
        return rng.integers(-100_000, 100_000, length) * _DAY["ms"]
    if kind == pa.date32():
        return rng.integers(-100_000, 100_000, length).astype("i4")
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return rng.integers(-(2**31), 2**31, length) * (1 if kind.unit == "s" else 1_000)
    return None


def _fixed_values(kind: pa.DataType, length: int, rng: np.random.Generator) -> bytes:
    numbers = _integers(kind, length, rng)
    if numbers is not None:
        return numbers.tobytes()
    if pa.types.is_decimal(kind):
        limit = 10 ** min(kind.precision, 18) - 1
        low = rng.integers(-limit, limit, length, endpoint=True)
        words = np.empty((length, kind.bit_width // 64), "i8")
        words[:, 0], words[:, 1:] = low, (low >> 63)[:, None]
        return words.tobytes()
    if pa.types.is_floating(kind):
        values = rng.normal(0, 100, length)
        special = rng.random(length) < 0.05
        values[special] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], int(special.sum()))
        return values.astype(kind.to_pandas_dtype()).tobytes()
    return rng.bytes(length * kind.bit_width // 8)


def _words(kind: pa.DataType, length: int, rng: np.random.Generator) -> pa.Array:
    pool = [*_WORDS, *(f"{number:x}" * (number % 7) for number in rng.integers(0, 2**31, 300).tolist())]
    few = rng.random() < 0.3
    values = pa.array([word.encode() for word in pool], pa.large_binary())
    chosen = values.take(pa.array(rng.integers(0, len(_WORDS) if few else len(pool), length)))
    return chosen.cast(pa.large_string()).cast(kind) if "string" in str(kind) else chosen.cast(kind)


def _list_array(kind: pa.DataType, length: int, share: float, rng: np.random.Generator) -> pa.Array:
    lengths = rng.integers(0, 5, length)
    if length and rng.random() < 0.3:
        lengths[rng.integers(0, length)] = 300
    valid = _validity(rng, length, share)
    if valid is not None and rng.random() < 0.7:
        lengths[~valid] = 0  # otherwise null lists would hide items
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    items = random_array(kind.value_type, int(offsets[-1]), share if share < 1.0 else 0.3, rng)
    width = "i8" if pa.types.is_large_list(kind) else "i4"
    buffers = [_bitmap(valid), pa.py_buffer(offsets.astype(width).tobytes())]
    return pa.Array.from_buffers(kind, length, buffers, children=[items])


def _dictionary_array(kind: pa.DictionaryType, length: int, share: float, rng: np.random.Generator) -> pa.Array:
    size = int(rng.integers(1, 100))
    values = random_array(kind.value_type, size, 0.0, rng).unique()
    valid = _validity(rng, length, share)
    mask = None if valid is None else ~valid
    indices = pa.array(rng.integers(0, len(values), length), mask=mask).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, values.cast(kind.value_type))


def random_array(kind: pa.DataType, length: int, share: float, rng: np.random.Generator) -> pa.Array:
    """Return random values of a type, with a share of nulls on every level except structs (2.0 has no null structs)."""
    if pa.types.is_null(kind):
        return pa.nulls(length)
    if pa.types.is_struct(kind):
        children = [random_array(child.type, length, share, rng) for child in kind]
        return pa.Array.from_buffers(kind, length, [None], children=children)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_array(kind, length, share, rng)
    if pa.types.is_dictionary(kind):
        return _dictionary_array(kind, length, share, rng)
    valid = _validity(rng, length, share)
    if pa.types.is_fixed_size_list(kind):
        items = random_array(kind.value_type, length * kind.list_size, share if share < 1.0 else 0.3, rng)
        return pa.Array.from_buffers(kind, length, [_bitmap(valid)], children=[items])
    if pa.types.is_boolean(kind):
        return pa.array(rng.random(length) < 0.5, mask=None if valid is None else ~valid)
    if any(word in str(kind) for word in ("string", "large_binary")) or kind == pa.binary():
        words = _words(kind, length, rng)
        return words if valid is None else pa.array(words.to_pylist(), kind, mask=~valid)
    return pa.Array.from_buffers(kind, length, [_bitmap(valid), pa.py_buffer(_fixed_values(kind, length, rng))])


def random_table(kinds: Mapping[str, pa.DataType], rows: int, share: float, seed: int = 0) -> pa.Table:
    """Return a table with one random column per type."""
    rng = np.random.default_rng(seed)
    return pa.table({name: random_array(kind, rows, share, rng) for name, kind in kinds.items()})


def whole(table: pa.Table) -> pa.Table:
    """Copy chunks that are slices into arrays of their own.

    The writer of the reference panics on some slices of structs, and pyarrow takes wrong values from slices of
    fixed-size lists of one item.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    # Arrow IPC aligns to 8 bytes, but the reference needs 16 for decimals.
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.lib.Alignment.At64Byte)
    return pa.ipc.open_stream(sink.getvalue(), options=options).read_all()


# -- hypothesis ------------------------------------------------------------------------------------------------------

_INDEX_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]

_flat = st.sampled_from(list(FLAT_TYPES.values()))
_dictionaries = st.builds(
    pa.dictionary, st.sampled_from(_INDEX_TYPES), st.sampled_from([pa.string(), pa.large_string()])
)
_fixed_items = st.sampled_from(
    [kind for name, kind in FLAT_TYPES.items() if "string" not in name and "binary" not in name]
)
_fixed_lists = st.recursive(
    st.builds(pa.list_, _fixed_items, st.integers(1, 5)),
    lambda inner: st.builds(pa.list_, inner, st.integers(1, 3)),
    max_leaves=2,
)


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    def build(children: list[pa.DataType]) -> pa.DataType:
        return pa.struct([pa.field(f"f{number}", child) for number, child in enumerate(children)])

    return st.lists(inner, min_size=1, max_size=3).map(build)


#: Arrow types that file version 2.0 supports, including nested ones.
types: st.SearchStrategy[pa.DataType] = st.recursive(
    st.one_of(_flat, _flat, _flat, _dictionaries, _fixed_lists, st.just(pa.null())),
    lambda inner: st.one_of(st.builds(pa.list_, inner), st.builds(pa.large_list, inner), _structs(inner)),
    max_leaves=5,
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw tables of random schema and data, in chunks that are slices of larger arrays."""
    kinds = draw(st.lists(types, min_size=1, max_size=5))
    rows = draw(st.one_of(st.integers(0, 20), st.sampled_from([1, 100, 1025, 3000])))
    shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=len(kinds), max_size=len(kinds)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=3)))
    before = draw(st.integers(0, 9))
    arrays = [random_array(kind, rows + before, share, rng) for kind, share in zip(kinds, shares, strict=True)]
    bounds = list(zip([0, *cuts], [*cuts, rows], strict=True))
    columns = {
        f"c{number}": pa.chunked_array(
            [array.slice(before + start, stop - start) for start, stop in bounds], array.type
        )
        for number, array in enumerate(arrays)
    }
    return pa.table(columns)
