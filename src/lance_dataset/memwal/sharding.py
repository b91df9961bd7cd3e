"""Sharding specs: their validity for a table, and the sharding values of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.memwal.bucket_hash import bucket_numbers, is_bucketable
from lance_dataset.memwal.details import ShardingField, ShardingSpec
from lance_dataset.types.schema import Schema

__all__ = ["MAX_BUCKETS", "bucket_spec", "identity_spec", "sharding_values", "unsharded_spec"]

MAX_BUCKETS = 1024
_FIELD = "bucket"
_SPEC_ID = 1
_RESULT_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "utf8": pa.string(),
    "large_utf8": pa.large_string(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def unsharded_spec() -> ShardingSpec:
    """Return the spec of a table with a single shard."""
    return ShardingSpec(_SPEC_ID, [ShardingField(_FIELD, [], "unsharded", None, "int32")])


def bucket_spec(schema: Schema, column: str, buckets: int) -> ShardingSpec:
    """Return the spec of a table whose rows are spread over buckets.

    Raises
    ------
    InvalidInputError
        The number of buckets is out of range, or the column does not exist or cannot be spread.
    """
    if not 1 <= buckets <= MAX_BUCKETS:
        raise InvalidInputError(f"Invalid user input: num_buckets must be between 1 and {MAX_BUCKETS}, got {buckets}")
    field_id, kind = _source(schema, column)
    if not is_bucketable(kind):
        raise InvalidInputError(f"Invalid user input: column {column!r} of type {kind} cannot be a bucket column")
    return ShardingSpec(
        _SPEC_ID, [ShardingField(_FIELD, [field_id], "bucket", None, "int32", {"num_buckets": str(buckets)})]
    )


def identity_spec(schema: Schema, column: str) -> ShardingSpec:
    """Return the spec of a table with a shard for each value of a column; raises like `bucket_spec`."""
    field_id, kind = _source(schema, column)
    name = next((name for name, each in _RESULT_TYPES.items() if each == kind), None)
    if name is None:
        raise InvalidInputError(f"Invalid user input: column {column!r} of type {kind} cannot be an identity column")
    return ShardingSpec(_SPEC_ID, [ShardingField(_FIELD, [field_id], "identity", None, name)])


def _source(schema: Schema, column: str) -> tuple[int, pa.DataType]:
    try:
        field = schema.top_level(column)
    except FieldNotFoundError as error:
        raise InvalidInputError(f"Invalid user input: {error}") from error
    return field.id, field.storage_type


def sharding_values(batch: pa.RecordBatch, spec: ShardingSpec, names: Mapping[int, str]) -> pa.RecordBatch:
    """Compute the sharding values of rows.

    Parameters
    ----------
    batch
        The rows.
    spec
        The spec.
    names
        Names of the columns by field id.

    Returns
    -------
    pyarrow.RecordBatch
        A column for each field of the spec.

    Raises
    ------
    FieldNotFoundError
        The batch lacks a source column.
    UnsupportedError
        A transform, an expression or the type of a source is not supported.
    InvalidInputError
        A field of the spec contradicts itself.
    """
    columns = [_values(batch, each, names) for each in spec.fields]
    return pa.RecordBatch.from_arrays(columns, names=[each.field_id for each in spec.fields])


def _values(batch: pa.RecordBatch, field: ShardingField, names: Mapping[int, str]) -> pa.Array:
    if field.expression:
        raise UnsupportedError(f"sharding field {field.field_id!r}: expressions are not supported")
    if field.transform == "unsharded":
        return pa.array(np.zeros(batch.num_rows, np.int32))
    if field.transform not in ("bucket", "identity"):
        raise UnsupportedError(
            f"Unsupported MemWAL sharding transform {field.transform!r} of field {field.field_id!r}; "
            "use 'bucket', 'identity' or 'unsharded'"
        )
    values = _source_values(batch, field.source_ids, names, field.field_id)
    if field.transform == "identity":
        if values.type not in _RESULT_TYPES.values():
            raise UnsupportedError(f"sharding field {field.field_id!r}: values of type {values.type} cannot be shards")
        return values
    return bucket_numbers(values, _buckets(field))


def _buckets(field: ShardingField) -> int:
    text = field.parameters.get("num_buckets", "")
    buckets = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not 1 <= buckets <= MAX_BUCKETS:
        raise InvalidInputError(
            f"sharding field {field.field_id!r}: num_buckets must be between 1 and {MAX_BUCKETS}, not {text!r}"
        )
    return buckets


def _source_values(batch: pa.RecordBatch, ids: Sequence[int], names: Mapping[int, str], field: str) -> pa.Array:
    if len(ids) != 1:
        raise InvalidInputError(f"sharding field {field!r} must have one source column, not {len(ids)}")
    name = names.get(ids[0])
    if name is None or name not in batch.schema.names:
        raise FieldNotFoundError(f"sharding field {field!r}: the data has no column with the field id {ids[0]}")
    return batch.column(name)
