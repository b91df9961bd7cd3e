"""Tests of datasets for PyTorch: the batches of pylance, workers, random orders, state, blobs."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.torch.data
import lance.torch.dist
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import lance_dataset
from lance_dataset.arrow import bfloat16_array
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.sampler import FullScanSampler, ShardedBatchSampler, ShardedFragmentSampler
from lance_dataset.torch import data, dist, preferred_device
from lance_dataset.torch.data import (
    LanceDataset,
    SafeLanceDataset,
    ShuffledRows,
    TensorDataset,
    get_safe_loader,
)

ROWS = 100


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    numbers = np.arange(2 * ROWS, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 2)
    table = pa.table({"i": range(ROWS), "f": pa.array(numbers[:ROWS]), "v": vectors})
    target = str(tmp_path_factory.mktemp("torch") / "data.lance")
    lance_dataset.write_dataset(table, target, max_rows_per_file=17)
    return target


def plain(batches: Any) -> list[Any]:
    """Return tensors as Python values."""
    return [
        {name: (str(each.dtype), each.tolist()) for name, each in batch.items()}
        if isinstance(batch, dict)
        else (str(batch.dtype), batch.tolist())
        for batch in batches
    ]


@pytest.mark.parametrize("batch_size", [5, 17, 40])
@pytest.mark.parametrize(
    "options",
    [
        *({}, {"columns": ["i"]}, {"columns": ["v"]}, {"columns": ["f", "i"], "with_row_id": True}, {"cache": True}),
        *({"rank": 1, "world_size": 2}, {"shard_granularity": "batch"}, {"filter": "i > 33"}, {"world_size": 3}),
        *({"rank": r, "world_size": 3, "shard_granularity": g} for r in (0, 2) for g in ("batch", "fragment")),
    ],
    ids=str,
)
def test_batches_are_those_of_pylance(path: str, batch_size: int, options: dict[str, Any]) -> None:
    ours = LanceDataset(path, batch_size, **options)
    theirs = lance.torch.data.LanceDataset(lance.dataset(path), batch_size, **options)
    first = plain(ours)
    assert first == plain(theirs)
    assert first == plain(ours)
    assert ours.schema.names == theirs.schema.names


@pytest.mark.parametrize(
    "values",
    [
        *(pa.array([1, None, 3]), pa.array([1.0, None]), pa.array([True, False]), pa.array([1, 2], pa.uint8())),
        *(pa.array([1, 2], pa.uint16()), pa.array([1, 2], pa.uint64()), pa.array([1, 2], pa.float16())),
        *(pa.array([[1, 2]], pa.list_(pa.uint8(), 2)), pa.array([[1, 2], [3, None]], pa.list_(pa.float32(), 2))),
        *(bfloat16_array([1, 2]), pa.FixedSizeListArray.from_arrays(bfloat16_array([1, 2, 3, 4]), 2)),
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12.0).reshape(2, 2, 3)),
    ],
    ids=lambda each: str(each.type),
)
def test_types_of_tensors(tmp_path: Path, values: pa.Array) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"a": values, "b": range(len(values))}), tmp_path / "t")
    ours = LanceDataset(dataset, 2, columns=["a"])
    theirs = lance.torch.data.LanceDataset(lance.dataset(tmp_path / "t"), 2, columns=["a"])
    assert str(plain(ours)) == str(plain(theirs))
    for batch in ours:
        batch.zero_()  # tensors may be changed


def test_null_vectors(tmp_path: Path) -> None:
    """They have NaN, whatever the file has in their place."""
    values = pa.array([[1, 2], None], pa.list_(pa.float32(), 2))
    (batch,) = LanceDataset(lance_dataset.write_dataset(pa.table({"a": values}), tmp_path / "t"), 2)
    assert str(batch.tolist()) == "[[1.0, 2.0], [nan, nan]]"


def test_other_types_are_refused(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"a": ["x"], "b": [[1]]}), tmp_path / "t")
    for column in ("a", "b"):
        with pytest.raises(UnsupportedError, match=f"column '{column}'"):
            list(LanceDataset(dataset, 2, columns=[column]))
    assert list(LanceDataset(dataset, 2, to_tensor_fn=lambda batch, **_: batch.num_rows)) == [1]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_divide_the_rows(path: str, context: str) -> None:
    """Once each, for every way of choosing rows, in processes that are forked or spawned after the dataset was read."""
    options: list[dict[str, Any]] = [{"sampler": ShuffledRows(block_rows=4)}]
    if context == "fork":
        options += [{}, {"shard_granularity": "batch"}]
        options += [{"sampler": FullScanSampler()}, {"sampler": ShardedBatchSampler(0, 1, True)}, {"samples": ROWS}]
        options += [{"rank": 0, "world_size": 1}, {"sampler": ShardedFragmentSampler(0, 1, True)}, {"cache": True}]
    for each in options:
        dataset = LanceDataset(path, 7, columns=["i"], **each)
        assert len(list(dataset)) > 1
        loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=context)
        assert sorted(torch.cat(list(loader)).tolist()) == list(range(ROWS))


def test_rows_by_number(path: str) -> None:
    dataset = SafeLanceDataset(path)
    assert (len(dataset), dataset[3], dataset[ROWS - 1]["i"]) == (ROWS, {"i": 3, "f": 3.0, "v": [6.0, 7.0]}, ROWS - 1)
    assert dataset.__getitems__([5, 1]) == lance.torch.data.SafeLanceDataset(path).__getitems__([5, 1])
    assert SafeLanceDataset(path, columns=["i"])[2] == {"i": 2}
    with pytest.raises(OSError):
        dataset[ROWS]
    for loader in (
        get_safe_loader(dataset, batch_size=30, num_workers=1, shuffle=True),
        get_safe_loader(dataset, batch_size=30, num_workers=0),
        DataLoader(dataset, batch_size=30, num_workers=2, multiprocessing_context="fork"),
    ):
        assert sorted(torch.cat([batch["i"] for batch in loader]).tolist()) == list(range(ROWS))


def test_all_processes_read_one_version(tmp_path: Path) -> None:
    lance_dataset.write_dataset(pa.table({"i": [1, 2]}), tmp_path / "t")
    dataset = SafeLanceDataset(tmp_path / "t")
    lance_dataset.write_dataset(pa.table({"i": [3]}), tmp_path / "t", mode="overwrite")
    assert pickle.loads(pickle.dumps(dataset))[1] == {"i": 2}


def rows_of(sampler: ShuffledRows, path: str, batch_size: int = 7, **options: Any) -> list[list[int]]:
    batches = sampler(lance_dataset.dataset(path), batch_size=batch_size, columns=["i"], **options)
    return [batch["i"].to_pylist() for batch in batches]


def flat(lists: list[list[int]]) -> list[int]:
    return [row for rows in lists for row in rows]


def test_shuffled_rows(path: str) -> None:
    sampler = ShuffledRows(seed=3, block_rows=8, window_blocks=4)
    first = rows_of(sampler, path)
    assert first == rows_of(ShuffledRows(seed=3, block_rows=8, window_blocks=4), path)
    assert [len(batch) for batch in first] == [7] * 14 + [2]
    assert sorted(flat(first)) == list(range(ROWS))
    sampler.set_epoch(1)
    assert first != rows_of(sampler, path) != rows_of(ShuffledRows(seed=4), path)
    for skipped in range(17):
        sampler.set_epoch(0)
        assert rows_of(sampler, path, skip_batches=skipped) == first[skipped:]
    shares = [flat(rows_of(ShuffledRows(rank, 3, block_rows=8), path)) for rank in range(3)]
    assert sorted(flat(shares)) == list(range(ROWS))
    (batch,) = ShuffledRows()(lance_dataset.dataset(path), batch_size=200, columns=["i"], with_row_id=True)
    assert batch.schema.names == ["i", "_rowid"]
    for wrong in ({"rank": 1}, {"world_size": 0}, {"block_rows": 0}, {"window_blocks": 0}):
        with pytest.raises(InvalidInputError):
            ShuffledRows(**wrong)
    with pytest.raises(InvalidInputError, match="filter"):
        rows_of(sampler, path, filter="i > 3")


def test_shuffled_rows_are_spread_evenly(path: str) -> None:
    """Over many epochs each row comes in each quarter of the loop about equally often."""
    counts: Counter[tuple[int, int]] = Counter()
    sampler = ShuffledRows(block_rows=10, window_blocks=10)
    for epoch in range(200):
        sampler.set_epoch(epoch)
        for quarter, rows in enumerate(rows_of(sampler, path, 25)):
            counts.update((row, quarter) for row in rows)
    assert all(20 < counts[row, quarter] < 85 for row in range(ROWS) for quarter in range(4))


@pytest.mark.parametrize(
    "make",
    [lambda: None, lambda: ShuffledRows(block_rows=4), lambda: ShardedBatchSampler(0, 1, True)],
    ids=["scan", "rows", "batches"],
)
@pytest.mark.parametrize("cache", [None, True])
def test_state(path: str, make: Callable[[], Any], cache: bool | None) -> None:
    """A loop that is resumed at any place gets the batches that an undisturbed one gets, and so do later epochs."""

    def fresh() -> LanceDataset:
        return LanceDataset(path, 9, columns=["i"], sampler=make(), cache=cache)

    whole = fresh()
    whole.set_epoch(2)
    expected = plain(whole)
    assert whole.state_dict() == {"epoch": 2, "batches": 0}
    for stop in range(len(expected)):
        broken = fresh()
        broken.set_epoch(2)
        loop = iter(broken)
        assert plain(next(loop) for _ in range(stop)) == expected[:stop]
        resumed = fresh()
        resumed.load_state_dict(broken.state_dict())
        assert plain(resumed) == expected[stop:]
        assert plain(resumed) == expected
    with pytest.raises(InvalidInputError):
        whole.load_state_dict({"epoch": "x"})  # type: ignore[dict-item]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_blobs_are_read_when_asked(tmp_path: Path, version: str) -> None:
    if version == "2.0":
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        table = pa.table(
            [pa.array([b"abc", None, b"de"], pa.large_binary()), pa.array([1, 2, 3])],
            schema=pa.schema([field, ("k", pa.int64())]),
        )
    else:
        table = pa.table({"b": lance_dataset.blob_array([b"abc", None, b"de"]), "k": [1, 2, 3]})
    dataset = lance_dataset.write_dataset(table, tmp_path / "t", data_storage_version=version)

    def sizes(batch: dict[str, Any], *, use_blob_api: bool, **_: object) -> torch.Tensor:
        assert use_blob_api
        return torch.tensor([-1 if blob is None else len(blob.readall()) for blob in batch["b"]])

    for options in ({}, {"sampler": ShuffledRows(block_rows=1)}, {"columns": ["b"]}):
        loops = LanceDataset(dataset, 2, to_tensor_fn=sizes, **options)  # type: ignore[arg-type]
        assert sorted(torch.cat(list(loops)).tolist()) == [-1, 2, 3]
    assert plain(LanceDataset(dataset, 3, columns=["k"])) == [("torch.int64", [1, 2, 3])]
    with pytest.raises(NotImplementedError, match="to_tensor_fn"):
        list(LanceDataset(dataset, 2))


def test_tensors_in_batches() -> None:
    for values in (np.arange(10.0), torch.arange(10)):
        ours = TensorDataset(values, 4)
        assert [each.tolist() for each in ours] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        assert len(ours) == len(lance.torch.data.TensorDataset(values, 4)) == 3
    with pytest.raises(InvalidInputError):
        TensorDataset(np.arange(3.0), 0)


def test_ranks_without_processes() -> None:
    for name in dist.__all__:
        assert getattr(dist, name)() == getattr(lance.torch.dist, name)()
    assert preferred_device("cpu") == torch.device("cpu")
    assert isinstance(preferred_device(), torch.device)


def test_wrong_options(path: str) -> None:
    wrong: list[dict[str, Any]] = [{"batch_size": 0}, {"samples": -1}, {"shard_granularity": "x"}]
    wrong += [{"rank": 2, "world_size": 2}, {"samples": 1, "sampler": FullScanSampler()}]
    for options in wrong:
        with pytest.raises(InvalidInputError):
            LanceDataset(path, **{"batch_size": 1, **options})


def test_processes_divide_the_rows(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their ranks in torch.distributed, and then by the workers of each."""
    found: list[int] = []
    monkeypatch.setattr(data, "get_dist_world_size", lambda: 3)
    for rank in range(3):
        monkeypatch.setattr(data, "get_dist_rank", lambda rank=rank: rank)
        dataset = LanceDataset(path, 7, columns=["i"])
        loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
        found += torch.cat(list(loader)).tolist()
        assert torch.cat(list(LanceDataset(path, 7, columns=["i"], auto_detect_rank=False))).tolist() == [*range(ROWS)]
    assert sorted(found) == list(range(ROWS))


def test_samplers_ask_for_the_rank(path: str) -> None:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        batches = ShardedBatchSampler.from_torch()(lance_dataset.dataset(path), batch_size=50, columns=["i"])
        assert [batch.num_rows for batch in batches] == [50, 50]
        assert (dist.get_global_rank(), dist.get_global_world_size()) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()
