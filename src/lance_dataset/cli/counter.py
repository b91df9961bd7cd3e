"""Progress of reading source files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa
from rich.console import Console

from lance_dataset.cli.sources.opening import SourceStream

__all__ = ["RowCounter"]

_Batches: TypeAlias = Iterator[pa.RecordBatch]


class RowCounter:
    """Counts the rows read, and shows the count on stderr if that is a terminal.

    Attributes
    ----------
    rows
        Rows read so far.
    """

    rows = 0

    def reader(self, stream: SourceStream) -> pa.RecordBatchReader:
        """Return a reader of a stream that counts the rows as they are read."""
        return pa.RecordBatchReader.from_batches(stream.schema, self._counting(stream.batches(), stream.rows))

    def _counting(self, batches: _Batches, total: int | None) -> _Batches:
        console = Console(stderr=True)
        for batch in self._shown(batches, total, console) if console.is_terminal else batches:
            yield batch
            self.rows += batch.num_rows

    def _shown(
        self, batches: Iterator[pa.RecordBatch], total: int | None, console: Console
    ) -> Iterator[pa.RecordBatch]:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        looks = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*looks, console=console) as progress:
            task = progress.add_task("rows", total=total)
            for batch in batches:
                yield batch
                progress.advance(task, batch.num_rows)
