"""Tests of datasets that the reference changed in ways this package does not write: read, append and delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import random_table
from support.reference.both_read import assert_both_read

import lance_dataset

_KINDS = {"s": pa.string(), "st": pa.struct([("x", pa.int32()), ("y", pa.string())]), "l": pa.list_(pa.int64())}


def _rows(start: int, count: int) -> pa.Table:
    table = random_table(_KINDS, count, 0.2, seed=start)
    return table.add_column(0, "id", pa.array(range(start, start + count), pa.int64()))


def _merge_columns(dataset: lance.LanceDataset) -> None:
    ids = dataset.to_table(columns=["id"])["id"]
    dataset.merge(pa.table({"id": ids, "m": [f"m{value}" for value in ids.to_pylist()]}), left_on="id")


def _add_nested(dataset: lance.LanceDataset) -> None:
    dataset.add_columns(pa.field("n", pa.struct([("p", pa.int32()), ("q", pa.list_(pa.string()))])))


def _compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=1_000)


def _upsert(dataset: lance.LanceDataset) -> None:
    new = _rows(90, 60).set_column(1, "s", pa.array([f"new{number}" for number in range(60)]))
    new = new.select([name for name in dataset.schema.names if name in new.column_names])
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


def _update_partly(dataset: lance.LanceDataset) -> None:
    """Rewrite one column of fragments: a second file takes over a field of the first."""
    new = pa.table({"id": pa.array(range(20, 60), pa.int64()), "s": [f"u{number}" for number in range(40)]})
    dataset.merge_insert("id").when_matched_update_all().execute(new)


CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "add_columns_sql": lambda d: d.add_columns({"b": "id * 2", "c": "s || 'x'"}),
    "add_columns_null": lambda d: d.add_columns(pa.schema([("z", pa.list_(pa.float32(), 2)), ("t", pa.string())])),
    "add_nested_null": _add_nested,
    "merge": _merge_columns,
    "drop_column": lambda d: d.drop_columns(["s"]),
    "drop_nested": lambda d: d.drop_columns(["st.x"]),
    "rename": lambda d: d.alter_columns({"path": "s", "name": "renamed"}),
    "rename_nested": lambda d: d.alter_columns({"path": "st.y", "name": "why"}),
    "cast": lambda d: d.alter_columns({"path": "id", "data_type": pa.int32()}),
    "cast_string": lambda d: d.alter_columns({"path": "s", "data_type": pa.large_string()}),
    "compact": _compact,
    "update": lambda d: d.update({"s": "'changed'"}, where="id % 7 = 0"),
    "upsert": _upsert,
    "update_partly": _update_partly,
    "index": lambda d: d.create_scalar_index("id", "BTREE"),
    "bitmap_index": lambda d: d.create_scalar_index("s", "BITMAP"),
    "config": lambda d: d.update_config({"k": "v"}),
    "tag": lambda d: d.tags.create("first", 1),
}


def _go_on(path: Path) -> None:
    """Append to and delete from the dataset with both libraries, checking each time."""
    for who, other, start in ((lance_dataset, lance, 1_000), (lance, lance_dataset, 2_000)):
        dataset = who.dataset(path)
        schema = dataset.schema
        count = dataset.count_rows()
        added = random_table({field.name: field.type for field in schema if field.name != "id"}, 30, 0.2, seed=start)
        added = added.add_column(0, "id", pa.array(range(start, start + 30)).cast(schema.field("id").type))
        added = added.select(schema.names).cast(schema)
        who.write_dataset(added, path, mode="append")
        table = assert_both_read(path)
        assert table.num_rows == count + 30
        other.dataset(path).delete(f"id >= {start + 5} and id < {start + 11} or id = 17")
        after = assert_both_read(path)
        gone = np.isin(table["id"].to_numpy(), [*range(start + 5, start + 11), 17])
        assert after.num_rows == int((~gone).sum())
        assert lance.dataset(path).count_rows("id >= 1003") == lance_dataset.dataset(path).count_rows("id >= 1003")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("creator", [lance_dataset, lance], ids=["ours", "reference"])
@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_by_the_reference(tmp_path: Path, change: str, creator: object, stable: bool) -> None:
    path = tmp_path / "t"
    creator.write_dataset(
        _rows(0, 100), path, max_rows_per_file=40, enable_stable_row_ids=stable, data_storage_version="2.0"
    )
    lance_dataset.dataset(path).delete("id = 33")
    lance.dataset(path).delete("id in (50, 51)")
    CHANGES[change](lance.dataset(path))
    assert_both_read(path)
    _go_on(path)
    if change == "add_nested_null":
        with pytest.raises(OSError, match="does not encode struct validity"):
            _compact(lance.dataset(path))  # the missing structs are null, and it cannot write those
        return
    _compact(lance.dataset(path))
    assert_both_read(path)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_an_index_stays_usable(tmp_path: Path, kind: str, stable: bool) -> None:
    path = tmp_path / "t"
    lance_dataset.write_dataset(_rows(0, 3_000), path, max_rows_per_file=1_000, enable_stable_row_ids=stable)
    lance.dataset(path).create_scalar_index("id", kind, name="by_id")
    lance_dataset.write_dataset(_rows(3_000, 100), path, mode="append")
    lance_dataset.dataset(path).delete("id >= 10 and id < 20")
    dataset = lance.dataset(path)
    assert [index.name for index in dataset.describe_indices()] == ["by_id"]
    plan = dataset.scanner(filter="id = 2500").explain_plan()
    assert "ScalarIndexQuery" in plan
    for predicate, count in (("id = 2500", 1), ("id = 15", 0), ("id < 30", 20), ("id >= 2990", 110)):
        assert dataset.count_rows(predicate) == count
        assert lance_dataset.dataset(path).count_rows(predicate) == count
    dataset.optimize.optimize_indices()
    lance_dataset.dataset(path).delete("id = 3005")
    dataset = lance.dataset(path)
    assert dataset.count_rows("id >= 2990") == lance_dataset.dataset(path).count_rows("id >= 2990") == 109
    statistics = dataset.stats.index_stats("by_id")
    assert statistics["num_unindexed_rows"] == 0
    assert_both_read(path)


def test_a_vector_index_stays_usable(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rng = np.random.default_rng(0)

    def vectors(start: int, count: int) -> pa.Table:
        values = pa.array(rng.normal(size=count * 8).astype("f4"))
        return pa.table({"id": range(start, start + count), "v": pa.FixedSizeListArray.from_arrays(values, 8)})

    lance_dataset.write_dataset(vectors(0, 1_000), path)
    lance.dataset(path).create_index("v", "IVF_FLAT", num_partitions=4)
    lance_dataset.write_dataset(vectors(1_000, 10), path, mode="append")
    lance_dataset.dataset(path).delete("id = 500")
    dataset = lance.dataset(path)
    for wanted in (3, 1_005):
        query = dataset.to_table(filter=f"id = {wanted}")["v"][0].values
        found = dataset.to_table(nearest={"column": "v", "q": query, "k": 5, "nprobes": 4})
        assert found["id"][0].as_py() == wanted
        assert 500 not in found["id"].to_pylist()
    assert_both_read(path)
