"""Layout of a manifest file: sections, the manifest message, and a footer that points to it."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.table.messages import locate_records, parse_message, split_records
from lancecodec import records
from lancecodec.errors import CodecError

__all__ = [
    "FOOTER",
    "FOOTER_VERSION",
    "LENGTH",
    "MAGIC",
    "ManifestParts",
    "commit_id",
    "manifest_parts",
    "read_section",
    "transaction_position",
]

MAGIC = b"LANC"
#: Numbers of the manifest fields with the schema and the fragments.
_FIELDS, _FRAGMENTS = 1, 2
#: Seconds and nanoseconds of the timestamp, and the number of the field with the name of the transaction file.
_TIMESTAMP = np.array([(7, 1, records.LAST, 0), (7, 2, records.LAST, 0)], np.int64)
_TRANSACTION_FILE = 12
#: Bytes of memory for each fragment of an open manifest. Its columns take 144. The rest is to find it by its id.
_FRAGMENT_MEMORY = 192
#: A fragment of a few bytes has no rows. It takes as much as another one when the table is scanned.
_EMPTY_FRAGMENT_MEMORY = 3000
#: Entry of a dictionary with two short texts.
_ENTRY_MEMORY = 200
FOOTER = struct.Struct("<qHH4s")
LENGTH = struct.Struct("<I")
FOOTER_VERSION = (0, 2)


class ManifestParts(NamedTuple):
    """The message of a manifest, split into parts.

    Attributes
    ----------
    position
        Position of the message in the file.
    fields, fragments
        Bytes of the schema and of the fragments.
    message
        The rest.
    """

    position: int
    fields: bytes
    fragments: bytes
    message: table_pb2.Manifest


def manifest_parts(data: bytes, path: str) -> ManifestParts:
    """Read the manifest message of a file.

    Parameters
    ----------
    data
        The whole file.
    path
        Its name, for error messages.

    Raises
    ------
    CorruptFileError
        The file is not a manifest.
    MemoryLimitError
        It needs too much memory.
    """
    position, start, end = _message_place(data, path)
    fragments, rest = split_records(
        data[start:end], _FRAGMENTS, path, per_record=_FRAGMENT_MEMORY, per_short_record=_EMPTY_FRAGMENT_MEMORY
    )
    fields, rest = split_records(rest, _FIELDS, path)
    message = parse_message(table_pb2.Manifest, rest, path, per_message=_ENTRY_MEMORY)
    return ManifestParts(position, fields, fragments, message)


def commit_id(data: bytes, path: str) -> tuple[int, str]:
    """Return when a manifest was written, in nanoseconds since the epoch, and the name of its transaction file.

    The rest is not decoded. The parameters and errors are those of `manifest_parts`.
    """
    _, start, end = _message_place(data, path)
    message = np.array([start], np.int64), np.array([end], np.int64)
    times = np.empty((2, 1), np.int64)
    try:
        records.columns(data, *message, _TIMESTAMP, times)
    except CodecError as error:
        raise CorruptFileError(f"{path}: invalid Manifest message: {error}") from error
    _, _, starts, ends = locate_records(data, message, _TRANSACTION_FILE, path)
    name = data[starts[-1] : ends[-1]].decode(errors="replace") if len(starts) else ""
    return int(times[0, 0]) * 1_000_000_000 + int(times[1, 0]), name


def _message_place(data: bytes, path: str) -> tuple[int, int, int]:
    """Return the position of the message with its length, and the byte range of the message."""
    end = len(data) - FOOTER.size
    if end < 0:
        raise CorruptFileError(f"{path}: has {len(data)} bytes, too few for a manifest")
    position, _major, _minor, magic = FOOTER.unpack_from(data, end)
    if magic != MAGIC:
        raise CorruptFileError(
            f"{path}: ends with {magic!r} instead of {MAGIC!r}, so it is not a manifest or is truncated"
        )
    if not 0 <= position <= end - LENGTH.size:
        raise CorruptFileError(f"{path}: its footer says the manifest is at byte {position} of {len(data)}")
    (length,) = LENGTH.unpack_from(data, position)
    start = position + LENGTH.size
    if start + length != end:
        raise CorruptFileError(f"{path}: the manifest says it has {length} bytes, but there are {end - start}")
    return position, start, end


def transaction_position(message: table_pb2.Manifest) -> int | None:
    """Return the position of the inline transaction, None if there is none.

    Up to release 11, another field contains it.
    """
    if message.HasField("transaction_section"):
        return message.transaction_section
    if message.HasField("transaction_section_deprecated"):
        return message.transaction_section_deprecated
    return None


def read_section(data: bytes, position: int | None, what: str, path: str) -> bytes | None:
    """Return a length-prefixed section before the footer, None if `position` is None.

    Parameters
    ----------
    data, path
        The file and its name.
    position
        First byte of the section.
    what
        Content of the section, for error messages.

    Raises
    ------
    CorruptFileError
        The section does not lie within the file.
    """
    if position is None:
        return None
    end = len(data) - FOOTER.size
    if position > end - LENGTH.size:
        raise CorruptFileError(f"{path}: says the {what} is at byte {position} of {len(data)}")
    (length,) = LENGTH.unpack_from(data, position)
    start = position + LENGTH.size
    if start + length > end:
        raise CorruptFileError(f"{path}: the {what} says it has {length} bytes, but there are {end - start}")
    return data[start : start + length]
