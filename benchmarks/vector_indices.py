"""Comparison of searches of vector indices by this package, the reference implementation, and faiss if it is installed.

All run in one process, and a query is asked of every contender before the next. `limit_threads` starts the process
again, since libraries read how many threads they may start when they are loaded.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
from numpy.typing import NDArray

import lance_dataset

__all__ = ["clock", "indexed", "limit_threads"]

_LIMITS = (
    *("LANCE_CPU_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS"),
)
_LIMITED = "BENCHMARK_THREADS"
_K = 10
_QUERIES = 100
#: Parameters of indices, and of their queries.
_INDICES: dict[str, tuple[str, dict[str, Any], tuple[dict[str, Any], ...]]] = {
    "IVF_FLAT": ("IVF_FLAT", {"num_partitions": 256}, ({"nprobes": 10}, {"nprobes": 40})),
    "IVF_PQ 16": (
        "IVF_PQ",
        {"num_partitions": 256, "num_sub_vectors": 16},
        ({"nprobes": 20}, {"nprobes": 20, "refine_factor": 10}),
    ),
    "IVF_PQ 32, 4 bits": ("IVF_PQ", {"num_partitions": 256, "num_sub_vectors": 32, "num_bits": 4}, ({"nprobes": 20},)),
    "IVF_SQ": ("IVF_SQ", {"num_partitions": 256}, ({"nprobes": 10},)),
    "IVF_RQ": ("IVF_RQ", {"num_partitions": 256}, ({"nprobes": 10}, {"nprobes": 10, "refine_factor": 10})),
    "IVF_HNSW_FLAT": ("IVF_HNSW_FLAT", {"num_partitions": 16}, ({"nprobes": 10}, {"nprobes": 10, "ef": 60})),
    "IVF_HNSW_SQ": ("IVF_HNSW_SQ", {"num_partitions": 16}, ({"nprobes": 10}, {"nprobes": 10, "ef": 60})),
    "IVF_HNSW_PQ 32": (
        "IVF_HNSW_PQ",
        {"num_partitions": 16, "num_sub_vectors": 32},
        ({"nprobes": 10}, {"nprobes": 10, "refine_factor": 5}),
    ),
}


def limit_threads(count: int) -> None:
    """Start the program again, bound to some processors, unless that is done. Libraries may start as many threads."""
    if os.environ.get(_LIMITED) == str(count):
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    limits = dict.fromkeys((*_LIMITS, _LIMITED), str(count))
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **limits})


def clock() -> float:
    """Return the time in seconds: that of processors if threads are limited, otherwise that of the clock."""
    return time.process_time() if _LIMITED in os.environ else time.perf_counter()


def indexed(path: str, rounds: int, kinds: Collection[str] | None = None) -> None:
    """Print times and recall of searches of indices that each package builds on a copy of a table.

    Parameters
    ----------
    path
        Table with the columns ``id`` (numbers of rows, from 0) and ``v``.
    rounds
        Repetitions of all queries, at most 5.
    kinds
        Names of the indices; None for all.
    """
    vectors = _vectors(path)
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((_QUERIES, vectors.shape[1])).astype(np.float32)
    queries = vectors[rng.integers(0, len(vectors), _QUERIES)] + noise / 2
    exact = [set(lance_dataset.dataset(path).to_table(**_asked(query, {}))["id"].to_pylist()) for query in queries]
    threads = os.environ.get(_LIMITED)
    limits = "threads not limited" if threads is None else f"processor time on {threads} of them"
    print(f"indices; milliseconds a query and recall; {limits}")
    for name, (kind, parameters, searches) in _INDICES.items():
        if kinds is not None and name not in kinds:
            continue
        copied = f"{path}-index"
        shutil.copytree(path, copied)
        for package in (lance_dataset, lance):
            _build(copied, name, kind, parameters, package)
            for search in searches:
                contenders = {
                    "ours": _finder(lance_dataset.dataset(copied), search),
                    "pylance": _finder(lance.dataset(copied), search),
                }
                if name == "IVF_FLAT" and package is lance:
                    contenders |= _faiss(vectors, search["nprobes"])
                _report(search, contenders, queries, exact, min(rounds, 5))
        if name == "IVF_FLAT" and _LIMITED not in os.environ:
            _threads(lance_dataset.dataset(copied), queries)
        shutil.rmtree(Path(copied))


def _build(path: str, name: str, kind: str, parameters: dict[str, Any], package: Any) -> None:
    """Build an index, and print how long it takes: on the clock, and of all processors."""
    start, used = time.perf_counter(), time.process_time()
    package.dataset(path).create_index("v", kind, metric="l2", replace=True, **parameters)
    wall, processors = time.perf_counter() - start, time.process_time() - used
    size = package.dataset(path).describe_indices()[0].total_size_bytes
    print(
        f"  {name}: built by {package.__name__} in {wall:.2f} s, {processors:.2f} s of processors, {size:,} bytes",
        flush=True,
    )


def _vectors(path: str) -> NDArray[np.float32]:
    column = lance_dataset.dataset(path).to_table(columns=["v"])["v"].combine_chunks()
    return np.asarray(column.flatten()).reshape(len(column), -1)


def _asked(query: NDArray[np.float32], search: dict[str, Any]) -> dict[str, Any]:
    return {"columns": ["id", "_distance"], "nearest": {"column": "v", "q": query, "k": _K, **search}}


def _finder(dataset: Any, search: dict[str, Any]) -> Callable[[NDArray[np.float32]], set[int]]:
    return lambda query: set(dataset.to_table(**_asked(query, search))["id"].to_pylist())


def _faiss(vectors: NDArray[np.float32], probes: int) -> dict[str, Callable[[NDArray[np.float32]], set[int]]]:
    """Return the search of an index of faiss; nothing if faiss is not installed."""
    try:
        import faiss
    except ImportError:
        return {}
    faiss.omp_set_num_threads(1)
    index = faiss.index_factory(vectors.shape[1], "IVF256,Flat")
    index.train(vectors)
    index.add(vectors)
    index.nprobe = probes
    return {"faiss": lambda query: set(index.search(query[None], _K)[1][0].tolist())}


def _report(
    search: dict[str, Any],
    contenders: dict[str, Callable[[NDArray[np.float32]], set[int]]],
    queries: NDArray[np.float32],
    exact: list[set[int]],
    rounds: int,
) -> None:
    times: dict[str, list[float]] = {each: [] for each in contenders}
    hits = dict.fromkeys(contenders, 0)
    for number in range(rounds + 1):
        for query, expected in zip(queries, exact, strict=True):
            for each, find in contenders.items():
                start = clock()
                found = find(query)
                if number:
                    times[each].append(clock() - start)
                    hits[each] += len(found & expected)
    shown = [
        f"{each} {1e3 * statistics.median(times[each]):.3f} ({hits[each] / (rounds * len(queries) * _K):.3f})"
        for each in contenders
    ]
    ratio = statistics.median(times["pylance"]) / statistics.median(times["ours"])
    print(f"    {search}: {', '.join(shown)}, {ratio:.1f} times as fast as pylance", flush=True)


def _threads(dataset: Any, queries: NDArray[np.float32]) -> None:
    """Print the rate of queries from several threads."""
    find = _finder(dataset, {"nprobes": 10})
    rates = {}
    for threads in (1, 2, 8):
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(find, queries))
            start = time.perf_counter()
            list(pool.map(find, np.concatenate([queries] * 5)))
            rates[threads] = 5 * len(queries) / (time.perf_counter() - start)
    shown = ", ".join(f"{threads} threads {rate:,.0f}" for threads, rate in rates.items())
    print(f"    queries a second: {shown}", flush=True)
