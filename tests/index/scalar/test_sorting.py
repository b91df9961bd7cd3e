"""Sorting the entries of an index, in memory and in runs on disk."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_dataset.index.scalar.sorting import entry_schema, sorted_entries
from lance_dataset.index.scalar.value_order import order_of

_COUNT = 20_000
_RANDOM = np.random.default_rng(7)
_FLOATS = np.where(_RANDOM.random(_COUNT) < 0.1, np.nan, _RANDOM.standard_normal(_COUNT))

_VALUES: dict[str, pa.Array] = {
    "int64 of all bits": pa.array(_RANDOM.integers(-(2**63), 2**63 - 1, _COUNT)),
    "int8": pa.array(_RANDOM.integers(-128, 128, _COUNT).astype(np.int8)),
    "uint64": pa.array(_RANDOM.integers(0, 2**64 - 1, _COUNT, np.uint64)),
    "bool": pa.array(_RANDOM.random(_COUNT) < 0.5),
    "double": pa.array(np.where(_RANDOM.random(_COUNT) < 0.1, -0.0, _FLOATS), from_pandas=False),
    "float": pa.array(_FLOATS.astype(np.float32), from_pandas=False),
    "halffloat": pa.array(_FLOATS.astype(np.float16), from_pandas=False),
    "timestamp": pa.array(_RANDOM.integers(-(2**60), 2**60, _COUNT), pa.timestamp("ns", "UTC")),
    "date32": pa.array(_RANDOM.integers(-(2**18), 2**18, _COUNT).astype(np.int32), pa.int32()).view(pa.date32()),
    "duration": pa.array(_RANDOM.integers(-(2**20), 2**20, _COUNT), pa.duration("s")),
    "text": pa.array([f"{number}é" for number in _RANDOM.integers(0, 10**4, _COUNT)]),
    "large_binary": pa.array([b"%d" % number for number in _RANDOM.integers(0, 10**4, _COUNT)], pa.large_binary()),
    "fixed_size_binary": pa.array(
        [bytes(row) for row in _RANDOM.integers(0, 256, (_COUNT, 3), np.uint8)], pa.binary(3)
    ),
    "decimal128": pa.array([decimal.Decimal(int(x)) for x in _RANDOM.integers(-999, 999, _COUNT)], pa.decimal128(9, 2)),
    "decimal256": pa.array(
        [decimal.Decimal(int(x)) for x in _RANDOM.integers(-999, 999, _COUNT)], pa.decimal256(50, 2)
    ),
}


def _entries(values: pa.Array, rows: int) -> list[pa.RecordBatch]:
    schema, ids = entry_schema(values.type), pa.array(np.arange(len(values), dtype=np.uint64))
    starts = range(0, len(values), rows)
    return [pa.RecordBatch.from_arrays([values.slice(at, rows), ids.slice(at, rows)], schema=schema) for at in starts]


@pytest.mark.parametrize("memory_limit", [1 << 30, 1 << 20, 1])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", _VALUES)
def test_values_are_in_order_with_their_rows(name: str, nulls: float, memory_limit: int) -> None:
    kind = _VALUES[name].type
    given = pc.if_else(pa.array(_RANDOM.random(_COUNT) < nulls), pa.nulls(_COUNT, kind), _VALUES[name])
    found = list(sorted_entries(_entries(given, 1500), kind, memory_limit))
    values, rows = (pa.concat_arrays([batch.column(number) for batch in found]) for number in range(2))
    count = given.null_count
    assert values.null_count == values.slice(0, count).null_count == count
    bounds = order_of(kind).bounds(values.slice(count))
    assert all(bounds[at] <= bounds[at + 1] for at in range(len(bounds) - 1))
    assert sorted(rows.to_pylist()) == list(range(_COUNT))
    taken = given.take(rows)
    assert _bits(taken) == _bits(values)


def _bits(values: pa.Array) -> list[object]:
    """Return values so that NaNs equal themselves and zeros differ by sign."""
    if pa.types.is_floating(values.type):
        return list(map(repr, values.cast(pa.float64()).to_pylist()))
    return values.to_pylist() if not pa.types.is_timestamp(values.type) else values.view(pa.int64()).to_pylist()


def test_equal_values_keep_their_order_in_memory() -> None:
    given = pa.array(_RANDOM.integers(0, 5, _COUNT))
    (found,) = sorted_entries(_entries(given, 1500), given.type, 1 << 30)
    expected = np.argsort(given.to_numpy(), kind="stable")
    assert found.column(1).to_numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_without_entries_there_is_nothing(kind: pa.DataType) -> None:
    assert list(sorted_entries([], kind, 1 << 20)) == []
