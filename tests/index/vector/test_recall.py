"""Tests of searches that ask for a recall, and of measuring recall."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_dataset
from lance_dataset._proto.vector_index_pb2 import VectorIndexDetails
from lance_dataset.changes.indexing import recall as indexing_recall
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.index.vector.recall_curve import CURVE, RecallCurve, RecallPoint, details_with_curve, kept_curve
from lance_dataset.index.vector.searching.open_indices import vector_indices
from lance_dataset.scan.nearest import recall
from lance_dataset.scan.nearest.recall import index_curve, recall_of
from lance_dataset.scan.nearest.search import VectorColumn

ROWS, DIMENSION = 3072, 16
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


def made(path: Path, name: str, metric: str = "l2", package: Any = lance_dataset) -> lance_dataset.LanceDataset:
    """Write a table with an index; one that is built here is always the same, apart from the rotation of RaBitQ."""
    kind, parameters = KINDS[name]
    written = package.write_dataset(table(numbers()), path, max_rows_per_file=1000)
    if name == "rq" and package is lance_dataset:
        signs = np.random.default_rng(5).integers(0, 256, 4 * DIMENSION // 8).tolist()
        model = {"rotation_type": "fast", "fast_rotation_signs": signs, "code_dim": DIMENSION, "num_bits": 1}
        parameters = {**parameters, "rabitq_model": json.dumps(model)}
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


@pytest.mark.parametrize(
    ("name", "metric"),
    [*((name, "l2") for name in KINDS), ("flat", "dot"), ("pq", "cosine"), ("sq", "cosine"), ("rq", "dot")],
)
def test_recall_is_reached(tmp_path: Path, name: str, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All searches seem to take the same time, so that the choice among those that are good enough is fixed."""
    monkeypatch.setattr(recall, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    dataset, queries = made(tmp_path, name, metric), numbers(1, 40)
    for wanted in (0.5, 0.9, 0.99):
        # others than the rows that were measured with: hence the margin
        assert measured(dataset, queries, metric, recall=wanted) > wanted - 0.08
        plan = dataset.scanner(nearest={"column": "v", "q": queries[0], "recall": wanted}).explain_plan(True)
        assert f"recall {wanted:g} was asked" in plan
        assert "is expected" in plan


@pytest.mark.parametrize("name", KINDS)
def test_measured_recall(tmp_path: Path, name: str) -> None:
    dataset, queries = made(tmp_path, name, package=lance), numbers(1, 20)
    for parameters in ({"nprobes": 1}, {"nprobes": 4}, {"nprobes": 12, "refine_factor": 50}):
        expected = measured(dataset, queries, "l2", **parameters)
        assert dataset.measure_recall("v", queries, **parameters) == pytest.approx(expected)
    assert dataset.measure_recall("v", queries, nprobes=12, refine_factor=300) == 1
    assert dataset.measure_recall("v", use_index=False) == 1
    assert dataset.measure_recall("v", queries[0], k=1, use_index=False) == 1
    assert 0 < dataset.measure_recall("v", nprobes=1, k=5) < 1
    assert dataset.measure_recall("v", recall=0.9) > 0.85


def test_curves_are_kept_with_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "_KEPT", 2)
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
    for k in range(1, 4):
        dataset.scanner(nearest={**near, "k": k})
    assert len(index.curves) == 2


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


@pytest.mark.parametrize("name", KINDS)
def test_curves_are_kept_in_the_details(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are measured when the index is built and optimized. pylance reads the index, and keeps them."""
    measures_always(monkeypatch)
    dataset = made(tmp_path, name)
    curve = kept(dataset)
    assert (curve.k, curve.partitions, curve.vectors) == (10, (12,), ROWS)
    assert [each.seconds for each in curve.points] == sorted(each.seconds for each in curve.points)
    assert [each.recall for each in curve.points] == sorted(each.recall for each in curve.points)
    assert curve.points[-1].recall > 0.95
    monkeypatch.setattr(recall, "_measured", None)  # nothing is measured in searches
    near = {"column": "v", "q": numbers(1, 1)[0], "recall": 0.9}
    wanted = next(each for each in curve.points if each.recall >= 0.9)
    plan = dataset.scanner(nearest=near).explain_plan(True)
    assert f"recall 0.9 was asked, {wanted.recall:.3f} is expected" in plan
    assert lance.dataset(tmp_path).to_table(nearest={"column": "v", "q": near["q"], "k": 10}).num_rows == 10
    assert RecallCurve.of_text(hints(lance.dataset(tmp_path))[CURVE]) == curve


def test_curves_of_optimized_indices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures_always(monkeypatch)
    dataset = made(tmp_path, "pq")
    dataset.insert(table(numbers(5, 1500)))
    dataset.optimize.optimize_indices()
    assert kept(dataset).partitions == (12, 12)
    assert kept(dataset).vectors == ROWS + 1500
    near = {"column": "v", "q": numbers(1, 1)[0], "recall": 0.9}
    with monkeypatch.context() as patched:
        patched.setattr(recall, "_measured", None)
        assert dataset.to_table(nearest=near).num_rows == 10
    lance.write_dataset(table(numbers(6, 500)), tmp_path, mode="append")
    lance.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0)
    dataset = lance_dataset.dataset(tmp_path)
    # pylance adds a segment, so the curve is no longer that of the index
    measured = dataset.scanner(nearest=near).explain_plan(True)
    assert "is expected" in measured
    assert len(next(iter(indices_of(dataset)[0].curves.values()))) > len(kept(dataset).points)


def test_curves_of_former_models_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures_always(monkeypatch)
    dataset = made(tmp_path, "flat")
    assert CURVE in hints(dataset)
    monkeypatch.setattr(indexing_recall, "_SHARE", 0)
    dataset.optimize.optimize_indices(retrain=True)
    assert CURVE not in hints(dataset)


def test_what_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds measure neither small tables nor those that exceed the memory, and nothing of lists and empty tables."""
    dataset = made(tmp_path / "small", "flat")
    assert CURVE not in hints(dataset)
    measures_always(monkeypatch)
    dataset.create_index("v", "IVF_FLAT", replace=True, num_partitions=4, memory_limit=1 << 17)
    assert CURVE not in hints(dataset)
    several = pa.table({"v": pa.array([[[1.0, 2.0]]] * 40, pa.list_(pa.list_(pa.float32(), 2)))})
    lists = lance_dataset.write_dataset(several, tmp_path / "lists")
    lists.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=1)
    assert CURVE not in hints(lists)
    nulls = lance_dataset.write_dataset(pa.table({"v": pa.nulls(40, pa.list_(pa.float32(), 2))}), tmp_path / "nulls")
    nulls.create_index("v", "IVF_FLAT", num_partitions=1)
    assert CURVE not in hints(nulls)
    monkeypatch.setattr(indexing_recall, "_SHARE", 0)
    dataset.create_index("v", "IVF_FLAT", replace=True, num_partitions=4)
    assert CURVE not in hints(dataset)


