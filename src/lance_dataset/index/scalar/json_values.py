"""Values at a path of JSON documents, as the column that an index is trained from.

The first value decides the type: boolean, int64, float64 or string. Float columns may have integers. Other mixtures,
and arrays and objects, are refused, as in the reference. A missing value and a JSON null are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import CorruptFileError, InvalidIndexError, InvalidInputError, SchemaError
from lance_dataset.expr.functions.json_columns import LocatedValues, located
from lance_dataset.expr.functions.json_path import Path, find, parse_path, plain_steps
from lance_dataset.expr.functions.json_values import as_document
from lance_dataset.file.jsonb import decode_document
from lance_dataset.index.scalar.sorting import ROWS, VALUES, entry_schema
from lancecodec import jsonb

__all__ = ["JsonPath", "typed_entries", "values_of_type"]

_NUMBERS = (jsonb.INTEGER, jsonb.UNSIGNED, jsonb.FLOAT)
_NOTHING = (jsonb.MISSING, jsonb.NULL_VALUE)
#: Types of columns by the kind of their first value, and the kinds that they may have.
_TYPES: dict[int, tuple[pa.DataType, tuple[int, ...]]] = {
    jsonb.STRING: (pa.string(), (jsonb.STRING,)),
    jsonb.INTEGER: (pa.int64(), (jsonb.INTEGER,)),
    jsonb.UNSIGNED: (pa.float64(), _NUMBERS),
    jsonb.FLOAT: (pa.float64(), _NUMBERS),
    jsonb.FALSE: (pa.bool_(), (jsonb.FALSE, jsonb.TRUE)),
    jsonb.TRUE: (pa.bool_(), (jsonb.FALSE, jsonb.TRUE)),
}
#: Names of the types for messages, as the reference has them.
_NAMES = {pa.string(): "Utf8", pa.int64(): "Int64", pa.float64(): "Float64", pa.bool_(): "Boolean"}
_KIND_NAMES = {jsonb.STRING: "String", jsonb.ARRAY: "Array", jsonb.OBJECT: "Object"}
#: Stands for several values at one path, which cannot be indexed.
_ARRAY = b"\x80\x00\x00\x00"


class JsonPath:
    """A path, ready to be looked up in documents.

    Parameters
    ----------
    text
        The path: a key, keys joined by dots, or a JSONPath.

    Raises
    ------
    InvalidIndexError
        It is not a valid path.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._path: Path = parse_path(text)
        except pa.ArrowInvalid as error:
            raise InvalidIndexError(str(error)) from None
        plain = plain_steps(self._path)
        self._steps = None if plain is None else [_step(each) for each in plain]

    def locate(self, documents: pa.Array) -> LocatedValues:
        """Find the values of documents; all kinds are known.

        Raises
        ------
        CorruptFileError, InvalidInputError, UnsupportedError
            A document is damaged, is not JSON, or has a value that JSON does not have.
        """
        steps = self._steps
        if steps is None:
            documents, steps = pa.array([self._found(each) for each in documents.to_pylist()], pa.large_binary()), []
        found = located(documents, steps)
        unknown = found.has_kind(jsonb.OTHER)
        if not unknown.any():
            return found
        rows = np.flatnonzero(unknown)
        read = pa.array([self._read(documents[row].as_py()) for row in rows.tolist()], documents.type)
        found = located(pc.replace_with_mask(documents, pa.array(unknown), read), steps)
        if found.has_kind(jsonb.OTHER).any():
            row = int(np.flatnonzero(found.has_kind(jsonb.OTHER))[0])
            self._refuse(found.documents[row].as_py())
        return found

    def _found(self, document: bytes | None) -> bytes | None:
        """Return the value of one document as a document."""
        if document is None:
            return None
        found = find(self._read(document), self._path)
        return None if not found else found[0] if len(found) == 1 else _ARRAY

    def _read(self, document: bytes) -> bytes:
        """Return a document in binary form, also if it is text."""
        try:
            return as_document(document)
        except (SchemaError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"a value to index by the JSON path {self.text!r} is not JSON: {error}") from None

    def _refuse(self, document: bytes) -> None:
        """Raise the error of a document with an unknown value."""
        value = next(iter(find(document, self._path)), document)
        decode_document(value)
        raise CorruptFileError(f"a document to index by the JSON path {self.text!r} is damaged")


