"""Tests of shards whose stores lose answers, and of scans, flushes and changed columns while others write."""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.memwal.shards import SHARD, keys, new_table, rows, seen, values

import lance_dataset
from lance_dataset.changes.columns import alter_columns
from lance_dataset.errors import CommitConflictError, InvalidInputError, StorageError, UnsupportedError
from lance_dataset.io.local import LocalStore
from lance_dataset.memwal import opening, writing
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.schemas import one_batch
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.writing import WriterCore


@pytest.mark.parametrize("suffix", [".binpb", ".arrow", ".manifest"])
def test_answers_that_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A file that was written although the store reports a failure neither doubles rows nor damages the shard."""
    new_table(tmp_path / "t", {0: "old"})
    writer = lance_dataset.dataset(tmp_path / "t").mem_wal_writer(SHARD)
    original, lost = LocalStore.put_if_absent, list[str]()

    def losing(store: LocalStore, path: str, data: bytes) -> None:
        original(store, path, data)
        if path.endswith(suffix) and not lost:
            lost.append(path)
            raise StorageError("the connection broke")

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put_if_absent", losing)
        writer.put(rows({1: "a"}))
        writer.flush()
    assert lost
    writer.put(rows({2: "b"}))
    writer.close()
    assert seen(tmp_path / "t") == {0: "old", 1: "a", 2: "b"}
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert [list(each.sstables) for each in dataset.mem_wal_snapshots()] == [[1, 2]]
    dataset.merge_mem_wal()
    assert values(lance_dataset.dataset(tmp_path / "t").to_table()) == {0: "old", 1: "a", 2: "b"}


def test_puts_while_a_scan_is_read(tmp_path: Path) -> None:
    """A scan shows the rows of the moment when it began, also if they are replaced before it is read."""
    before = {1: "a", 2: "b", 9: "z"}
    with new_table(tmp_path / "t", {1: "a", 2: "b"}).mem_wal_writer(SHARD) as writer:
        writer.put(rows({9: "z"}))
        reader = writer.lsm_scanner().to_reader()
        found = [reader.read_next_batch()]
        writer.put(rows({1: "A"}))
        writer.delete(keys(2))
        found += list(reader)
        assert values(pa.Table.from_batches(found)) == before
        assert values(writer.lsm_scanner().to_table()) == {1: "A", 9: "z"}


def test_flush_ends_while_others_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush waits for the rows of its begin, not for those that are put meanwhile."""
    writer = new_table(tmp_path / "t").mem_wal_writer(SHARD, max_memtable_rows=1)
    original, ended, gate = WriterCore.publish, threading.Event(), threading.Lock()
    more: list[int] = []

    def publish(core: WriterCore, memtable: Memtable) -> None:
        original(core, memtable)
        with gate:
            if len(more) < 40 and not ended.is_set():
                more.append(len(more) + 10)
                writer.put(rows({more[-1]: "more"}))

    monkeypatch.setattr(WriterCore, "publish", publish)
    writer.put(rows({1: "a"}))
    writer.flush()
    assert len(more) < 40
    with gate:
        ended.set()
    writer.close()
    assert set(seen(tmp_path / "t")) == {1, *more}


