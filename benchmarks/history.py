"""Cost of a table's history: opening it, appending ten rows, and finding rows by id, beside the reference.

The reference creates the histories: many versions of one fragment (`versions`), many fragments in a few versions
(`fragments`), many appends (`appends`, both), or many updates of ten rows with stable ids (`updates`). Every contender
has its own copy (hard links), which grows by one append per round. In each round all contenders run once, in a new
random order. Medians count.

    python benchmarks/history.py --length 2000 --rounds 31
    python benchmarks/history.py --kinds appends --length 20000
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from report import render_times

FOUND = f"_rowid IN ({', '.join(map(str, range(20)))})"
ROWS = pa.table({"id": range(10), "x": [float(i) for i in range(10)], "s": [f"row {i}" for i in range(10)]})
UNSYNCED = {"local_fsync": "false"}


@dataclass(frozen=True)
class Contender:
    """A library and a way to use it."""

    name: str
    append: Callable[[str], object]
    open: Callable[[str], int]
    find: Callable[[str], int]


CONTENDERS = [
    Contender(
        "lance-dataset, unsynced",
        lambda uri: lance_dataset.write_dataset(ROWS, uri, mode="append", storage_options=UNSYNCED),
        lambda uri: lance_dataset.dataset(uri).count_rows(),
        lambda uri: lance_dataset.dataset(uri).to_table(["id"], filter=FOUND).num_rows,
    ),
    Contender(
        "lance-dataset",
        lambda uri: lance_dataset.write_dataset(ROWS, uri, mode="append"),
        lambda uri: lance_dataset.dataset(uri).count_rows(),
        lambda uri: lance_dataset.dataset(uri).to_table(["id"], filter=FOUND).num_rows,
    ),
    Contender(
        "pylance",
        lambda uri: lance.write_dataset(ROWS, uri, mode="append"),
        lambda uri: lance.dataset(uri).count_rows(),
        lambda uri: lance.dataset(uri).to_table(["id"], filter=FOUND).num_rows,
    ),
]


def versions(uri: str, length: int) -> None:
    """Create one fragment with `length` versions."""
    dataset = lance.write_dataset(ROWS, uri)
    for number in range(length - 1):
        dataset.update_config({"number": str(number)})


def fragments(uri: str, length: int) -> None:
    """Create `length` fragments in four versions."""
    dataset = lance.write_dataset(ROWS, uri)
    for part in range(3):
        count = (length - 1) * (part + 1) // 3 - (length - 1) * part // 3
        new = [lance.fragment.write_fragments(ROWS, uri)[0] for _ in range(count)]
        dataset = lance.LanceDataset.commit(uri, lance.LanceOperation.Append(new), read_version=dataset.version)


def appends(uri: str, length: int) -> None:
    """Make `length` appends, with as many fragments and versions."""
    for _ in range(length):
        lance.write_dataset(ROWS, uri, mode="append")


def updates(uri: str, length: int) -> None:
    """Make `length` updates of ten rows."""
    rng = np.random.default_rng(7)
    rows = pa.concat_tables([ROWS] * 10_000)
    dataset = lance.write_dataset(
        rows.set_column(0, "id", pa.array(range(len(rows)))), uri, enable_stable_row_ids=True, max_rows_per_file=10_000
    )
    for _ in range(length):
        chosen = ", ".join(map(str, rng.choice(len(rows), 10, replace=False).tolist()))
        dataset.update({"x": "x + 1"}, where=f"id IN ({chosen})")


HISTORIES: dict[str, Callable[[str, int], None]] = {
    "versions": versions,
    "fragments": fragments,
    "appends": appends,
    "updates": updates,
}


def timed(action: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(kind: str, length: int, rounds: int, scratch: Path) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each contender in each round, by activity."""
    source = scratch / "source"
    HISTORIES[kind](str(source), length)
    copies = {each.name: scratch / f"copy{number}" for number, each in enumerate(CONTENDERS)}
    for copy in copies.values():
        shutil.copytree(source, copy, copy_function=os.link)
    times: dict[str, dict[str, list[float]]] = {
        f"{label} {kind}": {each.name: [] for each in CONTENDERS}
        for label in ("open and count", "append 10 rows to", "open and find 20 rows of")
    }
    opened, appended, found = times.values()
    shuffler = random.Random(7)
    for number in range(rounds + 1):
        for each in shuffler.sample(CONTENDERS, len(CONTENDERS)):
            uri = str(copies[each.name])
            seconds = [timed(lambda: run(uri)) for run in (each.append, each.open, each.find)]  # noqa: B023 - called now
            if number:  # the first round is a warm-up
                appended[each.name].append(seconds[0])
                opened[each.name].append(seconds[1])
                found[each.name].append(seconds[2])
    check(copies)
    return times


def check(copies: dict[str, Path]) -> None:
    """Check that all copies hold the same rows."""
    counts = {read(str(copy)) for copy in copies.values() for read in (each.open for each in CONTENDERS)}
    if len(counts) != 1:
        raise SystemExit(f"the copies have different numbers of rows: {sorted(counts)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2000, help="versions and fragments of the history")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--kinds", nargs="+", choices=HISTORIES, default=list(HISTORIES))
    parser.add_argument("--directory", help="folder of the tables; a new temporary folder by default")
    options = parser.parse_args()
    for kind in options.kinds:
        with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
            times = measure(kind, options.length, options.rounds, Path(scratch))
        names = [each.name for each in CONTENDERS]
        print(render_times(f"{kind}: {options.length:,}", names, times), flush=True)
        unsynced, synced, other = (statistics.median(times[f"append 10 rows to {kind}"][name]) for name in names)
        print(f"append: {other / unsynced:.2f} times the reference's speed unsynced, {other / synced:.2f} synced;")
        print(f"durability costs {1e3 * (synced - unsynced):.1f} ms\n", flush=True)


if __name__ == "__main__":
    main()
