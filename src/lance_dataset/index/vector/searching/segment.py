"""A segment of a vector index that is open for searching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.segments import Segment
from lance_dataset.index.vector.quantizers import ProductQuantizer, RabitQuantizer, ScalarQuantizer
from lance_dataset.index.vector.searching.probing import Probing
from lance_dataset.index.vector.searching.sources import Source, open_source
from lance_dataset.locks import SharedLock
from lance_dataset.properties import cached_property
from lance_dataset.table.indices.moved_rows import Relocation
from lancecodec.errors import CodecError
from lancecodec.search.distances import COARSE, ELEMENTS, METRICS, query_size
from lancecodec.search.graphs import GraphPartitions
from lancecodec.search.quantized import (
    EFFORTS,
    NOWHERE,
    STORAGES,
    Partitions,
    distances_to,
    least_distances,
    rotate,
)

__all__ = ["FoundVectors", "OpenVectorSegment", "Ranking", "VisibleRows", "encoded_query"]

#: Numbers of rows for which memory is cheaper than a count of the rows of the partitions.
_FEW = 1 << 10
#: Sum of squares below which no element of a vector is too large for a 32-bit float.
_SAFE_SQUARES = 1e76
#: Largest sum of coarse codes of a segment, in bytes.
_COARSE_BYTES = 1 << 30
_ELEMENTS = {"f": ("<f4", "f4"), "d": ("<f8", "f8"), "e": ("<f2", "f4"), "u1": ("u1", "u1")}


@dataclass(frozen=True, eq=False)
class FoundVectors:
    """Rows that a search found, the nearest first.

    Attributes
    ----------
    distances : float32[n]
    ids, addresses : uint64[n]
        Row ids, and addresses in the version.
    """

    distances: NDArray[np.float32]
    ids: NDArray[np.uint64]
    addresses: NDArray[np.uint64]

    @classmethod
    def best(cls, parts: list[FoundVectors], k: int) -> FoundVectors:
        """Return the k nearest of several results."""
        if len(parts) == 1 and len(parts[0].ids) <= k:
            return parts[0]
        distances = np.concatenate([part.distances for part in parts] or [np.empty(0, np.float32)])
        ids = np.concatenate([part.ids for part in parts] or [np.empty(0, np.uint64)])
        addresses = np.concatenate([part.addresses for part in parts] or [np.empty(0, np.uint64)])
        order = np.lexsort((ids, distances))[:k]
        return cls(distances[order], ids[order], addresses[order])

    @property
    def distinct(self) -> FoundVectors:
        """The same rows, each once, with the nearest of its vectors."""
        _, first = np.unique(self.ids, return_index=True)
        if len(first) == len(self.ids):
            return self
        first.sort()
        return FoundVectors(self.distances[first], self.ids[first], self.addresses[first])


@dataclass(frozen=True, eq=False)
class VisibleRows:
    """Rows of fragments that a search may find.

    Attributes
    ----------
    starts
        For each fragment the position of its first row in the bits, by fragment id.
    sizes
        Number of rows of each, deleted ones included, by fragment id.
    bits : uint8[n]
        Bits of the rows that may be found; None for all.
    """

    starts: dict[int, int]
    sizes: dict[int, int]
    bits: NDArray[np.uint8] | None

    def of(self, fragment_ids: frozenset[int]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return ids, ascending, starts and sizes of those of some fragments that are visible."""
        ids = sorted(fragment_ids & self.starts.keys())
        starts, sizes = ([known[each] for each in ids] for known in (self.starts, self.sizes))
        return np.array(ids, np.int64), np.array(starts, np.int64), np.array(sizes, np.int64)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Partitions of a segment in the order of a search.

    Attributes
    ----------
    query
        The query as kernels read it.
    order : int64[partitions]
        Numbers of the partitions, the nearest first; after `first` of them in this order only if more are needed.
    distances : float32[partitions]
        Their distances.
    first, most
        Numbers of partitions to search at first, and at most.
    """

    query: Any
    order: NDArray[np.int64]
    distances: NDArray[np.float32]
    first: int
    most: int

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of partitions to search at first, and at most."""
        return self.first, self.most


