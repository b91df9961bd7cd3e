"""Tests of files on other machines: independent requests are sent together, within bounds."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import sampler
from lance_dataset.api.dataset.settings import DatasetBasePath
from lance_dataset.io import local
from lance_dataset.io.local_input import PlainInput
from lance_dataset.read.holding import Holding
from lance_dataset.read.projection import project
from lance_dataset.scan import scan, strategy
from lance_dataset.scan.request import ScanRequest


class Reads:
    """A counter of threads that read at the same time; each read takes a while."""

    def __init__(self) -> None:
        self.most = 0
        self._reading: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._reading[threading.get_ident()] += 1
            self.most = max(self.most, len(self._reading))
        time.sleep(0.003)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._reading -= Counter([threading.get_ident()])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Put all files on another machine: reads of a file wait, and one processor decodes."""
    found = Reads()
    read, fetch = PlainInput.read, PlainInput._fetch_all

    def slow_read(self: PlainInput, *given: Any) -> Any:
        with found:
            return read(self, *given)

    def slow_fetch(self: PlainInput, *given: Any) -> Any:
        with found:
            return fetch(self, *given)

    monkeypatch.setenv("LANCE_MMAP", "0")
    monkeypatch.setenv("LANCE_CPU_THREADS", "1")
    monkeypatch.setattr(PlainInput, "read", slow_read)
    monkeypatch.setattr(PlainInput, "_fetch_all", slow_fetch)
    monkeypatch.setattr(local, "is_network_file", lambda descriptor, device: True)
    return found


def opened(path: Path) -> lance_dataset.LanceDataset:
    return lance_dataset.LanceDataset(path, session=lance_dataset.Session())


def table(rows: int) -> pa.Table:
    numbers = np.random.default_rng(1).integers(0, 1 << 40, rows)
    return pa.table({"id": np.arange(rows), "n": numbers, "s": [f"text {number}" for number in numbers]})


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_small_fragments(tmp_path: Path, reads: Reads, version: str) -> None:
    """Reads of small columns wait together, and so do reads of the fragments of one column of a window."""
    data = table(400)
    lance_dataset.write_dataset(data, tmp_path / "d", max_rows_per_file=40, data_storage_version=version)
    reads.most = 0
    assert opened(tmp_path / "d").to_table() == data
    assert reads.most > 3
    dataset = opened(tmp_path / "d")
    assert dataset.count_rows(filter="n >= 0") == 400
    reads.most = 0
    assert dataset.count_rows(filter="s >= 'text'") == 400  # one column of one window
    assert reads.most > 3
    reads.most = 0
    assert opened(tmp_path / "d").to_table(filter="id % 40 < 2").num_rows == 20
    assert reads.most > 3


@pytest.mark.parametrize(
    "scan",
    [
        lambda dataset: dataset.to_table().num_rows,
        lambda dataset: sum(batch.num_rows for batch in dataset.to_batches()),
        lambda dataset: dataset.count_rows(filter="n >= 0"),
        lambda dataset: dataset.to_table(columns=["s"], filter="n >= 0").num_rows,
    ],
    ids=["table", "batches", "count", "filter"],
)
def test_files_are_opened_together(
    tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch, scan: Callable[[Any], int]
) -> None:
    """Every file is opened and read once, and many of them at the same time."""
    lance_dataset.write_dataset(table(960), tmp_path / "d", max_rows_per_file=20, data_storage_version="2.2")
    opened_paths: Counter[str] = Counter()
    init = PlainInput.__init__

    def counted(self: PlainInput, path: str, *given: Any, **options: Any) -> None:
        opened_paths[path] += path.endswith(".lance")
        init(self, path, *given, **options)

    monkeypatch.setattr(PlainInput, "__init__", counted)
    dataset = opened(tmp_path / "d")
    dataset.io_stats_incremental()
    reads.most = 0
    assert scan(dataset) == 960
    assert reads.most > 20
    assert set(opened_paths.values()) <= {0, 1}
    sizes = sum(file.stat().st_size for file in (tmp_path / "d" / "data").iterdir())
    assert dataset.io_stats_incremental().read_bytes < 2 * sizes  # the end of a file holds all of a small one


