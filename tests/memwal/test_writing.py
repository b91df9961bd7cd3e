"""Tests of writers of shards: what puts do, when memtables are flushed, and what stops a writer."""

from __future__ import annotations

import multiprocessing
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from support.memwal.shards import OTHER, SCHEMA, SHARD, keys, new_table, rows, seen, values

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError, SchemaError, StorageError, UnsupportedError
from lance_dataset.io.local import LocalStore
from lance_dataset.mem_wal import LsmScanner


def test_writers_read_their_writes(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t", {1: "a", 2: "b"})
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "B", 3: "C"}))
        writer.delete(keys(1, 9))
        writer.put(rows({3: "D"}))
        assert values(writer.lsm_scanner().to_table()) == {2: "B", 3: "D"}
        assert writer.lsm_scanner().filter("v = 'C' OR v = 'b'").count_rows() == 0
        assert dataset.count_rows() == 2
    assert seen(tmp_path / "t") == {2: "B", 3: "D"}
    assert writer.stats()["put_count"] == 3


def test_columns_of_scans(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t", {1: "a", 2: "b", 5: "e"})
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "B"}))
        writer.flush()
        writer.put(rows({3: "C"}))
        scanner = writer.lsm_scanner().project(["v"]).with_memtable_gen().with_row_address()
        table = scanner.to_table()
        assert table.schema.names == ["v", "id", "_memtable_gen", "_rowaddr"]
        assert table["v"].to_pylist() == ["C", "B", "a", "e"]
        assert table["_memtable_gen"].to_pylist() == [2, 1, 0, 0]
        assert table["_rowaddr"].to_pylist() == [None, None, 0, 2]
        assert scanner.limit(2, 1).to_table()["v"].to_pylist() == ["B", "a"]
        assert scanner.limit(0).to_table().num_rows == 0
        assert scanner.to_batch().num_rows == 0
        assert scanner.limit(10, 4).to_batches() == []
        with pytest.raises(OSError, match="does not exist"):
            writer.lsm_scanner().project(["none"]).to_table()
        with pytest.raises(ValueError, match="none"):
            writer.lsm_scanner().filter("none = 1")
        with pytest.raises(OverflowError):
            writer.lsm_scanner().limit(-1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"id": [1], "v": ["x"]}), "no column 'n'"),
        (rows({1: "x"}).append_column("more", pa.array([1])), "'more'"),
        (rows({1: "x"}).set_column(1, "v", pa.array([1.5])), "v"),
        (pa.table({"id": pa.array([None], pa.int64()), "v": ["x"], "n": pa.array([1], pa.int32())}), "id"),
        (pa.table({"id": [1], "v": ["x"], "n": pa.array([None], pa.int32())}), "n"),
    ],
)
def test_rows_that_do_not_fit(tmp_path: Path, data: pa.Table, message: str) -> None:
    """Rows that do not fit are refused, and the writer goes on."""
    with new_table(tmp_path / "t").mem_wal_writer(SHARD) as writer:
        with pytest.raises(SchemaError, match=message):
            writer.put(data)
        writer.put(rows({5: "y"}))
        writer.put(rows({}))
        assert values(writer.lsm_scanner().to_table()) == {5: "y"}


def test_null_keys(tmp_path: Path) -> None:
    schema = SCHEMA.set(0, SCHEMA.field(0).with_nullable(True))
    dataset = lance_dataset.write_dataset(rows({}).cast(schema), tmp_path / "t")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        row = pa.table({"id": pa.array([1, None]), "v": ["x", "y"], "n": pa.array([1, 2], pa.int32())})
        with pytest.raises(SchemaError, match="part of the primary key, but 1 rows"):
            writer.put(row)
        with pytest.raises(SchemaError, match="part of the primary key"):
            writer.delete(row)
        with pytest.raises(SchemaError, match="lack the columns"):
            writer.delete(pa.table({"v": ["x"]}))


