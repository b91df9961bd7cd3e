"""Tests of reads of some children of packed structs (2.1 and later), whose rows are stored whole."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType

import lance
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset

PACKED = {"lance-encoding:packed": "true"}
_FIXED = pa.struct([("x", pa.int32()), ("y", pa.int8()), ("z", pa.float64())])
_TEXT = pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.float64())])


@pytest.mark.parametrize("writer", [lance_dataset, lance], ids=["ours", "reference"])
@pytest.mark.parametrize(("version", "kind"), [("2.1", _FIXED), ("2.2", _FIXED), ("2.2", _TEXT), ("2.3", _TEXT)])
@pytest.mark.parametrize("mapped", ["true", "false"])
def test_children(tmp_path: Path, writer: ModuleType, version: str, kind: pa.StructType, mapped: str) -> None:
    rows = [{"x": i, "y": f"s{i}" if kind is _TEXT else i % 100, "z": i / 2} for i in range(500)]
    item = pa.field("item", kind, metadata=PACKED)
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("s", kind, metadata=PACKED),
            pa.field("deep", pa.struct([pa.field("in", kind, metadata=PACKED), pa.field("n", pa.int8())])),
            pa.field("l", pa.list_(item)),
        ]
    )
    deep = pa.array([{"in": row, "n": 1} for row in rows], schema.field("deep").type)
    lists = pa.array([rows[i : i + i % 3] for i in range(500)], schema.field("l").type)
    table = pa.table([pa.array(range(500)), pa.array(rows, kind), deep, lists], schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 2.3 is unstable
        writer.write_dataset(table, str(tmp_path / "t"), data_storage_version=version)
    dataset = lance_dataset.dataset(tmp_path / "t", storage_options={"mmap": mapped})
    assert_same(dataset.to_table(), table)
    x, y, z = (pa.array([row[name] for row in rows], kind.field(name).type) for name in "xyz")
    assert dataset.to_table(columns=["s.x"])["s.x"].combine_chunks() == x
    found = dataset.to_table(columns=["s.z", "id", "deep.in.y"])
    assert (found["s.z"].combine_chunks(), found["deep.in.y"].combine_chunks()) == (z, y)
    taken = dataset.take([400, 3], columns=["s.y", "s.z"])
    assert taken["s"].to_pylist() == [{name: rows[row][name] for name in "yz"} for row in (400, 3)]
    assert dataset.to_table(columns=["s.z"], filter="s.x = 7")["s.z"].to_pylist() == [3.5]
