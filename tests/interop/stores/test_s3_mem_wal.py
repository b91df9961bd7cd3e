"""Tests of shards of a MemWAL on a real S3 server, in turn with the reference."""

from __future__ import annotations

import datetime as dt
import os
import random

import lance
import pytest
from support.memwal.shards import SHARD, keys, rows, values
from support.stores.s3_proxy import CUT_ANSWER, LOSE_ANSWER, LOSE_REQUEST, proxied
from support.stores.s3_server import S3Server

import lance_dataset
from lance_dataset.errors import CommitConflictError
from lance_dataset.mem_wal import LsmScanner

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
FAULTS = (LOSE_ANSWER, LOSE_REQUEST, CUT_ANSWER, 503, 500)


@pytest.fixture
def uri(s3_server: S3Server) -> str:
    return f"s3://{s3_server.new_bucket()}/some folder/table.lance"


def test_shards_in_turn(s3_server: S3Server, uri: str) -> None:
    """Both write to one shard in turn, take over what the other left in the log, and stop each other."""
    options = s3_server.options
    lance_dataset.write_dataset(rows({1: "a"}), uri, storage_options=options).initialize_mem_wal()
    ours = lance_dataset.dataset(uri, storage_options=options).mem_wal_writer(SHARD)
    ours.put(rows({1: "b", 2: "c"}))
    theirs = lance.dataset(uri, storage_options=options).mem_wal_writer(SHARD)
    with pytest.raises(CommitConflictError, match="Writer fenced"):
        ours.put(rows({1: "late"}))
    theirs.put(rows({3: "d"}))
    theirs.delete(keys(2))
    with lance_dataset.dataset(uri, storage_options=options).mem_wal_writer(SHARD, max_memtable_rows=2) as ours:
        with pytest.raises(OSError, match="Writer fenced"):
            theirs.put(rows({1: "late"}))
        assert values(ours.lsm_scanner().to_table()) == {1: "b", 3: "d"}
        ours.put(rows({4: "e"}))
    dataset = lance_dataset.dataset(uri, storage_options=options)
    found = LsmScanner.from_snapshots(dataset, dataset.mem_wal_snapshots()).to_table()
    assert values(found) == {1: "b", 3: "d", 4: "e"}
    assert dataset.merge_mem_wal()["num_deleted_keys"] == 1
    assert values(lance.dataset(uri, storage_options=options).to_table()) == {1: "b", 3: "d", 4: "e"}
    dataset.cleanup_old_versions(dt.timedelta(0))
    assert dataset.collect_mem_wal(older_than=dt.timedelta(0))["num_sstables"] > 0
    with lance.dataset(uri, storage_options=options).mem_wal_writer(SHARD) as theirs:
        theirs.put(rows({5: "f"}))
    dataset.merge_mem_wal()
    assert values(dataset.to_table()) == {1: "b", 3: "d", 4: "e", 5: "f"}


def test_lost_answers(s3_server: S3Server, uri: str) -> None:
    """A put whose answer is lost is acknowledged, and its rows are in the log once."""
    options = s3_server.options
    lance_dataset.write_dataset(rows({}), uri, storage_options=options).initialize_mem_wal()
    with proxied(s3_server) as proxy:
        lost: list[str] = []

        def fault(method: str, path: str) -> str | None:
            if method != "PUT" or path in lost:
                return None
            lost.append(path)
            return LOSE_ANSWER

        proxy.fault = fault
        there = lance_dataset.dataset(uri, storage_options=proxy.server.options)
        with there.mem_wal_writer(SHARD) as writer:
            writer.put(rows({1: "a"}))
            writer.put(rows({2: "b"}))
        assert sum("/wal/" in path for path in lost) == 2
        assert any("/manifest/" in path for path in lost)
    dataset = lance_dataset.dataset(uri, storage_options=options)
    assert dataset.mem_wal_status()[0].writer_epoch == 1
    dataset.merge_mem_wal()
    assert values(dataset.to_table()) == {1: "a", 2: "b"}


def test_claims_at_the_same_time(s3_server: S3Server, uri: str) -> None:
    """A claim whose request got lost does not take the equal claim of another writer for its own."""
    options = s3_server.options
    lance_dataset.write_dataset(rows({}), uri, storage_options=options).initialize_mem_wal()
    others: list[lance_dataset.mem_wal.ShardWriter] = []
    with proxied(s3_server) as proxy:

        def fault(method: str, path: str) -> str | None:
            if method != "PUT" or "/manifest/" not in path or others:
                return None
            others.append(lance_dataset.dataset(uri, storage_options=options).mem_wal_writer(SHARD))
            return LOSE_REQUEST

        proxy.fault = fault
        for number in range(2):
            late = lance_dataset.dataset(uri, storage_options=proxy.server.options)
            with pytest.raises(CommitConflictError, match="Writer fenced"):
                late.mem_wal_writer(SHARD)
            others.pop().put(rows({number: "other"}))
    with lance_dataset.dataset(uri, storage_options=options).mem_wal_writer(SHARD) as writer:
        assert values(writer.lsm_scanner().to_table()) == {0: "other", 1: "other"}


@pytest.mark.parametrize("seed", range(20 if THOROUGH else 1))
def test_bad_networks(s3_server: S3Server, uri: str, seed: int) -> None:
    """Rows of puts that returned are there once, those of others once or never, whatever the network does."""
    chance = random.Random(seed)
    options = s3_server.options
    lance_dataset.write_dataset(rows({}), uri, storage_options=options).initialize_mem_wal()
    model: dict[int, str] = {}
    doubtful: dict[int, str] = {}
    with proxied(s3_server) as proxy:
        proxy.fault = lambda method, path: chance.choice(FAULTS) if chance.random() < 0.1 else None
        writer = None
        for number in range(12):
            try:
                there = lance_dataset.dataset(uri, storage_options=proxy.server.options)
                writer = writer or there.mem_wal_writer(SHARD, max_memtable_rows=3)
                doubtful[number] = f"{number}"
                writer.put(rows({number: f"{number}"}))
                model[number] = doubtful.pop(number)
                if number % 4 == 3:
                    writer.flush()
                    there.merge_mem_wal()
                    there.cleanup_old_versions(dt.timedelta(0))
                    there.collect_mem_wal(older_than=dt.timedelta(0))
            except (OSError, ValueError):
                if writer is not None:
                    writer.abort()
                writer = None  # the next one finds what was logged
        if writer is not None:
            writer.abort()
    with lance_dataset.dataset(uri, storage_options=options).mem_wal_writer(SHARD) as writer:
        found = values(writer.lsm_scanner().to_table())
    assert model.items() <= found.items() <= (model | doubtful).items()
    assert len(model) > 4
    dataset = lance_dataset.dataset(uri, storage_options=options)
    dataset.merge_mem_wal()
    dataset.validate()
    assert values(lance.dataset(uri, storage_options=options).to_table()) == found
