"""Writing through a MemWAL and reading it, compared with the reference in one run.

Each library has a table of its own with the same rows, and a shard with the same SSTables. Durable puts wait for the
disk; both are measured in turn. Figures of CPU time are of the whole process, with the threads of the library.

    python benchmarks/memwal.py --rows 10000000 --puts 200 --log 64
    python benchmarks/memwal.py --rows 1000 --only recovery --log 1000
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset

LIBRARIES: dict[str, ModuleType] = {"lance-dataset": lance_dataset, "pylance": lance}
SHARD = "11111111-2222-4333-8444-555555555555"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("value", pa.float64()),
        pa.field("text", pa.string()),
    ]
)


def rows(ids: np.ndarray) -> pa.Table:
    """Return rows with keys."""
    return pa.table([ids, ids / 3, pa.array([f"text {number % 1000}" for number in ids.tolist()])], schema=SCHEMA)


def make(path: Path, count: int) -> None:
    """Create a table with an index of its key."""
    dataset = lance.write_dataset(rows(np.arange(count)), str(path))
    dataset.create_scalar_index("id", "BTREE")
    dataset.initialize_mem_wal(maintained_indexes=[])


def timed(call: Callable[[], object], count: int) -> tuple[np.ndarray, float]:
    """Return the wall times of calls in milliseconds, and the CPU seconds of all."""
    walls = np.empty(count)
    cpu = time.process_time()
    for number in range(count):
        start = time.perf_counter()
        call()
        walls[number] = (time.perf_counter() - start) * 1000
    return walls, time.process_time() - cpu


def show(what: str, found: dict[str, tuple[np.ndarray, float]]) -> None:
    """Print medians, 99th percentiles and CPU time per call."""
    for name, (walls, cpu) in found.items():
        p50, p99 = np.percentile(walls, [50, 99])
        print(f"{what:<34}{name:<15}{p50:>10.3f} ms p50{p99:>10.3f} ms p99{cpu / len(walls) * 1000:>10.3f} ms CPU")


def in_turn(calls: dict[str, Callable[[], object]], count: int, rounds: int = 5) -> dict[str, tuple[np.ndarray, float]]:
    """Time the calls of both libraries in turn."""
    found: dict[str, list[tuple[np.ndarray, float]]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls)[:: 1 if number % 2 else -1]:
            found[name].append(timed(calls[name], max(count // rounds, 1)))
    return {
        name: (np.concatenate([walls for walls, _ in each]), sum(cpu for _, cpu in each))
        for name, each in found.items()
    }


def puts(paths: dict[str, Path], count: int) -> None:
    """Time durable puts of 1 and 100 rows."""
    for size in (1, 100):
        writers = {name: LIBRARIES[name].dataset(str(path)).mem_wal_writer(SHARD) for name, path in paths.items()}
        batch = rows(np.arange(size))
        calls: dict[str, Callable[[], object]] = {name: partial(writer.put, batch) for name, writer in writers.items()}
        show(f"durable put of {size} rows", in_turn(calls, count))
        for writer in writers.values():
            writer.close()


def sustained(paths: dict[str, Path], total: int, rounds: int = 5) -> None:
    """Time puts that do not wait for the disk, up to their flush, by both libraries in turn."""
    batch = rows(np.arange(1000))

    def write(library: ModuleType, path: Path) -> None:
        with library.dataset(str(path)).mem_wal_writer(SHARD, durable_write=False) as writer:
            for _ in range(total // 1000):
                writer.put(batch)

    calls: dict[str, Callable[[], object]] = {}
    for name, path in paths.items():
        calls[name] = partial(write, LIBRARIES[name], path)
        calls[name]()
    for name, (walls, cpu) in in_turn(calls, rounds, rounds).items():
        print(
            f"{'relaxed puts of 1000 rows, closed':<34}{name:<15}{total / np.median(walls) * 1000:>12,.0f} rows/s"
            f"{total * rounds / cpu:>14,.0f} rows/s of CPU"
        )


def tables(paths: dict[str, Path], generations: int, size: int, count: int) -> None:
    """Write SSTables with random keys."""
    random = np.random.default_rng(1)
    parts = [rows(np.sort(random.choice(count, size, replace=False))) for _ in range(generations)]
    for name, path in paths.items():
        with LIBRARIES[name].dataset(str(path)).mem_wal_writer(SHARD, max_memtable_rows=size) as writer:
            for part in parts:
                writer.put(part)


def snapshot_of(name: str, path: Path) -> Any:
    """Return the SSTables of the shard."""
    known = lance_dataset.dataset(path).mem_wal_snapshots()[0]
    snapshot = LIBRARIES[name].mem_wal.ShardSnapshot(SHARD)
    for generation, folder in known.sstables.items():
        snapshot.with_sstable(generation, folder)
    return snapshot


def reads(paths: dict[str, Path], count: int, lookups: int, rounds: int) -> None:
    """Time lookups of keys, and scans with and without the shard."""
    random = np.random.default_rng(2)

    def look_up(planner: Any) -> object:
        return planner.plan_lookup(pa.array([int(random.integers(count))])).to_table()

    def scan(library: Any, dataset: Any, snapshot: Any) -> object:
        return library.mem_wal.LsmScanner.from_snapshots(dataset, [snapshot]).to_table()

    looks: dict[str, Callable[[], object]] = {}
    scans: dict[str, Callable[[], object]] = {}
    plain: dict[str, Callable[[], object]] = {}
    for name, path in paths.items():
        library = LIBRARIES[name]
        dataset, snapshot = library.dataset(str(path)), snapshot_of(name, path)
        planner = library.mem_wal.LsmPointLookupPlanner(dataset, [snapshot])
        look_up(planner)
        looks[name] = partial(look_up, planner)
        scans[name] = partial(scan, library, dataset, snapshot)
        plain[name] = dataset.to_table
    show("lookup of a key", in_turn(looks, lookups))
    if rounds:
        show("scan of the table", in_turn(plain, rounds))
        show("scan with the shard", in_turn(scans, rounds))


def recovery(paths: dict[str, Path], megabytes: int, rounds: int) -> None:
    """Time the claim of a shard whose log has to be replayed, by both libraries in turn."""
    payload = pa.table([np.arange(10_000), np.arange(10_000) / 3, pa.array(["x" * 80] * 10_000)], schema=SCHEMA)
    shard = SHARD.replace("1", "a")
    large: dict[str, Any] = {
        "max_memtable_size": 8 << 30,
        "max_memtable_rows": 1 << 40,
        "max_unflushed_memtable_bytes": 16 << 30,
    }
    for path in paths.values():
        writer = lance_dataset.dataset(path).mem_wal_writer(shard, **large)
        for _ in range(megabytes * 1_000_000 // payload.nbytes):
            writer.put(payload)
        if writer.stats()["memtable_flush_count"]:
            raise ValueError(f"{megabytes} MB do not fit one memtable, so that some are flushed and not replayed")
        writer.abort()

    def claim(library: ModuleType, path: Path) -> None:
        again = library.dataset(str(path)).mem_wal_writer(shard, **large)
        if library is lance_dataset:
            again.abort()  # the log stays as it is; a writer of pylance leaves it when it is dropped
        del again

    calls: dict[str, Callable[[], object]] = {}
    for name, path in paths.items():
        calls[name] = partial(claim, LIBRARIES[name], path)
    show(f"replay of {megabytes} MB of log", in_turn(calls, rounds, rounds))


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--puts", type=int, default=100, help="durable puts")
    parser.add_argument("--lookups", type=int, default=500, help="lookups of keys")
    parser.add_argument("--scans", type=int, default=5, help="scans of each kind; 0 for none")
    parser.add_argument("--sustained", type=int, default=500_000, help="rows of relaxed puts")
    parser.add_argument("--log", type=int, default=64, help="megabytes of the log to replay")
    parser.add_argument("--replays", type=int, default=3, help="replays of this log")
    parser.add_argument("--only", choices=["puts", "sustained", "reads", "recovery"], help="only this measurement")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, name) for name in LIBRARIES}
        first, *others = paths.values()
        make(first, given.rows)
        for other in others:
            shutil.copytree(first, other)
        work: dict[str, Callable[[], None]] = {
            "puts": lambda: puts(paths, given.puts),
            "sustained": lambda: sustained(paths, given.sustained),
            "reads": lambda: reads(paths, given.rows, given.lookups, given.scans),
            "recovery": lambda: recovery(paths, given.log, given.replays),
        }
        for name, run in work.items():
            if given.only not in (None, name):
                continue
            if name == "reads":
                tables(paths, 8, max(given.rows // 800, 1), given.rows)
            run()
            for path in paths.values():
                shutil.rmtree(path / "_mem_wal")


if __name__ == "__main__":
    main()
