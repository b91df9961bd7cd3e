"""Comparison of searches of vector indices by this package, the reference implementation, and faiss if it is installed.

All run in one process, and a query is asked of every contender before the next. Threads are limited from outside, since
libraries read the variables when they are loaded:

    LANCE_CPU_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/search.py vector
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
from numpy.typing import NDArray

import lance_dataset

__all__ = ["indexed"]

_LIMITS = ("LANCE_CPU_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
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
    "IVF_HNSW_SQ": ("IVF_HNSW_SQ", {"num_partitions": 16}, ({"nprobes": 10},)),
}


def indexed(path: str, rounds: int) -> None:
    """Print times and recall of searches of indices that the reference builds on a copy of a table.

    Parameters
    ----------
    path
        Table with the columns ``id`` (numbers of rows, from 0) and ``v``.
    rounds
        Repetitions of all queries, at most 5.
    """
    vectors = _vectors(path)
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((_QUERIES, vectors.shape[1])).astype(np.float32)
    queries = vectors[rng.integers(0, len(vectors), _QUERIES)] + noise / 2
    exact = [set(lance_dataset.dataset(path).to_table(**_asked(query, {}))["id"].to_pylist()) for query in queries]
    limits = ", ".join(f"{name}={os.environ.get(name, 'not set')}" for name in _LIMITS)
    print(f"indices; milliseconds a query and recall; {limits}")
    for name, (kind, parameters, searches) in _INDICES.items():
        copied = f"{path}-index"
        shutil.copytree(path, copied)
        _build(copied, name, kind, parameters)
        for search in searches:
            contenders = {
                "ours": _finder(lance_dataset.dataset(copied), search),
                "pylance": _finder(lance.dataset(copied), search),
            }
            if name == "IVF_FLAT":
                contenders |= _faiss(vectors, search["nprobes"])
            _report(search, contenders, queries, exact, min(rounds, 5))
        if name == "IVF_FLAT":
            _threads(lance_dataset.dataset(copied), queries)
        shutil.rmtree(Path(copied))


def _build(path: str, name: str, kind: str, parameters: dict[str, Any]) -> None:
    """Build an index with both packages, and print how long it takes; that of pylance stays."""
    for package in (lance_dataset, lance):
        start = time.perf_counter()
        try:
            package.dataset(path).create_index("v", kind, metric="l2", replace=True, **parameters)
        except NotImplementedError:
            print(f"  {name}: not built by {package.__name__}")
            continue
        print(f"  {name}: built by {package.__name__} in {time.perf_counter() - start:.2f} s", flush=True)


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
                start = time.perf_counter()
                found = find(query)
                if number:
                    times[each].append(time.perf_counter() - start)
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
