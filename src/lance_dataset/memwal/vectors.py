"""Distances of the vectors of a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError

__all__ = ["distances_to"]


def distances_to(vectors: pa.FixedSizeListArray, query: NDArray[np.float32], metric: str) -> pa.Array:
    """Return the distance of each vector to another one, float32; null for vectors that are null or not finite.

    Raises
    ------
    UnsupportedError
        The metric is not one of numbers.
    """
    dimension = vectors.type.list_size
    start = vectors.offset * dimension
    values = vectors.values.slice(start, len(vectors) * dimension).fill_null(0)
    rows: NDArray[Any] = np.asarray(values.to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)
    if metric == "l2":
        difference = rows - query
        distances = np.einsum("ij,ij->i", difference, difference)
    elif metric == "dot":
        distances = np.float32(1) - rows @ query
    elif metric == "cosine":
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        with np.errstate(invalid="ignore", divide="ignore"):
            distances = np.float32(1) - (rows @ query) / lengths
    else:
        raise UnsupportedError(f"rows of shards cannot be searched by the metric {metric!r}; merge the shards first")
    bad = ~np.isfinite(distances)
    if vectors.null_count:
        bad |= vectors.is_null().to_numpy(zero_copy_only=False)
    return pa.array(distances.astype(np.float32), pa.float32(), mask=bad)
