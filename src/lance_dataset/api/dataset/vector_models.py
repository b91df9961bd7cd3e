"""Centroids of the vector indices of a dataset."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.api.vector_models import IvfModel
from lance_dataset.errors import IndexNotFoundError, InvalidInputError
from lance_dataset.index.segments import index_segments, segments_named
from lance_dataset.index.vector.contents import is_of_vectors, stored_segments
from lance_dataset.read.snapshot import Snapshot

__all__ = ["centroids_of", "ivf_model_of"]


def centroids_of(snapshot: Snapshot, index_name: str | None, column: str | None) -> pa.FixedSizeListArray:
    """Return the centroids of an index, given by its name or its column; see `Indexed.centroids`."""
    if index_name is None and column is None:
        raise InvalidInputError("Must provide 'index_name' or 'column'.")
    return ivf_model_of(snapshot, index_name if index_name is not None else _name_of(snapshot, column)).centroids


def ivf_model_of(snapshot: Snapshot, index_name: str) -> IvfModel:
    """Return centroids and metric of an index; see `Indexed.get_ivf_model`."""
    try:
        segments = segments_named(snapshot.reader, index_name)
    except IndexNotFoundError as error:
        raise InvalidInputError(str(error)) from None
    first = stored_segments(segments)[0]
    flat = pa.array(np.ascontiguousarray(first.centroids).reshape(-1))
    return IvfModel(pa.FixedSizeListArray.from_arrays(flat, first.centroids.shape[1]), first.metric)


def _name_of(snapshot: Snapshot, column: str | None) -> str:
    for segment in index_segments(snapshot.reader):
        if is_of_vectors(segment) and segment.column_names == (column,) and segment.recorded:
            return segment.name
    raise IndexNotFoundError(f"No IVF index for column {column!r}")
