"""Blobs as Python values, and the Arrow type, arrays and fields made of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, TypeAlias

import pyarrow as pa

from lance_dataset.errors import InvalidInputError, OutOfRangeError
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobIterator",
    "BlobType",
    "blob_array",
    "blob_field",
    "register_type",
]

_MAX_THRESHOLD = 2**64 - 1

#: Values that arrays of blobs are made of.
BlobLike: TypeAlias = "bytes | bytearray | memoryview | str | Blob | None"
#: Storage of arrays of blobs: bytes, or the URI of an object, perhaps with a range of it.
_STORAGE = pa.struct(
    [
        pa.field("data", pa.large_binary()),
        pa.field("uri", pa.string()),
        pa.field("position", pa.uint64()),
        pa.field("size", pa.uint64()),
    ]
)


class BlobType(pa.ExtensionType):
    """Arrow extension type ``lance.blob.v2``.

    Parameters
    ----------
    storage
        Struct of ``data``, ``uri`` and perhaps ``position`` and ``size``.
    """

    def __init__(self, storage: pa.DataType = _STORAGE) -> None:
        super().__init__(storage, "lance.blob.v2")

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the metadata of the type, which is empty."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BlobType:
        """Make the type from its storage and metadata."""
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[Any]:
        """Return the class of arrays."""
        return BlobArray

    def __reduce__(self) -> tuple[type[BlobType], tuple[pa.DataType]]:
        """Pickle the type by its storage."""
        return BlobType, (self.storage_type,)


class BlobArray(pa.ExtensionArray):
    """Array of blobs, as `lance_dataset.blob_array` makes it."""

    @classmethod
    def from_pylist(cls, values: Iterable[BlobLike]) -> BlobArray:
        """Make an array from values; see `lance_dataset.blob_array`."""
        return blob_array(values)


@dataclass(frozen=True)
class Blob:
    """A value of a blob column: bytes, or a reference to an object.

    Attributes
    ----------
    data
        The bytes; None for a reference.
    uri
        URI of an object.
    position, size
        Range of the object in bytes; None for the whole object.
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if self.data is not None and self.uri is not None:
            raise InvalidInputError("Blob cannot have both data and uri")
        if (self.position is None) != (self.size is None):
            raise InvalidInputError("External blob must set both position and size, or neither")
        if self.position is not None and self.uri is None:
            raise InvalidInputError("External packed blob must have a uri")
        if self.uri == "":
            raise InvalidInputError("Blob uri cannot be empty")
        if self.data is None and self.uri is None:
            raise InvalidInputError("Blob must set `data` or `uri`; use None for a null blob")
        if (self.position or 0) < 0 or (self.size or 0) < 0:
            raise InvalidInputError("External blob position and size must be non-negative")
        if self.size == 0:
            raise InvalidInputError("External blob range size must be greater than zero")

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """Return the blob with these bytes."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"a blob is made of bytes, not {type(data).__name__}")
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """Return a reference to an object, or to a range of it.

        Raises
        ------
        InvalidInputError
            The URI is empty, only one of `position` and `size` is given, or the range is empty.
        """
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """Return the blob of no bytes."""
        return Blob(data=b"")


def blob_array(values: Iterable[BlobLike]) -> BlobArray:
    """Make an array for a blob column.

    Parameters
    ----------
    values
        Bytes, a URI as text, a `Blob`, or None for each row.

    Raises
    ------
    TypeError
        A value has another type.
    InvalidInputError
        A URI is empty.
    """
    rows = [_blob(value) for value in values]
    columns = [
        pa.array([None if row is None else getattr(row, each.name) for row in rows], each.type) for each in _STORAGE
    ]
    mask = pa.array([row is None for row in rows], pa.bool_())
    storage = pa.StructArray.from_arrays(columns, fields=list(_STORAGE), mask=mask)
    made: BlobArray = pa.ExtensionArray.from_storage(BlobType(), storage)
    return made


def _blob(value: object) -> Blob | None:
    if value is None or isinstance(value, Blob):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return Blob(data=bytes(value))
    if isinstance(value, str):
        return Blob(uri=value)
    # the class of another library, which may exist beside this one
    if all(hasattr(value, name) for name in ("data", "uri", "position", "size")):
        return Blob(*(getattr(value, name) for name in ("data", "uri", "position", "size")))
    raise TypeError(f"BlobArray values must be bytes-like, str (URI), Blob, or None; got {type(value)}")


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """Make the field of a blob column. Files of version 2.2 and later can hold it.

    Parameters
    ----------
    name
        Name of the column.
    nullable
        True if rows may be null.
    inline_size_threshold
        Values up to this size in bytes are stored in the data file; by default 64 KiB.
    dedicated_size_threshold
        Values above this size have a file of their own, by default 4 MiB. Others share files.
    pack_file_size_threshold
        Maximum size of shared files, by default 1 GiB.

    Raises
    ------
    TypeError
        A threshold is not an integer.
    InvalidInputError
        A threshold is negative, or 0 where it must be positive.
    OutOfRangeError
        A threshold does not fit 64 bits.
    """
    given = {"inline": inline_size_threshold, "dedicated": dedicated_size_threshold}
    metadata = {}
    for key, value in {**given, "pack-file": pack_file_size_threshold}.items():
        if value is not None:
            _check_threshold(f"{key.replace('-', '_')}_size_threshold", value, positive=key != "inline")
            metadata[f"lance-encoding:blob-{key}-size-threshold"] = str(value)
    return pa.field(name, BlobType(), nullable, metadata or None)


def _check_threshold(name: str, value: object, *, positive: bool) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < positive:
        raise InvalidInputError(f"{name} must be {'positive' if positive else 'non-negative'}")
    if value > _MAX_THRESHOLD:
        raise OutOfRangeError(f"{name} must fit in a Rust usize: at most {_MAX_THRESHOLD}")


class BlobColumn:
    """Binary column as an iterable of file objects.

    Parameters
    ----------
    blob_column
        Array of binaries.

    Raises
    ------
    InvalidInputError
        The column is not an Arrow array of binaries.
    """

    def __init__(self, blob_column: pa.Array | pa.ChunkedArray) -> None:
        if not isinstance(blob_column, pa.Array | pa.ChunkedArray):
            raise InvalidInputError(f"Expected a pyarrow.Array or pyarrow.ChunkedArray, got {type(blob_column)}")
        if not pa.types.is_binary(blob_column.type) and not pa.types.is_large_binary(blob_column.type):
            raise InvalidInputError(f"Expected a binary array, got {blob_column.type}")
        self.blob_column = blob_column

    def __iter__(self) -> Iterator[IO[bytes] | None]:
        """Iterate over the values as files; nulls are None."""
        return BlobIterator(iter(self.blob_column))


class BlobIterator(Iterator["IO[bytes] | None"]):
    """Iterator of `BlobColumn`."""

    def __init__(self, scalars: Iterator[pa.Scalar]) -> None:
        self._scalars = scalars

    def __next__(self) -> IO[bytes] | None:
        value = next(self._scalars).as_py()
        return None if value is None else io.BytesIO(value)


def register_type() -> None:
    """Make Arrow know the type of blobs, so that it is shown in schemas."""
    with suppress(pa.ArrowKeyError):  # another library of the process may have registered the same type
        pa.register_extension_type(BlobType())
