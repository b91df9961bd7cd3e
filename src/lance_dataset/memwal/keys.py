"""Primary keys of rows: one array that compares as the key does, and which rows are the newest of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.changes.merge.clauses import primary_key
from lance_dataset.errors import InvalidInputError
from lance_dataset.types.schema import Schema

__all__ = ["KeyColumns", "encoded_keys", "newest_rows"]

_types = pa.types
_NULL, _PRESENT = pa.scalar(b"\x00", pa.binary()), pa.scalar(b"\x01", pa.binary())


@dataclass(frozen=True)
class KeyColumns:
    """Primary key of a table.

    Attributes
    ----------
    names
        Its columns in order; empty for a table without a key.
    ids
        Ids of the columns.
    """

    names: tuple[str, ...]
    ids: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.names)

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str] | None = None) -> KeyColumns:
        """Return the primary key of a table, or other columns as a key.

        Raises
        ------
        InvalidInputError
            A key column has a type that a MemWAL cannot have as a key.
        FieldNotFoundError
            A column does not exist.
        """
        chosen = primary_key(schema) if names is None else tuple(names)
        for name in chosen:
            kind = schema.top_level(name).storage_type
            if not _is_key_type(kind):
                raise InvalidInputError(
                    f"Primary key column {name!r} has unsupported type {kind} for hashing; a MemWAL needs a key of "
                    "integers, booleans, texts or binaries"
                )
        return cls(chosen, tuple(schema.top_level(name).id for name in chosen))

    def array(self, batch: pa.RecordBatch | pa.Table) -> pa.Array:
        """Return the keys of rows: the column itself, or the encoding of several columns."""
        columns = [_joined(batch.column(name)) for name in self.names]
        return columns[0] if len(columns) == 1 else encoded_keys(columns)

    def type(self, schema: Schema) -> pa.DataType:
        """Return the type of the keys."""
        return schema.top_level(self.names[0]).storage_type if len(self.names) == 1 else pa.binary()


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _is_key_type(kind: pa.DataType) -> bool:
    tests = (_types.is_integer, _types.is_boolean, _types.is_string, _types.is_binary)
    return any(test(kind) for test in tests) or _types.is_large_string(kind) or _types.is_large_binary(kind)


def encoded_keys(columns: Sequence[pa.Array]) -> pa.Array:
    """Encode a key of several columns as binaries that sort like the key, nulls first."""
    parts: list[pa.Array] = []
    for column in columns:
        present = pc.if_else(column.is_valid(), _PRESENT, _NULL)
        body = pc.if_else(column.is_valid(), _body(column), pa.scalar(b"", pa.binary()))
        parts += [present, body]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _body(column: pa.Array) -> pa.Array:
    kind = column.type
    if _types.is_boolean(kind):
        filled = column.fill_null(False).cast(pa.uint8()).to_numpy(zero_copy_only=False)
        return _fixed(np.ascontiguousarray(filled), 1)
    if _types.is_integer(kind):
        filled = column.fill_null(0).to_numpy(zero_copy_only=False)
        if _types.is_signed_integer(kind):
            wide = filled.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
        else:
            wide = filled.astype(np.uint64)
        return _fixed(wide.astype(">u8"), 8)
    content = column.cast(pa.large_binary() if "large" in str(kind) else pa.binary()).cast(pa.binary())
    escaped = pc.replace_substring(content, pattern=b"\x00", replacement=b"\x00\xff")
    return pc.binary_join_element_wise(escaped, pa.scalar(b"\x00\x00", pa.binary()), pa.scalar(b"", pa.binary()))


def _fixed(values: NDArray[np.generic], width: int) -> pa.Array:
    kind = pa.binary(width)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]).cast(pa.binary())


def newest_rows(keys: pa.Array) -> NDArray[np.int64]:
    """Return the last row of each key, ascending."""
    if not len(keys):
        return np.empty(0, np.int64)
    codes = keys.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    last = np.empty(int(codes.max()) + 1, np.int64)
    last[codes] = np.arange(len(codes))  # the last one stays
    last.sort()
    return last
