"""Write to one dataset from many processes of this package and of pylance; report time, fairness, and lost rows.

python scripts/stress.py [--processes 16] [--turns 50] [--work append all ...] [--fsync on off] [--seed 1]
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import lance
import pyarrow as pa
from support.processes import all_changes
from support.processes.many_writers import OURS, REFERENCE, Outcome, check_history, run

import lance_dataset

#: Kinds of work whose history is checked, and one of all changes, which is checked against a model.
WORKS = ("append", "mixed", "disjoint", "overlapping")
ALL = "all"
AGE = dt.timedelta(minutes=2)
START = 30_000


def shared_out(processes: int, ours: int | None) -> list[str]:
    """Return the library of each process, half each unless specified otherwise."""
    count = processes // 2 if ours is None else ours
    return [OURS if number * count % processes < count else REFERENCE for number in range(processes)]


def many_commits(work: str, writers: list[str], arguments: argparse.Namespace, fsync: bool, folder: str) -> Outcome:
    """Make one run, and check it with both libraries."""
    path = f"{folder}/t.lance"
    table = pa.table({"id": pa.array(range(START), pa.int64())})
    lance_dataset.write_dataset(
        table, path, max_rows_per_file=START // 3, enable_stable_row_ids=arguments.stable_row_ids
    )
    outcome = run(path, work, writers, arguments.turns, seed=arguments.seed, fsync=fsync)
    assert len(outcome.commits) == len(writers) * arguments.turns

    def rows_of(version: int) -> list[int]:
        return lance_dataset.dataset(path, version=version).to_table()["id"].to_pylist()

    expected = check_history(outcome.commits, {1: set(range(START))}, rows_of)
    newest = lance.dataset(path)
    assert newest.version == 1 + len(outcome.commits)
    found = newest.to_table()["id"].to_pylist()
    assert len(found) == len(expected)
    assert set(found) == expected
    lance_dataset.dataset(path).validate()
    return outcome


def all_kinds(writers: list[str], arguments: argparse.Namespace, folder: str) -> str:
    """Make every kind of change at once, with cleanups, tags and branches, and compare the result with a model."""
    path = f"{folder}/t.lance"
    all_changes.create(path, lance_dataset, enable_stable_row_ids=arguments.stable_row_ids)
    made = all_changes.run(path, writers, arguments.turns, seed=arguments.seed, age=AGE)
    all_changes.check(path, made, lance_dataset, lance)
    return made.summary()


def main() -> None:
    """Run the requested combinations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--ours", type=int, help="number of processes of this package; half by default")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--work", nargs="+", choices=(*WORKS, ALL), default=(*WORKS, ALL))
    parser.add_argument("--fsync", nargs="+", choices=("on", "off"), default=("on", "off"))
    parser.add_argument("--stable-row-ids", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    writers = shared_out(arguments.processes, arguments.ours)
    for work in arguments.work:
        if work == ALL:
            with tempfile.TemporaryDirectory() as folder:
                print(f"all kinds, seed {arguments.seed}: {all_kinds(writers, arguments, folder)}", flush=True)
            continue
        for fsync in arguments.fsync:
            with tempfile.TemporaryDirectory() as folder:
                outcome = many_commits(work, writers, arguments, fsync == "on", folder)
            print(f"{work}, fsync {fsync}, seed {arguments.seed}: {outcome.summary()}", flush=True)


if __name__ == "__main__":
    main()
