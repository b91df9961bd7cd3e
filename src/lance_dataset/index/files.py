"""Files of an index: Lance files with parameters in the metadata of their schema and in global buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.writer import DataFileWriter
from lance_dataset.io.base import InputFile, ObjectStore, safe_join
from lance_dataset.table.index_metadata import IndexFile
from lance_dataset.types.schema import Field, Schema

__all__ = ["WRITTEN_VERSION", "IndexFolder", "IndexTable", "NewIndexFolder"]

#: Version of the files of new indices.
WRITTEN_VERSION: Final = "2.2"
_LEGACY = "0.1"
#: Version that replaces legacy files, which this release does not write.
_OLDEST_WRITTEN = "2.0"
_BATCH_ROWS = 64 << 10
_BATCH_BYTES = 32 << 20
_COPIED_BYTES = 8 << 20


class IndexTable:
    """A Lance file of an index, open for reading.

    Columns are read as they are stored: extension types as their storage types.

    Parameters
    ----------
    source
        The file.
    where
        Its URI, for error messages.

    Attributes
    ----------
    where : str
        Its URI.
    schema : Schema
        Columns of the file.
    metadata : dict of str
        Metadata of the schema.
    num_rows : int
    version : str
        File version; ``0.1`` for all legacy files.

    Raises
    ------
    CorruptFileError, UnsupportedError
        The file is not a Lance file, or not one that this release reads.
    """

    def __init__(self, source: InputFile, where: str) -> None:
        self._reader = DataFileReader(source)
        self._columns: dict[str, ColumnReader] = {}
        self._chosen: dict[tuple[str, ...] | None, tuple[tuple[Field, ...], pa.Schema]] = {}
        self.where = where
        self.schema = self._reader.schema
        self.num_rows = self._reader.num_rows
        self.version = self._reader.metadata.version
        self.metadata = {key: value.decode("utf-8", "replace") for key, value in self.schema.metadata.items()}

    @property
    def written_version(self) -> str:
        """File version to write a replacement of this file in."""
        return _OLDEST_WRITTEN if self.version == _LEGACY else self.version

    def global_buffer(self, key: str) -> bytes | None:
        """Return the global buffer whose number is in the metadata; None if the metadata has no such key.

        Raises
        ------
        CorruptFileError
            The buffer does not exist.
        """
        number = self.metadata.get(key)
        if number is None:
            return None
        if not number.isdecimal() or len(number) > 9:
            raise self.corrupt(f"{key} names the global buffer {number!r}, which is not a buffer number")
        return self.numbered_buffer(int(number))

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        return self._reader.metadata.source.size

    @property
    def num_buffers(self) -> int:
        """Number of global buffers; their numbers start at 1."""
        stored = self._reader.metadata
        return max(len(stored.global_buffers) - 1, 0) if isinstance(stored, FileMetadata) else 0

    def numbered_buffer(self, number: int) -> bytes:
        """Return the content of a global buffer.

        Raises
        ------
        CorruptFileError
            The buffer does not exist.
        """
        stored = self._reader.metadata
        if not isinstance(stored, FileMetadata) or not 0 < number <= self.num_buffers:
            raise self.corrupt(f"needs the global buffer {number}, but has buffers 1 to {self.num_buffers}")
        return stored.read_global_buffer(number)

    def number(self, key: str, default: int) -> int:
        """Return a number of 64 bits of the metadata.

        Raises
        ------
        CorruptFileError
            It is something else.
        """
        text = self.metadata.get(key)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 21 and int(text) < 1 << 64):
            raise self.corrupt(f"{key} is {text[:40]!r}, not a number")
        return int(text)

    def column_type(self, name: str) -> pa.DataType:
        """Return the storage type of a column.

        Raises
        ------
        CorruptFileError
            The column does not exist.
        """
        self.check_columns([name])
        return next(field.storage_type for field in self.schema.fields if field.name == name)

    def check_columns(self, names: Iterable[str]) -> None:
        """Check that the file has columns of these names; it may have others too.

        Raises
        ------
        CorruptFileError
            A column is missing.
        """
        missing = sorted(set(names) - {field.name for field in self.schema.fields})
        if missing:
            raise self.corrupt(f"has no column {', '.join(missing)}")

    def read(self, start: int = 0, stop: int | None = None, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Read rows ``[start, stop)`` of all columns, or of the columns named."""
        key = None if columns is None else tuple(columns)
        known = self._chosen.get(key)
        chosen, schema = known if known is not None else self._chosen.setdefault(key, self._choose(key))
        stop = self.num_rows if stop is None else min(stop, self.num_rows)
        arrays = [self._column(field).read(start, stop) for field in chosen]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _choose(self, columns: tuple[str, ...] | None) -> tuple[tuple[Field, ...], pa.Schema]:
        """Return the fields and the schema of some columns in this order, of all for None."""
        self.check_columns(columns or ())
        chosen = [field for field in self.schema.fields if columns is None or field.name in columns]
        if columns is not None:
            chosen.sort(key=lambda field: columns.index(field.name))
        return tuple(chosen), Schema(tuple(chosen), {}).storage_arrow

    def take(self, rows: NDArray[np.int64], column: str) -> pa.Array:
        """Take values of a column by row number, in any order."""
        self.check_columns([column])
        if not len(rows):
            return pa.array([], self.column_type(column))
        field = next(field for field in self.schema.fields if field.name == column)
        return self._column(field).take(rows)

    def batches(self, columns: Sequence[str] | None = None, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows in batches of `rows`; by default, batches are smaller if the rows are large."""
        if rows is None:
            rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * self.num_rows // max(self.num_bytes, 1)))
        for start in range(0, self.num_rows, rows):
            yield self.read(start, start + rows, columns)

    def _column(self, field: Field) -> ColumnReader:
        """Return the reader of a column, which is kept with what it knows of its pages."""
        known = self._columns.get(field.name)
        return known if known is not None else self._columns.setdefault(field.name, self._reader.column(field))

    def corrupt(self, what: str) -> CorruptFileError:
        """Return an error that names the file."""
        return CorruptFileError(f"{self.where}: {what}")


class IndexFolder:
    """Folder of the files of an index.

    Parameters
    ----------
    store, path
        The folder.
    sizes
        Sizes in bytes of its files by name, as far as they are known.
    """

    def __init__(self, store: ObjectStore, path: str, sizes: Mapping[str, int] | None = None) -> None:
        self._store = store
        self._path = path
        self._sizes = dict(sizes or {})

    def names(self) -> list[str]:
        """Return the names of the files in ascending order."""
        return sorted(self._sizes) or sorted(self._store.list_names(self._path))

    def open_input(self, name: str) -> InputFile:
        """Open a file of any format.

        Raises
        ------
        MissingFileError
            The file does not exist.
        """
        return self._store.open_input(safe_join(self._path, name, what="file of an index"))

    def open(self, name: str) -> IndexTable:
        """Open a Lance file."""
        return IndexTable(self.open_input(name), self.uri(name))

    def uri(self, name: str) -> str:
        """Return the full name of a file, for error messages."""
        return self._store.uri(f"{self._path}/{name}")


class NewIndexFolder:
    """Folder of the files of an index that is being written.

    Parameters
    ----------
    store, path
        The folder, which does not exist yet.
    """

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._written: dict[str, int] = {}

    @property
    def files(self) -> tuple[IndexFile, ...]:
        """Files written so far, with their names and sizes."""
        return tuple(IndexFile(name, size) for name, size in sorted(self._written.items()))

    def write(
        self,
        name: str,
        schema: Schema,
        version: str,
        batches: Iterable[pa.RecordBatch],
        metadata: Mapping[str, str] | None = None,
        buffers: Mapping[str, bytes] | None = None,
        numbered_buffers: Iterable[bytes] = (),
        cache_bytes: int | None = None,
    ) -> None:
        """Write a Lance file; it is durable on return.

        Parameters
        ----------
        name
            Name of the file.
        schema
            Columns of the file. The metadata of the schema are replaced.
        version
            File version, 2.0 or later.
        batches
            Rows of the file, as storage types. `metadata` and `buffers` are read after the last batch, so they may be
            filled meanwhile.
        metadata
            Metadata of the schema.
        buffers
            Global buffers, each with the metadata key that names it.
        numbered_buffers
            Global buffers that precede `buffers` and get the numbers from 1 on; called after the last batch.
        cache_bytes
            Bytes of rows that are collected before pages are written; None for the default of data files.
        """
        output = self._store.open_output(f"{self._path}/{name}")
        writer = DataFileWriter(output, Schema(schema.fields, {}), version, data_cache_bytes=cache_bytes)
        try:
            for batch in batches:
                writer.write_batch(batch)
            for data in numbered_buffers:
                writer.add_global_buffer(data)
            numbers = {key: str(writer.add_global_buffer(data)) for key, data in (buffers or {}).items()}
            entries = {key: value.encode() for key, value in {**(metadata or {}), **numbers}.items()}
            self._written[name] = writer.finish(entries).size
        except BaseException:
            writer.abort()
            raise

    def copy(self, source: InputFile, name: str) -> None:
        """Copy the bytes of another file; they are durable on return."""
        starts = range(0, source.size, _COPIED_BYTES)
        self.stream(name, (source.read(start, min(_COPIED_BYTES, source.size - start)) for start in starts))

    def put(self, name: str, data: bytes) -> None:
        """Write a file of any format; it is durable on return."""
        self._store.put(f"{self._path}/{name}", data)
        self._written[name] = len(data)

    def stream(self, name: str, parts: Iterable[bytes | memoryview | pa.Buffer]) -> None:
        """Write a file of any format part by part; it is durable on return."""
        output = self._store.open_output(f"{self._path}/{name}")
        try:
            for part in parts:
                output.write(part)
            size = output.tell()
            output.close()
        except BaseException:
            output.abort()
            raise
        self._written[name] = size
