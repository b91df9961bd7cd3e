"""Tests of merging SSTables into the table, of collecting files, and of readers meanwhile."""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.memwal.shards import OTHER, SCHEMA, SHARD, keys, new_table, rows, seen, snapshots_for, values

import lance_dataset
from lance_dataset.errors import CommitConflictError, CorruptFileError, InvalidInputError, MissingFileError
from lance_dataset.mem_wal import CompactedSsTable, LsmPointLookupPlanner, LsmScanner
from lance_dataset.memwal.details import find_details

NOW = dt.timedelta(0)


def three_generations(path: Path) -> dict[int, str]:
    dataset = new_table(path, dict.fromkeys(range(6), "base"))
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({0: "one", 10: "one", 11: "one"}))
        writer.delete(keys(1))
        writer.flush()
        writer.put(rows({0: "two", 1: "two"}))
        writer.delete(keys(10, 2))
        writer.flush()
        writer.delete(keys(11, 3, 99))
        writer.put(rows({12: "three"}))
    return {0: "two", 1: "two", 4: "base", 5: "base", 12: "three"}


def test_merges(tmp_path: Path) -> None:
    expected = three_generations(tmp_path / "t")
    assert seen(tmp_path / "t") == expected
    before = lance_dataset.dataset(tmp_path / "t")
    stale = before.mem_wal_snapshots()
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert dataset.merge_mem_wal() == {"num_sstables": 3, "num_upserted_rows": 3, "num_deleted_keys": 5}
    assert dataset.version == before.version + 1
    assert values(dataset.to_table()) == values(lance.dataset(str(tmp_path / "t")).to_table()) == expected
    assert seen(tmp_path / "t") == expected
    # Readers of the old version, and those of the new one with SSTables that it contains.
    assert values(LsmScanner.from_snapshots(before, stale).to_table()) == expected
    assert values(LsmScanner.from_snapshots(dataset, stale).to_table()) == expected
    assert dataset.merge_mem_wal()["num_sstables"] == 0
    version = dataset.version
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.delete(keys(4))
    assert dataset.merge_mem_wal(SHARD)["num_deleted_keys"] == 1
    assert dataset.version == version + 1
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.delete(keys(4))  # nothing to delete, and the progress is recorded nevertheless
    assert dataset.merge_mem_wal()["num_sstables"] == 1
    assert dataset.mem_wal_status()[0].merged_generation == 5


def test_pylance_sees_the_progress(tmp_path: Path) -> None:
    """Generations that we merged cannot be merged again by pylance, nor those that it merged by us."""
    expected = three_generations(tmp_path / "t")
    lance_dataset.dataset(tmp_path / "t").merge_mem_wal()
    theirs = lance.dataset(str(tmp_path / "t"))
    progress = lance.mem_wal.CompactedSsTable
    merge = theirs.merge_insert("id").when_matched_update_all()
    merge.mark_sstables_as_compacted([progress(SHARD, 3)])
    with pytest.raises(OSError, match="Stale SSTable compaction"):
        merge.execute(rows({0: "bad"}))
    with lance_dataset.dataset(tmp_path / "t").mem_wal_writer(SHARD) as writer:
        writer.put(rows({0: "four"}))
    theirs = lance.dataset(str(tmp_path / "t"))
    merge = theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.mark_sstables_as_compacted([progress(SHARD, 4)]).execute(rows({0: "four"}))
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert dataset.merge_mem_wal()["num_sstables"] == 0
    assert values(dataset.to_table()) == expected | {0: "four"}
    mine = dataset.merge_insert("id").when_matched_update_all()
    mine.mark_sstables_as_compacted([CompactedSsTable(SHARD, 4)])
    with pytest.raises(CommitConflictError, match="Stale SSTable compaction"):
        mine.execute(rows({0: "bad"}))
    assert values(dataset.to_table()) == expected | {0: "four"}


def test_pylance_reads_what_is_not_merged(tmp_path: Path) -> None:
    expected = three_generations(tmp_path / "t")
    theirs = lance.dataset(str(tmp_path / "t"))
    snapshots = snapshots_for(tmp_path / "t")
    assert values(lance.mem_wal.LsmScanner.from_snapshots(theirs, snapshots).to_table()) == expected
    planner = lance.mem_wal.LsmPointLookupPlanner(theirs, snapshots)
    ours = LsmPointLookupPlanner(
        lance_dataset.dataset(tmp_path / "t"), lance_dataset.dataset(tmp_path / "t").mem_wal_snapshots()
    )
    for key in (*range(14), 99):
        ids = keys(key)["id"].combine_chunks()
        found = ours.plan_lookup(ids).to_table()
        assert found == planner.plan_lookup(ids).to_table().cast(found.schema)
        assert values(found) == {name: text for name, text in expected.items() if name == key}


