"""Tests of building vector indices, searched by pylance and by this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError, MemoryLimitError, UnsupportedError

ROWS, DIMENSION = 900, 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "sq": ("IVF_SQ", {}),
    "pq8": ("IVF_PQ", {"num_sub_vectors": 4}),
    "rq1": ("IVF_RQ", {"num_bits": 1}),
    "rq5": ("IVF_RQ", {}),
    "rq8": ("IVF_RQ", {"num_bits": 8}),
    "pq4": ("IVF_PQ", {"num_sub_vectors": 8, "num_bits": 4}),
}


def vectors(kind: Any = np.float32) -> Any:
    rng = np.random.default_rng(3)
    if kind is np.uint8:
        return rng.integers(0, 256, (ROWS, DIMENSION), np.uint8)
    return (
        rng.standard_normal((12, DIMENSION))[rng.integers(0, 12, ROWS)] * 3 + rng.standard_normal((ROWS, 1))
    ).astype(kind) + rng.standard_normal((ROWS, DIMENSION)).astype(kind)


def write(path: Path, values: Any, mask: Any = None, **options: Any) -> None:
    flat = pa.array(values.reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, DIMENSION, mask=None if mask is None else pa.array(mask))
    lance.write_dataset(pa.table({"id": range(len(values)), "v": lists}), path, max_rows_per_file=400, **options)


def check(path: Path, query: Any, tolerance: float = 1e-4) -> list[int]:
    asked: dict[str, Any] = {
        "nearest": {"column": "v", "q": query, "k": 10, "nprobes": 3},
        "columns": ["id", "_distance"],
    }
    mine, other = (each.dataset(path).to_table(**asked) for each in (lance_dataset, lance))
    np.testing.assert_allclose(mine["_distance"], other["_distance"], rtol=tolerance, atol=tolerance)
    assert "ANNSubIndex" in lance.dataset(path).scanner(**asked).explain_plan(verbose=True)
    found: list[int] = other["id"].to_pylist()
    return found


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path: Path, name: str, metric: str) -> None:
    kind, parameters = KINDS[name]
    values = vectors()
    write(tmp_path, values)
    dataset = lance_dataset.dataset(tmp_path)
    assert dataset.create_index("v", kind, metric=metric.upper(), num_partitions=5, **parameters) is dataset
    for query in values[:3]:
        check(tmp_path, query)
    statistics = lance.dataset(tmp_path).stats.index_stats("v_idx")
    assert statistics["index_type"] == kind
    assert statistics["num_indexed_rows"] == ROWS


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.uint8])
def test_elements(tmp_path: Path, kind: Any) -> None:
    values = vectors(kind)
    write(tmp_path, values, enable_stable_row_ids=True)
    metric = "hamming" if kind is np.uint8 else "cosine"
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", metric=metric, num_partitions=4)
    assert check(tmp_path, values[5], 2e-3)[0] == 5


def test_unusable_vectors_are_left_out(tmp_path: Path) -> None:
    values = vectors()
    values[1, 3], values[2, 0], values[3] = np.nan, np.inf, 0
    write(tmp_path, values, np.arange(ROWS) == 4)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=3)
    sizes = lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["partitions"]
    assert sum(each["size"] for each in sizes) == ROWS - 4


def test_lists_of_vectors(tmp_path: Path) -> None:
    inner = pa.FixedSizeListArray.from_arrays(pa.array(vectors().reshape(-1)), DIMENSION)
    lists = pa.ListArray.from_arrays(pa.array(range(0, ROWS + 1, 3), pa.int32()), inner)
    lance.write_dataset(pa.table({"v": lists}), tmp_path)
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", metric="cosine", num_partitions=3)
    sizes = lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["partitions"]
    assert sum(each["size"] for each in sizes) == ROWS


@pytest.mark.parametrize(("train", "rows"), [(False, ROWS), (True, 100)])
def test_untrained(tmp_path: Path, train: bool, rows: int) -> None:
    write(tmp_path, vectors()[:rows])
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, train=train)
    (index,) = dataset.list_indices()
    assert index["fragment_ids"] == set()
    assert lance.dataset(tmp_path).stats.index_stats("v_idx")["num_indexed_rows"] == 0


def test_errors(tmp_path: Path) -> None:
    write(tmp_path, vectors())
    dataset = lance_dataset.dataset(tmp_path)
    for kind in ("IVF_HNSW_SQ", "OTHER"):
        with pytest.raises(UnsupportedError):
            dataset.create_index("v", kind)
    with pytest.raises(UnsupportedError, match="accelerator"):
        dataset.create_index("v", "IVF_FLAT", accelerator="cuda")
    wrong_options: list[dict[str, Any]] = [{"metric": "l3"}, {"metric": "hamming"}, {"num_partitions": 0}]
    for wrong in wrong_options:
        with pytest.raises(InvalidInputError):
            dataset.create_index("v", "IVF_FLAT", **wrong)
    wrong_codes: list[dict[str, Any]] = [{}, {"num_sub_vectors": 5}, {"num_sub_vectors": 4, "num_bits": 5}]
    for parameters in wrong_codes:
        with pytest.raises(InvalidInputError):
            dataset.create_index("v", "IVF_PQ", **parameters)
    with pytest.raises(KeyError):
        dataset.create_index("w", "IVF_FLAT")
    with pytest.raises(TypeError):
        dataset.create_index("id", "IVF_FLAT")
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        dataset.create_index("v", "IVF_FLAT", memory_limit=1000)
    dataset.create_index("v", "IVF_FLAT")
    with pytest.raises(RuntimeError, match="already exists"):
        dataset.create_index("v", "IVF_FLAT")
    dataset.create_index("v", "IVF_SQ", replace=True)


@pytest.mark.parametrize("arrow", [False, True])
def test_given_models(tmp_path: Path, arrow: bool) -> None:
    values = vectors()
    write(tmp_path, values)
    rng = np.random.default_rng(5)
    centroids: Any = values[rng.choice(ROWS, 4, replace=False)]
    words: Any = rng.standard_normal((4, 256, DIMENSION // 4)).astype(np.float32)
    if arrow:
        centroids = pa.FixedSizeListArray.from_arrays(pa.array(centroids.reshape(-1)), DIMENSION)
        words = pa.FixedSizeListArray.from_arrays(pa.array(words.reshape(-1)), DIMENSION)
    given: dict[str, Any] = {"num_sub_vectors": 4, "ivf_centroids": centroids, "pq_codebook": words}
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_PQ", name="ours", **given)
    lance.dataset(tmp_path).create_index("v", "IVF_PQ", name="theirs", num_partitions=4, **given)
    mine, other = (lance.dataset(tmp_path).stats.index_stats(name)["indices"][0] for name in ("ours", "theirs"))
    assert mine["centroids"] == other["centroids"]
    assert mine["partitions"] == other["partitions"]
    assert mine["loss"] == pytest.approx(other["loss"], rel=1e-5)
    check(tmp_path, values[7])


def test_wrong_models(tmp_path: Path) -> None:
    write(tmp_path, vectors())
    dataset = lance_dataset.dataset(tmp_path)
    centroids = np.ones((3, DIMENSION), np.float32)
    wrong: list[dict[str, Any]] = [
        {"ivf_centroids": np.ones((3, DIMENSION + 1))},
        {"ivf_centroids": centroids, "num_partitions": 4},
        {"ivf_centroids": centroids * np.nan},
        {"ivf_centroids": [[1.0], [1.0, 2.0]]},
        {"ivf_centroids": np.ones(DIMENSION)},
        {"pq_codebook": np.ones((4, 256, 4))},
        {"ivf_centroids": centroids, "pq_codebook": np.ones((4, 255, 4))},
    ]
    for parameters in wrong:
        with pytest.raises(InvalidInputError):
            dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, **parameters)
    with pytest.raises(TypeError):
        dataset.create_index("v", "IVF_FLAT", ivf_centroids=[["a"]])


def test_vectors_far_from_the_origin(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = (vectors() + rng.standard_normal((ROWS, DIMENSION)) + 3000).astype(np.float32)
    write(tmp_path, values)
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", num_partitions=20)
    (found,) = lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"]
    wide, centroids = values.astype(np.float64), np.array(found["centroids"])
    nearest = ((wide[:, None] - centroids) ** 2).sum(axis=2)
    assert found["loss"] == pytest.approx(nearest.min(axis=1).sum(), rel=1e-3)
    assert [each["size"] for each in found["partitions"]] == np.bincount(nearest.argmin(axis=1), minlength=20).tolist()


@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("name", KINDS)
def test_equal_vectors(tmp_path: Path, name: str, rows: int) -> None:
    kind, parameters = KINDS[name]
    write(tmp_path, np.ones((rows, DIMENSION), np.float32))
    lance_dataset.dataset(tmp_path).create_index("v", kind, num_partitions=4, **parameters)
    asked: dict[str, Any] = {"nearest": {"column": "v", "q": np.ones(DIMENSION), "k": 3}, "columns": ["_distance"]}
    mine, other = (each.dataset(tmp_path).to_table(**asked)["_distance"] for each in (lance_dataset, lance))
    assert len(mine) == min(rows, 3)
    np.testing.assert_allclose(mine, other, atol=1e-5)
