"""Changes of a table, beside the reference, on copies of the same files.

The reference writes the tables: line items as in `lineitem.py`, with a unique integer key and a unique text key, and
line items in many small fragments, also with indices and deleted rows. In each round, every library makes each change
on a new copy, in a new random order. Copying, opening and checking the result are not timed. Both libraries make the
change with one call and its commit; only this package waits for the disk.

    python benchmarks/changes.py --rows 2000000 --rounds 5
    python benchmarks/changes.py --only 'merge_insert*' --rounds 9
    python benchmarks/changes.py --memory --rows 10000000
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lineitem import SCHEMA, make_batch
from report import megabytes, render_lines, render_times

LIBRARIES = {"lance-dataset": "lance_dataset", "pylance": "lance"}
VERSION = "2.2"
MERGED = 100_000
INDICES = {"id": "BTREE", "code": "BTREE", "shipmode": "BITMAP", "comment": "INVERTED"}
_BATCH = 100_000
_SAMPLE_SECONDS = 0.005

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Change:
    """A change to measure.

    Attributes
    ----------
    table
        Table to change.
    run
        Makes the change on an open dataset.
    result
        Value that both libraries must agree on afterwards.
    """

    name: str
    table: str
    run: Callable[[Any], object]
    result: Callable[[Any], object]


# -- tables --------------------------------------------------------------------------------------------------------


def keyed_schema() -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("code", pa.string()), *SCHEMA])


def codes(ids: np.ndarray) -> pa.Array:
    """Return text keys in random order."""
    mixed = (ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) & np.uint64((1 << 48) - 1)
    return pa.array([f"item-{number:012x}" for number in mixed.tolist()])


def keyed_batch(ids: np.ndarray, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    return pa.record_batch([pa.array(ids), codes(ids), *make_batch(rng, int(ids[0]), len(ids))], schema=keyed_schema())


def stream(rows: int) -> pa.RecordBatchReader:
    parts = (np.arange(start, min(start + _BATCH, rows)) for start in range(0, rows, _BATCH))
    return pa.RecordBatchReader.from_batches(keyed_schema(), (keyed_batch(ids, int(ids[0])) for ids in parts))


def source(rows: int, merged_rows: int, seed: int = 3) -> pa.Table:
    """Return rows to merge in random order; half of their keys exist in the table."""
    rng = np.random.default_rng(seed)
    half = merged_rows // 2
    known = rng.choice(rows, half, replace=False)
    ids = rng.permutation(np.concatenate([known, np.arange(rows, rows + merged_rows - half)]))
    parts = [keyed_batch(ids[start : start + _BATCH], start + 1) for start in range(0, merged_rows, _BATCH)]
    return pa.Table.from_batches(parts)


def make_tables(folder: Path, rows: int, fragments: int, wanted: set[str]) -> None:
    reference = import_module("lance")
    if "rows" in wanted:
        reference.write_dataset(stream(rows), str(folder / "rows"), data_storage_version=VERSION)
    for name in wanted & {"fragments", "indexed"}:
        per_fragment = max(1, rows // fragments)
        reference.write_dataset(
            stream(per_fragment * fragments),
            str(folder / name),
            data_storage_version=VERSION,
            max_rows_per_file=per_fragment,
        )
    if "indexed" in wanted:
        dataset = reference.dataset(str(folder / "indexed"))
        for column, kind in INDICES.items():
            dataset.create_scalar_index(column, kind)
        dataset.delete("id % 20 = 3")


# -- changes -------------------------------------------------------------------------------------------------------


def rows_of(dataset: Any) -> object:
    return dataset.count_rows()


def merged(dataset: Any, table: pa.Table, on: str) -> object:
    builder = dataset.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()
    return builder.execute(table)


def changes(rows: int) -> list[Change]:
    table = source(rows, min(MERGED, rows))
    few = source(rows, max(rows // 100, 2))
    keys = np.random.default_rng(5).permutation(rows)
    joined = pa.table({"id": keys, "rank": keys * 3})
    compared = (lambda dataset: dataset.count_rows("partkey % 7 = 1"), rows_of)

    def update(dataset: Any) -> object:
        return dataset.update({"comment": "'changed'", "quantity": "quantity + 1"}, where="id % 100 = 7")

    def check(dataset: Any) -> object:
        return [each(dataset) for each in compared]

    def names(dataset: Any) -> object:
        return dataset.schema.names

    def added(dataset: Any, name: str) -> object:
        return dataset.to_table([name], filter="id % 10007 = 1").column(0).to_pylist()

    return [
        Change("update, 1%", "rows", update, check),
        Change("delete, 10%", "rows", lambda dataset: dataset.delete("id % 10 = 3"), check),
        Change("merge_insert, integer key", "rows", partial(merged, table=table, on="id"), check),
        Change("merge_insert, string key", "rows", partial(merged, table=table, on="code"), check),
        Change(
            "add_columns, integers",
            "rows",
            lambda dataset: dataset.add_columns({"total": "orderkey * 8 + linenumber"}),
            partial(added, name="total"),
        ),
        Change(
            "add_columns, decimals",
            "rows",
            lambda dataset: dataset.add_columns({"total": "extendedprice * (1 - discount) * (1 + tax)"}),
            lambda dataset: [round(float(value), 2) for value in added(dataset, "total")],
        ),
        Change(
            "alter_columns, cast",
            "rows",
            lambda dataset: dataset.alter_columns({"path": "partkey", "data_type": pa.int32()}),
            partial(added, name="partkey"),
        ),
        Change(
            "drop_columns", "rows", lambda dataset: dataset.drop_columns(["comment"]), lambda dataset: dataset.schema
        ),
        Change("merge, join", "rows", lambda dataset: dataset.merge(joined, "id"), partial(added, name="rank")),
        Change("update, 1%, small fragments", "fragments", update, check),
        Change("delete, 1%, small fragments", "fragments", lambda dataset: dataset.delete("id % 100 = 7"), check),
        Change("merge_insert, 1%, small fragments", "fragments", partial(merged, table=few, on="id"), check),
        Change("compact_files", "fragments", lambda dataset: dataset.optimize.compact_files(), check),
        Change(
            "compact_files, copied pages",
            "fragments",
            lambda dataset: dataset.optimize.compact_files(compaction_mode="try_binary_copy"),
            check,
        ),
        Change("compact_files, four indices", "indexed", lambda dataset: dataset.optimize.compact_files(), check),
    ]


def once(library: str, change: Change, folder: Path, clock: Callable[[], float]) -> tuple[float, object]:
    """Make a change on a new copy of its table; return the seconds and the result."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / change.table, copy)
    os.sync()  # writing the copy to disk must not count for this change
    module = import_module(LIBRARIES[library])
    dataset = module.dataset(str(copy))
    gc.collect()
    start = clock()
    change.run(dataset)
    seconds = clock() - start
    del dataset
    return seconds, change.result(module.dataset(str(copy)))