def encoded_query(vector: NDArray[np.float64], element: str, metric: str) -> NDArray[Any]:
    """Return a query as kernels read it: padded with zeros, rounded like the elements of the vectors."""
    if metric == "hamming":
        return vector.astype(np.uint8)
    kind, wide = _ELEMENTS[element]
    size = query_size(len(vector), ELEMENTS.index(element), METRICS.index(metric)) // np.dtype(wide).itemsize
    padded = np.zeros(size, wide)
    if element != "e" and np.vdot(vector, vector) < _SAFE_SQUARES:  # as below, without the cost of the context
        padded[: len(vector)] = vector
        return padded
    with np.errstate(over="ignore"):
        padded[: len(vector)] = vector.astype(kind) if element == "e" else vector
    return padded


def _nearest_numbers(distances: NDArray[np.float32], first: int) -> NDArray[np.int64]:
    """Return the positions of the least distances, ascending; of all distances if some are NaN."""
    order = np.empty(first, np.int64)
    found = least_distances(distances.data, first, order.data)
    return order if found == first else np.argsort(distances, kind="stable")


class OpenVectorSegment:
    """Segment of a vector index.

    Parameters
    ----------
    segment
        The segment.
    moved
        Rows that were moved after the segment was made; None without any.
    """

    def __init__(self, segment: Segment, moved: Relocation | None) -> None:
        self.segment = segment
        self._moved = moved
        self._lock = SharedLock()
        self._visible: tuple[VisibleRows, tuple[NDArray[np.int64], ...]] | None = None
        self._coarse: set[int] = set()
        self._coarse_bytes = 0
        self.nbytes = 0

    @cached_property
    def source(self) -> Source:
        """Files of the segment, checked."""
        source = open_source(self.segment.folder)
        self.nbytes += source.centroids.nbytes
        return source

    @cached_property
    def element(self) -> str:
        """Type of the elements of the centroids, one of the names of kernels."""
        kind = self.source.centroids.dtype
        for name, (stored, _) in _ELEMENTS.items():
            if kind == np.dtype(stored):
                return name
        raise CorruptFileError(f"{self.segment.folder.uri('')}: the centroids are of {kind}")

    @property
    def storage(self) -> str:
        """Form of the stored vectors: ``FLAT``, ``PQ``, ``SQ`` or ``RQ``."""
        return self.source.kind.rpartition("_")[2]

    @cached_property
    def _centroids(self) -> NDArray[Any]:
        return np.ascontiguousarray(self.source.centroids)

    @cached_property
    def _partitions(self) -> Partitions:
        source = self.source
        quantizer, metric, storage = source.quantizer, source.metric, STORAGES.index(self.storage)
        count, dimension = self._centroids.shape
        element = ELEMENTS.index(self.element)
        kind = GraphPartitions if source.has_graphs else Partitions
        if storage == 0:
            return kind(storage, count, dimension, element, METRICS.index(metric))
        if metric == "hamming":
            raise CorruptFileError(f"{self.segment.folder.uri('')}: codes of {self.storage} have no hamming distances")
        number = METRICS.index("dot" if metric == "dot" else "l2")
        centroids = self._centroids.astype(np.float32, copy=False)
        if isinstance(quantizer, ProductQuantizer):
            codebook = np.ascontiguousarray(quantizer.codebook.astype(np.float32).transpose(0, 2, 1))
            return kind(
                *(storage, count, dimension, 0, number),
                bits=quantizer.bits,
                parts=quantizer.sub_vectors,
                by_column=quantizer.whole_partitions and not source.has_graphs,
                codebook=codebook.data,
                centroids=np.ascontiguousarray(centroids).data,
            )
        if isinstance(quantizer, ScalarQuantizer):
            step = float(np.float32(quantizer.end - quantizer.start) / np.float32(255))
            return kind(storage, count, dimension, 0, number, start=quantizer.start, step=step)
        if not isinstance(quantizer, RabitQuantizer):
            raise CorruptFileError(f"{self.segment.folder.uri('')}: the vectors are plain, not codes of {self.storage}")
        with np.errstate(over="ignore"):
            squares = np.einsum("pd,pd->p", centroids, centroids).astype(np.float32)
        return kind(
            *(storage, count, dimension, 0, number),
            bits=quantizer.bits,
            raw=quantizer.raw_query,
            centroids=None if quantizer.raw_query else self._rotated(centroids).data,
            squares=squares.data,
        )

    def _rotated(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        quantizer = self.source.quantizer
        if not isinstance(quantizer, RabitQuantizer):
            return vectors
        if quantizer.matrix is not None:
            return np.ascontiguousarray(vectors @ quantizer.matrix.astype(np.float32, copy=False).T)
        found = np.array(vectors, np.float32, order="C")
        if quantizer.signs is not None:
            rotate(found.data, found.shape[-1], quantizer.signs.data)
        return found

    def rank(self, vector: NDArray[np.float64], k: int, probing: Probing) -> Ranking:
        """Choose partitions.

        Parameters
        ----------
        vector
            The query.
        k
            Number of rows to find.
        probing
            What the query says about partitions.
        """
        metric = self.source.metric
        if self.element == "e":  # rounded before it is scaled, as in the reference
            with np.errstate(over="ignore"):
                vector = vector.astype(np.float16).astype(np.float64)
        if metric == "cosine":
            length = np.sqrt(vector @ vector)
            with np.errstate(divide="ignore", invalid="ignore"):
                vector = vector / length
        between = "l2" if metric == "cosine" else metric
        query = encoded_query(vector, self.element, between)
        count, dimension = self._centroids.shape
        distances = np.empty(count, np.float32)
        element = ELEMENTS.index(self.element)
        distances_to(
            query.data, self._centroids.data, count, dimension, element, METRICS.index(between), distances.data
        )
        first, most = probing.counts(distances, k, metric)
        order = _nearest_numbers(distances, first) if first * 8 < count else np.argsort(distances, kind="stable")
        if self.storage == "FLAT":
            return Ranking(query, order, distances, first, most)
        plain = query[:dimension].astype(np.float32, copy=False)
        return Ranking(self._rotated(plain) if self.storage == "RQ" else plain, order, distances, first, most)

    def all_in_order(self, ranking: Ranking) -> NDArray[np.int64]:
        """Return the numbers of all partitions, the nearest first."""
        if len(ranking.order) == len(ranking.distances):
            return ranking.order
        rest = np.argsort(ranking.distances, kind="stable")
        return np.concatenate([ranking.order, rest[~np.isin(rest, ranking.order)]])

    def search(
        self,
        ranking: Ranking,
        numbers: NDArray[np.int64],
        k: int,
        visible: VisibleRows,
        effort: str,
        limits: tuple[float | None, float | None],
        ef: int | None = None,
    ) -> FoundVectors:
        """Find the nearest rows of some partitions.

        Parameters
        ----------
        ranking
            The query.
        numbers
            The partitions.
        k
            Number of rows to find.
        visible
            Rows that may be found.
        effort
            One of `EFFORTS`.
        limits
            Limits of the distances.
        ef
            Rows that a walk of a graph keeps; None for half as many again as `k`.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        partitions = self._partitions
        for number in numbers.tolist():
            if not partitions.is_filled(number):
                self._fill(partitions, number)
            elif number not in self._coarse:
                self._coarsen(partitions, number)
        room = k if k <= _FEW else min(k, int(self.source.lengths[numbers].sum()))
        near, ids, addresses = np.empty(room, np.float32), np.empty(room, np.uint64), np.empty(room, np.uint64)
        known = self._visible
        if known is None or known[0] is not visible:
            known = self._visible = visible, visible.of(self.segment.fragment_ids)
        bits = visible.bits
        fragments, starts, sizes = known[1]
        found = partitions.search(
            np.ascontiguousarray(ranking.query).data,
            np.ascontiguousarray(numbers).data,
            ranking.distances[numbers].data,
            k,
            fragments.data,
            starts.data,
            sizes.data,
            None if bits is None else bits.data,
            0 if bits is None else 8 * len(bits),
            EFFORTS.index(effort),
            *limits,
            near.data,
            ids.data,
            addresses.data,
            max(ef or k + k // 2, k) if self.source.has_graphs else 0,
        )
        return FoundVectors(near[:found], ids[:found], addresses[:found])

    def prewarm(self) -> None:
        """Open the files and read all partitions."""
        partitions = self._partitions
        for number in range(len(self._centroids)):
            if not partitions.is_filled(number):
                self._fill(partitions, number)

    def _fill(self, partitions: Partitions, number: int) -> None:
        with self._lock:
            if partitions.is_filled(number):
                return
            rows = self.source.read(number)
            expected = self.source.centroids.dtype if self.storage == "FLAT" else np.dtype(np.uint8)
            if rows.codes.dtype != expected:
                where = self.segment.folder.uri("")
                raise CorruptFileError(f"{where}: the vectors are of {rows.codes.dtype}, the centroids of {expected}")
            self._link(partitions, number, len(rows.ids))
            ids, addresses = self._places(rows.ids)
            partitions.fill(
                number,
                len(ids),
                np.ascontiguousarray(rows.codes).data,
                ids.data,
                addresses.data,
                None if rows.extra is None else rows.extra.data,
                [np.ascontiguousarray(each).data for each in rows.factors],
            )
            self.nbytes += rows.nbytes + (0 if addresses is ids else addresses.nbytes)

    def _coarsen(self, partitions: Partitions, number: int) -> None:
        """Make the coarse codes of a partition of plain vectors that is searched again."""
        with self._lock:
            if number in self._coarse:
                return
            size = int(self.source.lengths[number]) * (self._centroids.shape[1] + 8)
            if self._has_coarse and self._coarse_bytes + size <= _COARSE_BYTES:
                size = partitions.coarsen(number)
                self._coarse_bytes += size
                self.nbytes += size
            self._coarse.add(number)

    @cached_property
    def _has_coarse(self) -> bool:
        """True if coarse codes shorten searches."""
        source = self.source
        plain = self.storage == "FLAT" and source.metric != "hamming" and not source.has_graphs
        return plain and ELEMENTS.index(self.element) in COARSE

    def _link(self, partitions: Partitions, number: int, rows: int) -> None:
        graph = self.source.graph(number)
        if graph is None or not isinstance(partitions, GraphPartitions):
            return
        try:
            partitions.link(
                *(number, rows, graph.entry_point, graph.bounds.data, graph.nodes.data),
                *(np.ascontiguousarray(graph.ends).data, graph.neighbors.data),
            )
        except CodecError as error:
            raise CorruptFileError(f"{self.segment.folder.uri('')}: partition {number}: {error}") from error
        self.nbytes += graph.nbytes

    def _places(self, ids: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return row ids in the version, and addresses."""
        reader = self.segment.reader
        if reader.manifest.uses_stable_row_ids:
            found, known = reader.addresses_of_ids(ids)
            return np.ascontiguousarray(ids), np.where(known, found, np.uint64(NOWHERE))
        if self._moved is not None:
            found, gone = self._moved.locate(ids)
            found = np.where(gone, np.uint64(NOWHERE), found)
            return found, found
        ids = np.ascontiguousarray(ids)
        return ids, ids