def test_puts_after_a_failure_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts that wait for a flush that fails raise its error, and go on by themselves when the store works again."""
    writer = new_table(tmp_path / "t").mem_wal_writer(SHARD, max_memtable_rows=1, max_unflushed_memtable_bytes=1)
    original, broken = WriterCore.publish, threading.Event()

    def publish(core: WriterCore, memtable: Memtable) -> None:
        if broken.is_set():
            raise StorageError("the store is away")
        original(core, memtable)

    monkeypatch.setattr(WriterCore, "publish", publish)
    monkeypatch.setattr(writing, "_FLUSH_DELAY", 0.001)
    broken.set()
    writer.put(rows({1: "a"}))
    with pytest.raises(StorageError, match="is away"):
        writer.put(rows({2: "b"}))
    broken.clear()
    for attempt in range(100):
        try:
            writer.put(rows({3: "c"}))
            break
        except StorageError:  # of an attempt that had begun before
            assert attempt < 99
    writer.close()
    assert seen(tmp_path / "t") == {1: "a", 3: "c"}


def test_forked_child_does_not_wait(tmp_path: Path) -> None:
    """A child process, where nobody will free the locks of the writer, is told so at once."""
    writer = new_table(tmp_path / "t").mem_wal_writer(SHARD)
    core, held, done = writer._core, threading.Event(), threading.Event()

    def hold() -> None:
        with core._state:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    process, core._process = core._process, -1
    try:
        for call in (lambda: writer.put(rows({1: "a"})), writer.flush, writer.memtable_stats):
            with pytest.raises(InvalidInputError, match="another process"):
                call()
        writer.abort()
        writer.close()
    finally:
        core._process = process
        done.set()
        thread.join()
    writer.put(rows({1: "a"}))
    writer.close()
    assert seen(tmp_path / "t") == {1: "a"}


@pytest.mark.parametrize("column", ["v", "id"])
def test_types_that_change(tmp_path: Path, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of a column whose type was changed are not lost without a word, neither in scans nor in merges.

    Such changes are refused; a writer that does not know of the shards may make them.
    """
    path = tmp_path / "t"
    monkeypatch.setattr(alter_columns, "_check_shards", lambda *_: None)
    with new_table(path, {1: "a"}).mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "b"}))
        writer.flush()
        writer.put(rows({3: "c"}))
        kind = {"v": pa.large_string(), "id": pa.int32()}[column]
        lance_dataset.dataset(path).alter_columns({"path": column, "data_type": kind})
        with pytest.raises(UnsupportedError, match=f"'{column}' is another field now"):
            writer.lsm_scanner().to_table()
    with pytest.raises((UnsupportedError, lance_dataset.errors.CorruptFileError), match=column):
        lance_dataset.dataset(path).merge_mem_wal()
    dataset = lance_dataset.dataset(path)
    lance_dataset.dataset(path, version=dataset.version - 1).restore()
    lance_dataset.dataset(path).merge_mem_wal()
    assert values(lance_dataset.dataset(path).to_table()) == {1: "a", 2: "b", 3: "c"}


def test_names_that_are_used_again(tmp_path: Path) -> None:
    """A new column with the name that another one had before is empty, and the other one keeps its values."""
    path = tmp_path / "t"
    with new_table(path).mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "b"}))
    lance_dataset.dataset(path).alter_columns({"path": "v", "name": "w"})
    lance_dataset.dataset(path).add_columns(pa.field("v", pa.string()))
    lance_dataset.dataset(path).merge_mem_wal()
    assert lance_dataset.dataset(path).to_table(["id", "v", "w"]).to_pylist() == [{"id": 2, "v": None, "w": "b"}]


def test_claims_that_are_overtaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that stops while others claim, write, and collect the log is told that it is late, not of a damage."""
    path = tmp_path / "t"
    writer = new_table(path).mem_wal_writer(SHARD)
    writer.put(rows({1: "a"}))
    writer.abort()
    real = opening.log_end

    def overtaken(place: ShardPlace, manifest: ShardManifest) -> int:
        monkeypatch.setattr(opening, "log_end", real)
        with lance_dataset.dataset(path).mem_wal_writer(SHARD) as other:
            other.put(rows({2: "b"}))
        lance_dataset.dataset(path).merge_mem_wal()
        lance_dataset.dataset(path).cleanup_old_versions(dt.timedelta(0))
        assert lance_dataset.dataset(path).collect_mem_wal(older_than=dt.timedelta(0))["num_log_entries"]
        return real(place, manifest)

    monkeypatch.setattr(opening, "log_end", overtaken)
    with pytest.raises(CommitConflictError, match="fenced"):
        lance_dataset.dataset(path).mem_wal_writer(SHARD)
    with lance_dataset.dataset(path).mem_wal_writer(SHARD) as writer:
        assert values(writer.lsm_scanner().to_table()) == {1: "a", 2: "b"}


def test_more_text_than_an_array_holds() -> None:
    """Rows behind the first two GiB of a column are not left out."""
    size = 1 << 30
    data, offsets = pa.py_buffer(np.zeros(size, np.uint8)), pa.py_buffer(np.array([0, size], np.int32))
    part = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])
    table = pa.table({"v": pa.chunked_array([part, part, part])})
    assert one_batch(table.slice(1, 1), "rows").num_rows == 1
    with pytest.raises(UnsupportedError, match="2 GiB"):
        one_batch(table, "rows")
