"""Tests of counts of reads and writes, compared with the reference where both do the same."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.stores.s3_proxy import proxied
from support.stores.s3_server import S3Server

import lance_dataset as ours
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.resolve import resolve
from lance_dataset.io.statistics import IOCounter, IOStats


def test_incremental_starts_again() -> None:
    counter = IOCounter()
    counter.add_read(10)
    counter.add_read(5)
    counter.add_write(7)
    assert counter.snapshot() == counter.snapshot() == IOStats(2, 15, 1, 7)
    assert counter.incremental() == IOStats(2, 15, 1, 7)
    assert counter.incremental() == counter.snapshot() == IOStats()


def test_threads_lose_no_counts() -> None:
    counter = IOCounter()
    threads = [threading.Thread(target=lambda: [counter.add_read(3) for _ in range(20_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.snapshot() == IOStats(80_000, 240_000)


@pytest.mark.parametrize("kind", ["mapped", "plain", "memory"])
def test_what_a_store_reads_and_writes(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else LocalStore(mmap=kind == "mapped")
    path = str(tmp_path / "f")
    output = store.open_output(path)
    output.write(b"x" * 100_000)
    output.close()
    assert store.statistics.incremental() == IOStats(0, 0, 1, 100_000)
    source = store.open_input(path)
    source.read(10, 1000)
    source.read_ranges([(0, 10), (50_000, 10)])
    found = store.statistics.incremental()
    assert found.read_bytes >= 1020
    assert 2 <= found.read_iops <= 3  # near ranges may be read together
    assert len(store.read(path)) == 100_000
    store.put(path + "2", b"abc")
    store.put_if_absent(path + "3", b"abcd")
    assert store.statistics.incremental() == IOStats(1, 100_000, 2, 7)


def test_copies_for_other_processes_start_from_nothing() -> None:
    store = LocalStore()
    store.statistics.add_read(5)
    assert copy.copy(store).statistics is store.statistics
    assert pickle.loads(pickle.dumps(store)).statistics.snapshot() == IOStats()


def test_every_handle_counts_for_itself(tmp_path: Path) -> None:
    first, second = (resolve(str(tmp_path))[0] for _ in range(2))
    first.put(str(tmp_path / "a"), b"abc")
    assert (first.statistics.written_bytes, second.statistics.written_bytes) == (3, 0)


def test_scans_beside_the_reference(tmp_path: Path) -> None:
    table = pa.table({"a": range(200_000), "b": [float(n) * 1.37 for n in range(200_000)]})
    lance.write_dataset(table, str(tmp_path / "t"), data_storage_version="2.2")
    for columns in (["a"], ["b"], ["a", "b"]):
        reference = lance.dataset(str(tmp_path / "t"))
        reference.to_table(columns=columns)
        mine = ours.dataset(str(tmp_path / "t"))
        mine.to_table(columns=columns)
        expected, found = reference.io_stats_snapshot(), mine.snapshot.store.statistics.snapshot()
        assert 0.8 * expected.read_bytes < found.read_bytes < 1.2 * expected.read_bytes + 10_000
        assert found.write_iops == found.written_bytes == 0


def test_requests_of_a_cloud_store_are_counted(s3_server: S3Server) -> None:
    bucket = s3_server.new_bucket()
    ours.write_dataset(pa.table({"a": range(300_000)}), f"s3://{bucket}/t", storage_options=s3_server.options)
    with proxied(s3_server) as proxy:
        dataset = ours.dataset(f"s3://{bucket}/t", storage_options=proxy.server.options)
        dataset.snapshot.store.statistics.incremental()
        before = proxy.count("GET")
        assert dataset.to_table().num_rows == 300_000
        found = dataset.snapshot.store.statistics.incremental()
        assert found.read_iops == proxy.count("GET") - before
        dataset.delete("a < 5")
        assert dataset.snapshot.store.statistics.incremental().write_iops >= 3
