"""Tests of sets of numbers, schemas as JSON and facts about the machine, against those of pylance."""

from __future__ import annotations

import gc
import json
import pickle
from pathlib import Path
from typing import Any

import lance
import lance.bitmap
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.bitmap import Bitmap
from lance_dataset.errors import InvalidInputError, UnsupportedError

NUMBERS = st.lists(st.integers(0, 50), max_size=20)
TYPES = [
    *(pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string()),
    *(pa.binary(), pa.large_binary(), pa.binary(4), pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns")),
    *(pa.timestamp("us"), pa.timestamp("s", "Europe/Paris"), pa.duration("ms"), pa.decimal128(10, 2)),
    *(pa.decimal256(50, -3), pa.list_(pa.int32()), pa.list_(pa.field("e", pa.int32(), False)), pa.null()),
    *(pa.large_list(pa.string()), pa.list_(pa.float32(), 4), pa.dictionary(pa.int8(), pa.string())),
    pa.struct(
        [pa.field("a", pa.int32(), False, {"m": "n"}), pa.field("b", pa.list_(pa.struct([("c", pa.binary(2))])))]
    ),
]


@given(NUMBERS, NUMBERS)
def test_bitmap(first: list[int], second: list[int]) -> None:
    """Operations of sets have the results of pylance, in the same order and text."""
    ours, theirs = Bitmap(first), lance.bitmap.Bitmap(first)
    for name in ("union", "intersection", "difference", "symmetric_difference"):
        assert repr(getattr(ours, name)(second)) == repr(getattr(theirs, name)(second))
    for name in ("issubset", "issuperset", "isdisjoint"):
        assert getattr(ours, name)(second) == getattr(theirs, name)(second)
    assert repr(ours | set(second)) == repr(theirs | set(second))
    assert (ours == Bitmap(second)) == (theirs == lance.bitmap.Bitmap(second))
    for found in (ours, theirs):
        found.update(second)
        found.add(7)
        found.discard(3)
    assert list(ours) == list(theirs)
    assert pickle.loads(pickle.dumps(ours)) == ours.copy()
    assert len(ours) == len(theirs)


def test_bitmap_refuses_what_does_not_fit() -> None:
    for value in (-1, 1 << 32):
        with pytest.raises(ValueError, match="must fit in an unsigned 32-bit integer"):
            Bitmap([value])
    with pytest.raises(TypeError):
        Bitmap(["a"])  # type: ignore[list-item]
    with pytest.raises(KeyError):
        Bitmap([1]).remove(2)
    with pytest.raises(TypeError):
        hash(Bitmap())


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_schema_as_json(kind: pa.DataType) -> None:
    """A schema of any type has the JSON form of pylance, and comes back."""
    other = pa.field("y", kind, kind == pa.null())
    schema = pa.schema([pa.field("x", kind, metadata={"k": "v"}), other], metadata={"a": "b"})
    found = lance_dataset.schema_to_json(schema)
    assert found == lance.schema_to_json(schema)
    assert lance_dataset.json_to_schema(json.loads(json.dumps(found))).equals(schema, check_metadata=True)


def test_schema_as_json_refused() -> None:
    """Types without a JSON form, and JSON that is not a schema, raise an error."""
    for kind in (pa.string_view(), pa.map_(pa.string(), pa.int32()), pa.month_day_nano_interval(), pa.binary_view()):
        with pytest.raises(UnsupportedError, match="'x'"):
            lance_dataset.schema_to_json(pa.schema([("x", kind)]))
    with pytest.raises(TypeError):
        lance_dataset.schema_to_json({})  # type: ignore[arg-type]
    deep: dict[str, Any] = {"name": "x", "type": {"type": "int8"}, "nullable": True}
    for _ in range(200):
        deep = {"name": "x", "type": {"type": "struct", "fields": [deep]}, "nullable": True}
    field = {"name": "x", "nullable": True}
    bad: list[Any] = [
        *([], {}, {"fields": "x"}, {"fields": [1]}, {"fields": [deep]}, {"fields": [{"name": "x"}]}),
        {"fields": [], "metadata": {"a": 1}},
        *(
            {"fields": [{**field, "type": {"type": "list", "fields": []}}]},
            {"fields": [{**field, "type": {"type": "fixed_size_binary"}}]},
            {"fields": [{**field, "type": {"type": "fixed_size_binary", "length": -1}}]},
            {"fields": [{**field, "type": {"type": "foo"}}]},
            {"fields": [{**field, "type": {"type": "decimal:128:99:1"}}]},
        ),
    ]
    for each in bad:
        with pytest.raises(InvalidInputError):
            lance_dataset.json_to_schema(each)


def test_reads_of_the_process(tmp_path: Path) -> None:
    """Counts include those of stores that are gone, and those that started again from zero."""
    rows = pa.table({"a": np.arange(100_000)})
    lance_dataset.write_dataset(rows, tmp_path / "t", max_rows_per_file=30_000)
    counts = [(lance_dataset.bytes_read_counter(), lance_dataset.iops_counter())]
    for _ in range(2):
        opened = lance_dataset.dataset(tmp_path / "t", session=lance_dataset.Session())
        assert opened.to_table() == rows
        before = opened.io_stats_incremental()
        opened.take([5])
        after = opened.io_stats_snapshot()
        read = before.read_bytes + after.read_bytes, before.read_iops + after.read_iops
        del opened
        gc.collect()
        counts.append((lance_dataset.bytes_read_counter(), lance_dataset.iops_counter()))
        # threads of other tests may read too
        assert counts[-1][0] >= counts[-2][0] + read[0] > counts[-2][0]
        assert counts[-1][1] >= counts[-2][1] + read[1] > counts[-2][1]


def test_simd_info() -> None:
    """The same keys, architecture and features as in pylance."""
    ours, theirs = lance_dataset.simd_info(), lance.simd_info()
    assert ours.keys() == theirs.keys()
    assert ours["target_arch"] == theirs["target_arch"]
    assert ours["host_features"] == theirs["host_features"]