def test_many_merge_at_once(tmp_path: Path) -> None:
    """Several processes may merge the same shard; each generation is merged once."""
    expected = three_generations(tmp_path / "t")
    results = []

    def merge() -> None:
        results.append(lance_dataset.dataset(tmp_path / "t").merge_mem_wal()["num_sstables"])

    threads = [threading.Thread(target=merge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(results) == 3
    assert values(lance_dataset.dataset(tmp_path / "t").to_table()) == expected


def test_writers_go_on_during_merges(tmp_path: Path) -> None:
    """While a writer puts and others merge, append and compact, readers see each acknowledged row once."""
    path = tmp_path / "t"
    dataset = new_table(path, dict.fromkeys(range(50), "base"))
    done = threading.Event()
    errors: list[BaseException] = []

    def maintain() -> None:
        try:
            while not done.is_set():
                other = lance_dataset.dataset(path)
                other.merge_mem_wal()
                other.optimize.compact_files()
                other.cleanup_old_versions(NOW)
                other.collect_mem_wal(older_than=dt.timedelta(seconds=30))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=maintain)
    thread.start()
    model = dict.fromkeys(range(50), "base")
    with dataset.mem_wal_writer(SHARD, max_memtable_rows=10) as writer:
        for number in range(40):
            new = {(number * 7 + step) % 80: f"{number}" for step in range(3)}
            writer.put(rows(new))
            model |= new
            writer.delete(keys(number))
            model.pop(number, None)
            if number % 5 == 0:
                assert values(writer.lsm_scanner().to_table()) == model
    done.set()
    thread.join()
    assert errors == []
    dataset = lance_dataset.dataset(path)
    dataset.merge_mem_wal()
    assert values(dataset.to_table()) == model


def test_shards_are_apart(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t", {1: "a"})
    with dataset.mem_wal_writer(SHARD) as first, dataset.mem_wal_writer(OTHER) as second:
        first.put(rows({2: "b"}))
        second.put(rows({3: "c"}))
        second.flush()
        found = first.lsm_scanner(dataset.mem_wal_snapshots()).to_table()
        assert values(found) == {1: "a", 2: "b", 3: "c"}
    assert dataset.merge_mem_wal(OTHER)["num_sstables"] == 1
    assert values(dataset.to_table()) == {1: "a", 3: "c"}
    assert [each.merged_generation for each in dataset.mem_wal_status()] == [0, 1]


def test_collection(tmp_path: Path) -> None:
    """Files go when no version and no reader needs them, and fences and the last entry stay."""
    expected = three_generations(tmp_path / "t")
    shard = tmp_path / "t/_mem_wal" / SHARD
    dataset = lance_dataset.dataset(tmp_path / "t")
    nothing = {"num_sstables": 0, "num_log_entries": 0, "num_manifests": 0}
    assert dataset.collect_mem_wal() == nothing  # everything is recent
    assert dataset.collect_mem_wal(older_than=NOW)["num_sstables"] == 0
    assert len(list((shard / "wal").iterdir())) == 1
    dataset.merge_mem_wal()
    assert dataset.collect_mem_wal(older_than=NOW)["num_sstables"] == 0  # old versions need them
    stale = dataset.mem_wal_snapshots()
    dataset.cleanup_old_versions(NOW)
    assert dataset.collect_mem_wal(older_than=NOW) == {"num_sstables": 3, "num_log_entries": 0, "num_manifests": 0}
    assert not list(shard.glob("*_gen_*"))
    assert seen(tmp_path / "t") == expected
    assert values(LsmScanner.from_snapshots(dataset, stale).to_table()) == expected
    dataset.validate()
    for number in range(3):
        for library in (lance, lance_dataset):
            with library.dataset(str(tmp_path / "t")).mem_wal_writer(SHARD) as writer:
                writer.put(rows({number: library.__name__}))
            lance_dataset.dataset(tmp_path / "t").collect_mem_wal(older_than=NOW)
    dataset = lance_dataset.dataset(tmp_path / "t")
    dataset.merge_mem_wal()
    assert values(dataset.to_table()) == expected | dict.fromkeys(range(3), "lance_dataset")


def test_indices_keep_sstables(tmp_path: Path) -> None:
    """SSTables stay while an index does not cover their rows, for searches of pylance."""
    three_generations(tmp_path / "t")
    dataset = lance_dataset.dataset(tmp_path / "t")
    dataset.create_scalar_index("id", "BTREE")
    dataset.merge_mem_wal()
    dataset.cleanup_old_versions(NOW)
    assert dataset.collect_mem_wal(older_than=NOW)["num_sstables"] == 0
    assert len(dataset.mem_wal_snapshots()[0].sstables) == 3


def test_missing_sstables(tmp_path: Path) -> None:
    three_generations(tmp_path / "t")
    dataset = lance_dataset.dataset(tmp_path / "t")
    snapshot = lance_dataset.mem_wal.ShardSnapshot(SHARD).with_sstable(9, "00000000_gen_9")
    with pytest.raises(MissingFileError, match="open the dataset and its shards anew"):
        LsmScanner.from_snapshots(dataset, [snapshot]).to_table()
    for name in ("", "..", "a/b", "a\\b"):
        with pytest.raises(InvalidInputError, match="not the name of a folder"):
            snapshot.with_sstable(1, name)


def test_validation(tmp_path: Path) -> None:
    """`validate` reads the shards, too."""
    three_generations(tmp_path / "t")
    dataset = lance_dataset.dataset(tmp_path / "t")
    dataset.validate()
    table = next((tmp_path / "t/_mem_wal" / SHARD).glob("*_gen_2"))
    data = next((table / "data").iterdir())
    data.write_bytes(data.read_bytes()[:-10])
    with pytest.raises(CorruptFileError, match=data.name):
        lance_dataset.dataset(tmp_path / "t").validate()


def test_branches(tmp_path: Path) -> None:
    """A branch has shards of its own."""
    dataset = new_table(tmp_path / "t", {1: "a"})
    branch = dataset.create_branch("dev")
    with branch.mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "b"}))
    assert (tmp_path / "t/tree/dev/_mem_wal" / SHARD).is_dir()
    assert dataset.mem_wal_status() == []
    branch.merge_mem_wal()
    assert values(branch.to_table()) == {1: "a", 2: "b"}
    assert values(lance_dataset.dataset(tmp_path / "t").to_table()) == {1: "a"}


