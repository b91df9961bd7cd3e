"""Writing the data files of a table: a stream of batches becomes fragments."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.writer import DataFileWriter, LegacyFileWriter, LegacyWrite, open_writer
from lance_dataset.input import storage_batch
from lance_dataset.io.base import ObjectStore
from lance_dataset.schema import Schema
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.paths import DATA_FOLDER

__all__ = ["WriteOptions", "new_file_name", "remove_data_files", "write_fragment_files"]

DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
DEFAULT_MAX_ROWS_PER_GROUP = 1024


@dataclass(frozen=True)
class WriteOptions:
    """How data files are cut.

    Attributes
    ----------
    version
        File version.
    max_rows_per_file, max_bytes_per_file
        A file is finished when it reaches either; bytes are checked after each batch.
    data_cache_bytes, max_page_bytes
        See `DataFileWriter`.
    max_rows_per_group
        Rows of the batches that legacy (0.1) files consist of.
    """

    version: str
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP

    def __post_init__(self) -> None:
        for name in ("max_rows_per_file", "max_bytes_per_file", "max_rows_per_group"):
            value = getattr(self, name)
            if value < 1:
                raise InvalidInputError(f"{name} must be at least 1, not {value}")


def new_file_name() -> str:
    """A unique data file name; its first bits are spelled in binary, to spread files over a store's partitions."""
    unique = os.urandom(16)
    return "".join(f"{byte:08b}" for byte in unique[:3]) + unique[3:].hex() + ".lance"


def write_fragment_files(
    store: ObjectStore, root: str, schema: Schema, batches: Iterable[pa.RecordBatch], options: WriteOptions
) -> tuple[list[Fragment], Schema]:
    """Write batches into new data files; nothing refers to them until a commit does.

    Parameters
    ----------
    store, root
        The table.
    schema
        Schema with field ids.
    batches
        Batches that fit the schema.
    options
        How files are cut.

    Returns
    -------
    fragments : list of Fragment
        One per file, with id 0 ("to be given at commit"). If anything fails, all files are removed again.
    schema : Schema
        The schema to commit: that of the data, for legacy (0.1) tables with the dictionaries that the data made.
    """
    rolling = _RollingWriter(store, root, schema, options)
    try:
        for batch in batches:
            rolling.write(storage_batch(batch, schema))
        return rolling.finish(), rolling.schema
    except BaseException:
        rolling.abort()
        raise


def remove_data_files(store: ObjectStore, root: str, fragments: Iterable[Fragment]) -> None:
    """Remove the data files of fragments that were never committed."""
    for fragment in fragments:
        for file in fragment.files:
            if file.base_id is None:
                store.delete(f"{root}/{DATA_FOLDER}/{file.path}")


class _RollingWriter:
    """Starts a new data file whenever the open one is full."""

    def __init__(self, store: ObjectStore, root: str, schema: Schema, options: WriteOptions) -> None:
        self._store = store
        self._root = root
        self._schema = schema
        self._options = options
        self._finished: list[Fragment] = []
        # Files are synced in the background while the next one is encoded.
        self._closer = ThreadPoolExecutor(1, thread_name_prefix="lance-sync")
        self._closing: list[tuple[DataFileWriter | LegacyFileWriter, Future[None]]] = []
        self._writer: DataFileWriter | LegacyFileWriter | None = None
        self._name = ""
        self._legacy = LegacyWrite(schema) if options.version == LEGACY_VERSION else None

    @property
    def schema(self) -> Schema:
        """The schema as the table has to store it."""
        return self._schema if self._legacy is None else self._legacy.with_values(self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            writer = self._writer or self._start()
            part = batch.slice(0, min(self._options.max_rows_per_file - writer.num_rows, self._part_rows(batch)))
            batch = batch.slice(part.num_rows)
            writer.write_batch(part)
            full = writer.bytes_written + writer.bytes_pending >= self._options.max_bytes_per_file
            if full or writer.num_rows >= self._options.max_rows_per_file:
                self._finish_file()

    def _part_rows(self, batch: pa.RecordBatch) -> int:
        """Rows to be written before the size of the file is looked at: of a legacy file as many as a batch of it."""
        options = self._options
        large = options.version == LEGACY_VERSION and batch.nbytes > options.max_bytes_per_file
        return options.max_rows_per_group if large else batch.num_rows

    def _start(self) -> DataFileWriter | LegacyFileWriter:
        self._name = new_file_name()
        output = self._store.open_output(f"{self._root}/{DATA_FOLDER}/{self._name}")
        options = self._options
        try:
            self._writer = open_writer(
                output,
                self._schema,
                options.version,
                data_cache_bytes=options.data_cache_bytes,
                max_page_bytes=options.max_page_bytes,
                max_rows_per_group=min(options.max_rows_per_group, options.max_rows_per_file),
                legacy=self._legacy,
            )
        except BaseException:
            output.abort()
            raise
        return self._writer

    def _finish_file(self) -> None:
        if self._writer is not None:
            summary = self._writer.finish(close=False)
            self._finished.append(_fragment(self._name, summary))
            self._closing.append((self._writer, self._closer.submit(self._writer.close)))
            self._writer = None

    def finish(self) -> list[Fragment]:
        self._finish_file()
        for _, closed in self._closing:
            closed.result()
        self._closer.shutdown()
        return self._finished

    def abort(self) -> None:
        self._closer.shutdown(wait=True, cancel_futures=True)
        for writer, _ in self._closing:
            writer.abort()
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        remove_data_files(self._store, self._root, self._finished)


def _fragment(name: str, summary: DataFileSummary) -> Fragment:
    file = DataFile(
        path=name,
        fields=summary.fields,
        column_indices=summary.column_indices,
        file_major_version=summary.major,
        file_minor_version=summary.minor,
        file_size_bytes=summary.size,
    )
    return Fragment(id=0, files=(file,), physical_rows=summary.num_rows)
