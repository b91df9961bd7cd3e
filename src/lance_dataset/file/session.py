"""Files below one folder: `LanceFileSession`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, MissingFileError
from lance_dataset.file.blob_descriptors import (
    DATA_SUFFIX,
    DedicatedBlobWriter,
    PackedBlobWriter,
    blob_name,
    checked_blob_id,
)
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter
from lance_dataset.io.base import is_plain_path
from lance_dataset.io.catalogs import options_of_table
from lance_dataset.io.resolve import resolve
from lance_dataset.late_dataclass import dataclass

__all__ = ["LanceFileSession", "ListResult"]

#: Bytes of a file that are copied at once.
_COPIED = 8 << 20


@dataclass(frozen=True)
class ListResult:
    """Content of a folder, without that of its folders.

    Attributes
    ----------
    common_prefixes
        Paths of its folders.
    objects
        Paths of its files.
    """

    common_prefixes: list[str]
    objects: list[str]


class LanceFileSession:
    """Lance files, and files of any format, below one folder of a store. Paths are relative to it.

    Parameters
    ----------
    base_path
        Path or URI of the folder, which may not exist yet.
    storage_options
        See `lance_dataset.io.resolve`.
    namespace_client, table_id
        Client of the catalog that has the dataset of the files, and its id there; the catalog may lend storage options.

    Raises
    ------
    InvalidInputError
        The location is empty, or a storage option has a wrong value.
    UnsupportedError
        The store is not supported.
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
    ) -> None:
        storage_options = options_of_table(namespace_client, table_id, storage_options)
        self._base = os.fspath(base_path).rstrip("/")
        self._options = storage_options
        self._store, self._root = resolve(base_path, storage_options)

    def __repr__(self) -> str:
        return f"LanceFileSession({self._base!r})"

    def _place(self, path: str | os.PathLike[str]) -> str:
        """Return the path of a file in the store."""
        return f"{self._root}/{_checked(path)}"

    def open_reader(self, path: str, columns: Sequence[str] | None = None) -> LanceFileReader:
        """Open a Lance file. Parameters and errors are those of `LanceFileReader`."""
        return LanceFileReader(f"{self._base}/{_checked(path)}", self._options, columns)

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """Create a Lance file. Parameters and errors are those of `LanceFileWriter`.

        `keep_original_array` is ignored.
        """
        return LanceFileWriter(
            f"{self._base}/{_checked(path)}",
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            storage_options=self._options,
            max_page_bytes=max_page_bytes,
        )

    def open_packed_blob_writer(self, path: str, blob_id: int) -> PackedBlobWriter:
        """Create a file with values of a blob column beside a data file that may not exist yet.

        Parameters
        ----------
        path
            Path of the data file.
        blob_id
            Number of the new file, from 1, which is unique among those beside the data file.

        Raises
        ------
        InvalidInputError
            The name of the data file does not end with ``.lance``, or the number is 0.
        """
        return PackedBlobWriter(self._store, *self._beside(path, blob_id))

    def open_dedicated_blob_writer(self, path: str, blob_id: int) -> DedicatedBlobWriter:
        """Create a file with one value of a blob column; see `open_packed_blob_writer`."""
        return DedicatedBlobWriter(self._store, *self._beside(path, blob_id))

    def _beside(self, path: str, blob_id: int) -> tuple[str, int]:
        if not isinstance(path, str):
            raise TypeError(f"argument 'path': {type(path).__name__!r} object is not an instance of 'str'")
        number = checked_blob_id(blob_id)
        if not path.endswith(DATA_SUFFIX):
            raise InvalidInputError(f"Data file path {path!r} must end with '{DATA_SUFFIX}'")
        return f"{self._place(path.removesuffix(DATA_SUFFIX))}/{blob_name(number)}", number

    def contains(self, path: str) -> bool:
        """Return True if there is a file of this path."""
        return self._store.exists(self._place(path))

    def list(self, path: str | None = None) -> list[str]:
        """Return the paths of all files below a folder, sorted; none if it does not exist."""
        return sorted(self._paths(path))

    def _paths(self, path: str | None) -> Iterator[str]:
        folder = self._root if path is None else self._place(path)
        for info in self._store.list_tree(folder):
            yield info.path[len(self._root) + 1 :]

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """Return what is directly in a folder; nothing if it does not exist."""
        depth = 0 if path is None else len(_checked(path)) + 1
        folders, files = set(), []
        for each in self._paths(path):
            name, slash, _ = each[depth:].partition("/")
            if slash:
                folders.add(each[:depth] + name)
            else:
                files.append(each)
        return ListResult(sorted(folders), sorted(files))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return bytes of a file.

        Raises
        ------
        MissingFileError
            The file does not exist.
        InvalidInputError
            The range does not lie in the file.
        """
        source = self._store.open_input(self._place(path))
        if offset < 0 or length < 0 or offset + length > source.size:
            raise InvalidInputError(f"{path}: bytes {offset} to {offset + length} of a file of {source.size} bytes")
        return source.read(offset, length).to_pybytes()

    def delete_file(self, path: str) -> None:
        """Remove a file.

        Raises
        ------
        MissingFileError
            The file does not exist.
        """
        if not self.contains(path):
            raise MissingFileError(f"{self._store.uri(self._place(path))} does not exist")
        self._store.delete(self._place(path))

    def upload_file(self, local_path: str | os.PathLike[str], remote_path: str) -> None:
        """Copy a file of this machine to the store; an existing one is replaced.

        Raises
        ------
        OSError
            The file cannot be read.
        """
        place = self._place(remote_path)
        if not self._store.exists(place):
            self._upload(local_path, place)
            return
        early = f"{place}.{uuid.uuid4().hex}"
        self._upload(local_path, early)
        try:
            self._store.copy(early, place)
        finally:
            self._store.delete(early)

    def _upload(self, local_path: str | os.PathLike[str], place: str) -> None:
        with Path(local_path).open("rb") as source:
            output = self._store.open_output(place)
            try:
                while data := source.read(_COPIED):
                    output.write(data)
                output.close()
            except BaseException:
                output.abort()
                raise

    def download_file(self, remote_path: str, local_path: str | os.PathLike[str]) -> None:
        """Copy a file of the store to this machine; an existing one is replaced.

        Raises
        ------
        MissingFileError
            The file does not exist.
        OSError
            The copy cannot be written.
        """
        source = self._store.open_input(self._place(remote_path))
        with Path(local_path).open("wb") as target:
            for start in range(0, source.size, _COPIED):
                target.write(source.read(start, min(_COPIED, source.size - start)))


def _checked(path: str | os.PathLike[str]) -> str:
    """Return a path below the folder of a session; raise InvalidInputError unless it is one."""
    text = os.fspath(path)
    if not is_plain_path(text):
        raise InvalidInputError(f"{text!r} is not a path below the folder of the session")
    return text
