"""Sources of rows of a table with shards: memtables, SSTables and the table itself, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lance_dataset.memwal.details import find_details
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.places import ShardPlace, list_shards
from lance_dataset.memwal.routing import ShardRouting, may_hold
from lance_dataset.memwal.shard_manifest import SsTable
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
    marks
        Marks of the SSTables whose sharding values are known, by generation.
    """

    shard_id: str
    sstables: Mapping[int, str]
    marks: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, shard_id: str, sstables: Iterable[SsTable]) -> ShardTables:
        """Return what a manifest tells of SSTables."""
        tables = tuple(sstables)
        marks = {table.generation: table.marks for table in tables if table.marks is not None}
        return cls(shard_id, {table.generation: table.path for table in tables}, marks)


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
    routing
        Way from keys to sharding values, if SSTables have marks.
    marks
        Marks of the SSTables that have any.
    """

    base: Snapshot
    key: KeyColumns
    memtables: tuple[Memtable, ...]
    shards: tuple[tuple[OpenSsTable, ...], ...]
    routing: ShardRouting | None = None
    marks: Mapping[OpenSsTable, frozenset[str]] = field(default_factory=dict)

    def wanted(self, key: pa.RecordBatch) -> frozenset[str] | None:
        """Return the marks of the rows with a key; None if they are not known."""
        return None if self.routing is None else self.routing.marks(key.column(self.routing.column))


def open_sources(
    base: Snapshot,
    key: KeyColumns,
    shards: Sequence[ShardTables],
    memtables: Sequence[Memtable] = (),
    filter: str | None = None,
) -> LsmSources:
    """Open the sources of a table and its shards. SSTables that are merged into the table are left out.

    So are those that cannot have rows for which `filter` is true. Errors are those of `open_sstable`, and FilterError
    and FieldNotFoundError for a filter that does not fit.
    """
    routing = ShardRouting.of(base.manifest, key) if any(shard.marks for shard in shards) else None
    wanted = None if routing is None else routing.wanted(filter)
    details = find_details(base.manifest)
    compacted = {} if details is None else details.compacted
    opened: list[tuple[OpenSsTable, ...]] = []
    marks: dict[OpenSsTable, frozenset[str]] = {}
    for shard in shards:
        place = ShardPlace(base.store, base.root, shard.shard_id)
        merged = compacted.get(shard.shard_id, 0)
        tables = {
            generation: open_sstable(base.location, place, generation, path, key, base.manifest.schema)
            for generation, path in sorted(shard.sstables.items(), reverse=True)
            if generation > merged and may_hold(shard.marks.get(generation), wanted)
        }
        marks.update((tables[number], found) for number, found in shard.marks.items() if number in tables)
        opened.append(tuple(tables.values()))
    return LsmSources(base, key, tuple(memtables), tuple(opened), routing if marks else None, marks)


def flushed_shards(base: Snapshot, only: str | None = None) -> list[ShardTables]:
    """Return the SSTables of all shards, or of one, as their newest manifests name them."""
    found = []
    for shard_id in list_shards(base.store, base.root) if only is None else [only]:
        manifest = read_shard(ShardPlace(base.store, base.root, shard_id))
        if manifest is not None:
            found.append(ShardTables.of(shard_id, manifest.sstables))
    return found
