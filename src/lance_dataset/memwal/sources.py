"""Sources of rows of a table with shards: memtables, SSTables and the table itself, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_dataset.memwal.details import find_details
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.places import ShardPlace, list_shards
from lance_dataset.memwal.shard_versions import read_shard
from lance_dataset.memwal.sstables import OpenSsTable, open_sstable
from lance_dataset.read.snapshot import Snapshot

__all__ = ["LsmSources", "ShardTables", "flushed_shards", "open_sources"]


@dataclass(frozen=True)
class ShardTables:
    """SSTables of one shard that a reader uses.

    Attributes
    ----------
    shard_id
        The shard.
    sstables
        Folders of the SSTables by generation.
    """

    shard_id: str
    sstables: Mapping[int, str]


@dataclass(frozen=True)
class LsmSources:
    """Sources of one moment.

    Attributes
    ----------
    base
        The table.
    key
        Its key.
    memtables
        Memtables of one shard, newest first.
    shards
        SSTables of each shard, newest first. The first shard is that of the memtables, if there are any.
    """

    base: Snapshot
    key: KeyColumns
    memtables: tuple[Memtable, ...]
    shards: tuple[tuple[OpenSsTable, ...], ...]


def open_sources(
    base: Snapshot, key: KeyColumns, shards: Sequence[ShardTables], memtables: Sequence[Memtable] = ()
) -> LsmSources:
    """Open the sources of a table and its shards. SSTables that are merged into the table are left out.

    Errors are those of `open_sstable`.
    """
    details = find_details(base.manifest)
    compacted = {} if details is None else details.compacted
    opened = []
    for shard in shards:
        place = ShardPlace(base.store, base.root, shard.shard_id)
        merged = compacted.get(shard.shard_id, 0)
        opened.append(
            tuple(
                open_sstable(base.location, place, generation, path, key, base.manifest.schema)
                for generation, path in sorted(shard.sstables.items(), reverse=True)
                if generation > merged
            )
        )
    return LsmSources(base, key, tuple(memtables), tuple(opened))


def flushed_shards(base: Snapshot, only: str | None = None) -> list[ShardTables]:
    """Return the SSTables of all shards, or of one, as their newest manifests name them."""
    found = []
    for shard_id in list_shards(base.store, base.root) if only is None else [only]:
        manifest = read_shard(ShardPlace(base.store, base.root, shard_id))
        if manifest is not None:
            found.append(ShardTables(shard_id, {table.generation: table.path for table in manifest.sstables}))
    return found
