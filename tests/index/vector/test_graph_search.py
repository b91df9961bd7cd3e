"""Tests of searches that walk graphs, against pylance on the same files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from support.nearest import check_nearest

import lance_dataset
from lance_dataset.errors import InvalidInputError

ROWS, DIMENSION = 3000, 16
GRAPH: dict[str, Any] = {"m": 12, "ef_construction": 60}
FEW_CODEWORDS: dict[str, Any] = {"max_iters": 4, "sample_rate": 8}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_HNSW_FLAT", {}),
    "sq": ("IVF_HNSW_SQ", {}),
    "pq8": ("IVF_HNSW_PQ", {"num_sub_vectors": 8, **FEW_CODEWORDS}),
    "pq4": ("IVF_HNSW_PQ", {"num_sub_vectors": 8, "num_bits": 4, **FEW_CODEWORDS}),
}
# Codes of 16 codewords have many equal distances, and the walk that leaves them on another side may miss a row.
FARTHER = {"flat": 0.0, "sq": 0.0, "pq8": 0.0, "pq4": 0.02}


def vectors(count: int, seed: int = 0, kind: Any = np.float32) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).standard_normal((12, DIMENSION)) * 2
    return (centers[rng.integers(0, 12, count)] + rng.standard_normal((count, DIMENSION))).astype(kind)


def table(values: NDArray[Any], first: int = 0) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.table({"id": pa.array(range(first, first + len(values)), pa.int64()), "v": lists})


def made(path: Path, name: str, metric: str = "l2", kind: Any = np.float32, **options: Any) -> NDArray[Any]:
    """Write a table with an index of pylance, and return queries."""
    index, parameters = KINDS[name]
    written = lance.write_dataset(table(vectors(ROWS, kind=kind)), path, max_rows_per_file=1100, **options)
    written.create_index("v", index, metric=metric, num_partitions=2, **GRAPH, **parameters)
    return (vectors(20, 7, np.float64) * 0.9).astype(kind)


def check(path: Path, queries: Any, *, tolerance: float = 1e-4, share: float = 0.9, **options: Any) -> None:
    nearest: dict[str, Any] = {"column": "v", "k": 8, "nprobes": 2, **options.pop("nearest", {})}
    check_nearest(path, queries, tolerance, share, nearest=nearest, **options)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", KINDS)
def test_same_rows_and_distances(tmp_path: Path, name: str, metric: str) -> None:
    queries = made(tmp_path, name, metric)
    farther = FARTHER[name]
    check(tmp_path, queries, farther=farther)
    check(tmp_path, queries, nearest={"ef": 40}, farther=farther)
    check(tmp_path, queries, nearest={"refine_factor": 3}, farther=farther)
    check(tmp_path, queries, filter="id % 3 > 0", prefilter=True, farther=farther)
    check(tmp_path, queries, filter="id % 50 = 0", prefilter=True, farther=farther)
    check(tmp_path, queries, nearest={"nprobes": None, "k": 3}, farther=farther)


@pytest.mark.parametrize("kind", [np.float64, np.float16])
@pytest.mark.parametrize("name", KINDS)
def test_other_elements(tmp_path: Path, name: str, kind: Any) -> None:
    queries = made(tmp_path, name, kind=kind)
    check(tmp_path, queries, tolerance=2e-3, farther=FARTHER[name])


def test_bits(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 256, (ROWS, DIMENSION)).astype(np.uint8)
    lance.write_dataset(table(values), tmp_path).create_index("v", "IVF_HNSW_FLAT", metric="hamming", num_partitions=2)
    ours, theirs = lance_dataset.dataset(tmp_path), lance.dataset(tmp_path)
    for query in values[:5]:
        asked: dict[str, Any] = {"nearest": {"column": "v", "q": query, "k": 3, "ef": 60}, "columns": ["_distance"]}
        mine, other = (each.to_table(**asked)["_distance"].to_pylist() for each in (ours, theirs))
        assert mine[0] == 0
        assert sum(mine) <= sum(other) + 4


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", ["flat", "pq8"])
def test_changed_tables(tmp_path: Path, name: str, stable: bool) -> None:
    queries = made(tmp_path, name, enable_stable_row_ids=stable)
    lance.dataset(tmp_path).delete("id % 4 = 1")
    check(tmp_path, queries[:8])
    lance.write_dataset(table(vectors(200, 3), ROWS), tmp_path, mode="append")
    check(tmp_path, queries[:8])
    check(tmp_path, queries[:8], fast_search=True)
    lance.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0)
    check(tmp_path, queries[:8])
    lance_dataset.dataset(tmp_path).optimize.compact_files()
    check(tmp_path, queries[:8], nearest={"ef": 60})


@pytest.mark.parametrize("name", ["flat", "sq", "pq8"])
def test_lists_of_vectors(tmp_path: Path, name: str) -> None:
    """The reference counts a row once in each partition, so the candidates of a query vector may be fewer."""
    values = vectors(3 * ROWS)
    inner = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * ROWS + 1, 3, dtype=np.int32)), inner)
    written = lance.write_dataset(pa.table({"id": pa.array(range(ROWS)), "v": lists}), tmp_path)
    index, parameters = KINDS[name]
    written.create_index("v", index, metric="cosine", num_partitions=2, **GRAPH, **parameters)
    queries: Any = [vectors(count, seed) for seed, count in enumerate((1, 2, 2, 3, 4, 6))]
    for nearest in ({}, {"nprobes": 1}, {"k": 8, "ef": 160}, {"refine_factor": 2}, {"nprobes": None}):
        check(tmp_path, queries, nearest={"k": 5, **nearest}, share=1)
    check(tmp_path, queries, nearest={"k": 3}, filter="id % 4 > 0", prefilter=True, share=1)
    lance.dataset(tmp_path).delete("id % 5 = 1")
    check(tmp_path, queries, nearest={"k": 3}, share=1)


def test_limits_of_distances(tmp_path: Path) -> None:
    queries = made(tmp_path, "flat")
    dataset = lance_dataset.dataset(tmp_path)
    for query in queries[:5]:
        nearest = {"column": "v", "q": query, "k": 6, "ef": 60, "nprobes": 2}
        exact = dataset.to_table(nearest={**nearest, "k": 40, "use_index": False}, columns=["_distance"])["_distance"]
        low, high = exact[3].as_py(), exact[20].as_py()
        found = dataset.to_table(nearest={**nearest, "distance_range": (low, high)}, columns=["_distance"])
        assert found["_distance"].to_pylist() == pytest.approx(exact.to_pylist()[3:9], rel=1e-5)


def test_more_found_rows_reach_more(tmp_path: Path) -> None:
    """Walks with a larger `ef` find what a scan of the partitions finds."""
    values = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
    lance.write_dataset(table(values), tmp_path).create_index("v", "IVF_HNSW_FLAT", num_partitions=1)
    dataset = lance_dataset.dataset(tmp_path)
    hits = {10: 0, 100: 0, 4000: 0}
    for query in np.random.default_rng(4).standard_normal((20, DIMENSION)).astype(np.float32):
        nearest = {"column": "v", "q": query, "k": 10}
        exact = set(dataset.to_table(nearest={**nearest, "use_index": False}, columns=["id"])["id"].to_pylist())
        for ef in hits:
            found = dataset.to_table(nearest={**nearest, "ef": ef}, columns=["id"])["id"].to_pylist()
            hits[ef] += len(exact & set(found))
    assert hits[10] < hits[100] <= hits[4000] == 200
    assert hits[10] > 120


def test_plans(tmp_path: Path) -> None:
    queries = made(tmp_path, "sq")
    dataset = lance_dataset.dataset(tmp_path)
    nearest = {"column": "v", "q": queries[0], "k": 4}
    assert "graphs of the partitions are walked, ef=6" in dataset.scanner(nearest=nearest).explain_plan(verbose=True)
    plan = dataset.scanner(nearest={**nearest, "ef": 33}).explain_plan(verbose=True)
    assert "graphs of the partitions are walked, ef=33" in plan
    with pytest.raises(InvalidInputError, match="ef must be greater"):
        dataset.to_table(nearest={**nearest, "ef": 3})


def test_damaged_files(tmp_path: Path) -> None:
    """Any damage of a graph gives an error of the library, or a result; again when the query is repeated."""
    queries = made(tmp_path, "sq")
    rng = np.random.default_rng(5)
    (folder,) = (tmp_path / "_indices").iterdir()
    path = folder / "index.idx"
    whole = path.read_bytes()
    for attempt in range(60):
        data = bytearray(whole)
        for _ in range(20):
            last = len(data) - 1500
            place = int(rng.integers(0, last) if attempt % 2 else rng.integers(last, len(data)))
            data[place] = int(rng.integers(0, 256))
        path.unlink()
        path.write_bytes(bytes(data))
        dataset = lance_dataset.dataset(tmp_path)
        for _ in range(2):
            with contextlib.suppress(lance_dataset.errors.LanceError, ValueError, OSError):
                assert dataset.to_table(nearest={"column": "v", "q": queries[0]}, columns=["id"]).num_rows <= 10
