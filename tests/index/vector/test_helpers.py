"""Tests of helpers for vectors: k-means, tables, checks of indices; compared with pylance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance.util
import lance.vector
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.util
import lance_dataset.vector

VALUES = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)


def lists(values: Any) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


@pytest.mark.parametrize("metric", ["l2", "dot", "euclidean"])
@pytest.mark.parametrize("form", [lambda v: v, lists, pa.FixedShapeTensorArray.from_numpy_ndarray])
def test_kmeans(metric: str, form: Callable[[Any], Any]) -> None:
    """The best of five trainings, which start from random vectors, is as good as the reference's."""
    losses: dict[Any, list[float]] = {}
    packages: tuple[Any, ...] = (lance_dataset, lance)
    for package in packages * 5:
        model = package.util.KMeans(5, metric)
        assert model.centroids is None
        model.fit(form(VALUES))
        centroids = model.centroids.to_numpy_ndarray()
        assert model.centroids.type == lance.util.KMeans(5, centroids=lists(VALUES[:5])).centroids.type
        found = np.asarray(model.predict(form(VALUES)))
        chosen = centroids[found]
        distances = 1 - (VALUES * chosen).sum(1) if metric == "dot" else ((VALUES - chosen) ** 2).sum(1)
        losses.setdefault(package, []).append(float(distances.sum()))
    mine, other = (min(losses[package]) for package in packages)
    assert mine < other + 0.1 * abs(other)


def test_kmeans_of_given_centroids() -> None:
    models = [package.util.KMeans(4, centroids=lists(VALUES[:4])) for package in (lance_dataset, lance)]
    broken = VALUES.copy()
    broken[7, 3] = np.nan
    mine, other = (model.predict(broken) for model in models)
    assert mine.type == other.type
    assert mine.to_pylist() == other.to_pylist()
    assert mine[7].as_py() is None
    assert repr(models[0]) == repr(models[1])
    unit = lance_dataset.util.KMeans(3, "cosine")
    unit.fit(VALUES)
    assert set(unit.predict(VALUES * 5).to_pylist()) == {0, 1, 2}


WRONG: list[Callable[[Any], Any]] = [
    lambda u: u.KMeans(4, "zz"),
    lambda u: u.KMeans(4, "hamming"),
    lambda u: u.KMeans(4).predict(VALUES),
    lambda u: u.KMeans(4).fit(VALUES.astype(np.float64)),
    lambda u: u.KMeans(4).fit(VALUES[:2]),
    lambda u: u.KMeans(4).fit(VALUES.tolist()),
    lambda u: u.KMeans(4).fit(VALUES[0]),
    lambda u: u.KMeans(4, centroids=VALUES[:4]),
    lambda u: u.KMeans(5, centroids=lists(VALUES[:4])),
    lambda u: u.KMeans(4, centroids=lists(VALUES[:4])).predict(VALUES[:, :3]),
    lambda u: u.sanitize_ts(3),
    lambda u: u.sanitize_ts("x"),
    lambda u: u.sanitize_ts(dt.date(2024, 1, 1)),
    lambda u: u.td_to_micros(3),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_errors_of_the_reference(number: int) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as expected:
        WRONG[number](lance.util)
    with pytest.raises(expected.type):
        WRONG[number](lance_dataset.util)


TABLES: list[tuple[Any, dict[str, Any]]] = [
    ({"a": [1, 2], "b": [3, 4]}, {}),
    ({1: np.array([1.0, 2])}, {}),
    ({"a": [1.0, 2]}, {"names": ["k", "e"]}),
    ([[1, 2], [3, 4]], {}),
    ([np.zeros(3, np.float32)] * 2, {"names": "e"}),
    (np.zeros((2, 3)), {"names": ["e"]}),
    (np.zeros((2, 3), np.uint8), {"ndim": 3}),
    ([[None, 1.0]], {}),
    ([[1.0, 2.0], [3.0, 4.0]], {"check_ndim": False}),
    # wrong ones
    ([[1.0, 2.0], [3.0]], {}),
    ({"a": [1.0, 2.0], "b": [3.0]}, {}),
    ([[1.0, 2.0], [3.0]], {"check_ndim": False}),
    ([[1.0, 2.0]], {"ndim": 3}),
    ({"a": [1.0, 2]}, {"names": "e"}),
    (np.zeros((2, 3)), {"names": ["a", "b"]}),
    (None, {}),
    ("abc", {}),
    ([["a"]], {}),
    ([1.0, 2.0], {}),
    (pa.array([1.0]), {}),
]


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_tables(number: int) -> None:
    data, options = TABLES[number]
    try:
        expected = lance.vector.vec_to_table(data, **options)
    except Exception as error:
        with pytest.raises(type(error)):
            lance_dataset.vector.vec_to_table(data, **options)
    else:
        found = lance_dataset.vector.vec_to_table(data, **options)
        assert found.schema == expected.schema
        assert str(found.to_pydict()) == str(expected.to_pydict())  # NaN is not equal to itself


def test_no_vectors() -> None:
    empty: tuple[Any, ...] = ({}, [], np.empty((0, 3)))
    for data in empty:
        with pytest.raises(ValueError, match="no vectors"):
            lance_dataset.vector.vec_to_table(data)


def test_times() -> None:
    moment = dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc)
    assert lance_dataset.util.sanitize_ts(moment) == lance.util.sanitize_ts(moment) == moment
    assert lance_dataset.util.sanitize_ts("2024-01-02 03:04:05") == dt.datetime(2024, 1, 2, 3, 4, 5)
    duration = dt.timedelta(days=2, microseconds=5)
    assert lance_dataset.util.td_to_micros(duration) == lance.util.td_to_micros(duration)


def test_an_index_is_validated(tmp_path: Path) -> None:
    values = VALUES.astype(np.float64)
    values[5, 2] = np.nan
    dataset = lance_dataset.write_dataset(pa.table({"v": lists(values)}), tmp_path)
    dataset.create_index("v", "IVF_FLAT", num_partitions=4)
    lance_dataset.util.validate_vector_index(dataset, "v")
    dataset.create_index("v", "IVF_PQ", num_partitions=1, num_sub_vectors=1, num_bits=8, max_iters=1, replace=True)
    dataset.create_index(
        *("v", "IVF_PQ"),
        ivf_centroids=np.zeros((1, 8)),
        pq_codebook=np.zeros((1, 256, 8)),
        num_sub_vectors=1,
        replace=True,
    )
    with pytest.raises(ValueError, match="failed sanity check"):
        lance_dataset.util.validate_vector_index(dataset, "v", refine_factor=1, sample_size=50)
    lance_dataset.util.validate_vector_index(dataset, "v", refine_factor=1, pass_threshold=0)
    for package in (lance_dataset, lance):
        with pytest.raises(KeyError):
            package.util.validate_vector_index(package.dataset(tmp_path), "w")
    with pytest.raises(ValueError, match="no vectors"):
        lance_dataset.util.validate_vector_index(dataset, "v", sample_size=0)
