"""Small data files that are loaded into memory and read as one, which saves the cost per file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.container import ALIGNMENT, ColumnMetadata, FileMetadata, PageMetadata
from lance_dataset.file.reader import open_metadata
from lance_dataset.io.memory import MemoryInput
from lance_dataset.io.statistics import IOCounter
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.paths import FileLocator
from lance_dataset.types.schema import Schema

__all__ = ["JoinedFiles", "LoadedFiles", "is_joinable"]

_Opened = TypeVar("_Opened")

#: Versions whose pages are self-contained, except for early files of 2.1.
_VERSIONS = frozenset({"2.1", "2.2"})
_LAYOUT = "lance.encodings21.PageLayout"


def is_joinable(fragment: Fragment) -> bool:
    """Return True if the files of a fragment have a version that can be joined with other files."""
    return all(file.storage_version in _VERSIONS for file in fragment.files)


class LoadedFiles(FileLocator):
    """File locator that opens data files by loading them completely."""

    def opened(self, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        """Open a data file; see `FileLocator.opened`."""
        store, path = self.data_file(file)
        source = MemoryInput(store.uri(path), self.content(file), IOCounter())
        return cast("_Opened", open_metadata(source, file.fields, legacy=False))

    def content(self, file: DataFile) -> bytes:
        """Read all bytes of a file.

        Raises
        ------
        CorruptFileError
            The file does not have the size that the manifest says.
        """
        store, path = self.data_file(file)
        content = store.read(path)
        if len(content) != file.file_size_bytes:
            raise CorruptFileError(
                f"{store.uri(path)}: has {len(content)} bytes, but its manifest says {file.file_size_bytes}"
            )
        return content


class JoinedFiles(LoadedFiles):
    """File locator that opens the files of the first fragment as if they had the rows of all fragments.

    Parameters
    ----------
    files
        Locator that loads the files.
    fragments
        Joinable fragments whose files hold the same columns at the same positions.
    """

    def __init__(self, files: LoadedFiles, fragments: Sequence[Fragment]) -> None:
        self._files = files
        self._fragments = fragments
        self._joined: dict[DataFile, _JoinedFile] = {}

    def opened(self, file: DataFile, make: Callable[[], _Opened]) -> _Opened:
        """Open a data file; see `FileLocator.opened`."""
        return cast("_Opened", self._joined[file])

    def join(self) -> Fragment | None:
        """Return a fragment with the rows of all fragments, but no deletions; None if an early file has other pages."""
        first = self._fragments[0]
        for place, file in enumerate(first.files):
            joined = _joined(self._files, [(each, each.files[place]) for each in self._fragments])
            if joined is None:
                return None
            self._joined[file] = joined
        return Fragment(first.id, first.files, physical_rows=sum(each.physical_rows for each in self._fragments))


class _JoinedFile(FileMetadata):
    """Metadata of files that lie one after the other in one buffer."""

    def __init__(self, source: MemoryInput, parts: Sequence[FileMetadata], columns: dict[int, ColumnMetadata]) -> None:
        first = parts[0]
        self.source = source
        self.version = first.version
        self.footer_version = first.footer_version
        self.num_columns = first.num_columns
        self._first = first
        self._num_rows = sum(part.num_rows for part in parts)
        self._columns = columns
        self._last = None

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """Schema of the first file; the others have the same columns."""
        return self._first.schema


def _joined(files: LoadedFiles, held: Sequence[tuple[Fragment, DataFile]]) -> _JoinedFile | None:
    contents, starts, at = [], [], 0
    for _, file in held:
        content = files.content(file)
        padding = bytes(-len(content) % ALIGNMENT)
        contents += [content, padding]
        starts.append(at)
        at += len(content) + len(padding)
    whole = pa.py_buffer(b"".join(contents))
    parts = []
    for (fragment, file), start in zip(held, starts, strict=True):
        store, path = files.data_file(file)
        source = MemoryInput(store.uri(path), whole.slice(start, file.file_size_bytes), IOCounter())
        part = FileMetadata(source)
        if part.num_rows != fragment.physical_rows or part.version != file.storage_version:
            raise CorruptFileError(
                f"{source.path}: has {part.num_rows} rows in version {part.version}, but its fragment should have "
                f"{fragment.physical_rows} in version {file.storage_version}"
            )
        parts.append(part)
    first = held[0][1]
    columns = {}
    for index in {index for field_id, index in first.columns if field_id >= 0 and index >= 0}:
        column = _column(index, parts, starts)
        if column is None:
            return None
        columns[index] = column
    path = f"{parts[0].source.path} and {len(parts) - 1} more files"
    return _JoinedFile(MemoryInput(path, whole, IOCounter()), parts, columns)


def _column(index: int, parts: Sequence[FileMetadata], starts: Sequence[int]) -> ColumnMetadata | None:
    """Join a column of all files; return None if one of them has something other than self-contained pages."""
    pages: list[PageMetadata] = []
    lengths = []
    for part, start in zip(parts, starts, strict=True):
        column = part.column(index)
        if column.kind != "values" or column.buffers:
            return None
        lengths.append(sum([page.length for page in column.pages]))
        for page in column.pages:
            if page.type_name != _LAYOUT:
                return None
            buffers = tuple([(position + start, size) for position, size in page.buffers])
            pages.append(PageMetadata(buffers, page.length, page.type_name, page.encoding))
    for part, length in zip(parts, lengths, strict=True):
        # For fixed-size lists the length is a multiple of the rows, the same multiple in all files.
        if length * parts[0].num_rows != lengths[0] * part.num_rows:
            raise CorruptFileError(f"{part.source.path}: column {index} has {length} values in {part.num_rows} rows")
    return ColumnMetadata(index, "values", (), tuple(pages))
