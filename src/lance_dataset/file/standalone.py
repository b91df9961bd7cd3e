"""Single Lance files, read and written by themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, RowIndexError, UnsupportedError
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.explain import EncodingReport, columns_of_file, explain_columns, select_columns
from lance_dataset.file.extensions import with_extensions
from lance_dataset.file.inspect import LanceFileMetadata, LanceFileStatistics, describe, statistics
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.storage import storage_batch
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.versions import DEFAULT_VERSION, resolve_version
from lance_dataset.file.writer import DataFileWriter
from lance_dataset.io.resolve import resolve
from lance_dataset.schema import Schema

__all__ = ["LanceFileReader", "LanceFileWriter", "ReaderResults", "stable_version"]

_DEFAULT_BATCH_SIZE = 1024


def stable_version() -> str:
    """Version of the files that `LanceFileWriter` writes by default."""
    return DEFAULT_VERSION


class ReaderResults:
    """Rows chosen from a file; read when asked for, as often as asked.

    Parameters
    ----------
    schema
        Schema of the result.
    num_rows
        Number of rows.
    batch_size
        Rows per batch.
    read
        Gives the rows ``[start, stop)`` of the choice.
    """

    def __init__(
        self, schema: pa.Schema, num_rows: int, batch_size: int, read: Callable[[int, int], pa.RecordBatch]
    ) -> None:
        self._schema = schema
        self._num_rows = num_rows
        self._batch_size = batch_size
        self._read = read

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def to_table(self) -> pa.Table:
        """The rows as a table."""
        if self._num_rows == 0:
            return self._schema.empty_table()
        return pa.Table.from_batches([self._read(0, self._num_rows)], self._schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, self._num_rows, self._batch_size):
            yield self._read(start, min(start + self._batch_size, self._num_rows))


class LanceFileReader:
    """Reads one Lance file.

    Parameters
    ----------
    path
        Path or URI of the file.
    storage_options
        See `lance_dataset.io.resolve`.
    columns
        Names to read, in this order; dotted ones select fields of structs. None for all.

    Raises
    ------
    MissingFileError
        There is no such file.
    CorruptFileError, UnsupportedError
        Not a Lance file, or one this release does not read.
    FieldNotFoundError
        Unknown column.
    InvalidInputError
        An empty list of columns.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
    ) -> None:
        _refuse_namespace(namespace_client, table_id)
        if isinstance(columns, str):
            raise InvalidInputError(f"columns must be a list of names, not the text {columns!r}")
        if columns is not None and len(columns) == 0:
            raise InvalidInputError("columns is empty: at least one column must be read")
        store, location = resolve(path, storage_options)
        self._reader = DataFileReader(store.open_input(location))
        schema = self._reader.schema
        self._schema = schema if columns is None else schema.project(list(columns))
        self._opened: list[ColumnReader] | None = None

    def _columns(self) -> list[ColumnReader]:
        if self._opened is None:
            self._opened = [self._reader.column(field) for field in self._schema.fields]
        return self._opened

    def num_rows(self) -> int:
        """Number of rows in the file."""
        return self._reader.num_rows

    def read_all(self, *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16) -> ReaderResults:
        """All rows.

        Parameters
        ----------
        batch_size
            Rows per batch of the stream.
        batch_readahead
            Accepted for compatibility; batches are read when they are asked for.
        """
        return self.read_range(0, self.num_rows(), batch_size=batch_size, batch_readahead=batch_readahead)

    def read_range(
        self, start: int, num_rows: int, *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16
    ) -> ReaderResults:
        """Rows ``[start, start + num_rows)``; other parameters as for `read_all`.

        Raises
        ------
        RowIndexError
            A negative number.
        InvalidInputError
            The range does not lie in the file.
        """
        if start < 0 or num_rows < 0:
            raise RowIndexError(f"start and num_rows must not be negative, got {start} and {num_rows}")
        if start + num_rows > self.num_rows():
            raise InvalidInputError(
                f"cannot read rows {start} to {start + num_rows} of a file with {self.num_rows()} rows"
            )
        return self._results(num_rows, batch_size, lambda column, low, high: column.read(start + low, start + high))

    def take_rows(
        self,
        indices: Sequence[int] | NDArray[Any] | pa.Array,
        *,
        batch_size: int = _DEFAULT_BATCH_SIZE,
        batch_readahead: int = 16,
    ) -> ReaderResults:
        """Rows by number, in the order given; other parameters as for `read_all`.

        Raises
        ------
        RowIndexError
            A negative number.
        InvalidInputError
            A number outside the file, or something that is no integer.
        """
        rows = _row_numbers(indices, self.num_rows())
        return self._results(len(rows), batch_size, lambda column, low, high: column.take(rows[low:high]))

    def _results(
        self, num_rows: int, batch_size: int, read: Callable[[ColumnReader, int, int], pa.Array]
    ) -> ReaderResults:
        if batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, not {batch_size}")
        if not self._schema.fields:
            raise InvalidInputError("the file has no columns, so there is nothing to read")
        schema = self._schema

        def read_batch(low: int, high: int) -> pa.RecordBatch:
            arrays = [read(column, low, high) for column in self._columns()]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema.storage_arrow)
            return with_extensions(batch, schema.file_arrow) if schema.has_extensions else batch

        return ReaderResults(schema.file_arrow, num_rows, batch_size, read_batch)

    def metadata(self) -> LanceFileMetadata:
        """Everything the end of the file says about it; UnsupportedError for a legacy (0.1) file."""
        return describe(self._container())

    def file_statistics(self) -> LanceFileStatistics:
        """Pages and bytes per column; UnsupportedError for a legacy (0.1) file."""
        return statistics(self._container())

    def _container(self) -> FileMetadata:
        metadata = self._reader.metadata
        if isinstance(metadata, LegacyFile):
            raise UnsupportedError(
                f"{metadata.source.path}: legacy (0.1) files have no columns of pages; explain_encodings shows their "
                "batches"
            )
        return metadata

    def explain_encodings(self, columns: Sequence[str] | None = None, *, deep: bool = False) -> EncodingReport:
        """What is stored page by page: layout, encoding, sizes, and why.

        Parameters
        ----------
        columns
            Names; dotted ones select fields of structs. None for those that the reader was opened with.
        deep
            Decode the values too, a page at a time: nulls, the plain size of compressed text, and estimates of what
            other encodings would need. Otherwise only the descriptions of pages and the headers of chunks are read.

        Returns
        -------
        EncodingReport
            Prints as a table; a sequence of `PageEncoding`.

        Raises
        ------
        FieldNotFoundError
            Unknown column.
        CorruptFileError
            A page contradicts its description.
        """
        schema = self._schema if columns is None else select_columns(self._reader.schema, columns)
        return explain_columns(columns_of_file(self._reader.metadata, schema), deep)

    def read_global_buffer(self, index: int) -> bytes:
        """Content of a global buffer; 0 is the file's descriptor.

        Raises
        ------
        RowIndexError
            A negative number.
        InvalidInputError
            There is no such buffer.
        """
        metadata = self._container()
        if index < 0:
            raise RowIndexError(f"the number of a global buffer must not be negative, got {index}")
        if index >= len(metadata.global_buffers):
            raise InvalidInputError(
                f"there is no global buffer {index}: the file has only {len(metadata.global_buffers)} global buffers"
            )
        return metadata.read_global_buffer(index)


