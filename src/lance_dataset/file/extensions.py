"""Conversion between Arrow extension arrays and storage arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import SchemaError
from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.types.logical import JSON_TEXT_EXTENSION
from lance_dataset.types.schema import EXTENSION_NAME

__all__ = ["remap", "storage_schema", "storage_type", "with_extensions"]

_Data = TypeVar("_Data", pa.RecordBatch, pa.Table)
_REMEMBERED = 64


class _Plan:
    """Plan of `with_extensions` for a schema: its storage types, and the columns that change."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.storage = storage_schema(schema)
        self.changed = [i for i, field in enumerate(schema) if field.type != self.storage.field(i).type]
        self.json = [i for i, field in enumerate(schema) if _holds_json(field)]


# Keyed by identity: hashing a schema costs more than the work per batch. A plan keeps its schema, hence the id, alive.
_plans: dict[int, _Plan] = {}


def _plan(schema: pa.Schema) -> _Plan:
    plan = _plans.get(id(schema))
    if plan is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        plan = _plans[id(schema)] = _Plan(schema)
    return plan


def with_extensions(data: _Data, schema: pa.Schema) -> _Data:
    """Convert storage arrays to the types of a schema; JSON becomes text, everything else is not copied.

    Parameters
    ----------
    data
        Columns of storage types.
    schema
        The same columns with extension types, at any depth. It also provides the metadata of the result. Extension
        types that are not registered appear as storage in it and stay so.

    Raises
    ------
    SchemaError
        The storage types of `schema` differ from those of `data`.
    CorruptFileError, UnsupportedError
        A JSON document is malformed, or holds values that JSON text cannot express.
    """
    plan = _plan(schema)
    if plan.json and data.schema.names == schema.names:
        data = _with_json_text(data, plan)
    if not data.schema.equals(plan.storage):
        _refuse(data.schema, plan.storage)
    if isinstance(data, pa.RecordBatch):
        _, capsule = data.__arrow_c_array__()
        return pa.RecordBatch._import_from_c_capsule(schema.__arrow_c_schema__(), capsule)
    columns = data.columns
    for index in plan.changed:
        field = schema.field(index)
        chunks = [_import(chunk, field) for chunk in columns[index].chunks]
        columns[index] = pa.chunked_array(chunks, type=field.type)
    return pa.Table.from_arrays(columns, schema=schema) if columns else data.replace_schema_metadata(schema.metadata)


def _import(array: pa.Array, field: pa.Field) -> pa.Array:
    _, capsule = array.__arrow_c_array__()
    return pa.Array._import_from_c_capsule(field.__arrow_c_schema__(), capsule)


# -- JSON --------------------------------------------------------------------------------------------------------


def _is_json(field: pa.Field) -> bool:
    """Return True if a field of the user's schema is JSON, even if the type is not registered."""
    if isinstance(field.type, pa.BaseExtensionType):
        return field.type.extension_name == JSON_TEXT_EXTENSION
    return (field.metadata or {}).get(EXTENSION_NAME.encode()) == JSON_TEXT_EXTENSION.encode()


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [] if isinstance(kind, pa.BaseExtensionType) else [kind.field(i) for i in range(kind.num_fields)]


def _holds_json(field: pa.Field) -> bool:
    return _is_json(field) or any(_holds_json(child) for child in _children(field.type))


def _with_json_text(data: _Data, plan: _Plan) -> _Data:
    columns = data.columns
    for index in plan.json:
        wanted = plan.schema.field(index)
        if isinstance(data, pa.RecordBatch):
            columns[index] = _json_text(columns[index], wanted, wanted.name)
        else:
            chunks = [_json_text(chunk, wanted, wanted.name) for chunk in columns[index].chunks]
            columns[index] = pa.chunked_array(chunks, type=plan.storage.field(index).type)
    fields = [data.schema.field(i).with_type(column.type) for i, column in enumerate(columns)]
    return type(data).from_arrays(columns, schema=pa.schema(fields, metadata=data.schema.metadata))


