"""Optimization of indices: rows without an index are added, and segments are merged.

If the kind of an index can extend segments, only the rows without an index are read. Otherwise a merged segment is
trained anew from all rows of its fragments: reading one column again is cheap, and the result has no entries of rows
that were deleted or changed since.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lance_dataset.changes.commit import commit_change
from lance_dataset.changes.indexing.rebalancing import needs_rebalancing
from lance_dataset.changes.indexing.recall import with_curve
from lance_dataset.changes.indexing.segments import IndexDefinition, indexed_field, new_id, new_segment
from lance_dataset.changes.retry import repeated_on_conflict
from lance_dataset.errors import UnsupportedError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.trainer import OldSegment
from lance_dataset.index.training import TRAINERS
from lance_dataset.index.unnoted import unnoted_kind
from lance_dataset.index.vector.training.existing import trainer_like
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.records.index_progress import IndexProgress
from lance_dataset.table.commit.leftovers import ChangeFiles
from lance_dataset.table.flags import check_writable
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.changes import holds_addresses
from lance_dataset.table.indices.reuse import find_reuse_index
from lance_dataset.table.operations import CreateIndex
from lance_dataset.table.row_addresses import fragments_of
from lance_dataset.threads.progress import Progress

__all__ = ["definition_like", "optimize_indices"]


@dataclass(frozen=True)
class _Work:
    """One segment that replaces others.

    Attributes
    ----------
    like
        Segment of the same index.
    merged
        Segments to replace.
    staying
        Other segments of the index.
    fragment_ids
        Fragments of the new segment, ascending.
    rebalances
        True to split partitions of vectors that became too large, and to join those that became too small.
    """

    like: Segment
    merged: tuple[Segment, ...]
    staying: tuple[Segment, ...]
    fragment_ids: tuple[int, ...]
    rebalances: bool = False


def optimize_indices(
    snapshot: Snapshot,
    *,
    names: Collection[str] | None = None,
    num_merged: int | None = None,
    retrain: bool = False,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Snapshot:
    """Commit a version in which indices cover all fragments; return the same snapshot if they do already.

    Parameters
    ----------
    snapshot
        Version of the first attempt.
    names
        Indices to optimize; None for all. Names of no index are ignored.
    num_merged
        Number of newest segments of each index to merge with the rows that have no index; None for 1, or 0 for
        indices of vectors. With None, all segments of an index of vectors are merged if there are such rows and
        partitions became too large or too small, unless a number of partitions was asked for.
    retrain
        True to merge all segments of indices of vectors, and to train their models anew.
    memory_limit
        Maximum number of bytes to sort with, approximately; None for a quarter of the memory of the machine.
    progress
        Progress of the rows that are read; None to tell nobody.

    Raises
    ------
    UnsupportedError
        An index has rows to add, but this release does not build indices of its kind.
    CommitConflictError
        Other writers changed the rows or the indices, and the retries ran out.
    """
    return repeated_on_conflict(
        snapshot, lambda latest: _optimize(latest, names, num_merged, retrain, memory_limit, progress)
    )


def _optimize(
    latest: Snapshot,
    names: Collection[str] | None,
    num_merged: int | None,
    retrain: bool,
    memory_limit: int | None,
    progress: Progress | None,
) -> Snapshot:
    check_writable(latest.manifest.writer_flags, latest.manifest.path)
    by_name: dict[str, list[Segment]] = {}
    for segment in index_segments(latest.reader):
        if not segment.is_system and (names is None or segment.name in names):
            by_name.setdefault(segment.name, []).append(segment)
    existing = frozenset(latest.manifest.fragment_list.columns.ids.tolist())
    planned = [_planned(segments, existing, num_merged, retrain) for segments in by_name.values()]
    work = [each for each in planned if each is not None]
    if not work:
        return latest
    definitions = [definition_like(each.like, retrain, each.rebalances) for each in work]
    made: list[str] = []
    with ChangeFiles(latest.store, latest.root, indices=made).taken_back(latest.version):
        built = []
        for each, definition in zip(work, definitions, strict=True):
            made.append(new_id())
            built.append(_built(latest, each, definition, made[-1], memory_limit, progress))
        removed = tuple(segment.metadata for each in work for segment in each.merged)
        return commit_change(latest, CreateIndex(tuple(built), removed))


def _planned(
    segments: Sequence[Segment], existing: frozenset[int], num_merged: int | None, retrain: bool
) -> _Work | None:
    """Return what to do for one index; None if there is nothing to do."""
    left = existing.difference(*(segment.fragment_ids for segment in segments))
    alive = [segment for segment in segments if segment.fragment_ids]
    of_vectors = segments[0].kind == "vector"
    retrained = of_vectors and retrain and bool(alive)
    rebalances = of_vectors and num_merged is None and not retrained and needs_rebalancing(alive, left)
    if num_merged is None:
        num_merged = 0 if of_vectors else 1
    if retrained or rebalances:
        num_merged = len(alive)
    merged = alive[max(len(alive) - num_merged, 0) :]
    if not left and len(merged) < 2 and not retrained:
        return None
    dead = [segment for segment in segments if not segment.fragment_ids]
    covered = left.union(*(segment.fragment_ids for segment in merged))
    like = (alive or segments)[-1] if of_vectors else segments[-1]
    staying = tuple(alive[: len(alive) - len(merged)])
    return _Work(like, (*dead, *merged), staying, tuple(sorted(covered)), rebalances)


def definition_like(like: Segment, retrain: bool = False, rebalance: bool = False) -> IndexDefinition:
    """Return the definition of the index of a segment.

    Raises
    ------
    UnsupportedError
        This release does not build indices of its kind.
    """
    schema = like.reader.manifest.schema
    kind = like.kind or unnoted_kind(like.metadata.fields, schema, like.folder)
    details = like.metadata.details
    if kind == "vector" and len(like.column_names) == 1:
        path = indexed_field(like.reader.scanned_schema, like.column_names[0])
        value = b"" if details is None else details.value
        alike = trainer_like(value, like.folder, retrain=retrain, rebalance=rebalance)
        return IndexDefinition(like.name, path, alike, {})
    trainer = TRAINERS.get(kind)
    if trainer is None or len(like.column_names) != 1:
        raise UnsupportedError(
            f"the index {like.name!r} has rows to add, but this release does not build indices of the kind {kind!r}; "
            "name the other indices with index_names, or optimize it with pylance"
        )
    path = indexed_field(like.reader.scanned_schema, like.column_names[0])
    trainer, parameters = trainer.of_index(b"" if details is None else details.value, like.folder)
    if not trainer.fits_column(path[-1].to_arrow()):
        raise UnsupportedError(
            f"the index {like.name!r} has rows to add, but this release builds {trainer.name} indices only of columns "
            f"of {trainer.wanted}; name the other indices with index_names, optimize it with pylance, or drop it"
        )
    return IndexDefinition(like.name, path, trainer, parameters)


def _built(
    latest: Snapshot,
    work: _Work,
    definition: IndexDefinition,
    segment_id: str,
    memory_limit: int | None,
    progress: Progress | None,
) -> IndexMetadata:
    fragment_ids = work.fragment_ids if latest.reader.num_rows else ()
    old = [each for each in work.merged if each.fragment_ids] if fragment_ids else []
    can_extend = definition.trainer.can_extend
    if can_extend is not None and not all(can_extend(each.folder) for each in old):
        old = []
    if definition.trainer.extend is None or find_reuse_index(latest.manifest) is not None:
        old = []  # rows that moved since are no longer where the segments say
    start = time.perf_counter()
    known = frozenset().union(*(each.fragment_ids for each in old))
    read = None if progress is None else _RowsRead(progress, latest, frozenset(fragment_ids) - known)
    segment = new_segment(
        latest,
        definition,
        segment_id,
        fragment_ids=fragment_ids,
        memory_limit=memory_limit,
        progress=read,
        old=[OldSegment(each.folder, partial(_is_covered, each)) for each in old],
        old_fragment_ids=known,
    )
    if read is not None:
        read.finish()
    alive = [each.metadata.dataset_version for each in work.merged if each.fragment_ids]
    details = work.like.metadata.details or segment.details
    made = replace(segment, dataset_version=min([latest.version, *alive]), details=details)
    seconds = time.perf_counter() - start
    return with_curve(latest, made, work.staying, seconds=seconds, memory_limit=memory_limit)


class _RowsRead:
    """Rows that are read for a segment, however often they are: those of the longest pass count."""

    def __init__(self, progress: Progress, latest: Snapshot, fragment_ids: frozenset[int]) -> None:
        self._progress = progress
        self._rows = sum(each.num_rows for each in latest.reader.fragments if each.fragment.id in fragment_ids)
        self._seen = 0
        progress.expect(self._rows)

    def __call__(self, report: IndexProgress) -> None:
        """Take note of what a pass has read so far."""
        more = min(report.completed or 0, self._rows) - self._seen
        if more > 0:
            self._seen += more
            self._progress.advance(more)

    def finish(self) -> None:
        """Report the rows that were not read: vectors may be sampled."""
        self._progress.advance(self._rows - self._seen)


def _is_covered(segment: Segment, rows: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each id or address whether its row is in a fragment that a segment covers."""
    manifest = segment.reader.manifest
    known = np.ones(len(rows), bool)
    kind = segment.kind or ""
    if manifest.uses_stable_row_ids and not holds_addresses(kind, segment.metadata.index_version):
        rows, known = segment.reader.addresses_of_ids(rows)
    owners = fragments_of(rows)
    starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])  # many rows have the same owner
    covered = np.isin(owners[starts], np.array(sorted(segment.fragment_ids), np.uint64))
    found: NDArray[np.bool_] = np.repeat(covered, np.diff(starts, append=len(owners))) & known
    return found
