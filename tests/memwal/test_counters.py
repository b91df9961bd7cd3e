"""Tests of the counters of shards: of writers, of merges, in the status of shards, and in OpenTelemetry."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from support.memwal.shards import SHARD, keys, new_table, rows

import lance_dataset
from lance_dataset.api import metrics
from lance_dataset.memwal.counters import ShardCounters


def test_of_writers_and_merges(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t", {1: "a", 2: "b"})
    assert dataset.mem_wal_status() == []
    writer = dataset.mem_wal_writer(SHARD)
    writer.put(rows({1: "c", 3: "d"}))
    writer.flush()
    writer.put(rows({3: "e"}))
    writer.delete(keys(2))
    found = writer.stats()
    writer.abort()
    assert {name: found[name] for name in ("put_count", "put_rows", "wal_flush_count", "memtable_flush_rows")} == {
        "put_count": 3,
        "put_rows": 4,
        "wal_flush_count": 3,
        "memtable_flush_rows": 2,
    }
    assert found["put_bytes"] > 0
    assert 0 < found["put_p50_us"] <= found["put_p99_us"] <= found["put_max_us"]
    assert found["recovery_count"] == found["backpressure_count"] == 0
    with dataset.mem_wal_writer(SHARD) as writer:
        again = writer.stats()
    assert [again[name] for name in ("recovery_count", "recovery_entries", "recovery_rows", "put_count")] == [
        1,
        2,
        2,
        0,
    ]
    dataset.merge_mem_wal()
    [status] = dataset.mem_wal_status()
    assert status.log_position == 4  # with the fence of the second writer
    assert status.log_bytes == 0
    counted = status.metrics
    assert [counted[name] for name in ("put_count", "put_rows", "memtable_flush_count", "recovery_count")] == [
        3,
        4,
        2,
        1,
    ]
    assert [counted[name] for name in ("merge_count", "merge_sstables", "merge_upserted_rows")] == [1, 2, 2]
    assert (counted["merge_deleted_keys"], counted["merge_conflicts"]) == (1, 0)


def test_names_of_the_reference(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t")
    with lance.dataset(str(tmp_path / "t")).mem_wal_writer(SHARD) as theirs:
        expected = theirs.stats()
    with dataset.mem_wal_writer(SHARD) as writer:
        assert expected.keys() <= writer.stats().keys()


def test_waits_for_flushes(tmp_path: Path) -> None:
    dataset = new_table(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD, max_unflushed_memtable_bytes=1000, durable_write=False) as writer:
        for number in range(30):
            writer.put(rows({number: "x" * 100}))
        assert writer.stats()["backpressure_count"] > 0


@pytest.mark.parametrize("nanos", [0, 1, 5, 1000, 1023, 1024, 999_999, 10**9, 2**40 + 1])
def test_times_of_puts(nanos: int) -> None:
    """Quantiles are at most a quarter too high, and never above the longest time."""
    counters = ShardCounters()
    for each in (nanos, nanos, 10**13):
        counters.add_step("put", each)
    shown = counters.shown()
    assert nanos // 1000 <= shown["put_p50_us"] <= nanos * 1.25 // 1000
    assert shown["put_p99_us"] == shown["put_max_us"] == 10**10
    assert ShardCounters().shown()["put_p99_us"] == 0


def test_in_opentelemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_instrumented", False)
    reader = InMemoryMetricReader()
    metrics.instrument_lance_metrics(MeterProvider([reader]))
    dataset = new_table(tmp_path / "t")
    with dataset.mem_wal_writer(SHARD) as writer:
        writer.put(rows({1: "a", 2: "b"}))
    lance_dataset.dataset(tmp_path / "t").merge_mem_wal()
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: point.value  # type: ignore[union-attr]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if str((point.attributes or {}).get("shard", "")).endswith(f"{tmp_path}/t/_mem_wal/{SHARD}")
    }
    assert found["lance_mem_wal_put_rows_total"] == found["lance_mem_wal_merge_upserted_rows_total"] == 2
    assert "lance_mem_wal_backpressure_count_total" not in found
