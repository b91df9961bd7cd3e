"""A table with shards, its rows as a dictionary, and pylance on the same shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_dataset
from lance_dataset.mem_wal import LsmScanner

__all__ = ["OTHER", "SCHEMA", "SHARD", "keys", "new_table", "rows", "seen", "snapshots_for", "values"]

SHARD = "11111111-2222-4333-8444-555555555555"
OTHER = "aaaaaaaa-2222-4333-8444-555555555555"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("v", pa.string()),
        pa.field("n", pa.int32(), False),
    ]
)


def rows(content: dict[int, str]) -> pa.Table:
    """Return rows with keys and texts; the number of a row is its key."""
    return pa.table([list(content), list(content.values()), list(content)], schema=SCHEMA)


def keys(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def values(table: pa.Table) -> dict[int, str]:
    """Return rows as a dictionary; each key must occur once, and its number belong to it."""
    assert table["n"].to_pylist() == table["id"].to_pylist()
    found = dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))
    assert len(found) == table.num_rows
    return found


def new_table(path: Path | str, content: dict[int, str] | None = None, **given: Any) -> lance_dataset.LanceDataset:
    dataset = lance_dataset.write_dataset(rows(content or {}), str(path), **given)
    dataset.initialize_mem_wal()
    return dataset


def seen(path: Path | str) -> dict[int, str]:
    """Return what a reader in another process sees: the newest version of the table, and all SSTables."""
    dataset = lance_dataset.dataset(str(path))
    snapshots = dataset.mem_wal_snapshots()
    return values(LsmScanner.from_snapshots(lance_dataset.dataset(str(path)), snapshots).to_table())


def snapshots_for(path: Path | str) -> list[lance.mem_wal.ShardSnapshot]:
    """Return the SSTables of all shards for pylance, without those that are merged."""
    found = []
    dataset = lance_dataset.dataset(str(path))
    merged = {each.shard_id: each.merged_generation for each in dataset.mem_wal_status()}
    for mine in dataset.mem_wal_snapshots():
        snapshot = lance.mem_wal.ShardSnapshot(mine.shard_id)
        for generation, folder in mine.sstables.items():
            if generation > merged[mine.shard_id]:
                snapshot.with_sstable(generation, folder)
        found.append(snapshot)
    return found
