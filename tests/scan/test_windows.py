"""Tests of scans in windows on several threads: order, early ends, errors in place, nesting, forks, bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.locks import SharedLock
from lance_dataset.scan import costs, scan, strategy
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.threads import streams
from lance_dataset.threads.pools import SharedPool, cpu_count
from lance_dataset.threads.streams import map_parallel, stream

ROWS = 40_000


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use three threads, and windows small enough that there are many."""
    monkeypatch.setenv("LANCE_CPU_THREADS", "3")
    monkeypatch.setattr(streams, "cpu_pool", SharedPool("test", cpu_count))
    monkeypatch.setattr(strategy, "_PARALLEL_COST", 1.0)
    monkeypatch.setattr(strategy, "_PARALLEL_COLUMN_COST", 0.0)
    monkeypatch.setattr(strategy, "_MIN_WINDOW_ROWS", 500)
    monkeypatch.setattr(strategy, "PIECE_BYTES", 1 << 16)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[lance_dataset.LanceDataset, pa.Table]:
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "n": rng.integers(0, 1000, ROWS),
            "text": [f"word {n}" for n in rng.integers(0, 500, ROWS)],
            "zero": np.where(np.arange(ROWS) == 33_333, 0, 1),
        }
    )
    uri = str(tmp_path_factory.mktemp("windows") / "d")
    dataset = lance_dataset.write_dataset(table, uri, max_rows_per_file=7000, max_page_bytes=1 << 16)
    dataset.delete("id % 11 = 5")
    return dataset, table.filter(pa.array([row % 11 != 5 for row in range(ROWS)]))


def chosen(table: pa.Table, limit: int) -> pa.Table:
    return table.filter(pa.array(table["n"].to_numpy() < limit))


@pytest.mark.parametrize("limit", [0, 3, 100, 900, 1000])
def test_the_same_in_any_order(stored, limit: int) -> None:
    dataset, table = stored
    expected = chosen(table, limit)
    options = {"filter": f"n < {limit}", "batch_size": 300}
    assert dataset.to_table(**options).equals(expected)
    batches = list(dataset.to_batches(**options))
    assert pa.Table.from_batches(batches, table.schema).equals(expected)
    assert all(0 < batch.num_rows <= 300 for batch in batches)
    strict = [batch.num_rows for batch in dataset.to_batches(**options, strict_batch_size=True)]
    assert set(strict[:-1]) <= {300}
    for ahead in ({}, {"batch_readahead": 1}, {"fragment_readahead": 1}, {"io_buffer_size": 1}):
        loose = dataset.to_table(**options, scan_in_order=False, **ahead)
        assert loose.sort_by("id").equals(expected)
        assert dataset.to_table(**options, **ahead).equals(expected)
    assert dataset.count_rows(filter=f"n < {limit}") == expected.num_rows
    assert pa.Table.from_batches(dataset.to_batches(batch_size=300)).equals(table)


@pytest.mark.parametrize("filter", [None, "n < 200"])
def test_limits_and_offsets(stored, filter: str | None) -> None:
    dataset, table = stored
    expected = table if filter is None else chosen(table, 200)
    for limit, offset in [(1, 0), (10, 5), (None, 6000), (700, 6900), (5000, 1), (40_000, 0), (3, 39_999), (0, 0)]:
        options = {"filter": filter, "limit": limit, "offset": offset}
        assert dataset.to_table(**options).equals(expected.slice(offset, limit)), options
        assert dataset.scanner(**options).count_rows() == expected.slice(offset, limit).num_rows
        batches = dataset.to_batches(batch_size=64, **options)
        assert pa.Table.from_batches(batches, table.schema).equals(expected.slice(offset, limit))


def looked_at(dataset: lance_dataset.LanceDataset, **options: object) -> int:
    scanner = dataset.scanner(**options)
    metrics = ScanMetrics()
    request = replace(scanner._request, metrics=metrics)
    for _ in scan.scan_batches(scanner._reader, request):
        pass
    return metrics.node("scan").rows


def test_a_limit_ends_reading(stored) -> None:
    dataset, _ = stored
    assert looked_at(dataset, filter="n < 900", limit=10, batch_size=100) <= 200
    assert looked_at(dataset, filter="n < 900", limit=10, batch_size=100) < looked_at(dataset, filter="n < 900")
    assert looked_at(dataset, limit=10) <= 100


def test_a_consumer_may_stop(stored) -> None:
    dataset, _ = stored
    before = threading.active_count()
    for _ in range(5):
        batches = dataset.to_batches(filter="n < 900", batch_size=50)
        next(batches)
        batches.close()
    assert threading.active_count() <= before + 3
    assert dataset.count_rows(filter="n < 900") > 0


