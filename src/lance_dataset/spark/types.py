"""Conversion between Spark types and Arrow types.

Reading: every Arrow type of a Lance column has one Spark type that holds all its values, or is refused with an error.
Writing: every Spark type has one Arrow type, the layout in which Spark exchanges it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from lance_dataset.errors import UnsupportedError

__all__ = ["FIXED_SIZE_KEY", "arrow_field", "arrow_schema", "spark_field", "spark_schema", "spark_type"]

#: Key of Spark's column metadata with the list length of a fixed-size list column (vectors).
FIXED_SIZE_KEY = "arrow.fixed-size-list.size"

_BLOB_KEY = b"lance-encoding:blob"
_EXTENSION_KEY = b"ARROW:extension:name"
_PLAIN_EXTENSIONS = {"arrow.json", "lance.json", "arrow.uuid", "arrow.fixed_shape_tensor"}

_EXACT: list[tuple[pa.DataType, Any]] = [
    (pa.null(), T.NullType()),
    (pa.bool_(), T.BooleanType()),
    (pa.int8(), T.ByteType()),
    (pa.int16(), T.ShortType()),
    (pa.int32(), T.IntegerType()),
    (pa.int64(), T.LongType()),
    (pa.float32(), T.FloatType()),
    (pa.float64(), T.DoubleType()),
    (pa.string(), T.StringType()),
    (pa.binary(), T.BinaryType()),
    (pa.date32(), T.DateType()),
    (pa.timestamp("us", tz="UTC"), T.TimestampType()),
    (pa.timestamp("us"), T.TimestampNTZType()),
    (pa.duration("us"), T.DayTimeIntervalType()),
]
_WIDENED: dict[pa.DataType, Any] = {
    pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(),
    pa.uint32(): T.LongType(),
    pa.uint64(): T.DecimalType(20, 0),
    pa.float16(): T.FloatType(),
    pa.large_string(): T.StringType(),
    pa.large_binary(): T.BinaryType(),
    pa.date64(): T.DateType(),
}
_FROM_ARROW = dict(_EXACT) | _WIDENED
_TO_ARROW = {type(spark): arrow for arrow, spark in _EXACT}
_MAX_PRECISION = 38


def spark_schema(schema: pa.Schema) -> Any:
    """Return the Spark schema (a StructType) for reading a dataset of this Arrow schema.

    Raises
    ------
    UnsupportedError
        A column has no Spark type; the message names it.
    """
    return T.StructType([spark_field(field) for field in schema])


def spark_field(field: pa.Field) -> Any:
    """Return the Spark column (a StructField) of an Arrow column."""
    metadata = {FIXED_SIZE_KEY: field.type.list_size} if pa.types.is_fixed_size_list(field.type) else None
    return T.StructField(field.name, spark_type(field, field.name), field.nullable, metadata)


def spark_type(field: pa.Field, path: str) -> Any:
    """Return the Spark type of an Arrow field; `path` is its full name for error messages."""
    arrow = _storage_type(field, path)
    found = _FROM_ARROW.get(arrow)
    if found is not None:
        return found
    if pa.types.is_decimal(arrow) and arrow.precision <= _MAX_PRECISION and 0 <= arrow.scale <= arrow.precision:
        return T.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        return T.TimestampNTZType() if arrow.tz is None else T.TimestampType()
    if pa.types.is_duration(arrow):
        return T.DayTimeIntervalType()
    if pa.types.is_time(arrow):
        return _time_type(path)
    if pa.types.is_fixed_size_binary(arrow):
        return T.BinaryType()
    if pa.types.is_dictionary(arrow):
        return spark_type(pa.field(field.name, arrow.value_type), path)
    if _is_view(arrow):
        return T.StringType() if "string" in str(arrow) else T.BinaryType()
    return _nested_spark_type(arrow, path)


def _nested_spark_type(arrow: pa.DataType, path: str) -> Any:
    if pa.types.is_struct(arrow):
        return T.StructType(
            [T.StructField(child.name, spark_type(child, f"{path}.{child.name}"), child.nullable) for child in arrow]
        )
    if pa.types.is_map(arrow):
        key = spark_type(arrow.key_field, f"{path}.key")
        value = spark_type(arrow.item_field, f"{path}.value")
        return T.MapType(key, value, arrow.item_field.nullable)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return T.ArrayType(spark_type(arrow.value_field, f"{path}[]"), arrow.value_field.nullable)
    raise UnsupportedError(_refusal(path, f"of type {arrow}"))


def _storage_type(field: pa.Field, path: str) -> pa.DataType:
    """Return the type without its extension; refuse columns whose storage type would be misleading."""
    metadata = field.metadata or {}
    if metadata.get(_BLOB_KEY) == b"true":
        raise UnsupportedError(_refusal(path, "a blob column, which is read by take_blobs"))
    if isinstance(field.type, pa.BaseExtensionType):
        name, arrow = field.type.extension_name, field.type.storage_type
    else:
        name, arrow = metadata.get(_EXTENSION_KEY, b"").decode("utf-8", "replace"), field.type
    if name and name not in _PLAIN_EXTENSIONS:
        raise UnsupportedError(_refusal(path, f"of the extension type {name}"))
    return arrow


def _refusal(path: str, what: str) -> str:
    return (
        f"Column {path!r} is {what}; Spark has no type for it. "
        "Leave it out with .option('columns', 'the columns you need')"
    )


def _time_type(path: str) -> Any:
    time_type = getattr(T, "TimeType", None)
    if time_type is None:
        raise UnsupportedError(_refusal(path, "a time of day, which this release of PySpark does not know"))
    return time_type(6)


def _is_view(arrow: pa.DataType) -> bool:
    return str(arrow) in ("string_view", "binary_view")


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema in which Spark exchanges a StructType; timestamps are in UTC.

    Raises
    ------
    UnsupportedError
        A column has a type that Lance cannot store; the message names it.
    """
    return pa.schema([arrow_field(field, field.name) for field in schema.fields])


def arrow_field(field: Any, path: str) -> pa.Field:
    """Return the Arrow field of a Spark StructField."""
    return pa.field(field.name, _arrow_type(field.dataType, path), field.nullable)


def _arrow_type(spark: Any, path: str) -> pa.DataType:
    found = _TO_ARROW.get(type(spark))
    if found is not None:
        return found
    if isinstance(spark, T.DecimalType):
        return pa.decimal128(spark.precision, spark.scale)
    if isinstance(spark, T.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(spark.elementType, f"{path}[]"), spark.containsNull))
    if isinstance(spark, T.MapType):
        key = pa.field("key", _arrow_type(spark.keyType, f"{path}.key"), False)
        return pa.map_(key, pa.field("value", _arrow_type(spark.valueType, f"{path}.value"), spark.valueContainsNull))
    if isinstance(spark, T.StructType):
        return pa.struct([arrow_field(child, f"{path}.{child.name}") for child in spark.fields])
    if type(spark).__name__ == "TimeType":
        return pa.time64("ns")
    hint = "parse it into columns first" if type(spark).__name__ == "VariantType" else "cast or drop it first"
    raise UnsupportedError(
        f"Column {path!r} is of the Spark type {spark.simpleString()}, which Lance cannot store; {hint}"
    )
