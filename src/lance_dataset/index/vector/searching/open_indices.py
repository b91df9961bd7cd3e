"""Vector indices of a version that searches use."""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.vector.searching.probing import Probing
from lance_dataset.index.vector.searching.segment import FoundVectors, OpenVectorSegment, Ranking, VisibleRows
from lance_dataset.log import LOGGER
from lance_dataset.properties import cached_property
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.indices.coverage import has_reliable_coverage
from lance_dataset.table.indices.reuse import find_reuse_index, relocation

__all__ = ["OpenVectorIndex", "VectorIndices", "vector_indices"]


@dataclass(frozen=True, eq=False)
class OpenVectorIndex:
    """One vector index, all of its segments.

    Attributes
    ----------
    name
        Its name.
    segments
        Its segments that cover fragments of the version.
    """

    name: str
    segments: tuple[OpenVectorSegment, ...]

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Existing fragments that it covers."""
        return frozenset().union(*(each.segment.fragment_ids for each in self.segments))

    @cached_property
    def uncovered(self) -> tuple[int, ...]:
        """Positions of the fragments of the version that it does not cover."""
        ids = self.segments[0].segment.reader.manifest.fragment_list.columns.ids.tolist()
        return tuple(position for position, each in enumerate(ids) if each not in self.fragment_ids)

    @cached_property
    def curves(self) -> dict[object, tuple[object, ...]]:
        """Curves of recall that searches have measured, kept as long as the index is open."""
        return {}

    @cached_property
    def refusal(self) -> str | None:
        """Reason for which this release does not search it, such as an old format; None if it does. Opens the files.

        Such an index is not used, as if it did not exist.
        """
        try:
            for each in self.segments:
                each.source  # noqa: B018 - opens the files
        except UnsupportedError as error:
            LOGGER.warning("the index %r is not used, and all vectors are compared: %s", self.name, error)
            return f"the index {self.name!r} is not used: {error}"
        return None

    @property
    def metric(self) -> str:
        """Its metric; opens the files."""
        return self.segments[0].source.metric

    @property
    def kind(self) -> str:
        """Name of its kind; opens the files."""
        return self.segments[0].source.kind

    @property
    def num_partitions(self) -> int:
        """Number of partitions of all segments."""
        return sum(len(each.source.centroids) for each in self.segments)

    def with_segments(self, ids: Collection[str] | None) -> OpenVectorIndex:
        """Return the index with only the segments of some ids; None for all."""
        if ids is None:
            return self
        return OpenVectorIndex(self.name, tuple(each for each in self.segments if each.segment.metadata.uuid in ids))

    @cached_property
    def visible(self) -> VisibleRows:
        """Live rows of the fragments that it covers."""
        return visible_rows(self.segments[0].segment.reader, self.fragment_ids)

    def search(
        self,
        vector: NDArray[np.float64],
        k: int,
        probing: Probing,
        visible: VisibleRows,
        effort: str = "normal",
        limits: tuple[float | None, float | None] = (None, None),
        ef: int | None = None,
        *,
        of_lists: bool = False,
    ) -> FoundVectors:
        """Return the k rows that the index finds nearest to a vector.

        Parameters
        ----------
        vector
            The vector.
        k
            Number of rows to find.
        probing
            What the query says about partitions.
        visible
            Rows that may be found.
        effort
            How exactly distances of RaBitQ are estimated.
        limits
            Limits of the distances: from the first to below the second; None for no limit.
        ef
            Rows that walks of graphs keep, see `OpenVectorSegment.search`.
        of_lists
            True for a column of lists of vectors: walks of graphs find a row once in each partition.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        if not math.isfinite(np.vdot(vector, vector)) and not np.isfinite(vector).all():  # the first is faster
            return FoundVectors.best([], k)
        ranked = [(each, each.rank(vector, k, probing)) for each in self.segments]

        def parts_of(segment: OpenVectorSegment, ranking: Ranking, numbers: NDArray[np.int64]) -> list[FoundVectors]:
            if not of_lists or not segment.source.has_graphs:
                return [segment.search(ranking, numbers, k, visible, effort, limits, ef)]
            return [
                segment.search(ranking, numbers[place : place + 1], k, visible, effort, limits, ef).distinct
                for place in range(len(numbers))
            ]

        parts = [part for each, ranking in ranked for part in parts_of(each, ranking, ranking.order[: ranking.first])]
        found = FoundVectors.best(parts, k)
        if len(found.ids) == k or all(ranking.first >= ranking.most for _, ranking in ranked):
            return found
        orders = [each.all_in_order(ranking) for each, ranking in ranked]
        place = min(ranking.first for _, ranking in ranked)
        while len(found.ids) < k and place < max(ranking.most for _, ranking in ranked):
            parts = [found]
            for (each, ranking), order in zip(ranked, orders, strict=True):
                if ranking.first <= place < ranking.most:
                    parts += parts_of(each, ranking, order[place : place + 1])
            found = FoundVectors.best(parts, k)
            place += 1
        return found

    def prewarm(self, segment_ids: Collection[str] | None = None) -> None:
        """Open and read the files of segments now, of all or of those with some ids."""
        for each in self.segments:
            if segment_ids is None or each.segment.metadata.uuid in segment_ids:
                each.prewarm()


