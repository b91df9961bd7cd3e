"""Names of top-level columns, as scans take them, and the kinds of values that are shown differently."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

__all__ = ["ColumnKind", "column_kind", "quoted"]

_BLOB_EXTENSION = "lance.blob.v2"
_BLOB_METADATA = b"lance-encoding:blob"


class ColumnKind(str, Enum):
    """Kind of the values of a column, which decides how they are shown."""

    NUMBER = "number"
    TIME = "time"
    BOOLEAN = "boolean"
    TEXT = "text"
    BINARY = "binary"
    BLOB = "blob"
    VECTOR = "vector"
    LIST = "list"
    NESTED = "nested"
    OTHER = "other"


def column_kind(field: pa.Field) -> ColumnKind:
    """Return how the values of a column are shown."""
    if is_blob_column(field):
        return ColumnKind.BLOB
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for matches, found in _KINDS:
        if matches(kind):
            return found
    return ColumnKind.OTHER


def is_blob_column(field: pa.Field) -> bool:
    """Return whether a column has blobs of either version."""
    if getattr(field.type, "extension_name", "") == _BLOB_EXTENSION:
        return True
    return (field.metadata or {}).get(_BLOB_METADATA, b"").lower() == b"true"


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_vector(kind: pa.DataType) -> bool:
    return (
        pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type) and not pa.types.is_decimal(kind.value_type)
    )


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


_KINDS = (
    (_is_number, ColumnKind.NUMBER),
    (pa.types.is_boolean, ColumnKind.BOOLEAN),
    (pa.types.is_temporal, ColumnKind.TIME),
    (_is_text, ColumnKind.TEXT),
    (_is_binary, ColumnKind.BINARY),
    (_is_vector, ColumnKind.VECTOR),
    (_is_list, ColumnKind.LIST),
    (pa.types.is_nested, ColumnKind.NESTED),
)


def quoted(name: str) -> str:
    """Return the name of a top-level column for a projection or a filter."""
    return name if "`" in name else f"`{name}`"
