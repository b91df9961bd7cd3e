"""Distances between vectors, computed by PyTorch on any device."""

from __future__ import annotations

from collections.abc import Callable

import torch

from lance_dataset.errors import InvalidInputError

__all__ = ["argmin_l2", "cosine_distance", "dot_distance", "l2_distance", "pairwise_cosine", "pairwise_l2"]

#: Distances that are in memory at a time.
_BLOCK = 1 << 24


def pairwise_l2(x: torch.Tensor, y: torch.Tensor, y2: torch.Tensor | None = None) -> torch.Tensor:
    """Return the squared Euclidean distances between all pairs of vectors.

    Parameters
    ----------
    x, y
        Vectors of shape ``[M, D]`` and ``[N, D]``, of one dtype.
    y2
        Squared norms of `y`, of shape ``[N]``, if they are known. They save a little time, but the distances of vectors
        far from the origin then lose digits.

    Returns
    -------
    torch.Tensor
        Distances of shape ``[M, N]``.

    Raises
    ------
    InvalidInputError
        The arguments are not matrices of one dtype with vectors of one length.
    """
    _check("pairwise_l2", x, y)
    if y2 is None and y.is_floating_point():
        # Differences of large numbers would lose digits, so vectors are compared relative to the middle of `y`.
        middle = y.nan_to_num(0, 0, 0).mean(dim=0)
        x, y = x - middle, y - middle
    norms = (y * y).sum(dim=1) if y2 is None else y2
    return ((x * x).sum(dim=1, keepdim=True) + norms - 2 * (x @ y.T)).clamp_min(0)


def pairwise_cosine(x: torch.Tensor, y: torch.Tensor, *, y2: torch.Tensor | None = None) -> torch.Tensor:
    """Return the cosine distances between all pairs of vectors: 1 minus the cosine, NaN for vectors of length 0.

    Parameters
    ----------
    x, y
        Vectors of shape ``[M, D]`` and ``[N, D]``, of one dtype.
    y2
        Norms of `y`, of shape ``[N]``, if they are known.

    Returns
    -------
    torch.Tensor
        Distances of shape ``[M, N]``.

    Raises
    ------
    InvalidInputError
        The arguments are not matrices of one floating dtype with vectors of one length.
    """
    _check("pairwise_cosine", x, y)
    if not x.is_floating_point():
        raise InvalidInputError(f"pairwise_cosine needs vectors of floating point, not {x.dtype}")
    norms = torch.linalg.vector_norm(y, dim=1) if y2 is None else y2
    return 1 - (x @ y.T) / (torch.linalg.vector_norm(x, dim=1, keepdim=True) * norms)


def cosine_distance(vectors: torch.Tensor, centroids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nearest centroid of each vector, by cosine distance, and its distance.

    Parameters
    ----------
    vectors, centroids
        Vectors of shape ``[N, D]`` and ``[M, D]``, of one dtype.

    Returns
    -------
    ids : torch.Tensor
        Numbers of centroids, int64 of shape ``[N]``; -1 for vectors that have a distance to none.
    distances : torch.Tensor
        Distances of shape ``[N]``, NaN where the id is -1.

    Raises
    ------
    InvalidInputError
        As for `pairwise_cosine`.
    """
    return _nearest("cosine_distance", pairwise_cosine, vectors, centroids)


def l2_distance(
    vectors: torch.Tensor, centroids: torch.Tensor, y2: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nearest centroid of each vector, by squared Euclidean distance, and its distance.

    Parameters
    ----------
    vectors, centroids
        Vectors of shape ``[N, D]`` and ``[M, D]``, of one dtype.
    y2
        Squared norms of the centroids, if they are known.

    Returns
    -------
    ids : torch.Tensor
        Numbers of centroids, int64 of shape ``[N]``; -1 for vectors that have a distance to none.
    distances : torch.Tensor
        Distances of shape ``[N]``, NaN where the id is -1.

    Raises
    ------
    InvalidInputError
        As for `pairwise_l2`.
    """
    return _nearest("l2_distance", lambda x, y: pairwise_l2(x, y, y2), vectors, centroids)


def dot_distance(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nearest centroid of each vector, by 1 minus the dot product, and its distance.

    Parameters
    ----------
    x, y
        Vectors of shape ``[N, D]`` and centroids of shape ``[M, D]``, of one dtype.

    Returns
    -------
    ids : torch.Tensor
        Numbers of centroids, int64 of shape ``[N]``; -1 for vectors that have a distance to none.
    distances : torch.Tensor
        Distances of shape ``[N]``, NaN where the id is -1.

    Raises
    ------
    InvalidInputError
        As for `pairwise_l2`.
    """
    return _nearest("dot_distance", lambda vectors, centroids: 1 - vectors @ centroids.T, x, y)


def argmin_l2(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the squared Euclidean distance of each vector to the nearest one of others, and the number of that.

    Parameters
    ----------
    x, y
        Vectors of shape ``[M, D]`` and ``[N, D]``, of one dtype.

    Returns
    -------
    distances, ids : torch.Tensor
        Of shape ``[M, 1]``, the ids int64.

    Raises
    ------
    InvalidInputError
        As for `pairwise_l2`.
    """
    ids, distances = l2_distance(x, y)
    return distances[:, None], ids[:, None]


def _check(name: str, x: torch.Tensor, y: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
        raise InvalidInputError(f"{name} needs tensors, not {type(x).__name__} and {type(y).__name__}")
    if x.dim() != 2 or y.dim() != 2:
        raise InvalidInputError(f"x and y must be 2-D matrix, got: x.shape={x.shape}, y.shape={y.shape}")
    if x.dtype != y.dtype:
        raise InvalidInputError(f"{name} data types do not match: {x.dtype} and {y.dtype}")
    if x.shape[1] != y.shape[1]:
        raise InvalidInputError(f"{name} has vectors of {x.shape[1]} and of {y.shape[1]} values")


def _nearest(
    name: str,
    distances: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    vectors: torch.Tensor,
    centroids: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nearest centroid of each vector and its distance, in blocks of vectors."""
    _check(name, vectors, centroids)
    if not len(centroids):
        raise InvalidInputError(f"{name} needs at least one centroid")
    ids, found = [], []
    for block in vectors.split(max(1, _BLOCK // len(centroids))):
        near = distances(block, centroids)
        if near.is_floating_point():
            unknown = near.isnan()
            least, index = near.masked_fill(unknown, torch.inf).min(dim=1)
            nowhere = unknown.all(dim=1)
            ids.append(index.masked_fill(nowhere, -1))
            found.append(least.masked_fill(nowhere, torch.nan))
        else:
            least, index = near.min(dim=1)
            ids.append(index)
            found.append(least)
    return torch.cat(ids), torch.cat(found)
