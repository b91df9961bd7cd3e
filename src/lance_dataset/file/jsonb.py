"""JSON documents in the binary form that JSON columns store.

A container is a header (kind and number of elements), an entry for each element (kind and length), and the payloads in
the same order, all big-endian. In an object, the entries of the keys precede those of the values. Keys ascend by their
bytes. A scalar document is a container of its own kind around one entry. These functions convert single documents;
`lance_dataset.file.json_columns` converts columns in compiled code, with the same results.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError

__all__ = ["decode_document", "encode_document"]

_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_CONTAINER_KINDS, _COUNT = 0xE0000000, 0x1FFFFFFF
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER, _EXTENSION = (kind << 28 for kind in range(7))
_ENTRY_KINDS, _LENGTH = 0xF0000000, 0x0FFFFFFF
_ZERO, _NAN, _INFINITY, _NEGATIVE_INFINITY = b"\x00", b"\x10", b"\x20", b"\x30"
_SIGNED, _UNSIGNED, _FLOAT, _DECIMAL = 0x40, 0x50, 0x60, 0x70
_WIDTHS = (1, 2, 4, 8)
_DOUBLE = struct.Struct(">d")
_WORD = struct.Struct(">I")
#: Maximum nesting depth; deeper documents would exhaust the stack of the interpreter.
_MAX_DEPTH = 400
_BLANK = " \t\n\r"
#: Number of characters of the text shown in errors. The message says what is wrong; the text itself may be long.
_SHOWN = 60


# -- text to binary ----------------------------------------------------------------------------------------------


def encode_document(text: str) -> bytes:
    """Encode one document in binary form.

    It accepts more than RFC 8259: ``NaN``, ``Infinity`` and ``-Infinity`` are numbers, strings may contain control
    characters, an unpaired surrogate stays an escape, and a blank text is null.

    Raises
    ------
    SchemaError
        The text is not JSON, or an object has a key twice.
    UnsupportedError
        The document is nested too deeply or too large.
    """
    try:
        if _SURROGATE.search(text):
            text = _HALVES.sub(_keep_half, text)
        value = _DECODER.decode(text) if text.strip(_BLANK) else None
        kind, payload = _encode(value, 0)
    except RecursionError as error:
        raise UnsupportedError(f"JSON nested more than {_MAX_DEPTH} levels deep") from error
    except ValueError as error:
        if isinstance(error, (SchemaError, UnsupportedError)):
            raise
        raise SchemaError(f"not valid JSON: {error}: {text[:_SHOWN]!r}") from error
    if kind & _ENTRY_KINDS == _CONTAINER:
        return payload
    return struct.pack(">II", _SCALAR, kind) + payload


_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
#: Escaped backslashes and surrogate pairs stay; an unpaired half, and the escape that follows a high one, do not.
_HALVES = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4})?|\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


def _keep_half(match: re.Match[str]) -> str:
    half = match["half"]
    return match[0] if half is None else half.replace("\\", "\\\\")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise SchemaError(f"the JSON object has the key {_shortened(twice)} twice")
    return found


def _integer(text: str) -> int | float:
    value = int(text) if len(text) <= 20 else float(text)
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 64 else float(value)


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer, strict=False)


def _encode(value: Any, depth: int) -> tuple[int, bytes]:
    """Return the entry and the payload of a value."""
    if value is None:
        return _NULL, b""
    if value is True or value is False:
        return (_TRUE if value else _FALSE), b""
    if isinstance(value, str):
        payload, kind = value.encode(), _STRING
    elif isinstance(value, (int, float)):
        payload, kind = _encode_number(value), _NUMBER
    elif depth >= _MAX_DEPTH:
        raise UnsupportedError(f"JSON nested more than {_MAX_DEPTH} levels deep")
    elif isinstance(value, list):
        payload, kind = _join(_ARRAY, len(value), [_encode(item, depth + 1) for item in value]), _CONTAINER
    else:
        members = sorted(((name.encode(), item) for name, item in value.items()), key=itemgetter(0))
        parts = [(_STRING | len(name), name) for name, _ in members]
        parts += [_encode(item, depth + 1) for _, item in members]
        payload, kind = _join(_OBJECT, len(members), parts), _CONTAINER
    if len(payload) > _LENGTH:
        raise UnsupportedError(f"a part of the JSON document takes {len(payload)} bytes, more than {_LENGTH}")
    return kind | len(payload), payload


def _join(kind: int, count: int, parts: Sequence[tuple[int, bytes]]) -> bytes:
    if count > _COUNT:
        raise UnsupportedError(f"a JSON container has {count} elements, more than {_COUNT}")
    head = struct.pack(f">{1 + len(parts)}I", kind | count, *(entry for entry, _ in parts))
    return b"".join([head, *(payload for _, payload in parts)])


def _encode_number(value: int | float) -> bytes:
    if isinstance(value, float):
        if math.isfinite(value):
            return bytes([_FLOAT]) + _DOUBLE.pack(value)
        return _NAN if value != value else _INFINITY if value > 0 else _NEGATIVE_INFINITY
    if value == 0:
        return _ZERO
    signed = value < 0
    bits = (~value).bit_length() + 1 if signed else value.bit_length()
    width = next(width for width in _WIDTHS if bits <= 8 * width)
    return bytes([_SIGNED if signed else _UNSIGNED]) + value.to_bytes(width, "big", signed=signed)


# -- binary to text ----------------------------------------------------------------------------------------------


def decode_document(document: bytes) -> str:
    """Return the text of one document; empty bytes and numbers that are not finite become null.

    Raises
    ------
    CorruptFileError
        The document is malformed.
    UnsupportedError
        The document holds a value that JSON does not have, or is nested too deeply.
    """
    if not document:
        return "null"
    try:
        text, end = _text(document, 0, 0)
    except struct.error as error:
        raise CorruptFileError("a JSON container is longer than its document") from error
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"a JSON string is not UTF-8: {error}") from error
    if end != len(document):
        raise CorruptFileError(f"a JSON document of {len(document)} bytes ends at {end}")
    return text


def _text(document: bytes, begin: int, depth: int) -> tuple[str, int]:
    """Return the text of the container that begins at a byte, and the position after it."""
    if depth > _MAX_DEPTH:
        raise UnsupportedError(f"JSON nested more than {_MAX_DEPTH} levels deep")
    (header,) = _WORD.unpack_from(document, begin)
    kind, count = header & _CONTAINER_KINDS, header & _COUNT
    if kind not in (_ARRAY, _OBJECT, _SCALAR) or (kind == _SCALAR and count):
        raise CorruptFileError(f"a JSON container has the header {header:#010x}")
    number = 1 if kind == _SCALAR else count if kind == _ARRAY else 2 * count
    if number > (len(document) - begin) // 4:
        raise CorruptFileError(f"a JSON container has {count} elements in {len(document) - begin} bytes")
    entries = struct.unpack_from(f">{number}I", document, begin + 4)
    at = begin + 4 * (1 + number)
    parts = []
    for entry in entries:
        end = at + (entry & _LENGTH)
        if end > len(document):
            raise CorruptFileError(f"a JSON value has {entry & _LENGTH} bytes at byte {at} of {len(document)}")
        if entry & _ENTRY_KINDS == _STRING:
            parts.append(encode_basestring(document[at:end].decode()))
        else:
            parts.append(_value(document, entry & _ENTRY_KINDS, at, end, depth))
        at = end
    if kind == _SCALAR:
        return parts[0], at
    if kind == _ARRAY:
        return f"[{','.join(parts)}]", at
    return "{" + ",".join(_members(entries, parts, count)) + "}", at


def _members(entries: Sequence[int], parts: Sequence[str], count: int) -> Iterator[str]:
    for entry, name, value in zip(entries, parts[:count], parts[count:], strict=False):
        if entry & _ENTRY_KINDS != _STRING:
            raise CorruptFileError("a key of a JSON object is not a string")
        yield f"{name}:{value}"


def _value(document: bytes, kind: int, begin: int, end: int, depth: int) -> str:
    if kind == _NUMBER:
        return _number_text(document[begin:end])
    if kind == _CONTAINER:
        text, found = _text(document, begin, depth + 1)
        if found != end:
            raise CorruptFileError(f"a nested JSON container of {end - begin} bytes ends at {found - begin}")
        return text
    if kind in _NAMES:
        if begin != end:
            raise CorruptFileError(f"a JSON {_NAMES[kind]} has a payload of {end - begin} bytes")
        return _NAMES[kind]
    if kind == _EXTENSION:
        raise UnsupportedError("a JSON document contains a binary, date, timestamp or interval")
    raise CorruptFileError(f"a JSON entry has the unknown kind {kind:#010x}")


_NAMES = {_NULL: "null", _FALSE: "false", _TRUE: "true"}


def _number_text(payload: bytes) -> str:
    if payload == _ZERO:
        return "0"
    if payload in (_NAN, _INFINITY, _NEGATIVE_INFINITY):
        return "null"
    tag, width = payload[0] if payload else None, len(payload) - 1
    if tag in (_SIGNED, _UNSIGNED) and width in _WIDTHS:
        return str(int.from_bytes(payload[1:], "big", signed=tag == _SIGNED))
    if tag == _FLOAT and width == _DOUBLE.size:
        return _float_text(_DOUBLE.unpack_from(payload, 1)[0])
    if tag == _DECIMAL:
        raise UnsupportedError("a JSON document contains a decimal number")
    raise CorruptFileError(f"a JSON number has the invalid payload {payload[:_SHOWN].hex()}")


def _float_text(value: float) -> str:
    """Return the shortest text that gives the value; an exponent is used below 1e-5 and from 1e16 on."""
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    if exponent == "-05":
        digits = mantissa.replace(".", "")
        return digits.replace("-", "-0.0000") if digits.startswith("-") else f"0.0000{digits}"
    return f"{mantissa}e{int(exponent):+d}"
