"""Parquet in pyarrow. A take reads the row groups that hold a wanted row and selects from them, as is usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from contenders.base import Contender, Handle
from data import Comparison


class ParquetHandle(Handle):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = pq.ParquetFile(path, memory_map=True)
        groups = self._file.metadata.num_row_groups
        sizes = [self._file.metadata.row_group(group).num_rows for group in range(groups)]
        self._group_starts = np.concatenate([[0], np.cumsum(sizes)])

    def scan(self, columns: Sequence[str] | None = None) -> pa.Table:
        return self._file.read(columns=None if columns is None else list(columns))

    def batches(self, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        return self._file.iter_batches() if rows is None else self._file.iter_batches(rows)

    def take(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        group_of_row = np.searchsorted(self._group_starts, rows, side="right") - 1
        groups, position = np.unique(group_of_row, return_inverse=True)
        table = self._file.read_row_groups(groups.tolist(), columns=None if columns is None else list(columns))
        sizes = self._group_starts[groups + 1] - self._group_starts[groups]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return table.take(pa.array(starts[position] + rows - self._group_starts[group_of_row]))

    def filtered(self, comparison: Comparison) -> pa.Table:
        return pq.read_table(self._path, memory_map=True, filters=pc.field(comparison.column) < comparison.bound)

    def count(self, comparison: Comparison | None = None) -> int:
        if comparison is None:
            return self._file.metadata.num_rows
        passes = pc.field(comparison.column) < comparison.bound
        return pads.dataset(self._path, format="parquet").count_rows(filter=passes)


class Parquet(Contender):
    requires = "pyarrow"

    def __init__(self, compression: str) -> None:
        self.name = self.stored_by = f"parquet-{compression}"
        self.description = f"pyarrow.parquet, {compression}"
        self._compression = compression

    def import_library(self) -> None:
        pass

    def write(self, source: pa.Table | pa.RecordBatchReader, path: Path) -> None:
        if isinstance(source, pa.Table):
            pq.write_table(source, path, compression=self._compression)
            return
        with pq.ParquetWriter(path, source.schema, compression=self._compression) as writer:
            for batch in source:
                writer.write_batch(batch)

    def open(self, path: Path) -> Handle:
        return ParquetHandle(path)