def visible_rows(reader: TableReader, fragment_ids: frozenset[int]) -> VisibleRows:
    """Return the live rows of some fragments."""
    starts: dict[int, int] = {}
    sizes: dict[int, int] = {}
    deleted: list[NDArray[np.int64]] = []
    total = 0
    for fragment_id in sorted(fragment_ids):
        fragment = reader.fragment(fragment_id)
        if fragment is None:
            continue
        starts[fragment_id], sizes[fragment_id] = total, fragment.physical_rows
        gone = np.asarray(fragment.deletions, np.int64)
        if len(gone):
            deleted.append(gone + total)
        total += fragment.physical_rows
    if not deleted:
        return VisibleRows(starts, sizes, None)
    live = np.ones(total, bool)
    live[np.concatenate(deleted)] = False
    return VisibleRows(starts, sizes, np.packbits(live, bitorder="little"))


class VectorIndices:
    """Vector indices of a version. Its reader keeps them."""

    def __init__(self, reader: TableReader) -> None:
        self._reader: TableReader = weakref.proxy(reader)

    @property
    def nbytes(self) -> int:
        """Estimated bytes of what is open."""
        known = vars(self).get("by_field", {})
        return sum(each.nbytes for indices in known.values() for index in indices for each in index.segments)

    @cached_property
    def by_field(self) -> dict[int, tuple[OpenVectorIndex, ...]]:
        """Indices by the id of the field of the vectors."""
        reader = self._reader
        manifest = reader.manifest
        if not has_reliable_coverage(manifest):
            return {}
        reuse = find_reuse_index(manifest)
        moved = None if reuse is None else relocation(reuse, reader.locator)
        found: dict[tuple[int, str], list[OpenVectorSegment]] = {}
        for segment in index_segments(reader):
            if len(segment.metadata.fields) == 1 and segment.fragment_ids and _is_of_vectors(segment):
                key = segment.metadata.fields[0], segment.name
                found.setdefault(key, []).append(OpenVectorSegment(segment, moved))
        by_field: dict[int, tuple[OpenVectorIndex, ...]] = {}
        for (field, name), segments in found.items():
            by_field[field] = (*by_field.get(field, ()), OpenVectorIndex(name, tuple(segments)))
        return by_field


def _is_of_vectors(segment: Segment) -> bool:
    return segment.kind == "vector" or (segment.metadata.details is None and segment.is_of_vectors)


def vector_indices(reader: TableReader) -> VectorIndices | None:
    """Return the vector indices of a version, None without any index. They are kept as long as the reader."""
    if not reader.manifest.index_section:
        return None
    found = reader.companions.get(VectorIndices)
    if found is None:
        found = reader.companions.setdefault(VectorIndices, VectorIndices(reader))
    return found if isinstance(found, VectorIndices) else None
