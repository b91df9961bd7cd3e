"""Memtables and SSTables of shards, with their rows that no newer row of the same key hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.memwal.key_set import newest_first
from lance_dataset.memwal.memtable import Memtable
from lance_dataset.memwal.schemas import TOMBSTONE, conformed, one_batch
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.memwal.sstables import OpenSsTable
from lance_dataset.properties import cached_property
from lance_dataset.types.schema import Field

__all__ = ["NewestRows", "ShardPart", "shard_parts"]


@dataclass(frozen=True)
class NewestRows:
    """The last row of each key of a memtable.

    Attributes
    ----------
    memtable
        The memtable.
    numbers
        Numbers of the rows among all rows of the memtable, ascending.
    batch
        The rows.
    """

    memtable: Memtable
    numbers: NDArray[np.int64]
    batch: pa.RecordBatch

    @property
    def generation(self) -> int:
        """Generation of the memtable."""
        return self.memtable.generation

    @property
    def marks(self) -> pa.BooleanArray:
        """True for each row that stands for a deletion."""
        return self.batch.column(TOMBSTONE)

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """Numbers of the rows, which have no addresses."""
        return self.numbers.astype(np.uint64)

    def scan(self, wanted: list[Field]) -> tuple[pa.RecordBatch, pa.Array]:
        """Return columns of all rows as the table has them now, and which rows stand for deletions."""
        return conformed(self.batch, self.memtable.names, wanted, "memtable"), self.marks

    def all_rows(self, wanted: list[Field], start: int) -> pa.RecordBatch:
        """Return columns of all rows of the memtable like `scan`, from a number on."""
        batch = one_batch(self.memtable.table().slice(start), "memtable")
        return conformed(batch, self.memtable.names, wanted, "memtable")

    def take(self, rows: NDArray[np.int64], wanted: list[Field]) -> tuple[pa.RecordBatch, pa.Array]:
        """Return some of the rows, given by number, like `scan`."""
        taken = self.batch.take(pa.array(rows))
        return conformed(taken, self.memtable.names, wanted, "memtable"), taken.column(TOMBSTONE)


@dataclass(frozen=True)
class ShardPart:
    """A memtable or an SSTable.

    Attributes
    ----------
    source
        The SSTable, or the memtable with its newest rows.
    shown
        True for rows that no newer row of the same key hides; None for all. Rows that stand for deletions are not left
        out.
    """

    source: OpenSsTable | NewestRows
    shown: pa.BooleanArray | None

    @property
    def generation(self) -> int:
        """Its generation."""
        return self.source.generation

    @property
    def table(self) -> OpenSsTable | None:
        """The SSTable; None for a memtable."""
        return self.source if isinstance(self.source, OpenSsTable) else None

    @cached_property
    def visible(self) -> NDArray[np.int64]:
        """Numbers of the rows that are shown and do not stand for deletions, ascending."""
        keep = pc.invert(self.source.marks)
        if self.shown is not None:
            keep = pc.and_(keep, self.shown)
        return np.flatnonzero(keep.to_numpy(zero_copy_only=False))


def shard_parts(sources: LsmSources) -> Iterator[ShardPart]:
    """Yield memtables and SSTables, the newest ones of each shard first."""
    for number, shard in enumerate(sources.shards or ((),)):
        # keys of one shard do not hide rows of another one, only those of the table
        memtables = [memtable for memtable in sources.memtables if number == 0 and not memtable.is_empty]
        newest = [NewestRows(memtable, *memtable.numbered()) for memtable in memtables]
        visible = newest_first([*(sources.key.array(rows.batch) for rows in newest), *(table.keys for table in shard)])
        parts: list[OpenSsTable | NewestRows] = [*newest, *shard]
        for source, shown in zip(parts, visible, strict=True):
            yield ShardPart(source, shown)
