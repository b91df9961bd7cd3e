"""Schemas in answers of catalogs, which name types as Arrow does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_dataset.errors import InvalidInputError

__all__ = ["described_schema", "described_type"]

_NAMES = {
    pa.null(): "null",
    pa.bool_(): "bool",
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.string(): "utf8",
    pa.large_string(): "large_utf8",
    pa.binary(): "binary",
    pa.large_binary(): "large_binary",
    pa.date32(): "date32",
    pa.date64(): "date64",
    **{kind: str(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{kind: str(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
}
_TYPES = {name: kind for kind, name in _NAMES.items()}
_DECIMAL_STEP = 1000


def described_schema(schema: pa.Schema) -> dict[str, Any]:
    """Describe a schema. As in the reference, times lose their unit, and dictionaries are their values."""
    found: dict[str, Any] = {"fields": [_field(each) for each in schema]}
    return found | _metadata(schema.metadata)


def _metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata:
        return {}
    texts = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in metadata.items()}
    return {"metadata": texts}


def _field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "nullable": field.nullable, "type": _type(field.type)} | _metadata(field.metadata)


def _type(kind: pa.DataType) -> dict[str, Any]:
    kinds = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if kinds.is_dictionary(kind):
        return _type(kind.value_type)
    if kinds.is_struct(kind):
        return {"type": "struct", "fields": [_field(each) for each in kind]}
    if kinds.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        return {"type": "map", "fields": [_field(pa.field("entries", entries, nullable=False))]}
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return {"type": "list" if kinds.is_list(kind) else "large_list", "fields": [_field(kind.value_field)]}
    if kinds.is_fixed_size_list(kind):
        return {"type": "fixed_size_list", "fields": [_field(kind.value_field)], "length": kind.list_size}
    if kinds.is_decimal(kind):
        name = "decimal128" if kinds.is_decimal128(kind) else "decimal256"
        return {"type": name, "length": kind.precision * _DECIMAL_STEP + kind.scale}
    if kinds.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    return {"type": _NAMES.get(kind) or str(kind).partition("[")[0]}


def described_type(described: Mapping[str, Any]) -> pa.DataType:
    """Return the plain type that a description names.

    Raises
    ------
    InvalidInputError
        There is no such type, or it needs more than a name.
    """
    name, length = described.get("type"), described.get("length")
    if name in _TYPES:
        return _TYPES[name]
    if name == "fixed_size_binary" and isinstance(length, int) and 0 < length < 1 << 31:
        return pa.binary(length)
    if name in ("decimal128", "decimal256") and isinstance(length, int) and length > 0:
        make = pa.decimal128 if name == "decimal128" else pa.decimal256
        return make(length // _DECIMAL_STEP, length % _DECIMAL_STEP)
    raise InvalidInputError(f"data_type {dict(described)!r} is not a type that a column can get; use {sorted(_TYPES)}")