def test_errors_come_in_their_place(stored) -> None:
    dataset, table = stored
    seen = 0
    batches = dataset.to_batches(filter="10 / zero > 1", batch_size=100)
    with pytest.raises(ValueError, match="divide by zero"):  # noqa: PT012
        for batch in batches:
            assert batch["id"].to_pylist() == table["id"].to_pylist()[seen : seen + batch.num_rows]
            seen += batch.num_rows
    assert 0 < seen <= table["id"].to_pylist().index(33_333)
    with pytest.raises(ValueError, match="divide by zero"):
        dataset.to_table(filter="10 / zero > 1", scan_in_order=False)
    with pytest.raises(ValueError, match="divide by zero"):
        dataset.count_rows(filter="10 / zero > 1")
    with pytest.raises(ValueError, match="divide by zero"):
        dataset.to_table(columns={"x": "10 / zero"}, filter="n >= 0")
    assert dataset.to_table(filter="10 / zero > 1", limit=100).num_rows == 100


def test_small_fragments_share_a_window(tmp_path: Path) -> None:
    table = pa.table({"id": range(600), "s": pa.array([f"v{i % 7}" for i in range(600)]).dictionary_encode()})
    dataset = lance_dataset.write_dataset(table, str(tmp_path / "d"), max_rows_per_file=3)
    dataset.delete("id % 5 = 1 OR (id > 100 AND id < 140)")
    kept = [row for row in range(600) if row % 5 != 1 and not 100 < row < 140]
    for text, test in [("id % 2 = 0", lambda row: row % 2 == 0), ("s = 'v3'", lambda row: row % 7 == 3)]:
        rows = [row for row in kept if test(row)]
        found = dataset.to_table(filter=text, with_row_id=True)
        assert found["id"].to_pylist() == rows
        assert found["s"].to_pylist() == [f"v{row % 7}" for row in rows]
        assert found["_rowid"].to_pylist() == [(row // 3 << 32) + row % 3 for row in rows]
        assert dataset.to_table(filter=text, limit=9, offset=20)["id"].to_pylist() == rows[20:29]
        assert dataset.count_rows(filter=text) == len(rows)
        assert len(list(dataset.to_batches(filter=text))) < 20
    assert [batch.num_rows for batch in dataset.to_batches(batch_size=2, limit=4)] == [2, 2]


FORKS = """
import faulthandler, os, random, sys, time
import lance_dataset
from lance_dataset.scan import strategy

strategy._PARALLEL_COST, strategy._PARALLEL_COLUMN_COST = 1.0, 0.0
strategy._MIN_WINDOW_ROWS, strategy.PIECE_BYTES = 500, 1 << 16
uri, expected, forks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for _ in range(forks):
    batches = lance_dataset.dataset(uri).to_batches(filter="n >= 0", batch_size=1000)
    found = next(batches).num_rows
    time.sleep(random.random() * 0.002)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
    found += sum(batch.num_rows for batch in batches)
    if child == 0:
        os._exit(found != expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and found == expected
"""


def test_a_fork_while_a_scan_runs(stored) -> None:
    """Forks at random moments, in a process without the threads of other tests' libraries."""
    dataset, table = stored
    command = [sys.executable, "-c", FORKS, dataset.uri, str(table.num_rows), "15"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_locks_are_free_in_a_forked_child() -> None:
    lock = SharedLock()
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends the child if it waits for the lock
        with lock:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    leave.set()
    thread.join()


def test_scans_inside_of_scans(stored) -> None:
    """Scans inside of scans finish although all threads are busy with scans."""
    dataset, table = stored

    def work(number: int) -> int:
        return dataset.to_table(filter=f"n < {number}", columns=["id"]).num_rows

    found = list(stream(work, range(1, 10), ahead=9))
    assert found == [chosen(table, number).num_rows for number in range(1, 10)]
    assert map_parallel(work, list(range(1, 10)), parallel=True) == found


# -- streams -----------------------------------------------------------------------------------------------------


def test_streams_stop_asking() -> None:
    asked: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            asked.append(number)
            yield number

    results = stream(lambda number: number * 2, numbers(), ahead=4)
    assert [next(results) for _ in range(3)] == [0, 2, 4]
    results.close()
    assert len(asked) <= 9
    heavy = stream(lambda number: number, numbers(), ahead=50, weight=lambda number: 10.0, budget=30.0)
    asked.clear()
    assert next(heavy) == 0
    assert len(asked) <= 5
    heavy.close()


@pytest.mark.parametrize("ahead", [0, 1, 7])
@pytest.mark.parametrize("in_order", [True, False])
def test_streams_raise_what_work_raises(ahead: int, in_order: bool) -> None:
    def work(number: int) -> int:
        if number == 5:
            raise LookupError("five")
        time.sleep(0.001 * (number % 3))
        return number

    seen: list[int] = []
    with pytest.raises(LookupError, match="five"):
        seen.extend(stream(work, range(20), ahead=ahead, in_order=in_order))
    if in_order:
        assert seen == [0, 1, 2, 3, 4]
    assert 5 not in seen
    assert sorted(stream(abs, range(-9, 0), ahead=ahead, in_order=in_order)) == list(range(1, 10))
    assert list(stream(abs, [], ahead=ahead)) == []
    assert list(stream(abs, [-3], ahead=ahead)) == [3]


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_errors_of_the_items_come_after_what_was_before(ahead: int) -> None:
    for count in (0, 1, 2, 5):

        def numbers(count: int = count) -> Iterator[int]:
            yield from range(count)
            raise LookupError("no more")

        seen: list[int] = []
        with pytest.raises(LookupError, match="no more"):
            seen.extend(stream(lambda number: -number, numbers(), ahead=ahead))
        assert seen == [-number for number in range(count)]


def test_what_is_done_first_comes_first() -> None:
    gate = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert gate.wait(30)
        return number

    results = stream(work, range(6), ahead=6, in_order=False)
    first = [next(results) for _ in range(3)]
    gate.set()
    assert sorted([*first, *results]) == list(range(6))


def test_costs_of_columns_that_cannot_be_opened(tmp_path: Path) -> None:
    """A column that cannot be opened gets an estimated cost, so the scan fails when it reads the column, not in
    planning.
    """
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2], "b": ["x", "y"]}), str(tmp_path / "d"))
    for file in (tmp_path / "d" / "data").iterdir():
        file.write_bytes(b"LANC")
    dataset = lance_dataset.dataset(str(tmp_path / "d"))
    request = dataset.scanner(filter="a > 1")._request
    plan = strategy.strategy(dataset.snapshot.reader, request)
    assert plan.early == ("a",)
    assert costs.ColumnCosts.of(dataset.snapshot.reader, request).cost(request.schema.top_level("b")).read > 0


