"""Navigation in JSON documents in their binary form, decoding only what is needed.

A value is a document of its own: `bytes` that `lance_dataset.file.jsonb` reads.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.jsonb import decode_document, encode_document

__all__ = ["Scalar", "as_document", "descendants", "element", "elements", "is_container", "member", "members", "scalar"]

Scalar = str | int | float | bool | None

_KIND, _COUNT = 0xE0000000, 0x1FFFFFFF
_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_ENTRY_KIND, _LENGTH = 0x70000000, 0x0FFFFFFF
_CONTAINER, _STRING = 0x50000000, 0x10000000
#: Numbers that JSON text does not have.
_SPECIAL = {b"\x10": math.nan, b"\x20": math.inf, b"\x30": -math.inf}
_WORD = struct.Struct(">I")


def as_document(value: str | bytes) -> bytes:
    """Return a value in binary form, encoding it if it is text.

    Binary values that begin like JSON text are also treated as text, because no document in binary form begins so.
    """
    if isinstance(value, str):
        return encode_document(value)
    if not value or value[0] & 0xE0 == 0x80 or 0x40 <= value[0] < 0x5B or value[:4] == b"\x20\x00\x00\x00":
        return value
    return encode_document(value.decode())


def is_container(document: bytes) -> bool:
    """Return True if the value is an array or an object."""
    return bool(document) and document[0] & 0xE0 != 0x20


def elements(document: bytes) -> list[bytes] | None:
    """Return the elements of an array; None for other values."""
    kind, entries, at = _header(document)
    return list(_payloads(document, entries, at)) if kind == _ARRAY else None


def element(document: bytes, index: int) -> bytes | None:
    """Return one element of an array; None if the index is out of range, and for other values."""
    kind, entries, at = _header(document)
    if kind != _ARRAY or not 0 <= index < len(entries):
        return None
    return _payload(document, entries[index], at + sum(entry & _LENGTH for entry in entries[:index]))


def members(document: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the keys and values of an object; None for other values."""
    kind, entries, at = _header(document)
    if kind != _OBJECT:
        return None
    half = len(entries) // 2
    names, end = _names(document, entries[:half], at)
    return list(zip(names, _payloads(document, entries[half:], end), strict=True))


def member(document: bytes, key: bytes) -> bytes | None:
    """Return the value under a key of an object; None if the key is missing, and for other values."""
    kind, entries, at = _header(document)
    if kind != _OBJECT:
        return None
    half, wanted, place = len(entries) // 2, len(key), -1
    for number in range(half):
        length = entries[number] & _LENGTH
        if length == wanted and document[at : at + length] == key:
            place = number
        at += length
    if at > len(document):
        raise CorruptFileError(f"the keys of a JSON object end at byte {at} of {len(document)}")
    if place < 0:
        return None
    begin = at + sum(entry & _LENGTH for entry in entries[half : half + place])
    return _payload(document, entries[half + place], begin)


def descendants(document: bytes, depth: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield a value and all values inside it with their depth, in the order in which they are written."""
    yield depth, document
    if is_container(document):
        inner = elements(document)
        values = inner if inner is not None else [value for _, value in members(document) or ()]
        for value in values:
            yield from descendants(value, depth + 1)


def scalar(document: bytes) -> Scalar:
    """Return the value of a document that is not a container."""
    kind = document[4] & 0x70 if len(document) > 8 else -1
    if kind == 0x10:
        try:
            return document[8:].decode()
        except UnicodeDecodeError as error:
            raise CorruptFileError(f"a JSON string is not UTF-8: {error}") from error
    if kind == 0x20 and document[8] in (0x40, 0x50) and len(document) in (10, 11, 13, 17):
        return int.from_bytes(document[9:], "big", signed=document[8] == 0x40)
    if kind == 0x20 and document[8:] in _SPECIAL:
        return _SPECIAL[document[8:]]
    value: Scalar = json.loads(decode_document(document))
    return value


def _header(document: bytes) -> tuple[int, Sequence[int], int]:
    """Return the kind, the entries and the start of the payloads of the outermost container."""
    try:
        (header,) = _WORD.unpack_from(document)
        kind, count = header & _KIND, header & _COUNT
        number = 1 if kind == _SCALAR else 2 * count if kind == _OBJECT else count
        if number > len(document) // 4:
            raise CorruptFileError(f"JSON container of {count} elements in {len(document)} bytes")
        return kind, struct.unpack_from(f">{number}I", document, 4), 4 * (1 + number)
    except struct.error:
        if document:
            raise CorruptFileError(f"a JSON document of {len(document)} bytes has no header") from None
        return _SCALAR, (0,), 0


def _names(document: bytes, entries: Sequence[int], at: int) -> tuple[list[bytes], int]:
    names = []
    for entry in entries:
        end = at + (entry & _LENGTH)
        names.append(document[at:end])
        at = end
    return names, at


def _payloads(document: bytes, entries: Sequence[int], at: int) -> Iterator[bytes]:
    for entry in entries:
        yield _payload(document, entry, at)
        at += entry & _LENGTH


def _payload(document: bytes, entry: int, at: int) -> bytes:
    """Return the value of an entry as a document."""
    end = at + (entry & _LENGTH)
    if end > len(document):
        raise CorruptFileError(f"JSON value of {entry & _LENGTH} bytes at byte {at} of {len(document)}")
    if entry & _ENTRY_KIND == _CONTAINER:
        return document[at:end]
    return struct.pack(">II", _SCALAR, entry) + document[at:end]
