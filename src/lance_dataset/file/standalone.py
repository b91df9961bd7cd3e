"""Reading and writing of single Lance files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, OutOfRangeError, RowIndexError, UnsupportedError, WrongTypeError
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.explain.report import EncodingReport
from lance_dataset.file.extensions import with_extensions
from lance_dataset.file.inspect import LanceFileMetadata, LanceFileStatistics, describe, statistics
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.storage import storage_batch
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.versions import DEFAULT_VERSION, resolve_version
from lance_dataset.io.catalogs import options_of_table
from lance_dataset.io.resolve import resolve
from lance_dataset.types.schema import Schema

if TYPE_CHECKING:
    from lance_dataset.file.writer import DataFileWriter

__all__ = ["LanceFileReader", "LanceFileWriter", "ReaderResults", "stable_version"]

_DEFAULT_BATCH_SIZE = 1024


def stable_version() -> str:
    """Return the version of the files that `LanceFileWriter` writes by default."""
    return DEFAULT_VERSION


class ReaderResults:
    """Selected rows of a file; each call reads them again.

    Parameters
    ----------
    schema
        Schema of the result.
    num_rows
        Number of rows.
    batch_size
        Rows per batch.
    read
        Reads the rows ``[start, stop)`` of the selection.
    """

    def __init__(
        self, schema: pa.Schema, num_rows: int, batch_size: int, read: Callable[[int, int], pa.RecordBatch]
    ) -> None:
        self._schema = schema
        self._num_rows = num_rows
        self._batch_size = batch_size
        self._read = read

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def to_table(self) -> pa.Table:
        """Read the rows into a table."""
        if self._num_rows == 0:
            return self._schema.empty_table()
        return pa.Table.from_batches([self._read(0, self._num_rows)], self._schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, self._num_rows, self._batch_size):
            yield self._read(start, min(start + self._batch_size, self._num_rows))


class LanceFileReader:
    """Reader of one Lance file.

    Parameters
    ----------
    path
        Path or URI of the file.
    storage_options
        See `lance_dataset.io.resolve`.
    columns
        Names of the columns to read, in this order; dotted names select fields of structs. None for all.

    Raises
    ------
    MissingFileError
        The file does not exist.
    CorruptFileError, UnsupportedError
        The file is not a Lance file, or has a version that this release does not read.
    FieldNotFoundError
        A column does not exist.
    InvalidInputError
        The list of columns is empty.
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
        storage_options = options_of_table(namespace_client, table_id, storage_options)
        if isinstance(columns, str):
            raise WrongTypeError(f"columns must be a list of names, not the text {columns!r}")
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
        """Return the number of rows in the file."""
        return self._reader.num_rows

    def read_all(self, *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16) -> ReaderResults:
        """Select all rows.

        Parameters
        ----------
        batch_size
            Rows per batch of the stream.
        batch_readahead
            Accepted for compatibility; batches are read on request.
        """
        return self.read_range(0, self.num_rows(), batch_size=batch_size, batch_readahead=batch_readahead)

    def read_range(
        self, start: int, num_rows: int, *, batch_size: int = _DEFAULT_BATCH_SIZE, batch_readahead: int = 16
    ) -> ReaderResults:
        """Select rows ``[start, start + num_rows)``; other parameters as for `read_all`.

        Raises
        ------
        RowIndexError
            A number is negative.
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
        indices: Sequence[int] | NDArray[np.integer] | pa.Array,
        *,
        batch_size: int = _DEFAULT_BATCH_SIZE,
        batch_readahead: int = 16,
    ) -> ReaderResults:
        """Take rows by number, in the order given; other parameters as for `read_all`.

        Raises
        ------
        RowIndexError
            A number is negative.
        InvalidInputError
            A number is out of range, or is not an integer.
        """
        rows = _row_numbers(indices, self.num_rows())
        return self._results(len(rows), batch_size, lambda column, low, high: column.take(rows[low:high]))

    def _results(
        self, num_rows: int, batch_size: int, read: Callable[[ColumnReader, int, int], pa.Array]
    ) -> ReaderResults:
        if batch_size < 1:
            raise OutOfRangeError(f"batch_size must be at least 1, not {batch_size}")
        if not self._schema.fields:
            raise InvalidInputError("the file has no columns, so there is nothing to read")
        schema = self._schema

        def read_batch(low: int, high: int) -> pa.RecordBatch:
            arrays = [read(column, low, high) for column in self._columns()]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema.storage_arrow)
            return with_extensions(batch, schema.file_arrow) if schema.has_extensions else batch

        return ReaderResults(schema.file_arrow, num_rows, batch_size, read_batch)

    def metadata(self) -> LanceFileMetadata:
        """Return the metadata at the end of the file; raises UnsupportedError for a legacy (0.1) file."""
        return describe(self._container())

    def file_statistics(self) -> LanceFileStatistics:
        """Return the pages and bytes of each column; raises UnsupportedError for a legacy (0.1) file."""
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
        """Explain the storage page by page: layout, encoding, sizes, and reasons.

        Parameters
        ----------
        columns
            Names of columns; dotted names select fields of structs. None for those that the reader was opened with.
        deep
            Decode the values too, a page at a time, to find nulls, the plain size of compressed text, and estimated
            sizes of other encodings. Otherwise, only the descriptions of pages and the headers of chunks are read.

        Returns
        -------
        EncodingReport
            Prints as a table; it is a sequence of `PageEncoding`.

        Raises
        ------
        FieldNotFoundError
            A column does not exist.
        CorruptFileError
            A page contradicts its description.
        """
        from lance_dataset.file.explain.columns import columns_of_file, explain_columns, select_columns

        schema = self._schema if columns is None else select_columns(self._reader.schema, columns)
        return explain_columns(columns_of_file(self._reader.metadata, schema), deep)

    def read_global_buffer(self, index: int) -> bytes:
        """Return the content of a global buffer; 0 is the file's descriptor.

        Raises
        ------
        RowIndexError
            The number is negative.
        InvalidInputError
            The buffer does not exist.
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
        raise WrongTypeError(f"row numbers must be a flat sequence of integers, not {rows.dtype} of shape {rows.shape}")
    if rows.min() < 0:
        raise RowIndexError(f"row numbers must not be negative, got {rows.min()}")
    if rows.max() >= num_rows:
        raise InvalidInputError(f"cannot take row {rows.max()} of a file with {num_rows} rows")
    return np.ascontiguousarray(rows, np.int64)


