"""Writing a stream of batches to data files, one fragment per file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle

import pyarrow as pa

from lance_dataset.arguments import checked_integer
from lance_dataset.changes.write.blob_files import BlobPolicy
from lance_dataset.errors import InvalidInputError, LanceError
from lance_dataset.events import emit
from lance_dataset.file.goals import StorageGoal
from lance_dataset.file.storage import storage_batch
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.writer import DataFileWriter, LegacyFileWriter, LegacyWrite, open_writer
from lance_dataset.io.base import ObjectStore, OutputFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.records.defaults import (
    DEFAULT_MAX_BYTES_PER_FILE,
    DEFAULT_MAX_ROWS_PER_FILE,
    DEFAULT_MAX_ROWS_PER_GROUP,
)
from lance_dataset.records.fragment import FragmentMetadata
from lance_dataset.records.write_progress import FragmentWriteProgress
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.fragment import LEGACY_VERSION, DataFile, Fragment
from lance_dataset.table.paths import DATA_FOLDER, DataFolder
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.tasks import Background
from lance_dataset.types.schema import Schema

__all__ = [
    "WriteOptions",
    "new_data_file",
    "write_fragment_files",
    "written_file",
    "written_fragment",
]

#: Maximum number of finished files that wait for the disk. Each is an open file with its buffers.
_MAX_CLOSING = 4


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing data files.

    Attributes
    ----------
    version
        File version.
    max_rows_per_file, max_bytes_per_file
        A file is finished when it reaches either limit. Bytes are checked after each batch.
    data_cache_bytes, max_page_bytes
        See `DataFileWriter`.
    max_rows_per_group
        Maximum number of rows in the batches of legacy (0.1) files.
    blobs
        What happens to values of blob columns of version 2; None for a table without them.
    progress
        Hooks that are told of each fragment; None for none.
    goal
        See `DataFileWriter`.
    """

    version: str
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    max_rows_per_group: int = DEFAULT_MAX_ROWS_PER_GROUP
    blobs: BlobPolicy | None = None
    progress: FragmentWriteProgress | None = None
    goal: StorageGoal | None = None

    def __post_init__(self) -> None:
        for name in ("max_rows_per_file", "max_bytes_per_file", "max_rows_per_group"):
            value = checked_integer(name, getattr(self, name))
            if value < 1:
                raise InvalidInputError(f"{name} must be at least 1, not {value}")


def new_file_name() -> str:
    """Make a unique data file name. Its first bits are spelled in binary, to spread files over a store's partitions."""
    unique = os.urandom(16)
    return "".join(f"{byte:08b}" for byte in unique[:3]) + unique[3:].hex() + ".lance"


@contextmanager
def new_data_file(store: ObjectStore, root: str) -> Iterator[tuple[str, OutputFile]]:
    """Create a new data file of a table; yield its name and output. If the block fails, the file is removed."""
    name = new_file_name()
    output = _open_new(store, f"{root}/{DATA_FOLDER}/{name}")
    try:
        yield name, output
    except BaseException:
        output.abort()  # has no effect if the writer has already aborted
        raise


def _open_new(store: ObjectStore, path: str) -> OutputFile:
    """Create a file of a unique name; remove it if an interrupt comes before the caller knows of it."""
    try:
        return store.open_output(path)
    except BaseException:
        with suppress(LanceError, OSError):
            store.delete(path)
        raise


def write_fragment_files(
    store: ObjectStore,
    root: str,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    options: WriteOptions,
    folders: Sequence[DataFolder] = (),
) -> tuple[list[Fragment], Schema]:
    """Write batches to new data files. Nothing refers to them until a commit. If that fails, they are removed.

    Parameters
    ----------
    store, root
        Store and path of the table.
    schema
        Schema with field ids.
    batches
        Batches that fit the schema.
    options
        Options for the files.
    folders
        Folders that the files are spread over in turn; empty for the table itself.

    Returns
    -------
    fragments : list of Fragment
        One fragment per file, with id 0 ("assigned at commit").
    schema : Schema
        The schema to commit: that of the data, for legacy (0.1) tables with the dictionaries of the data.
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
    """Writer that starts a new data file whenever the open one is full."""

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
        self._closing = Background(storage_pool)
        self._unclosed: deque[DataFileWriter | LegacyFileWriter] = deque()  # finished, in the order of `_closing`
        self._writer: DataFileWriter | LegacyFileWriter | None = None
        self._name = ""
        self._legacy = LegacyWrite(schema) if options.version == LEGACY_VERSION else None

    @property
    def schema(self) -> Schema:
        """Schema that the table must store."""
        return self._schema if self._legacy is None else self._legacy.with_values(self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            writer = self._writer or self._start()
            part = batch.slice(0, min(self._options.max_rows_per_file - writer.num_rows, self._part_rows(batch)))
            batch = batch.slice(part.num_rows)
            writer.write_batch(part)
            full = writer.bytes_written + writer.bytes_pending >= self._options.max_bytes_per_file
            if full or writer.num_rows >= self._options.max_rows_per_file:
                self._closing.start(self._finished_file(writer).close)
                # Hooks are told that a fragment is complete before the next one begins.
                while len(self._closing) > (_MAX_CLOSING if self._options.progress is None else 0):
                    self._wait()

    def _part_rows(self, batch: pa.RecordBatch) -> int:
        """Return the number of rows to write before the file size is checked; a group for large legacy batches."""
        options = self._options
        large = options.version == LEGACY_VERSION and batch.nbytes > options.max_bytes_per_file
        return options.max_rows_per_group if large else batch.num_rows

    def _start(self) -> DataFileWriter | LegacyFileWriter:
        self._name = new_file_name()
        self._folder = next(self._in_turn)
        path = f"{self._folder.path}/{self._name}"
        output = _open_new(self._folder.store, path)
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
                blobs=None if options.blobs is None else options.blobs.beside(self._folder.store, path),
                goal=options.goal,
                bounds=True,
            )
        except BaseException:
            output.abort()
            raise
        if options.progress is not None:
            options.progress.begin(FragmentMetadata(0, [], 0))
        return self._writer

    def _finished_file(self, writer: DataFileWriter | LegacyFileWriter) -> DataFileWriter | LegacyFileWriter:
        """Write the end of the open file, but do not close it."""
        summary = writer.finish(close=False)
        self._finished.append(written_fragment(self._name, summary, self._folder.base_id))
        emit("file_audit", mode="create", type="data", path=self._name)
        self._unclosed.append(writer)
        self._writer = None
        return writer

    def finish(self) -> list[Fragment]:
        if self._writer is not None:
            self._finished_file(self._writer).close()
            self._tell_complete()
        while self._closing:
            self._wait()
        return self._finished

    def _tell_complete(self) -> None:
        """Tell the hooks that the newest fragment is on the disk."""
        if self._options.progress is not None:
            self._options.progress.complete(FragmentMetadata.from_fragment(self._finished[-1]))

    def _wait(self) -> None:
        """Wait until the oldest of the closing files is on the disk."""
        self._closing.wait_for_oldest()
        self._unclosed.popleft()
        self._tell_complete()

    def abort(self) -> None:
        self._closing.drop()
        for writer in self._unclosed:
            writer.abort()
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        ChangeFiles(self._store, self._root, data_files_of(self._finished), folders=self._folders).remove()


def written_file(name: str, summary: DataFileSummary, base_id: int | None = None) -> DataFile:
    """Describe a finished data file for the manifest."""
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
    """Make the fragment of a finished data file, with id 0 ("assigned at commit")."""
    return Fragment(id=0, files=(written_file(name, summary, base_id),), physical_rows=summary.num_rows)