@pytest.mark.parametrize("rows", [1, 70], ids=["few", "announced"])
def test_takes_open_files_together(tmp_path: Path, reads: Reads, rows: int) -> None:
    """The first take from many fragments waits for all their files at the same time, and again for all their rows."""
    data = table(40 * 100)
    lance_dataset.write_dataset(data, tmp_path / "d", max_rows_per_file=100, data_storage_version="2.2")
    wanted = [100 * number + row for number in range(40) for row in range(rows)]
    dataset = opened(tmp_path / "d")
    dataset.io_stats_incremental()
    reads.most = 0
    assert dataset.take(wanted) == data.take(wanted)
    assert reads.most > 20
    assert dataset.io_stats_incremental().read_iops <= 3 * 40 * (1 + len(data.schema))


def test_takes_from_mixed_base_paths(tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    """A take from local fragments does not make later takes from fragments on another machine wait one by one."""
    bases = [DatasetBasePath(str(tmp_path / "far"), name="far", is_dataset_root=False)]
    (tmp_path / "far").mkdir()
    dataset = lance_dataset.write_dataset(table(20), tmp_path / "d", initial_bases=bases)
    lance_dataset.write_dataset(table(300), dataset, mode="append", target_bases=["far"], max_rows_per_file=10)
    monkeypatch.setattr(PlainInput, "is_remote", property(lambda self: "/far/" in self.path))
    dataset = opened(tmp_path / "d")
    assert dataset.take([0, 19])["id"].to_pylist() == [0, 19]
    reads.most = 0
    assert dataset.take(list(range(20, 320, 10)))["id"].to_pylist() == list(range(0, 300, 10))
    assert reads.most > 10


def test_whole_tables_keep_to_the_buffer(tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more fragments are fetched at the same time than the buffer has room for."""
    data, fetch, fetching = table(200), Holding.fetch, Reads()
    lance_dataset.write_dataset(data, tmp_path / "d", max_rows_per_file=20, data_storage_version="2.2")
    monkeypatch.setattr(scan, "_FEW_FRAGMENTS", 1000)

    def slow_fetch(*given: Any) -> Any:
        with fetching:
            return fetch(*given)

    monkeypatch.setattr(Holding, "fetch", slow_fetch)
    for options, bound in (({"io_buffer_size": 1}, range(1, 2)), ({}, range(4, 66))):
        fetching.most = 0
        assert opened(tmp_path / "d").to_table(**options) == data
        assert fetching.most in bound


def test_counts_and_limited_scans_keep_to_the_buffer(
    tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(20_000)
    lance_dataset.write_dataset(data, tmp_path / "d", data_storage_version="2.0")
    monkeypatch.setattr(strategy, "PIECE_BYTES", 1 << 13)
    for options, bound in (({}, 16), ({"io_buffer_size": 1}, 1)):
        dataset = opened(tmp_path / "d")
        dataset.to_table(columns=["id"], limit=1)
        reads.most = 0
        assert dataset.scanner(columns=[], filter="n % 2 >= 0", with_row_id=True, **options).count_rows() == 20_000
        assert dataset.to_table(columns=["id"], filter="n >= 0", offset=19_000, limit=10, **options).num_rows == 10
        assert (reads.most == 1) if bound == 1 else (2 < reads.most <= bound)


def test_plan(tmp_path: Path, reads: Reads) -> None:
    """The plan states as many windows as threads wait."""
    lance_dataset.write_dataset(table(100), tmp_path / "d")
    dataset = opened(tmp_path / "d")
    request = ScanRequest(dataset.snapshot.scanned_schema, project(dataset.snapshot.scanned_schema, ["id"]))
    chosen = strategy.strategy(dataset.snapshot.reader, request)
    assert (chosen.waits, chosen.ahead) == (True, 15)  # besides the next one
    assert "up to 16 of them fetched at the same time" in dataset.scanner().explain_plan(verbose=True)


def test_buffers(tmp_path: Path) -> None:
    """A buffer may be larger than the usual one, but not than a limit of memory allows."""
    dataset = lance_dataset.write_dataset(table(100), tmp_path / "d")
    schema, size = dataset.snapshot.scanned_schema, 1 << 30
    for options, expected in (
        ({}, 128 << 20),
        ({"io_buffer_size": size}, size),
        ({"io_buffer_size": 1 << 10}, 1 << 10),
        ({"io_buffer_size": size, "memory_limit": 64 << 20}, 8 << 20),
    ):
        request = ScanRequest(schema, project(schema, None), **options)
        assert strategy.strategy(dataset.snapshot.reader, request).buffer_bytes == expected


def test_base_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One remote base path makes a scan wait, wherever the first fragment is."""
    bases = [DatasetBasePath(str(tmp_path / "far"), name="far", is_dataset_root=False)]
    (tmp_path / "far").mkdir()
    dataset = lance_dataset.write_dataset(table(20), tmp_path / "d", initial_bases=bases)
    lance_dataset.write_dataset(table(10), dataset, mode="append", target_bases=["far"])
    monkeypatch.setenv("LANCE_MMAP", "0")
    monkeypatch.setattr(PlainInput, "is_remote", property(lambda self: "/far/" in self.path))
    dataset = opened(tmp_path / "d")
    schema = dataset.snapshot.scanned_schema
    assert [fragment.is_remote for fragment in dataset.snapshot.reader.fragments] == [False, True]
    for fragments, waits in ((None, True), ((0,), False), ((1,), True), ((0, 1), True)):
        request = ScanRequest(schema, project(schema, None), fragments=fragments)
        assert strategy.strategy(dataset.snapshot.reader, request).waits == waits
    assert dataset.snapshot.reader.is_remote
    assert dataset.take([0, 25])["id"].to_pylist() == [0, 5]
    assert dataset.to_table()["id"].to_pylist() == [*range(20), *range(10)]


def test_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests count before neighbours are joined, and fragments only if rows of them are read."""
    monkeypatch.setenv("LANCE_MMAP", "0")
    lance_dataset.write_dataset(table(30), tmp_path / "d", max_rows_per_file=10)
    found: list[Any] = []
    dataset = opened(tmp_path / "d")
    dataset.scanner(scan_stats_callback=found.append).to_table()
    dataset.scanner(filter="_rowid < 3", scan_stats_callback=found.append).to_table()
    dataset.scanner(filter="_rowid > 4294967296 and n >= 0", scan_stats_callback=found.append).to_table()
    assert [each.all_counts["fragments_scanned"] for each in found] == [3, 1, 2]
    assert found[0].requests > found[0].iops > 0


@pytest.mark.parametrize("ahead", [1, 8])
def test_samplers(tmp_path: Path, reads: Reads, ahead: int) -> None:
    """Besides the current batch, as many batches are fetched at the same time as are to be read ahead."""
    data = table(20_000)
    lance_dataset.write_dataset(data, tmp_path / "d", data_storage_version="2.0")
    dataset = opened(tmp_path / "d")
    dataset.take([0], columns=["id"])
    reads.most = 0
    batches = sampler.ShardedBatchSampler(0, 1)(dataset, batch_size=1_000, columns=["id"], batch_readahead=ahead)
    assert [row for batch in batches for row in batch["id"].to_pylist()] == list(range(20_000))
    assert (reads.most <= 2) if ahead == 1 else (reads.most > 3)


def test_query_options(tmp_path: Path) -> None:
    """SQL queries accept and check the read options of scans."""
    builder = lance_dataset.write_dataset(table(3), tmp_path / "d").sql("select * from dataset")
    for error, call in (
        (TypeError, lambda: builder.batch_size(None)),  # type: ignore[arg-type]
        (TypeError, lambda: builder.with_row_id(1)),  # type: ignore[arg-type]
        (ValueError, lambda: builder.batch_size(1 << 32)),
        (ValueError, lambda: builder.batch_size(0)),
        (ValueError, lambda: builder.blob_handling("zzz")),
    ):
        with pytest.raises(error):
            call()
