"""Comparison of this package, the reference implementation, Parquet and Vortex on the same tables in one process.

Each contender runs an operation once as a warm-up, and the answer is checked against the source table. Then, in each
round, every contender runs the operation once, in a new random order, so that drift of the machine affects all equally.
The median over the rounds counts. For each Lance file version, there is a table of times, one of bytes, and the
headline: how many times faster (or smaller) this package is than each opponent, and which targets it misses.

    python benchmarks/compare.py --scale 0.1 --tables mixed --versions 2.2 --rounds 3
    python benchmarks/compare.py --tables lineitem --columns all --without 'vortex*' --operations 'scan*' 'take*'
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
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa

import memory
import report
from contenders import CONTENDERS, VERSIONS, Contender
from data import DATASETS, Dataset
from headline import headline, medians
from operations import Operation, Subject, check, operations

REPEATED_SECONDS = 0.1
WRITE_ROUNDS = 3
# Seconds of each round, by contender.
Times = dict[str, list[float]]
DEFAULT_DIRECTORY = Path(__file__).parent / ".data"


# Elapsed time, or the processor time of all threads of this process.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
clock = CLOCKS["wall"]


def timed(action: Callable[[], object]) -> float:
    gc.collect()
    start = clock()
    action()
    return clock() - start


def repeat(operation: Operation, subject: Subject, repetitions: int) -> None:
    for repetition in range(repetitions):
        operation.run(subject, repetition)


def warm_up(operation: Operation, subject: Subject, expected: object) -> int:
    """Run the operation, check the answer, and return the number of repetitions within one timing."""
    result = operation.run(subject, 0)
    if operation.expected is not None:
        check(operation, subject, result, expected)
    del result
    if not operation.repeated:
        return 1
    once = timed(lambda: operation.run(subject, 1))
    return max(1, min(1000, round(REPEATED_SECONDS / max(once, 1e-6))))


def rounds_of(action: Callable[[str], float], names: Sequence[str], rounds: int, shuffler: random.Random) -> Times:
    """Return the seconds of each contender in each of the interleaved rounds."""
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
    """Write into `directory`: once to keep (``NAME``), then in rounds to discard."""
    by_name = {contender.name: contender for contender in contenders if contender.writes}
    for name, contender in by_name.items():
        contender.write(table, directory / name)

    def once(name: str) -> float:
        path = directory / "again"
        remove(path)
        os.sync()  # writing the previous contender's bytes to disk must not count for this one
        return timed(lambda: by_name[name].write(table, path))

    times = rounds_of(once, list(by_name), min(rounds, WRITE_ROUNDS), shuffler)
    remove(directory / "again")
    os.sync()
    return times


def open_subjects(contenders: Sequence[Contender], directory: Path) -> dict[str, Subject]:
    """Open the tables of the contenders whose reads are measured."""
    found = {}
    for contender in contenders:
        path = directory / contender.stored_by
        if contender.reads:
            found[contender.name] = Subject(contender, path, contender.open(path))
    return found


def measure_memory(contenders: Sequence[Contender], dataset: Dataset, rows: int, directory: Path) -> dict[str, dict]:
    results: dict[str, dict] = {}
    for activity, label in memory.ACTIVITIES.items():
        writing = activity == "write"
        for contender in contenders:
            if not (contender.writes if writing else contender.reads):
                continue
            path = directory / ("again" if writing else contender.stored_by)
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
    rows = max(1, round(dataset.rows * options.scale))
    shuffler = random.Random(dataset.name)
    table = dataset.table(rows)
    title = f"{dataset.name}: {rows:,} rows x {len(dataset.schema)} columns, {table.nbytes / 1e6:,.0f} MB in memory"
    progress(title)

    progress("write")
    timings = {"write": measure_write(contenders, table, directory, options.rounds, shuffler)}
    kinds: dict[str, str | None] = {"write": "write", "file size": "file size"}
    subjects = open_subjects(contenders, directory)
    sizes = {contender.name: size_of(directory / contender.stored_by) for contender in contenders if contender.writes}
    for operation in operations(dataset, table):
        if any(fnmatch(operation.name, pattern) for pattern in options.operations):
            progress(operation.name)
            kinds[operation.name] = operation.kind
            chosen = {
                name: subject
                for name, subject in subjects.items()
                if subject.contender.version is not None or not operation.lance_only
            }
            timings[operation.name] = measure_operation(operation, chosen, options.rounds, shuffler)
    memory_used = {}
    if options.memory:
        progress("memory")
        memory_used = measure_memory(contenders, dataset, rows, directory)
    del subjects

    space = {"file size": sizes, **{f"memory, {label}": cells for label, cells in memory_used.items()}}
    for version in options.versions:
        print_version(title, version, contenders, timings, space, kinds)
    found = {
        "rows": rows,
        "clock": options.clock,
        "bytes": table.nbytes,
        "seconds": timings,
        "file_bytes": sizes,
        "memory_bytes": memory_used,
    }
    if options.columns:
        found["columns"] = compare_columns(dataset, table, contenders, directory, options)
    return found


def print_version(
    title: str,
    version: str,
    contenders: Sequence[Contender],
    timings: dict[str, Times],
    space: dict[str, dict[str, int]],
    kinds: dict[str, str | None],
) -> None:
    """Print the tables of one file version, which include the other formats."""
    names = [contender.name for contender in contenders if contender.version in (version, None)]
    print(report.render_times(f"{title}; file version {version}, median {clock_name()} times", names, timings))
    print(report.render_bytes(f"{title}; file version {version}, bytes", names, space))
    figures = {**{name: medians(times) for name, times in timings.items()}, **space}
    lines = list(headline(version, figures, kinds))
    print(report.render_lines(f"{title}; file version {version}, times better than", lines), flush=True)


def compare_columns(
    dataset: Dataset, table: pa.Table, contenders: Sequence[Contender], directory: Path, options: argparse.Namespace
) -> dict[str, dict]:
    """Measure columns as separate tables: size on disk, and times of writing, reading and a take."""
    everything = options.columns == ["all"]
    chosen = (
        dataset.single_columns if everything else [name for name in options.columns if name in dataset.schema.names]
    )
    results = {}
    for column in chosen:
        progress(f"column {column}")
        results[column] = compare_column(dataset.only(column), table.select([column]), contenders, directory, options)
    if not results:
        return results
    labels = ("file size", "write", "scan, touch", "take")
    for version in options.versions:
        names = [contender.name for contender in contenders if contender.version in (version, None)]
        for label in labels:
            rows = {column: found[label] for column, found in results.items()}
            render = report.render_bytes if label == "file size" else report.render_times
            print(render(f"{dataset.name}, columns alone; file version {version}, {label}", names, rows))
    return results


def compare_column(
    dataset: Dataset, table: pa.Table, contenders: Sequence[Contender], directory: Path, options: argparse.Namespace
) -> dict[str, dict]:
    shuffler = random.Random(dataset.name)
    with tempfile.TemporaryDirectory(dir=directory) as place:
        path = Path(place)
        found: dict[str, dict] = {"write": measure_write(contenders, table, path, options.rounds, shuffler)}
        subjects = open_subjects(contenders, path)
        found["file size"] = {each.name: size_of(path / each.stored_by) for each in contenders if each.writes}
        for operation in operations(dataset, table):
            if operation.name == "scan, touch" or operation.name.endswith("unsorted"):
                label = operation.name if operation.name == "scan, touch" else "take"
                found[label] = measure_operation(operation, subjects, options.rounds, shuffler)
    return found


def clock_name() -> str:
    return next(name for name, function in CLOCKS.items() if function is clock)


def progress(text: str) -> None:
    print(f"  ... {text}", file=sys.stderr, flush=True)


def chosen_contenders(versions: Sequence[str], without: Sequence[str]) -> list[Contender]:
    """Return all contenders except those left out; a missing library is an error, not a shorter table."""
    chosen = [
        contender
        for contender in CONTENDERS.values()
        if contender.version in (*versions, None) and not any(fnmatch(contender.name, pattern) for pattern in without)
    ]
    names = {contender.name for contender in chosen}
    for contender in chosen:
        if contender.stored_by not in names:
            raise SystemExit(f"{contender.name} reads what {contender.stored_by} wrote: leave out both or neither")
        try:
            contender.import_library()
        except ImportError as error:
            raise SystemExit(
                f"contender {contender.name} is not available ({error}): pip install {contender.requires}, "
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
    parser.add_argument("--tables", nargs="+", choices=list(DATASETS), default=list(DATASETS), help="tables to measure")
    parser.add_argument("--versions", nargs="+", choices=VERSIONS, default=["2.1", "2.2"], help="Lance file versions")
    parser.add_argument("--scale", type=float, default=1.0, metavar="FACTOR", help="factor on the rows of each table")
    parser.add_argument("--rounds", type=int, default=5, help=f"rounds per operation (writes: at most {WRITE_ROUNDS})")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="cpu: time of all threads, for a machine that is not idle"
    )
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="NAME", help=f"leave out (patterns): {', '.join(CONTENDERS)}"
    )
    parser.add_argument(
        "--operations", nargs="+", default=["*"], metavar="PATTERN", help="operations to measure besides the write"
    )
    parser.add_argument(
        "--columns",
        nargs="+",
        default=[],
        metavar="NAME",
        help="also measure these columns as tables, or: all",
    )
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="do not measure peak memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    parser.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help="where the tables are written")
    return parser.parse_args()


def main() -> None:
    global clock
    options = parse_arguments()
    clock = CLOCKS[options.clock]
    contenders = chosen_contenders(options.versions, options.without)
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
