"""Places of the values of blob columns of version 2: in the data file, in files beside it, or in other objects."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, InvalidInputError, MissingFileError, RowIndexError, UnsafePathError
from lance_dataset.file.blob_fields import DESCRIPTOR
from lance_dataset.io.base import InputFile, ObjectStore
from lance_dataset.late_dataclass import dataclass
from lance_dataset.table.fragment import DataFile
from lance_dataset.table.paths import FileLocator

__all__ = ["BlobKind", "BlobPlaces", "BlobRange", "Descriptors"]

_REMEMBERED = 32


class BlobKind(IntEnum):
    """Kind of place that holds a value."""

    INLINE = 0
    PACKED = 1
    DEDICATED = 2
    EXTERNAL = 3
    MANAGED = 4
    MANAGED_IN_BASE = 5


@dataclass(frozen=True)
class BlobRange:
    """Byte range of a file.

    Attributes
    ----------
    open
        Returns the file; opened when it is first read.
    position, size
        Start and length in bytes.
    """

    open: Callable[[], InputFile]
    position: int
    size: int

    @property
    def source(self) -> InputFile:
        """The file.

        Raises
        ------
        MissingFileError
            The file does not exist.
        CorruptFileError
            The range ends after the file.
        """
        found = self.open()
        if self.position + self.size > found.size:
            raise CorruptFileError(
                f"{found.path}: a blob has {self.size} bytes at {self.position}, but the file has {found.size}"
            )
        return found

    def part(self, offset: int, length: int) -> BlobRange:
        """Return the part ``[offset, offset + length)`` of the range.

        Raises
        ------
        RowIndexError
            `offset` or `length` is negative.
        InvalidInputError
            The part ends after the range.
        """
        if offset < 0 or length < 0:
            raise RowIndexError(f"offset and length must not be negative, got {offset} and {length}")
        if offset + length > self.size:
            raise InvalidInputError(f"blob range end {offset + length} exceeds blob size {self.size}")
        return BlobRange(self.open, self.position + offset, length)


@dataclass(frozen=True, eq=False)
class Descriptors:
    """Columns of an array of descriptors.

    Attributes
    ----------
    valid : bool[n]
        False for nulls, whose other columns mean nothing.
    kinds : uint8[n]
    positions, sizes : uint64[n]
    blob_ids : uint32[n]
    uris
        Text of each row.
    """

    valid: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    positions: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    blob_ids: NDArray[np.uint32]
    uris: pa.Array

    @classmethod
    def of(cls, array: pa.StructArray) -> Descriptors:
        """Take an array apart. A null kind also makes a null."""
        names = [child.name for child in DESCRIPTOR]
        kinds, positions, sizes, blob_ids, uris = (array.field(array.type.get_field_index(name)) for name in names)
        valid = np.asarray(array.is_valid()) & np.asarray(kinds.is_valid())
        return cls(valid, *map(_filled, (kinds, positions, sizes, blob_ids)), uris)  # type: ignore[call-arg]


def _filled(numbers: pa.Array) -> NDArray[Any]:
    found: NDArray[Any] = (numbers.fill_null(0) if numbers.null_count else numbers).to_numpy()
    return found


class BlobPlaces:
    """Finds the values that descriptors of one column of one data file refer to.

    Parameters
    ----------
    locator
        Locator of the files of the table.
    file
        The data file that holds the descriptors.
    source
        Returns the data file.
    """

    def __init__(self, locator: FileLocator, file: DataFile, source: Callable[[], InputFile]) -> None:
        self._locator = locator
        self._file = file
        self._source = source
        # Bound to the object, so that files are closed with it.
        self._beside = lru_cache(_REMEMBERED)(self._open_beside)
        self._object = lru_cache(_REMEMBERED)(self._open_object)

    def range_of(self, kind: int, position: int, size: int, blob_id: int, uri: str) -> BlobRange:
        """Return the byte range of a value.

        Raises
        ------
        CorruptFileError
            The descriptor is not one that a writer makes.
        MissingFileError
            An external object, whose size is not in the descriptor, does not exist.
        """
        if kind == BlobKind.INLINE:
            return BlobRange(self._source, position, size)
        if kind > max(BlobKind):
            raise CorruptFileError(f"{self._where}: a blob has the unknown kind {kind}")
        if size == 0 and kind != BlobKind.EXTERNAL:
            return BlobRange(self._source, 0, 0)
        if kind in (BlobKind.PACKED, BlobKind.DEDICATED):
            if blob_id == 0:
                raise CorruptFileError(f"{self._where}: a blob lies in a file beside the data file, but has no number")
            return BlobRange(lambda: self._beside(blob_id), position, size)
        opener = self._opener(kind, blob_id, uri)
        if size == 0:
            whole = opener().size
            if position:
                raise CorruptFileError(f"{self._where}: an external blob begins at {position} but has no size")
            return BlobRange(opener, 0, whole)
        return BlobRange(opener, position, size)

    @property
    def source(self) -> InputFile:
        """The data file."""
        return self._source()

    def external_uri(self, blob_id: int, uri: str) -> str:
        """Return the absolute URI of an external object."""
        return uri if blob_id == 0 else self._locator.base_uri(blob_id, uri)

    @property
    def _where(self) -> str:
        return f"data file {self._file.path!r}"

    def _opener(self, kind: int, blob_id: int, uri: str) -> Callable[[], InputFile]:
        if not uri:
            raise CorruptFileError(f"{self._where}: a blob outside the table has no URI")
        return lambda: self._object(kind, blob_id, uri)

    def _open_beside(self, blob_id: int) -> InputFile:
        store, path = self._locator.blob_file(self._file, blob_id)
        try:
            return store.open_input(path)
        except FileNotFoundError as error:
            raise MissingFileError(
                f"{store.uri(path)} does not exist: it holds values of a blob column of {self._where}; restore the file"
            ) from error

    def _place(self, kind: int, blob_id: int, uri: str) -> tuple[ObjectStore, str]:
        if kind == BlobKind.EXTERNAL and blob_id == 0:
            return self._locator.external_object(uri)
        return self._locator.blob_object(self._file.base_id if kind == BlobKind.MANAGED else blob_id, uri)

    def _open_object(self, kind: int, blob_id: int, uri: str) -> InputFile:
        try:
            store, path = self._place(kind, blob_id, uri)
            return store.open_input(path)
        except FileNotFoundError as error:
            raise MissingFileError(
                f"{uri!r} does not exist: {self._where} refers to it as the value of a blob column"
            ) from error
        except UnsafePathError as error:
            raise UnsafePathError(f"{self._where}: a blob refers to {uri!r}: {error}") from error
