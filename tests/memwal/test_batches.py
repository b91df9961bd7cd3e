"""Tests of batches of jobs that are published as SSTables: whole, once, in crashes, and beside other writers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.crashes.crash_disk import Disk, after_kill, materialize, recorded, tree_of
from support.memwal.shards import OTHER, SHARD, keys, new_table, rows, seen, values

import lance_dataset
from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.io.durable import forget_folders
from lance_dataset.memwal import batches
from lance_dataset.memwal.batches import put_batch
from lance_dataset.memwal.opening import open_writer
from lance_dataset.memwal.shard_manifest import ShardManifest, decode_shard_manifest, encode_shard_manifest
from lance_dataset.memwal.writing import WriterCore

QUICK = {"storage_options": {"local_fsync": "false"}}


def put(path: Path, number: int, new: dict[int, str], *gone: int, job: str = "job") -> bool:
    snapshot = lance_dataset.dataset(path, **QUICK).snapshot  # type: ignore[arg-type]
    return put_batch(snapshot, SHARD, job, number, rows(new), keys(*gone) if gone else None)


def test_once(tmp_path: Path) -> None:
    path = tmp_path / "t"
    new_table(path, dict.fromkeys(range(4), "base"))
    assert put(path, 0, {1: "zero", 9: "zero"}, 2)
    assert not put(path, 0, {1: "again", 8: "again"})
    assert put(path, 3, {1: "three"})  # numbers may be left out
    assert not put(path, 2, {1: "late"})
    assert put(path, 0, {3: "other"}, job="other job")
    assert put(path, 4, {}) == put(path, 4, {})  # nothing to publish
    expected = {0: "base", 1: "three", 3: "other", 9: "zero"}
    assert seen(path) == expected
    dataset = lance_dataset.dataset(path)
    dataset.merge_mem_wal()
    assert values(dataset.to_table()) == values(lance.dataset(str(path)).to_table()) == expected
    assert not put(path, 3, {1: "after the merge"})


def test_beside_other_writers(tmp_path: Path) -> None:
    """Rows that a writer left in the log are older than the batch. The writer is stopped."""
    path = tmp_path / "t"
    writer = new_table(path, {1: "base"}).mem_wal_writer(SHARD)
    writer.put(rows({1: "log", 2: "log"}))
    assert put(path, 0, {1: "batch"})
    with pytest.raises(OSError, match="fenced"):
        writer.put(rows({1: "late"}))
    writer.abort()
    assert seen(path) == {1: "batch", 2: "log"}
    with lance.dataset(str(path)).mem_wal_writer(SHARD) as theirs:
        theirs.put(rows({3: "theirs"}))
    assert put(path, 1, {4: "batch"})
    assert seen(path) == {1: "batch", 2: "log", 3: "theirs", 4: "batch"}
    assert lance_dataset.dataset(path).mem_wal_status()[0].metrics["put_rows"] >= 3


def test_late_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that another attempt publishes, with later ones, just before the shard is claimed is not repeated."""
    path = tmp_path / "t"
    new_table(path, {1: "base"})

    def overtaken(*args: Any) -> WriterCore:
        monkeypatch.setattr(batches, "open_writer", open_writer)
        assert put(path, 5, {1: "five"})
        assert put(path, 6, {1: "six"})
        return open_writer(*args)

    monkeypatch.setattr(batches, "open_writer", overtaken)
    assert not put(path, 5, {1: "five"})
    assert not put(path, 6, {1: "six again"})
    assert seen(path) == {1: "six"}
    assert lance_dataset.dataset(path).mem_wal_status()[0].sstables == 2


def test_bad_batches(tmp_path: Path) -> None:
    """Nothing of them is published, and they can be repeated."""
    path = tmp_path / "t"
    dataset = new_table(path)
    twice = pa.concat_tables([rows({1: "a"}), rows({1: "b"})])
    with pytest.raises(InvalidInputError, match="a key occurs twice"):
        put_batch(dataset.snapshot, SHARD, "job", 0, twice)
    with pytest.raises(InvalidInputError, match="a key occurs twice"):
        put(path, 0, {1: "a"}, 1)
    with pytest.raises(SchemaError):
        put_batch(dataset.snapshot, SHARD, "job", 0, pa.table({"id": ["x"]}))
    assert seen(path) == {}
    assert put(path, 0, {1: "a"})
    bare = lance_dataset.write_dataset(pa.table({"n": [1]}), tmp_path / "bare")
    with pytest.raises(InvalidInputError, match="initialize_mem_wal"):
        put_batch(bare.snapshot, SHARD, "job", 0, pa.table({"n": [1]}))
    bare.initialize_mem_wal()
    with pytest.raises(InvalidInputError, match="no primary key"):
        put_batch(lance_dataset.dataset(tmp_path / "bare").snapshot, OTHER, "job", 0, pa.table({"n": [1]}))


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "disk")
        path.mkdir()
        yield path


def test_kills(root: Path) -> None:
    """After a kill at any call, a batch is seen whole or not at all. Repeated with other rows, it counts once."""
    path, model = root / "t", dict.fromkeys(range(4), "base")
    new_table(path, model, **QUICK)
    put(path, 0, {1: "zero"})
    before = model | {1: "zero"}
    after = {1: "one", 2: "base", 3: "base", 7: "one"}
    initial = tree_of(root)
    forget_folders("")
    with recorded(root) as recording:
        put(path, 1, {1: "one", 7: "one"}, 0)
    disk = Disk(initial)
    outcomes = set()
    for number, event in enumerate([None, *recording.events]):
        if event is not None:
            disk.apply(event)
        if number % 2 and number != len(recording.events):
            continue
        materialize(after_kill(disk), root)
        forget_folders("")
        found = seen(path)
        assert found in (before, after)
        assert put(path, 1, {2: "again"}) == (found == before)
        assert seen(path) == (after if found == after else before | {2: "again"})
        outcomes.add(found == after)
    assert outcomes == {False, True}


def test_manifests() -> None:
    """The jobs are in a field that others skip."""
    manifest = ShardManifest(SHARD, jobs={"a job with ä": 3, "": 2**63})
    data = encode_shard_manifest(manifest)
    assert decode_shard_manifest(data, "here") == manifest
    assert decode_shard_manifest(data + b"\xd2\x3e\x02\xff\xff", "here").jobs == {}
    assert decode_shard_manifest(encode_shard_manifest(ShardManifest(SHARD)), "here").jobs == {}
