"""Vectors and rows of a new index, collected from the batches of a scan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import MemoryLimitError

__all__ = ["Entries", "collected", "vector_type"]


@dataclass(frozen=True)
class Entries:
    """Vectors that can be indexed.

    Attributes
    ----------
    vectors : float or uint8 [n, dimension]
        Finite; of unit length for the metric cosine.
    rows : uint64[n]
        Ids of their rows; the vectors of one row repeat it.
    """

    vectors: NDArray[Any]
    rows: NDArray[np.uint64]


def vector_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the vectors of a column of vectors or of lists of vectors; None for other columns."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_fixed_size_list(kind) or not kind.list_size:
        return None
    item = kind.value_type
    return kind if pa.types.is_floating(item) or item == pa.uint8() else None


def collected(batches: Iterable[pa.RecordBatch], kind: pa.DataType, metric: str, memory_limit: int) -> Entries:
    """Collect all vectors except nulls, those with values that are not finite, and zeros for the metric cosine.

    Raises
    ------
    MemoryLimitError
        The vectors, which are needed twice, do not fit.
    """
    of_vector = vector_type(kind)
    if of_vector is None:
        raise TypeError(f"a column of {kind} has no vectors")
    width, item = of_vector.list_size, of_vector.value_type.to_pandas_dtype()
    vectors, rows, used = [np.empty((0, width), item)], [np.empty(0, np.uint64)], 0
    for batch in batches:
        some, ids = _flat(batch, kind, width)
        some, ids = _usable(some, ids, metric)
        vectors.append(some)
        rows.append(ids)
        used += some.nbytes + ids.nbytes
        if 2 * used > memory_limit:
            raise MemoryLimitError(
                f"the vectors of the column take more than half of the memory limit of {memory_limit} bytes; "
                "raise memory_limit, or build the index of fewer fragments"
            )
    return Entries(np.concatenate(vectors), np.concatenate(rows))


def _flat(batch: pa.RecordBatch, kind: pa.DataType, width: int) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    values, ids = batch.column(0), np.asarray(batch.column(1))
    if not pa.types.is_fixed_size_list(kind):
        parents = np.asarray(pc.list_parent_indices(values))
        values, ids = values.flatten(), ids[parents]
    if values.null_count:
        valid = np.asarray(values.is_valid())
        values, ids = values.drop_null(), ids[valid]
    inner = values.flatten()
    if inner.null_count:
        whole = np.asarray(inner.is_valid()).reshape(-1, width).all(axis=1)
        values, ids = values.filter(pa.array(whole)), ids[whole]
        inner = values.flatten()
    return np.asarray(inner).reshape(-1, width), ids


def _usable(vectors: NDArray[Any], ids: NDArray[np.uint64], metric: str) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    if metric == "hamming":
        return vectors, ids
    usable = np.isfinite(vectors).all(axis=1)
    if metric == "cosine":
        wide = vectors.astype(np.float64 if vectors.itemsize == 8 else np.float32, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt(np.einsum("nd,nd->n", wide, wide))
        usable &= (lengths > 0) & np.isfinite(lengths)
        vectors = (wide[usable] / lengths[usable, None]).astype(vectors.dtype)
        return vectors, ids[usable]
    return (vectors, ids) if usable.all() else (vectors[usable], ids[usable])
