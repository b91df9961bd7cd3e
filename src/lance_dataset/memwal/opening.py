"""Opening of writers: claim of the shard, and replay of its log."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from lance_dataset.errors import CommitConflictError, CorruptFileError
from lance_dataset.memwal.details import required_details
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.log import ShardLog, log_end, read_entries
from lance_dataset.memwal.log_entries import LogEntry, row_names
from lance_dataset.memwal.maintained import sstable_indices
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.options import WriterOptions
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.schemas import TOMBSTONE, check_columns, conformed
from lance_dataset.memwal.shard_manifest import ShardManifest
from lance_dataset.memwal.shard_versions import check_owner, claim_shard, update_shard
from lance_dataset.memwal.writing import WriterCore
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.table.flags import check_writable
from lance_dataset.table.manifest import Manifest
from lance_dataset.types.schema import Schema

__all__ = ["log_rows", "open_writer", "replayed"]


def open_writer(snapshot: Snapshot, shard_id: str, options: WriterOptions) -> WriterCore:
    """Claim a shard, replay its log, and return its writer. Earlier writers are stopped.

    Parameters
    ----------
    snapshot
        The table.
    shard_id
        Id of the shard, which is created if it does not exist.
    options
        Options of the writer.

    Raises
    ------
    InvalidInputError
        The table has no MemWAL, or the shard is sealed.
    CommitConflictError
        Another writer claimed the shard at the same time.
    CorruptFileError
        The log is torn, or an entry is missing.
    UnsupportedError
        The table has columns that a MemWAL cannot keep.
    """
    manifest = snapshot.manifest
    check_writable(manifest.writer_flags, manifest.path)
    details = required_details(manifest)
    check_columns(manifest.schema)
    key = KeyColumns.of(manifest.schema)
    place = ShardPlace(snapshot.store, snapshot.root, shard_id)
    shard = claim_shard(place, details.spec_id)
    _check_progress(shard, details.compacted.get(shard_id, 0))
    log = ShardLog(place, shard.writer_epoch, log_end(place, shard))
    fence = log.fence() if shard.writer_epoch > 1 else None
    indices = sstable_indices(snapshot, details, options.hnsw)
    core = WriterCore(place, manifest, key, options, shard, log, indices)
    start = time.perf_counter_ns()
    memtable, entries = _replay(core, manifest, key, shard, log)
    if entries:
        core.counters.add_step("recovery", time.perf_counter_ns() - start)
        core.counters.add("recovery_entries", entries)
    if fence is not None:
        update_shard(place, shard.writer_epoch, lambda known: replace(known, last_seen=max(fence, known.last_seen)))
    core.continue_with(memtable)
    return core


def _check_progress(shard: ShardManifest, merged: int) -> None:
    """Check that merges will not take the next SSTables for those that are in the table already."""
    if merged >= shard.generation:
        raise CorruptFileError(
            f"shard {shard.shard_id}: generation {merged} is in the table, but the next one to be flushed is "
            f"{shard.generation}: manifests of the shard are missing; restore them, or use a new shard"
        )


def _replay(
    core: WriterCore, base: Manifest, key: KeyColumns, shard: ShardManifest, log: ShardLog
) -> tuple[Memtable, int]:
    """Read the rows of a log that are in no SSTable. Those of all generations but the newest are flushed.

    Nothing is flushed before all entries have been checked: it would go on behind those that turn out to be misplaced.

    Returns
    -------
    memtable : Memtable
        Rows of the newest generation.
    entries : int
        Number of entries with rows that were in no SSTable.
    """
    memtable = core.new_memtable(shard.generation)
    full: list[Memtable] = []
    next_position, entries = shard.replay_after + 1, 0
    for position, entry in read_entries(log.place, next_position):
        next_position = position + 1
        where = log.place.store.uri(log.place.entry(position))
        if entry.epoch > log.epoch:
            raise CommitConflictError(
                f"WAL replay aborted: {where} is of epoch {entry.epoch}, later than {log.epoch}; the writer was fenced "
                "during open",
                retryable=False,
            )
        if entry.is_sentinel or not entry.batches or (memtable.is_empty and not replayed(entry, shard.generation)):
            continue
        if _starts_memtable(memtable, entry, where):
            full.append(memtable)
            memtable = core.new_memtable(memtable.generation + 1)
        rows = [log_rows(batch, base.schema, key, core.row_schema, where) for batch in entry.batches]
        memtable.reserve(rows)
        memtable.add(rows)
        memtable.note(position)
        entries += 1
        core.counters.add("recovery_rows", sum(batch.num_rows for batch in rows))
    if next_position < log.position:
        check_owner(log.place, log.epoch)  # a later owner may have flushed and collected entries
        missing = log.place.store.uri(log.place.entry(next_position))
        raise CorruptFileError(
            f"the log of shard {log.place.shard_id} has a gap: {missing} is missing, but there are later entries; "
            "restore the file, or remove the later entries to give up their rows"
        )
    for each in full:
        core.publish(each)
    return memtable, entries


def replayed(entry: LogEntry, generation: int) -> bool:
    """Return True if the rows of an entry are in no SSTable, given the generation of the next one."""
    if entry.is_sentinel or not entry.batches:
        return False
    return entry.generation is None or entry.generation >= generation


def _starts_memtable(memtable: Memtable, entry: LogEntry, where: str) -> bool:
    """Return True if the rows of an entry do not belong to the memtable of the entries before, but to the next one."""
    wanted = entry.generation
    if wanted is None or wanted == memtable.generation:
        return False
    if wanted != memtable.generation + 1 or memtable.is_empty:
        raise CorruptFileError(
            f"{where}: has rows of generation {wanted}, after those of {memtable.generation}; entries of the log are "
            "missing or in another order"
        )
    return True


def log_rows(
    batch: pa.RecordBatch, schema: Schema, key: KeyColumns, row_schema: pa.Schema, where: str
) -> pa.RecordBatch:
    """Return rows of an entry with the columns that the table has now, and the mark of deletions.

    Raises
    ------
    CorruptFileError
        The rows lack a column of the key.
    UnsupportedError
        A column was changed in a way that cannot be followed.
    """
    names = row_names(batch.schema, {field.name: field.id for field in schema.fields})
    for name, number in zip(key.names, key.ids, strict=True):
        if number not in names:
            raise CorruptFileError(f"{where}: batch is missing primary key column {name!r}")
        if batch.column(names[number]).null_count:
            raise CorruptFileError(f"{where}: rows have no value in {name!r}, which is part of the primary key")
    rows = conformed(batch, names, schema.fields, where)
    if TOMBSTONE in batch.schema.names:
        mark = batch.column(TOMBSTONE)
        if mark.type != pa.bool_() or mark.null_count:
            raise CorruptFileError(f"{where}: column {TOMBSTONE!r} is of type {mark.type} or has nulls")
    else:
        mark = pa.repeat(pa.scalar(False), batch.num_rows)
    return pa.RecordBatch.from_arrays([*rows.columns, mark], schema=row_schema)
