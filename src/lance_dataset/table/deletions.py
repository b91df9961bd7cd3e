"""Deletion files, which list the deleted rows of a fragment."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.events import emit
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.arrow_batch import read_column
from lance_dataset.table.fragment import DeletionFile, DeletionFileType, Fragment
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import decode_bitmap, encode_bitmap

__all__ = ["decode_deletions", "encode_deletions", "new_deletions", "read_deletions", "united", "write_deletions"]

_Offset = TypeVar("_Offset", np.uint32, np.int64)

#: Maximum number of offsets in an Arrow file. More are written as a bitmap.
_MAX_ARROW = 5_000
_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
#: Limit for fragments without a recorded number of rows.
_MAX_UNKNOWN = 1 << 28
#: Bytes of memory for a deleted row: as it is decoded, and as a 64-bit number of a fragment.
_OFFSET_BYTES = 16


def read_deletions(
    locator: FileLocator, fragment: Fragment, physical_rows: int | None = None
) -> npt.NDArray[np.uint32]:
    """Read the offsets of the deleted rows of a fragment.

    Parameters
    ----------
    locator
        Finds the file.
    fragment
        The fragment.
    physical_rows
        Number of rows of the fragment, if its manifest does not state it.

    Returns
    -------
    ndarray of uint32
        Ascending, without duplicates. Empty without a deletion file.

    Raises
    ------
    MissingFileError
        The deletion file does not exist.
    CorruptFileError
        Its content contradicts the format or the manifest.
    MemoryLimitError
        The deleted rows need too much memory for the files of the fragment.
    """
    file = fragment.deletion_file
    if file is None:
        return np.empty(0, np.uint32)
    store, path = locator.deletion_file(fragment.id, file)
    rows = physical_rows or fragment.physical_rows
    offsets = decode_deletions(
        store.read(path),
        file.file_type,
        rows or _MAX_UNKNOWN,
        path,
        bytes_read=partial(_stored_bytes, locator, fragment),
    )
    if file.num_deleted_rows and len(offsets) != file.num_deleted_rows:
        raise CorruptFileError(f"{path}: lists {len(offsets)} rows, but its manifest says {file.num_deleted_rows}")
    return offsets


def _stored_bytes(locator: FileLocator, fragment: Fragment) -> int:
    """Return the size of the files of a fragment in storage; the manifest may claim any."""
    places = [locator.data_file(file) for file in fragment.files]
    if fragment.deletion_file is not None:
        places.append(locator.deletion_file(fragment.id, fragment.deletion_file))
    return sum(store.open_input(path).size for store, path in dict.fromkeys(places))


def write_deletions(
    store: ObjectStore, root: str, fragment_id: int, read_version: int, offsets: npt.ArrayLike
) -> DeletionFile:
    """Write a new deletion file with all deleted offsets of a fragment, old and new.

    Parameters
    ----------
    store, root
        The table.
    fragment_id, read_version, offsets
        See `new_deletions`.

    Returns
    -------
    DeletionFile
        Value for `Fragment.deletion_file`.
    """
    file, path, data = new_deletions(store, root, fragment_id, read_version, offsets)
    # Nothing refers to the name before a manifest does, so the file can be written in place, which saves a sync.
    store.put_new([(path, data)])
    emit("file_audit", mode="create", type="deletion", path=path)
    return file


def new_deletions(
    store: ObjectStore, root: str, fragment_id: int, read_version: int, offsets: npt.ArrayLike
) -> tuple[DeletionFile, str, bytes]:
    """Make the content of a new deletion file with all deleted offsets of a fragment, old and new.

    Parameters
    ----------
    store, root
        The table.
    fragment_id
        The fragment.
    read_version
        Version to which the offsets belong.
    offsets
        Unsigned 32-bit offsets in any order. Duplicates are allowed.

    Returns
    -------
    file : DeletionFile
        Value for `Fragment.deletion_file`.
    path : str
        Path of the file, which is not written yet.
    data : bytes
        Its content.
    """
    distinct = np.asarray(offsets, dtype=np.uint32)
    if (distinct[1:] <= distinct[:-1]).any():
        distinct = np.unique(distinct)
    if len(distinct) == 0:
        raise InvalidInputError(f"fragment {fragment_id} has no deleted rows, so it needs no deletion file")
    file_type = DeletionFileType.ARROW_ARRAY if len(distinct) <= _MAX_ARROW else DeletionFileType.BITMAP
    file = DeletionFile(file_type, read_version, secrets.randbits(64), len(distinct))
    _, path = FileLocator(store, root).deletion_file(fragment_id, file)
    return file, path, encode_deletions(distinct, file_type)


def united(first: npt.NDArray[_Offset], second: npt.NDArray[_Offset]) -> npt.NDArray[_Offset]:
    """Merge two ascending lists of offsets without common values."""
    if len(first) == 0 or len(second) == 0:
        return second if len(first) == 0 else first
    both = np.concatenate([first, second])
    both.sort(kind="stable")  # finds the two runs and merges them
    return both


def encode_deletions(offsets: npt.NDArray[np.uint32], file_type: DeletionFileType) -> bytes:
    """Encode distinct offsets as the content of a deletion file."""
    if file_type is DeletionFileType.BITMAP:
        return encode_bitmap(offsets)
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array(offsets, pa.uint32())], schema=_SCHEMA))
    return sink.getvalue()


def decode_deletions(
    data: bytes,
    file_type: DeletionFileType,
    physical_rows: int,
    where: str,
    *,
    bytes_read: Callable[[], int] | None = None,
) -> npt.NDArray[np.uint32]:
    """Decode the offsets of a deletion file, ascending and distinct. All must be below `physical_rows`.

    Parameters
    ----------
    data, file_type, where
        Content, format and name of the file.
    physical_rows
        Number of rows of the fragment.
    bytes_read
        See `decode_bitmap`.

    Raises
    ------
    CorruptFileError
        The content contradicts the format or the fragment.
    MemoryLimitError
        The offsets need too much memory.
    """
    if file_type is DeletionFileType.BITMAP:
        return decode_bitmap(data, physical_rows, where, per_value=_OFFSET_BYTES, bytes_read=bytes_read)
    offsets = read_column(data, _SCHEMA, where)
    if (offsets[1:] <= offsets[:-1]).any():
        offsets = np.unique(offsets)
    if len(offsets) and int(offsets[-1]) >= physical_rows:
        raise CorruptFileError(f"{where}: deletes row {offsets[-1]} of a fragment of {physical_rows} rows")
    return offsets
