"""ClickBench's 43 queries over a generated table of its shape: this package, the reference, and DuckDB over Parquet.

Each query runs once on each side, and the answers are compared; then come interleaved rounds, of which the median
counts. DuckDB uses as many threads as there are processors.

    python benchmarks/clickbench.py [--rows 5000000] [--rounds 3] [--folder DIR] [--clock cpu] [--only 20 21 22]

The table is kept in the folder, and used again if it has as many rows. The exit code is 1 if answers differ.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pyarrow.parquet as pq

import hits
import lance_dataset

Run = Callable[[str], pa.Table]
_CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
_QUERIES = Path(__file__).with_name("hits.sql")
_ORDER = re.compile(r"ORDER BY (\w+)")


def queries() -> list[str]:
    """Return the statements of `hits.sql`."""
    text = "\n".join(line for line in _QUERIES.read_text().splitlines() if not line.startswith("--"))
    return [" ".join(each.split()) for each in text.split(";") if each.strip()]


def prepare(folder: Path, rows: int) -> None:
    """Write the table as Lance and as Parquet unless it is there."""
    if (folder / "rows").exists() and (folder / "rows").read_text() == str(rows):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"generating {rows:,} rows", flush=True)
    written = 0
    with pq.ParquetWriter(folder / "hits.parquet", hits.SCHEMA, compression="zstd") as parquet:
        for batch in hits.batches(rows):
            parquet.write_batch(batch)
            written += batch.num_rows
    source = pq.ParquetFile(folder / "hits.parquet")
    reader = pa.RecordBatchReader.from_batches(hits.SCHEMA, source.iter_batches(65_536))
    lance_dataset.write_dataset(reader, folder / "hits.lance", data_storage_version="2.2")
    (folder / "rows").write_text(str(written))


def contenders(folder: Path) -> dict[str, Run]:
    """Return a function for each contender that runs a statement; all are open already."""
    ours = lance_dataset.dataset(folder / "hits.lance")
    theirs = lance.dataset(str(folder / "hits.lance"))
    duck = duckdb.connect()
    duck.execute(f"CREATE VIEW hits AS SELECT * FROM '{folder / 'hits.parquet'}'")
    return {
        "lance-dataset": lambda sql: pa.Table.from_batches(_all(ours, sql)),
        "pylance": lambda sql: pa.Table.from_batches(_all(theirs, sql)),
        "duckdb": lambda sql: duck.sql(sql).to_arrow_table(),
    }


def _all(dataset: lance_dataset.LanceDataset | lance.LanceDataset, sql: str) -> list[pa.RecordBatch]:
    reader = dataset.sql(sql).table_name("hits").build().to_stream_reader()
    batches = list(reader)
    return batches or [pa.RecordBatch.from_pylist([], schema=reader.schema)]


def differs(sql: str, first: pa.Table, second: pa.Table) -> str | None:
    """Say how two answers differ. Rows may order equally, so of an ordered answer only the first key is compared."""
    if first.num_rows != second.num_rows or first.num_columns != second.num_columns:
        return f"{first.num_rows} x {first.num_columns} beside {second.num_rows} x {second.num_columns}"
    order = _ORDER.search(sql)
    if order is not None:
        numbers = [number for number, name in enumerate(first.column_names) if name == order.group(1)]
    else:
        numbers = [] if "LIMIT" in sql else list(range(first.num_columns))
    for number in numbers:
        pairs = zip(first.column(number).to_pylist(), second.column(number).to_pylist(), strict=True)
        wrong = next((pair for pair in pairs if not _same(*pair)), None)
        if wrong is not None:
            return f"column {number}: {wrong[0]!r} beside {wrong[1]!r}"
    return None


def _same(first: object, second: object) -> bool:
    if isinstance(first, float) or isinstance(second, float):
        return math.isclose(float(first), float(second), rel_tol=1e-9)  # type: ignore[arg-type]
    return first == second


def measure(runs: dict[str, Run], sql: str, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Return the median seconds of each contender."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            start = clock()
            runs[name](sql)
            times[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "clickbench")
    parser.add_argument("--clock", choices=_CLOCKS, default="wall")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of queries, from 0")
    given = parser.parse_args()
    prepare(given.folder, given.rows)
    for name, pattern in {"lance": "hits.lance/data/*", "parquet": "hits.parquet"}.items():
        print(f"{name}: {sum(each.stat().st_size for each in given.folder.glob(pattern)) / 1e6:,.0f} MB")
    runs = contenders(given.folder)
    names = list(runs)
    print(f"{'query':>5} " + " ".join(f"{name:>14}" for name in names) + "  ms; times DuckDB")
    totals, failed = dict.fromkeys(names, 0.0), False
    for number, sql in enumerate(queries()):
        if given.only and number not in given.only:
            continue
        answers = {name: run(sql) for name, run in runs.items()}
        for one, other in itertools.combinations(names, 2):
            found = differs(sql, answers[one], answers[other])
            if found:
                failed = True
                print(f"query {number}: {one} and {other} differ: {found}")
        times = measure(runs, sql, given.rounds, _CLOCKS[given.clock])
        for name in names:
            totals[name] += times[name]
        shown = " ".join(f"{times[name] * 1000:14.1f}" for name in names)
        print(f"{number:>5} {shown}  {times['lance-dataset'] / times['duckdb']:.2f}", flush=True)
    shown = " ".join(f"{totals[name] * 1000:14.0f}" for name in names)
    print(f"total {shown}  {totals['lance-dataset'] / totals['duckdb']:.2f}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
