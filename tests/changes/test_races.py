"""Tests of writers of both libraries on one table at the same time: no update is lost, and no key is duplicated."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset

OURS, REFERENCE = lance_dataset, lance
KEY = "lance-schema:unenforced-primary-key"
SCHEMA = pa.schema([pa.field("id", pa.int64(), False, metadata={KEY: "true"}), pa.field("n", pa.int64())])
KEYS, TURNS = 24, 5
#: Words of errors that ask to try again on the newest version.
LOST = ("conflict", "preempted", "Too many concurrent writers", "ncompatible transaction")


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        table = pa.table([pa.array(range(KEYS), pa.int64()), pa.array([0] * KEYS, pa.int64())], schema=SCHEMA)
        uri = f"{folder}/t.lance"
        lance_dataset.write_dataset(table, uri, max_rows_per_file=5, enable_stable_row_ids=request.param)
        yield uri


class Race:
    """Writers that start together. Each repeats a change that lost against another writer."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.done: Counter[str] = Counter()
        self._lock = threading.Lock()

    def writer(self, module: Any, name: str, changes: list[Callable[[Any], object]]) -> Callable[[], None]:
        def work() -> None:
            self._start.wait()
            for change in changes:
                self._repeat(module, change)
                with self._lock:
                    self.done[name] += 1

        return work

    def _repeat(self, module: Any, change: Callable[[Any], object]) -> None:
        for _ in range(200):
            try:
                change(module.dataset(self.path))
            except OSError as error:
                if not any(word in str(error) for word in LOST):
                    raise
            else:
                return
        raise AssertionError(f"{module.__name__} was not let through")

    def run(self, *writers: Callable[[], None]) -> pa.Table:
        """Run the writers and return the final rows by key, after checking that both libraries read the same."""
        self._start = threading.Barrier(len(writers))
        with ThreadPoolExecutor(len(writers)) as pool:
            for future in [pool.submit(writer) for writer in writers]:
                future.result()
        dataset = lance_dataset.dataset(self.path)
        dataset.validate()
        table = dataset.to_table()
        assert_same(table, lance.dataset(self.path).to_table())
        return table.sort_by("id")


def increments(*, of: str = "true") -> list[Callable[[Any], object]]:
    return [lambda dataset: dataset.update({"n": "n + 1"}, of)] * TURNS


def merge(dataset: Any, keys: list[int], number: int) -> None:
    source = pa.table([pa.array(keys, pa.int64()), pa.array([number] * len(keys), pa.int64())], schema=SCHEMA)
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)


PAIRS = pytest.mark.parametrize("other", [OURS, REFERENCE], ids=["ours", "reference"])


@PAIRS
def test_updates_of_the_same_rows(path: str, other: Any) -> None:
    race = Race(path)
    table = race.run(race.writer(OURS, "a", increments()), race.writer(other, "b", increments()))
    assert table["n"].to_pylist() == [2 * TURNS] * KEYS


@PAIRS
def test_updates_of_other_rows_and_compactions(path: str, other: Any) -> None:
    """Updates of different rows and compactions at the same time lose no update, even in one fragment."""
    race = Race(path)
    table = race.run(
        race.writer(OURS, "even", increments(of="id % 2 = 0")),
        race.writer(other, "odd", increments(of="id % 2 = 1")),
        race.writer(OURS, "compaction", [lambda dataset: dataset.optimize.compact_files()] * 3),
    )
    assert table["id"].to_pylist() == list(range(KEYS))
    assert table["n"].to_pylist() == [TURNS] * KEYS


@PAIRS
def test_merges_of_the_same_keys(path: str, other: Any) -> None:
    """If two merges insert the same new keys, each key exists once, with the values of one merge."""
    race = Race(path)
    turns = [list(range(KEYS + 3 * turn, KEYS + 3 * turn + 6)) for turn in range(TURNS)]
    table = race.run(
        *(
            race.writer(
                module, str(number), [lambda dataset, keys=keys, n=number: merge(dataset, keys, n) for keys in turns]
            )
            for number, module in ((1, OURS), (2, other))
        )
    )
    assert table["id"].to_pylist() == list(range(turns[-1][-1] + 1))
    assert set(table["n"].to_pylist()[KEYS:]) <= {1, 2}


@PAIRS
def test_merges_beside_appends_and_deletes(path: str, other: Any) -> None:
    race = Race(path)
    added = [pa.table([[1000 + turn], [turn]], schema=SCHEMA) for turn in range(TURNS)]
    table = race.run(
        race.writer(OURS, "merges", [lambda dataset: merge(dataset, [1, 7, 100], 5)] * TURNS),
        race.writer(other, "appends", [lambda dataset, rows=rows: dataset.insert(rows) for rows in added]),
        race.writer(OURS, "deletes", [lambda dataset, n=n: dataset.delete(f"id = {2 * n + 8}") for n in range(TURNS)]),
    )
    gone = {2 * turn + 8 for turn in range(TURNS)}
    expected = {key: 5 if key in (1, 7) else 0 for key in range(KEYS) if key not in gone}
    expected |= {100: 5} | {1000 + turn: turn for turn in range(TURNS)}
    assert dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True)) == expected
    assert table.num_rows == len(expected)


@PAIRS
def test_deletes_beside_compactions(path: str, other: Any) -> None:
    race = Race(path)
    deletes = [lambda dataset, key=key: dataset.delete(f"id = {key}") for key in range(0, KEYS, 3)]
    table = race.run(
        race.writer(OURS, "deletes", deletes),
        race.writer(other, "compactions", [lambda dataset: dataset.optimize.compact_files()] * 4),
    )
    assert table["id"].to_pylist() == [key for key in range(KEYS) if key % 3]


@PAIRS
def test_new_columns_beside_updates(path: str, other: Any) -> None:
    race = Race(path)
    columns = [lambda dataset, n=n: dataset.add_columns({f"c{n}": f"id + {n}"}) for n in range(3)]
    renames = [lambda dataset, n=n: dataset.alter_columns({"path": "n", "nullable": bool(n % 2)}) for n in range(2)]
    table = race.run(
        race.writer(OURS, "columns", columns),
        race.writer(OURS, "alterations", renames),
        race.writer(other, "updates", increments()),
    )
    assert table["n"].to_pylist() == [TURNS] * KEYS
    for number in range(3):
        assert table[f"c{number}"].to_pylist() == [key + number for key in range(KEYS)]
