"""Exact neighbours and recall, for benchmarks of vector indices, computed by PyTorch on any device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from lance_dataset.dataset import LanceDataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError
from lance_dataset.torch import preferred_device
from lance_dataset.torch.distance import pairwise_cosine, pairwise_l2
from lance_dataset.torch.tensors import to_tensor

__all__ = ["ground_truth", "infer_vector_column", "recall", "sort_tensors"]

_METRICS = {"l2": pairwise_l2, "euclidean": pairwise_l2, "cosine": pairwise_cosine}


def sort_tensors(source: torch.Tensor, other: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the `k` least values of each row of a matrix, ascending, and what another matrix has in their places.

    Parameters
    ----------
    source, other
        Matrices of shape ``[M, N]``.
    k
        Number of values to keep.

    Raises
    ------
    InvalidInputError
        The shapes differ.
    """
    if source.shape != other.shape or source.dim() != 2:
        raise InvalidInputError(f"two matrices of one shape are needed, not {source.shape} and {other.shape}")
    least, places = source.sort(dim=1, stable=True)
    return least[:, :k], other.gather(1, places[:, :k])


def ground_truth(
    ds: LanceDataset,
    column: str,
    query: torch.Tensor | NDArray[Any],
    metric_type: str = "L2",
    k: int = 100,
    batch_size: int = 10240,
    device: str | None = None,
) -> torch.Tensor:
    """Return the row ids of the nearest vectors of each query, found by looking at all vectors.

    Parameters
    ----------
    ds, column
        The dataset, and its column of vectors.
    query
        Queries of shape ``[N, D]``.
    metric_type
        ``L2`` or ``cosine``.
    k
        Number of vectors to find.
    batch_size
        Number of rows to read at a time.
    device
        Device to compute on; see `lance_dataset.torch.preferred_device`.

    Returns
    -------
    torch.Tensor
        Row ids of shape ``[N, k]``, int64, nearest first; fewer columns if the dataset has fewer vectors.

    Raises
    ------
    InvalidInputError
        The metric is another one, or `k` is less than 1.
    FieldNotFoundError
        There is no such column.
    """
    distances = _METRICS.get(metric_type.lower())
    if distances is None:
        raise InvalidInputError(f"Unknown metric type: {metric_type}; use L2 or cosine")
    if k < 1:
        raise InvalidInputError(f"k must be at least 1, not {k}")
    if column not in ds.schema.names:
        raise FieldNotFoundError(f"there is no column {column!r} in the dataset")
    place = preferred_device(device)
    queries = torch.as_tensor(query)
    queries = queries.to(place, torch.promote_types(queries.dtype, torch.float32))
    best = torch.empty((len(queries), 0), dtype=queries.dtype, device=place)
    ids = torch.empty((len(queries), 0), dtype=torch.int64, device=place)
    filled = pc.field(column).is_valid()
    for batch in ds.to_batches(columns=[column], filter=filled, with_row_id=True, batch_size=batch_size):
        tensors = to_tensor(batch)
        assert isinstance(tensors, dict)
        near = distances(queries, tensors[column].to(place, queries.dtype))
        found = tensors["_rowid"].to(place).expand(len(queries), -1)
        best, ids = sort_tensors(torch.cat((best, near), dim=1), torch.cat((ids, found), dim=1), k)
    return ids


def recall(expected: NDArray[Any], actual: NDArray[Any]) -> NDArray[np.float64]:
    """Return which share of the expected ids was found, for each query.

    Parameters
    ----------
    expected, actual
        Ids of shape ``[N, k]``: the nearest vectors, and what an index found.

    Raises
    ------
    InvalidInputError
        The arguments have different numbers of queries, or no expected ids.
    """
    if len(expected) != len(actual) or not np.shape(expected)[1:] or not np.shape(expected)[1]:
        raise InvalidInputError(f"ids of the shapes {np.shape(expected)} and {np.shape(actual)} cannot be compared")
    shared = [len(np.intersect1d(*pair)) for pair in zip(expected, actual, strict=True)]
    return np.array(shared) / np.shape(expected)[1]


def infer_vector_column(ds: LanceDataset) -> str | None:
    """Return the first column of fixed-size lists of floating-point numbers, None if there is none."""
    for field in ds.schema:
        if pa.types.is_fixed_size_list(field.type) and pa.types.is_floating(field.type.value_type):
            return str(field.name)
    return None
