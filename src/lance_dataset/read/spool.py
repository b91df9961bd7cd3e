"""Record batches that are written once and read often, in memory or, above a budget, in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO

import pyarrow as pa

from lance_dataset.errors import SchemaError, StorageError
from lance_dataset.io.mapping import Mapping, map_file
from lance_dataset.read.concatenate import UnjoinableError, join_arrays

__all__ = ["Spool", "check_columns"]

#: Batches below both limits are concatenated.
_SMALL_ROWS = 1 << 13
_SMALL_BYTES = 1 << 20
#: Maximum number of bytes of a batch in the file, unless it has one row.
_LARGE_BYTES = 16 << 20


class Spool:
    """Batches of one schema, to be used as a context manager that removes their temporary file.

    The file is unnamed if the system supports that; otherwise it is removed together with its last reader. A process
    that dies does not leave a file behind. The file is an Arrow stream that is memory-mapped, so its batches are arrays
    over the file.

    Parameters
    ----------
    schema
        Schema of the batches.
    budget
        Maximum number of bytes to keep in memory. Above it, all batches are in the file.

    Attributes
    ----------
    num_rows
        Number of rows in all batches that were added.
    """

    def __init__(self, schema: pa.Schema, budget: int) -> None:
        self.schema = schema
        self.num_rows = 0
        self._budget = budget
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._small: list[pa.RecordBatch] = []
        self._small_rows = self._small_bytes = 0
        self._output: tuple[IO[bytes], pa.RecordBatchStreamWriter] | None = None
        self._mapping: Mapping | None = None
        self._places: list[tuple[int, int]] = []

    @property
    def is_spilled(self) -> bool:
        """True if the batches are in a file."""
        return self._output is not None or bool(self._places)

    # -- writing -------------------------------------------------------------------------------------------------

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch.

        Raises
        ------
        SchemaError
            The batch has other columns.
        StorageError
            The temporary file cannot be written.
        """
        check_columns(batch, self.schema)
        if batch.num_rows == 0:
            return
        self.num_rows += batch.num_rows
        size = batch.nbytes
        if batch.num_rows >= _SMALL_ROWS or size >= _SMALL_BYTES:
            self._flush()
            self._keep(batch, size)
            return
        self._small.append(batch)
        self._small_rows += batch.num_rows
        self._small_bytes += size
        if self._small_rows >= _SMALL_ROWS or self._small_bytes >= _SMALL_BYTES:
            self._flush()

    def _flush(self) -> None:
        small, size = self._small, self._small_bytes
        self._small, self._small_rows, self._small_bytes = [], 0, 0
        for batch in _together(small, self.schema):
            self._keep(batch, size * batch.num_rows // max(sum(part.num_rows for part in small), 1))

    def _keep(self, batch: pa.RecordBatch, size: int) -> None:
        if self._output is None:
            self._held.append(batch)
            self._held_bytes += size
            if self._held_bytes <= self._budget:
                return
            held, self._held = self._held, []
        else:
            held = [batch]
        with _told_where():
            self._write(held)

    def _write(self, batches: list[pa.RecordBatch]) -> None:
        if self._output is None:
            file = tempfile.TemporaryFile(prefix="lance-")  # noqa: SIM115
            self._output = file, pa.ipc.new_stream(pa.PythonFile(file, "w"), self.schema)
        writer = self._output[1]
        for batch in batches:
            rows = max(int(batch.num_rows * _LARGE_BYTES / max(batch.nbytes, 1)), 1)
            for start in range(0, batch.num_rows, rows):
                writer.write_batch(batch.slice(start, rows))

    # -- reading -------------------------------------------------------------------------------------------------

    def seal(self) -> list[pa.RecordBatch]:
        """End writing, unless that was done before, and return all batches. They stay valid after `close`."""
        self._flush()
        if self._output is not None:
            with _told_where():
                self._map(*self._output)
        return self._held

    def _map(self, file: IO[bytes], writer: pa.RecordBatchStreamWriter) -> None:
        writer.close()
        file.flush()
        buffer, self._mapping = map_file(file.fileno(), file.tell())
        file.close()
        self._output = None
        source = pa.BufferReader(buffer)
        reader = pa.ipc.open_stream(source)
        while source.tell() < buffer.size:
            start = source.tell()
            try:
                self._held.append(reader.read_next_batch())
            except StopIteration:
                break
            self._places.append((start, source.tell()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches, after `seal`. The memory of a mapped batch is released when the next one is requested."""
        for number, batch in enumerate(self._held):
            yield batch
            if self._mapping is not None:
                self._mapping.drop(*self._places[number])

    def release(self) -> None:
        """Release the memory of a mapped file. Reading it again loads it from the file."""
        if self._mapping is not None and self._places:
            self._mapping.drop(0, self._places[-1][1])

    def close(self) -> None:
        """Close and remove the file. Batches that were returned stay valid."""
        self._held, self._small, self._mapping = [], [], None
        if self._output is not None:
            with suppress(OSError):  # buffered rows that the disk cannot hold
                self._output[0].close()
            self._output = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _told_where() -> Iterator[None]:
    """Convert errors of the temporary file to errors that name its folder."""
    try:
        yield
    except OSError as error:
        folder = tempfile.tempdir or "none"
        text = f"cannot keep rows in a temporary file (in folder {folder}): {error}; make room there, or set TMPDIR"
        raise StorageError(text) from error


def check_columns(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raise SchemaError if a batch has other columns than the batches before."""
    if not batch.schema.equals(schema):
        raise SchemaError(f"a batch has other columns than its source:\n{batch.schema}\nnot\n{schema}")


def _together(batches: list[pa.RecordBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    """Concatenate small batches, unless their dictionaries cannot be combined."""
    if len(batches) < 2:
        return batches
    try:
        arrays = [
            join_arrays([batch.column(number) for batch in batches], field.type, field.name)
            for number, field in enumerate(schema)
        ]
    except UnjoinableError:
        return batches
    return [pa.RecordBatch.from_arrays(arrays, schema=schema)]
