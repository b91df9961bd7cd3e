"""Merges of SSTables into the table, with the progress in the same commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.changes.fragments.row_moves import commit_row_moves, prepare_row_moves
from lance_dataset.changes.merge.clauses import MergeClauses, WhenMatched
from lance_dataset.changes.merge.execution import Merge, MergeOptions
from lance_dataset.errors import CommitConflictError
from lance_dataset.memwal.counters import counters_of
from lance_dataset.memwal.details import required_details
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.shard_versions import read_shard
from lance_dataset.memwal.sstables import OpenSsTable, open_sstable
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.operations import CompactedSsTable
from lance_dataset.types.schema import Field

__all__ = ["MergedShard", "merge_shard"]

_ATTEMPTS = 10
#: Rows of SSTables that are merged by one commit, so that they fit in memory.
_MAX_ROWS = 4_000_000


@dataclass(frozen=True)
class MergedShard:
    """Result of merging a shard.

    Attributes
    ----------
    generations
        Generations that were merged, in order.
    upserted
        Number of rows that were inserted or updated.
    deleted
        Number of keys whose rows were deleted.
    """

    generations: tuple[int, ...] = ()
    upserted: int = 0
    deleted: int = 0


def merge_shard(snapshot: Snapshot, shard_id: str) -> tuple[Snapshot, MergedShard]:
    """Merge all SSTables of a shard that are not in the table yet.

    Readers see each generation in the shard or in the table, never in neither. If another process merges the same
    generations, they are left to it.

    Parameters
    ----------
    snapshot
        The table.
    shard_id
        Id of the shard.

    Returns
    -------
    snapshot : Snapshot
        The newest version of the table.
    merged : MergedShard
        What was merged.

    Raises
    ------
    InvalidInputError
        The table has no MemWAL.
    CorruptFileError, MissingFileError
        An SSTable cannot be read.
    CommitConflictError
        Other writers changed the table again and again.
    """
    place = ShardPlace(snapshot.store, snapshot.root, shard_id)
    done, counters = MergedShard(), counters_of(place.uri)
    conflicts = 0
    snapshot = snapshot.newest()
    while True:
        group = _next_group(snapshot, place)
        if not group:
            return snapshot, done
        try:
            with counters.timed("merge"):
                snapshot, upserted, deleted = _merge(snapshot, shard_id, group)
        except CommitConflictError:
            conflicts += 1
            counters.add("merge_conflicts")
            if conflicts == _ATTEMPTS:
                raise
            snapshot = snapshot.newest()
            continue
        counters.add("merge_sstables", len(group))
        counters.add("merge_upserted_rows", upserted)
        counters.add("merge_deleted_keys", deleted)
        generations = (*done.generations, *(table.generation for table in group))
        done = MergedShard(generations, done.upserted + upserted, done.deleted + deleted)


def _next_group(snapshot: Snapshot, place: ShardPlace) -> list[OpenSsTable]:
    """Return the oldest SSTables that the table lacks, as many as fit in memory."""
    merged = required_details(snapshot.manifest).compacted.get(place.shard_id, 0)
    shard = read_shard(place)
    group: list[OpenSsTable] = []
    rows = 0
    schema = snapshot.manifest.schema
    key = KeyColumns.of(schema)
    for table in shard.sstables if shard is not None else ():
        if table.generation <= merged:
            continue
        opened = open_sstable(snapshot.location, place, table.generation, table.path, key, schema)
        rows += opened.rows
        if group and rows > _MAX_ROWS:
            break
        group.append(opened)
    return group


def _merge(snapshot: Snapshot, shard_id: str, group: Sequence[OpenSsTable]) -> tuple[Snapshot, int, int]:
    """Merge consecutive SSTables; return the new version, and the numbers of rows and of deletions."""
    progress = (CompactedSsTable(shard_id, group[-1].generation),)
    fields = list(snapshot.manifest.schema.fields)
    key = KeyColumns.of(snapshot.manifest.schema)
    if not key:
        batches = [table.scan(fields)[0] for table in group]
        return _append(snapshot, batches, progress), sum(batch.num_rows for batch in batches), 0
    live, dead = _newest_rows(group, fields)
    rows, gone = sum(batch.num_rows for batch in live), sum(batch.num_rows for batch in dead)
    return _executed(snapshot, key, live, dead, progress), rows, gone


def _newest_rows(
    group: Sequence[OpenSsTable], fields: list[Field]
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Return the newest row of each key of several SSTables: those with values, and those of deleted keys."""
    newer: list[pa.Array] = []
    live, dead = [], []
    for table in reversed(group):
        batch, marks = table.scan(fields)
        if newer:
            keep = pc.invert(pc.is_in(table.keys, pa.concat_arrays(newer)))
            batch, marks = batch.filter(keep), marks.filter(keep)
        newer.append(table.keys)
        live.append(batch.filter(pc.invert(marks)))
        dead.append(batch.filter(marks))
    return live, dead


def _executed(
    snapshot: Snapshot,
    key: KeyColumns,
    live: Sequence[pa.RecordBatch],
    dead: Sequence[pa.RecordBatch],
    progress: tuple[CompactedSsTable, ...],
) -> Snapshot:
    """Write rows, delete those of other keys, and record the progress, all in one commit."""
    schema = live[0].schema
    table = snapshot.manifest.schema
    clauses = MergeClauses(key.names, WhenMatched.UPDATE, inserts=True)
    fields = [each.with_nullable(table.top_level(each.name).nullable) for each in schema]
    given = pa.schema(fields)

    def typed(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_arrays(batch.columns, schema=given) for batch in batches)

    merge = Merge.collect(table, clauses, MergeOptions(compacted=progress), given, typed(live), typed(dead))
    with merge.source:
        made, _ = merge.execute(snapshot, 0, dt.timedelta(seconds=30))
    return made


def _append(snapshot: Snapshot, batches: Sequence[pa.RecordBatch], progress: tuple[CompactedSsTable, ...]) -> Snapshot:
    table = snapshot.manifest.schema
    given = table.storage_arrow
    rows = [pa.RecordBatch.from_arrays(batch.columns, schema=given) for batch in batches]
    moves = prepare_row_moves(
        snapshot, {}, table, rows, np.empty(0, np.uint64), fields=[node.id for node in table.walk()], compacted=progress
    )
    return commit_row_moves(snapshot, moves)
