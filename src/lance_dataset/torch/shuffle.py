"""Random orders of rows that read only a few places at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.dataset import LanceDataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.sampler import Sampler

__all__ = ["ShuffledRows"]


class ShuffledRows(Sampler):
    """Sampler in random order: blocks of adjacent rows are shuffled, then the rows of some blocks together.

    Each process gets every `world_size`-th block. The order depends on `seed` and the epoch alone.

    Parameters
    ----------
    rank, world_size
        Number of this process, from 0, and number of processes.
    seed
        Seed of the random numbers.
    block_rows
        Number of adjacent rows that are read together.
    window_blocks
        Number of blocks whose rows are shuffled together, and are in memory at once. As many as the dataset has make
        all orders possible; 1 keeps the rows of a block together.
    """

    def __init__(
        self, rank: int = 0, world_size: int = 1, *, seed: int = 0, block_rows: int = 1024, window_blocks: int = 32
    ) -> None:
        for name, value in (("world_size", world_size), ("block_rows", block_rows), ("window_blocks", window_blocks)):
            if value < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {value}")
        if not 0 <= rank < world_size:
            raise InvalidInputError(f"rank must be from 0 to {world_size - 1}, got {rank}")
        self._rank = rank
        self._world_size = world_size
        self._seed = seed
        self._block = block_rows
        self._window = window_blocks
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, each of which has another order."""
        if epoch < 0:
            raise InvalidInputError(f"epoch must not be negative, got {epoch}")
        self._epoch = epoch

    def for_worker(self, worker: int, workers: int) -> ShuffledRows:
        """Return a sampler with the share that one of several workers of this process has."""
        own = copy.copy(self)
        own._rank, own._world_size = self._rank * workers + worker, self._world_size * workers
        return own

    def _windows(self, total: int) -> Iterator[NDArray[np.int64]]:
        """Yield the row numbers of each window, in the order of the loop."""
        random = np.random.default_rng((self._seed, self._epoch))
        starts = random.permutation(-(-total // self._block))[self._rank :: self._world_size]
        own = np.random.default_rng((self._seed, self._epoch, self._rank))
        for first in range(0, len(starts), self._window):
            chosen = starts[first : first + self._window, None] * self._block + np.arange(self._block)
            rows = chosen.ravel()
            rows = rows[rows < total]
            own.shuffle(rows)
            yield rows

    def __call__(
        self,
        ds: LanceDataset,
        *args: Any,
        batch_size: int = 128,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        batch_readahead: int = 16,
        with_row_id: bool = False,
        skip_batches: int = 0,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches; see `Sampler`.

        Parameters
        ----------
        ds, batch_size, columns, batch_readahead, with_row_id
            See `Sampler`.
        filter
            Not supported; use `ShardedBatchSampler`.
        skip_batches
            Number of batches to leave out, without reading them.
        *args, **kwargs
            Not used.
        """
        if filter is not None:
            raise InvalidInputError("ShuffledRows does not filter; use ShardedBatchSampler(randomize=True)")
        if batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {batch_size}")
        wanted = _with_row_id(ds, columns, with_row_id)
        skipped = skip_batches * batch_size
        rest: pa.Table | None = None
        for rows in self._windows(ds.count_rows()):
            left, skipped = rows[skipped:], max(0, skipped - len(rows))
            if not len(left):
                continue
            table = ds.take(left, wanted)
            table = table if rest is None else pa.concat_tables([rest, table])
            full = table.num_rows - table.num_rows % batch_size
            for start in range(0, full, batch_size):
                yield _batch(table.slice(start, batch_size))
            rest = table.slice(full) if full < table.num_rows else None
        if rest is not None:
            yield _batch(rest)


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.unify_dictionaries().combine_chunks().to_batches()[0]


def _with_row_id(
    ds: LanceDataset, columns: Sequence[str] | Mapping[str, str] | None, with_row_id: bool
) -> Sequence[str] | Mapping[str, str] | None:
    if not with_row_id:
        return columns
    if isinstance(columns, Mapping):
        return {**columns, "_rowid": "_rowid"}
    return [*(ds.schema.names if columns is None else columns), "_rowid"]
