"""Tests of the limit of memory: who sets it, what has to fit into it, and what it must not change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.errors import InvalidInputError, MemoryLimitError, OutOfRangeError
from lance_dataset.memory import LEAST_LIMIT, MemoryUse, limited_memory, memory_limit, share_of_memory

ROWS = 600_000
CHANGES: dict[str, Callable[[Any], object]] = {
    "merge": lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(rows(ROWS // 2, ROWS), memory_limit=LEAST_LIMIT)
    ),
    "update": lambda ds: ds.update({"x": "x + 1"}, "id % 3 = 0"),
    "delete": lambda ds: ds.delete("id % 3 = 0"),
    "compact": lambda ds: ds.optimize.compact_files(target_rows_per_fragment=ROWS),
    "add": lambda ds: ds.add_columns({"y": "x * 2"}),
    "index": lambda ds: ds.create_scalar_index("x", "BTREE"),
}


def rows(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    texts = pa.array([f"text {number % 1000} of a row" for number in range(1000)])
    return pa.table({"id": numbers, "x": numbers * 7919 % 1_000_003, "t": texts.take(pa.array(numbers % 1000))})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limit") / "t.lance"
    lance.write_dataset(rows(0, ROWS), path, max_rows_per_file=ROWS // 4)
    return path


def test_the_innermost_limit_counts() -> None:
    assert memory_limit() is None
    with limited_memory(1 << 30):
        assert memory_limit() == 1 << 30
        with limited_memory(None):
            assert memory_limit() == 1 << 30
        with lance.limited_memory(1 << 25):
            assert share_of_memory(1 << 20, MemoryUse.WINDOWS) == 1 << 20
            assert share_of_memory(1 << 30, MemoryUse.WINDOWS) == 1 << 22
        assert memory_limit() == 1 << 30
    assert memory_limit() is None


@pytest.mark.parametrize("limit", [0, -1, LEAST_LIMIT - 1])
def test_limits_that_are_too_low(path: Path, limit: int) -> None:
    dataset = lance.dataset(path)
    with pytest.raises(OutOfRangeError, match=r"(?i)memory_limit"):
        dataset.to_table(memory_limit=limit)
    with pytest.raises(OutOfRangeError, match=r"(?i)memory_limit"), limited_memory(limit):
        pass
    with pytest.raises(OutOfRangeError, match=r"(?i)memory_limit"):
        lance.write_dataset(rows(0, 1), path.with_name("never.lance"), memory_limit=limit)
    assert not path.with_name("never.lance").exists()


@pytest.mark.parametrize("limit", ["64MB", 1.5, True])
def test_limits_of_other_types(path: Path, limit: Any) -> None:
    with pytest.raises(TypeError):
        lance.dataset(path).to_table(memory_limit=limit)
    with pytest.raises(TypeError), limited_memory(limit):
        pass


def test_results_that_are_larger(path: Path) -> None:
    """Tables and takes that do not fit raise an error; streams and counts read whatever the size."""
    dataset, numbers = lance.dataset(path), list(range(ROWS))
    with pytest.raises(MemoryLimitError, match="memory_limit="):
        dataset.to_table(memory_limit=LEAST_LIMIT)
    with pytest.raises(MemoryLimitError, match="memory_limit="):
        dataset.to_table(filter="id >= 0", memory_limit=LEAST_LIMIT)
    with limited_memory(LEAST_LIMIT):
        with pytest.raises(MemoryLimitError, match="memory_limit="):
            dataset.take(numbers)
        assert dataset.to_table(filter="id < 1000").num_rows == 1000
        assert dataset.count_rows("x > 5") > 0
        batches = dataset.to_batches()
    assert sum(batch.num_rows for batch in batches) == ROWS
    assert dataset.take(numbers).num_rows == ROWS


@pytest.mark.parametrize("filter", [None, "x > 500000"])
def test_streams_are_the_same(path: Path, filter: str | None) -> None:
    dataset = lance.dataset(path)
    found = pa.Table.from_batches(dataset.to_batches(filter=filter, memory_limit=LEAST_LIMIT))
    assert found.equals(dataset.to_table(filter=filter))


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_the_same(path: Path, tmp_path: Path, change: str) -> None:
    """A change within a limit has the result of one without."""
    table = lance.dataset(path).to_table()
    made = []
    for name, limit in (("free", None), ("limited", LEAST_LIMIT)):
        with limited_memory(limit):
            dataset = lance.write_dataset(table, tmp_path / name, max_rows_per_file=ROWS // 4)
            CHANGES[change](dataset)
        made.append(lance.dataset(tmp_path / name).to_table().sort_by("id"))
    assert made[0].equals(made[1])


_PROGRAM = """
import sys, threading, time
import numpy as np, pyarrow as pa
import lance_dataset as lance

def used():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

def batches(count):
    for number in range(count):
        values = np.random.default_rng(number).integers(0, 1 << 60, 250_000)
        yield pa.record_batch({f"c{i}": values + i for i in range(4)})

def write(path, count):
    schema = pa.schema([(f"c{i}", pa.int64()) for i in range(4)])
    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches(count)), path, max_rows_per_file=2_000_000)

STEPS = [
    write,
    lambda path, _: sum(batch.num_rows for batch in lance.dataset(path).to_batches(filter="c0 % 2 = 0")),
    lambda path, _: lance.dataset(path).update({"c1": "c1 + 1"}, "c0 % 30 = 0"),
    lambda path, _: lance.dataset(path).optimize.compact_files(target_rows_per_fragment=10_000_000),
]
for step in STEPS:  # what is imported and made once must not count
    step(sys.argv[1] + "/small", 1)

most, done = 0, False

def watch():
    global most
    while not done:
        most = max(most, used())
        time.sleep(0.002)

thread = threading.Thread(target=watch)
thread.start()
for step in STEPS:
    pa.default_memory_pool().release_unused()
    base = most = used()
    step(sys.argv[1] + "/large", 40)
    print((most - base) * 1024)
done = True
thread.join()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")
def test_a_process_with_a_limit(tmp_path: Path) -> None:
    """Each step of a process that writes, filters, updates and compacts 320 MB stays within `LANCE_MEMORY_LIMIT`."""
    limit = 128 << 20
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LANCE_MEMORY_LIMIT": str(limit)},
    )
    assert done.returncode == 0, done.stderr
    peaks = [int(line) for line in done.stdout.split()]
    assert max(peaks) <= limit, peaks


@pytest.mark.parametrize(("text", "words"), [("64MB", "a number of bytes"), ("5", "at least")])
def test_a_wrong_environment_variable(text: str, words: str) -> None:
    program = "from lance_dataset.memory import memory_limit\nmemory_limit()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LANCE_MEMORY_LIMIT": text},
    )
    assert done.returncode != 0
    error = (InvalidInputError if text == "64MB" else OutOfRangeError).__name__
    assert error in done.stderr
    assert words in done.stderr
