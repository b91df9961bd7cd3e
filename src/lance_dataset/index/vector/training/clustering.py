"""Clustering of vectors: k-means, spherical k-means for the metric dot, k-modes for the metric hamming."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.threads.streams import map_parallel
from lancecodec.search.clusters import PANEL, add_up
from lancecodec.search.clusters import nearest as clusters_nearest

__all__ = ["BALANCE", "EARLY_BALANCE", "EARLY_TOLERANCE", "TOLERANCE", "assigned", "cluster", "converged"]

Floats: TypeAlias = NDArray[np.float32]
#: Finds the nearest centroids of a block of vectors; writes their numbers and scores.
_Nearest: TypeAlias = Callable[[NDArray[Any], NDArray[np.int32], Floats], None]
#: Numbers of a block of vectors.
_BLOCK_NUMBERS = 1 << 18
#: Products of numbers for which threads are worth it.
_PARALLEL_PRODUCTS = 1 << 24
TOLERANCE: Final = 1e-4
#: Tolerance of the iterations before those over all vectors and clusters.
EARLY_TOLERANCE: Final = 1e-3
#: The same for iterations over clusters that were found within clusters: those that follow change few vectors.
_CORRECTING_TOLERANCE = 5e-4
#: More clusters are found within clusters.
_FLAT_CLUSTERS = 256
#: Iterations over all clusters after that, for more clusters than the other number.
_CORRECTIONS, _CORRECTED_CLUSTERS = 2, 1024
#: Vectors for a cluster in the smallest part that is iterated over.
_LEAST_VECTORS = 16
_PERTURBATION = np.float32(1 / 1024)
#: Part of the way from the old center to the mean by which a center goes beyond the mean.
_RELAXATION = 1
#: Penalty of a cluster of average size, as a part of the average distance: in iterations over parts of the vectors,
#: which spread centers drawn at random, and over all.
EARLY_BALANCE: Final = 0.1
BALANCE: Final = 0.01
#: Change of a distance by a penalty, by metric: scores are products, or of bits.
_SCORES = {"l2": 0.5, "cosine": 0.5, "dot": 1.0, "hamming": 2.0}


def assigned(
    vectors: NDArray[Any], centroids: NDArray[Any], metric: str, penalties: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.int32], Floats]:
    """Return the nearest centroid of each vector, and the distance to it; the first of several nearest.

    Parameters
    ----------
    vectors : float or uint8 [n, dimension]
        Of unit length for the metric cosine.
    centroids : float or uint8 [clusters, dimension]
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``; cosine is compared like l2.
    penalties : float64[clusters]
        Are added to the distances; None for none.

    Returns
    -------
    clusters : int32[n]
    distances : float32[n]
        Squared lengths of differences, 1 minus products, or numbers of bits; with penalties.
    """
    n = len(vectors)
    near = _comparable(centroids, metric)
    by_length = metric in ("l2", "cosine")
    # Differences of large numbers would lose digits, so vectors are compared relative to the middle of the centroids.
    middle = near.mean(axis=0) if by_length else np.zeros(1, near.dtype)
    near = near - middle
    biases = np.einsum("cd,cd->c", near, near) / -2 if by_length else np.zeros(len(near), near.dtype)
    if penalties is not None:
        biases = (biases - _SCORES[metric] * penalties).astype(near.dtype)
    nearest = _nearest_in_panels(near, biases) if near.dtype == np.float32 else _nearest_by_products(near, biases)
    clusters, distances = np.empty(n, np.int32), np.empty(n, np.float32)

    def assign(start: int) -> None:
        block = _comparable(vectors[start : start + step], metric)
        if by_length:
            block = block - middle
        places, found = clusters[start : start + step], distances[start : start + step]
        nearest(np.ascontiguousarray(block), places, found)
        if metric == "dot":
            np.subtract(1, found, out=found)
        elif metric == "hamming":
            found[:] = (near.shape[1] - found) / 2
        else:
            squares = np.einsum("nd,nd->n", block, block)
            with np.errstate(over="ignore", invalid="ignore"):  # numbers whose squares overflow have no order
                found[:] = np.maximum(squares - 2 * found, 0)

    step = max(1, _BLOCK_NUMBERS // near.shape[1])
    map_parallel(assign, range(0, n, step), parallel=n * near.size > _PARALLEL_PRODUCTS)
    return clusters, distances


def _nearest_in_panels(centroids: Floats, biases: Floats) -> _Nearest:
    """Return what finds the nearest centroids of a block of vectors, and their scores."""
    count, dimension = centroids.shape
    padded = np.zeros((-(-count // PANEL) * PANEL, dimension), np.float32)
    padded[:count] = centroids
    panels = np.ascontiguousarray(padded.reshape(-1, PANEL, dimension).transpose(0, 2, 1))
    added = np.full(len(padded), -np.inf, np.float32)
    added[:count] = biases

    def nearest(block: NDArray[Any], clusters: NDArray[np.int32], scores: Floats) -> None:
        clusters_nearest(block.data, dimension, panels.data, added.data, clusters.data, scores.data)

    return nearest


def _nearest_by_products(centroids: NDArray[Any], biases: NDArray[Any]) -> _Nearest:
    """Return the same as `_nearest_in_panels` for 64-bit floats."""

    def nearest(block: NDArray[Any], clusters: NDArray[np.int32], scores: Floats) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            products = block @ centroids.T + biases
        clusters[:] = products.argmax(axis=1)
        scores[:] = products[np.arange(len(block)), clusters]

    return nearest


def cluster(
    vectors: NDArray[Any],
    count: int,
    metric: str,
    rng: np.random.Generator,
    max_iterations: int = 50,
    tolerance: float = TOLERANCE,
    *,
    balanced: bool = False,
) -> NDArray[Any]:
    """Return the centroids of clusters.

    The algorithm is that of Lloyd (Least squares quantization in PCM, 1982), from vectors drawn at random. Its first
    iterations take a part of the vectors, the last ones all. A cluster without vectors takes a part of the largest one.
    Many clusters are found within clusters of the vectors (hierarchical k-means: Nister and Stewenius, Scalable
    recognition with a vocabulary tree, 2006), and some iterations over all of them correct what the bounds between
    those hide.

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
        Maximum number of iterations over each part.
    tolerance
        Relative change of the sum of distances below which no iteration follows.
    balanced
        True for clusters of similar sizes, see `converged`: fewer vectors are then in the clusters near to a query.

    Returns
    -------
    float32, float64 or uint8 [count, dimension]
        Of float64 for vectors of float64.
    """
    if metric != "hamming":
        vectors = _comparable(vectors, metric)
    if count <= _FLAT_CLUSTERS:
        return _clustered(vectors, count, metric, rng, max_iterations, tolerance, balanced=balanced)
    early = max(tolerance, EARLY_TOLERANCE)
    coarse = _clustered(vectors, math.isqrt(count), metric, rng, max_iterations, early, balanced=balanced)
    members = assigned(vectors, coarse, metric)[0]
    order = np.argsort(members, kind="stable")
    sizes = np.bincount(members, minlength=len(coarse))
    found, start = [], 0
    for size, share in zip(sizes.tolist(), _shares(sizes, count).tolist(), strict=True):
        if share:
            some = vectors[order[start : start + size]]
            found.append(_clustered(some, share, metric, rng, max_iterations, early, balanced=balanced))
        start += size
    corrections = min(max_iterations, _CORRECTIONS) if count > _CORRECTED_CLUSTERS else max_iterations
    wanted = max(tolerance, _CORRECTING_TOLERANCE)
    balance = BALANCE if balanced else 0
    return converged(vectors, np.concatenate(found), metric, corrections, wanted, balance=balance)


def _shares(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Distribute a number in proportion to sizes, by largest remainders; no share is above its size."""
    exact = sizes * (count / sizes.sum())
    shares = np.minimum(exact.astype(np.int64), sizes)
    while (left := count - int(shares.sum())) > 0:
        remainders = np.where(shares < sizes, exact - shares, -np.inf)
        some = np.argsort(-remainders, kind="stable")[: min(left, int((shares < sizes).sum()))]
        shares[some] += 1
    return shares


