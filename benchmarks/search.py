"""Comparison of searches in indices by this package and by the reference implementation, on the same data.

``scalar`` builds each kind of index with both packages on rows like those of TPC-H's line items, and times point
queries and ranges: warm, with the dataset opened for each query, and without an index. In each round every contender
runs the query once, with another value; medians count.

``vector`` times exact vector search, with and without a filter, for one query and for a batch, then builds each kind of
vector index with both packages, and times its queries. With ``--threads``, the process is bound to as many processors,
libraries start as many threads, and processor time counts instead of the clock.

``text`` builds full-text indices over documents of 34 words and over ten times as many comments, and times queries of
one to three words and phrases, one after the other and from many threads.

    python benchmarks/search.py scalar [--rows 2000000] [--rounds 25] [--folder FOLDER]
    python benchmarks/search.py vector [--rows 100000] [--rounds 25] [--folder FOLDER] [--threads 1]
    python benchmarks/search.py text [--rows 200000] [--rounds 5] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
import lineitem
from text_indices import text
from vector_indices import limit_threads
from vectors import vector

_BATCH_ROWS = 1 << 18
_LABELS = 500


@dataclass(frozen=True)
class _Query:
    """A filter on an indexed column.

    Attributes
    ----------
    name
        Name in the report.
    column, kind
        The index that answers it.
    filter
        Makes the filter of a round.
    """

    name: str
    column: str
    kind: str
    filter: Callable[[int], str]


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    batches = [
        pa.RecordBatch.from_arrays(
            lineitem.make_batch(rng, start, min(_BATCH_ROWS, rows - start)), schema=lineitem.SCHEMA
        )
        for start in range(0, rows, _BATCH_ROWS)
    ]
    table = pa.Table.from_batches(batches)
    labels = rng.integers(0, _LABELS, 2 * rows)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 2 * rows + 1, 2, dtype=np.int32)), pa.array(labels))
    table = table.append_column("labels", lists)
    return table.append_column("position", table["orderkey"])


def _queries(table: pa.Table) -> list[_Query]:
    keys = table["orderkey"].to_numpy()[:: max(table.num_rows // 997, 1)].tolist()
    parts = table["partkey"].to_numpy()[:: max(table.num_rows // 997, 1)].tolist()
    modes = ["AIR", "RAIL", "SHIP", "MAIL", "FOB"]
    comments = [text[:14] for text in table["comment"].to_pylist()[:: max(table.num_rows // 997, 1)] if len(text) >= 14]

    def key(number: int) -> int:
        return int(keys[number * 37 % len(keys)])

    def contains(number: int) -> str:
        return f"contains(comment, '{comments[number * 37 % len(comments)]}')"

    def between(number: int) -> str:
        return f"orderkey BETWEEN {key(number)} AND {key(number) + 1000}"

    return [
        _Query("BTREE =", "orderkey", "BTREE", lambda number: f"orderkey = {key(number)}"),
        _Query(
            "BTREE range",
            "orderkey",
            "BTREE",
            lambda number: f"orderkey BETWEEN {key(number)} AND {key(number) + 1000}",
        ),
        _Query("BTREE part", "partkey", "BTREE", lambda number: f"partkey = {parts[number * 37 % len(parts)]}"),
        _Query("BITMAP =", "shipmode", "BITMAP", lambda number: f"shipmode = '{modes[number % len(modes)]}'"),
        _Query(
            "BITMAP and BTREE",
            "shipmode",
            "BITMAP",
            lambda number: f"shipmode = '{modes[number % len(modes)]}' AND orderkey < {1000 + number}",
        ),
        _Query("LABEL_LIST", "labels", "LABEL_LIST", lambda number: f"array_has(labels, {number * 7 % _LABELS})"),
        _Query("ZONEMAP =", "position", "ZONEMAP", lambda number: f"position = {key(number)}"),
        _Query("BLOOMFILTER =", "suppkey", "BLOOMFILTER", lambda number: f"suppkey = {10**6 + number}"),
        _Query("NGRAM", "comment", "NGRAM", contains),
    ]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _reopened(module: Any, path: Path, filter: str) -> pa.Table:
    return _run(module.dataset(str(path)), filter)


def _run(dataset: Any, filter: str, **options: Any) -> pa.Table:
    return dataset.scanner(columns=["linenumber"], filter=filter, **options).to_table()


def scalar(rows: int, rounds: int, folder: Path) -> None:
    """Print build times, file sizes and query times of scalar indices."""
    table = _table(rows)
    queries = _queries(table)
    paths = {"ours": folder / "ours", "pylance": folder / "pylance"}
    modules: dict[str, Any] = {"ours": lance_dataset, "pylance": lance}
    datasets = {name: modules[name].write_dataset(table, str(paths[name])) for name in paths}
    print(f"{rows:,} rows; build: seconds and bytes, ours | pylance | ratio")
    for column, kind in dict.fromkeys((query.column, query.kind) for query in queries):
        times: dict[str, list[float]] = {name: [] for name in datasets}
        for _ in range(3):
            for name, dataset in datasets.items():
                times[name].append(_seconds(partial(dataset.create_scalar_index, column, kind)))  # type: ignore[misc]
        best = {name: statistics.median(found) for name, found in times.items()}
        sizes = {
            name: next(each.total_size_bytes for each in dataset.describe_indices() if each.field_names == [column])
            for name, dataset in datasets.items()
        }
        print(
            f"  {kind:11} {column:10} {best['ours']:.3f} | {best['pylance']:.3f} | {best['pylance'] / best['ours']:.1f}"
            f"   {sizes['ours']:,} | {sizes['pylance']:,}"
        )
    print("query: milliseconds warm, reopened: ours | pylance | ratio; ours without an index; rows")
    for query in queries:
        _report(query, datasets, paths, modules, rounds)


def _report(
    query: _Query, datasets: dict[str, Any], paths: dict[str, Path], modules: dict[str, Any], rounds: int
) -> None:
    expected = _run(datasets["pylance"], query.filter(0)).num_rows
    found = _run(datasets["ours"], query.filter(0)).num_rows
    if found != expected:
        raise SystemExit(f"{query.name}: {found} rows instead of {expected}")
    times: dict[str, list[float]] = {}
    for number in range(rounds):
        text = query.filter(number)
        for name, dataset in datasets.items():
            times.setdefault(name, []).append(_seconds(partial(_run, dataset, text)))
            times.setdefault(f"{name} reopened", []).append(
                _seconds(partial(_reopened, modules[name], paths[name], text))
            )
        plain = _seconds(partial(_run, datasets["ours"], text, use_scalar_index=False))
        times.setdefault("plain", []).append(plain)
    names = ("ours", "pylance", "ours reopened", "pylance reopened", "plain")
    ours, theirs, ours_again, theirs_again, plain = (1e3 * statistics.median(times[name]) for name in names)
    print(
        f"  {query.name:17} {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f}   {ours_again:.2f} | {theirs_again:.2f} | "
        f"{theirs_again / ours_again:.1f}   {plain:.2f}   {found:,}"
    )


def main() -> None:
    """Run the comparison that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["scalar", "vector", "text"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--threads", type=int, help="processors for vector searches and builds")
    parser.add_argument("--kinds", nargs="*", help="names of the vector indices to build; all by default")
    options = parser.parse_args()
    if options.threads:
        limit_threads(options.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.what == "scalar":
            scalar(options.rows or 2_000_000, options.rounds, folder)
        elif options.what == "text":
            text(options.rows or 200_000, min(options.rounds, 5), folder)
        else:
            vector(options.rows or 100_000, options.rounds, folder, options.kinds)


if __name__ == "__main__":
    main()
