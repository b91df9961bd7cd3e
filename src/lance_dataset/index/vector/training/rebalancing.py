"""Partitions that became too large are split, and those that became too small are joined with others."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.vector.training.clustering import assigned, cluster

__all__ = ["are_unbalanced", "rebalanced"]

#: A partition of more than so many times the wanted rows is split; one of less than one in so many is joined.
_LARGE, _SMALL = 4, 4
#: Vectors of the sample for a new partition.
_SAMPLE_RATE = 256
#: Rounds of joins, of which each leaves at most half of the small partitions.
_MOST_ROUNDS: Final = 64


def are_unbalanced(sizes: NDArray[np.integer[Any]] | NDArray[np.floating[Any]], wanted: int) -> bool:
    """Return True if a partition should be split or joined, as the reference has it.

    Parameters
    ----------
    sizes : [partitions]
        Numbers of vectors of partitions.
    wanted
        Wanted number of vectors of a partition.
    """
    if not len(sizes):
        return False
    is_small = len(sizes) > 1 and int(sizes.min()) * _SMALL < wanted
    return is_small or int(sizes.max()) > _LARGE * wanted


def rebalanced(
    centroids: NDArray[Any],
    sample: NDArray[Any],
    count: int,
    wanted: int,
    metric: str,
    rng: np.random.Generator,
    iterations: int,
) -> NDArray[Any]:
    """Return centroids of partitions of about equal sizes: other than the old ones only where sizes differ much.

    The vectors of a small partition go to the nearest of the others, and those of a large one are clustered.

    Parameters
    ----------
    centroids : float or uint8 [partitions, dimension]
    sample : float or uint8 [n, dimension]
        Vectors drawn at random from all of them, of unit length for the metric cosine.
    count
        Number of all vectors.
    wanted
        Wanted number of vectors of a partition.
    metric
        Metric of the index.
    rng
        Draws the first centroids.
    iterations
        Maximum number of iterations of the clustering.

    Returns
    -------
    float or uint8 [partitions, dimension]
    """
    if not len(sample):
        return centroids
    scale = count / len(sample)
    return _joined(_split(centroids, sample, scale, wanted, metric, rng, iterations), sample, scale, wanted, metric)


def _split(
    centroids: NDArray[Any],
    sample: NDArray[Any],
    scale: float,
    wanted: int,
    metric: str,
    rng: np.random.Generator,
    iterations: int,
) -> NDArray[Any]:
    """Return the centroids with those of several clusters in the place of each large partition."""
    places = assigned(sample, centroids, metric)[0]
    sizes = np.bincount(places, minlength=len(centroids)) * scale
    large = sizes > _LARGE * wanted
    found = [centroids[~large]]
    for number in np.flatnonzero(large).tolist():
        members = sample[places == number]
        parts = min(-(-int(sizes[number]) // wanted), len(members))
        if len(members) > parts * _SAMPLE_RATE:
            members = members[np.sort(rng.choice(len(members), parts * _SAMPLE_RATE, replace=False))]
        clusters = cluster(members, parts, metric, rng, iterations, balanced=True)
        if metric == "dot":  # as long as the old one, or they would have no vectors
            clusters = clusters * np.linalg.norm(centroids[number].astype(np.float64))
        found.append(clusters.astype(centroids.dtype))
    return np.concatenate(found)


def _joined(centroids: NDArray[Any], sample: NDArray[Any], scale: float, wanted: int, metric: str) -> NDArray[Any]:
    """Return the centroids without those of small partitions. The smallest go first, since others grow meanwhile."""
    for _ in range(_MOST_ROUNDS):
        sizes = np.bincount(assigned(sample, centroids, metric)[0], minlength=len(centroids)) * scale
        small = np.flatnonzero(sizes * _SMALL < wanted)
        if not len(small) or len(centroids) == 1:
            break
        order = small[np.argsort(sizes[small], kind="stable")]
        gone = order[: min(-(-len(order) // 2), len(centroids) - 1)]
        centroids = np.delete(centroids, gone, axis=0)
    return centroids
