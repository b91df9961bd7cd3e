"""Samplers, which choose the batches that a training loop, or one of its processes, iterates over."""

from __future__ import annotations

import copy
import os
import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.api.dataset.dataset import LanceDataset
from lance_dataset.api.fragment.fragment import LanceFragment
from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.threads.streams import stream
from lance_dataset.threads.waiting import fetch_pool, fetching

__all__ = [
    "FragmentSampler",
    "FullScanSampler",
    "Sampler",
    "ShardedBatchIterator",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "maybe_sample",
    "reservoir_sampling",
]

Columns: TypeAlias = "Sequence[str] | Mapping[str, str] | None"
_Item = TypeVar("_Item")
_Own = TypeVar("_Own", bound="_Sharded")


class Sampler(ABC):
    """Base class of samplers, which iterate over batches of a dataset. Subclasses implement `__call__`."""

    @abstractmethod
    def __call__(
        self,
        ds: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches.

        Parameters
        ----------
        ds
            The dataset.
        batch_size
            Maximum number of rows in a batch.
        columns, filter
            As for `LanceDataset.scanner`.
        batch_readahead
            Maximum number of batches to read ahead if files are on other machines.
        with_row_id
            True to append ``_rowid``.
        *args, **kwargs
            Arguments of user-defined samplers. The samplers of this package ignore other keywords, like the reference.
        """


class FragmentSampler(Sampler):
    """Base class of samplers that iterate fragment by fragment. Subclasses implement `iter_fragments`."""

    def __call__(  # type: ignore[override]
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches; see `Sampler`. The last batch of each fragment may be shorter."""
        for fragment in self.iter_fragments(dataset, *args, **kwargs):
            yield from fragment.to_batches(
                columns=columns,
                batch_size=batch_size,
                filter=filter,
                with_row_id=bool(with_row_id),
                batch_readahead=batch_readahead,
                strict_batch_size=True,
            )

    @abstractmethod
    def iter_fragments(self, ds: LanceDataset, *args: Any, **kwargs: Any) -> Iterator[LanceFragment]:
        """Yield the fragments in the order to read them."""


class FullScanSampler(FragmentSampler):
    """Sampler that iterates over the whole dataset in order."""

    def iter_fragments(  # type: ignore[override]
        self, dataset: LanceDataset, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """Yield all fragments."""
        yield from dataset.get_fragments()


class _Sharded:
    """Base class of samplers that divide the work between processes.

    Parameters
    ----------
    rank
        Number of this process, from 0.
    world_size
        Number of processes.
    randomize
        True for a random order, which is the same in all processes with the same `seed` and epoch.
    seed
        Seed of the random numbers.
    """

    def __init__(self, rank: int, world_size: int, randomize: bool = False, seed: int = 0) -> None:
        check_count("rank", rank)
        check_count("world_size", world_size)
        if rank >= world_size:
            raise InvalidInputError(f"rank must be below world_size ({world_size}), got {rank}")
        self._rank = int(rank)
        self._world_size = int(world_size)
        self._randomize = bool(randomize)
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch. Each epoch has a different random order."""
        check_count("epoch", epoch)
        self._epoch = int(epoch)

    def for_worker(self: _Own, worker: int, workers: int) -> _Own:
        """Return a sampler with the share that one of several workers of this process has."""
        own = copy.copy(self)
        own._rank, own._world_size = self._rank * workers + worker, self._world_size * workers
        return own

    def _ordered(self, items: list[_Item]) -> list[_Item]:
        if self._randomize:
            random.Random(self._seed + self._epoch).shuffle(items)
        return items


class ShardedFragmentSampler(_Sharded, FragmentSampler):
    """Sampler that gives each process every `world_size`-th fragment, starting at `rank`.

    Parameters
    ----------
    rank, world_size, randomize, seed
        See `ShardedBatchSampler`; `randomize` shuffles the fragments.
    """

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedFragmentSampler:
        """Make the sampler for this process of ``torch.distributed``."""
        return ShardedFragmentSampler(*_torch_rank(), randomize, seed)

    def iter_fragments(  # type: ignore[override]
        self, dataset: LanceDataset, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """Yield the fragments of this process."""
        yield from self._ordered(dataset.get_fragments())[self._rank :: self._world_size]


class ShardedBatchSampler(_Sharded, Sampler):
    """Sampler that gives each process every `world_size`-th batch, starting at `rank`.

    Only the rows of this process are read. With a filter, each process gets every `world_size`-th row that the filter
    keeps, and its batches consist of these rows.

    Parameters
    ----------
    rank
        Number of this process, from 0.
    world_size
        Number of processes.
    randomize
        True for batches in random order, which is the same in all processes with the same `seed` and epoch.
    seed
        Seed of the random numbers.
    """

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedBatchSampler:
        """Make the sampler for this process of ``torch.distributed``."""
        return ShardedBatchSampler(*_torch_rank(), randomize, seed)

    def __call__(  # type: ignore[override]
        self,
        dataset: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Columns = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool | None = None,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of this process; see `Sampler`."""
        _check_batch_size(batch_size)
        if filter is None:
            total = dataset.count_rows()
            starts = range(self._rank * batch_size, total, self._world_size * batch_size)
            parts = [np.arange(start, min(start + batch_size, total)) for start in self._ordered(list(starts))]
        else:
            mine = _matching(dataset, filter)[self._rank :: self._world_size]
            parts = self._ordered(_pieces(mine, batch_size))
        yield from _taken(dataset, parts, _with_row_id(dataset, columns, with_row_id), batch_readahead)


class ShardedFixedBatchSampler(ShardedBatchSampler):
    """Sampler of row numbers: each process gets a share of consecutive rows, divided into batches.

    Parameters
    ----------
    rank, world_size, randomize, seed
        See `ShardedBatchSampler`.
    batch_size
        Number of rows in a batch. The last batch of a process may be shorter.
    total_num_rows
        Number of rows of the dataset.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        randomize: bool = False,
        seed: int = 0,
        batch_size: int = 0,
        total_num_rows: int = 0,
    ) -> None:
        super().__init__(rank, world_size, randomize, seed)
        _check_batch_size(batch_size)
        check_count("total_num_rows", total_num_rows)
        share = -(-total_num_rows // world_size)
        self._rows = range(min(rank * share, total_num_rows), min((rank + 1) * share, total_num_rows))
        self._batch_size = int(batch_size)

    @staticmethod
    def from_torch(  # type: ignore[override]
        batch_size: int, total_num_rows: int, randomize: bool = False, seed: int = 0
    ) -> ShardedFixedBatchSampler:
        """Make the sampler for this process of ``torch.distributed``."""
        return ShardedFixedBatchSampler(*_torch_rank(), randomize, seed, batch_size, total_num_rows)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield lists of row numbers."""
        starts = list(range(self._rows.start, self._rows.stop, self._batch_size))
        for start in self._ordered(starts):
            yield list(range(start, min(start + self._batch_size, self._rows.stop)))

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self._rows) // self._batch_size)


class ShardedBatchIterator:
    """Iterator over the batches of one process. Use `ShardedFragmentSampler` or `ShardedBatchSampler` instead.

    .. deprecated:: 0.1

    Parameters
    ----------
    data
        The dataset, or its location.
    rank, world_size
        Number of this process, from 0, and number of processes.
    columns, batch_size, batch_readahead, with_row_id
        See `Sampler`.
    granularity
        ``fragment`` to divide the fragments between the processes, ``batch`` to divide the batches.
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | LanceDataset,
        rank: int,
        world_size: int,
        *,
        columns: Columns = None,
        batch_size: int = 1024 * 10,
        granularity: Literal["fragment", "batch"] = "fragment",
        batch_readahead: int = 8,
        with_row_id: bool = False,
    ) -> None:
        warnings.warn("ShardedBatchIterator is deprecated, use a Sampler instead", UserWarning, stacklevel=2)
        samplers: dict[str, type[ShardedFragmentSampler] | type[ShardedBatchSampler]]
        samplers = {"fragment": ShardedFragmentSampler, "batch": ShardedBatchSampler}
        if granularity not in samplers:
            raise InvalidInputError(f"Unrecognized granularity: {granularity!r}; use 'fragment' or 'batch'")
        self._sampler = samplers[granularity](rank, world_size)
        self._dataset = _opened(data)
        self._options: dict[str, Any] = {
            "columns": columns,
            "batch_size": batch_size,
            "batch_readahead": batch_readahead,
            "with_row_id": with_row_id,
        }

    @staticmethod
    def from_torch(data: str | os.PathLike[str] | LanceDataset, **options: Any) -> ShardedBatchIterator:
        """Make the iterator for this process of ``torch.distributed``. Options are those of the class."""
        return ShardedBatchIterator(data, *_torch_rank(), **options)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        return self._sampler(self._dataset, **self._options)


def maybe_sample(
    dataset: str | os.PathLike[str] | LanceDataset,
    n: int,
    columns: Sequence[str] | Mapping[str, str] | str,
    batch_size: int = 1024 * 10,
    max_takes: int = 2048,
    filt: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows chosen at random without repeats, or all rows if the dataset has no more than `n`.

    Parameters
    ----------
    dataset
        The dataset, or its location.
    n
        Number of rows.
    columns
        Columns to read.
    batch_size
        Maximum number of rows in a batch.
    max_takes
        Approximate maximum number of places to read from. If `n` is larger, runs of adjacent rows are chosen together.
        With a filter, every row is chosen individually.
    filt
        Filter that the rows must pass.

    Yields
    ------
    pyarrow.RecordBatch
        Rows in random order, or all rows in their own order.

    Raises
    ------
    InvalidInputError
        `n` is negative, or `batch_size` or `max_takes` is below 1.
    """
    check_count("n", n)
    _check_batch_size(batch_size)
    if max_takes < 1:
        raise InvalidInputError(f"max_takes must be at least 1, got {max_takes}")
    opened = _opened(dataset)
    wanted: Columns = [columns] if isinstance(columns, str) else columns
    if filt is not None:
        rows = _matching(opened, filt)
        if n < len(rows):
            rows = rows[random.sample(range(len(rows)), n)]
    elif n >= opened.count_rows():
        yield from opened.to_batches(columns=wanted, batch_size=batch_size)
        return
    else:
        rows = _random_rows(opened.count_rows(), n, max_takes)
    yield from _taken(opened, _pieces(rows, batch_size), wanted, 2)


def _random_rows(total: int, count: int, max_takes: int) -> NDArray[np.int64]:
    """Choose distinct row numbers below `total`, in about `max_takes` runs at most."""
    if count <= max_takes:
        return np.array(random.sample(range(total), count), np.int64)
    length = -(-count // max_takes)
    needed, available = -(-count // length), total // length
    if needed > available:  # nearly all rows
        return np.array(random.sample(range(total), count), np.int64)
    first = random.randrange(total - available * length + 1)
    starts = first + length * np.array(random.sample(range(available), needed), np.int64)
    return (starts[:, None] + np.arange(length)).ravel()[:count]


def reservoir_sampling(stream: Iterable[_Item], k: int) -> list[_Item]:
    """Choose `k` items of a stream at random, or all items if there are fewer.

    Raises
    ------
    InvalidInputError
        `k` is negative.
    """
    check_count("k", k)
    kept: list[_Item] = []
    for seen, item in enumerate(stream):
        if seen < k:
            kept.append(item)
            continue
        place = random.randrange(seen + 1)
        if place < k:
            kept[place] = item
    return kept


def _check_batch_size(batch_size: object) -> None:
    check_count("batch_size", batch_size)
    if batch_size == 0:
        raise InvalidInputError("batch_size must be at least 1")


def _opened(data: str | os.PathLike[str] | LanceDataset) -> LanceDataset:
    return data if isinstance(data, LanceDataset) else LanceDataset(data)


def _matching(dataset: LanceDataset, filter: str) -> NDArray[np.int64]:
    """Return the numbers of the rows that a filter keeps."""
    found = dataset.scanner(columns=["_rowoffset"], filter=filter).to_table()
    return found.column(0).to_numpy().astype(np.int64)


def _with_row_id(dataset: LanceDataset, columns: Columns, with_row_id: bool | None) -> Columns:
    if not with_row_id:
        return columns
    if isinstance(columns, Mapping):
        return {**columns, "_rowid": "_rowid"}
    names = list(dataset.schema.names if columns is None else columns)
    return names if "_rowid" in names else [*names, "_rowid"]


def _pieces(rows: NDArray[np.int64], length: int) -> list[NDArray[np.int64]]:
    return [rows[start : start + length] for start in range(0, len(rows), length)]


def _taken(
    dataset: LanceDataset, parts: Sequence[NDArray[np.int64]], columns: Columns, ahead: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each part as a batch.

    Parts are read ahead only if files are on other machines. For mapped files, handing a batch from thread to thread
    takes longer than reading it.
    """
    waits = dataset.snapshot.reader.is_remote
    take = fetching(lambda part: dataset.take(part, columns))
    for table in stream(take, parts, ahead=ahead if waits else 0, pool=fetch_pool, join=True):
        # values of more than 2 GiB do not fit into one array
        yield from table.unify_dictionaries().combine_chunks().to_batches()


def _torch_rank() -> tuple[int, int]:
    """Return the rank of this process and the number of processes according to ``torch.distributed``."""
    try:
        from torch import distributed
    except ModuleNotFoundError as error:
        raise UnsupportedError("from_torch needs the package torch: pip install torch") from error
    return distributed.get_rank(), distributed.get_world_size()
