"""Tests of shards of tables of all file versions, with stable row ids, and with columns of many types."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.memwal.shards import SCHEMA, SHARD, keys, new_table, rows, seen, snapshots_for, values

import lance_dataset

OPTIONS: list[dict[str, Any]] = [
    {"enable_stable_row_ids": True},
    {"data_storage_version": "0.1"},
    {"data_storage_version": "2.0"},
    {"data_storage_version": "2.1"},
    {"data_storage_version": "2.3"},
    {"enable_v2_manifest_paths": False},
]


@pytest.mark.filterwarnings("ignore:file version 2.3", "ignore:column 'n' holds nulls")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_kinds_of_tables(tmp_path: Path, options: dict[str, Any]) -> None:
    path, expected = tmp_path / "t", {2: "C", 3: "c", 9: "n"}
    dataset = new_table(path, {1: "a", 2: "b", 3: "c"}, **options)
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "B", 9: "n"}))
        writer.put(rows({2: "C"}))
        writer.delete(keys(1))
        assert values(writer.lsm_scanner().to_table()) == expected
    assert seen(path) == expected
    theirs = lance.mem_wal.LsmScanner.from_snapshots(lance.dataset(str(path)), snapshots_for(path))
    assert values(theirs.to_table()) == expected
    dataset = lance_dataset.dataset(path)
    dataset.merge_mem_wal()
    dataset.validate()
    assert values(lance.dataset(str(path)).to_table()) == expected
    bare = lance_dataset.write_dataset(pa.table({"x": [1]}), tmp_path / "bare", **options)
    bare.initialize_mem_wal()
    with bare.mem_wal_writer(SHARD) as writer:
        writer.put(pa.table({"x": [2, 3]}))
    bare.merge_mem_wal()
    bare.validate()
    assert sorted(lance.dataset(str(tmp_path / "bare")).to_table()["x"].to_pylist()) == [1, 2, 3]


TYPES = pa.schema(
    [
        SCHEMA.field(0),
        pa.field("s", pa.struct([pa.field("a", pa.int32(), False), ("b", pa.list_(pa.string()))])),
        pa.field("d", pa.dictionary(pa.int32(), pa.string())),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
        pa.field("t", pa.timestamp("us", tz="UTC")),
        pa.field("c", pa.decimal128(10, 2)),
        pa.field("f", pa.list_(pa.float32(), 2)),
        pa.field("l", pa.large_list(pa.struct([("x", pa.int8())]))),
    ]
)


def typed(*ids: int) -> pa.Table:
    count = len(ids)
    columns = {
        "id": ids,
        "s": [{"a": number, "b": ["x"] * number} for number in ids],
        "d": pa.array([f"text {number}" for number in ids]).dictionary_encode(),
        "m": [[("key", number)] for number in ids],
        "t": [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)] * count,
        "c": [decimal.Decimal("1.25")] * count,
        "f": [[number, number] for number in ids],
        "l": [[{"x": 1}, None] for _ in ids],
    }
    return pa.table(columns, schema=TYPES)


def test_types(tmp_path: Path) -> None:
    """Values of nested, dictionary and other types go through the log, memtables, SSTables and merges."""
    uri = str(tmp_path / "t")
    dataset = lance_dataset.write_dataset(typed(1, 2), uri, data_storage_version="2.2")
    dataset.initialize_mem_wal()
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(typed(2, 3))
    writer.delete(keys(1))
    writer.abort()
    lance.dataset(uri).mem_wal_writer(SHARD).close()  # which replays the log
    with lance_dataset.dataset(uri).mem_wal_writer(SHARD) as writer:
        writer.put(typed(4))
        found = writer.lsm_scanner().to_table().sort_by("id")
        assert found.to_pylist() == typed(2, 3, 4).to_pylist()
    dataset = lance_dataset.dataset(uri)
    dataset.merge_mem_wal()
    dataset.validate()
    assert lance.dataset(uri).to_table().sort_by("id").to_pylist() == typed(2, 3, 4).to_pylist()
