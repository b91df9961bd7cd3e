"""State of shards, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset.memwal.counters import counters_of_all
from lance_dataset.memwal.details import required_details
from lance_dataset.memwal.log import log_end, read_entries
from lance_dataset.memwal.opening import replayed
from lance_dataset.memwal.places import ShardPlace, list_shards
from lance_dataset.memwal.shard_versions import read_shard
from lance_dataset.read.snapshot import Snapshot

__all__ = ["ShardStatus", "shard_statuses"]


@dataclass(frozen=True)
class ShardStatus:
    """State of one shard.

    Attributes
    ----------
    shard_id
        Id of the shard.
    version, writer_epoch
        Number of its manifest, and number of claims so far.
    generation
        Generation of the next SSTable.
    merged_generation
        Highest generation that is in the table.
    sstables, sstable_rows
        SSTables that are not in the table, and the number of their rows.
    log_entries, log_rows, log_bytes
        Entries of the log that are in no SSTable, and the numbers of their rows and of the bytes of these.
    is_sealed
        True if no writer may claim the shard.
    log_position
        Position of the newest entry of the log, that is, the number of entries ever written.
    metrics
        Counters of the writers and merges of the shard in this process; empty without any.
    """

    shard_id: str
    version: int
    writer_epoch: int
    generation: int
    merged_generation: int
    sstables: int
    sstable_rows: int
    log_entries: int
    log_rows: int
    is_sealed: bool
    log_bytes: int = 0
    log_position: int = 0
    metrics: Mapping[str, int] = field(default_factory=dict)


def shard_statuses(snapshot: Snapshot) -> list[ShardStatus]:
    """Return the state of all shards of a table.

    Raises
    ------
    InvalidInputError
        The table has no MemWAL.
    CorruptFileError, UnsupportedError
        A manifest or the log of a shard cannot be read.
    """
    details = required_details(snapshot.manifest)
    found, known = [], counters_of_all()
    for shard_id in list_shards(snapshot.store, snapshot.root):
        place = ShardPlace(snapshot.store, snapshot.root, shard_id)
        shard = read_shard(place)
        if shard is None:
            continue
        merged = details.compacted.get(shard_id, 0)
        waiting = [table for table in shard.sstables if table.generation > merged]
        entries = [
            entry for _, entry in read_entries(place, shard.replay_after + 1) if replayed(entry, shard.generation)
        ]
        found.append(
            ShardStatus(
                shard_id,
                shard.version,
                shard.writer_epoch,
                shard.generation,
                merged,
                len(waiting),
                sum(table.physical_rows or 0 for table in waiting),
                len(entries),
                sum(batch.num_rows for entry in entries for batch in entry.batches),
                shard.sealed,
                sum(batch.nbytes for entry in entries for batch in entry.batches),
                log_end(place, shard) - 1,
                known.get(place.uri, {}),
            )
        )
    return found
