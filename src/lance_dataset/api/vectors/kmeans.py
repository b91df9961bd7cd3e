"""K-means clustering of vectors in memory."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.index.vector.training.clustering import assigned, cluster, converged

__all__ = ["KMeans"]

_METRICS = ("l2", "cosine", "dot")

#: Vectors as arrays of float32.
Vectors: TypeAlias = "pa.FixedSizeListArray | pa.FixedShapeTensorArray | NDArray[np.float32]"


class KMeans:
    """Clusters of vectors of float32.

    Parameters
    ----------
    k
        Number of clusters.
    metric_type
        ``l2`` (``euclidean``), ``cosine`` or ``dot``. For cosine, vectors get unit length first.
    max_iters
        Maximum number of iterations.
    centroids
        Centroids to begin with, at least `k`; None to draw them.

    Attributes
    ----------
    k : int

    Raises
    ------
    ValueError
        The metric is unknown.
    """

    def __init__(
        self,
        k: int,
        metric_type: str = "l2",
        max_iters: int = 50,
        centroids: pa.FixedSizeListArray | pa.FixedShapeTensorArray | None = None,
    ) -> None:
        metric = {"euclidean": "l2"}.get(metric_type.lower(), metric_type.lower())
        if metric not in _METRICS:
            raise InvalidInputError(f"Invalid metric_type: {metric_type}")
        self.k = checked_integer("k", k, bits=31)
        self._metric, self._iterations = metric, checked_integer("max_iters", max_iters, bits=31)
        self._centroids: NDArray[np.float32] | None = None
        if centroids is not None:
            if not isinstance(centroids, pa.Array):
                raise TypeError(f"centroids must be an Arrow array, not {type(centroids).__name__}")
            self._centroids = self._unit(_matrix(centroids))[: self.k]
            self._check_enough(self._centroids)
        self._given = self._centroids

    def __repr__(self) -> str:
        return f"lance.KMeans(k={self.k}, metric_type={self._metric})"

    @property
    def centroids(self) -> pa.FixedShapeTensorArray | None:
        """Centroids; None before the training."""
        if self._centroids is None:
            return None
        return pa.FixedShapeTensorArray.from_numpy_ndarray(self._centroids)

    def fit(self, data: Vectors) -> None:
        """Train the centroids.

        Parameters
        ----------
        data
            Vectors of float32: array ``[n, dimension]``, fixed-size lists, or tensors of one dimension.

        Raises
        ------
        ValueError
            The vectors are of another type or shape.
        RuntimeError
            There are fewer vectors than clusters (a `SchemaError`).
        """
        vectors = self._unit(_matrix(data))
        self._check_enough(vectors)
        if self._given is not None:
            self._check_dimension(vectors)
            self._centroids = converged(vectors, self._given, self._metric, self._iterations)
        elif self.k:
            self._centroids = cluster(vectors, self.k, self._metric, np.random.default_rng(), self._iterations)
        else:
            self._centroids = vectors[:0]

    def predict(self, data: Vectors) -> pa.UInt32Array:
        """Return the number of the nearest centroid of each vector; null if it has values that are not finite.

        Parameters
        ----------
        data
            See `fit`.

        Raises
        ------
        ValueError
            The vectors are of another type or shape.
        RuntimeError
            There are no centroids yet (a `SchemaError`).
        """
        if self._centroids is None or not len(self._centroids):
            raise SchemaError("KMeans must fit (train) first")
        vectors = self._unit(_matrix(data))
        self._check_dimension(vectors)
        finite: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(vectors), axis=1)
        places = assigned(np.where(finite[:, None], vectors, 0), self._centroids, self._metric)[0]
        return pa.array(places.astype(np.uint32), mask=~finite)

    def _unit(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._metric != "cosine":
            return vectors
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
        return vectors / np.where(lengths > 0, lengths, np.float32(1))[:, None]

    def _check_enough(self, vectors: NDArray[np.float32]) -> None:
        if len(vectors) < self.k:
            raise SchemaError(
                f"KMeans: training does not have sufficient data points: n({len(vectors)}) is smaller than k({self.k})"
            )

    def _check_dimension(self, vectors: NDArray[np.float32]) -> None:
        centroids = self._centroids
        if centroids is not None and vectors.shape[1] != centroids.shape[1]:
            raise InvalidInputError(f"Dimension mismatch: kmean model {centroids.shape[1]} != data {vectors.shape[1]}")


def _matrix(data: Any) -> NDArray[np.float32]:
    """Return vectors as an array ``[n, dimension]``."""
    if isinstance(data, pa.FixedShapeTensorArray):
        data = data.to_numpy_ndarray()
    elif isinstance(data, pa.FixedSizeListArray):
        if data.null_count or data.flatten().null_count:
            raise InvalidInputError("vectors must not be null")
        data = np.asarray(data.flatten()).reshape(-1, data.type.list_size)
    elif not isinstance(data, np.ndarray):
        raise InvalidInputError("Data must be a FixedSizeListArray, Tensor or numpy array")
    if data.ndim != 2:
        raise InvalidInputError(f"Numpy array must be a 2-D array, got {data.ndim}-D")
    if data.dtype != np.float32:
        raise InvalidInputError(f"Numpy array must be float32 type, got: {data.dtype}")
    return data
