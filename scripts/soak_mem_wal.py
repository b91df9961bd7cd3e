"""Put, delete, flush, merge, clean up and read through a MemWAL for minutes; memory and files must not grow.

python scripts/soak_mem_wal.py [--minutes 30] [--seed 1] [--folder /some/where] [--age 10]

A writer puts and deletes rows of a bounded set of keys, and is replaced now and then. A reader scans and looks up keys.
Another thread merges, compacts, removes old versions, and collects files of the shard. All rows are compared with a
dictionary every few seconds. At the end, sizes of the last third are compared with those of the second third.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import lance_dataset
from lance_dataset.mem_wal import LsmPointLookupPlanner, LsmScanner, ShardWriter

SHARD = "11111111-2222-4333-8444-555555555555"
KEYS = 5_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("v", pa.string()),
    ]
)
SECONDS_OF_A_SAMPLE = 5
#: Kinds of files that stay by design: manifests of shards, and the entry of each claim, which fences earlier writers.
KEPT = ("shard manifests", "fences")
#: Growth from the second third to the last one that is noise.
NOISE = {"memory": 1.15, "files": 1.5}


@dataclass
class Sample:
    """Sizes at one moment."""

    seconds: float
    memory: int
    descriptors: int
    threads: int
    files: Counter[str]
    num_bytes: int


@dataclass
class Soak:
    """State that all threads share."""

    path: Path
    age: dt.timedelta
    chance: random.Random
    model: dict[int, str] = field(default_factory=dict)
    failure: BaseException | None = None
    counts: Counter[str] = field(default_factory=Counter)
    writing: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.writer = self.opened()

    def dataset(self) -> lance_dataset.LanceDataset:
        return lance_dataset.dataset(self.path)

    def opened(self) -> ShardWriter:
        return self.dataset().mem_wal_writer(SHARD, max_memtable_rows=2_000)

    # -- threads -------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Put or delete some rows; rarely flush, or go on with a new writer."""
        with self.writing:
            keys = self.chance.sample(range(KEYS), self.chance.randrange(1, 100))
            kind = self.chance.random()
            if kind < 0.75:
                text = f"{self.counts['puts']} {'x' * self.chance.randrange(100)}"
                self.writer.put(pa.table([keys, [text] * len(keys)], schema=SCHEMA))
                self.model |= dict.fromkeys(keys, text)
                self.counts["puts"] += 1
            elif kind < 0.985:
                self.writer.delete(pa.table({"id": pa.array(keys, pa.int64())}))
                for key in keys:
                    self.model.pop(key, None)
                self.counts["deletes"] += 1
            elif kind < 0.998:
                self.writer.flush()
                self.counts["flushes"] += 1
            else:
                (self.writer.close if kind < 0.999 else self.writer.abort)()
                self.writer = self.opened()
                self.counts["claims"] += 1

    def maintain(self) -> None:
        """Merge, and remove what is not needed."""
        dataset = self.dataset()
        dataset.merge_mem_wal()
        if self.counts["merges"] % 5 == 0:
            dataset.optimize.compact_files()
        dataset.cleanup_old_versions(self.age)
        dataset.collect_mem_wal(older_than=self.age)
        self.counts["merges"] += 1
        self.stop.wait(1)

    def read(self) -> None:
        """Look up keys, and compare all rows with the dictionary."""
        with self.writing:
            found = self.writer.lsm_scanner().to_table()
            self.compare_rows(found)
            self.writer.flush()
            dataset = self.dataset()
            snapshots = dataset.mem_wal_snapshots()
            expected = dict(self.model)
        # Others may write, merge and collect while these are read.
        self.compare_rows(LsmScanner.from_snapshots(dataset, snapshots).to_table(), expected)
        planner = LsmPointLookupPlanner(dataset, snapshots)
        for key in random.sample(range(KEYS), 20):
            rows = planner.plan_lookup(pa.array([key])).to_table()["v"].to_pylist()
            if rows != ([expected[key]] if key in expected else []):
                raise AssertionError(f"a lookup of {key} found {rows}, not {expected.get(key)!r}")
        self.counts["reads"] += 1
        self.stop.wait(2)

    def compare_rows(self, found: pa.Table, expected: dict[int, str] | None = None) -> None:
        """Raise AssertionError unless rows are those that are expected, by default those of the dictionary."""
        wanted = self.model if expected is None else expected
        rows = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
        if rows != wanted or len(rows) != found.num_rows:
            wrong = dict(rows.items() ^ wanted.items())
            raise AssertionError(
                f"{found.num_rows} rows, expected {len(wanted)}; differing are {dict(list(wrong.items())[:5])}"
            )

    def run(self, name: str) -> None:
        """Do something again and again; an error ends the run."""
        try:
            while not self.stop.is_set():
                getattr(self, name)()
        except BaseException as error:
            self.failure = self.failure or error
            self.stop.set()

    # -- sizes ---------------------------------------------------------------------------------------------------

    def sample(self, started: float) -> Sample:
        """Measure this process and the folder of the table."""
        files: Counter[str] = Counter()
        num_bytes = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                try:
                    num_bytes += os.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue
                files[_kind(Path(folder, name).relative_to(self.path))] += 1
        files["fences"] = self.counts["claims"]
        files["log entries"] -= files["fences"]
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        descriptors = len(os.listdir("/proc/self/fd"))
        return Sample(time.monotonic() - started, memory, descriptors, threading.active_count(), files, num_bytes)