def test_composite_keys(tmp_path: Path) -> None:
    key = "lance-schema:unenforced-primary-key"
    first = pa.field("id", pa.int64(), False, {key: "true", f"{key}:position": "2"})
    second = pa.field("v", pa.string(), False, {key: "true", f"{key}:position": "1"})
    schema = pa.schema([first, second, SCHEMA.field(2)])
    dataset = lance_dataset.write_dataset(rows({1: "a", 2: "b"}).cast(schema), tmp_path / "t")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(pa.table({"id": [1, 1], "v": ["a", "c"], "n": pa.array([7, 8], pa.int32())}, schema=schema))
        writer.delete(pa.table({"id": [2], "v": ["b"]}))
    snapshots = dataset.mem_wal_snapshots()
    expected = [("a", 1, 7), ("c", 1, 8)]

    def content(table: pa.Table) -> list[tuple[str, int, int]]:
        return sorted(zip(*(table[name].to_pylist() for name in ("v", "id", "n")), strict=True))

    assert content(LsmScanner.from_snapshots(dataset, snapshots).to_table()) == expected
    theirs = lance.mem_wal.LsmScanner.from_snapshots(lance.dataset(str(tmp_path / "t")), snapshots_for(tmp_path / "t"))
    assert content(theirs.to_table()) == expected
    wanted = pa.StructArray.from_arrays([pa.array(["c"]), pa.array([1])], ["v", "id"])
    planner = LsmPointLookupPlanner(dataset, snapshots)
    assert content(planner.plan_lookup(wanted).to_table()) == [("c", 1, 8)]
    assert "SsTable: generation=1" in planner.plan_lookup(wanted).explain()
    with pytest.raises(TypeError, match="StructArray"):
        planner.plan_lookup(pa.array([1]))
    dataset.merge_mem_wal()
    assert content(lance.dataset(str(tmp_path / "t")).to_table()) == expected


