"""Partitioned merges, for keys whose index would not fit in memory: both sides are divided by the hash of their keys.

This is the Grace hash join (Kitsuregawa, Tanaka and Moto-oka, Application of Hash to Data Base Machine, 1983). Equal
keys go to the same partition. Every partition has its own index, and only one index is in memory at a time. Source and
target are read once each. Rows that must be kept are written to temporary files, one per partition and side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.keys.key_columns import key_columns
from lance_dataset.changes.keys.key_index import KeyIndex, index_size
from lance_dataset.read.spool import Spool
from lancecodec.join_keys import KeyParts

__all__ = ["INDEX_BUDGET", "Partition", "PartitionedKeys", "partitions_needed"]

#: Maximum size in bytes of the index of a merge's source.
INDEX_BUDGET = 1 << 30
#: Maximum number of partitions. Each one has an open file while rows are divided, and systems limit open files.
_MOST_PARTITIONS = 128
#: Allowance for partitions of unequal size.
_UNEVEN = 1.2
#: Number of source rows that are divided together.
_ROWS_AT_ONCE = 1 << 18


def partitions_needed(columns: Sequence[pa.ChunkedArray], budget: int = INDEX_BUDGET) -> int:
    """Return the number of partitions that keep the index of each within `budget` bytes.

    A result of 1 means that one `KeyIndex` of all keys is small enough. The result is at most 128, so for very large
    sources the indices exceed the budget.
    """
    size = index_size(len(columns[0]), sum(column.nbytes for column in columns))
    if size <= budget:
        return 1
    return min(int(size * _UNEVEN / budget) + 1, _MOST_PARTITIONS)


@dataclass(frozen=True, eq=False)
class Partition:
    """Part of a merge with a subset of the keys.

    Attributes
    ----------
    index
        Index of the source's keys in the partition. Its row numbers count the rows of the partition.
    rows
        int64, ascending: source row number of each row of the partition.
    targets
        The target's rows in the partition, in their original order. They must be consumed before the next partition is
        requested.
    """

    index: KeyIndex
    rows: NDArray[np.int64]
    targets: Iterator[pa.RecordBatch]


class PartitionedKeys:
    """Partitioned keys of a source, to be used as a context manager that removes its temporary files.

    Parameters
    ----------
    columns
        Key columns of the source, in the types of the target. They are read once, piece by piece.
    num_partitions
        Number of partitions, 1 to 128.
    memory
        Maximum number of bytes of each side that are kept in memory instead of files.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], num_partitions: int, *, memory: int = 64 << 20) -> None:
        self.num_partitions = num_partitions
        self._divider = _Divider(KeyParts(num_partitions), num_partitions, len(columns), memory // num_partitions)
        keys = pa.Table.from_arrays(list(columns), [str(number) for number in range(len(columns))])
        self._schema = keys.schema.append(pa.field("row", pa.int64()))
        self._source = self._divider.divided(_with_row_numbers(keys, self._schema), self._schema)

    def join(self, targets: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[Partition]:
        """Divide the target in the same way, then join the partitions one after the other.

        It may be called again for a newer version of the target.

        Parameters
        ----------
        targets
            Rows whose first columns are the keys, in the order of the source's. Other columns that the merge needs
            (addresses, columns of conditions) follow. All rows are read before the first partition is returned.
        schema
            Their schema.

        Yields
        ------
        Partition
            Every partition, even if one side is empty. Rows with a null in their key are in the first partition.
        """
        spools = self._divider.divided(targets, schema)
        try:
            for mine, theirs in zip(self._source, spools, strict=True):
                index, rows = self._index(mine)
                yield Partition(index, rows, theirs.batches())
                theirs.close()
        finally:
            _close(spools)

    def _index(self, spool: Spool) -> tuple[KeyIndex, NDArray[np.int64]]:
        kept = pa.Table.from_batches(spool.seal(), self._schema)
        index = KeyIndex(kept.columns[:-1])
        rows = np.concatenate([np.empty(0, np.int64), *(chunk.to_numpy() for chunk in kept.column(-1).chunks)])
        spool.release()
        return index, rows

    def close(self) -> None:
        """Close and remove the temporary files."""
        _close(self._source)

    def __enter__(self) -> PartitionedKeys:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class _Divider:
    """Divider of rows by their keys, which are their first columns.

    Attributes
    ----------
    parts, num_partitions
        Hash of the keys, and number of partitions.
    num_keys
        Number of key columns.
    budget
        Maximum number of bytes of each partition that are kept in memory.
    """

    parts: KeyParts
    num_partitions: int
    num_keys: int
    budget: int

    def divided(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> list[Spool]:
        """Divide rows into partitions, in which they keep their order."""
        spools = [Spool(schema, self.budget) for _ in range(self.num_partitions)]
        try:
            for batch in batches:
                if batch.num_rows:
                    self._add(batch, spools)
            for spool in spools:
                spool.seal()
        except BaseException:
            _close(spools)
            raise
        return spools

    def _add(self, batch: pa.RecordBatch, spools: list[Spool]) -> None:
        numbers = np.empty(batch.num_rows, np.int64)
        self.parts.numbers(key_columns(batch.columns[: self.num_keys]), batch.num_rows, numbers)
        short = np.maximum(numbers, 0).astype(np.uint16)  # NumPy sorts 16-bit integers by radix
        ordered = batch.take(pa.array(np.argsort(short, kind="stable")))
        start = 0
        for spool, count in zip(spools, np.bincount(short, minlength=self.num_partitions).tolist(), strict=True):
            spool.add(ordered.slice(start, count))
            start += count


def _with_row_numbers(keys: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in keys.to_batches(_ROWS_AT_ONCE):
        stop = start + batch.num_rows
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(np.arange(start, stop))], schema=schema)
        start = stop


def _close(spools: Iterable[Spool]) -> None:
    for spool in spools:
        spool.close()