def _kind(path: Path) -> str:
    if path.parts[0] != "_mem_wal":
        return "versions" if path.parts[0] in ("_versions", "_transactions") else "table"
    return {"manifest": "shard manifests", "wal": "log entries"}.get(path.parts[2], "SSTables")


def growth(samples: list[Sample]) -> list[str]:
    """Return what grew from the second third to the last one, beyond what stays by design."""
    second, last = samples[len(samples) // 3 : 2 * len(samples) // 3], samples[2 * len(samples) // 3 :]
    found = []

    def compare(name: str, before: float, after: float, most: float, spare: float) -> None:
        if after > before * most + spare:
            found.append(f"{name}: {before:.0f} -> {after:.0f}")

    def mean(some: list[Sample], kind: str) -> float:
        return sum(each.files[kind] for each in some) / len(some)

    compare("memory", max(e.memory for e in second), max(e.memory for e in last), NOISE["memory"], 16 << 20)
    compare("descriptors", max(e.descriptors for e in second), max(e.descriptors for e in last), 1.0, 16)
    compare("threads", max(e.threads for e in second), max(e.threads for e in last), 1.0, 4)
    for kind in sorted({kind for each in samples for kind in each.files} - set(KEPT)):
        compare(f"files of {kind}", mean(second, kind), mean(last, kind), NOISE["files"], 30)
    return found


def soak(path: Path, minutes: float, age: dt.timedelta, seed: int) -> list[Sample]:
    """Run all threads, and return sizes over time. Raise the first error of a thread."""
    lance_dataset.write_dataset([], path, schema=SCHEMA).initialize_mem_wal()
    state = Soak(path, age, random.Random(seed))
    threads = [threading.Thread(target=state.run, args=(name,)) for name in ("write", "maintain", "read")]
    for thread in threads:
        thread.start()
    started, samples = time.monotonic(), list[Sample]()
    while time.monotonic() - started < minutes * 60 and not state.stop.wait(SECONDS_OF_A_SAMPLE):
        samples.append(state.sample(started))
        _show(samples[-1], state.counts)
    state.stop.set()
    for thread in threads:
        thread.join()
    if state.failure is not None:
        raise state.failure
    state.writer.close()
    dataset = state.dataset()
    dataset.merge_mem_wal()
    dataset.validate()
    state.compare_rows(dataset.to_table())
    return samples


def _show(sample: Sample, counts: Counter[str]) -> None:
    files = ", ".join(f"{count} {kind}" for kind, count in sorted(sample.files.items()))
    print(
        f"{sample.seconds:4.0f} s {sample.memory >> 20} MiB, {sample.descriptors} descriptors, "
        f"{sample.threads} threads, {sample.num_bytes / 1e6:.1f} MB on disk, files: {files}; {dict(counts)}",
        flush=True,
    )


def main() -> int:
    """Run for the given time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="folder for the table; by default a temporary one")
    parser.add_argument("--age", type=float, default=10, help="seconds for which files stay for readers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        age = dt.timedelta(seconds=arguments.age)
        samples = soak(Path(folder) / "t.lance", arguments.minutes, age, arguments.seed)
    found = growth(samples) if len(samples) >= 9 else []
    print("\n".join(f"GREW  {each}" for each in found) or "nothing grew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
