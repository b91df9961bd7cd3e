"""Protobuf messages from files."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.io.messages import parse_message
from lance_dataset.limits import check_memory
from lancecodec import records
from lancecodec.errors import CodecError

__all__ = [
    "Numbers",
    "joined_ranges",
    "locate_numbers",
    "locate_records",
    "parse_message",
    "split_records",
    "whole_range",
]

Numbers = NDArray[np.int64]

#: Bytes of memory for each record that is located.
_RECORD = 48
#: Messages of fewer bytes are short.
_SHORT = 32


def whole_range(data: bytes) -> tuple[Numbers, Numbers]:
    """Return the start and end of a single record that spans all bytes."""
    return np.zeros(1, np.int64), np.array([len(data)], np.int64)


def locate_records(
    data: bytes, ranges: tuple[Numbers, Numbers], field: int, where: str, *, per_record: int = _RECORD
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Locate the messages in a field of messages, see `lancecodec.records.locate`.

    Parameters
    ----------
    data
        Serialized messages.
    ranges
        Starts and ends of the messages to search.
    field
        Number of the field.
    where
        Name of the file, for error messages.
    per_record
        Bytes of memory that the caller needs for each record, with those of the result.

    Returns
    -------
    owners, heads, starts, ends
        Arrays of int64.

    Raises
    ------
    CorruptFileError
        The bytes are not messages.
    MemoryLimitError
        There are too many.
    """
    none = np.empty(0, np.int64)
    try:
        count = records.locate(data, *ranges, field, none, none, none, none)
        check_memory(count * per_record, len(data), f"{where}: a list of {count:,} messages in field {field}")
        owners, heads, starts, ends = (np.empty(count, np.int64) for _ in range(4))
        records.locate(data, *ranges, field, owners, heads, starts, ends)
    except CodecError as error:
        raise CorruptFileError(f"{where}: field {field} of a message is damaged: {error}") from error
    return owners, heads, starts, ends


def locate_numbers(data: bytes, ranges: tuple[Numbers, Numbers], field: int, where: str) -> tuple[Numbers, Numbers]:
    """Return the signed 32-bit numbers in a field of messages, see `lancecodec.records.numbers`.

    The parameters are those of `locate_records`.

    Returns
    -------
    owners, numbers
        Arrays of int64.

    Raises
    ------
    CorruptFileError
        The bytes are not messages.
    """
    none = np.empty(0, np.int64)
    try:
        count = records.numbers(data, *ranges, field, none, none)
        owners, numbers = np.empty(count, np.int64), np.empty(count, np.int64)
        records.numbers(data, *ranges, field, owners, numbers)
    except CodecError as error:
        raise CorruptFileError(f"{where}: field {field} of a message is damaged: {error}") from error
    return owners, numbers


def joined_ranges(data: bytes, starts: Numbers, ends: Numbers) -> bytes:
    """Concatenate ranges of bytes. Adjacent ranges are copied together."""
    if len(starts) == 0:
        return b""
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    firsts = starts[np.concatenate([[0], breaks + 1])].tolist()
    lasts = ends[np.concatenate([breaks, [len(ends) - 1]])].tolist()
    return b"".join(data[first:last] for first, last in zip(firsts, lasts, strict=True))


def split_records(
    data: bytes, field: int, where: str, *, per_record: int = _RECORD, per_short_record: int = 0
) -> tuple[bytes, bytes]:
    """Split a message into the messages of one field, each with its tag, and the rest.

    Parameters
    ----------
    data, field, where, per_record
        See `locate_records`.
    per_short_record
        Bytes of memory that the caller needs for each message of less than 32 bytes.

    Raises
    ------
    CorruptFileError
        The bytes are not a message.
    MemoryLimitError
        There are too many messages.
    """
    _, heads, starts, ends = locate_records(data, whole_range(data), field, where, per_record=per_record)
    short = int((ends - starts < _SHORT).sum())
    check_memory(short * per_short_record, len(data), f"{where}: a list of {short:,} empty messages in field {field}")
    rest = joined_ranges(data, np.append(0, ends), np.append(heads, len(data)))
    return joined_ranges(data, heads, ends), rest
