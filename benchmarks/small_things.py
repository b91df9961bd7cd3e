"""Short calls that people wait for again and again, compared with the reference on the same files.

`json`: functions on a JSON column, and writing and reading one. `calls`: making a scanner, SQL with a limit, row ids by
their values, dropping a column. `first`: the import, and the first call of each kind in a process of its own, without
the imports of pyarrow and of the library. In each round both libraries run once, in a new random order; calls are
repeated within a round for about 0.05 s. Medians count.

    python benchmarks/small_things.py
    python benchmarks/small_things.py --kinds json first --rounds 11 --clock cpu
    python benchmarks/small_things.py --only 'SQL*'
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from report import render_times

LIBRARIES: dict[str, ModuleType] = {"lance-dataset": lance_dataset, "pylance": lance}
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
#: Calls are repeated within a round for about this many seconds.
ENOUGH = 0.05
ROWS, DOCUMENTS = 200_000, 20_000

FUNCTIONS = [
    "json_get(j, 'inner')",
    "json_get_string(j, 'name')",
    "json_get_int(j, 'text number')",
    "json_extract(j, '$.inner.items[1]')",
    "json_extract(j, '$.inner')",
    "json_extract(j, '$.inner.items[*].n')",
    "json_extract(j, '$.tags[*] ? (@ == \"red\")')",
    "json_exists(j, '$.inner.missing')",
    "json_array_contains(j, '$.tags', 'green')",
    "json_array_length(j, '$.tags')",
]

Times = dict[str, dict[str, list[float]]]
Call = Callable[[ModuleType], object]


# -- tables ----------------------------------------------------------------------------------------------------------


def documents(number_of_rows: int) -> pa.Table:
    """Return a table with a column of JSON documents of some 250 bytes."""
    rng = random.Random(11)
    colors = ["red", "green", "blue", "grün"]
    texts = [
        json.dumps(
            {
                "id": number,
                "name": f"person {number} \u00e9",
                "active": number % 3 == 0,
                "score": rng.random() * 100,
                "text number": str(rng.randrange(10_000)),
                "tags": rng.sample(colors, rng.randint(0, 3)),
                "inner": {"items": [{"n": k, "v": rng.random()} for k in range(3)], "note": None, "quote": 'a "b"\n'},
            }
        )
        for number in range(number_of_rows)
    ]
    return pa.table({"j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts))})


def plain(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {"id": np.arange(rows), "key": rng.integers(0, rows, rows), "value": rng.random(rows)}
    return pa.table(columns | {"text": pa.array([f"name {number % 9973}" for number in range(rows)])})


# -- calls in one process --------------------------------------------------------------------------------------------


def json_calls(scratch: Path) -> dict[str, Call]:
    """Return the calls on JSON columns; functions run on a table in one file that both read."""
    table = documents(DOCUMENTS)
    lance.write_dataset(table, str(scratch / "json"))
    opened = {module: module.dataset(str(scratch / "json")) for module in LIBRARIES.values()}

    def function(text: str) -> Call:
        return lambda module: opened[module].to_table(columns={"v": text}).nbytes

    def write(module: ModuleType) -> None:
        module.write_dataset(table, str(scratch / module.__name__), mode="overwrite", **unsynced(module))

    calls: dict[str, Call] = {text: function(text) for text in FUNCTIONS}
    calls[f"write {DOCUMENTS:,} documents"] = write
    calls[f"read {DOCUMENTS:,} documents"] = lambda module: opened[module].to_table().nbytes
    return calls


def unsynced(module: ModuleType) -> dict[str, Any]:
    """Return options with which this package does not wait for the disk, because the reference does not either."""
    return {"storage_options": {"local_fsync": "false"}} if module is lance_dataset else {}


def short_calls(scratch: Path) -> dict[str, Call]:
    table = plain(ROWS)
    lance.write_dataset(table, str(scratch / "plain"), max_rows_per_file=ROWS // 4)
    opened = {module: module.dataset(str(scratch / "plain")) for module in LIBRARIES.values()}
    ids = np.random.default_rng(3).integers(0, ROWS // 4, 1000).tolist()
    keys = count(1000)
    wanted = f"_rowid IN ({','.join(map(str, ids))})"

    return {
        "make a scanner": lambda module: opened[module].scanner(),
        "make a scanner, columns": lambda module: opened[module].scanner(columns=["id", "text"]),
        "make a scanner, filter": lambda module: opened[module].scanner(columns=["id"], filter="key < 100 AND id > 5"),
        "make a scanner, other filters": lambda module: opened[module].scanner(
            columns=["id"], filter=f"key < {next(keys)} AND id > 5"
        ),
        "SQL, LIMIT 10": lambda module: sql(opened[module], "SELECT * FROM dataset LIMIT 10"),
        "SQL, condition": lambda module: sql(opened[module], "SELECT id FROM dataset WHERE key < 10"),
        "SQL, count": lambda module: sql(opened[module], "SELECT count(*) FROM dataset"),
        "_rowid IN (1,000 values)": lambda module: opened[module].to_table(filter=wanted, columns=["id"]).num_rows,
    }


def sql(dataset: Any, query: str) -> int:
    return sum(batch.num_rows for batch in dataset.sql(query).build().to_batch_records())


def drop_times(rounds: int, scratch: Path, clock: Callable[[], float]) -> Times:
    """Return the times of dropping one of the columns of a table with four fragments, on a new copy each time."""
    lance.write_dataset(plain(1000), str(scratch / "source"), max_rows_per_file=250)
    times: dict[str, list[float]] = {name: [] for name in LIBRARIES}
    for number in range(10 * rounds):
        for name, module in shuffled(LIBRARIES):
            copy = scratch / f"{name} {number}"
            shutil.copytree(scratch / "source", copy)
            dataset = module.dataset(str(copy), **unsynced(module))
            start = clock()
            dataset.drop_columns(["value"])
            times[name].append(clock() - start)
            shutil.rmtree(copy)
    return {"drop a column": times}


def shuffled(items: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return random.sample(list(items.items()), len(items))


def repeated(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the seconds of a call, as the mean of as many as fit into a short time."""
    gc.collect()
    begin, calls = clock(), 0
    while calls == 0 or clock() - begin < ENOUGH:
        call()
        calls += 1
    return (clock() - begin) / calls


