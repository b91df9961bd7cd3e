"""Clusters of vectors, trained by PyTorch on any device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.torch import preferred_device
from lance_dataset.torch.distance import cosine_distance, dot_distance, l2_distance
from lance_dataset.torch.tensors import to_tensor

__all__ = ["KMeans"]

#: Vectors in one piece.
Vectors: TypeAlias = "torch.Tensor | NDArray[Any] | pa.FixedSizeListArray"


class KMeans:
    """K-means clustering (Lloyd's algorithm).

    Parameters
    ----------
    k
        Number of clusters, at least 1.
    metric
        ``l2`` (or ``euclidean``), ``cosine`` or ``dot``. Centroids of ``cosine`` have length 1.
    init
        ``random``: vectors chosen at random are the first centroids.
    max_iters
        Most passes over the vectors.
    tolerance
        Training ends when no cluster is empty and the sum of distances changes by a smaller part than this.
    centroids
        First centroids, of shape ``[k, D]``. `transform` works with them at once.
    seed
        Seed of the random choice.
    device
        Device to compute on; see `lance_dataset.torch.preferred_device`.

    Attributes
    ----------
    centroids : torch.Tensor or None
        Centroids of shape ``[k, D]``, once there are some.
    total_distance : float
        Sum of the distances of the vectors to their centroids in the last pass of the training.

    Raises
    ------
    InvalidInputError
        An argument is out of range.
    """

    def __init__(
        self,
        k: int,
        *,
        metric: Literal["l2", "euclidean", "dot", "cosine"] = "l2",
        init: Literal["random"] = "random",
        max_iters: int = 50,
        tolerance: float = 1e-4,
        centroids: torch.Tensor | None = None,
        seed: int | None = None,
        device: str | None = None,
    ) -> None:
        if k < 1:
            raise InvalidInputError(f"the number of clusters must be at least 1, not {k}")
        if metric.lower() not in _METRICS:
            raise InvalidInputError(f"Invalid metric_type: {metric}; use one of {', '.join(_METRICS)}")
        if init != "random":
            raise InvalidInputError(f"init must be 'random', not {init!r}")
        if max_iters < 1:
            raise InvalidInputError(f"max_iters must be at least 1, not {max_iters}")
        if centroids is not None and (centroids.dim() != 2 or len(centroids) != k):
            raise InvalidInputError(f"centroids must have the shape [{k}, D], not {list(centroids.shape)}")
        self.k = k
        self.metric = metric.lower()
        self.init = init
        self.max_iters = max_iters
        self.tolerance = tolerance
        self.seed = seed
        self.device = preferred_device(device)
        self.total_distance = 0.0
        self.centroids: torch.Tensor | None = None
        self.y2: torch.Tensor | None = None
        if centroids is not None:
            self._set(centroids.to(self.device))

    def __repr__(self) -> str:
        return f"KMeans(k={self.k}, metric={self.metric}, device={self.device})"

    def fit(self, data: Iterable[Any] | Vectors, column: str | None = None) -> None:
        """Train the centroids, starting from those that there are.

        Parameters
        ----------
        data
            Vectors: a matrix of shape ``[N, D]`` (tensor or array), an Arrow array of fixed-size lists, or something
            that can be iterated over several times and has batches of vectors, such as a dataset of this package. Rows
            with NaN belong to no cluster.
        column
            Name of the vectors in batches that are dictionaries.

        Raises
        ------
        InvalidInputError
            There are fewer vectors than clusters, or vectors of different lengths.
        TypeError
            `data` has no vectors.
        """
        batches = _Batches(data, column, self.device)
        if self.centroids is None:
            self._set(self._chosen(batches))
        before = torch.inf
        for _ in range(self.max_iters):
            self.total_distance, is_filled = self._pass(batches)
            if not is_filled:
                before = torch.inf
                continue
            is_first = before == torch.inf
            if not self.total_distance or (
                not is_first and abs(before - self.total_distance) <= self.tolerance * abs(before)
            ):
                break
            before = self.total_distance

    def transform(self, data: Vectors) -> torch.Tensor:
        """Return the number of the cluster of each vector, int64; -1 for vectors with NaN.

        Parameters
        ----------
        data
            Vectors, as a matrix of shape ``[N, D]`` or an Arrow array of fixed-size lists.

        Raises
        ------
        InvalidInputError
            The centroids are not trained, or the vectors have another length.
        """
        return self._assigned(_matrix(data).to(self.device))[0]

    def rebuild_index(self) -> None:
        """Compute again what is kept about the centroids, after they were changed in place."""
        if self.centroids is not None:
            self._set(self.centroids)

    def _set(self, centroids: torch.Tensor) -> None:
        if self.metric == "cosine":
            centroids = torch.nn.functional.normalize(centroids)
        self.centroids = centroids
        self.y2 = (centroids * centroids).sum(dim=1)

    def _assigned(self, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.centroids is None:
            raise InvalidInputError("the clusters are not trained; call fit first")
        return _METRICS[self.metric](vectors.to(self.centroids.dtype), self.centroids)

    def _chosen(self, batches: _Batches) -> torch.Tensor:
        """Return `k` vectors chosen at random (reservoir sampling, algorithm R, Vitter 1985)."""
        generator = torch.Generator().manual_seed(self.seed) if self.seed is not None else None
        chosen: torch.Tensor | None = None
        seen = 0
        for batch in batches:
            vectors = batch[~batch.isnan().any(dim=1)] if batch.is_floating_point() else batch.float()
            if chosen is None:
                chosen = vectors[:0]
            missing = self.k - len(chosen)
            chosen = torch.cat((chosen, vectors[:missing]))
            seen += min(missing, len(vectors))
            vectors = vectors[missing:]
            if len(vectors):
                highest = torch.arange(seen + 1, seen + 1 + len(vectors), dtype=torch.float64)
                places = (torch.rand(len(vectors), generator=generator, dtype=torch.float64) * highest).long()
                for row in (places < self.k).nonzero().flatten().tolist():
                    chosen[places[row]] = vectors[row]
                seen += len(vectors)
        if chosen is None or len(chosen) < self.k:
            raise InvalidInputError(f"{seen} vectors without NaN cannot make {self.k} clusters")
        return chosen

    def _pass(self, batches: _Batches) -> tuple[float, bool]:
        """Move the centroids to the means of their vectors.

        Returns
        -------
        total : float
            Sum of the distances before.
        is_filled : bool
            Whether every cluster had a vector.
        """
        assert self.centroids is not None
        sums = torch.zeros_like(self.centroids, dtype=torch.float32 if self.device.type == "mps" else torch.float64)
        counts = torch.zeros(self.k, dtype=torch.int64, device=self.device)
        total = 0.0
        for batch in batches:
            ids, distances = self._assigned(batch)
            known = ids >= 0
            ids, vectors = ids[known], batch[known]
            if self.metric == "cosine":
                vectors = torch.nn.functional.normalize(vectors.to(self.centroids.dtype))
            sums.index_add_(0, ids, vectors.to(sums.dtype))
            counts += torch.bincount(ids, minlength=self.k)
            total += float(distances[known].sum(dtype=sums.dtype))
        means = (sums / counts.clamp_min(1)[:, None]).to(self.centroids.dtype)
        self._set(torch.where(counts[:, None] > 0, means, self._split(means, counts)))
        return total, bool((counts > 0).all())

    def _split(self, means: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return centroids for empty clusters: those of the largest clusters, moved a little."""
        empty = (counts == 0).nonzero().flatten()
        found = means.clone()
        if len(empty):
            largest = counts.argsort(descending=True)[: len(empty)]
            found[empty[: len(largest)]] = means[largest] * (1 + 2**-10)
        return found


_METRICS: dict[str, Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "l2": l2_distance,
    "euclidean": l2_distance,
    "cosine": cosine_distance,
    "dot": dot_distance,
}


class _Batches:
    """Vectors that can be iterated over several times, in batches on a device."""

    def __init__(self, data: Any, column: str | None, device: torch.device) -> None:
        self._column, self._device = column, device
        is_matrix = isinstance(data, torch.Tensor | np.ndarray | pa.Array | pa.ChunkedArray)
        self._data: Iterable[Any] = [data] if is_matrix else data
        if not is_matrix and (isinstance(data, Iterator) or not hasattr(data, "__iter__")):
            raise TypeError(
                f"vectors must be a matrix, an Arrow array or repeatable batches, not {type(data).__name__}"
            )

    def __iter__(self) -> Iterator[torch.Tensor]:
        length: int | None = None
        for batch in self._data:
            vectors = _matrix(self._of_column(batch)).to(self._device)
            if length is not None and vectors.shape[1] != length:
                raise InvalidInputError(f"vectors of {length} and of {vectors.shape[1]} values cannot be clustered")
            length = vectors.shape[1]
            yield vectors

    def _of_column(self, batch: Any) -> Any:
        if isinstance(batch, pa.RecordBatch | pa.Table):
            batch = {name: batch[name] for name in batch.schema.names}
        if not isinstance(batch, dict):
            return batch
        name = self._column if self._column is not None or len(batch) != 1 else next(iter(batch))
        if name not in batch:
            raise InvalidInputError(f"batches have the columns {', '.join(batch)}; say which with column=")
        return batch[name]


def _matrix(data: Any) -> torch.Tensor:
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if isinstance(data, pa.Array):
        if not pa.types.is_fixed_size_list(data.type):
            raise TypeError(f"vectors must be fixed-size lists, not {data.type}")
        data = to_tensor({"vectors": data})
    elif isinstance(data, np.ndarray):
        data = torch.from_numpy(data if data.flags.writeable else data.copy())
    if not isinstance(data, torch.Tensor):
        raise TypeError(f"vectors must be a tensor, an array or an Arrow array, not {type(data).__name__}")
    if data.dim() != 2:
        raise InvalidInputError(f"vectors must be a matrix, not of the shape {list(data.shape)}")
    return data
