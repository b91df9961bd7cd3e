"""Casts of new data to the types of a table, where no value changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import SchemaError
from lance_dataset.types.schema import Schema

__all__ = ["cast_exactly", "fit_batches", "fitted_schema"]

_Check = Callable[[pa.DataType], bool]
_types = pa.types
#: Types among which values are cast if they stay the same: integers of any width, texts, and so on.
_FAMILIES: tuple[_Check, ...] = (
    lambda kind: _types.is_integer(kind) or _types.is_float32(kind) or _types.is_float64(kind),
    lambda kind: _types.is_integer(kind) or _types.is_decimal(kind),
    _types.is_floating,
    lambda kind: _types.is_string(kind) or _types.is_large_string(kind) or _types.is_string_view(kind),
    lambda kind: (
        _types.is_binary(kind)
        or _types.is_large_binary(kind)
        or _types.is_binary_view(kind)
        or _types.is_fixed_size_binary(kind)
    ),
    lambda kind: _types.is_timestamp(kind) and kind.tz is None,
    lambda kind: _types.is_timestamp(kind) and kind.tz is not None,
    _types.is_date,
    _types.is_time,
    _types.is_duration,
)


def fit_batches(
    given: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    table: Schema,
    *,
    without: str | None = None,
    empty: bool = False,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Cast new data to the types of the columns of a table.

    Parameters
    ----------
    given, batches
        Schema of the data, and the data.
    table
        Schema of the table.
    without
        Column that is not cast.
    empty
        True if the data has no rows: its columns may be of any type.

    Returns
    -------
    schema, batches
        The same objects if no type differs.

    Raises
    ------
    SchemaError
        While reading: a value would change. The message names column, row and value.
    """
    if empty:
        known = table.arrow
        return pa.schema([known.field(each.name) if each.name in known.names else each for each in given]), iter(())
    schema = fitted_schema(given, table, without)
    return (given, batches) if schema is given else (schema, _cast_all(batches, schema))


def fitted_schema(given: pa.Schema, table: Schema, without: str | None = None) -> pa.Schema:
    """Return a schema with the types of the table for those columns that can be cast, or the schema itself."""
    known = table.arrow
    fitted = given
    for position, field in enumerate(given):
        place = -1 if field.name == without else known.get_field_index(field.name)
        target = None if place < 0 else _fitted(field.type, known.field(place).type)
        if target is not None and not target.equals(field.type):
            # the metadata of the field may be that of another type
            metadata = known.field(place).metadata
            fitted = fitted.set(position, pa.field(field.name, target, field.nullable, metadata))
    return fitted


def _fitted(source: pa.DataType, target: pa.DataType) -> pa.DataType | None:
    """Return the type that values of a type are cast to for a column of the table; None if they cannot be."""
    if source.equals(target) or isinstance(source, pa.BaseExtensionType):
        return source
    if isinstance(target, pa.BaseExtensionType):
        return None
    if _types.is_null(source):
        return target
    wanted = _wanted(source, target)
    return wanted if wanted is not None and _can_cast(source, wanted) else None


def _wanted(source: pa.DataType, target: pa.DataType) -> pa.DataType | None:
    if _types.is_dictionary(source):
        return _fitted(source.value_type, target)
    if _types.is_dictionary(target):
        return target if _fitted(source, target.value_type) is not None else None
    if _types.is_struct(source) and _types.is_struct(target):
        return pa.struct([_fitted_child(field, target) for field in source])
    if _is_list(source) and _is_list(target):
        value = _fitted(source.value_type, target.value_type)
        return None if value is None else _list_like(target, value)
    if _types.is_map(source) and _types.is_map(target):
        key, item = _fitted(source.key_type, target.key_type), _fitted(source.item_type, target.item_type)
        nullable = target.item_field.nullable
        return None if key is None or item is None else pa.map_(key, pa.field("value", item, nullable))
    return target if any(family(source) and family(target) for family in _FAMILIES) else None


def _fitted_child(field: pa.Field, target: pa.StructType) -> pa.Field:
    """Return a field of a struct. Missing and unknown fields are left to the check of the schema."""
    place = target.get_field_index(field.name)
    fitted = None if place < 0 else _fitted(field.type, target.field(place).type)
    return field if fitted is None else field.with_type(fitted)


