"""Vectors and rows of a new index, from the batches of a scan that can be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["Block", "Survey", "VectorEntries", "vector_type"]

#: Vectors ``[n, dimension]`` and the ids of their rows ``[n]``.
Block: TypeAlias = tuple[NDArray[Any], NDArray[np.uint64]]
#: Vectors of a block, of those in memory.
_BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Survey:
    """Summary of all vectors, from one pass over them.

    Attributes
    ----------
    count
        Number of vectors.
    bounds
        Smallest and largest of all values; infinities, the larger one first, without vectors.
    sample : float or uint8 [at most count, dimension]
        Vectors drawn at random, in no order; all of them, in order, if they fit.
    """

    count: int
    bounds: tuple[float, float]
    sample: NDArray[Any]


class VectorEntries:
    """Vectors that can be indexed: all but nulls, those with values that are not finite, and zeros for cosine.

    Vectors get unit length for the metric cosine.

    Parameters
    ----------
    batches
        Vectors (or lists of vectors) and row ids; can be iterated over again.
    kind
        Type of the column.
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    budget
        Maximum number of bytes of vectors to hold in memory, so that `blocks` need not read them again.

    Raises
    ------
    TypeError
        The column has no vectors.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch], kind: pa.DataType, metric: str, budget: int) -> None:
        of_vector = vector_type(kind)
        if of_vector is None:
            raise TypeError(f"a column of {kind} has no vectors")
        self._batches, self._kind, self._metric, self._budget = batches, kind, metric, budget
        self._width, self.dtype = of_vector.list_size, np.dtype(of_vector.value_type.to_pandas_dtype())
        self._held: Block | None = None

    def survey(self, sample_bytes: int, rng: np.random.Generator) -> Survey:
        """Read all vectors once.

        The sample is drawn by reservoir sampling (Vitter, Random sampling with a reservoir, algorithm R, 1985).

        Parameters
        ----------
        sample_bytes
            Maximum number of bytes of the sample, if the vectors do not fit in memory.
        rng
            Draws the sample.
        """
        held: list[Block] | None = []
        reservoir = _Reservoir(max(sample_bytes // (self._width * self.dtype.itemsize), 1), rng)
        count, used, bounds = 0, 0, _Bounds()
        for vectors, rows in self._read():
            count += len(vectors)
            bounds.add(vectors)
            if held is None:
                reservoir.add(vectors)
                continue
            held.append((vectors, rows))
            used += vectors.nbytes + rows.nbytes
            if used > self._budget:
                for earlier, _ in held:
                    reservoir.add(earlier)
                held = None
        if held is None:
            return Survey(count, bounds.found, reservoir.sample)
        none = np.empty((0, self._width), self.dtype)
        whole = np.concatenate([none, *(vectors for vectors, _ in held)])
        rows = np.concatenate([np.empty(0, np.uint64), *(rows for _, rows in held)])
        self._held = whole, rows
        return Survey(count, bounds.found, whole)

    def blocks(self) -> Iterator[Block]:
        """Yield all vectors with the ids of their rows; the vectors of one row repeat it."""
        if self._held is None:
            yield from self._read()
            return
        vectors, rows = self._held
        for start in range(0, len(rows), _BLOCK_ROWS):
            yield vectors[start : start + _BLOCK_ROWS], rows[start : start + _BLOCK_ROWS]

    def _read(self) -> Iterator[Block]:
        for batch in self._batches:
            vectors, rows = _usable(*_flat(batch, self._kind, self._width), self._metric)
            if len(vectors):
                yield vectors, rows


class _Bounds:
    """Smallest and largest value of blocks."""

    def __init__(self) -> None:
        self.found = (np.inf, -np.inf)

    def add(self, vectors: NDArray[Any]) -> None:
        self.found = min(float(vectors.min()), self.found[0]), max(float(vectors.max()), self.found[1])


class _Reservoir:
    """Sample of vectors, each with the same probability."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size, self._rng = size, rng
        self._seen = 0
        self._parts: list[NDArray[Any]] = []
        self._sample: NDArray[Any] | None = None

    def add(self, vectors: NDArray[Any]) -> None:
        if self._seen < self._size:
            first = vectors[: self._size - self._seen].copy()
            self._parts.append(first)
            self._seen += len(first)
            vectors = vectors[len(first) :]
        if not len(vectors):
            return
        sample = self.sample
        numbers = np.arange(self._seen + 1, self._seen + 1 + len(vectors))
        slots = (self._rng.random(len(vectors)) * numbers).astype(np.int64)
        chosen = np.flatnonzero(slots < self._size)
        sample[slots[chosen]] = vectors[chosen]
        self._seen += len(vectors)

    @property
    def sample(self) -> NDArray[Any]:
        if self._sample is None or self._parts:
            self._sample = np.concatenate(self._parts)
            self._parts = []
        return self._sample


def vector_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the vectors of a column of vectors or of lists of vectors; None for other columns."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_fixed_size_list(kind) or not kind.list_size:
        return None
    item = kind.value_type
    return kind if pa.types.is_floating(item) or item == pa.uint8() else None


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
