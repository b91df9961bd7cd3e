"""Side by side: this package, the reference implementation, Parquet and Vortex, on the same tables in one process.

All contenders do an operation once to warm up, and the answer is checked against the source table. Then come rounds:
in each every contender does the operation once, in an order shuffled anew, so that drift of the machine hits all alike.
The median over the rounds counts. Ratios are relative to the first contender: above 1 it is faster (or smaller).

    python benchmarks/compare.py --rows 0.1 --tables mixed --rounds 3
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

import memory
import report
from contenders import CONTENDERS, Contender
from data import DATASETS, Dataset
from operations import Operation, Subject, check, operations

REPEATED_SECONDS = 0.1
WRITE_ROUNDS = 3
# Of each contender, what each round took.
Times = dict[str, list[float]]
DEFAULT_DIRECTORY = Path(__file__).parent / ".data"


def timed(action: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def repeat(operation: Operation, subject: Subject, repetitions: int) -> None:
    for repetition in range(repetitions):
        operation.run(subject, repetition)


def warm_up(operation: Operation, subject: Subject, expected: object) -> int:
    """Do the operation, check the answer, and return how often to repeat it within one timing."""
    result = operation.run(subject, 0)
    if operation.expected is not None:
        check(operation, subject, result, expected)
    del result
    if not operation.repeated:
        return 1
    once = timed(lambda: operation.run(subject, 1))
    return max(1, min(1000, round(REPEATED_SECONDS / once)))


def rounds_of(action: Callable[[str], float], names: Sequence[str], rounds: int, shuffler: random.Random) -> Times:
    """The seconds of each contender in each of the interleaved rounds."""
    times: Times = {name: [] for name in names}
    for _ in range(rounds):
        for name in shuffler.sample(names, len(names)):
            times[name].append(action(name))
    return times


def measure_operation(
    operation: Operation, subjects: dict[str, Subject], rounds: int, shuffler: random.Random
) -> Times:
    expected = None if operation.expected is None else operation.expected(0)
    repetitions = {name: warm_up(operation, subject, expected) for name, subject in subjects.items()}
    del expected

    def once(name: str) -> float:
        count = repetitions[name]
        return timed(lambda: repeat(operation, subjects[name], count)) / count

    return rounds_of(once, list(subjects), rounds, shuffler)


def measure_write(
    contenders: Sequence[Contender], table: pa.Table, directory: Path, rounds: int, shuffler: random.Random
) -> Times:
    """Write into `directory`: once to keep (``NAME``), then in rounds to throw away."""
    by_name = {contender.name: contender for contender in contenders}
    for name, contender in by_name.items():
        contender.write(table, directory / name)

    def once(name: str) -> float:
        path = directory / "again"
        remove(path)
        os.sync()  # the previous contender's bytes on their way to disk are not this one's time
        return timed(lambda: by_name[name].write(table, path))

    times = rounds_of(once, list(by_name), min(rounds, WRITE_ROUNDS), shuffler)
    remove(directory / "again")
    os.sync()
    return times


def measure_memory(contenders: Sequence[Contender], dataset: Dataset, rows: int, directory: Path) -> dict[str, dict]:
    results: dict[str, dict] = {}
    for activity, label in memory.ACTIVITIES.items():
        for contender in contenders:
            path = directory / ("again" if activity == "write" else contender.name)
            found = memory.measure(contender, dataset, rows, activity, path)
            remove(directory / "again")
            for kind, value in found.items():
                results.setdefault(f"{label}: {kind}", {})[contender.name] = value
    return results


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def size_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def compare(dataset: Dataset, contenders: Sequence[Contender], directory: Path, options: argparse.Namespace) -> dict:
    """Measure everything about one table, print it, and return it for the JSON file."""
    rows = max(1, round(dataset.rows * options.rows))
    names = [contender.name for contender in contenders]
    shuffler = random.Random(dataset.name)
    table = dataset.table(rows)
    progress(f"{dataset.name}: {rows:,} rows, {table.nbytes / 1e6:,.0f} MB in memory")

    progress("write")
    timings = {"write": measure_write(contenders, table, directory, options.rounds, shuffler)}
    sizes = {name: size_of(directory / name) for name in names}
    subjects = {
        contender.name: Subject(contender, directory / contender.name, contender.open(directory / contender.name))
        for contender in contenders
    }
    for operation in operations(dataset, table):
        progress(operation.name)
        timings[operation.name] = measure_operation(operation, subjects, options.rounds, shuffler)
    memory_used = {}
    if options.memory:
        progress("memory")
        memory_used = measure_memory(contenders, dataset, rows, directory)

    title = f"{dataset.name}: {rows:,} rows x {len(dataset.schema)} columns, {table.nbytes / 1e6:,.0f} MB in memory"
    print(report.render_times(f"{title}; median times", names, timings))
    space = {"file size": sizes, **{f"memory, {label}": cells for label, cells in memory_used.items()}}
    print(report.render_bytes(f"{title}; bytes", names, space), flush=True)
    return {"rows": rows, "bytes": table.nbytes, "seconds": timings, "file_bytes": sizes, "memory_bytes": memory_used}


def progress(text: str) -> None:
    print(f"  ... {text}", file=sys.stderr, flush=True)


def chosen_contenders(without: Sequence[str]) -> list[Contender]:
    """All contenders but those left out; a library that is not there is an error, not a shorter table."""
    chosen = [contender for name, contender in CONTENDERS.items() if name not in without]
    for contender in chosen:
        try:
            contender.import_library()
        except ImportError as error:
            raise SystemExit(
                f"contender {contender.name} is not there ({error}): pip install {contender.requires}, "
                f"or leave it out with --without {contender.name}"
            ) from error
    if not chosen:
        raise SystemExit("no contender is left")
    return chosen


def environment(contenders: Sequence[Contender]) -> dict[str, object]:
    packages = {contender.requires for contender in contenders} | {"pyarrow"}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {name: importlib.metadata.version(name) for name in sorted(packages)},
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=list(DATASETS), default=list(DATASETS), help="what to measure")
    parser.add_argument("--rows", type=float, default=1.0, metavar="SCALE", help="factor on the rows of each table")
    parser.add_argument("--rounds", type=int, default=5, help=f"rounds per operation (writes: at most {WRITE_ROUNDS})")
    parser.add_argument("--without", nargs="+", default=[], choices=list(CONTENDERS), metavar="NAME", help="leave out")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="do not measure peak memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file, too")
    parser.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help="where the tables are written")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    contenders = chosen_contenders(options.without)
    facts = environment(contenders)
    print(json.dumps(facts))
    for contender in contenders:
        print(f"  {contender.name}: {contender.description}")
    print()
    options.directory.mkdir(parents=True, exist_ok=True)
    results = {}
    for name in options.tables:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            results[name] = compare(DATASETS[name], contenders, Path(directory), options)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps({"environment": facts, "tables": results}, indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