def test_ends_of_writers(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t")
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(rows({1: "a"}))
    writer.close()
    writer.close()
    for call in (lambda: writer.put(rows({1: "b"})), lambda: writer.put(rows({})), writer.lsm_scanner, writer.flush):
        with pytest.raises(InvalidInputError, match="closed"):
            call()
    assert writer.stats()["memtable_flush_rows"] == 1
    assert seen(tmp_path / "t") == {1: "a"}
    for shard in ("x", "", SHARD[:-1]):
        with pytest.raises(InvalidInputError, match="must be a UUID"):
            dataset.mem_wal_writer(shard)
    with pytest.raises(InvalidInputError, match="not initialized"):
        dataset.checkout_version(1).mem_wal_writer(SHARD)
    with pytest.raises(InvalidInputError, match="at least 1"):
        dataset.mem_wal_writer(SHARD, max_memtable_rows=0)


@pytest.mark.parametrize(
    ("options", "generations"),
    [({"max_memtable_rows": 3}, 5), ({"max_memtable_batches": 2}, 3), ({"max_memtable_size": 1}, 5), ({}, 1)],
)
def test_memtables_are_flushed_when_full(tmp_path: Path, options: dict[str, int], generations: int) -> None:
    dataset = new_table(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD, **options) as writer:  # type: ignore[arg-type]
        for number in range(5):
            writer.put(rows({number: "x", number + 100: "y"}))
    [shard] = dataset.mem_wal_snapshots()
    assert sorted(shard.sstables) == list(range(1, generations + 1))
    assert len(seen(tmp_path / "t")) == 10


def test_large_puts_are_cut(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t")
    many = rows(dict.fromkeys(range(1000), "x" * 20))
    with dataset.mem_wal_writer(SHARD, max_memtable_rows=300, max_wal_buffer_size=4000) as writer:
        writer.put(many)
        writer.put(many.slice(0, 10).to_batches(), schema=SCHEMA)
    assert writer.stats()["wal_flush_count"] > 5
    assert seen(tmp_path / "t") == dict.fromkeys(range(1000), "x" * 20)


def test_threads_share_entries(tmp_path: Path) -> None:
    """Puts of several threads are all kept, and those that wait at the same time share an entry of the log."""
    dataset = new_table(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD, max_memtable_rows=50) as writer:

        def put(thread: int) -> None:
            for number in range(25):
                writer.put(rows({thread * 1000 + number: str(thread)}))

        threads = [threading.Thread(target=put, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(values(writer.lsm_scanner().to_table())) == 200
        stats = writer.stats()
    assert stats["put_count"] == 200
    assert stats["wal_flush_count"] < 200
    assert len(seen(tmp_path / "t")) == 200


def test_relaxed_puts(tmp_path: Path) -> None:
    """Puts that do not wait are seen at once, and share entries of the log, which `close` completes."""
    dataset = new_table(tmp_path / "t")
    writer = dataset.mem_wal_writer(SHARD, durable_write=False, max_wal_flush_interval_ms=200)
    for number in range(100):
        writer.put(rows({number: "x"}))
    assert len(values(writer.lsm_scanner().to_table())) == 100
    writer.close()
    assert writer.stats()["wal_flush_count"] < 50
    with dataset.mem_wal_writer(SHARD, durable_write=False, max_wal_flush_interval_ms=10**9) as writer:
        writer.put(rows({0: "x"}))  # `close` does not wait for the interval
    assert len(seen(tmp_path / "t")) == 100


def test_backpressure(tmp_path: Path) -> None:
    """Writers wait for flushes instead of keeping more memtables than they may."""
    dataset = new_table(tmp_path / "t")
    most = 0
    with dataset.mem_wal_writer(SHARD, max_unflushed_memtable_bytes=1000, durable_write=False) as writer:
        for number in range(60):
            writer.put(rows({number: "x" * 100}))
            most = max(most, writer.memtable_stats()["retained_bytes"])
    assert most < 3000
    assert len(seen(tmp_path / "t")) == 60


def test_the_last_claim_wins(tmp_path: Path) -> None:
    """A second writer of a shard stops the first, keeps what it acknowledged, and nothing else is written by it."""
    dataset = new_table(tmp_path / "t")
    first = dataset.mem_wal_writer(SHARD, max_memtable_rows=2)
    for number in range(5):
        first.put(rows({number: "first"}))
    with dataset.mem_wal_writer(SHARD) as second, dataset.mem_wal_writer(OTHER) as other:
        assert len(values(second.lsm_scanner().to_table())) == 5
        with pytest.raises(CommitConflictError, match="Writer fenced"):
            first.put(rows({9: "late"}))
        with pytest.raises(CommitConflictError, match="Writer fenced"):
            first.put(rows({9: "late"}))
        with pytest.raises(CommitConflictError, match="Writer fenced"):
            first.close()
        other.put(rows({10: "other"}))
        second.put(rows({4: "second"}))
    assert seen(tmp_path / "t") == {0: "first", 1: "first", 2: "first", 3: "first", 4: "second", 10: "other"}


def test_flush_of_a_fenced_writer(tmp_path: Path) -> None:
    """A writer that was fenced cannot publish an SSTable, although it appends nothing to the log."""
    dataset = new_table(tmp_path / "t")
    first = dataset.mem_wal_writer(SHARD)
    first.put(rows({1: "a"}))
    dataset.mem_wal_writer(SHARD).close()
    with pytest.raises(CommitConflictError, match="Writer fenced"):
        first.close()
    assert seen(tmp_path / "t") == {1: "a"}
    assert dataset.mem_wal_status()[0].sstables == 1


class _Failing:
    """Makes a store fail in `put_if_absent` for paths with a text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, part: str, after: bool, times: int) -> None:
        self.calls = 0
        real = LocalStore.put_if_absent

        def put(store: LocalStore, path: str, data: bytes) -> None:
            if part in path and self.calls < times:
                self.calls += 1
                if after:
                    real(store, path, data)
                raise StorageError("the disk is full")
            real(store, path, data)

        monkeypatch.setattr(LocalStore, "put_if_absent", put)
        monkeypatch.setattr("lance_dataset.memwal.log._FIRST_DELAY", 0.001)
        monkeypatch.setattr("lance_dataset.memwal.writing._FLUSH_DELAY", 0.001)


@pytest.mark.parametrize("after", [False, True])
def test_failures_that_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """An entry whose write fails, or whose answer is lost, is written once."""
    dataset = new_table(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD) as writer:
        _Failing(monkeypatch, "/wal/", after, 2)
        writer.put(rows({1: "a"}))
        writer.put(rows({2: "b"}))
    assert seen(tmp_path / "t") == {1: "a", 2: "b"}
    assert len(list((tmp_path / "t/_mem_wal" / SHARD / "wal").iterdir())) == 2


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A put that cannot be logged fails, and so do later ones, until a new writer is opened; nothing is lost."""
    dataset = new_table(tmp_path / "t")
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(rows({1: "a"}))
    with monkeypatch.context() as patch:
        _Failing(patch, "/wal/", False, 100)
        with pytest.raises(StorageError, match="full"):
            writer.put(rows({2: "b"}))
    with pytest.raises(InvalidInputError, match="failed before"):
        writer.put(rows({3: "c"}))
    with pytest.raises(InvalidInputError, match="failed before"):
        writer.close()
    with dataset.mem_wal_writer(SHARD) as again:
        again.put(rows({4: "d"}))
    assert seen(tmp_path / "t") == {1: "a", 4: "d"}


def test_flushes_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a memtable that cannot be flushed stay readable and in the log; the next flush tries again."""
    dataset = new_table(tmp_path / "t")
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(rows({1: "a"}))
    with monkeypatch.context() as patch:
        _Failing(patch, "/manifest/", False, 100)
        with pytest.raises(StorageError, match="full"):
            writer.flush()
        writer.put(rows({2: "b"}))
        assert values(writer.lsm_scanner().to_table()) == {1: "a", 2: "b"}
    assert writer.stats()["memtable_flush_failures"] > 0
    writer.close()
    assert seen(tmp_path / "t") == {1: "a", 2: "b"}
    assert [each.log_rows for each in dataset.mem_wal_status()] == [0]


def _put_in_child(writer: lance_dataset.mem_wal.ShardWriter, answer: multiprocessing.SimpleQueue[str]) -> None:
    try:
        writer.put(rows({9: "child"}))
    except InvalidInputError as error:
        answer.put(str(error))


def test_forks(tmp_path: Path) -> None:
    """A writer does not work in a child of its process, in which both would write to the log."""
    writer = new_table(tmp_path / "t").mem_wal_writer(SHARD)
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    child = context.Process(target=_put_in_child, args=(writer, answer))
    child.start()
    child.join()
    assert "another process" in answer.get()
    writer.close()


@pytest.mark.parametrize(
    "column",
    [pa.field("x", pa.json_()), pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"})],
    ids=["json", "blob"],
)
def test_refused_columns(tmp_path: Path, column: pa.Field) -> None:
    schema = pa.schema([SCHEMA.field(0), column])
    dataset = lance_dataset.write_dataset([], tmp_path / "t", schema=schema)
    with pytest.raises(UnsupportedError, match="column 'x' holds blobs, JSON"):
        dataset.initialize_mem_wal()


def test_tables_without_a_key(tmp_path: Path) -> None:
    """Rows of tables without a key are appended; they cannot be deleted or scanned with their shards."""
    dataset = lance_dataset.write_dataset(pa.table({"x": [1]}), tmp_path / "t")
    dataset.initialize_mem_wal()
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(pa.table({"x": [1, 2]}))
        writer.put(pa.table({"x": [2]}))
        with pytest.raises(OSError, match="no primary key"):
            writer.delete(pa.table({"x": [2]}))
        with pytest.raises(ValueError, match="Dataset has no primary key"):
            writer.lsm_scanner()
    with pytest.raises(ValueError, match="Dataset has no primary key"):
        LsmScanner.from_snapshots(dataset, [])
    assert dataset.merge_mem_wal() == {"num_sstables": 1, "num_upserted_rows": 3, "num_deleted_keys": 0}
    assert sorted(dataset.to_table()["x"].to_pylist()) == [1, 1, 2, 2]
    assert dataset.merge_mem_wal()["num_sstables"] == 0


def test_relaxed_puts_reach_the_log(tmp_path: Path) -> None:
    """Rows that wait are logged in time, and at once if they are too many; a crash then does not lose them."""
    dataset = new_table(tmp_path / "t")
    writer = dataset.mem_wal_writer(SHARD, durable_write=False, max_wal_flush_interval_ms=20)
    writer.put(rows({1: "a"}))
    deadline = time.monotonic() + 30
    while writer.memtable_stats()["pending_wal_row_count"] and time.monotonic() < deadline:
        time.sleep(0.01)
    writer.abort()
    slow = {"durable_write": False, "max_wal_flush_interval_ms": 10**9}
    writer = dataset.mem_wal_writer(SHARD, max_wal_buffer_size=1000, **slow)  # type: ignore[arg-type]
    writer.put(rows(dict.fromkeys(range(10, 60), "x" * 50)))
    assert writer.memtable_stats()["pending_wal_row_count"] < 50
    logged = writer.memtable_stats()["row_count"] - writer.memtable_stats()["pending_wal_row_count"]
    writer.abort()
    with dataset.mem_wal_writer(SHARD) as writer:
        assert len(values(writer.lsm_scanner().to_table())) == logged


def test_messages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Statistics are logged, and shards that are left of a table that was overwritten."""
    caplog.set_level("INFO", logger="lance_dataset")
    dataset = new_table(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD, stats_log_interval_ms=1) as writer:
        for number in range(3):
            time.sleep(0.002)
            writer.put(rows({number: "x"}))
    assert "wal_flush_count" in caplog.text
    assert "earlier MemWAL" not in caplog.text
    dataset = lance_dataset.write_dataset(rows({7: "new"}), tmp_path / "t", mode="overwrite")
    assert dataset.mem_wal_index_details() is None
    dataset.initialize_mem_wal()
    assert "has shards of an earlier MemWAL" in caplog.text
