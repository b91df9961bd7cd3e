"""Arrow schema in which the data of a Spark DataFrame is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError, nearest_name_hint
from lance_dataset.spark.batches import contains_type
from lance_dataset.spark.options import WriteOptions
from lance_dataset.spark.types import FIXED_SIZE_KEY, arrow_field, spark_type

__all__ = ["appended_schema", "check_maps", "created_schema", "fill_missing", "stores_null_structs"]

_ENCODING = "lance-encoding:"
_FIRST_WITH_NULL_STRUCTS = (2, 1)
_FIRST_WITH_MAPS = (2, 2)
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_NUMBERS = _INTEGERS | {"float", "double"}


def created_schema(schema: Any, options: WriteOptions | None = None) -> pa.Schema:
    """Return the schema of a new dataset, or of new columns.

    As in Spark's own file formats, all columns become nullable. A column of arrays becomes a fixed-size list, which is
    a vector column, if the options give its length or its Spark metadata has the key ``arrow.fixed-size-list.size``.
    Metadata whose keys begin with ``lance-encoding:`` is kept, such as the compression of the column.

    Raises
    ------
    InvalidInputError
        The options name a column that the data lacks.
    SchemaError, UnsupportedError
        A column with a length is not an array, or Lance cannot store a column.
    """
    lengths, schemes = (dict(options.vector_length), dict(options.compression)) if options else ({}, {})
    unknown = [name for name in (*lengths, *schemes) if name not in schema.fieldNames() and name != "*"]
    if unknown:
        hint = nearest_name_hint(unknown[0], schema.fieldNames())
        raise InvalidInputError(f"The options name a column {unknown[0]!r} that the data does not have{hint}")
    return pa.schema(
        [_created_field(field, lengths.get(field.name), schemes.get(field.name, schemes.get("*"))) for field in schema]
    )


def _created_field(field: Any, length: int | None, scheme: str | None) -> pa.Field:
    arrow = arrow_field(field, field.name)
    metadata = dict(field.metadata or {})
    size = length if length is not None else metadata.get(FIXED_SIZE_KEY)
    stored = _nullable(arrow.type)
    if size is not None:
        what = f"the metadata {FIXED_SIZE_KEY!r}" if length is None else "the option 'vector_length'"
        stored = _vector(field.name, stored, size, what)
    kept = {key: str(value) for key, value in metadata.items() if key.startswith(_ENCODING)}
    if scheme is not None:
        kept |= _compression(scheme)
    return _encoded(pa.field(field.name, stored), kept)


def _vector(name: str, stored: pa.DataType, size: Any, what: str) -> pa.DataType:
    if not pa.types.is_list(stored):
        raise SchemaError(f"Column {name!r} has {what} but is not an array")
    try:
        length = int(size)
    except (TypeError, ValueError):
        length = 0
    if length <= 0:
        raise InvalidInputError(f"Column {name!r}: {what} is {size!r}, not a length")
    return pa.list_(pa.field("item", stored.value_type), length)


def _compression(scheme: str) -> dict[str, str]:
    name, _, level = scheme.partition(":")
    return {f"{_ENCODING}compression": name} | ({f"{_ENCODING}compression-level": level} if level else {})


def _encoded(field: pa.Field, metadata: dict[str, str]) -> pa.Field:
    """Return the field with metadata about encodings, in nested fields too, which have the values."""
    if not metadata:
        return field
    arrow = field.type
    if pa.types.is_struct(arrow):
        field = field.with_type(pa.struct([_encoded(child, metadata) for child in arrow]))
    elif pa.types.is_list(arrow):
        field = field.with_type(pa.list_(_encoded(arrow.value_field, metadata)))
    elif pa.types.is_map(arrow):
        key, item = _encoded(arrow.key_field, metadata), _encoded(arrow.item_field, metadata)
        field = field.with_type(pa.map_(key, item))
    return field.with_metadata(metadata)


def _nullable(arrow: pa.DataType) -> pa.DataType:
    """Return the type with every nested field nullable except map keys; list items get their usual name."""
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(child.name, _nullable(child.type)) for child in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(pa.field("key", _nullable(arrow.key_type), False), pa.field("value", _nullable(arrow.item_type)))
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("item", _nullable(arrow.value_type)))
    return arrow


def appended_schema(schema: Any, stored: pa.Schema, options: WriteOptions | None = None) -> pa.Schema:
    """Return the schema of files appended to a dataset; it is that of the dataset, if the data fits it.

    Columns are matched by name. A column that the data lacks is filled with nulls. A column must have the Spark type
    in which it is read back, or one whose values can be the same; each value is checked when it is written. With the
    option ``merge_schema``, columns that only the data has follow those of the dataset.

    Raises
    ------
    SchemaError
        A column is unknown or has the wrong type, or a missing column is not nullable.
    """
    added = []
    for field in schema.fields:
        index = stored.get_field_index(field.name)
        if index >= 0:
            arrow_field(field, field.name)
            _check_type(field, stored.field(index))
        elif options is not None and options.merge_schema:
            added.append(field)
        else:
            hint = nearest_name_hint(field.name, stored.names)
            more = "" if options is None else "; set the option merge_schema to true to add it"
            raise SchemaError(f"Column {field.name!r} is not in the dataset{hint}{more}")
    present = set(schema.fieldNames())
    for field in stored:
        if field.name not in present and not field.nullable:
            raise SchemaError(f"The data lacks the column {field.name!r}, which is not nullable in the dataset")
    if not added:
        return stored
    assert options is not None
    named = {field.name for field in added}
    chosen = replace(
        options,
        compression=tuple(pair for pair in options.compression if pair[0] in named | {"*"}),
        vector_length=tuple(pair for pair in options.vector_length if pair[0] in named),
    )
    return pa.schema([*stored, *created_schema(T.StructType(added), chosen)], stored.metadata)


def _check_type(field: Any, stored: pa.Field) -> None:
    wanted_type = spark_type(stored, stored.name)
    if _may_fit(field.dataType, wanted_type):
        return
    wanted, given = wanted_type.simpleString(), field.dataType.simpleString()
    raise SchemaError(
        f"Column {field.name!r} is {given} in the data, but {stored.type} in the dataset; "
        f"write df.withColumn({field.name!r}, col({field.name!r}).cast({wanted!r}))"
    )


def _may_fit(given: Any, wanted: Any) -> bool:
    """Return True if values of a Spark type can be those of another, at any depth. Doubles are not cast to floats."""
    mine, theirs = given.simpleString(), wanted.simpleString()
    if mine in (theirs, "void"):
        return True
    if mine in _NUMBERS and theirs in _NUMBERS:
        return (mine, theirs) != ("double", "float")
    kind = given.typeName()
    if kind != wanted.typeName():
        return False
    if kind == "array":
        return _may_fit(given.elementType, wanted.elementType)
    if kind == "map":
        return _may_fit(given.keyType, wanted.keyType) and _may_fit(given.valueType, wanted.valueType)
    if kind == "struct":
        pairs = zip(given.fields, wanted.fields, strict=False)
        return given.names == wanted.names and all(_may_fit(one.dataType, other.dataType) for one, other in pairs)
    return bool(kind == "decimal")


def fill_missing(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch, with columns of nulls for the columns of `schema` that it lacks."""
    missing = [field for field in schema if field.name not in batch.schema.names]
    if not missing:
        return batch
    columns = list(batch.columns) + [pa.nulls(batch.num_rows, field.type) for field in missing]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*batch.schema, *missing]))


def check_maps(schema: pa.Schema, version: str) -> None:
    """Raise UnsupportedError if there is a map column and the file version does not support maps."""
    if _number(version) >= _FIRST_WITH_MAPS:
        return
    for field in schema:
        if contains_type(field.type, pa.types.is_map):
            raise UnsupportedError(
                f"Column {field.name!r} holds maps, which files of version {version} cannot store (2.2 is the first "
                "that can); write map_entries(...) of it"
            )


def stores_null_structs(version: str) -> bool:
    """Return True if files of this version distinguish a null struct from a struct of nulls."""
    return _number(version) >= _FIRST_WITH_NULL_STRUCTS


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
