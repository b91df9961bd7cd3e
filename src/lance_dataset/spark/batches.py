"""Lossless conversion of batches between layouts: a value that does not fit is an error that names the column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.errors import SchemaError, UnsupportedError

__all__ = ["check_storable", "conform_batch", "contains_type", "with_unscaled_decimals"]

#: Decimals of so many digits fit into 64 bits.
_MOST_DIGITS = 18


def conform_batch(batch: pa.RecordBatch, schema: pa.Schema, purpose: str) -> pa.RecordBatch:
    """Select the columns of `schema` from `batch` and cast them without loss.

    Parameters
    ----------
    batch
        Has all columns of `schema`, in any order. Other columns are dropped.
    schema
        Schema of the result.
    purpose
        ``"read into Spark"`` or the like, for error messages.

    Raises
    ------
    UnsupportedError
        A value cannot be represented in the wanted type.
    """
    columns = [_conform(batch.column(field.name), field, purpose) for field in schema]
    if not columns:
        return batch.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _conform(array: pa.Array, field: pa.Field, purpose: str) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    has_times = contains_type(field.type, pa.types.is_time64)
    if array.type.equals(field.type) and not has_times:
        return array
    try:
        if has_times:
            array = array.cast(_with_micros(field.type))
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UnsupportedError(
            f"Column {field.name!r} of type {array.type} cannot be {purpose} as {field.type} without loss: {error}"
        ) from error


def with_unscaled_decimals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with int64 in place of decimal128 of at most 18 digits: 1.25 becomes 125.

    Parameters
    ----------
    batch
        Decimals nested in other columns stay as they are.

    Raises
    ------
    UnsupportedError
        A value has more digits than its type says.
    """
    names, columns = batch.schema.names, batch.columns
    columns = [_unscaled(array, name) for array, name in zip(columns, names, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _unscaled(array: pa.Array, name: str) -> pa.Array:
    if not pa.types.is_decimal128(array.type) or array.type.precision > _MOST_DIGITS:
        return array
    values = array.buffers()[1]
    if values is None or not len(array):
        return pa.nulls(len(array), pa.int64())
    words = np.frombuffer(values, "<i8", 2 * len(array), 16 * array.offset).reshape(-1, 2)
    low = np.ascontiguousarray(words[:, 0])
    wrong = (low >> 63) != words[:, 1]
    if wrong.any() and (not array.null_count or (wrong & array.is_valid().to_numpy(zero_copy_only=False)).any()):
        raise UnsupportedError(f"Column {name!r} of type {array.type} holds a value of more digits")
    if not array.null_count:
        return pa.array(low)
    return pa.array(low, mask=array.is_null().to_numpy(zero_copy_only=False))


def _with_micros(arrow: pa.DataType) -> pa.DataType:
    """Return the type with times of day in microseconds, the unit of Spark; casting through it finds finer values."""
    if pa.types.is_time64(arrow):
        return pa.time64("us")
    if pa.types.is_struct(arrow):
        return pa.struct([child.with_type(_with_micros(child.type)) for child in arrow])
    if pa.types.is_map(arrow):
        key, item = arrow.key_field, arrow.item_field
        return pa.map_(key.with_type(_with_micros(key.type)), item.with_type(_with_micros(item.type)))
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_with_micros(arrow.value_type)))
    return arrow


def contains_type(arrow: pa.DataType, test: object) -> bool:
    """Return True if the type, or a type nested in it, passes `test`."""
    assert callable(test)
    return bool(test(arrow)) or any(contains_type(child.type, test) for child in _children(arrow))


def _children(arrow: pa.DataType) -> Sequence[pa.Field]:
    if pa.types.is_nested(arrow):
        return [arrow.field(i) for i in range(arrow.num_fields)]
    return []


def check_storable(batch: pa.RecordBatch, null_structs: bool) -> None:
    """Raise if the batch has nulls where the schema or the file version has no room for them.

    Parameters
    ----------
    batch
        Data in the layout of the dataset.
    null_structs
        True if the file version stores null structs.

    Raises
    ------
    SchemaError
        A column or nested field that is not nullable has a null.
    UnsupportedError
        A null struct would be read back as a struct of nulls.
    """
    for field, array in zip(batch.schema, batch.columns, strict=True):
        if _may_fail(field, null_structs):
            _check(array, field, field.name, null_structs)


def _may_fail(field: pa.Field, null_structs: bool) -> bool:
    if not field.nullable or (pa.types.is_struct(field.type) and not null_structs):
        return True
    return any(_may_fail(child, null_structs) for child in _children(field.type))


def _check(array: pa.Array, field: pa.Field, path: str, null_structs: bool) -> None:
    if array.null_count and not field.nullable:
        raise SchemaError(f"Column {path!r} is not nullable in the dataset, but the data has nulls in it")
    if pa.types.is_struct(field.type):
        if array.null_count and not null_structs:
            raise UnsupportedError(
                f"Column {path!r} has null structs, which files of version 2.0 and older cannot store; fill the "
                "nulls first, or use file version 2.1 or later"
            )
        valid = array.filter(pc.is_valid(array)) if array.null_count else array
        for child, values in zip(field.type, valid.flatten(), strict=True):
            _check(values, child, f"{path}.{child.name}", null_structs)
    elif pa.types.is_nested(field.type):
        child = field.type.field(0)
        if pa.types.is_map(field.type):
            array = array.cast(pa.list_(array.type.field(0)))
        _check(array.flatten(), child, f"{path}[]", null_structs)
