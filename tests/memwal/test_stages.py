"""Shards that either library takes over from the other in every state: it reads, replays, fences, writes, merges."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow.compute as pc
import pytest
from support.memwal.shards import OTHER, SHARD, keys, new_table, rows, seen, snapshots_for, values

import lance_dataset
from lance_dataset.memwal.schemas import TOMBSTONE

NOW = dt.timedelta(0)
BOTH = [lance_dataset, lance]
Model = dict[int, str]
BASE: Model = dict.fromkeys(range(6), "base")


class Hand:
    """One library at work on a table."""

    def __init__(self, library: ModuleType, path: Path) -> None:
        self.library, self.path = library, path

    @property
    def is_ours(self) -> bool:
        return self.library is lance_dataset

    def dataset(self) -> Any:
        return self.library.dataset(str(self.path))

    def open(self, shard: str = SHARD, **options: int) -> Any:
        return self.dataset().mem_wal_writer(shard, **options)

    def seen(self) -> Model:
        """Return what this library reads of the table and all SSTables."""
        if self.is_ours:
            return seen(self.path)
        scanner = lance.mem_wal.LsmScanner.from_snapshots(self.dataset(), snapshots_for(self.path))
        return values(scanner.to_table())

    def seen_by(self, writer: Any) -> Model:
        """Return what a writer of this library reads."""
        return values(writer.lsm_scanner(None if self.is_ours else snapshots_for(self.path)).to_table())

    def merge(self) -> None:
        """Merge all SSTables, one by one, as users of pylance have to."""
        if self.is_ours:
            lance_dataset.dataset(self.path).merge_mem_wal()
            return
        for snapshot in snapshots_for(self.path):
            [folders] = [
                each.sstables
                for each in lance_dataset.dataset(self.path).mem_wal_snapshots()
                if each.shard_id == snapshot.shard_id
            ]
            merged = {
                each.shard_id: each.merged_generation for each in lance_dataset.dataset(self.path).mem_wal_status()
            }
            for generation, folder in sorted(folders.items()):
                if generation > merged[snapshot.shard_id]:
                    self._merge_one(snapshot.shard_id, generation, folder)

    def _merge_one(self, shard: str, generation: int, folder: str) -> None:
        table = lance.dataset(str(self.path / "_mem_wal" / shard / folder)).to_table()
        dead = table.filter(table[TOMBSTONE])["id"].to_pylist()
        if dead:
            self.dataset().delete(f"id IN ({', '.join(map(str, dead))})")
        live = table.filter(pc.invert(table[TOMBSTONE])).drop_columns([TOMBSTONE]).cast(self.dataset().schema)
        merge = self.dataset().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.mark_sstables_as_compacted([lance.mem_wal.CompactedSsTable(shard, generation)]).execute(live)


Stage = Callable[[Hand], tuple[Any, Model]]


def claimed(hand: Hand) -> tuple[Any, Model]:
    return hand.open(), BASE


def logged(hand: Hand) -> tuple[Any, Model]:
    writer = hand.open()
    writer.put(rows({1: "log", 7: "log"}))
    writer.delete(keys(0, 7))
    return writer, {key: text for key, text in (BASE | {1: "log"}).items() if key}


def flushed(hand: Hand) -> tuple[Any, Model]:
    writer, model = logged(hand)
    writer.close()
    return writer, model


def flushed_and_logged(hand: Hand) -> tuple[Any, Model]:
    _, model = flushed(hand)
    writer = hand.open()
    writer.put(rows({2: "more", 8: "more"}))
    writer.delete(keys(1))
    return writer, {key: text for key, text in (model | {2: "more", 8: "more"}).items() if key != 1}


def replayed(hand: Hand) -> tuple[Any, Model]:
    _, model = logged(hand)
    writer = hand.open()  # which finds the rows of a writer that was left alone
    writer.put(rows({3: "more"}))
    return writer, model | {3: "more"}


def rotated(hand: Hand) -> tuple[Any, Model]:
    writer = hand.open(max_memtable_rows=2)
    for number in range(5):
        writer.put(rows({number: "full", 10 + number: "full"}))
    return writer, BASE | {start + number: "full" for start in (0, 10) for number in range(5)}


def partly_merged(hand: Hand) -> tuple[Any, Model]:
    _, model = flushed(hand)
    hand.merge()
    writer = hand.open()
    writer.put(rows({1: "again"}))
    writer.close()
    writer = hand.open()
    writer.delete(keys(2))
    return writer, {key: text for key, text in (model | {1: "again"}).items() if key != 2}


def merged(hand: Hand) -> tuple[Any, Model]:
    writer, model = flushed(hand)
    hand.merge()
    return writer, model


def collected(hand: Hand) -> tuple[Any, Model]:
    writer, model = merged(hand)
    hand.dataset().cleanup_old_versions(NOW)
    lance_dataset.dataset(hand.path).collect_mem_wal(older_than=NOW)
    return writer, model


STAGES: list[Stage] = [
    claimed, logged, flushed, flushed_and_logged, replayed, rotated, partly_merged, merged, collected,
]  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("first", "second"), [BOTH, BOTH[::-1]], ids=["ours first", "pylance first"])
def test_taken_over(tmp_path: Path, stage: Stage, first: ModuleType, second: ModuleType) -> None:
    path = tmp_path / "t"
    new_table(path, BASE)
    one, two = Hand(first, path), Hand(second, path)
    left, model = stage(one)
    assert lance_dataset.dataset(path).doctor().is_healthy
    writer = two.open()
    assert two.seen_by(writer) == model
    with pytest.raises(OSError, match=r"fenced|closed"):
        left.put(rows({4: "late"}))
    writer.put(rows({5: "second", 20: "second"}))
    writer.delete(keys(3))
    model = {key: text for key, text in (model | {5: "second", 20: "second"}).items() if key != 3}
    assert two.seen_by(writer) == model
    back = one.open()  # and back, with the rows of the second in the log
    assert one.seen_by(back) == model
    with pytest.raises(OSError, match="fenced"):
        writer.put(rows({4: "late"}))
    back.close()
    assert one.seen() == two.seen() == model
    two.merge()
    assert one.seen() == two.seen() == model
    assert values(one.dataset().to_table()) == values(two.dataset().to_table()) == model
    lance_dataset.dataset(path).validate()
    assert lance_dataset.dataset(path).doctor().is_healthy


@pytest.mark.parametrize("merger", BOTH, ids=["ours merges", "pylance merges"])
def test_writers_of_both_on_shards_of_their_own(tmp_path: Path, merger: ModuleType) -> None:
    path = tmp_path / "t"
    new_table(path, BASE)
    ours, theirs = Hand(lance_dataset, path), Hand(lance, path)
    mine, other = ours.open(SHARD, max_memtable_rows=4), theirs.open(OTHER, max_memtable_rows=4)
    model = dict(BASE)
    for number in range(12):
        mine.put(rows({100 + number: "ours", 0: f"{number}"}))
        other.put(rows({200 + number: "theirs", 1: f"{number}"}))
        model |= {100 + number: "ours", 0: f"{number}", 200 + number: "theirs", 1: f"{number}"}
        if number == 6:
            mine.delete(keys(2, 101))
            other.delete(keys(3, 201))
            model = {key: text for key, text in model.items() if key not in (2, 3, 101, 201)}
            Hand(merger, path).merge()
    mine.close()
    other.close()
    assert ours.seen() == theirs.seen() == model
    Hand(merger, path).merge()
    assert values(ours.dataset().to_table()) == values(theirs.dataset().to_table()) == model
    statuses = lance_dataset.dataset(path).mem_wal_status()
    assert [(each.sstables, each.log_entries) for each in statuses] == [(0, 0), (0, 0)]
