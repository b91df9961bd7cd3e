"""Clustering of vectors: k-means, spherical k-means for the metric dot, k-modes for the metric hamming."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["assigned", "cluster"]

Floats: TypeAlias = NDArray[np.float32]
#: Products computed together: they should stay in the cache of a processor.
_BLOCK_NUMBERS = 1 << 18
_TOLERANCE = 1e-3
#: Vectors for a cluster in the smallest part that is iterated over.
_LEAST_VECTORS = 16
_PERTURBATION = np.float32(1 / 1024)


def assigned(vectors: NDArray[Any], centroids: NDArray[Any], metric: str) -> tuple[NDArray[np.int32], Floats]:
    """Return the nearest centroid of each vector, and the distance to it; the first of several nearest.

    Parameters
    ----------
    vectors : float or uint8 [n, dimension]
        Of unit length for the metric cosine.
    centroids : float or uint8 [clusters, dimension]
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``; cosine is compared like l2.

    Returns
    -------
    clusters : int32[n]
    distances : float32[n]
        Squared lengths of differences, 1 minus products, or numbers of bits.
    """
    n = len(vectors)
    clusters, distances = np.empty(n, np.int32), np.empty(n, np.float32)
    near = _comparable(centroids, metric)
    by_length = metric in ("l2", "cosine")
    # Differences of large numbers would lose digits, so vectors are compared relative to the middle of the centroids.
    middle = near.mean(axis=0) if by_length else np.zeros(1, near.dtype)
    if by_length:  # one more element, whose product with 1 is minus half the squared length
        near = near - middle
        near = np.column_stack([near, np.einsum("cd,cd->c", near, near) / -2])
    step = max(1, _BLOCK_NUMBERS // max(near.shape))
    padded = np.ones((step, near.shape[1]), near.dtype)
    for start in range(0, n, step):
        block = _comparable(vectors[start : start + step], metric)
        if by_length:
            np.subtract(block, middle, out=padded[: len(block), :-1])
            block = padded[: len(block)]
        with np.errstate(over="ignore", invalid="ignore"):  # numbers whose squares overflow have no order
            products = block @ near.T
        best = products.argmax(axis=1)
        clusters[start : start + step] = best
        found = products[np.arange(len(block)), best]
        if metric == "dot":
            distances[start : start + step] = 1 - found
        elif metric == "hamming":
            distances[start : start + step] = (near.shape[1] - found) / 2
        else:
            squares = np.einsum("nd,nd->n", block[:, :-1], block[:, :-1])
            distances[start : start + step] = np.maximum(squares - 2 * found, 0)
    return clusters, distances


def cluster(
    vectors: NDArray[Any], count: int, metric: str, rng: np.random.Generator, max_iterations: int = 50
) -> NDArray[Any]:
    """Return the centroids of clusters.

    The algorithm is that of Lloyd (Least squares quantization in PCM, 1982), from vectors drawn at random. Its first
    iterations take a part of the vectors, the last ones all. A cluster without vectors takes a part of the largest one.

    Parameters
    ----------
    vectors : float or uint8 [n, dimension]
        The sample, of at least `count` vectors.
    count
        Number of clusters.
    metric
        See `assigned`.
    rng
        Draws the first centroids.
    max_iterations
        Maximum number of iterations over each part; fewer if the sum of distances changes by less than a thousandth.

    Returns
    -------
    float32, float64 or uint8 [count, dimension]
        Of float64 for vectors of float64.
    """
    if metric != "hamming":
        vectors = _comparable(vectors, metric)
    order = rng.permutation(len(vectors))
    centroids = vectors[np.sort(order[:count])].copy()
    if metric == "dot":
        centroids = _unit(centroids)
    for size in _stages(len(vectors), count):
        some = vectors if size == len(vectors) else vectors[np.sort(order[:size])]
        centroids = _converged(some, centroids, metric, max_iterations)
    return centroids


def _stages(n: int, count: int) -> list[int]:
    """Return numbers of vectors to iterate over, ascending: most iterations need a part of them only."""
    sizes = [n]
    while sizes[-1] // 4 >= _LEAST_VECTORS * count:
        sizes.append(sizes[-1] // 4)
    return sizes[::-1]


def _converged(vectors: NDArray[Any], centroids: NDArray[Any], metric: str, max_iterations: int) -> NDArray[Any]:
    last = np.inf
    for _ in range(max_iterations):
        clusters, distances = assigned(vectors, centroids, metric)
        centroids = _centers(vectors, clusters, centroids, metric)
        loss = float(distances.sum(dtype=np.float64))
        if abs(last - loss) <= _TOLERANCE * abs(loss):
            break
        last = loss
    return centroids


def _centers(vectors: NDArray[Any], clusters: NDArray[np.int32], old: NDArray[Any], metric: str) -> NDArray[Any]:
    sizes = np.bincount(clusters, minlength=len(old))
    narrow = clusters.astype(np.min_scalar_type(len(old) - 1), copy=False)  # few bytes are sorted fastest
    order = np.argsort(narrow, kind="stable")
    filled = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[filled]
    sorted_vectors = vectors[order]
    centers = old.copy()
    if metric == "hamming":
        for place, start in zip(filled.tolist(), starts.tolist(), strict=True):
            bits = np.unpackbits(sorted_vectors[start : start + sizes[place]], axis=1)
            centers[place] = np.packbits(2 * bits.sum(axis=0, dtype=np.int64) > sizes[place])
    else:
        centers[filled] = np.add.reduceat(sorted_vectors, starts, axis=0) / sizes[filled, None].astype(vectors.dtype)
    _fill(centers, sizes, vectors, clusters, metric)
    return _unit(centers) if metric == "dot" else centers


def _fill(
    centers: NDArray[Any], sizes: NDArray[np.int64], vectors: NDArray[Any], clusters: NDArray[np.int32], metric: str
) -> None:
    """Give each empty cluster a part of the largest one."""
    signs = np.where(np.arange(centers.shape[1]) % 2, -_PERTURBATION, _PERTURBATION)
    for place in np.flatnonzero(sizes == 0).tolist():
        donor = int(sizes.argmax())
        if metric == "hamming":
            members = np.flatnonzero(clusters == donor)
            centers[place] = vectors[members[place % len(members)]]
        else:
            centers[place] = centers[donor] * (1 + signs)
            centers[donor] *= 1 - signs
        sizes[place] = sizes[donor] // 2
        sizes[donor] -= sizes[place]


def _comparable(vectors: NDArray[Any], metric: str) -> NDArray[Any]:
    """Return floats whose products order vectors: bits as -1 and 1 for the metric hamming."""
    if metric != "hamming":
        return vectors.astype(np.float64 if vectors.dtype == np.float64 else np.float32, copy=False)
    return np.unpackbits(vectors, axis=1).astype(np.float32) * 2 - 1


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return vectors / np.where(lengths > 0, lengths, 1).astype(vectors.dtype)[:, None]
