"""Batches of a job that become SSTables of a shard, each as a whole and once, however often it is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.input import deletions, rows_to_put
from lance_dataset.memwal.keys import newest_rows
from lance_dataset.memwal.opening import open_writer
from lance_dataset.memwal.options import WriterOptions
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.shard_versions import read_shard
from lance_dataset.memwal.writing import WriterCore
from lance_dataset.read.snapshot import Snapshot

__all__ = ["put_batch"]

#: Jobs whose last batch a shard remembers.
_MOST_JOBS = 64


def put_batch(
    snapshot: Snapshot, shard_id: str, job: str, number: int, rows: pa.Table, gone: pa.Table | None = None
) -> bool:
    """Publish a batch as an SSTable, in the same step as its number, unless it was published before.

    The shard is claimed for the batch. Rows that an earlier writer left in the log are flushed before.

    Parameters
    ----------
    snapshot
        The table.
    shard_id
        Id of the shard.
    job
        Name of the job. Its batches are numbered in ascending order.
    number
        Number of the batch.
    rows
        Rows, which replace older rows of the same keys.
    gone
        Keys whose rows are deleted; None for none.

    Returns
    -------
    bool
        False if the batch, or a later one of the job, was published before.

    Raises
    ------
    InvalidInputError
        The table has no MemWAL or no key, a key occurs twice in the batch, or the shard is sealed.
    SchemaError
        Rows have other columns or types than the table, or nulls where none may be.
    CommitConflictError
        Another writer claimed the shard.
    """
    place = ShardPlace(snapshot.store, snapshot.root, shard_id)
    if _is_published(place, job, number):
        return False
    core = open_writer(snapshot, shard_id, WriterOptions())
    try:
        # Another attempt may have published the batch, and later ones, before the claim; since the claim none can.
        if _is_published(place, job, number):
            return False
        if not core.key:
            raise InvalidInputError("the table has no primary key, by which rows of a batch replace others")
        batches = list(rows_to_put(core, rows.schema, iter(rows.to_batches())))
        if gone is not None:
            batches += deletions(core, gone.schema, iter(gone.to_batches()))
        _check_keys(core, batches)
        core.flush()
        if batches:
            _publish(core, job, number, batches)
    finally:
        core.abort()
    return True


def _is_published(place: ShardPlace, job: str, number: int) -> bool:
    known = read_shard(place)
    return known is not None and known.jobs.get(job, -1) >= number


def _check_keys(core: WriterCore, batches: Sequence[pa.RecordBatch]) -> None:
    total = sum(batch.num_rows for batch in batches)
    keys = [core.key.array(batch) for batch in batches]
    if total and len(newest_rows(pa.concat_arrays(keys))) < total:
        raise InvalidInputError("a key occurs twice in the batch, so it is not known which row counts")


def _publish(core: WriterCore, job: str, number: int, batches: Sequence[pa.RecordBatch]) -> None:
    def noted(manifest: ShardManifest) -> ShardManifest:
        others = [(name, last) for name, last in manifest.jobs.items() if name != job]
        return replace(manifest, jobs=dict([*others[1 - _MOST_JOBS :], (job, number)]))

    with core.counters.timed("put"):
        memtable = core.new_memtable(core.memtable_stats()["generation"])
        memtable.reserve(batches)
        memtable.add(batches)
        core.publish(memtable, noted)
    core.counters.add("put_rows", memtable.rows)
    core.counters.add("put_bytes", memtable.num_bytes)
