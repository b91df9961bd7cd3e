"""Tests of clusters of vectors, against products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from lancecodec.errors import CodecError
from lancecodec.search import clusters

PANEL = clusters.PANEL


def in_panels(centroids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return panels and the biases of squared distances."""
    count, dimension = centroids.shape
    padded = np.zeros((-(-count // PANEL) * PANEL, dimension), np.float32)
    padded[:count] = centroids
    biases = np.full(len(padded), -np.inf, np.float32)
    biases[:count] = (centroids.astype(np.float64) ** 2).sum(axis=1) / -2
    return np.ascontiguousarray(padded.reshape(-1, PANEL, dimension).transpose(0, 2, 1)), biases


@pytest.mark.parametrize("dimension", [1, 3, 8, 16, 100, 129])
@pytest.mark.parametrize("count", [1, 5, 16, 17, 256])
def test_nearest(dimension: int, count: int) -> None:
    rng = np.random.default_rng(dimension * count)
    for rows in (0, 1, 5, 6, 47, 48, 49, 200):
        vectors, centroids = (rng.standard_normal((n, dimension)).astype(np.float32) for n in (rows, count))
        found, scores = np.full(rows, -1, np.int32), np.zeros(rows, np.float32)
        clusters.nearest(vectors, dimension, *in_panels(centroids), found, scores)
        distances = ((vectors[:, None].astype(np.float64) - centroids) ** 2).sum(axis=2)
        chosen = distances[np.arange(rows), found]
        np.testing.assert_allclose(chosen, distances.min(axis=1, initial=np.inf), rtol=1e-4, atol=1e-5)
        squares = (vectors.astype(np.float64) ** 2).sum(axis=1)
        np.testing.assert_allclose(squares - 2 * scores, chosen, rtol=1e-3, atol=1e-4)


def test_the_first_of_equally_near_ones() -> None:
    centroids = np.zeros((40, 4), np.float32)
    centroids[[3, 21, 37]] = 1
    centroids[:3] = 5
    found, scores = np.empty(7, np.int32), np.empty(7, np.float32)
    clusters.nearest(np.ones((7, 4), np.float32), 4, *in_panels(centroids), found, scores)
    assert found.tolist() == [3] * 7
    assert scores.tolist() == [2] * 7


def test_no_score_is_a_number() -> None:
    panels, biases = in_panels(np.ones((20, 2), np.float32))
    vectors = np.array([[np.nan, 1], [-np.inf, 0], [1, 1]], np.float32)
    found, scores = np.empty(3, np.int32), np.empty(3, np.float32)
    clusters.nearest(vectors, 2, panels, biases, found, scores)
    assert found.tolist() == [0, 0, 0]
    assert scores.tolist() == [-np.inf, -np.inf, 1]


def test_any_address() -> None:
    rng = np.random.default_rng(0)
    vectors, (panels, biases) = rng.random((9, 3), np.float32), in_panels(rng.random((20, 3), np.float32))
    expected, scores = np.empty(9, np.int32), np.empty(9, np.float32)
    clusters.nearest(vectors, 3, panels, biases, expected, scores)

    def skewed(data: bytes) -> np.ndarray:
        return np.frombuffer(b"x" + data, np.uint8)[1:]

    found = np.empty(37, np.uint8)[1:]
    odd = [skewed(each.tobytes()) for each in (vectors, panels, biases)]
    clusters.nearest(odd[0], 3, odd[1], odd[2], found, np.empty(36, np.uint8))
    assert found.tobytes() == expected.tobytes()


def test_add_up() -> None:
    rng = np.random.default_rng(0)
    vectors, numbers = rng.random((500, 7), np.float32), rng.integers(0, 30, 500, np.int32)
    sums, sizes = np.ones((31, 7)), np.ones(31, np.int64)
    clusters.add_up(vectors, 7, numbers, 31, sums, sizes)
    assert sizes.tolist() == (1 + np.bincount(numbers, minlength=31)).tolist()
    expected = np.ones((31, 7))
    np.add.at(expected, numbers, vectors.astype(np.float64))
    np.testing.assert_allclose(sums, expected)


def test_refusals() -> None:
    vectors, (panels, biases) = np.zeros((4, 3), np.float32), in_panels(np.zeros((20, 3), np.float32))
    numbers, scores = np.zeros(4, np.int32), np.zeros(4, np.float32)
    good = [vectors, 3, panels, biases, numbers, scores]
    clusters.nearest(*good)  # type: ignore[arg-type]
    for place, wrong in [
        (0, vectors.tobytes()[:-1]),
        (1, 0),
        (1, -1),
        (1, 1 << 40),
        (1, 6),
        (2, panels[:1]),
        (3, biases[:5]),
        (3, biases[:0]),
        (4, numbers[:3]),
        (5, scores[:3]),
    ]:
        arguments = list(good)
        arguments[place] = wrong
        with pytest.raises(CodecError):
            clusters.nearest(*arguments)  # type: ignore[arg-type]
    sums, sizes = np.zeros((2, 3)), np.zeros(2, np.int64)
    for wrong_sums in (
        (vectors, 3, numbers + 2, 2, sums, sizes),
        (vectors, 3, numbers - 1, 2, sums, sizes),
        (vectors, 3, numbers, 0, sums, sizes),
        (vectors, 3, numbers, 3, sums, np.zeros(3, np.int64)),
        (vectors, 3, numbers, 3, np.zeros((3, 3)), sizes),
        (vectors, 3, numbers, -1, sums, sizes),
        (vectors, 3, numbers[:2], 2, sums, sizes),
        (vectors, 5, numbers, 2, sums, sizes),
    ):
        with pytest.raises(CodecError):
            clusters.add_up(*wrong_sums)
