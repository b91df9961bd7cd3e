"""Tests of the commands on shards of a MemWAL."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.memwal.shards import SHARD, keys, new_table, rows, values
from support.processes.cli_runs import run, run_json

import lance_dataset


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a dataset with an SSTable and a log of two entries."""
    writer = new_table(tmp_path / "t", {1: "a", 2: "b"}).mem_wal_writer(SHARD)
    writer.put(rows({2: "c"}))
    writer.flush()
    writer.put(rows({3: "d", 4: "e"}))
    writer.delete(keys(1))
    writer.abort()
    return tmp_path / "t"


def test_status(path: Path) -> None:
    [shard] = run_json("wal", "status", path)["shards"]
    assert shard["shard_id"] == SHARD
    assert [shard[name] for name in ("sstables", "sstable_rows", "log_entries", "log_rows")] == [1, 1, 2, 3]
    assert shard["log_position"] == 3
    assert shard["log_bytes"] > 0
    assert shard["metrics"]["put_rows"] == 4  # of the writer in this process
    assert SHARD in run("wal", "status", path).stdout
    bare = lance_dataset.write_dataset(rows({}), path.parent / "bare")
    assert bare.mem_wal_index_details() is None
    failed = run("wal", "status", path.parent / "bare", status=1)
    assert "initialize_mem_wal" in failed.output


def test_flush_and_merge(path: Path) -> None:
    assert run_json("wal", "flush", path)["num_rows"] == 3
    assert "flushed 0 rows of 0 shards" in run("wal", "flush", path).stdout
    facts = run_json("wal", "merge", path, "--shard", SHARD, "--collect-older-than-days", "1")
    assert [facts[name] for name in ("num_sstables", "num_upserted_rows", "num_deleted_keys")] == [2, 3, 1]
    assert facts["removed_sstables"] == 0
    assert values(lance_dataset.dataset(path).to_table()) == {2: "c", 3: "d", 4: "e"}
    assert "merged 0 SSTables" in run("wal", "merge", path).stdout
    failed = run("wal", "merge", path, "--shard", "x", status=1)
    assert "must be a UUID" in failed.output
