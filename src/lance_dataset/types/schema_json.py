"""Arrow schemas as JSON, as catalogs exchange them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError, UnsupportedError
from lance_dataset.types.logical import arrow_from_logical, logical_from_arrow

__all__ = ["json_to_schema", "schema_to_json"]

#: Types whose children or length are keys of their own.
_LISTS = {"list": pa.list_, "large_list": pa.large_list}
_FIXED_LIST, _FIXED_BINARY = "fixed_size_list", "fixed_size_binary"
_DEEPEST = 64
_LONGEST = (1 << 31) - 1


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Convert an Arrow schema to a dictionary of JSON values.

    Parameters
    ----------
    schema
        The schema.

    Returns
    -------
    dict
        ``fields``, and ``metadata`` if there are any. Each field has ``name``, ``type``, ``nullable``, and ``metadata``
        if there are any; each type its name as ``type``, and ``fields`` or ``length`` where it has them.

    Raises
    ------
    TypeError
        It is not a schema.
    UnsupportedError
        A type has no such form.
    """
    if not isinstance(schema, pa.Schema):
        raise TypeError(f"schema must be a pyarrow.Schema, not {type(schema).__name__}")
    found: dict[str, Any] = {"fields": [_field_to_json(field, field.name) for field in schema]}
    return found | _metadata_to_json(schema.metadata)


def _metadata_to_json(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata:
        return {}
    return {"metadata": {key.decode(): value.decode("utf-8", "replace") for key, value in metadata.items()}}


def _field_to_json(field: pa.Field, path: str) -> dict[str, Any]:
    found = {"name": field.name, "type": _type_to_json(field.type, path), "nullable": field.nullable}
    return found | _metadata_to_json(field.metadata)


def _type_to_json(kind: pa.DataType, path: str) -> dict[str, Any]:
    kinds = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if kinds.is_struct(kind):
        return {"type": "struct", "fields": [_field_to_json(each, f"{path}.{each.name}") for each in kind]}
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        name = "list" if kinds.is_list(kind) else "large_list"
        return {"type": name, "fields": [_field_to_json(kind.value_field, f"{path}.{kind.value_field.name}")]}
    if kinds.is_fixed_size_list(kind):
        item = _field_to_json(kind.value_field, f"{path}.{kind.value_field.name}")
        return {"type": _FIXED_LIST, "fields": [item], "length": kind.list_size}
    if kinds.is_fixed_size_binary(kind) and not kinds.is_decimal(kind):
        return {"type": _FIXED_BINARY, "length": kind.byte_width}
    if kinds.is_map(kind) or kinds.is_string_view(kind) or kinds.is_binary_view(kind):
        raise UnsupportedError(f"column {path!r}: the type {kind} has no JSON form")
    return {"type": logical_from_arrow(kind, path)}


def json_to_schema(schema_json: Mapping[str, Any]) -> pa.Schema:
    """Convert the form that `schema_to_json` returns to an Arrow schema.

    Raises
    ------
    InvalidInputError
        A key is missing, a value has the wrong type, or there is no such type.
    """
    if not isinstance(schema_json, Mapping):
        raise InvalidInputError(f"a schema must be a dictionary, not {type(schema_json).__name__}")
    fields = [_field_of_json(each, "fields", 0) for each in _given(schema_json, "fields", list, "the schema")]
    return pa.schema(fields, metadata=_metadata_of_json(schema_json, "the schema"))


def _given(values: Any, key: str, kind: type, where: str) -> Any:
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"{where} must be a dictionary, not {type(values).__name__}")
    if key not in values:
        raise InvalidInputError(f"{where} has no key {key!r}")
    if not isinstance(values[key], kind) or (kind is int and isinstance(values[key], bool)):
        raise InvalidInputError(f"{key!r} of {where} must be of type {kind.__name__}, not {values[key]!r}")
    return values[key]


def _metadata_of_json(values: Mapping[str, Any], where: str) -> dict[str, str] | None:
    if values.get("metadata") is None:
        return None
    found = _given(values, "metadata", dict, where)
    if not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise InvalidInputError(f"the metadata of {where} must be texts")
    return dict(found)


def _field_of_json(values: Any, path: str, depth: int) -> pa.Field:
    name = _given(values, "name", str, f"a field of {path}")
    where = f"field {name!r}"
    if depth > _DEEPEST:
        raise InvalidInputError(f"{where} is nested more than {_DEEPEST} levels deep")
    kind = _type_of_json(_given(values, "type", dict, where), where, depth)
    return pa.field(name, kind, _given(values, "nullable", bool, where), metadata=_metadata_of_json(values, where))


def _type_of_json(values: Mapping[str, Any], where: str, depth: int) -> pa.DataType:
    name = _given(values, "type", str, f"the type of {where}")
    if name == _FIXED_BINARY:
        return pa.binary(_length(values, where))
    if name != "struct" and name != _FIXED_LIST and name not in _LISTS:
        try:
            return arrow_from_logical(name)
        except CorruptFileError:
            raise InvalidInputError(f"{where}: there is no type {name[:200]!r}") from None
    children = [_field_of_json(each, where, depth + 1) for each in _given(values, "fields", list, where)]
    if name == "struct":
        return pa.struct(children)
    if len(children) != 1:
        raise InvalidInputError(f"{where}: a list has one field, not {len(children)}")
    if name in _LISTS:
        return _LISTS[name](children[0])
    return pa.list_(children[0], _length(values, where))


def _length(values: Mapping[str, Any], where: str) -> int:
    length: int = _given(values, "length", int, where)
    if not 0 <= length <= _LONGEST:
        raise InvalidInputError(f"{where}: the length {length} is not from 0 to {_LONGEST}")
    return length
