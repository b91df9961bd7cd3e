"""Random vector indices of either package, searched by both. `LANCE_STRESS=1` tries more and larger ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.nearest import check_nearest

import lance_dataset

STRESS = os.environ.get("LANCE_STRESS", "") not in ("", "0")
KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")


def column(rng: np.random.Generator, rows: int, dimension: int, element: Any) -> Any:
    if element is np.uint8:
        return rng.integers(0, 256, (rows, dimension), np.uint8)
    centers = rng.standard_normal((20, dimension)) * 2
    return (centers[rng.integers(0, 20, rows)] + rng.standard_normal((rows, dimension))).astype(element)


def table(values: Any) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": lists})


@pytest.mark.parametrize("seed", range(200 if STRESS else 12))
def test_random(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, element = KINDS[seed % len(KINDS)], (np.float32, np.float16, np.float64, np.uint8)[seed // 2 % 4]
    if element is np.uint8:
        kind = ("IVF_FLAT", "IVF_HNSW_FLAT")[seed % 2]
    dimension = int(rng.integers(3, 257))
    dimension += {"PQ": -dimension % 4, "RQ": -dimension % 8}.get(kind.rpartition("_")[2], 0)
    metric = "hamming" if element is np.uint8 else ("l2", "cosine", "dot")[int(rng.integers(3))]
    rows = int(rng.integers(300, 20_000 if STRESS else 2000))
    options: dict[str, Any] = {"num_partitions": int(rng.integers(1, 6))}
    if kind.endswith("PQ"):
        options |= {"num_sub_vectors": 4, "num_bits": int(rng.choice([4, 8])), "max_iters": 3, "sample_rate": 8}
    if "HNSW" in kind:
        options |= {"m": 12, "ef_construction": 60}
    compare(tmp_path, column(rng, rows, dimension, element), kind, metric, options, rng)


if STRESS:

    @pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_SQ"])
    def test_a_million_rows(tmp_path: Path, kind: str) -> None:
        rng = np.random.default_rng(1)
        options: dict[str, Any] = {"num_partitions": 100, "sample_rate": 64, "max_iters": 10}
        if kind == "IVF_PQ":
            options["num_sub_vectors"] = 8
        if kind == "IVF_HNSW_SQ":
            options |= {"m": 12, "ef_construction": 60}
        compare(tmp_path, column(rng, 1_000_000, 32, np.float32), kind, "l2", options, rng)


def compare(path: Path, values: Any, kind: str, metric: str, options: dict[str, Any], rng: np.random.Generator) -> None:
    package: Any = (lance, lance_dataset)[int(rng.integers(2))]
    written = package.write_dataset(table(values), path, max_rows_per_file=len(values) // 3 + 1)
    written.create_index("v", kind, metric=metric, **options)
    queries = values[rng.integers(0, len(values), 6)]
    if values.dtype != np.uint8:
        queries = (queries + rng.standard_normal(queries.shape) / 2).astype(values.dtype)
    refined = {"refine_factor": 5} if kind == "IVF_RQ" else {}  # sums on the edge of a level are rounded apart
    nearest = {"column": "v", "k": int(rng.integers(1, 12)), **refined}
    tolerance = 1e-4 if values.dtype in (np.float32, np.uint8) else 3e-3
    ties = kind in ("IVF_HNSW_PQ", "IVF_RQ") or (metric == "hamming" and "HNSW" in kind)
    farther = 0.15 if ties else 0
    if ties and "HNSW" in kind:
        nearest["ef"] = 500
    share = 0.5 if ties else 0.8  # walks of pylance miss rows that ours find
    check_nearest(path, queries, tolerance, share, farther=farther, nearest={**nearest, "nprobes": 2})
    check_nearest(path, queries, tolerance, share, farther=farther, nearest=nearest)
    remainder = f"id % {int(rng.integers(2, 30))} > 0"
    check_nearest(path, queries, tolerance, share, farther=farther, nearest=nearest, filter=remainder, prefilter=True)
    lance_dataset.dataset(path).delete("id % 7 = 2")
    check_nearest(path, queries, tolerance, share, farther=farther, nearest={**nearest, "nprobes": 3})