def _row_numbers(indices: Any, num_rows: int) -> NDArray[np.int64]:
    rows = np.asarray(indices)
    if rows.size == 0:
        return np.empty(0, np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InvalidInputError(
            f"row numbers must be a flat sequence of integers, not {rows.dtype} of shape {rows.shape}"
        )
    if rows.min() < 0:
        raise RowIndexError(f"row numbers must not be negative, got {rows.min()}")
    if rows.max() >= num_rows:
        raise InvalidInputError(f"cannot take row {rows.max()} of a file with {num_rows} rows")
    return np.ascontiguousarray(rows, np.int64)


class LanceFileWriter:
    """Writes one Lance file; an existing one is replaced once the first batch or the schema is known to fit.

    As a context manager it closes the file at the end, or removes it if there was an exception.

    Parameters
    ----------
    path
        Path or URI of the file.
    schema
        Arrow schema; None to take that of the first batch.
    data_cache_bytes
        Bytes held back before pages are cut, all columns together.
    version
        File version, None for `stable_version`.
    storage_options
        See `lance_dataset.io.resolve`.
    max_page_bytes
        Larger spans of rows are cut into several pages.

    Raises
    ------
    InvalidInputError, UnsupportedError
        Unknown version, or one this release does not write; a schema that it cannot hold.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
        max_page_bytes: int | None = None,
    ) -> None:
        _refuse_namespace(namespace_client, table_id)
        self._store, self._path = resolve(path, storage_options)
        self._version = resolve_version(version)
        if self._version == LegacyFile.version:
            raise UnsupportedError(
                "single files of version 0.1 (legacy) are only read; write_dataset writes datasets of them"
            )
        self._data_cache_bytes = data_cache_bytes
        self._max_page_bytes = max_page_bytes
        self._metadata: dict[str, bytes] = {}
        self._early_buffers: list[bytes] = []
        self._writer: DataFileWriter | None = None
        self._closed = False
        if schema is not None:
            self._start(schema)

    def _start(self, schema: pa.Schema) -> DataFileWriter:
        lance_schema = Schema.from_arrow(schema)
        output = _LazyOutput(self._store, self._path)
        self._writer = DataFileWriter(
            output,
            lance_schema,
            self._version,
            data_cache_bytes=self._data_cache_bytes,
            max_page_bytes=self._max_page_bytes,
        )
        for data in self._early_buffers:
            self._writer.add_global_buffer(data)
        return self._writer

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; columns are found by name.

        Raises
        ------
        SchemaError
            The columns are not those of the file.
        UnsupportedError
            Values that the file version cannot hold. The file is removed then, and closed.
        InvalidInputError
            The file is closed.
        """
        self._check_open()
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            raise TypeError(f"batch must be a RecordBatch or Table, not {type(batch).__name__}")
        writer = self._writer or self._start(batch.schema)
        for part in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            stored = storage_batch(part, writer.schema, fill_missing=False)
            try:
                writer.write_batch(stored)
            except BaseException:  # some columns have the batch, others do not
                self.abort()
                raise

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set a key of the schema metadata of the file."""
        self._check_open()
        self._metadata[key] = value.encode()

    def add_global_buffer(self, data: bytes) -> int:
        """Add a global buffer; returns its number, from 1 on."""
        self._check_open()
        if self._writer is not None:
            return self._writer.add_global_buffer(bytes(data))
        self._early_buffers.append(bytes(data))
        return len(self._early_buffers)

    def close(self) -> int | None:
        """Finish the file; it is durable then. On failure it is removed.

        Returns
        -------
        int or None
            Number of rows, None if the file was closed or removed before.

        Raises
        ------
        InvalidInputError
            There was neither a schema nor a batch.
        """
        if self._closed:
            return None
        self._closed = True
        if self._writer is None:
            raise InvalidInputError("no schema was given and no data written, so the file cannot be created")
        try:
            return self._writer.finish(self._metadata or None).num_rows
        except BaseException:
            self._writer.abort()
            raise

    def abort(self) -> None:
        """Drop the file; nothing stays behind."""
        if not self._closed and self._writer is not None:
            self._writer.abort()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(f"{self._path} is closed; it cannot be written any more")

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class _LazyOutput:
    """An output that replaces an existing file, but not before there is something to write."""

    def __init__(self, store: Any, path: str) -> None:
        self._store = store
        self._path = path
        self._output: Any = None

    def _open(self) -> Any:
        if self._output is None:
            self._store.delete(self._path)
            self._output = self._store.open_output(self._path)
        return self._output

    def write(self, data: bytes | memoryview | pa.Buffer) -> None:
        self._open().write(data)

    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        self._open().write_many(parts)

    def tell(self) -> int:
        return 0 if self._output is None else self._output.tell()

    def close(self) -> None:
        self._open().close()

    def abort(self) -> None:
        if self._output is not None:
            self._output.abort()


def _refuse_namespace(namespace_client: object, table_id: object) -> None:
    if namespace_client is not None or table_id is not None:
        raise UnsupportedError("namespace_client and table_id are not supported; pass the path of the file")
