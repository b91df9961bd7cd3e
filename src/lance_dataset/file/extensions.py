"""Arrow extension types over storage arrays, and storage arrays out of extension arrays."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

from lance_dataset.errors import SchemaError

__all__ = ["storage_schema", "storage_type", "with_extensions"]

_Data = TypeVar("_Data", pa.RecordBatch, pa.Table)
_REMEMBERED = 64


class _Plan:
    """What `with_extensions` needs to know of a schema: its storage, and the columns that change."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.storage = storage_schema(schema)
        self.changed = [i for i, field in enumerate(schema) if field.type != self.storage.field(i).type]


# By identity: hashing a schema costs more than the work per batch. A plan keeps its schema, hence the id, alive.
_plans: dict[int, _Plan] = {}


def _plan(schema: pa.Schema) -> _Plan:
    plan = _plans.get(id(schema))
    if plan is None:
        if len(_plans) >= _REMEMBERED:
            _plans.clear()
        plan = _plans[id(schema)] = _Plan(schema)
    return plan


def with_extensions(data: _Data, schema: pa.Schema) -> _Data:
    """Present storage arrays as what a schema says, without copying.

    Parameters
    ----------
    data
        Columns over storage types.
    schema
        The same columns with extension types, at any depth; also gives the metadata of the result. An extension type
        that is not registered appears as storage in it and stays so.

    Raises
    ------
    SchemaError
        The storage of `schema` is not what `data` holds.
    """
    plan = _plan(schema)
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


def _refuse(given: pa.Schema, expected: pa.Schema) -> None:
    # Nullability and names of children do not change the layout, types do.
    if given.names != expected.names:
        raise SchemaError(f"the data has the columns {given.names}, the schema {expected.names}")
    for have, want in zip(given, expected, strict=True):
        if have.type != want.type:
            raise SchemaError(
                f"column {have.name!r}: the data has type {have.type}, the schema stores it as {want.type}"
            )


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with every extension type replaced by its storage type."""
    return pa.schema([field.with_type(storage_type(field.type)) for field in schema], metadata=schema.metadata)


def storage_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type with extension types at any depth replaced by their storage."""
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