@pytest.mark.parametrize(("threads", "times"), [("1", 4), ("2", 2), ("16", 1)])
def test_pieces_of_many_columns_are_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: str, times: int
) -> None:
    """Pieces grow with the number of columns, but the pieces that all threads decode take no more memory."""
    monkeypatch.setenv("LANCE_CPU_THREADS", threads)
    monkeypatch.setattr(strategy, "PIECE_BYTES", 1 << 24)
    dataset = lance_dataset.write_dataset(pa.table({f"c{i}": np.arange(10) for i in range(40)}), str(tmp_path / "d"))

    def piece_rows(**options: object) -> int:
        request = dataset.scanner(batch_size=1, **options)._request  # type: ignore[arg-type]
        return strategy.strategy(dataset.snapshot.reader, request).piece_rows

    usual = (1 << 24) // (40 * 8)
    assert piece_rows() == pytest.approx(times * usual, rel=1e-3)
    assert piece_rows(columns=["c0"]) == (1 << 24) // 8
    assert piece_rows(filter="c0 > 3") == pytest.approx(usual, rel=1e-3)


# -- named rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "_rowoffset < 20",
        "_rowoffset >= 6990 AND _rowoffset <= 7010",
        "20 > _rowoffset OR _rowoffset = 30000",
        "_rowaddr >= 4294967296 AND _rowaddr < 4294967301",
        "_rowid > 21474840000",
        "_rowid < 3 OR _rowid IN (8589934593, 8589934590) OR (_rowaddr > 12884901890 AND _rowaddr <= 12884901899)",
        "_rowoffset > 99999999",
        "_rowoffset < 0",
        "_rowaddr < 100 AND n < 500",
        "_rowoffset BETWEEN 100 AND 110 AND _rowaddr BETWEEN 105 AND 1000",
        "_rowid < NULL",
    ],
)
def test_ranges_of_named_rows(stored, text: str) -> None:
    dataset, _ = stored
    options = {"with_row_id": True, "with_row_address": True}
    everything = dataset.to_table(**options)
    everything = everything.append_column("_rowoffset", pa.array(np.arange(everything.num_rows, dtype=np.uint64)))
    tests = compile_filter(text, everything.schema)
    expected = everything.filter(tests.mask(everything)).drop_columns(["_rowoffset"])
    assert dataset.to_table(filter=text, **options).equals(expected)
    assert dataset.count_rows(filter=text) == expected.num_rows
    if " > 21474840000" not in text:
        assert looked_at(dataset, filter=text) <= 130


def test_rows_named_by_arrow_expressions(stored) -> None:
    dataset, _ = stored
    named = pc.field("_rowid").isin([0, 3, 21474836481])
    found = dataset.to_table(filter=named & (pc.field("id") >= 0))
    assert found["id"].to_pylist() == [0, 3, 35_001]
    assert looked_at(dataset, filter=named & (pc.field("id") >= 0)) == 3
