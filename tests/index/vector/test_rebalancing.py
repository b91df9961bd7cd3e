"""Tests of optimizations that split and join partitions of vector indices, compared with pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_dataset
from lance_dataset.index.vector.training.rebalancing import are_unbalanced, rebalanced

DIMENSION = 8
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_RQ": {"num_bits": 3},
    "IVF_HNSW_SQ": {"m": 8, "ef_construction": 30},
}


def vectors(seed: int, centers: NDArray[Any], sizes: list[int]) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    parts = [each + rng.standard_normal((size, DIMENSION)) for each, size in zip(centers, sizes, strict=True)]
    return np.concatenate(parts).astype(np.float32)


def table(values: NDArray[Any], start: int = 0) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    return pa.table({"id": pa.array(range(start, start + len(values)), pa.int64()), "v": lists})


def centers(count: int, *, unit: bool = False) -> NDArray[np.float32]:
    found = np.random.default_rng(3).standard_normal((count, DIMENSION)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1)[:, None] if unit else found * 50


def sizes(path: Path) -> list[list[int]]:
    statistics = lance.dataset(path).stats.index_stats("v_idx")
    return [[each["size"] for each in segment["partitions"]] for segment in statistics["indices"]]


def check(path: Path, values: NDArray[Any], metric: str = "l2") -> None:
    """All rows are found, and both packages find the same."""
    for query in values[:: len(values) // 4]:
        nearest = {"column": "v", "q": query + 0.1, "k": 10, "metric": metric}
        exact = lance.dataset(path).to_table(nearest={**nearest, "use_index": False}, columns=["id", "_distance"])
        for package in (lance, lance_dataset):
            found = package.dataset(path).to_table(
                nearest={**nearest, "nprobes": 50, "refine_factor": 30}, columns=["id", "_distance"], fast_search=True
            )
            np.testing.assert_allclose(found["_distance"], exact["_distance"], rtol=1e-4, atol=1e-4)


#: Sizes of partitions, wanted size (None for the default), rows added to each, sizes as pylance leaves them.
CASES: dict[str, tuple[list[int], int | None, list[int]]] = {
    "one is small": ([2000, 2000, 100, 2000], None, [5, 5, 5, 5]),
    "all are small": ([500, 500, 500], None, [5, 5, 5]),
    "none": ([1100, 1100, 1100], None, [5, 5, 5]),
    "given size": ([100, 100, 100], 100, [5, 5, 5]),
    "given size, one is large": ([500, 100, 100], 100, [5, 5, 5]),
    "given size, one is small": ([20, 100, 100], 100, [1, 1, 1]),
    "it grows too large": ([380, 100, 100], 100, [40, 5, 5]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_the_reference_does(tmp_path: Path, name: str) -> None:
    """The number of segments and the sizes of partitions that are not split are the same."""
    counts, wanted, more = CASES[name]
    found = []
    for package in (lance, lance_dataset):
        path = tmp_path / package.__name__
        middle = centers(len(counts))
        lance.write_dataset(table(vectors(0, middle, counts)), path)
        options = {"num_partitions": len(counts)} if wanted is None else {"target_partition_size": wanted}
        lance.dataset(path).create_index("v", "IVF_FLAT", ivf_centroids=middle, **options)
        lance.write_dataset(table(vectors(1, middle, more), 10**6), path, mode="append")
        dataset: Any = package.dataset(path)
        dataset.optimize.optimize_indices()
        found.append(sizes(path))
        check(path, np.concatenate([vectors(0, middle, counts), vectors(1, middle, more)]))
    theirs, mine = found
    assert len(mine) == len(theirs)
    assert sum(map(sum, mine)) == sum(map(sum, theirs))
    if "large" in name:
        assert abs(len(mine[0]) - len(theirs[0])) <= 3
        assert max(mine[0]) <= 4 * (wanted or 0)
    else:
        assert len(mine[0]) == len(theirs[0])


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_and_metrics(tmp_path: Path, kind: str, metric: str) -> None:
    """Partitions grow for some time: they stay between the limits, and all segments become one when they are left."""
    middle = centers(3, unit=True)
    first = vectors(0, middle * 3, [90, 100, 100])
    given = middle * 3 if metric == "l2" else middle
    dataset = lance_dataset.write_dataset(table(first), tmp_path)
    dataset.create_index("v", kind, metric=metric, target_partition_size=100, ivf_centroids=given, **KINDS[kind])
    values = [first]
    for step in range(1, 4):
        values.append(vectors(step, middle * 3, [300, 0, 5]))
        dataset.insert(table(values[-1], 10**6 * step))
        dataset.optimize.optimize_indices()
        assert all(map(sum, sizes(tmp_path)))
        assert np.sum([sum(each) for each in sizes(tmp_path)]) == sum(map(len, values))
        check(tmp_path, np.concatenate(values), metric)
    assert len(sizes(tmp_path)[0]) > 4
    assert max(sizes(tmp_path)[0]) <= 400
    assert dataset.describe_indices()[0].details["target_partition_size"] == 100
    dataset.validate(indices=True)


def test_a_number_that_was_asked_for(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(table(vectors(0, centers(3), [600, 20, 20])), tmp_path)
    dataset.create_index("v", "IVF_FLAT", num_partitions=3)
    for step in (1, 2):
        dataset.insert(table(vectors(step, centers(3), [9, 9, 9]), 1000 * step))
        dataset.optimize.optimize_indices()
        assert len(sizes(tmp_path)) == step + 1
    dataset.optimize.optimize_indices(retrain=True)
    assert [len(each) for each in sizes(tmp_path)] == [3]
    assert sum(sizes(tmp_path)[0]) == 694


def test_segments_of_other_centroids_stay(tmp_path: Path) -> None:
    """Workers that train their own models choose their partitions."""
    dataset = lance_dataset.write_dataset(table(vectors(0, centers(2), [300, 300])), tmp_path, max_rows_per_file=300)
    built = [
        dataset.create_index_uncommitted("v", "IVF_FLAT", target_partition_size=20, fragment_ids=[each])
        for each in (0, 1)
    ]
    dataset.commit_existing_index_segments("v_idx", "v", built)
    dataset.insert(table(vectors(1, centers(2), [500, 5]), 1000))
    dataset.optimize.optimize_indices()
    assert len(sizes(tmp_path)) == 3


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("options", [{}, {"num_indices_to_merge": 0}, {"num_indices_to_merge": 1}, {"retrain": True}])
def test_indices_in_a_single_file(tmp_path: Path, metric: str, options: dict[str, Any]) -> None:
    """pylance cannot optimize them; new segments are in the usual format, with the same models."""
    middle = centers(3, unit=True) * 3
    first, second = vectors(0, middle, [300, 300, 300]), vectors(1, middle, [30, 30, 30])
    lance.write_dataset(table(first), tmp_path)
    lance.dataset(tmp_path).create_index(
        "v", "IVF_PQ", metric=metric, num_partitions=3, num_sub_vectors=4, index_file_version="legacy"
    )
    lance.write_dataset(table(second, 10**6), tmp_path, mode="append")
    lance_dataset.dataset(tmp_path).optimize.optimize_indices(**options)
    versions = [each["index_file_version"] for each in lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"]]
    assert sorted(versions) == (["Legacy", "V3"] if options == {"num_indices_to_merge": 0} else ["V3"])
    assert sum(map(sum, sizes(tmp_path))) == 990
    check(tmp_path, np.concatenate([first, second]), metric)


@pytest.mark.parametrize("metric", ["l2", "dot", "hamming"])
def test_balanced_partitions_stay(metric: str) -> None:
    rng = np.random.default_rng(0)
    if metric == "hamming":
        sample: NDArray[Any] = rng.integers(0, 256, (400, DIMENSION), np.uint8)
    else:
        sample = vectors(0, centers(4, unit=True) * 9, [100] * 4)
    middle = sample[[0, 100, 200, 300]]
    if metric == "dot":
        middle = middle / np.linalg.norm(middle, axis=1)[:, None]
    found = rebalanced(middle, sample, 400, 100, metric, rng, 20)
    assert np.array_equal(found, middle)
    many = rebalanced(middle[:1], sample, 400, 40, metric, rng, 20)
    assert 4 <= len(many) <= 10
    assert many.dtype == middle.dtype
    assert len(rebalanced(middle, sample, 400, 10_000, metric, rng, 20)) == 1
    assert rebalanced(middle, sample[:0], 0, 10, metric, rng, 20) is middle


def test_limits() -> None:
    assert not are_unbalanced(np.array([25, 400]), 100)
    assert are_unbalanced(np.array([24, 400]), 100)
    assert are_unbalanced(np.array([25, 401]), 100)
    assert not are_unbalanced(np.array([1]), 100)
    assert not are_unbalanced(np.empty(0, np.int64), 100)
