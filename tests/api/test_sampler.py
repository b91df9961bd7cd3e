"""Tests of samplers: the rows they return, compared with the reference where it promises an order."""

from __future__ import annotations

import random
import sys
import threading
import time
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import lance
import lance.sampler
import pyarrow as pa
import pytest
from lance._dataset.sharded_batch_iterator import ShardedBatchIterator as TheirIterator

import lance_dataset
from lance_dataset import sampler
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.io import local

MODULES = [sampler, lance.sampler]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return a dataset of 103 rows in eleven fragments, three of them deleted, in both libraries."""
    path = tmp_path_factory.mktemp("sampler") / "t.lance"
    table = pa.table({"id": pa.array(range(103), pa.int32()), "name": [f"n{n}" for n in range(103)]})
    lance.write_dataset(table, path, max_rows_per_file=10).delete("id IN (5, 17, 18)")
    return lance_dataset.dataset(path), lance.dataset(path)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].to_pylist() for batch in batches]


def joined(batches: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(batches))


def everything(dataset: Any) -> list[int]:
    return dataset.to_table(columns=["id"])["id"].to_pylist()


@pytest.mark.parametrize("options", [{}, {"with_row_id": True}, {"columns": ["id"]}])
def test_full_scan(pair: tuple[Any, Any], options: dict[str, Any]) -> None:
    ours, theirs = (
        [batch.to_pydict() for batch in module.FullScanSampler()(each, batch_size=7, **options)]
        for module, each in zip(MODULES, pair, strict=True)
    )
    assert ours == theirs
    assert ids(sampler.FullScanSampler()(pair[0], batch_size=4, filter="id < 19")) == [
        [0, 1, 2, 3], [4, 6, 7, 8], [9], [10, 11, 12, 13], [14, 15, 16]
    ]  # fmt: skip


@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("kind", ["ShardedFragmentSampler", "ShardedBatchSampler"])
def test_sharded_as_the_reference(pair: tuple[Any, Any], kind: str, randomize: bool, seed: int) -> None:
    seen = []
    for rank in range(3):
        ours, theirs = (
            ids(getattr(module, kind)(rank, 3, randomize, seed)(each, batch_size=9, columns=["id"]))
            for module, each in zip(MODULES, pair, strict=True)
        )
        assert ours == theirs
        seen += [value for batch in ours for value in batch]
    assert sorted(seen) == everything(pair[0])


@pytest.mark.parametrize("columns", [None, ["name", "id"], {"id": "id", "more": "id + 1"}])
def test_sharded_batches_with_columns(pair: tuple[Any, Any], columns: Any) -> None:
    for batch in sampler.ShardedBatchSampler(1, 2)(pair[0], batch_size=9, columns=columns, with_row_id=True):
        assert batch.schema.names == [*(columns or ["id", "name"]), "_rowid"]
        expected = pair[0].to_table(columns=["id"], with_row_id=True).to_pydict()
        numbers = dict(zip(expected["id"], expected["_rowid"], strict=True))
        assert [numbers[value] for value in batch["id"].to_pylist()] == batch["_rowid"].to_pylist()


@pytest.mark.parametrize("randomize", [False, True])
def test_sharded_batches_with_a_filter(pair: tuple[Any, Any], randomize: bool) -> None:
    """Sharded batches with a filter hold the right rows, also if a batch of the scan has no row for a rank.

    The reference fails in that case.
    """
    kept = [value for value in everything(pair[0]) if value % 2 == 0]
    for rank in range(3):
        mine = kept[rank::3]
        made = sampler.ShardedBatchSampler(rank, 3, randomize)
        found = ids(made(pair[0], batch_size=4, columns=["name", "id"], filter="id % 2 = 0"))
        expected = [mine[start : start + 4] for start in range(0, len(mine), 4)]
        assert sorted(found) == expected
        assert (found == expected) is not randomize
    for each, module in zip(pair, MODULES, strict=True):
        assert ids(module.ShardedBatchSampler(1, 3)(each, batch_size=9, columns=["id"], filter="id % 2 = 0")) == [
            kept[1::3][:9], kept[1::3][9:]
        ]  # fmt: skip


@pytest.mark.parametrize("kind", ["ShardedFragmentSampler", "ShardedBatchSampler"])
def test_epochs(pair: tuple[Any, Any], kind: str) -> None:
    def order(rank: int, epoch: int) -> list[list[int]]:
        made = getattr(sampler, kind)(rank, 2, randomize=True, seed=3)
        made.set_epoch(epoch)
        return ids(made(pair[0], batch_size=9, columns=["id"]))

    assert order(0, 1) == order(0, 1)
    assert order(0, 1) != order(0, 2)
    for epoch in (1, 2):
        seen = [value for rank in (0, 1) for batch in order(rank, epoch) for value in batch]
        assert sorted(seen) == everything(pair[0])


@pytest.mark.parametrize("total", [0, 1, 100, 1000])
@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("world_size", [1, 3, 4])
def test_fixed_batches(total: int, randomize: bool, world_size: int) -> None:
    seen = []
    for rank in range(world_size):
        ours, theirs = (module.ShardedFixedBatchSampler(rank, world_size, randomize, 1, 9, total) for module in MODULES)
        for epoch in (0, 3):
            ours.set_epoch(epoch)
            theirs.set_epoch(epoch)
            assert list(ours) == list(theirs)
            assert len(ours) == len(list(ours))
        seen += [value for batch in ours for value in batch]
    assert sorted(seen) == list(range(total))


@pytest.mark.parametrize("granularity", ["fragment", "batch"])
@pytest.mark.filterwarnings("ignore:ShardedBatchIterator is deprecated")
def test_the_older_iterator(pair: tuple[Any, Any], granularity: str) -> None:
    options: dict[str, Any] = {"columns": ["id"], "batch_size": 9, "granularity": granularity}
    options["with_row_id"] = granularity == "fragment"  # the reference does not support it for batches
    for rank in range(3):
        ours, theirs = (
            sampler.ShardedBatchIterator(pair[0], rank, 3, **options),
            TheirIterator(pair[1], rank, 3, **options),
        )
        assert [batch.to_pydict() for batch in ours] == [batch.to_pydict() for batch in theirs]
        assert ids(ours) == ids(ours)
    by_path = sampler.ShardedBatchIterator(pair[0].uri, 0, 1)
    assert joined(ids(by_path)) == everything(pair[0])


def test_the_older_iterator_says_that_it_is(pair: tuple[Any, Any]) -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        sampler.ShardedBatchIterator(pair[0], 0, 1)
    with pytest.warns(UserWarning, match="deprecated"), pytest.raises(InvalidInputError, match="granularity"):
        sampler.ShardedBatchIterator(pair[0], 0, 1, granularity="x")


@pytest.mark.parametrize("count", [0, 1, 30, 50, 97, 99, 100, 1000])
@pytest.mark.parametrize("max_takes", [1, 3, 7, 2048])
def test_maybe_sample(pair: tuple[Any, Any], count: int, max_takes: int) -> None:
    for seed in range(5):
        random.seed(seed)
        batches = ids(sampler.maybe_sample(pair[0], count, "id", batch_size=20, max_takes=max_takes))
        found = joined(batches)
        assert len(found) == len(set(found)) == min(count, 100)
        assert set(found) <= set(everything(pair[0]))
        assert all(len(batch) <= 20 for batch in batches)


def test_maybe_sample_reads_from_few_places(pair: tuple[Any, Any]) -> None:
    rows = joined(ids(sampler.maybe_sample(pair[0].uri, 40, ["id"], max_takes=4)))
    known = everything(pair[0])
    places = [known.index(value) for value in rows]
    runs = 1 + sum(after != before + 1 for before, after in pairwise(places))
    assert runs <= 4


@pytest.mark.parametrize("count", [0, 3, 10, 11])
def test_maybe_sample_with_a_filter(pair: tuple[Any, Any], count: int) -> None:
    found = joined(ids(sampler.maybe_sample(pair[0], count, ["id"], batch_size=4, filt="id < 11")))
    assert len(set(found)) == len(found) == min(count, 10)
    assert set(found) <= set(range(11)) - {5}


def test_reservoir_sampling() -> None:
    assert sampler.reservoir_sampling(range(3), 5) == [0, 1, 2]
    assert sampler.reservoir_sampling(range(3), 0) == []
    counts = [0] * 10
    random.seed(1)
    for _ in range(3000):
        chosen = sampler.reservoir_sampling(iter(range(10)), 3)
        assert len(set(chosen)) == 3
        for value in chosen:
            counts[value] += 1
    assert all(750 < count < 1050 for count in counts)


def test_wrong_arguments(pair: tuple[Any, Any]) -> None:
    for rank, world_size in ((3, 3), (-1, 2), (0, 0)):
        with pytest.raises(ValueError):
            sampler.ShardedBatchSampler(rank, world_size)
    with pytest.raises(TypeError):
        sampler.ShardedFragmentSampler("0", 1)
    with pytest.raises(ValueError, match="batch_size"):
        sampler.ShardedFixedBatchSampler(0, 1, total_num_rows=5)
    with pytest.raises(ValueError, match="batch_size"):
        list(sampler.ShardedBatchSampler(0, 1)(pair[0], batch_size=0))
    with pytest.raises(ValueError):
        list(sampler.maybe_sample(pair[0], -1, ["id"]))
    with pytest.raises(ValueError, match="max_takes"):
        list(sampler.maybe_sample(pair[0], 1, ["id"], max_takes=0))
    with pytest.raises(TypeError):
        sampler.Sampler()


def test_rank_of_torch_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match="torch"):
        sampler.ShardedBatchSampler.from_torch()


def test_a_loop_that_stops_early_leaves_no_work(pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "is_network_file", lambda descriptor, device: True)
    dataset = lance_dataset.dataset(pair[0].uri, storage_options={"mmap": "false"})
    batches = sampler.ShardedBatchSampler(0, 1)(dataset, batch_size=3)
    begun: list[int] = []
    ended: list[int] = []
    take = lance_dataset.LanceDataset.take

    def slow(dataset: lance_dataset.LanceDataset, rows: Any, *given: Any) -> pa.Table:
        begun.append(len(rows))
        time.sleep(0.02)
        taken = take(dataset, rows, *given)
        ended.append(len(rows))
        return taken

    monkeypatch.setattr(lance_dataset.LanceDataset, "take", slow)
    next(batches)
    assert [each for each in threading.enumerate() if each.name.startswith("lance-fetch")]
    batches.close()
    assert len(begun) == len(ended)
    time.sleep(0.05)
    assert len(begun) == len(ended)


@pytest.mark.parametrize("mmap", ["true", "false"])
def test_reading_ahead_changes_nothing(pair: tuple[Any, Any], mmap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "is_network_file", lambda descriptor, device: True)
    dataset = lance_dataset.dataset(pair[0].uri, storage_options={"mmap": mmap})
    for ahead in (0, 1, 16, 1000):
        batches = sampler.ShardedBatchSampler(0, 1)(dataset, batch_size=7, batch_readahead=ahead)
        assert joined(ids(batches)) == everything(dataset)
    with pytest.raises(ValueError, match="nix"):
        list(sampler.ShardedBatchSampler(0, 1)(dataset, columns=["nix"]))


def test_an_own_sampler(pair: tuple[Any, Any]) -> None:
    class Backwards(sampler.FragmentSampler):
        def iter_fragments(self, ds: Any, *args: Any, **kwargs: Any) -> Any:
            yield from reversed(ds.get_fragments())

    assert joined(ids(Backwards()(pair[0], batch_size=100)))[:3] == [100, 101, 102]


def test_large_dictionaries_come_as_one_batch(tmp_path: Path) -> None:
    table = pa.table({"id": range(20), "d": pa.array([f"v{n}" for n in range(20)]).dictionary_encode()})
    dataset = lance_dataset.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=4)
    batches = list(sampler.ShardedBatchSampler(0, 1)(dataset, batch_size=10))
    assert [batch.num_rows for batch in batches] == [10, 10]
    assert pa.Table.from_batches(batches)["d"].to_pylist() == table["d"].to_pylist()