class LanceFileWriter:
    """Writer of one Lance file. An existing file is replaced only after the schema or the first batch is accepted.

    As a context manager, it closes the file at the end, or removes it after an exception.

    Parameters
    ----------
    path
        Path or URI of the file.
    schema
        Arrow schema; None for that of the first batch.
    data_cache_bytes
        Number of bytes buffered before pages are cut, for all columns together.
    version
        File version; None for `stable_version`.
    storage_options
        See `lance_dataset.io.resolve`.
    max_page_bytes
        Maximum size of a page in bytes; larger spans of rows are cut into several pages.

    Raises
    ------
    InvalidInputError, UnsupportedError
        The version is unknown or not writable by this release, or it cannot hold the schema.
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
        storage_options = options_of_table(namespace_client, table_id, storage_options)
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
        from lance_dataset.file.writer import DataFileWriter

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
        """Append rows; columns are matched by name.

        Raises
        ------
        SchemaError
            The columns differ from those of the file.
        UnsupportedError
            The file version cannot hold the values. The file is then removed and closed.
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
            except BaseException:  # some columns have the batch and others do not
                self.abort()
                raise

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set a key of the schema metadata of the file."""
        self._check_open()
        self._metadata[key] = value.encode()

    def add_global_buffer(self, data: bytes) -> int:
        """Add a global buffer and return its number, which starts at 1."""
        self._check_open()
        if self._writer is not None:
            return self._writer.add_global_buffer(bytes(data))
        self._early_buffers.append(bytes(data))
        return len(self._early_buffers)

    def close(self) -> int | None:
        """Finish the file, which is durable on return. On failure it is removed.

        Returns
        -------
        int or None
            Number of rows; None if the file was already closed or removed.

        Raises
        ------
        InvalidInputError
            Neither a schema nor a batch was given.
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
        """Discard the file."""
        if not self._closed and self._writer is not None:
            self._writer.abort()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(f"{self._path} is closed and can no longer be written")

    def __enter__(self) -> LanceFileWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file, or remove it if there was an exception."""
        if kind is None:
            self.close()
        else:
            self.abort()


class _LazyOutput:
    """Output that replaces an existing file, but only when there is something to write."""

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
