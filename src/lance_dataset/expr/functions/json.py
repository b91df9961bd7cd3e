"""Functions on JSON columns. Documents are in their stored binary form, or text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, SchemaError, UnsupportedError
from lance_dataset.expr.function import Function, Kind
from lance_dataset.expr.functions.json_columns import typed_members
from lance_dataset.expr.functions.json_path import Every, find, parse_path, walked_steps
from lance_dataset.expr.functions.json_values import (
    Scalar,
    as_document,
    element,
    elements,
    is_container,
    member,
    scalar,
)
from lance_dataset.expr.functions.json_walk import Found, found_member, joined_texts, walk
from lance_dataset.expr.rowwise import rowwise
from lance_dataset.expr.type_rules import is_binary, is_text
from lance_dataset.file.json_columns import encode_array
from lance_dataset.file.jsonb import decode_document
from lancecodec import jsonb

__all__ = ["ALIASES", "FUNCTIONS"]

Document = str | bytes
_Kernel = Callable[..., Any]
_Result = tuple[pa.Array, NDArray[np.bool_]]
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


def _typed(
    convert: Callable[[bytes], Any], name: str, result: pa.DataType, pattern: str, read: Callable[[Scalar], Any]
) -> _Kernel:
    """Return a kernel that reads a member of each document; one by one only where it must be converted.

    Parameters
    ----------
    convert
        Function of a document.
    name
        What the type is called in messages.
    result
        The type.
    pattern
        Regular expression for JSON text of which Arrow makes a value, without its quotes.
    read
        Function of another string or number. None from it leaves the document to `convert`.
    """

    def fast(documents: pa.Array, key: str) -> _Result:
        values, left = typed_members(documents, key, _place(key), result)
        remaining, chosen = np.zeros((2, len(documents)), bool)
        if len(left):
            found = found_member(documents.take(pa.array(left)), key, _place(key))
            found = found.chosen(np.isin(found.kinds, _READ))
            converted = _converted_texts(found.texts(), result, pattern, read)
            rows = left[found.rows[converted.is_valid().to_numpy(zero_copy_only=False)]]
            remaining[left], remaining[rows], chosen[rows] = True, False, True
            values = pc.replace_with_mask(values, pa.array(chosen), converted.drop_null())
        return values, remaining

    return _columnwise(fast, _kernel(_converted(convert, name), result), result)


#: Kinds of values that types can be converted from.
_READ = (jsonb.STRING, jsonb.INTEGER, jsonb.UNSIGNED, jsonb.FLOAT, jsonb.TRUE, jsonb.FALSE)


def _converted_texts(
    texts: pa.StringArray, result: pa.DataType, pattern: str, read: Callable[[Scalar], Any]
) -> pa.Array:
    """Convert JSON text of strings and numbers; what does not convert becomes null."""
    plain = pc.match_substring_regex(texts, pattern)
    quick = pc.cast(pc.utf8_trim(pc.if_else(plain, texts, None), '"'), result)
    if not quick.null_count:
        return quick
    pairs = zip(plain.to_pylist(), texts.to_pylist(), strict=True)
    return pc.coalesce(
        quick, pa.array([None if is_plain else read(json.loads(text)) for is_plain, text in pairs], result)
    )


def _place(key: str) -> int | None:
    """Return the place in arrays that a key stands for."""
    return int(key) if _PLACE.fullmatch(key) else None


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
    """Return whether a value at a path is an array with an element of this text."""
    found = find(as_document(document), parse_path(path))
    return any(_has_text(item, wanted) for value in found for item in elements(value) or ())


def _has_text(item: bytes, wanted: str) -> bool:
    return decode_document(item) == wanted or (not is_container(item) and scalar(item) == wanted)


def _array_length(document: Document, path: str) -> int | None:
    """Return the number of elements of the first value at a path; 0 if it is not an array."""
    found = find(as_document(document), parse_path(path))
    return len(elements(found[0]) or ()) if found else None


# -- by column -------------------------------------------------------------------------------------------------------


def _members(documents: pa.Array, key: str) -> _Result:
    found = found_member(documents, key, _place(key))
    return found.by_row(found.documents()), found.left


def _by_path(function: Callable[..., pa.Array]) -> Callable[..., _Result | None]:
    """Return a function of the values at a path; it has no result if the path is not one that is walked."""

    def fast(documents: pa.Array, path: str, *others: str) -> _Result | None:
        parsed = parse_path(path)
        steps = walked_steps(parsed.steps) if parsed.test is None else None
        found = None if steps is None else walk(documents, steps)
        return None if found is None else (function(found, *others), found.left)

    return fast


def _extracts(found: Found) -> pa.Array:
    return joined_texts(found, found.texts(), len(found.left))


def _present(found: Found) -> pa.Array:
    return pa.array(np.bincount(found.rows, minlength=len(found.left)) > 0)


def _contain(found: Found, wanted: str) -> pa.Array:
    items = found.chosen(found.kinds == jsonb.ARRAY).children(Every.ELEMENT)
    found.left[items.left] = True
    texts = items.texts()
    equal = pc.or_(pc.equal(texts, wanted), pc.equal(texts, encode_basestring(wanted)))
    rows = items.rows[equal.to_numpy(zero_copy_only=False)]
    return pa.array(np.bincount(rows, minlength=len(found.left)) > 0)


def _lengths(found: Found) -> pa.Array:
    first = found.firsts()
    counts = first.counts(Every.ELEMENT, 0)
    found.left[first.rows[counts < 0]] = True
    return first.by_row(pa.array(counts))


def _columnwise(fast: Callable[..., _Result | None], slow: _Kernel, result: pa.DataType) -> _Kernel:
    """Return a kernel for columns of documents in binary form; documents that compiled code leaves are read one by one.

    Parameters
    ----------
    fast
        Function of the documents and the other arguments, of which none is null. It returns the values, and which
        documents it left; None to leave all.
    slow
        The kernel for other arguments, and for documents that are left.
    result
        Type of the values.
    """

    def kernel(documents: Any, *others: Any) -> Any:
        if isinstance(documents, pa.Array) and is_text(documents.type):
            documents = _encoded(documents)
        is_column = isinstance(documents, pa.Array) and is_binary(documents.type)
        if not is_column or not all(isinstance(other, pa.Scalar) for other in others):
            return slow(documents, *others)
        given = [other.as_py() for other in others]
        # without rows, a call is only made to learn its type
        if None in given or documents.null_count == len(documents):
            return pa.nulls(len(documents), result)
        found = _attempted(fast, documents, given)
        if found is None:
            return slow(documents, *others)
        values, left = found
        if documents.null_count:
            values = pc.if_else(documents.is_valid(), values, pa.scalar(None, result))
        if not left.any():
            return values
        return pc.replace_with_mask(values, pa.array(left), slow(documents.filter(pa.array(left)), *others))

    return kernel


def _encoded(texts: pa.Array) -> pa.Array:
    """Return documents in binary form; the texts themselves if one is not a document, for the error of its function."""
    try:
        return encode_array(texts, "a JSON column")
    except (SchemaError, UnsupportedError):
        return texts


# -- the table -------------------------------------------------------------------------------------------------------


def _kernel(function: Callable[..., Any], result: pa.DataType) -> Callable[..., Any]:
    run = rowwise(function, result)

    def kernel(*data: Any) -> Any:
        with _naming_documents():
            return run(*data)

    return kernel


def _attempted(fast: Callable[..., _Result | None], documents: pa.Array, given: Sequence[str]) -> _Result | None:
    """Return what compiled code finds; None if it finds an invalid value, which may not matter for the result."""
    try:
        return fast(documents, *given)
    except (CorruptFileError, UnsupportedError):
        return None


@contextmanager
def _naming_documents() -> Iterator[None]:
    """Let errors say that a document is the reason."""
    try:
        yield
    except (SchemaError, UnicodeDecodeError) as error:
        raise pa.ArrowInvalid(f"not a JSON document: {error}") from error
    except CorruptFileError as error:
        raise CorruptFileError(f"a JSON document: {error}") from error


def _types(name: str) -> Callable[[Sequence[pa.DataType]], list[pa.DataType]]:
    def coercion(types: Sequence[pa.DataType]) -> list[pa.DataType]:
        document = types[0]
        if pa.types.is_null(document):
            document = pa.large_binary()
        if not (is_text(document) or is_binary(document)):
            raise pa.ArrowInvalid(f"{name} needs a JSON column, not {document}")
        return [document, *(pa.string() for _ in types[1:])]

    return coercion


def _function(name: str, kernel: _Kernel, arguments: int = 2) -> Function:
    return Function(name, (Kind.ANY,) * arguments, kernel, coercion=_types(name))


def _walked(function: Callable[..., pa.Array], slow: Callable[..., Any], result: pa.DataType) -> _Kernel:
    return _columnwise(_by_path(function), _kernel(slow, result), result)


#: JSON text of strings that Arrow reads as the Python functions do.
_INTEGERS = r'^"-?[0-9]{1,18}"$'
_NUMBERS = r'^"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?"$'
_BOOLEANS = r'^"(true|false)"$'

FUNCTIONS = [
    _function("json_get", _columnwise(_members, _kernel(_member, pa.large_binary()), pa.large_binary())),
    _function("json_get_string", _typed(_string, "string", pa.string(), r"^(true|false|-?[0-9].*)$", lambda _: None)),
    _function(
        "json_get_int", _typed(lambda found: _integer(scalar(found)), "integer", pa.int64(), _INTEGERS, _integer)
    ),
    _function("json_get_float", _typed(lambda found: _float(scalar(found)), "number", pa.float64(), _NUMBERS, _float)),
    _function(
        "json_get_bool", _typed(lambda found: _boolean(scalar(found)), "boolean", pa.bool_(), _BOOLEANS, _boolean)
    ),
    _function("json_extract", _walked(_extracts, _extract, pa.string())),
    _function("json_exists", _walked(_present, _exists, pa.bool_())),
    _function("json_array_contains", _walked(_contain, _array_contains, pa.bool_()), arguments=3),
    _function("json_array_length", _walked(_lengths, _array_length, pa.int64())),
]
ALIASES: dict[str, str] = {}
