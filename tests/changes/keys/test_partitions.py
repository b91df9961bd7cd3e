"""Tests of keys in partitions, compared with one index of all keys."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.changes.keys.key_index import KeyIndex
from lance_dataset.changes.keys.partitions import PartitionedKeys, partitions_needed
from lance_dataset.errors import SchemaError

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.string()), ("at", pa.int64())])
COUNT = 30_000


def keys(seed: int, count: int, top: int) -> tuple[pa.Array, pa.Array]:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, top, count)
    return pa.array(numbers, mask=rng.random(count) < 0.05), pa.array([f"key {n % 7}" for n in numbers])


def batches(columns: tuple[pa.Array, pa.Array]) -> list[pa.RecordBatch]:
    whole = pa.RecordBatch.from_arrays([*columns, pa.array(np.arange(len(columns[0])))], schema=SCHEMA)
    return [whole.slice(start, 4000) for start in range(0, len(columns[0]), 4000)]


@pytest.mark.parametrize("memory", [1 << 30, 0], ids=["in memory", "in files"])
@pytest.mark.parametrize("parts", [1, 5, 64])
def test_partitions_find_what_one_index_finds(parts: int, memory: int) -> None:
    source, target = keys(0, COUNT, 20_000), keys(1, COUNT, 30_000)
    chunked = [pa.chunked_array([column.slice(0, 999), column.slice(999)]) for column in source]
    whole = KeyIndex(chunked)
    groups = whole.probe(target)
    wanted = np.where(groups >= 0, whole.first_rows[groups], -1)
    with PartitionedKeys(chunked, parts, memory=memory) as divided:
        for _ in range(2):
            found, seen = np.full(COUNT, -2), list[int]()
            for part in divided.join(iter(batches(target)), SCHEMA):
                seen += part.rows.tolist()
                assert (part.index.groups[part.index.groups >= 0] >= 0).all()
                assert (whole.groups[part.rows] >= 0).tolist() == (part.index.groups >= 0).tolist()
                places = []
                for batch in part.targets:
                    mine = part.index.probe(batch.columns[:2])
                    found[batch.column(2)] = np.where(mine >= 0, part.rows[part.index.first_rows[mine]], -1)
                    places += batch.column(2).to_pylist()
                assert places == sorted(places)
                assert (np.diff(part.rows) > 0).all()
            assert sorted(seen) == list(range(COUNT))
            assert (found == wanted).all()


def test_nothing_on_either_side() -> None:
    none = [pa.chunked_array([], pa.int64()), pa.chunked_array([], pa.string())]
    with PartitionedKeys(none, 3) as divided:
        parts = [(part.index.num_groups, sum(b.num_rows for b in part.targets)) for part in divided.join([], SCHEMA)]
        assert parts == [(0, 0)] * 3
        joined = divided.join(batches(keys(0, 5000, 10)), SCHEMA)
        assert sum(batch.num_rows for part in joined for batch in part.targets) == 5000


def test_files_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    columns = [pa.chunked_array([column]) for column in keys(0, COUNT, 100)]
    with PartitionedKeys(columns, 4, memory=0) as divided:
        joined = divided.join(batches(keys(1, COUNT, 100)), SCHEMA)
        next(joined)
        joined.close()
        with pytest.raises(SchemaError):
            next(divided.join([batches(keys(1, 10, 10))[0].select(["k", "t"])], SCHEMA))
        assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_as_many_as_needed() -> None:
    column = pa.chunked_array([pa.array(np.arange(1_000_000))])
    assert partitions_needed([column]) == 1
    assert partitions_needed([column], 20 << 20) in range(4, 8)
    assert partitions_needed([column], 1) == 128