def _clustered(
    vectors: NDArray[Any],
    count: int,
    metric: str,
    rng: np.random.Generator,
    max_iterations: int,
    tolerance: float,
    *,
    balanced: bool,
) -> NDArray[Any]:
    order = rng.permutation(len(vectors))
    centroids = vectors[np.sort(order[:count])].copy()
    if metric == "dot":
        centroids = _unit(centroids)
    for size in _stages(len(vectors), count):
        is_last = size == len(vectors)
        some = vectors if is_last else vectors[np.sort(order[:size])]
        wanted = tolerance if is_last else max(tolerance, EARLY_TOLERANCE)
        balance = 0 if not balanced else BALANCE if is_last else EARLY_BALANCE
        centroids = converged(some, centroids, metric, max_iterations, wanted, balance=balance)
    return centroids


def _stages(n: int, count: int) -> list[int]:
    """Return numbers of vectors to iterate over, ascending: most iterations need a part of them only."""
    sizes = [n]
    while sizes[-1] // 4 >= _LEAST_VECTORS * count:
        sizes.append(sizes[-1] // 4)
    return sizes[::-1]


def converged(
    vectors: NDArray[Any],
    centroids: NDArray[Any],
    metric: str,
    max_iterations: int,
    tolerance: float = TOLERANCE,
    *,
    balance: float = 0,
) -> NDArray[Any]:
    """Return centroids after iterations from given ones.

    Euclidean centers go beyond the means of their vectors, and back to them in the last iteration or after one that
    made the sum of distances larger: over-relaxation of Lloyd's iteration, which needs about half as many of them.

    With a balance, distances to large clusters count as longer (after frequency sensitive competitive learning:
    Banerjee and Ghosh, 2004). Centers that are each in one of many more natural clusters, with one for all others, are
    thus spread. A strong balance together with over-relaxation would swing.

    Parameters
    ----------
    vectors : float or uint8 [n, dimension]
    centroids : float or uint8 [clusters, dimension]
    metric
        See `assigned`.
    max_iterations, tolerance
        See `cluster`.
    balance
        Penalty of a cluster of average size, as a part of the average distance; that of others is in proportion.
    """
    last = np.inf
    penalties = np.zeros(len(centroids)) if balance else None
    for iteration in range(1, max_iterations + 1):
        clusters, distances = assigned(vectors, centroids, metric, penalties)
        means = _centers(vectors, clusters, centroids, metric)
        loss = float(distances.sum(dtype=np.float64))
        if iteration == max_iterations or abs(last - loss) <= tolerance * abs(loss):
            return means
        relaxed = metric in ("l2", "cosine") and loss < last and balance < EARLY_BALANCE
        centroids = _beyond(means, centroids) if relaxed else means
        if penalties is not None and math.isfinite(loss):
            distance = loss / len(vectors) - penalties[clusters].mean()
            sizes = np.bincount(clusters, minlength=len(penalties)) * (len(penalties) / len(vectors))
            penalties = (penalties + balance * distance * sizes) / 2
        last = loss
    return centroids


def _beyond(means: NDArray[Any], old: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        found = means + _RELAXATION * (means - old)
    return np.where(np.isfinite(found), found, means)


def _centers(vectors: NDArray[Any], clusters: NDArray[np.int32], old: NDArray[Any], metric: str) -> NDArray[Any]:
    sums, sizes = _sums(vectors, clusters, len(old), metric)
    filled = np.flatnonzero(sizes)
    centers = old.copy()
    if metric == "hamming":
        centers[filled] = np.packbits(2 * sums[filled] > sizes[filled, None], axis=1)
    else:
        means = sums[filled] / sizes[filled, None]
        centers[filled] = np.where(np.isfinite(means), means, old[filled])  # sums of float64 may overflow
    _fill(centers, sizes, vectors, clusters, metric)
    return _unit(centers) if metric == "dot" else centers


def _sums(
    vectors: NDArray[Any], clusters: NDArray[np.int32], count: int, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the sums of the vectors of each cluster (of bits for the metric hamming), and their numbers."""
    dimension = vectors.shape[1] * (8 if metric == "hamming" else 1)
    sums, sizes = np.zeros((count, dimension)), np.zeros(count, np.int64)
    if vectors.dtype == np.float64:
        np.add.at(sums, clusters, vectors)
        return sums, np.bincount(clusters, minlength=count)
    step = max(1, _BLOCK_NUMBERS // dimension)
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step]
        block = np.unpackbits(block, axis=1).astype(np.float32) if metric == "hamming" else block
        mine = clusters[start : start + step]
        add_up(np.ascontiguousarray(block).data, dimension, mine.data, count, sums.data, sizes.data)
    return sums, sizes


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
            center = centers[donor].copy()
            for copy, factors in ((place, 1 + signs), (donor, 1 - signs)):
                with np.errstate(over="ignore"):
                    moved = center * factors
                centers[copy] = np.where(np.isfinite(moved), moved, center)
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
