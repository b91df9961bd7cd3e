"""Tables of many small fragments with deleted rows, compared with the reference on the same files.

The reference writes the table and deletes a share of its rows; both libraries read copies of it (hard links). `first`
is the time of the first call on a newly opened dataset; the other figure is the median of later calls. In each round,
both libraries run once, in a new random order, and both datasets are opened again for the first call.

    python benchmarks/fragments.py --fragments 2000 --rows 500 --rounds 7
"""

from __future__ import annotations

import argparse
import gc
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from report import render_times

LIBRARIES: dict[str, ModuleType] = {"lance-dataset": lance_dataset, "pylance": lance}


def make(path: Path, fragments: int, rows: int) -> None:
    """Create a table of that many fragments, with every tenth row deleted."""
    count = fragments * rows
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "id": np.arange(count),
            "key": rng.integers(0, 1_000_000, count),
            "text": pa.array([f"name {number % 9973}" for number in range(count)]),
            "value": rng.random(count),
        }
    )
    dataset = lance.write_dataset(table, str(path), max_rows_per_file=rows, data_storage_version="2.2")
    dataset.delete("id % 10 = 3")


def calls(count: int, rng: np.random.Generator) -> dict[str, Callable[[Any], object]]:
    """Return the calls to time; each set of calls draws other rows."""
    many, one = rng.choice(count, min(1000, count), replace=False).tolist(), rng.choice(count, 1).tolist()
    return {
        f"take {len(many):,} rows": lambda dataset: dataset.take(many).num_rows,
        "take 1 row": lambda dataset: dataset.take(one).num_rows,
        "scan": lambda dataset: dataset.to_table().num_rows,
        "filter, 0.1%": lambda dataset: dataset.to_table(filter="key < 1000").num_rows,
        "count, 0.1%": lambda dataset: dataset.count_rows(filter="key < 1000"),
    }


def timed(action: Callable[[Any], object], dataset: Any) -> tuple[float, object]:
    gc.collect()
    start = time.perf_counter()
    found = action(dataset)
    return time.perf_counter() - start, found


def measure(paths: dict[str, Path], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds by operation (with first calls separate) and library."""
    rng, shuffler = np.random.default_rng(7), random.Random(7)
    opened = {name: LIBRARIES[name].dataset(str(path)) for name, path in paths.items()}
    count = opened["pylance"].count_rows()
    times: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for label, action in calls(count, rng).items():
            answers = {}
            for name in shuffler.sample(list(paths), len(paths)):
                fresh = LIBRARIES[name].dataset(str(paths[name]))
                first, answers[name] = timed(action, fresh)
                later, _ = timed(action, opened[name])
                times.setdefault(f"{label}, first", {}).setdefault(name, []).append(first)
                times.setdefault(label, {}).setdefault(name, []).append(later)
            if len(set(answers.values())) > 1:
                raise SystemExit(f"{label}: {answers}")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fragments", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=500, help="rows of a fragment")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        make(source, options.fragments, options.rows)
        paths = {name: Path(folder) / name for name in LIBRARIES}
        for path in paths.values():
            shutil.copytree(source, path)
        times = measure(paths, options.rounds)
    title = f"{options.fragments:,} fragments of {options.rows:,} rows, a tenth deleted; median wall times"
    print(render_times(title, list(LIBRARIES), times))


if __name__ == "__main__":
    main()
