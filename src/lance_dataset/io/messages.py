"""Parse protobuf messages of files, within a limit of memory.

Two bytes of a file can be a message in a list, which takes a hundred times as much memory. So a long message is weighed
before it is parsed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.limits import BASE_MEMORY, check_memory
from lancecodec import records
from lancecodec.errors import CodecError

__all__ = ["message_memory", "parse_message"]

_Parsed = TypeVar("_Parsed", bound=Message)

#: Bytes of memory of a message: itself with its place in a growing list or table, a text, and any other field.
_MESSAGE = 64
_TEXT_FIELD = 16
_FIELD = 8
#: Bytes of memory of a number in a list that grows by doubling.
_NUMBER = 24
#: Bytes of memory of a text in a list, in addition to its copy.
_TEXT = 48
_TEXT_KINDS = (FieldDescriptor.CPPTYPE_STRING,)


class _Types(NamedTuple):
    """Types of messages that a message can contain, for `lancecodec.records.weigh`."""

    fixed: NDArray[np.int64]
    fields: NDArray[np.int64]


def parse_message(
    kind: type[_Parsed],
    data: bytes,
    where: str,
    *,
    bytes_read: int | None = None,
    per_message: int = 0,
    per_number: int = 0,
) -> _Parsed:
    """Parse a message.

    Parameters
    ----------
    kind
        Class of the message.
    data
        The bytes.
    where
        Name of the file and place, for error messages.
    bytes_read
        Bytes that the message was read from, if it was compressed; see `lance_dataset.limits.check_memory`.
    per_message, per_number
        Bytes that the caller will allocate for each message in the message, and for each number in its lists.

    Raises
    ------
    CorruptFileError
        The bytes are not such a message.
    MemoryLimitError
        The message would need too much memory.
    """
    needed = message_memory(kind, data, where, per_message=per_message, per_number=per_number)
    check_memory(
        needed, len(data) if bytes_read is None else bytes_read, f"{where}: the {kind.DESCRIPTOR.name} message"
    )
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"{where}: invalid {kind.DESCRIPTOR.name} message: {error}") from error


def message_memory(
    kind: type[Message], data: bytes, where: str, *, per_message: int = 0, per_number: int = 0, exact: bool = False
) -> int:
    """Return about how many bytes of memory a message takes after it was parsed.

    Unless `exact`, the result for a short message is an upper bound, at most `lance_dataset.limits.BASE_MEMORY`. The
    other parameters are those of `parse_message`.

    Raises
    ------
    CorruptFileError
        The bytes are not messages.
    """
    types = _message_types(kind.DESCRIPTOR)
    # A message in a list has at least 2 bytes, and so has a text. A number has at least 1.
    most = max((int(types.fixed.max()) + per_message) // 2, _NUMBER + per_number, _TEXT) + 1
    if not exact and len(data) * most <= BASE_MEMORY:
        return len(data) * most
    try:
        size, messages, numbers = records.weigh(data, types.fixed, types.fields)
    except CodecError as error:
        raise CorruptFileError(f"{where}: invalid {kind.DESCRIPTOR.name} message: {error}") from error
    return size + messages * per_message + numbers * (_NUMBER + per_number)


@lru_cache(maxsize=256)
def _message_types(descriptor: Descriptor) -> _Types:
    """Return the types of messages that a message can contain, starting with its own."""
    numbers = {descriptor.full_name: 0}
    found = [descriptor]
    for outer in found:  # grows
        for field in outer.fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in numbers:
                numbers[inner.full_name] = len(found)
                found.append(inner)
    width = 1 + max((field.number for outer in found for field in outer.fields), default=0)
    fields = np.full((len(found), width), records.BYTES_FIELD, np.int64)
    for number, outer in enumerate(found):
        for field in outer.fields:
            if field.message_type is not None:
                fields[number, field.number] = numbers[field.message_type.full_name]
            elif field.cpp_type not in _TEXT_KINDS and _is_repeated(field):
                fields[number, field.number] = records.NUMBERS_FIELD
    return _Types(np.array([_fixed_memory(outer) for outer in found], np.int64), fields)


def _is_repeated(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):  # protobuf 6; protobuf 7 has no labels
        return field.is_repeated
    return bool(getattr(field, "label") == FieldDescriptor.LABEL_REPEATED)  # noqa: B009


def _fixed_memory(descriptor: Descriptor) -> int:
    """Return the bytes of memory of a message without its texts and lists."""
    texts = sum(field.cpp_type in _TEXT_KINDS for field in descriptor.fields)
    return _MESSAGE + _TEXT_FIELD * texts + _FIELD * (len(descriptor.fields) - texts)
