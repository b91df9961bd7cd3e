"""Tests of clusters of vectors, by processors and by PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lance_dataset.index.vector.training.clustering import assigned, cluster
from lance_dataset.index.vector.training.devices import clustering_on


def many_clusters(metric: str) -> NDArray[Any]:
    """Return vectors in many more natural clusters than there are centers, so that most centers drawn are in one."""
    rng = np.random.default_rng(3)
    if metric == "hamming":
        centers = rng.integers(0, 256, (400, 16), np.uint8)
        flips = np.packbits(rng.random((8000, 128)) < 0.05, axis=1)
        return centers[rng.integers(0, 400, 8000)] ^ flips
    values = rng.standard_normal((400, 48))[rng.integers(0, 400, 8000)] + rng.standard_normal((8000, 48)) / 3
    if metric != "l2":
        values /= np.linalg.norm(values, axis=1)[:, None]
    return values.astype(np.float32)


def found_together(vectors: NDArray[Any], centroids: NDArray[Any], metric: str) -> tuple[float, float]:
    """Return the average size of the cluster of a vector, and the average distance."""
    clusters, distances = assigned(vectors, centroids, metric)
    sizes = np.bincount(clusters, minlength=len(centroids))
    return float((sizes**2).sum() / len(vectors)), float(distances.mean())


@pytest.mark.parametrize(
    ("metric", "device"),
    [
        *((metric, None) for metric in ("l2", "cosine", "dot", "hamming")),
        *((metric, torch.device("cpu")) for metric in ("l2", "cosine", "dot")),
    ],
)
def test_balanced_clusters(metric: str, device: torch.device | None) -> None:
    """They are of similar sizes, and hardly worse."""
    vectors, find = many_clusters(metric), clustering_on(device)
    plain, balanced = (find(vectors, 40, metric, np.random.default_rng(1), balanced=each) for each in (False, True))
    size, loss = found_together(vectors, balanced, metric)
    usual, least = found_together(vectors, plain, metric)
    assert size < 1.6 * len(vectors) / 40
    assert size < 1.05 * usual
    assert loss < 1.02 * least


def test_penalties_are_part_of_the_distances() -> None:
    rng = np.random.default_rng(1)
    for metric in ("l2", "dot", "hamming"):
        vectors = rng.integers(0, 256, (300, 8), np.uint8) if metric == "hamming" else rng.random((300, 8), np.float32)
        centroids, penalties = vectors[:5].copy(), np.array([0, 3.0, 0.5, 100, 0])
        clusters, distances = assigned(vectors, centroids, metric, penalties)
        each = np.stack([assigned(vectors, centroids[[number]], metric)[1] for number in range(5)], axis=1) + penalties
        np.testing.assert_array_equal(each.argmin(axis=1), clusters)
        np.testing.assert_allclose(each.min(axis=1), distances, atol=1e-5)
        assert not (clusters == 3).any()


@pytest.mark.parametrize("count", [40, 300])
def test_hard_input(count: int) -> None:
    """Few distinct vectors, huge ones, and ones far from the origin have centers that are numbers."""
    rng = np.random.default_rng(2)
    few = np.repeat(rng.standard_normal((7, 8)), 100, axis=0)
    for vectors in (few, few * 1e18, few + 1e6, np.zeros((700, 8))):
        for kind in (np.float32, np.float64):
            centers = cluster(vectors.astype(kind), count, "l2", np.random.default_rng(1), balanced=True)
            assert centers.shape == (count, 8)
            assert np.isfinite(centers).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_overflow() -> None:
    """Squares that overflow leave vectors in many clusters, and centers stay finite where sums overflow."""
    vectors = (np.random.default_rng(0).standard_normal((3000, 8)) * 1e19).astype(np.float32)
    centers = cluster(vectors, 30, "l2", np.random.default_rng(1), balanced=True)
    assert np.bincount(assigned(vectors, centers, "l2")[0]).max() < 1000
    for metric in ("l2", "dot"):
        huge = np.random.default_rng(0).standard_normal((3000, 8)).clip(-1, 1) * np.finfo(np.float64).max
        assert np.isfinite(cluster(huge, 30, metric, np.random.default_rng(1), balanced=True)).all()
