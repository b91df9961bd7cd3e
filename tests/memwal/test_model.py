"""Random puts, deletes, flushes, merges, crashes and claims, compared with a dictionary.

``LANCE_STRESS=1`` makes 2000 runs of 50 steps, ``LANCE_STRESS_SEED`` sets the first seed.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.memwal.shards import SHARD, keys, new_table, rows, seen, snapshots_for, values

import lance_dataset
from lance_dataset.errors import CommitConflictError
from lance_dataset.mem_wal import LsmPointLookupPlanner, ShardWriter

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
SEED = int(os.environ.get("LANCE_STRESS_SEED", "1"))
RUNS = 2000 if THOROUGH else 10
STEPS = 50
KEYS = 30


class Run:
    """One random run on one table, whose rows must be those of a dictionary at every moment."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.chance = path, random.Random(seed)
        self.model = dict.fromkeys(range(0, KEYS, 3), "base")
        new_table(path, self.model, storage_options={"local_fsync": "false"})
        self.step = 0
        self.writer = self.open()

    def open(self) -> ShardWriter:
        dataset = lance_dataset.dataset(self.path, storage_options={"local_fsync": "false"})
        size = self.chance.choice((2, 5, 1000))
        return dataset.mem_wal_writer(SHARD, max_memtable_rows=size)

    def put(self) -> None:
        chosen = self.chance.sample(range(KEYS), self.chance.randrange(1, 5))
        new = dict.fromkeys(chosen, f"{self.step}")
        self.writer.put(rows(new))
        self.model |= new

    def delete(self) -> None:
        chosen = self.chance.sample(range(KEYS), self.chance.randrange(1, 4))
        self.writer.delete(keys(*chosen))
        for key in chosen:
            self.model.pop(key, None)

    def flush(self) -> None:
        self.writer.flush()
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
        self.model[1000 + self.step] = "table"
        if self.chance.random() < 0.3:
            lance_dataset.dataset(self.path).optimize.compact_files()

    def crash(self) -> None:
        self.writer.abort()
        self.writer = self.open()

    def claim(self) -> None:
        """Open a second writer; the first one must not write any more."""
        late, self.writer = self.writer, self.open()
        with pytest.raises(CommitConflictError, match="fenced"):
            late.put(rows({self.chance.randrange(KEYS): "late"}))
        late.abort()

    def pylance(self) -> None:
        """Hand the shard over to pylance, which writes some rows and stops or is left alone."""
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
        self.writer.flush()
        dataset = lance_dataset.dataset(self.path)
        planner = LsmPointLookupPlanner(dataset, dataset.mem_wal_snapshots())
        for key in self.chance.sample(range(KEYS), 5):
            found = planner.plan_lookup(pa.array([key]), ["v", "n"]).to_table()
            assert found["v"].to_pylist() == ([self.model[key]] if key in self.model else [])

    def run(self) -> None:
        steps: dict[Callable[[], None], int] = {
            self.put: 12,
            self.delete: 5,
            self.check: 5,
            self.flush: 2,
            self.merge: 2,
            self.append: 1,
            self.crash: 2,
            self.claim: 1,
            self.pylance: 1,
            self.look_up: 1,
        }
        for self.step in range(STEPS):
            [step] = self.chance.choices(list(steps), list(steps.values()))
            step()
        self.check()
        self.writer.close()
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
