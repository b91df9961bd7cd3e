"""Conversion between Lance logical types and Arrow data types.

A logical type is the type text of a schema field (`int64`, `decimal:128:10:2`, `fixed_size_list:float:128` ...). Nested
types with child fields (struct, list, map) appear here by their bare name only; `lance_dataset.types.schema` adds the
children.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError

__all__ = [
    "BFLOAT16_EXTENSION",
    "EXTENSION_METADATA",
    "EXTENSION_NAME",
    "JSON_EXTENSION",
    "JSON_TEXT_EXTENSION",
    "NESTED_TYPES",
    "arrow_from_logical",
    "fixed_list_length",
    "is_json",
    "logical_from_arrow",
    "registered",
    "user_schema",
]

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
BFLOAT16_EXTENSION = "lance.bfloat16"
#: Extension of JSON as it is stored, in binary form, and as users see it, as text.
JSON_EXTENSION = "lance.json"
JSON_TEXT_EXTENSION = "arrow.json"

#: Logical types whose Arrow type is built from child fields.
NESTED_TYPES = frozenset({"struct", "list", "list.struct", "large_list", "large_list.struct", "map"})

_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "blob": pa.large_binary(),
    "json": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
}
_SIMPLE.update({f"duration:{unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")})
_SIMPLE_NAMES = {arrow: name for name, arrow in _SIMPLE.items() if name not in ("blob", "json")}

_DECIMAL = re.compile(r"decimal:(128|256):(\d+):(-?\d+)\Z")
_TIMESTAMP = re.compile(r"timestamp:(s|ms|us|ns):(.+)\Z", re.DOTALL)
_FIXED_BINARY = re.compile(r"fixed_size_binary:(\d+)\Z")
_FIXED_LIST = re.compile(r"fixed_size_list:(.+):(\d+)\Z", re.DOTALL)
_DICTIONARY = re.compile(r"dict:([^:]+):([^:]+):(true|false)\Z")

_MAX_FIXED_WIDTH = 2**31 - 1
_MAX_FIXED_NESTING = 32
_SHOWN = 200


def arrow_from_logical(logical_type: str) -> pa.DataType:
    """Return the Arrow type of a logical type without child fields.

    Parameters
    ----------
    logical_type
        Type text of a schema field.

    Raises
    ------
    CorruptFileError
        The text is not a logical type, or has invalid parameters.
    """
    simple = _SIMPLE.get(logical_type)
    if simple is not None:
        return simple
    try:
        parsed = _parse_parametric(logical_type)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise CorruptFileError(f"logical type {logical_type[:_SHOWN]!r} of the schema is invalid: {error}") from error
    if parsed is None:
        raise CorruptFileError(f"unknown logical type {logical_type[:_SHOWN]!r} in the schema")
    return parsed


def fixed_list_length(logical_type: str) -> int:
    """Return the number of items per value of a fixed-size list.

    Raises
    ------
    CorruptFileError
        The text has no valid length.
    """
    match = _FIXED_LIST.match(logical_type)
    if match is None or len(match.group(2)) > len(str(_MAX_FIXED_WIDTH)) or int(match.group(2)) > _MAX_FIXED_WIDTH:
        raise CorruptFileError(f"logical type {logical_type[:_SHOWN]!r} of the schema is invalid: no length")
    return int(match.group(2))


def _parse_parametric(logical_type: str) -> pa.DataType | None:
    if match := _DECIMAL.match(logical_type):
        bits, precision, scale = (int(part) for part in match.groups())
        return pa.decimal128(precision, scale) if bits == 128 else pa.decimal256(precision, scale)
    if match := _TIMESTAMP.match(logical_type):
        unit, zone = match.groups()
        return pa.timestamp(unit, tz=None if zone == "-" else zone)
    if match := _FIXED_BINARY.match(logical_type):
        return pa.binary(_fixed_width(match.group(1)))
    if match := _FIXED_LIST.match(logical_type):
        inner, length = match.groups()
        if inner.count("fixed_size_list:") >= _MAX_FIXED_NESTING:
            raise ValueError(f"nested more than {_MAX_FIXED_NESTING} levels deep")
        return pa.list_(_fixed_list_item(inner), _fixed_width(length))
    if match := _DICTIONARY.match(logical_type):
        value, index, _ordered = match.groups()
        return pa.dictionary(arrow_from_logical(index), arrow_from_logical(value))
    return None


def _fixed_width(text: str) -> int:
    width = int(text)
    if width > _MAX_FIXED_WIDTH:
        raise ValueError(f"length {width} exceeds {_MAX_FIXED_WIDTH}")
    return width


def _fixed_list_item(inner: str) -> pa.Field:
    if inner == BFLOAT16_EXTENSION:
        metadata = {"ARROW:extension:name": BFLOAT16_EXTENSION, "ARROW:extension:metadata": ""}
        return pa.field("item", pa.binary(2), nullable=True, metadata=metadata)
    if inner in NESTED_TYPES:
        raise ValueError(f"items of type {inner} have child fields")
    return pa.field("item", arrow_from_logical(inner), nullable=True)


def logical_from_arrow(arrow_type: pa.DataType, path: str) -> str:
    """Return the logical type of an Arrow type.

    Parameters
    ----------
    arrow_type
        Any Arrow type; extension types must have been replaced by their storage type.
    path
        Path of the column, for the error message.

    Raises
    ------
    UnsupportedError
        Lance has no logical type for the Arrow type.
    """
    simple = _SIMPLE_NAMES.get(arrow_type)
    if simple is not None:
        return simple
    text = _format_parametric(arrow_type, path)
    if text is None:
        raise UnsupportedError(f"column {path!r}: the Arrow type {arrow_type} cannot be stored in Lance")
    return text


def _format_parametric(arrow_type: pa.DataType, path: str) -> str | None:
    kinds = pa.types
    if kinds.is_decimal128(arrow_type) or kinds.is_decimal256(arrow_type):
        return f"decimal:{arrow_type.bit_width}:{arrow_type.precision}:{arrow_type.scale}"
    if kinds.is_timestamp(arrow_type):
        return f"timestamp:{arrow_type.unit}:{arrow_type.tz or '-'}"
    if kinds.is_fixed_size_binary(arrow_type):
        return f"fixed_size_binary:{arrow_type.byte_width}"
    if kinds.is_fixed_size_list(arrow_type):
        return f"fixed_size_list:{_fixed_list_inner(arrow_type, path)}:{arrow_type.list_size}"
    if kinds.is_dictionary(arrow_type):
        return _format_dictionary(arrow_type, path)
    if kinds.is_struct(arrow_type):
        return "struct"
    if kinds.is_map(arrow_type):
        return None if arrow_type.keys_sorted else "map"
    if kinds.is_list(arrow_type) or kinds.is_large_list(arrow_type):
        name = "list" if kinds.is_list(arrow_type) else "large_list"
        return f"{name}.struct" if kinds.is_struct(arrow_type.value_type) else name
    if kinds.is_string_view(arrow_type):
        return "string"
    if kinds.is_binary_view(arrow_type):
        return "binary"
    return None


def _fixed_list_inner(arrow_type: pa.FixedSizeListType, path: str) -> str:
    item = arrow_type.value_field
    if (item.metadata or {}).get(b"ARROW:extension:name") == BFLOAT16_EXTENSION.encode():
        return BFLOAT16_EXTENSION
    if isinstance(item.type, pa.BaseExtensionType):
        if item.type.extension_name == BFLOAT16_EXTENSION:
            return BFLOAT16_EXTENSION
        raise UnsupportedError(
            f"column {path!r}: Lance cannot store a fixed-size list of {item.type}; "
            f"use a list of {item.type.storage_type}"
        )
    inner = logical_from_arrow(item.type, f"{path}.{item.name}")
    if inner in NESTED_TYPES - {"struct"} or inner.startswith("dict:"):
        raise UnsupportedError(
            f"column {path!r}: Lance cannot store a fixed-size list of {item.type}; use a variable-size list"
        )
    return inner


def _format_dictionary(arrow_type: pa.DictionaryType, path: str) -> str:
    value = logical_from_arrow(arrow_type.value_type, path)
    if ":" in value or value in NESTED_TYPES:
        raise UnsupportedError(
            f"column {path!r}: the format has no name for a dictionary of {arrow_type.value_type}; "
            "cast the column to its value type"
        )
    return f"dict:{value}:{logical_from_arrow(arrow_type.index_type, path)}:false"


# -- extension types ---------------------------------------------------------------------------------------------


def is_json(metadata: Mapping[str, bytes], arrow_type: pa.DataType) -> bool:
    """Return whether a field holds JSON, as text or in the stored binary form."""
    kinds = pa.types
    name = metadata.get(EXTENSION_NAME, b"").decode(errors="replace")
    if name == JSON_TEXT_EXTENSION:
        return kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type) or kinds.is_string_view(arrow_type)
    return name == JSON_EXTENSION and kinds.is_large_binary(arrow_type)


def user_schema(storage: pa.Schema) -> pa.Schema:
    """Return a storage schema as users see it: JSON as text, registered extension types resolved."""
    return registered(pa.schema([_json_as_text(field) for field in storage], metadata=storage.metadata))


def registered(storage: pa.Schema) -> pa.Schema:
    """Return a storage schema with registered extension types resolved."""
    return pa.ipc.read_schema(storage.serialize())


def _json_as_text(field: pa.Field) -> pa.Field:
    kind, kinds = field.type, pa.types
    metadata = field.metadata or {}
    if metadata.get(EXTENSION_NAME.encode()) == JSON_EXTENSION.encode() and kinds.is_large_binary(kind):
        metadata = {**metadata, EXTENSION_NAME.encode(): JSON_TEXT_EXTENSION.encode()}
        return field.with_type(pa.string()).with_metadata(metadata)
    if kinds.is_struct(kind):
        kind = pa.struct([_json_as_text(child) for child in kind])
    elif kinds.is_map(kind):
        kind = pa.map_(_json_as_text(kind.key_field), _json_as_text(kind.item_field))
    elif kinds.is_fixed_size_list(kind):
        kind = pa.list_(_json_as_text(kind.value_field), kind.list_size)
    elif kinds.is_list(kind):
        kind = pa.list_(_json_as_text(kind.value_field))
    elif kinds.is_large_list(kind):
        kind = pa.large_list(_json_as_text(kind.value_field))
    return field.with_type(kind)
