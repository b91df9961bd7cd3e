"""Clustering of vectors on a device of PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.vector.training.clustering import BALANCE, EARLY_BALANCE, EARLY_TOLERANCE, TOLERANCE, cluster

if TYPE_CHECKING:
    import torch

__all__ = ["Clustering", "clustering_on", "device_of"]

#: Finds clusters of vectors, see `cluster`.
Clustering: TypeAlias = Callable[..., NDArray[Any]]
_KINDS = ("cuda", "mps")
#: Scores of vectors and clusters that are computed together.
_SCORES = 1 << 24


def device_of(accelerator: object) -> torch.device | None:
    """Return the device that a user names; None for processors.

    Parameters
    ----------
    accelerator
        ``cuda``, ``mps``, a `torch.device`, or None.

    Raises
    ------
    InvalidInputError
        It is something else.
    UnsupportedError
        PyTorch is not installed, or has no such device.
    """
    if accelerator is None:
        return None
    loaded = sys.modules.get("torch")
    if not (isinstance(accelerator, str) and accelerator in _KINDS) and (
        loaded is None or not isinstance(accelerator, loaded.device)
    ):
        raise InvalidInputError(f"accelerator must be 'cuda', 'mps' or a torch.device, not {accelerator!r}")
    try:
        import torch
    except ImportError:
        raise UnsupportedError(
            f"accelerator {accelerator!r} needs PyTorch, which is not installed; leave it out to train on processors"
        ) from None
    device = torch.device(accelerator) if isinstance(accelerator, str) else cast("torch.device", accelerator)
    is_there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if device.type not in is_there or not is_there[device.type]():
        raise UnsupportedError(
            f"PyTorch has no device {str(device)!r} on this machine; leave out accelerator to train on processors"
        )
    return device


def clustering_on(device: torch.device | None) -> Clustering:
    """Return what finds clusters on a device, with the parameters of `cluster`; `cluster` itself for None."""
    if device is None:
        return cluster

    def clustering(
        vectors: NDArray[Any],
        count: int,
        metric: str,
        rng: np.random.Generator,
        max_iterations: int = 50,
        tolerance: float = TOLERANCE,
        *,
        balanced: bool = False,
    ) -> NDArray[Any]:
        if metric == "hamming":
            raise UnsupportedError("vectors of bits are clustered on processors only; leave out accelerator")
        return _clustered(vectors, count, metric, rng, max_iterations, tolerance, device, balanced=balanced)

    return clustering


def _clustered(
    vectors: NDArray[Any],
    count: int,
    metric: str,
    rng: np.random.Generator,
    max_iterations: int,
    tolerance: float,
    device: torch.device,
    *,
    balanced: bool,
) -> NDArray[Any]:
    """Return centroids by the iterations of Lloyd (1982) from vectors drawn at random.

    A cluster without vectors takes one of those that are farthest from their centroids.
    """
    import torch

    # Differences of large numbers would lose digits, so vectors are compared relative to their middle.
    middle = vectors.mean(axis=0, dtype=np.float64) if metric == "l2" else np.zeros(1)
    data = torch.from_numpy((vectors - middle).astype(np.float32)).to(device)
    drawn = np.sort(rng.choice(len(vectors), count, replace=False))
    centroids = _unit(data[torch.from_numpy(drawn).to(device)], metric)
    last = np.inf
    penalties = torch.zeros(count, device=device)
    balance = EARLY_BALANCE if balanced else 0.0
    for _ in range(max_iterations):
        sums, sizes, distances = _assigned(data, centroids, metric, penalties)
        centroids = torch.where(sizes[:, None] > 0, sums / sizes.clamp(min=1)[:, None], centroids)
        empty = torch.nonzero(sizes == 0).flatten()
        if len(empty):
            far = torch.topk(distances, len(empty)).indices
            centroids[empty] = data[far]
        centroids = _unit(centroids, metric)
        loss = float(distances.sum(dtype=torch.float32 if device.type == "mps" else torch.float64))
        change = abs(last - loss)
        if change <= tolerance * abs(loss) and balance <= BALANCE:
            break
        if change <= EARLY_TOLERANCE * abs(loss):  # centers are spread
            balance = min(balance, BALANCE)
        distance = loss / len(data) - float((penalties * sizes).sum()) / len(data)
        penalties = (penalties + balance * distance * sizes * (count / len(data))) / 2
        last = loss
    found: NDArray[Any] = centroids.cpu().numpy() + middle
    return found if vectors.dtype == np.float64 else found.astype(np.float32)


def _assigned(
    data: torch.Tensor, centroids: torch.Tensor, metric: str, penalties: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return sums and numbers of the vectors of each centroid, and the distances of all vectors, with penalties."""
    import torch

    by_length = metric != "dot"
    biases = (centroids * centroids).sum(1) / -2 if by_length else torch.zeros_like(centroids[:, 0])
    biases = biases - penalties / (2 if by_length else 1)
    sums, sizes = torch.zeros_like(centroids), torch.zeros_like(biases)
    distances = []
    for block in data.split(max(_SCORES // len(centroids), 1)):
        scores, places = (block @ centroids.T + biases).max(1)
        sums.index_add_(0, places, block)
        sizes.index_add_(0, places, torch.ones_like(scores))
        squares = (block * block).sum(1)
        distances.append((squares - 2 * scores).clamp(min=0) if by_length else 1 - scores)
    return sums, sizes, torch.cat(distances)


def _unit(centroids: torch.Tensor, metric: str) -> torch.Tensor:
    if metric != "dot":
        return centroids
    lengths = (centroids * centroids).sum(1, keepdim=True).sqrt()
    return centroids / lengths.clamp(min=1e-30)