def measure(chosen: list[Change], folder: Path, rounds: int, clock: Callable[[], float]) -> dict[str, Times]:
    shuffler = random.Random(7)
    times: dict[str, Times] = {}
    for number in range(rounds + 1):  # the first round is a warm-up
        for change in chosen:
            results = {}
            for library in shuffler.sample(list(LIBRARIES), len(LIBRARIES)):
                seconds, results[library] = once(library, change, folder, clock)
                if number:
                    times.setdefault(change.name, {}).setdefault(library, []).append(seconds)
            ours, theirs = (results[library] for library in LIBRARIES)
            if ours != theirs:
                raise SystemExit(f"{change.name}: {ours} != {theirs}")
    return times


# -- memory --------------------------------------------------------------------------------------------------------


class Sampler(threading.Thread):
    """Samples the highest resident memory of this process until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._stopped = threading.Event()
        self.peak = self.anonymous = 0

    def run(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self.look()

    def look(self) -> None:
        lines = Path("/proc/self/status").read_text().splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss")}
        self.anonymous = max(self.anonymous, found["RssAnon"])
        self.peak = max(self.peak, sum(found.values()))

    def stop(self) -> None:
        self._stopped.set()
        self.join()
        self.look()


def merge_for_memory(library: str, path: str, rows: str) -> None:
    """Merge as many rows into a dataset as it has, and print time and memory; runs in a separate process."""
    dataset = import_module(LIBRARIES[library]).dataset(path)
    reader = pa.RecordBatchReader.from_batches(keyed_schema(), shuffled_batches(int(rows)))
    sampler = Sampler()
    sampler.start()
    start = time.perf_counter()
    done = merged(dataset, reader, "id")
    seconds = time.perf_counter() - start
    sampler.stop()
    print(json.dumps({"seconds": seconds, "peak": sampler.peak, "anonymous": sampler.anonymous, "done": done}))


def shuffled_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield rows to merge, generated on demand, in random order; half of their keys exist in the table."""
    step = next(number for number in count(rows * 5 // 8) if math.gcd(number, rows) == 1)
    for start in range(0, rows, _BATCH):
        places = np.arange(start, min(start + _BATCH, rows)) * step % rows
        yield keyed_batch(places + rows // 2, start + 1)


def measure_memory(folder: Path, rows: int) -> str:
    """Measure the peak resident memory of a merge of as many rows as the table has."""
    make_tables(folder, rows, 1, {"rows"})
    lines = [["", "time, source made included", "peak", "without mapped files"]]
    for library in LIBRARIES:
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder / "rows", copy)
        os.sync()
        command = [sys.executable, __file__, "--merge", library, str(copy), str(rows)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        found = json.loads(printed.splitlines()[-1])
        sizes = [megabytes(found[name]) for name in ("peak", "anonymous")]
        print(f"{library}: {found}", file=sys.stderr)
        lines.append([library, f"{found['seconds']:.1f} s", *sizes])
    return render_lines(f"merge_insert of {rows:,} rows, half of them new, into {rows:,} rows: memory", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--fragments", type=int, default=500, help="fragments in the table of small fragments")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: time of all threads, for busy machines")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="names of the changes to run")
    parser.add_argument("--memory", action="store_true", help="measure the memory of a large merge instead")
    parser.add_argument("--folder", type=Path, help="where tables are created [default: a temporary folder]")
    parser.add_argument("--merge", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.merge:
        merge_for_memory(*options.merge)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if options.memory:
            print(measure_memory(folder, options.rows))
            return
        chosen = [each for each in changes(options.rows) if any(fnmatch(each.name, one) for one in options.only)]
        make_tables(folder, options.rows, options.fragments, {each.table for each in chosen})
        times = measure(chosen, folder, options.rounds, CLOCKS[options.clock])
    title = (
        f"{options.rows:,} rows of {len(keyed_schema())} columns, file version {VERSION}; median {options.clock} times"
    )
    print(render_times(title, list(LIBRARIES), times))


if __name__ == "__main__":
    main()
