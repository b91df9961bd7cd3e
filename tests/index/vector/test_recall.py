"""Tests of searches that ask for a recall, and of measuring recall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.index.vector.searching.open_indices import vector_indices
from lance_dataset.scan.nearest.recall import recall_of

ROWS, DIMENSION = 3000, 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "pq": ("IVF_PQ", {"num_sub_vectors": 4}),
    "sq": ("IVF_SQ", {}),
    "rq": ("IVF_RQ", {"num_bits": 1}),
}


def numbers(seed: int = 0, count: int = ROWS) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def table(vectors: NDArray[Any]) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIMENSION)
    return pa.table({"id": range(len(vectors)), "v": lists})


def made(path: Path, name: str, metric: str = "l2") -> lance_dataset.LanceDataset:
    kind, parameters = KINDS[name]
    written = lance.write_dataset(table(numbers()), path, max_rows_per_file=1000)
    written.create_index("v", kind, metric=metric, num_partitions=12, **parameters)
    return lance_dataset.dataset(path)


def measured(dataset: Any, queries: NDArray[Any], metric: str, **parameters: Any) -> float:
    """Return the recall, computed apart from the package."""
    rows = np.asarray(dataset.to_table(columns=["v"])["v"].combine_chunks().flatten()).reshape(-1, DIMENSION)
    rows, queries = rows.astype(np.float64), queries.astype(np.float64)
    hits = 0
    for query in queries:
        if metric == "l2":
            distances = ((rows - query) ** 2).sum(axis=1)
        else:
            distances = -rows @ query
            distances /= np.linalg.norm(rows, axis=1) if metric == "cosine" else 1
        near = {"column": "v", "q": query, "k": 10, **parameters}
        hits += len(set(np.argsort(distances)[:10].tolist()) & set(dataset.to_table(nearest=near)["id"].to_pylist()))
    return hits / (10 * len(queries))


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", KINDS)
def test_recall_is_reached(tmp_path: Path, name: str, metric: str) -> None:
    dataset, queries = made(tmp_path, name, metric), numbers(1, 40)
    for wanted in (0.5, 0.9, 0.99):
        # others than the rows that were measured with: hence the margin
        assert measured(dataset, queries, metric, recall=wanted) > wanted - 0.08
        plan = dataset.scanner(nearest={"column": "v", "q": queries[0], "recall": wanted}).explain_plan(True)
        assert f"recall {wanted:g} was asked" in plan
        assert "is expected" in plan


@pytest.mark.parametrize("name", KINDS)
def test_measured_recall(tmp_path: Path, name: str) -> None:
    dataset, queries = made(tmp_path, name), numbers(1, 20)
    for parameters in ({"nprobes": 1}, {"nprobes": 4}, {"nprobes": 12, "refine_factor": 50}):
        expected = measured(dataset, queries, "l2", **parameters)
        assert dataset.measure_recall("v", queries, **parameters) == pytest.approx(expected)
    assert dataset.measure_recall("v", queries, nprobes=12, refine_factor=300) == 1
    assert dataset.measure_recall("v", use_index=False) == 1
    assert dataset.measure_recall("v", queries[0], k=1, use_index=False) == 1
    assert 0 < dataset.measure_recall("v", nprobes=1, k=5) < 1
    assert dataset.measure_recall("v", recall=0.9) > 0.85


def test_curves_are_kept_with_the_index(tmp_path: Path) -> None:
    dataset = made(tmp_path, "pq")
    indices = vector_indices(dataset.snapshot.reader)
    assert indices is not None
    ((index,),) = indices.by_field.values()
    near = {"column": "v", "q": np.zeros(DIMENSION), "recall": 0.9}
    dataset.to_table(nearest=near)
    (curve,) = index.curves.values()
    dataset.to_table(nearest={**near, "recall": 0.5})
    assert list(index.curves.values()) == [curve]
    assert next(iter(index.curves.values())) is curve
    for k in range(1, 25):
        dataset.scanner(nearest={**near, "k": k})
    assert len(index.curves) <= 16


def test_recall_out_of_reach(tmp_path: Path) -> None:
    """The curve is cut, since these indices reach any recall with enough candidates."""
    dataset = made(tmp_path, "flat")
    indices = vector_indices(dataset.snapshot.reader)
    assert indices is not None
    ((index,),) = indices.by_field.values()
    near = {"column": "v", "q": np.zeros(DIMENSION), "recall": 0.9}
    dataset.to_table(nearest=near)
    (key,) = index.curves
    index.curves[key] = index.curves[key][:1]
    plan = dataset.scanner(nearest={**near, "recall": 1.0}).explain_plan(True)
    assert "recall 1 was asked and cannot be reached with this index: 0." in plan
    assert dataset.to_table(nearest={**near, "recall": 1.0}).num_rows == 10


def test_recall_of_changed_tables(tmp_path: Path) -> None:
    dataset = made(tmp_path, "pq")
    dataset.delete("id % 3 = 0")
    dataset.insert(table(numbers(5, 400)))
    near = {"column": "v", "q": numbers(7, 1)[0], "recall": 0.9, "k": 20}
    assert dataset.to_table(nearest=near).num_rows == 20
    assert dataset.to_table(nearest=near, filter="id < 50", prefilter=True).num_rows == 20
    assert dataset.measure_recall("v", recall=0.9) > 0.8
    dataset.delete("true")
    assert dataset.to_table(nearest=near).num_rows == 0
    assert dataset.measure_recall("v", recall=0.9) == 1


def test_recall_without_an_index_is_exact(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(table(numbers()), tmp_path)
    near = {"column": "v", "q": np.zeros(DIMENSION), "recall": 0.5}
    assert "exact" in dataset.scanner(nearest=near).explain_plan()
    assert dataset.measure_recall("v", recall=0.5) == 1


def test_wrong_recall(tmp_path: Path) -> None:
    dataset = made(tmp_path, "flat")
    near = {"column": "v", "q": np.zeros(DIMENSION)}
    for value in (0, 1.5, -1, float("nan"), True):
        with pytest.raises(InvalidInputError, match="recall must be above 0 and at most 1"):
            dataset.to_table(nearest={**near, "recall": value})
    with pytest.raises(TypeError, match="recall must be a number"):
        dataset.to_table(nearest={**near, "recall": "high"})
    for name in ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor", "search_effort"):
        with pytest.raises(InvalidInputError, match=f"recall chooses {name}"):
            dataset.to_table(nearest={**near, "recall": 0.9, name: 1})
    with pytest.raises(FieldNotFoundError):
        dataset.measure_recall("w")
    with pytest.raises(InvalidInputError, match="Nearest-K"):
        dataset.measure_recall("v", k=0)
    with pytest.raises(InvalidInputError, match="NaN"):
        dataset.measure_recall("v", [np.nan] * DIMENSION)
    lists = pa.array([[[1.0, 2.0]]] * 4, pa.list_(pa.list_(pa.float32(), 2)))
    several = lance_dataset.write_dataset(pa.table({"v": lists}), tmp_path / "lists")
    with pytest.raises(UnsupportedError, match="lists of vectors"):
        several.measure_recall("v")


def test_share_of_rows() -> None:
    a, b, none = np.array([1, 2], np.uint64), np.array([2, 3, 4, 5], np.uint64), np.empty(0, np.uint64)
    assert recall_of([a, none], [b, none]) == 0.25
    assert recall_of([none], [none]) == 1
