"""Tests of concurrent reads: results in order, the same errors as without, bounds kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as ours
from lance_dataset.io import local
from lance_dataset.io.local_input import PlainInput
from lance_dataset.io.mapping import Mapping
from lance_dataset.read.prefetch import announce, announce_numbers
from lance_dataset.scan import full_scan as whole
from lance_dataset.scan import strategy
from lance_dataset.threads.streams import stream
from lance_dataset.threads.waiting import fetch_pool, fetching, together


class Meter:
    """A counter of the tasks that run at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, result: int, seconds: float = 0.01) -> int:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(seconds)
        with self._lock:
            self.now -= 1
        return result


def test_results_are_in_order() -> None:
    meter = Meter()
    tasks = [partial(meter, number, 0.02 if number % 3 == 0 else 0.001) for number in range(20)]
    assert together(tasks, waiting=True) == list(range(20))
    assert meter.most > 1


def test_nothing_runs_elsewhere_that_need_not_wait() -> None:
    here = threading.get_ident()
    assert together([threading.get_ident] * 5, waiting=False) == [here] * 5
    assert together([threading.get_ident], waiting=True) == [here]


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    meter = Meter()

    def fail(number: int) -> int:
        raise ValueError(number)

    tasks: list[Callable[[], int]] = [partial(meter, 0), partial(fail, 1), partial(fail, 2), partial(meter, 3, 0.05)]
    with pytest.raises(ValueError, match="1"):
        together(tasks, waiting=True)
    assert meter.now == 0


def test_tasks_of_tasks_of_tasks_do_not_block_each_other() -> None:
    def nested(depth: int) -> int:
        if depth == 0:
            return 1
        return sum(together([partial(nested, depth - 1)] * (40 if depth == 3 else 5), waiting=True))

    assert nested(3) == 40 * 5 * 5


def test_several_callers_at_once() -> None:
    found: list[int] = []

    def call() -> None:
        found.append(sum(together([lambda: sum(together([lambda: 1] * 6, waiting=True))] * 20, waiting=True)))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [120] * 8


def test_streams_may_use_threads_that_wait() -> None:
    """Streams may use more waiting threads than there are processors, and their tasks do not block each other."""
    meter = Meter()

    def work(number: int) -> int:
        return sum(together([partial(meter, number, 0.01)] * 3, waiting=True))

    found = stream(fetching(work), range(40), ahead=16, pool=fetch_pool)
    assert list(found) == [3 * number for number in range(40)]
    assert meter.most > 8


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_scans_of_files_on_other_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Scans of remote files are right whatever is read at the same time, with few processors and small limits."""
    count = 30_000
    rng = np.random.default_rng(8)
    table = pa.table(
        {"id": np.arange(count), "a": rng.integers(0, 100, count), "s": [f"text {n % 777}" for n in range(count)]}
    )
    uri = str(tmp_path / "d")
    ours.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=4000).delete("id % 9 = 2")
    expected = ours.dataset(uri).to_table()
    monkeypatch.setenv("LANCE_MMAP", "0")
    monkeypatch.setenv("LANCE_CPU_THREADS", "1")
    monkeypatch.setattr(strategy, "PIECE_BYTES", 1 << 14)
    monkeypatch.setattr(whole, "_PARALLEL_BYTES", 1)
    fetched = set()
    read = PlainInput.read

    def noted(self: PlainInput, offset: int, length: int) -> pa.Buffer:
        fetched.add(threading.current_thread().name.rpartition("_")[0])
        time.sleep(0.001)  # else this thread may be done before the others start
        return read(self, offset, length)

    monkeypatch.setattr(PlainInput, "read", noted)
    monkeypatch.setattr(local, "is_network_file", lambda descriptor, device: True)
    dataset = ours.LanceDataset(uri, session=ours.Session())
    assert dataset.to_table() == expected
    assert any(name.startswith("lance-fetch") for name in fetched)
    for limit in (0, 3, 50, 100):
        kept = expected.filter(pa.array(expected["a"].to_numpy() < limit))
        for options in ({}, {"io_buffer_size": 1}, {"batch_readahead": 1}, {"late_materialization": False}):
            assert dataset.to_table(filter=f"a < {limit}", **options).equals(kept)
        loose = dataset.to_table(filter=f"a < {limit}", scan_in_order=False)
        assert loose.sort_by("id").equals(kept)
        assert dataset.count_rows(filter=f"a < {limit}") == kept.num_rows
    assert dataset.to_table(limit=7, offset=5000).equals(expected.slice(5000, 7))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_announcing_changes_nothing(tmp_path: object, version: str) -> None:
    """Announcing reads changes no result, for any column, rows in any order, and deleted rows between them."""
    count = 20_000
    table = pa.table(
        {
            "a": np.random.default_rng(1).integers(0, 10**9, count),
            "s": pa.array([None if n % 5 == 0 else f"text {n}" for n in range(count)]),
            "l": [[n] * (n % 4) for n in range(count)],
            "st": [{"x": n, "y": str(n)} for n in range(count)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(count * 8.0)), 8),
            "n": pa.nulls(count, pa.int32()),
            "d": pa.array(["a", "b", None, "c"] * (count // 4)).dictionary_encode(),
        }
    )
    dataset = ours.write_dataset(table, f"{tmp_path}/t", data_storage_version=version, max_rows_per_file=9000)
    dataset.delete("a % 10 = 3")
    reader = dataset.snapshot.reader
    fields = reader.manifest.schema.fields
    rows = np.random.default_rng(2).integers(0, dataset.count_rows(), 500)
    announce_numbers(reader.fragments, reader.live_starts, fields, rows)
    announce(reader.fragments[0], fields, rows % 9000)
    announce(reader.fragments[0], fields, np.empty(0, np.int64))
    left = table.filter(
        pa.compute.not_equal(
            pa.compute.subtract(table["a"], pa.compute.multiply(pa.compute.divide(table["a"], 10), 10)), 3
        )
    )
    assert dataset.take(rows.tolist()) == left.take(rows)


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_few_rows_load_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The system loads the surroundings of taken rows only if many rows are taken that no reader announces."""
    count = 50_000
    table = pa.table(
        {
            "id": np.arange(count),
            "n": pa.array([None if n % 7 == 0 else n for n in range(count)]),
            "s": [f"text {n}" for n in range(count)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(count * 8.0)), 8),
        }
    )
    uri = str(tmp_path / "d")
    ours.write_dataset(table, uri, data_storage_version=version)
    scattered: list[bool] = []
    announced: list[tuple[int, int]] = []
    scatter = Mapping.scatter
    monkeypatch.setattr(Mapping, "scatter", lambda self, on: (scattered.append(on), scatter(self, on))[1])
    monkeypatch.setattr(Mapping, "will_need", lambda self, start, stop: announced.append((start, stop)))
    monkeypatch.setattr(Mapping, "is_resident", lambda self, offset: False)
    dataset = ours.LanceDataset(uri, session=ours.Session())
    assert dataset.take([41_234, 7]) == table.take([41_234, 7])
    assert set(scattered) == {True}
    assert sum(stop - start for start, stop in announced) < 100_000
    rows = list(range(0, count, 500))
    assert dataset.take(rows) == table.take(rows)
    assert scattered[-1] is (version != "2.0")
    announced.clear()
    assert ours.LanceDataset(uri, session=ours.Session()).to_table() == table
    assert sum(stop - start for start, stop in announced) > count * 60  # all values
