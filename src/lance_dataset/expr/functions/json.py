"""Functions on JSON columns. Documents are in their stored binary form, or text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import CorruptFileError, SchemaError
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.json_columns import typed_members
from lance_dataset.expr.functions.json_path import find, parse_path
from lance_dataset.expr.functions.json_values import (
    Scalar,
    as_document,
    element,
    elements,
    is_container,
    member,
    scalar,
)
from lance_dataset.expr.rowwise import rowwise
from lance_dataset.expr.type_rules import is_binary, is_text
from lance_dataset.file.jsonb import decode_document

__all__ = ["ALIASES", "FUNCTIONS"]

Document = str | bytes
_PLACE = re.compile(r"\+?[0-9]{1,10}")
_FLOAT = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)
#: Encodings of a null document.
_NULLS = (b"", b"\x20\x00\x00\x00\x00\x00\x00\x00")
_DIGITS = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


# -- by key ----------------------------------------------------------------------------------------------------------


def _member(document: Document, key: str) -> bytes | None:
    """Return the value under a key of an object, or at a place of an array."""
    value = as_document(document)
    found = member(value, key.encode())
    if found is None and _PLACE.fullmatch(key):
        found = element(value, int(key))
    return found


def _converted(convert: Callable[[bytes], Any], kind: str) -> Callable[[Document, str], Any]:
    """Return a function that reads a member as a Python value, or None if it is null or missing."""

    def function(document: Document, key: str) -> Any:
        found = _member(document, key)
        if found is None or found in _NULLS:
            return None
        result = None if is_container(found) else convert(found)
        if result is None:
            raise pa.ArrowInvalid(f"the value under {key!r} is not a valid {kind}: {decode_document(found)[:60]}")
        return result

    return function


def _typed(convert: Callable[[bytes], Any], name: str, result: pa.DataType) -> Callable[..., Any]:
    """Return a kernel that reads a member of each document; one by one only where it must be converted."""
    slow = _kernel(_converted(convert, name), result)

    def kernel(documents: Any, key: Any) -> Any:
        if not (isinstance(documents, pa.Array) and is_binary(documents.type) and isinstance(key, pa.Scalar)):
            return slow(documents, key)
        text = key.as_py()
        if text is None or not len(documents):  # without rows, a call is only made to learn its type
            return pa.nulls(len(documents), result)
        values, left = typed_members(documents, text, int(text) if _PLACE.fullmatch(text) else None, result)
        if not len(left):
            return values
        chosen = np.zeros(len(documents), bool)
        chosen[left] = True
        return pc.replace_with_mask(values, pa.array(chosen), slow(documents.take(pa.array(left)), key))

    return kernel


def _string(document: bytes) -> str:
    """Return text unchanged, and numbers and booleans as they are written."""
    value = scalar(document)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("nan", "NaN")
    return value if isinstance(value, str) else decode_document(document)


def _integer(value: Scalar) -> int | None:
    """Return the nearest integer, rounding half away from zero."""
    if isinstance(value, str):
        return _integer(int(value) if _DIGITS.fullmatch(value) else _float(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        nearest = math.floor(abs(value) + 0.5) if abs(value) < 2**52 else abs(value)
        return _integer(int(math.copysign(nearest, value)))
    return None if value is None or not -(2**63) <= value < 2**63 else int(value)


def _float(value: Scalar) -> float | None:
    if isinstance(value, str):
        return float(value) if _FLOAT.fullmatch(value) else None
    return None if value is None else float(value)


def _boolean(value: Scalar) -> bool | None:
    if isinstance(value, str):
        return _TRUTHS.get(value.lower())
    return value if isinstance(value, bool) else None


# -- by path ---------------------------------------------------------------------------------------------------------


def _extract(document: Document, path: str) -> str | None:
    """Return the text of the value at a path; several values are returned as an array."""
    found = [decode_document(value) for value in find(as_document(document), parse_path(path))]
    if not found:
        return None
    return found[0] if len(found) == 1 else f"[{','.join(found)}]"


def _exists(document: Document, path: str) -> bool:
    parsed = parse_path(path)
    return parsed.test is not None or bool(find(as_document(document), parsed))


def _array_contains(document: Document, path: str, wanted: str) -> bool:
    """Return whether the first value at a path is an array with an element of this text."""
    found = find(as_document(document), parse_path(path))[:1]
    items = elements(found[0]) if found else None
    return any(_has_text(item, wanted) for item in items or ())


def _has_text(item: bytes, wanted: str) -> bool:
    return decode_document(item) == wanted or (not is_container(item) and scalar(item) == wanted)


def _array_length(document: Document, path: str) -> int | None:
    """Return the number of elements of the first value at a path; 0 if it is not an array."""
    found = find(as_document(document), parse_path(path))
    return len(elements(found[0]) or ()) if found else None


# -- the table -------------------------------------------------------------------------------------------------------


def _kernel(function: Callable[..., Any], result: pa.DataType) -> Callable[..., Any]:
    run = rowwise(function, result)

    def kernel(*data: Any) -> Any:
        try:
            return run(*data)
        except (SchemaError, UnicodeDecodeError) as error:
            raise pa.ArrowInvalid(f"not a JSON document: {error}") from error
        except CorruptFileError as error:
            raise CorruptFileError(f"a JSON document: {error}") from error

    return kernel


def _types(name: str) -> Callable[[Sequence[pa.DataType]], list[pa.DataType]]:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        document = types[0]
        if pa.types.is_null(document):
            document = pa.large_binary()
        if not (is_text(document) or is_binary(document)):
            raise pa.ArrowInvalid(f"{name} needs a JSON column, not {document}")
        return [document, *(pa.string() for _ in types[1:])]

    return coercion


def _function(name: str, function: Callable[..., Any], result: pa.DataType, arguments: int = 2) -> Function:
    return Function(name, (Kind.ANY,) * arguments, _kernel(function, result), coercion=_types(name))


def _accessor(name: str, kernel: Callable[..., Any]) -> Function:
    return Function(name, (Kind.ANY,) * 2, kernel, coercion=_types(name))


FUNCTIONS = [
    _function("json_get", _member, pa.large_binary()),
    _accessor("json_get_string", _typed(_string, "string", pa.string())),
    _accessor("json_get_int", _typed(lambda found: _integer(scalar(found)), "integer", pa.int64())),
    _accessor("json_get_float", _typed(lambda found: _float(scalar(found)), "number", pa.float64())),
    _accessor("json_get_bool", _typed(lambda found: _boolean(scalar(found)), "boolean", pa.bool_())),
    _function("json_extract", _extract, pa.string()),
    _function("json_exists", _exists, pa.bool_()),
    _function("json_array_contains", _array_contains, pa.bool_(), arguments=3),
    _function("json_array_length", _array_length, pa.int64()),
]
ALIASES: dict[str, str] = {}
