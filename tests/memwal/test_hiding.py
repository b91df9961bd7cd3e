"""Tests of rows of the table that newer rows hide: many fragments, deleted rows, indices, and kept results."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.memwal.shards import OTHER, SCHEMA, SHARD, keys, rows, snapshots_for, values

import lance_dataset
from lance_dataset.mem_wal import LsmScanner
from lance_dataset.memwal.key_set import KeySet, newest_first
from lance_dataset.read.recent_sessions import forget_recent_sessions


def table_of_fragments(path: Path, *, stable: bool = False) -> lance_dataset.LanceDataset:
    """Return a table of keys 0 to 39 in four fragments, without key 5 and without the rows of the third."""
    content = rows(dict.fromkeys(range(40), "base"))
    dataset = lance_dataset.write_dataset(content, path, max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.delete("id = 5 OR (id >= 20 AND id < 30)")
    dataset.initialize_mem_wal()
    return dataset


def scanner_of(dataset: lance_dataset.LanceDataset) -> LsmScanner:
    return LsmScanner.from_snapshots(dataset, dataset.mem_wal_snapshots())


@pytest.mark.parametrize("stable", [False, True])
def test_whole_scans(tmp_path: Path, stable: bool) -> None:
    """Scans of everything, after each flush, agree with those of a filter and with pylance."""
    path = tmp_path / "t"
    dataset = table_of_fragments(path, stable=stable)
    model = {key: "base" for key in range(40) if key != 5 and not 20 <= key < 30}
    stages: list[tuple[dict[int, str], tuple[int, ...]]] = [
        ({3: "one", 5: "one", 25: "one", 70: "one"}, (0, 4)),
        (dict.fromkeys(range(10, 20), "two"), (35,)),  # all rows of a fragment
        ({3: "three"}, (70, 5)),
    ]
    for new, gone in stages:
        with dataset.mem_wal_writer(SHARD) as writer:
            writer.put(rows(new))
            writer.delete(keys(*gone))
            model = {key: text for key, text in (model | new).items() if key not in gone}
            assert values(writer.lsm_scanner().to_table()) == model
            assert writer.lsm_scanner().count_rows() == len(model)
        for _ in range(2):  # the second time what the first one found is used
            scanner = scanner_of(dataset).with_memtable_gen().with_row_address()
            found = scanner.to_table()
            assert values(found) == model
            assert pa.Table.from_batches(scanner.to_batches()) == found.combine_chunks()
            assert scanner_of(dataset).count_rows() == len(model)
            assert values(scanner_of(dataset).filter("id >= 0").to_table()) == model
            is_base = np.asarray(found["_memtable_gen"]) == 0
            ours = found.filter(pa.array(is_base))
            assert set(ours["v"].to_pylist()) == {"base"}
            assert [number >> 32 for number in ours["_rowaddr"].to_pylist()] == [
                number // 10 for number in ours["id"].to_pylist()
            ]
        theirs = lance.mem_wal.LsmScanner.from_snapshots(lance.dataset(str(path)), snapshots_for(path))
        assert values(theirs.to_table()) == model
    older = dataset.mem_wal_snapshots()[0]
    first = lance_dataset.mem_wal.ShardSnapshot(SHARD).with_sstable(1, older.sstables[1])
    before = values(LsmScanner.from_snapshots(dataset, [first]).to_table())  # fewer SSTables than the last time
    assert before[3] == "one"
    assert before[12] == "base"
    assert values(scanner_of(dataset).to_table()) == model


def test_growing_memtables(tmp_path: Path) -> None:
    """Scans between puts and deletions look at new rows only, and see all: before, at and after each rotation."""
    random = np.random.default_rng(7)
    dataset = table_of_fragments(tmp_path / "t")
    model = {key: "base" for key in range(40) if key != 5 and not 20 <= key < 30}
    with dataset.mem_wal_writer(SHARD, max_memtable_rows=9, durable_write=False) as writer:
        for step in range(30):
            chosen = random.choice(60, int(random.integers(1, 4)), replace=False).tolist()
            if random.random() < 0.3:
                writer.delete(keys(*chosen))
                model = {key: text for key, text in model.items() if key not in chosen}
            else:
                writer.put(rows(dict.fromkeys(chosen, str(step))))
                model |= dict.fromkeys(chosen, str(step))
            for _ in range(int(random.integers(0, 3))):
                assert values(writer.lsm_scanner().to_table()) == model
                assert writer.lsm_scanner().count_rows() == len(model)
                assert values(pa.Table.from_batches(writer.lsm_scanner().to_batches())) == model
                assert writer.lsm_scanner().project(["n"]).filter("n >= 0").to_table().num_rows == len(model)
    assert values(scanner_of(dataset).to_table()) == model


def test_two_writers_of_one_table(tmp_path: Path) -> None:
    """Memtables of different writers are told apart, though they have the same generation."""
    dataset = table_of_fragments(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD) as one, dataset.mem_wal_writer(OTHER) as two:
        one.put(rows({3: "one"}))
        two.put(rows({4: "two"}))
        for _ in range(2):
            first, second = (values(writer.lsm_scanner().to_table()) for writer in (one, two))
            assert (first[3], first[4]) == ("one", "base")
            assert (second[3], second[4]) == ("base", "two")


def test_nothing_keeps_a_closed_dataset(tmp_path: Path) -> None:
    """Results kept for whole scans are freed with the last handle, without the collector of cycles."""
    dataset = table_of_fragments(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({3: "new"}))
    opened = lance_dataset.dataset(tmp_path / "t")
    gc.collect()
    gc.disable()
    try:
        scanner_of(opened).to_table()
        reader = weakref.ref(opened.snapshot.reader)
        del opened
        forget_recent_sessions()
        assert reader() is None
    finally:
        gc.enable()


def test_everything_is_hidden(tmp_path: Path) -> None:
    dataset = table_of_fragments(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.delete(keys(*range(40)))
    assert scanner_of(dataset).to_table().num_rows == 0
    assert scanner_of(dataset).to_table().schema == dataset.schema
    assert scanner_of(dataset).count_rows() == 0
    assert dataset.count_rows() == 29


def test_few_keys_are_found_by_an_index(tmp_path: Path) -> None:
    content = pa.table([np.arange(5000), ["x"] * 5000, np.arange(5000, dtype=np.int32)], schema=SCHEMA)
    dataset = lance_dataset.write_dataset(content, tmp_path / "t")
    dataset.create_scalar_index("id", "BTREE")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({4711: "new"}))
        writer.delete(keys(3))
        found = values(writer.lsm_scanner().to_table())
        assert (len(found), found[4711], 3 in found) == (4999, "new", False)
    assert values(scanner_of(dataset).to_table()) == found


WORDS = ["", "a", "ab", "\0", "ä"]
CASES: list[tuple[list[Any], pa.DataType]] = [
    ([0, 1, -1, 2**63 - 1, -(2**63)], pa.int64()),
    ([0, 1, -1, 120, -128], pa.int8()),
    ([0, 1, 5, 2**64 - 1], pa.uint64()),
    ([7, 8, 9, 2**63 - 1], pa.int64()),
    ([-(2**63), 2 - 2**63, 5], pa.int64()),
    ([True, False], pa.bool_()),
    (WORDS, pa.string()),
    (WORDS, pa.large_string()),
    ([word.encode() for word in WORDS], pa.binary()),
]


@pytest.mark.parametrize(("some", "kind"), CASES)
@pytest.mark.parametrize("nulls", [False, True])
def test_sets_of_keys(some: list[Any], kind: pa.DataType, nulls: bool) -> None:
    """Nulls equal nulls, and integers do not wrap around."""
    everything = pa.array([*some, None] if nulls else some, kind)
    for count in range(len(everything) + 1):
        chosen = everything.slice(0, count)
        known = KeySet([chosen, chosen.slice(0, 1)])
        assert bool(known) == (count > 0)
        expected = [value in chosen.to_pylist() for value in everything.to_pylist()]
        assert known.holds(everything).to_pylist() == expected
        assert known.places(everything).tolist() == np.flatnonzero(expected).tolist()
        if nulls and not chosen.null_count:
            assert known.holds(everything.slice(len(everything) - 1)).to_pylist() == [False]


def test_newest_first() -> None:
    assert newest_first([]) == []
    parts = [pa.array([1, None, 3]), pa.array([], pa.int64()), pa.array([3, 4]), pa.array([None, 4, 5])]
    shown = [None if each is None else each.to_pylist() for each in newest_first(parts)]
    assert shown == [None, None, [False, True], [False, False, True]]


def test_small_sstables_keep_their_last_scan(tmp_path: Path) -> None:
    """A column that was renamed, dropped or changed since is not taken from it."""
    dataset = table_of_fragments(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({3: "new", 70: "new"}))
    for _ in range(2):
        found = scanner_of(dataset).filter("id IN (3, 70)").to_table()
        assert found["v"].to_pylist() == ["new", "new"]
    dataset.alter_columns({"path": "v", "name": "w"})
    dataset.add_columns(pa.field("v", pa.string()))
    found = scanner_of(dataset).filter("id IN (3, 70)").to_table()
    assert found.column_names == ["id", "w", "n", "v"]
    assert found["w"].to_pylist() == ["new", "new"]
    assert found["v"].to_pylist() == [None, None]
    assert scanner_of(dataset).project(["n"]).filter("id = 70").to_table().to_pydict() == {"n": [70], "id": [70]}