@pytest.mark.parametrize(("key", "error"), [([], ValueError), ([1, 2], ValueError), (["x"], TypeError)])
def test_refused_keys(tmp_path: Path, key: list[object], error: type[Exception]) -> None:
    planner = LsmPointLookupPlanner(new_table(tmp_path / "t"), [])
    with pytest.raises(error):
        planner.plan_lookup(pa.array(key))
    with pytest.raises(TypeError, match="Array"):
        planner.plan_lookup(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("library", [lance, lance_dataset], ids=["pylance", "ours"])
def test_progress_of_indices(tmp_path: Path, library: Any) -> None:
    """An index is credited with what was compacted when it covers all fragments, by both in the same commits."""
    uri = str(tmp_path / "t")
    dataset = library.write_dataset(rows(dict.fromkeys(range(6), "base")), uri)
    dataset.create_scalar_index("n", "BTREE")
    dataset.initialize_mem_wal()
    seen_progress = []

    def note() -> None:
        details = find_details(lance_dataset.dataset(uri).snapshot.manifest)
        assert details is not None
        seen_progress.append((dict(details.compacted), {name: dict(each) for name, each in details.caught_up.items()}))

    for generation in (1, 2):
        merge = library.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.mark_sstables_as_compacted([library.mem_wal.CompactedSsTable(SHARD, generation)])
        merge.execute(rows({1: "new", 100 + generation: "new"}))
        note()
    library.dataset(uri).optimize.optimize_indices()
    note()
    library.dataset(uri).delete("id = 3")
    note()
    library.write_dataset(rows({200: "more"}), uri, mode="append")
    note()
    one, two = {SHARD: 1}, {SHARD: 2}
    assert seen_progress == [(one, {}), (two, {}), *[(two, {"n_idx": two})] * 3]


def test_collection_after_indices_caught_up(tmp_path: Path) -> None:
    three_generations(tmp_path / "t")
    dataset = lance_dataset.dataset(tmp_path / "t")
    dataset.create_scalar_index("id", "BTREE")
    dataset.merge_mem_wal()
    dataset.optimize.optimize_indices()
    dataset.cleanup_old_versions(NOW)
    assert dataset.collect_mem_wal(older_than=NOW)["num_sstables"] == 3


@pytest.mark.parametrize("library", [lance, lance_dataset], ids=["pylance", "ours"])
def test_computed_columns_are_refused(tmp_path: Path, library: Any) -> None:
    """Columns that rows of shards would lack cannot be added; columns of nulls can."""
    new_table(tmp_path / "t", {1: "a"})
    dataset = library.dataset(str(tmp_path / "t"))
    reader = pa.RecordBatchReader.from_batches(pa.schema([("z", pa.int64())]), [pa.record_batch({"z": [1]})])
    for columns in ({"z": "id + 1"}, reader, lambda batch: pa.record_batch({"z": batch["id"]})):
        with pytest.raises(OSError, match="cannot add a computed column to a table with a MemWAL attached"):
            dataset.add_columns(columns)
    dataset.add_columns(pa.field("z", pa.int64()))
    assert dataset.to_table()["z"].to_pylist() == [None]


@pytest.mark.parametrize("library", [lance, lance_dataset], ids=["pylance", "ours"])
def test_changes_of_columns_are_refused(tmp_path: Path, library: Any) -> None:
    """Columns are not changed if rows of shards could not be read or merged afterwards; other changes are made."""
    path = tmp_path / "t"
    with new_table(path, {1: "a"}).mem_wal_writer(SHARD) as writer:
        writer.put(pa.table([[2], [None], [2]], schema=rows({}).schema))
    for change, message in (
        ({"path": "v", "data_type": pa.large_string()}, "cannot change a column's type"),
        ({"path": "v", "data_type": pa.string()}, "cannot change a column's type"),
        ({"path": "v", "nullable": False}, "cannot make a column non-nullable"),
        ({"path": "id", "name": "key"}, "cannot rename a primary key column"),
    ):
        with pytest.raises(OSError, match=f"{message} on a table with a MemWAL attached"):
            library.dataset(str(path)).alter_columns(change)
    library.dataset(str(path)).alter_columns({"path": "v", "name": "w", "nullable": True})
    lance_dataset.dataset(path).merge_mem_wal()
    assert library.dataset(str(path)).to_table()["w"].to_pylist() == ["a", None]
