"""Writing the data files of a table: a stream of batches becomes fragments."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle

import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.writer import DataFileWriter, LegacyFileWriter, LegacyWrite, open_writer
from lance_dataset.input import storage_batch
from lance_dataset.io.base import ObjectStore, OutputFile
from lance_dataset.schema import Schema
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.paths import DATA_FOLDER, DataFolder

__all__ = [
    "WriteOptions",
    "new_data_file",
    "write_fragment_files",
    "written_file",
    "written_fragment",
]

DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
DEFAULT_MAX_ROWS_PER_GROUP = 1024
#: Finished files that wait for the disk; each is an open file with its buffers.
_MAX_CLOSING = 4


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
            value = checked_integer(name, getattr(self, name))
            if value < 1:
                raise InvalidInputError(f"{name} must be at least 1, not {value}")


def new_file_name() -> str:
    """A unique data file name; its first bits are spelled in binary, to spread files over a store's partitions."""
    unique = os.urandom(16)
    return "".join(f"{byte:08b}" for byte in unique[:3]) + unique[3:].hex() + ".lance"


@contextmanager
def new_data_file(store: ObjectStore, root: str) -> Iterator[tuple[str, OutputFile]]:
    """Name and output of a new data file of a table; removed again if what is done with it fails."""
    name = new_file_name()
    output = store.open_output(f"{root}/{DATA_FOLDER}/{name}")
    try:
        yield name, output
    except BaseException:
        output.abort()  # does nothing where the writer has done it
        raise


def write_fragment_files(
    store: ObjectStore,
    root: str,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    options: WriteOptions,
    folders: Sequence[DataFolder] = (),
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
    folders
        Where the files go, one after the other in turn; nothing for the table itself.

    Returns
    -------
    fragments : list of Fragment
        One per file, with id 0 ("to be given at commit"). If anything fails, all files are removed again.
    schema : Schema
        The schema to commit: that of the data, for legacy (0.1) tables with the dictionaries that the data made.
    """
    rolling = _RollingWriter(store, root, schema, options, folders)
    try:
        for batch in batches:
            rolling.write(storage_batch(batch, schema))
        return rolling.finish(), rolling.schema
    except BaseException:
        rolling.abort()
        raise


class _RollingWriter:
    """Starts a new data file whenever the open one is full."""

    def __init__(
        self, store: ObjectStore, root: str, schema: Schema, options: WriteOptions, folders: Sequence[DataFolder]
    ) -> None:
        self._store = store
        self._root = root
        self._folders = folders or [DataFolder(store, f"{root}/{DATA_FOLDER}")]
        self._in_turn = cycle(self._folders)
        self._folder = self._folders[0]
        self._schema = schema
        self._options = options
        self._finished: list[Fragment] = []
        # Files are synced in the background while the next one is encoded.
        self._closer = ThreadPoolExecutor(1, thread_name_prefix="lance-sync")
        self._closing: deque[Future[None]] = deque()
        self._unclosed: deque[DataFileWriter | LegacyFileWriter] = deque()  # finished, in the order of `_closing`
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
                self._closing.append(self._closer.submit(self._finished_file(writer).close))
                while len(self._closing) > _MAX_CLOSING:
                    self._wait()

    def _part_rows(self, batch: pa.RecordBatch) -> int:
        """Rows to be written before the size of the file is looked at: of a legacy file as many as a batch of it."""
        options = self._options
        large = options.version == LEGACY_VERSION and batch.nbytes > options.max_bytes_per_file
        return options.max_rows_per_group if large else batch.num_rows

    def _start(self) -> DataFileWriter | LegacyFileWriter:
        self._name = new_file_name()
        self._folder = next(self._in_turn)
        output = self._folder.store.open_output(f"{self._folder.path}/{self._name}")
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

    def _finished_file(self, writer: DataFileWriter | LegacyFileWriter) -> DataFileWriter | LegacyFileWriter:
        """Write the end of the open file, which is then left to be closed."""
        summary = writer.finish(close=False)
        self._finished.append(written_fragment(self._name, summary, self._folder.base_id))
        self._unclosed.append(writer)
        self._writer = None
        return writer

    def finish(self) -> list[Fragment]:
        if self._writer is not None:
            self._finished_file(self._writer).close()
        while self._closing:
            self._wait()
        self._closer.shutdown()
        return self._finished

    def _wait(self) -> None:
        """Wait until the file that has been closing for longest is on the disk."""
        self._closing.popleft().result()
        self._unclosed.popleft()

    def abort(self) -> None:
        self._closer.shutdown(wait=True, cancel_futures=True)
        for writer in self._unclosed:
            writer.abort()
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        ChangeFiles(self._store, self._root, data_files_of(self._finished), folders=self._folders).remove()


def written_file(name: str, summary: DataFileSummary, base_id: int | None = None) -> DataFile:
    """A finished data file, as manifests describe it."""
    return DataFile(
        path=name,
        fields=summary.fields,
        column_indices=summary.column_indices,
        file_major_version=summary.major,
        file_minor_version=summary.minor,
        file_size_bytes=summary.size,
        base_id=base_id,
    )


def written_fragment(name: str, summary: DataFileSummary, base_id: int | None = None) -> Fragment:
    """The fragment of a finished data file, with id 0 ("to be given at commit")."""
    return Fragment(id=0, files=(written_file(name, summary, base_id),), physical_rows=summary.num_rows)
