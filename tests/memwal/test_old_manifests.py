"""Tests of the removal of old manifests of shards, and of readers and writers that were held up meanwhile."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import lance
import pytest
from support.memwal.shards import SHARD, new_table, rows, seen, values

import lance_dataset
from lance_dataset.errors import CommitConflictError
from lance_dataset.memwal import collecting, shard_versions
from lance_dataset.memwal.places import ShardPlace
from lance_dataset.memwal.shard_manifest import decode_shard_manifest, encode_shard_manifest
from lance_dataset.memwal.shard_versions import (
    claim_shard,
    manifest_versions,
    read_shard,
    update_shard,
)

NOW = dt.timedelta(0)
KEPT = 8


@pytest.fixture(autouse=True)
def few_manifests_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (shard_versions, collecting):
        monkeypatch.setattr(module, "KEPT_MANIFESTS", KEPT)


def place_of(path: Path) -> ShardPlace:
    snapshot = lance_dataset.dataset(path).snapshot
    return ShardPlace(snapshot.store, snapshot.root, SHARD)


def many_claims(path: Path) -> ShardPlace:
    dataset = new_table(path, {0: "base"})
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({1: "put"}))
    place = place_of(path)
    for _ in range(KEPT + 6):
        claim_shard(place, 0)
    return place


def collect(path: Path, older_than: dt.timedelta = NOW) -> int:
    return lance_dataset.dataset(path).collect_mem_wal(older_than=older_than)["num_manifests"]


@pytest.mark.parametrize("hint", ["good", "stale", "none"])
@pytest.mark.parametrize("library", [lance, lance_dataset])
def test_the_newest_stay(tmp_path: Path, library: Any, hint: str) -> None:
    place = many_claims(tmp_path / "t")
    before = manifest_versions(place)
    assert collect(tmp_path / "t", dt.timedelta(hours=1)) == 0
    assert collect(tmp_path / "t") == len(before) - KEPT
    assert manifest_versions(place) == before[-KEPT:]
    assert collect(tmp_path / "t") == 0
    if hint == "stale":
        place.store.put_hint(place.hint, b'{"version":2}')
    elif hint == "none":
        place.store.delete(place.hint)
    found = read_shard(place)
    assert found is not None
    assert found.version == before[-1]
    with library.dataset(str(tmp_path / "t")).mem_wal_writer(SHARD) as writer:
        writer.put(rows({2: "after"}))
        assert values(writer.lsm_scanner().to_table()) == {0: "base", 1: "put", 2: "after"}
    assert seen(tmp_path / "t") == {0: "base", 1: "put", 2: "after"}
    lance_dataset.dataset(tmp_path / "t").validate()


def claim(place: ShardPlace, _: int) -> None:
    claim_shard(place, 0)


def publish(place: ShardPlace, epoch: int) -> None:
    update_shard(place, epoch, lambda known: replace(known, generation=9))


@pytest.mark.parametrize("change", [claim, publish])
def test_writers_that_were_held_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[ShardPlace, int], None]
) -> None:
    """A writer that takes the number of a manifest that was removed meanwhile owns nothing, and leaves nothing."""
    place = many_claims(tmp_path / "t")
    newest = read_shard(place)
    assert newest is not None
    old = decode_shard_manifest(place.store.read(place.manifest(2)), "version 2")
    collect(tmp_path / "t")
    versions = manifest_versions(place)
    with monkeypatch.context() as patch:
        patch.setattr(shard_versions, "read_shard", Mock(return_value=old))
        with pytest.raises(CommitConflictError, match="since version 2; open a new writer"):
            change(place, old.writer_epoch)
    assert manifest_versions(place) == versions
    assert read_shard(place) == newest


def test_creation_of_a_shard_that_was_held_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = many_claims(tmp_path / "t")
    collect(tmp_path / "t")
    versions = manifest_versions(place)
    with monkeypatch.context() as patch:
        patch.setattr(shard_versions, "read_shard", Mock(return_value=None))
        with pytest.raises(CommitConflictError, match="open a new writer"):
            claim_shard(place, 0)
    assert manifest_versions(place) == versions


def test_readers_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest that is removed between the search and the read is not missing: there are newer ones."""
    place = many_claims(tmp_path / "t")
    collect(tmp_path / "t")
    newest = manifest_versions(place)[-1]
    monkeypatch.setattr(shard_versions, "newest_version", Mock(side_effect=[2, 3, newest]))
    shard = read_shard(place)
    assert shard is not None
    assert shard.version == newest


def test_a_manifest_that_a_writer_without_checks_left(tmp_path: Path) -> None:
    """It takes the number of one that was removed, and the hint names it; the newest is found all the same."""
    place = many_claims(tmp_path / "t")
    newest = read_shard(place)
    collect(tmp_path / "t")
    assert newest is not None
    version = manifest_versions(place)[0] - 3
    stray = replace(newest, version=version, sstables=())
    place.store.put_if_absent(place.manifest(version), encode_shard_manifest(stray))
    place.store.put_hint(place.hint, b'{"version":%d}' % version)
    assert read_shard(place) == newest
    assert seen(tmp_path / "t") == {0: "base", 1: "put"}
