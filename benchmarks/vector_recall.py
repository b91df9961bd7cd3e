"""Recall of vector indices that this package and the reference implementation build with the same parameters.

Each index is searched by this package, so that only the builds differ. Several sets of vectors, metrics and seeds are
compared, since the recall of one build differs from that of the next.

    python benchmarks/vector_recall.py [--rows 20000] [--builds 2] [--kinds IVF_FLAT IVF_PQ]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import lance_dataset

_DIMENSION = 64
_K = 10
_QUERIES = 200
_METRICS = ("l2", "cosine", "dot")
#: Parameters of the builds and of the searches, by the name in the report.
_KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "IVF_FLAT": ("IVF_FLAT", {"num_partitions": 64}, {"nprobes": 4}),
    "IVF_PQ": ("IVF_PQ", {"num_partitions": 64, "num_sub_vectors": 16}, {"nprobes": 16}),
    "IVF_PQ_4": ("IVF_PQ", {"num_partitions": 64, "num_sub_vectors": 32, "num_bits": 4}, {"nprobes": 16}),
    "IVF_SQ": ("IVF_SQ", {"num_partitions": 64}, {"nprobes": 8}),
    "IVF_RQ": ("IVF_RQ", {"num_partitions": 64}, {"nprobes": 8}),
    "IVF_HNSW_SQ": ("IVF_HNSW_SQ", {"num_partitions": 4}, {"nprobes": 2}),
}


def _clustered(rng: np.random.Generator, count: int) -> NDArray[Any]:
    centers = np.random.default_rng(9).standard_normal((600, _DIMENSION))
    return centers[rng.integers(0, len(centers), count)] + rng.standard_normal((count, _DIMENSION)) / 2


def _uniform(rng: np.random.Generator, count: int) -> NDArray[Any]:
    return rng.random((count, _DIMENSION)) - 0.5


def _low_rank(rng: np.random.Generator, count: int) -> NDArray[Any]:
    """Return vectors like those of models: a few directions with falling variances, a common part, and some noise."""
    fixed = np.random.default_rng(9)
    directions = fixed.standard_normal((24, _DIMENSION)) * (1 / np.sqrt(np.arange(1, 25)))[:, None]
    noise = rng.standard_normal((count, _DIMENSION)) / 8
    return rng.standard_normal((count, 24)) @ directions + fixed.standard_normal(_DIMENSION) / 2 + noise


_DATA: dict[str, Callable[[np.random.Generator, int], NDArray[Any]]] = {
    "clustered": _clustered,
    "uniform": _uniform,
    "low rank": _low_rank,
}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--builds", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=list(_KINDS))
    asked = parser.parse_args()
    print(f"{asked.rows:,} vectors of {_DIMENSION}, mean recall of {asked.builds} builds: ours, pylance, difference")
    for data, make in _DATA.items():
        vectors = make(np.random.default_rng(1), asked.rows).astype(np.float32)
        queries = make(np.random.default_rng(2), _QUERIES).astype(np.float32)
        for metric in _METRICS:
            _compare(f"{data:10} {metric:7}", vectors, queries, metric, asked.kinds, asked.builds)


def _compare(
    name: str,
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    metric: str,
    kinds: list[str],
    builds: int,
) -> None:
    """Print the recall of each kind of index."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    with tempfile.TemporaryDirectory() as folder:
        dataset = lance_dataset.write_dataset(pa.table({"v": column}), folder)
        truth = [_found(dataset, query, {"metric": metric, "use_index": False}) for query in queries]
        for kind in kinds:
            index, parameters, search = _KINDS[kind]
            recalls: dict[str, list[float]] = {"ours": [], "pylance": []}
            for _ in range(builds):
                for package, module in (("ours", lance_dataset), ("pylance", lance)):
                    made: Any = module.dataset(folder)  # type: ignore[attr-defined]
                    made.create_index("v", index, metric=metric, replace=True, **parameters)
                    dataset = lance_dataset.dataset(folder)
                    hits = [
                        len(rows & _found(dataset, query, search)) for rows, query in zip(truth, queries, strict=True)
                    ]
                    recalls[package].append(sum(hits) / _K / len(queries))
            ours, theirs = (statistics.mean(recalls[package]) for package in ("ours", "pylance"))
            print(f"{name} {kind:12} {ours:.4f} {theirs:.4f} {ours - theirs:+.4f}", flush=True)


def _found(dataset: Any, query: NDArray[np.float32], search: dict[str, Any]) -> set[int]:
    nearest = {"column": "v", "q": query, "k": _K, **search}
    return set(dataset.to_table(columns=[], with_row_id=True, nearest=nearest)["_rowid"].to_pylist())


if __name__ == "__main__":
    _main()