def _step(step: str | int) -> tuple[str | None, int | None]:
    return (step, None) if isinstance(step, str) else (None, step)


def typed_entries(entries: Iterable[pa.RecordBatch], path: JsonPath) -> tuple[pa.DataType, Iterator[pa.RecordBatch]]:
    """Return the type of the values at a path, and the entries of an index of them.

    Parameters
    ----------
    entries
        Documents and rows, see `lance_dataset.index.scalar.sorting.entry_schema`.
    path
        The path.

    Raises
    ------
    InvalidInputError, CorruptFileError, UnsupportedError
        A value cannot be indexed; some of these errors are raised while the entries are read.
    """
    batches = iter(entries)
    rows: list[pa.Array] = []
    for batch in batches:
        found = path.locate(batch.column(VALUES))
        first = np.flatnonzero(~found.has_kind(*_NOTHING))
        if len(first):
            kind = int(found.kinds[first[0]])
            if kind not in _TYPES:
                raise InvalidInputError(
                    f"Cannot create a JSON index for JSON path {path.text!r} with JSON type {_KIND_NAMES[kind]}; only "
                    "scalar values are supported"
                )
            type_, allowed = _TYPES[kind]
            known = _entries(found, batch.column(ROWS), type_, allowed, path)
            others = (
                _entries(path.locate(each.column(VALUES)), each.column(ROWS), type_, allowed, path) for each in batches
            )
            return type_, chain(_null_entries(rows, type_), (known,), others)
        rows.append(batch.column(ROWS))
    return pa.string(), _null_entries(rows, pa.string())


def values_of_type(documents: pa.Array, path: JsonPath, kind: pa.DataType) -> pa.Array | None:
    """Return the values at a path of documents; None if some are not of a type, or if no index has values of the type.

    Raises
    ------
    InvalidInputError, CorruptFileError, UnsupportedError
        A document is not JSON, or damaged.
    """
    allowed = next((kinds for type_, kinds in _TYPES.values() if type_ == kind), None)
    found = path.locate(documents)
    if allowed is None or not found.has_kind(*_NOTHING, *allowed).all():
        return None
    return _column(found, kind)


def _null_entries(rows: list[pa.Array], kind: pa.DataType) -> Iterator[pa.RecordBatch]:
    for each in rows:
        yield pa.RecordBatch.from_arrays([pa.nulls(len(each), kind), each], schema=entry_schema(kind))


def _entries(
    found: LocatedValues, rows: pa.Array, kind: pa.DataType, allowed: tuple[int, ...], path: JsonPath
) -> pa.RecordBatch:
    wrong = ~found.has_kind(*_NOTHING, *allowed)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        other = int(found.kinds[row])
        name = _KIND_NAMES.get(other) or _NAMES[_TYPES[other][0]]
        raise InvalidInputError(
            f"JSON path {path.text!r} expected {_NAMES[kind]}, but batch row {row} has JSON type {name}"
        )
    return pa.RecordBatch.from_arrays([_column(found, kind), rows], schema=entry_schema(kind))


def _column(found: LocatedValues, kind: pa.DataType) -> pa.Array:
    nothing = found.has_kind(*_NOTHING)
    if kind == pa.int64():
        return pa.array(found.integers, mask=nothing)
    if kind == pa.float64():
        return pa.array(found.floats, mask=nothing)
    if kind == pa.bool_():
        return pa.array(found.kinds == jsonb.TRUE, mask=nothing)
    return found.strings(~nothing)