def call_times(calls: Mapping[str, Call], rounds: int, clock: Callable[[], float]) -> Times:
    times: Times = {label: {name: [] for name in LIBRARIES} for label in calls}
    for label, call in calls.items():
        for module in LIBRARIES.values():
            call(module)
        for _ in range(rounds):
            for name, module in shuffled(LIBRARIES):
                times[label][name].append(repeated(lambda: call(module), clock))  # noqa: B023 - called immediately
    return times


# -- first calls -----------------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
import pyarrow, pyarrow.compute, pyarrow.dataset
clock = {"wall": time.perf_counter, "cpu": time.process_time}[sys.argv[3]]
uri, options = sys.argv[2], {"local_fsync": "false"} if sys.argv[1] == "lance_dataset" else None
table = pyarrow.table({"id": list(range(1000)), "text": [str(n) for n in range(1000)]})
start = clock()
lance = __import__(sys.argv[1])
imported = clock() - start
def prepared(): PREPARED
dataset = prepared()
start = clock()
CALL
print(imported, clock() - start)
"""
OPENED = "return lance.dataset(uri)"
FIRST = {
    "first write": ("pass", "lance.write_dataset(table, uri + 'w', storage_options=options)"),
    "first open": ("pass", "lance.dataset(uri)"),
    "first count": (OPENED, "dataset.count_rows()"),
    "first scan": (OPENED, "dataset.to_table()"),
    "first filter": (OPENED, "dataset.to_table(filter=\"id < 100 AND text != '5'\")"),
    "first take": (OPENED, "dataset.take([1, 5, 900])"),
    "first SQL": (OPENED, "dataset.sql('SELECT * FROM dataset LIMIT 10').build().to_batch_records()"),
}
MODULES = {"lance-dataset": "lance_dataset", "pylance": "lance"}


def first_times(rounds: int, scratch: Path, clock: str, chosen: Callable[[str], bool]) -> Times:
    """Return the times of the import and of first calls, each in a new process."""
    uri = str(scratch / "first")
    lance.write_dataset(plain(1000), uri)
    wanted = {label: steps for label, steps in FIRST.items() if chosen(label)}
    times: Times = {label: {name: [] for name in MODULES} for label in ("import, after pyarrow", *wanted)}
    for _ in range(rounds):
        for label, (prepared, call) in shuffled(wanted):
            for name, module in shuffled(MODULES):
                program = PROGRAM.replace("PREPARED", prepared).replace("CALL", call)
                command = [sys.executable, "-c", program, module, uri, clock]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                imported, seconds = map(float, output.split())
                times["import, after pyarrow"][name].append(imported)
                times[label][name].append(seconds)
                shutil.rmtree(uri + "w", ignore_errors=True)
    return times


KINDS = ["json", "calls", "first"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--only", default="*", help="pattern of the calls to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    clock = CLOCKS[options.clock]

    def chosen(label: str) -> bool:
        return fnmatch.fnmatch(label, options.only)

    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            if kind == "first":
                times = first_times(options.rounds, scratch, options.clock, chosen)
            else:
                calls = json_calls(scratch) if kind == "json" else short_calls(scratch)
                times = call_times({k: v for k, v in calls.items() if chosen(k)}, options.rounds, clock)
                if kind == "calls" and chosen("drop a column"):
                    times |= drop_times(options.rounds, scratch, clock)
            print(render_times(f"{kind}, {options.clock} time", list(LIBRARIES), times), flush=True)


if __name__ == "__main__":
    main()