def _json_text(array: pa.Array, wanted: pa.Field, path: str) -> pa.Array:
    """Return the array with JSON at any depth as text."""
    kind, kinds = array.type, pa.types
    if _is_json(wanted):
        if not kinds.is_large_binary(kind):
            return array
        from lance_dataset.file.json_columns import decode_array

        return decode_array(array, f"column {path!r}")
    if not _holds_json(wanted):
        return array
    children = _children(wanted.type)
    if kinds.is_struct(kind):
        return _struct_text(array, wanted, children, path)
    if kinds.is_map(kind):
        entries = pa.field("entries", pa.struct([wanted.type.key_field, wanted.type.item_field]))
        convert = partial(_json_text, wanted=entries, path=path)
        return remap(array, storage_type(wanted.type), convert)
    items = _json_text(array.values, children[0], f"{path}.{children[0].name}")
    buffers = array.buffers()[: 1 if kinds.is_fixed_size_list(kind) else 2]
    wanted_type = storage_type(wanted.type)
    return pa.Array.from_buffers(wanted_type, len(array), buffers, array.null_count, array.offset, [items])


def _struct_text(array: pa.StructArray, wanted: pa.Field, children: list[pa.Field], path: str) -> pa.StructArray:
    parts = [_json_text(array.field(i), child, f"{path}.{child.name}") for i, child in enumerate(children)]
    validity = None
    if array.null_count:
        valid = pc.is_valid(array)
        validity = bitmap_at_zero(valid.buffers()[1], valid.offset, len(valid))
    return pa.Array.from_buffers(storage_type(wanted.type), len(array), [validity], array.null_count, 0, parts)


def remap(array: pa.MapArray, wanted: pa.MapType, convert: Callable[[pa.Array], pa.Array]) -> pa.MapArray:
    """Return the same maps of another type, with converted entries; offsets and validity are shared."""
    kind = array.type
    entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
    # unlike `keys` and `items`, a cast respects the offset of the entries
    lists = array.cast(pa.list_(entries))
    parts = [convert(lists.values)]
    return pa.Array.from_buffers(wanted, len(lists), lists.buffers()[:2], lists.null_count, lists.offset, parts)


# -- storage -----------------------------------------------------------------------------------------------------


def _refuse(given: pa.Schema, expected: pa.Schema) -> None:
    # Types change the layout; nullability and names of children do not.
    if given.names != expected.names:
        raise SchemaError(f"the data has the columns {given.names}, but the schema has {expected.names}")
    for have, want in zip(given, expected, strict=True):
        if have.type != want.type:
            raise SchemaError(
                f"column {have.name!r}: the data has type {have.type}, but the schema stores it as {want.type}"
            )


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every extension type replaced by its storage type."""
    return pa.schema([field.with_type(storage_type(field.type)) for field in schema], metadata=schema.metadata)


def storage_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type with extension types at any depth replaced by their storage types."""
    kinds = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        return storage_type(arrow_type.storage_type)
    if arrow_type.num_fields == 0:
        return arrow_type
    if kinds.is_struct(arrow_type):
        return pa.struct([_storage_field(arrow_type.field(i)) for i in range(arrow_type.num_fields)])
    if kinds.is_map(arrow_type):
        key, item = _storage_field(arrow_type.key_field), _storage_field(arrow_type.item_field)
        return pa.map_(key, item, keys_sorted=arrow_type.keys_sorted)
    if kinds.is_fixed_size_list(arrow_type):
        return pa.list_(_storage_field(arrow_type.value_field), arrow_type.list_size)
    if kinds.is_large_list(arrow_type):
        return pa.large_list(_storage_field(arrow_type.value_field))
    if kinds.is_list(arrow_type):
        return pa.list_(_storage_field(arrow_type.value_field))
    if kinds.is_large_list_view(arrow_type):
        return pa.large_list_view(_storage_field(arrow_type.value_field))
    if kinds.is_list_view(arrow_type):
        return pa.list_view(_storage_field(arrow_type.value_field))
    return arrow_type


def _storage_field(field: pa.Field) -> pa.Field:
    return field.with_type(storage_type(field.type))
