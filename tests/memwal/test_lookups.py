"""Tests of lookups of keys in tables with an index of the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.memwal.shards import SHARD

import lance_dataset
from lance_dataset.mem_wal import LsmPointLookupPlanner

KINDS = [pa.int64(), pa.uint64(), pa.int16(), pa.string(), pa.large_binary()]


def rows(kind: pa.DataType, numbers: range, value: int) -> pa.Table:
    metadata = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("k", kind, False, metadata), pa.field("v", pa.int64())])
    return pa.table([key_array(kind, numbers), [value] * len(numbers)], schema=schema)


def key_array(kind: pa.DataType, numbers: range) -> pa.Array:
    if pa.types.is_integer(kind):
        return pa.array(list(numbers), kind)
    return pa.array([f"it's {number:03}" for number in numbers]).cast(kind)


def looked_up(dataset: Any, kind: pa.DataType, numbers: range) -> dict[int, int]:
    planner = LsmPointLookupPlanner(dataset, dataset.mem_wal_snapshots())
    found = {}
    for number, key in zip(numbers, key_array(kind, numbers), strict=True):
        table = planner.plan_lookup(pa.array([key.as_py()], kind), ["v"]).to_table()
        if table.num_rows:
            assert table["k"][0] == key
            found[number] = table["v"][0].as_py()
    return found


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_changed_tables_with_an_index(tmp_path: Path, kind: pa.DataType, stable: bool) -> None:
    dataset = lance_dataset.write_dataset(
        rows(kind, range(60), 1), tmp_path / "t", max_rows_per_file=25, enable_stable_row_ids=stable
    )
    dataset.create_scalar_index("k", "BTREE")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows(kind, range(5, 8), 2))
    asked, expected = range(70), {number: 2 if 5 <= number < 8 else 1 for number in range(60)}
    assert looked_up(dataset, kind, asked) == expected
    quoted = "k IN ({})"
    gone = ", ".join(_literal(key) for key in key_array(kind, range(20, 30)).to_pylist())
    dataset.delete(quoted.format(gone))
    for number in range(20, 30):
        del expected[number]
    assert looked_up(dataset, kind, asked) == expected
    dataset.optimize.compact_files()
    assert looked_up(dataset, kind, asked) == expected
    dataset.insert(rows(kind, range(60, 65), 3))  # a fragment that the index does not cover
    expected |= dict.fromkeys(range(60, 65), 3)
    assert looked_up(dataset, kind, asked) == expected
    dataset.optimize.optimize_indices()
    assert looked_up(dataset, kind, asked) == expected


def _literal(key: Any) -> str:
    if isinstance(key, bytes):
        return f"X'{key.hex()}'"
    return str(key) if isinstance(key, int) else "'{}'".format(key.replace("'", "''"))
