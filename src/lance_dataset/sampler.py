"""Samplers: the batches that a training loop, or one of several processes of it, goes through."""

from __future__ import annotations

import random
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.arguments import check_count
from lance_dataset.errors import InvalidInputError, UnsupportedError

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset
    from lance_dataset.fragment import LanceFragment

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
#: Batches that are waited for at the same time, where files are on other machines.
_MOST_THREADS = 16


class Sampler(ABC):
    """Goes through batches of a dataset. A sampler of your own has a `__call__` that yields record batches."""

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
        """The batches.

        Parameters
        ----------
        ds
            The dataset.
        batch_size
            Most rows of a batch.
        columns, filter
            As for `LanceDataset.scanner`.
        batch_readahead
            Most batches to read ahead, where files are on other machines.
        with_row_id
            Append ``_rowid``.
        *args, **kwargs
            For samplers of your own; those here ignore other keywords, as the reference does.
        """


class FragmentSampler(Sampler):
    """Goes through the rows fragment by fragment. One of your own has an `iter_fragments` that yields fragments."""

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
        """The batches, see `Sampler`; the last one of each fragment may be shorter."""
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
        """The fragments, in the order to read them."""


class FullScanSampler(FragmentSampler):
    """Goes through the whole dataset in order."""

    def iter_fragments(  # type: ignore[override]
        self, dataset: LanceDataset, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """All fragments."""
        yield from dataset.get_fragments()


class _Sharded:
    """Which part of the work this process has.

    Parameters
    ----------
    rank
        Number of the process, from 0.
    world_size
        Number of processes.
    randomize
        Whether the order is random: the same for all processes of the same `seed` and epoch.
    seed
        Start of the random numbers.
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
        """Say which time the data is gone through: each has a random order of its own."""
        check_count("epoch", epoch)
        self._epoch = int(epoch)

    def _ordered(self, items: list[_Item]) -> list[_Item]:
        if self._randomize:
            random.Random(self._seed + self._epoch).shuffle(items)
        return items


class ShardedFragmentSampler(_Sharded, FragmentSampler):
    """Gives each process some of the fragments: every `world_size`-th, from `rank` on.

    Parameters
    ----------
    rank, world_size, randomize, seed
        See `ShardedBatchSampler`; `randomize` shuffles the fragments.
    """

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedFragmentSampler:
        """The sampler for this process of ``torch.distributed``."""
        return ShardedFragmentSampler(*_torch_rank(), randomize, seed)

    def iter_fragments(  # type: ignore[override]
        self, dataset: LanceDataset, **kwargs: Any
    ) -> Iterator[LanceFragment]:
        """The fragments of this process."""
        yield from self._ordered(dataset.get_fragments())[self._rank :: self._world_size]


class ShardedBatchSampler(_Sharded, Sampler):
    """Gives each process some of the batches: every `world_size`-th, from `rank` on.

    Only the rows of this process are read. With a filter it is every `world_size`-th row that the filter keeps, and
    batches are made of those.

    Parameters
    ----------
    rank
        Number of the process, from 0.
    world_size
        Number of processes.
    randomize
        Whether the batches come in random order: the same for all processes of the same `seed` and epoch.
    seed
        Start of the random numbers.
    """

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedBatchSampler:
        """The sampler for this process of ``torch.distributed``."""
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
        """The batches, see `Sampler`."""
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
    """Lists of row numbers for each process: its share of consecutive rows, cut into batches.

    Parameters
    ----------
    rank, world_size, randomize, seed
        See `ShardedBatchSampler`.
    batch_size
        Rows of a batch; the last one of a process may be shorter.
    total_num_rows
        Rows of the dataset.
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
        """The sampler for this process of ``torch.distributed``."""
        return ShardedFixedBatchSampler(*_torch_rank(), randomize, seed, batch_size, total_num_rows)

    def __iter__(self) -> Iterator[list[int]]:
        starts = list(range(self._rows.start, self._rows.stop, self._batch_size))
        for start in self._ordered(starts):
            yield list(range(start, min(start + self._batch_size, self._rows.stop)))

    def __len__(self) -> int:
        return -(-len(self._rows) // self._batch_size)


class ShardedBatchIterator:
    """Batches of one of several processes; `ShardedFragmentSampler` and `ShardedBatchSampler` replace it.

    .. deprecated:: 0.1

    Parameters
    ----------
    data
        The dataset, or its location.
    rank, world_size
        Number of the process, and of processes.
    columns, batch_size, batch_readahead, with_row_id
        See `Sampler`.
    granularity
        Whether processes share the ``fragment`` s or the ``batch`` es.
    """

    def __init__(
        self,
        data: str | Path | LanceDataset,
        rank: int,
        world_size: int,
        *,
        columns: Columns = None,
        batch_size: int = 1024 * 10,
        granularity: str = "fragment",
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
    def from_torch(data: str | Path | LanceDataset, **options: Any) -> ShardedBatchIterator:
        """The iterator for this process of ``torch.distributed``; options as of the class."""
        return ShardedBatchIterator(data, *_torch_rank(), **options)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._sampler(self._dataset, **self._options)


def maybe_sample(
    dataset: str | Path | LanceDataset,
    n: int,
    columns: Sequence[str] | Mapping[str, str] | str,
    batch_size: int = 1024 * 10,
    max_takes: int = 2048,
    filt: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows chosen at random without repeats, or all rows where there are no more than asked for.

    Parameters
    ----------
    dataset
        The dataset, or its location.
    n
        Number of rows.
    columns
        What to read of them.
    batch_size
        Most rows of a batch.
    max_takes
        About as many places to read from: of more rows than this, neighbours are chosen together. With a filter every
        row is chosen by itself.
    filt
        Choose among the rows that this filter keeps.

    Yields
    ------
    pyarrow.RecordBatch
        In random order; all rows in their own order.

    Raises
    ------
    InvalidInputError
        A negative number of rows, or a number below 1 of the others.
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
    """Different row numbers below `total`, in at most about `max_takes` runs."""
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
    """As many items of a stream, chosen at random; all of them where there are fewer.

    Raises
    ------
    InvalidInputError
        A negative number.
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


def _opened(data: str | Path | LanceDataset) -> LanceDataset:
    from lance_dataset.dataset import LanceDataset

    return data if isinstance(data, LanceDataset) else LanceDataset(data)


def _matching(dataset: LanceDataset, filter: str) -> NDArray[np.int64]:
    """Numbers of the rows that a filter keeps."""
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
    """The rows of each part as a batch.

    Some are read ahead where reading means waiting; of mapped files, handing batches from thread to thread takes longer
    than making them.
    """
    waits = dataset._reader.is_remote
    calls = [partial(dataset.take, part, columns) for part in parts]
    for table in _ahead(calls, ahead if waits else 0):
        # values of more than 2 GiB do not fit into one array
        yield from table.unify_dictionaries().combine_chunks().to_batches()


def _ahead(calls: Sequence[Callable[[], _Item]], ahead: int) -> Iterator[_Item]:
    """Results of calls in their order, of which up to `ahead` are made before they are asked for."""
    if ahead < 1 or len(calls) < 2:
        yield from (call() for call in calls)
        return
    rest = iter(calls)
    with ThreadPoolExecutor(min(ahead, _MOST_THREADS), thread_name_prefix="lance-sampler") as pool:
        waiting: deque[Future[_Item]] = deque(pool.submit(call) for call in islice(rest, ahead))
        try:
            while waiting:
                done = waiting.popleft().result()
                waiting.extend(pool.submit(call) for call in islice(rest, 1))
                yield done
        finally:
            for future in waiting:
                future.cancel()


def _torch_rank() -> tuple[int, int]:
    """Number of this process, and of all, as ``torch.distributed`` knows them."""
    try:
        from torch import distributed
    except ModuleNotFoundError as error:
        raise UnsupportedError("from_torch needs the package torch: pip install torch") from error
    return distributed.get_rank(), distributed.get_world_size()
