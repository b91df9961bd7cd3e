"""Random puts, deletes, flushes, merges, crashes, kills and claims, compared with a dictionary.

``LANCE_STRESS=1`` makes 2000 runs of 50 steps, or as many as ``LANCE_STRESS_RUNS`` says; ``LANCE_STRESS_SEED`` sets the
first seed.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.memwal import shards
from support.memwal.killed_writer import Work, acknowledged_until_killed
from support.memwal.shards import SHARD, keys, snapshots_for

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError
from lance_dataset.mem_wal import LsmPointLookupPlanner, LsmScanner, LsmVectorSearchPlanner, ShardWriter

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "1"))
RUNS = int(os.environ.get("LANCE_STRESS_RUNS", "2000")) if THOROUGH else 4
STEPS = 50
KEYS = 30

Model = dict[int, str]


def vectors(content: Model) -> np.ndarray:
    """Return a vector for each row, which depends on its key and its text."""
    numbers = [[key % 7, sum(text.encode()) % 11] for key, text in content.items()]
    return np.array(numbers, np.float32).reshape(-1, 2)


def rows(content: Model) -> pa.Table:
    """Return rows with keys, texts and vectors."""
    found = pa.FixedSizeListArray.from_arrays(pa.array(vectors(content).ravel()), 2)
    return shards.rows(content).append_column("x", found)


def values(table: pa.Table) -> Model:
    """Return rows as a dictionary. All columns must belong together."""
    found = shards.values(table)
    assert table["x"].to_pylist() == vectors(found).tolist()
    return found


def seen(path: Path) -> Model:
    """Return what a reader in another process sees."""
    dataset = lance_dataset.dataset(str(path))
    snapshots = dataset.mem_wal_snapshots()
    return values(LsmScanner.from_snapshots(lance_dataset.dataset(str(path)), snapshots).to_table())


class Run:
    """One random run on one table, whose rows must be those of a dictionary at every moment."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.chance = path, random.Random(seed)
        self.model: Model = dict.fromkeys(range(0, KEYS, 3), "base")
        options = {"local_fsync": "false"}
        lance_dataset.write_dataset(rows(self.model), path, storage_options=options).initialize_mem_wal()
        self.step = 0
        self.left: list[ShardWriter] = []  # writers that were left alone, and that others have replaced
        self.relaxed: list[ShardWriter] = []  # whose puts return before anyone knows that others have replaced them
        self.history: list[Model] | None = None  # what a crash may leave, if puts do not wait for the log
        self.writer = self.open()

    def open(self) -> ShardWriter:
        dataset = lance_dataset.dataset(self.path, storage_options={"local_fsync": "false"})
        return dataset.mem_wal_writer(SHARD, max_memtable_rows=self.size())

    def leave(self) -> None:
        """Leave the writer alone, to go on late unless it may not notice that."""
        if self.writer not in self.relaxed:
            self.left.append(self.writer)

    def size(self) -> int:
        return self.chance.choice((2, 5, 1000))

    def relax(self) -> None:
        """Go on with a writer whose puts do not wait for the log."""
        self.settle()
        self.leave()
        dataset = lance_dataset.dataset(self.path, storage_options={"local_fsync": "false"})
        interval = self.chance.choice((1, 10, 10**6))
        self.writer = dataset.mem_wal_writer(SHARD, durable_write=False, max_wal_flush_interval_ms=interval)
        self.relaxed.append(self.writer)
        self.history = [self.model]

    def settle(self) -> None:
        """Have all rows in the log, or crash: the rows are then those of some moment since they last were."""
        if self.history is None:
            return
        if self.chance.random() < 0.5:
            self.writer.flush()
        else:
            if self.chance.random() < 0.5:
                self.writer.abort()
            self.writer = self.open()
            found = values(self.writer.lsm_scanner().to_table())
            assert found in self.history
            self.model = found
        self.history = None

    def note(self, model: Model) -> None:
        """Take over the rows after a call of the writer."""
        self.model = model
        if self.history is not None:
            self.history.append(model)

    def put(self) -> None:
        chosen = self.chance.sample(range(KEYS), self.chance.randrange(1, 5))
        new = dict.fromkeys(chosen, f"{self.step}")
        self.writer.put(rows(new))
        self.note(self.model | new)

    def delete(self) -> None:
        chosen = self.chance.sample(range(KEYS), self.chance.randrange(1, 4))
        self.writer.delete(keys(*chosen))
        self.note({key: text for key, text in self.model.items() if key not in chosen})

    def flush_rows(self) -> None:
        self.writer.flush()
        if self.history is not None:
            self.history = [self.model]

    def flush(self) -> None:
        self.flush_rows()
        assert seen(self.path) == self.model

    def merge(self) -> None:
        dataset = lance_dataset.dataset(self.path)
        dataset.merge_mem_wal()
        if self.chance.random() < 0.3:
            dataset.cleanup_old_versions(dt.timedelta(0))
            dataset.collect_mem_wal(older_than=dt.timedelta(0))

    def append(self) -> None:
        """Change the table itself, in rows that no shard has."""
        dataset = lance_dataset.dataset(self.path)
        lance_dataset.write_dataset(rows({1000 + self.step: "table"}), dataset, mode="append")
        new = {1000 + self.step: "table"}
        self.model = self.model | new
        if self.history is not None:
            self.history = [model | new for model in self.history]
        if self.chance.random() < 0.3:
            lance_dataset.dataset(self.path).optimize.compact_files()

    def crash(self) -> None:
        """Stop the writer, or leave it alone while it may be flushing."""
        self.settle()
        if self.chance.random() < 0.3:
            self.writer.abort()
        else:
            self.leave()
        self.writer = self.open()

    def late(self) -> None:
        """Let a writer that was replaced go on; it must not write anything any more."""
        if not self.left:
            self.crash()
            return
        late = self.left[self.chance.randrange(len(self.left))]
        calls: list[Callable[[], None]] = [
            lambda: late.put(rows({self.chance.randrange(KEYS): "late"})),
            lambda: late.delete(keys(self.chance.randrange(KEYS))),
        ]
        with pytest.raises((CommitConflictError, InvalidInputError), match=r"fenced|failed before"):
            self.chance.choice(calls)()
        self.check()

    def race(self) -> None:
        """Open two writers at the same time. What either of them acknowledges is kept, and nothing else of theirs."""
        self.settle()
        kept: list[Model] = []
        together = threading.Barrier(2)

        def compete(number: int) -> None:
            together.wait()
            try:
                writer = self.open()
                for key in range(number, KEYS, 9):
                    writer.put(rows({key: f"{self.step}.{number}"}))
                    kept.append({key: f"{self.step}.{number}"})
                self.left.append(writer)
            except CommitConflictError:
                pass

        threads = [threading.Thread(target=compete, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for new in kept:
            self.model = self.model | new
        self.leave()
        self.writer = self.open()
        self.check()

    def kill(self) -> None:
        """Kill another process that writes to the shard: what it acknowledged is there, and of the rest one call."""
        self.settle()
        changed = [self.chance.sample(range(KEYS), 2) for _ in range(8)]
        work: list[Work] = []
        models = [self.model]
        for number, some in enumerate(changed):
            kind = self.chance.choice(("put", "put", "delete", "flush"))
            left = {key: text for key, text in models[-1].items() if key not in some}
            new = dict.fromkeys(some, f"k{self.step}.{number}")
            given = {"put": rows(new), "delete": keys(*some), "flush": None}[kind]
            work.append((kind, given))
            models.append({"put": left | new, "delete": left, "flush": models[-1]}[kind])
        stop, delay = self.chance.randrange(len(work) + 1), self.chance.random() * 0.004
        # A put of two rows is one entry of the log, which is there or is not.
        done = acknowledged_until_killed(self.path, SHARD, self.chance.choice((2, 5)), work, stop, delay)
        self.leave()
        self.writer = self.open()
        found = values(self.writer.lsm_scanner().to_table())
        assert found in models[done : done + 2]
        self.model = found

    def merge_beside(self) -> None:
        """Merge, clean up and collect while the writer goes on."""
        failed: list[BaseException] = []

        def merge() -> None:
            try:
                for _ in range(2):
                    self.merge()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=merge)
        thread.start()
        chance = random.Random(self.step)
        for _ in range(4):
            new = dict.fromkeys(chance.sample(range(KEYS), 2), f"b{self.step}")
            self.writer.put(rows(new))
            self.note(self.model | new)
        thread.join()
        if failed:
            raise failed[0]
        self.check()

    def pylance(self) -> None:
        """Hand the shard over to pylance, which writes some rows and stops or is left alone."""
        self.settle()
        self.writer.abort()
        theirs = lance.dataset(str(self.path)).mem_wal_writer(SHARD)
        new = dict.fromkeys(self.chance.sample(range(KEYS), 2), f"p{self.step}")
        theirs.put(rows(new))
        self.model |= new
        gone = self.chance.randrange(KEYS)
        theirs.delete(keys(gone))
        self.model.pop(gone, None)
        if self.chance.random() < 0.5:
            theirs.close()
        self.writer = self.open()

    def check(self) -> None:
        found = values(self.writer.lsm_scanner().to_table())
        assert found == self.model
        some = self.chance.choice([*self.model.values(), "none"])
        scanner = self.writer.lsm_scanner().filter(f"v = '{some}'")
        assert set(values(scanner.to_table())) == {key for key, text in self.model.items() if text == some}

    def look_up(self) -> None:
        self.flush_rows()
        dataset = lance_dataset.dataset(self.path)
        planner = LsmPointLookupPlanner(dataset, dataset.mem_wal_snapshots())
        for key in self.chance.sample(range(KEYS), 5):
            found = planner.plan_lookup(pa.array([key]), ["v", "n"]).to_table()
            assert found["v"].to_pylist() == ([self.model[key]] if key in self.model else [])

    def search(self) -> None:
        """Search the nearest vectors; those that are equally near come in any order."""
        self.flush_rows()
        dataset = lance_dataset.dataset(self.path)
        planner = LsmVectorSearchPlanner(dataset, dataset.mem_wal_snapshots(), "x")
        query = np.array([self.chance.random() * 7, self.chance.random() * 11], np.float32)
        found = planner.plan_search(pa.array(query), k=5, columns=["id", "v"]).to_table()
        distances = ((vectors(self.model) - query) ** 2).sum(1)
        assert np.allclose(found["_distance"].to_numpy(), np.sort(distances)[:5], rtol=1e-4)
        assert set(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) <= self.model.items()

    def run(self) -> None:
        steps: dict[Callable[[], None], int] = {
            self.put: 12,
            self.delete: 5,
            self.check: 5,
            self.flush: 2,
            self.merge: 2,
            self.append: 1,
            self.merge_beside: 1,
            self.crash: 2,
            self.relax: 1,
            self.late: 1,
            self.race: 1,
            self.kill: 1,
            self.pylance: 1,
            self.look_up: 1,
            self.search: 1,
        }
        for self.step in range(STEPS):
            [step] = self.chance.choices(list(steps), list(steps.values()))
            step()
        self.check()
        self.writer.close()
        for writer in self.left + self.relaxed:
            writer.abort()
        assert seen(self.path) == self.model
        theirs = lance.dataset(str(self.path))
        snapshots = snapshots_for(self.path)
        assert values(lance.mem_wal.LsmScanner.from_snapshots(theirs, snapshots).to_table()) == self.model
        dataset = lance_dataset.dataset(self.path)
        dataset.merge_mem_wal()
        dataset.validate()
        assert values(lance.dataset(str(self.path)).to_table()) == self.model


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_random_runs(tmp_path: Path, seed: int) -> None:
    Run(tmp_path / "t", seed).run()