def test_measuring_ends_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made(tmp_path, "flat")
    (index,) = indices_of(dataset)
    reader, column = dataset.snapshot.reader, VectorColumn.of(dataset.snapshot.scanned_schema, "v")
    calls = itertools.count()
    monkeypatch.setattr(recall, "time", SimpleNamespace(perf_counter=calls.__next__))
    assert index_curve(reader, column, index, 10, 1e-9) is None
    assert next(calls) == 0  # nothing was tried
    assert index_curve(reader, column, index, 10, 50) is None
    assert next(calls) < 200  # one number of partitions was tried
    assert index_curve(reader, column, index, 10, 1e6) is not None


def measures_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let builds measure small indices, too, however long that takes."""
    monkeypatch.setattr(indexing_recall, "_LEAST_ROWS", 1)
    monkeypatch.setattr(indexing_recall, "_SHARE", 1e9)


def hints(dataset: Any) -> dict[str, str]:
    found: dict[str, str] = dataset.describe_indices()[0].details.get("runtime_hints", {})
    return found


def indices_of(dataset: lance_dataset.LanceDataset) -> Any:
    indices = vector_indices(dataset.snapshot.reader)
    assert indices is not None
    return next(iter(indices.by_field.values()))


def kept(dataset: lance_dataset.LanceDataset) -> RecallCurve:
    """Return the curve of the newest segment that has one."""
    details = [each.segment.metadata.details.value for each in indices_of(dataset)[0].segments]
    texts = [VectorIndexDetails.FromString(each).runtime_hints.get(CURVE) for each in details]
    curve = RecallCurve.of_text([each for each in texts if each][-1])
    assert curve is not None
    return curve


WRONG_TEXTS = (
    *("", "x", "[]", "{}", "[" * 5000, '{"k":10,"partitions":[1],"vectors":5,"points":[]}'),
    '{"k":0,"partitions":[1],"vectors":5,"points":[[1,0,0.5,3]]}',
    '{"k":10,"partitions":[],"vectors":5,"points":[[1,0,0.5,3]]}',
    '{"k":10,"partitions":["1"],"vectors":5,"points":[[1,0,0.5,3]]}',
    '{"k":10,"partitions":[1],"vectors":1e9,"points":[[1,0,0.5,3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[0,0,0.5,3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[1,-1,0.5,3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[1,99999999,0.5,3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[1,0,1.5,3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[1,0,NaN,3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[1,0,0.5,-3]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[[1,0,0.5]]}',
    '{"k":10,"partitions":[1],"vectors":5,"points":[' + "[1,0,0.5,3]," * 80 + "[1,0,0.5,3]]}",
)


@pytest.mark.parametrize("number", range(len(WRONG_TEXTS)))
def test_hostile_curves(number: int) -> None:
    """Texts of other writers are not used."""
    assert RecallCurve.of_text(WRONG_TEXTS[number]) is None


def test_curves_that_do_not_fit() -> None:
    points = (RecallPoint(1, None, 0.5, 1e-3), RecallPoint(2, 5, 0.75, 2e-3), RecallPoint(3, 5, 0.7, 3e-3))
    curve = RecallCurve(10, (3, 4), 1000, points)
    details = [b"\xff", details_with_curve(b"", curve)]
    assert kept_curve(details, 10, (4, 3), 1100) == points[:2]
    assert kept_curve(details, 9, (4, 3), 1000) is None
    assert kept_curve(details, 10, (4,), 1000) is None
    assert kept_curve(details, 10, (4, 3), 2000) is None
    assert kept_curve([b""], 10, (4, 3), 1000) is None
