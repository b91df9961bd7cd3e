"""Keys whose index would not fit the memory: both sides of a merge divided by the hash of their keys.

This is the Grace hash join (Kitsuregawa, Tanaka and Moto-oka, Application of Hash to Data Base Machine, 1983): equal
keys go to the same partition, every partition has an index of its own, and only one of these is in memory at a time.
Source and target are read once each; what must be kept of them is in temporary files, one per partition and side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.merge.key_index import KeyIndex, index_size
from lance_dataset.changes.merge.keys import key_columns
from lance_dataset.changes.merge.spool import Spool
from lancecodec.join_keys import KeyParts

__all__ = ["INDEX_BUDGET", "Partition", "PartitionedKeys", "partitions_needed"]

#: Bytes that the index of a merge's source may have.
INDEX_BUDGET = 1 << 30
#: While rows are divided every partition has an open file, and systems allow few.
_MOST_PARTITIONS = 128
#: Partitions are not of equal size.
_UNEVEN = 1.2
#: Source rows that are divided together.
_ROWS_AT_ONCE = 1 << 18


def partitions_needed(columns: Sequence[pa.ChunkedArray], budget: int = INDEX_BUDGET) -> int:
    """How many partitions the keys of a source need so that the index of each has at most `budget` bytes.

    1 says that a `KeyIndex` of all does. There are at most 128, so of more than that many times the budget the indices
    are larger.
    """
    size = index_size(len(columns[0]), sum(column.nbytes for column in columns))
    if size <= budget:
        return 1
    return min(int(size * _UNEVEN / budget) + 1, _MOST_PARTITIONS)


@dataclass(frozen=True, eq=False)
class Partition:
    """The part of a merge that has some of the keys.

    Attributes
    ----------
    index
        Keys of the source's rows in the partition; what it says of rows is about these.
    rows
        int64, ascending: the row of the source that each of them is.
    targets
        The target's rows in the partition, in the order in which they were given; to be consumed before the next
        partition is asked for.
    """

    index: KeyIndex
    rows: NDArray[np.int64]
    targets: Iterator[pa.RecordBatch]


class PartitionedKeys:
    """The keys of a source in partitions; a context manager that gives its temporary files back.

    Parameters
    ----------
    columns
        Key columns of the source, of the types that the target has. They are read once, a piece at a time.
    num_partitions
        1 to 128.
    memory
        Bytes of either side that are kept in memory instead of files.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], num_partitions: int, *, memory: int = 64 << 20) -> None:
        self.num_partitions = num_partitions
        self._divider = _Divider(KeyParts(num_partitions), num_partitions, len(columns), memory // num_partitions)
        keys = pa.Table.from_arrays(list(columns), [str(number) for number in range(len(columns))])
        self._schema = keys.schema.append(pa.field("row", pa.int64()))
        self._source = self._divider.divided(_with_row_numbers(keys, self._schema), self._schema)

    def join(self, targets: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[Partition]:
        """Divide the target in the same way, then bring the partitions together one after the other.

        May be called again, for the target as it has become.

        Parameters
        ----------
        targets
            Rows whose first columns are the keys, in the order of the source's; what else is to be known of them
            (addresses, columns of conditions) follows. They are read to the end first.
        schema
            Their columns.

        Yields
        ------
        Partition
            All of them, also those without rows on one side. Rows without a key (a part of it is null) are in the
            first.
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
        """Give the files back."""
        _close(self._source)

    def __enter__(self) -> PartitionedKeys:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class _Divider:
    """Divides rows by their keys, which are their first columns.

    Attributes
    ----------
    parts, num_partitions
        By what, and into how many.
    num_keys
        How many columns a key has.
    budget
        Bytes of each partition that are kept in memory.
    """

    parts: KeyParts
    num_partitions: int
    num_keys: int
    budget: int

    def divided(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> list[Spool]:
        """Rows of each partition, in the order in which they come."""
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
        short = np.maximum(numbers, 0).astype(np.uint16)  # which NumPy sorts by their digits
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