def _is_list(kind: pa.DataType) -> bool:
    return (
        _types.is_list(kind)
        or _types.is_large_list(kind)
        or _types.is_fixed_size_list(kind)
        or _types.is_list_view(kind)
        or _types.is_large_list_view(kind)
    )


def _list_like(target: pa.DataType, value: pa.DataType) -> pa.DataType:
    """Return a list type of the kind of another one, with other values."""
    field = target.value_field.with_type(value)
    if _types.is_fixed_size_list(target):
        return pa.list_(field, target.list_size)
    return pa.large_list(field) if _types.is_large_list(target) else pa.list_(field)


def _can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    try:
        pa.nulls(0, source).cast(target)
    except (pa.ArrowException, NotImplementedError):
        return False
    return True


# -- values ----------------------------------------------------------------------------------------------------------


def _cast_all(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        columns = [cast_exactly(batch.column(i), field, first) for i, field in enumerate(schema)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch
        first += batch.num_rows


def cast_exactly(array: pa.Array, field: pa.Field, first: int = 0) -> pa.Array:
    """Cast an array to the type of a field.

    Parameters
    ----------
    array
        The values.
    field
        Name and type of the column.
    first
        Row number of the first value, for the message.

    Raises
    ------
    SchemaError
        A value would change.
    """
    if array.type.equals(field.type):
        return array
    problem = ""
    try:
        result = array.cast(field.type)
        if _is_exact(array, result):
            return result
    except (pa.ArrowException, NotImplementedError) as error:
        problem = f" ({error})"
    row = _first_changed(array, field.type)
    raise SchemaError(
        f"column {field.name!r}, row {first + row}: {_shown(array[row])} of type {array.type} would change as "
        f"{field.type}{problem}; if that is meant, cast the column before it is written: "
        f"pyarrow.compute.cast(column, {_written(field)}, safe=False)"
    )


def _is_exact(array: pa.Array, result: pa.Array) -> bool:
    """Return False if a floating-point value lost digits, which a safe cast allows. Both have the same structure."""
    source, target = array.type, result.type
    if _types.is_dictionary(source):
        return _is_exact(array.cast(source.value_type), result)
    if _types.is_dictionary(target):
        return _is_exact(array, result.cast(target.value_type))
    if _types.is_struct(source):
        pairs = zip(array.flatten(), result.flatten(), strict=True)
        return source.equals(target) or all(_is_exact(old, new) for old, new in pairs)
    if _types.is_map(source):
        return _is_exact(array.keys, result.keys) and _is_exact(array.items, result.items)
    if _is_list(source):
        return _is_exact(array.flatten(), result.flatten())
    if _types.is_floating(source) and _types.is_floating(target) and target.bit_width < source.bit_width:
        before, after = array.cast(pa.float64()), result.cast(pa.float64())
        same = pc.or_kleene(pc.equal(before, after), pc.and_kleene(pc.is_nan(before), pc.is_nan(after)))
        return pc.all(same, min_count=0).as_py() is not False
    return True


def _first_changed(array: pa.Array, target: pa.DataType) -> int:
    """Return the first row that cannot be cast."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        if _casts(array.slice(low, middle - low), target):
            low = middle
        else:
            high = middle
    return low


def _casts(array: pa.Array, target: pa.DataType) -> bool:
    try:
        return _is_exact(array, array.cast(target))
    except (pa.ArrowException, NotImplementedError):
        return False


def _shown(value: pa.Scalar) -> str:
    try:
        text = repr(value.as_py())
    except (pa.ArrowException, ValueError, OverflowError):
        text = str(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _written(field: pa.Field) -> str:
    """Return the type of a column of the table as one would write it."""
    name = str(field.type)
    name = _FACTORIES.get(name, name)
    return f"pyarrow.{name}()" if name.isidentifier() else f"dataset.schema.field({field.name!r}).type"


#: Functions that make types of other names.
_FACTORIES = {"halffloat": "float16", "float": "float32", "double": "float64", "date32[day]": "date32"}
