"""Comparison of vector search by this package and by the reference implementation, on the same clustered vectors."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_dataset
from vector_indices import clock, indexed

__all__ = ["vector"]

_DIMENSION = 128
#: Many more than partitions, so that neighbours of a vector lie in several of these.
_CLUSTERS = 3000
_BATCH_ROWS = 50_000
_BATCH_QUERIES = 32
_K = 10
#: Searches by name: parameters of `nearest`, and options of the scan.
_SEARCHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exact l2": ({}, {}),
    "exact cosine": ({"metric": "cosine"}, {}),
    "half of the rows": ({}, {"filter": "x < 500", "prefilter": True}),
    "1 % of the rows": ({}, {"filter": "x < 10", "prefilter": True}),
    f"batch of {_BATCH_QUERIES}": ({}, {}),
}


def vector(rows: int, rounds: int, folder: Path, kinds: Collection[str] | None = None) -> None:
    """Print times of vector searches, without an index and with some kinds of indices (all by default)."""
    batches = _batches(rows)
    first = next(batches)
    reader = pa.RecordBatchReader.from_batches(first.schema, _chained(first, batches))
    path = str(folder / "vectors")
    lance_dataset.write_dataset(reader, path)
    datasets: dict[str, Any] = {"ours": lance_dataset.dataset(path), "pylance": lance.dataset(path)}
    print(f"{rows:,} vectors of {_DIMENSION} float32, k {_K}; milliseconds, ours | pylance | ratio")
    for name, (parameters, options) in _SEARCHES.items():
        _report(name, datasets, parameters, options, rounds)
    indexed(path, rounds, kinds)


def _chained(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _batches(rows: int) -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((_CLUSTERS, _DIMENSION)).astype(np.float32)
    for start in range(0, rows, _BATCH_ROWS):
        count = min(_BATCH_ROWS, rows - start)
        noise = rng.standard_normal((count, _DIMENSION)).astype(np.float32)
        values = centers[rng.integers(0, _CLUSTERS, count)] + noise / 2
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), _DIMENSION)
        numbers = pa.array(np.arange(start, start + count))
        yield pa.record_batch({"id": numbers, "x": pa.array(rng.integers(0, 1000, count)), "v": vectors})


def _report(
    name: str, datasets: dict[str, Any], parameters: dict[str, Any], options: dict[str, Any], rounds: int
) -> None:
    rng = np.random.default_rng(1)
    shape = (_BATCH_QUERIES, _DIMENSION) if name.startswith("batch") else (_DIMENSION,)
    times: dict[str, list[float]] = {each: [] for each in datasets}
    for _ in range(rounds + 1):
        nearest = {"column": "v", "q": rng.standard_normal(shape).astype(np.float32), "k": _K, **parameters}
        found = {}
        for each, dataset in datasets.items():
            start = clock()
            found[each] = dataset.to_table(columns=["id", "_distance"], nearest=nearest, **options)
            times[each].append(clock() - start)
        if not np.allclose(*(table["_distance"].to_numpy() for table in found.values()), rtol=1e-5):
            raise SystemExit(f"{name}: other distances than those of the reference")
    ours, theirs = (1e3 * statistics.median(times[each][1:]) for each in ("ours", "pylance"))
    print(f"  {name:17} {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f}")
