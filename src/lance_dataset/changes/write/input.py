"""Conversion of all kinds of data that users may pass to streams of record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.dataset as pads

from lance_dataset.errors import InvalidInputError, OutOfRangeError, SchemaError, nearest_name_hint

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ReaderLike", "as_batches", "has_no_rows"]

_HUGGING_FACE_ROWS = 1024
_Converted = TypeVar("_Converted")


class ArrowStream(Protocol):
    """Data with the Arrow C stream interface, such as a frame of polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of the stream."""
        ...


class ArrowArray(Protocol):
    """Data with the Arrow C array interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return capsules of the schema and the array."""
        ...


class Model(Protocol):
    """Row of data as an object of pydantic."""

    def model_dump(self) -> dict[str, Any]:
        """Return the values by name."""
        ...


#: Data that calls write or merge; see `as_batches`.
ReaderLike: TypeAlias = (
    "pa.Table | pa.RecordBatch | pa.RecordBatchReader | pads.Dataset | pads.Scanner | pd.DataFrame | ArrowStream "
    "| ArrowArray | Mapping[str, Any] | Iterable[pa.RecordBatch | pa.Table | Mapping[str, Any] | Model]"
)


def as_batches(data: ReaderLike, schema: pa.Schema | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read data of any supported kind as a stream. Iterators are consumed batch by batch.

    Parameters
    ----------
    data
        Arrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner (those of this package too), pandas or polars
        DataFrame, dict of columns, list of dicts, list of pydantic objects, Hugging Face dataset, iterable of
        RecordBatch or Table, or anything with the Arrow C stream or array interface.
    schema
        Schema of an iterable, of pandas data, dicts and lists. It is required for an iterable, whose batches are cast
        to it by column name. Arrow data and polars frames have their own schema, so it is ignored for these.

    Returns
    -------
    schema : pyarrow.Schema
        Schema of the batches.
    batches : iterator of pyarrow.RecordBatch
        Batches of that schema.

    Raises
    ------
    TypeError
        The data is of an unsupported kind.
    InvalidInputError
        An iterable comes without a schema, or the data cannot be converted to Arrow.
    SchemaError
        While reading: a batch of an iterable does not fit the schema.
    """
    schema = _arrow_schema(schema)
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches())
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter((data,))
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data)
    if isinstance(data, pads.Scanner):
        return as_batches(data.to_reader())
    if isinstance(data, pads.Dataset):
        return as_batches(data.scanner().to_reader())
    return _foreign_batches(data, schema)


def has_no_rows(data: Any) -> bool:
    """Return True if the data is a table or DataFrame without rows. Streams are not read for this."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return bool(data.num_rows == 0)
    return _is_frame(data, "pandas", "polars") and len(data) == 0


def _is_frame(data: Any, *libraries: str) -> bool:
    root = type(data).__module__.partition(".")[0]
    return root in libraries and type(data).__name__ == "DataFrame"


def _arrow_schema(schema: Any) -> pa.Schema | None:
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    if hasattr(schema, "to_pyarrow"):
        return schema.to_pyarrow()
    raise TypeError(f"schema must be a pyarrow.Schema, not {type(schema).__name__}")


def _foreign_batches(data: Any, schema: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if _is_frame(data, "pandas"):
        return as_batches(_convert(lambda: pa.Table.from_pandas(data, schema=schema)))
    if _is_frame(data, "polars"):
        return as_batches(data.to_arrow())
    if isinstance(data, Mapping):
        return as_batches(_convert(lambda: _columns_table(data, schema)))
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return _hugging_face_batches(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        return as_batches(_convert(lambda: pa.RecordBatchReader.from_stream(data)))
    if hasattr(data, "__arrow_c_array__"):
        return as_batches(_convert(lambda: pa.record_batch(data)))
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return as_batches(_rows_table(data, schema))
    if isinstance(data, list) and data and hasattr(data[0], "model_dump"):
        return as_batches(_rows_table([item.model_dump() for item in data], schema))
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise TypeError(_unknown(data))
    if schema is None:
        raise InvalidInputError("Must provide schema to write dataset from RecordBatch iterable")
    return schema, _cast_all(data, schema)


def _unknown(data: Any) -> str:
    root = type(data).__module__.partition(".")[0]
    if root == "polars" and type(data).__name__ == "LazyFrame":
        return f"Unknown data type {type(data)}: call .collect() to get a DataFrame first"
    return (
        f"Unknown data type {type(data)}: pass Arrow, pandas or polars data, a dict of columns, a list of dicts, "
        "or an iterable of record batches"
    )


def _convert(call: Callable[[], _Converted]) -> _Converted:
    """Run a pyarrow conversion, and convert its errors to those of this package."""
    try:
        return call()
    except (pa.ArrowException, KeyError, ValueError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise InvalidInputError(f"the data cannot be converted to Arrow: {text}") from error


def _columns_table(data: Mapping[str, Any], schema: pa.Schema | None) -> pa.Table:
    try:
        return pa.Table.from_pydict(dict(data), schema=schema)
    except OverflowError:
        for name, values in data.items():
            _checked_column(name, lambda values=values, name=name: pa.array(values, schema and schema.field(name).type))
        raise


def _rows_table(rows: Sequence[Any], schema: pa.Schema | None) -> pa.Table:
    if schema is not None:
        return _convert(lambda: pa.table([_row_values(rows, f.name, f.type) for f in schema], schema=schema))
    # from_pylist looks at the first row only, and would drop columns that only later rows have.
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _row_values(rows, name) for name in names})


def _row_values(rows: Sequence[Any], name: str, kind: pa.DataType | None = None) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column of rows. Errors name it."""
    return _checked_column(name, lambda: pa.array([row.get(name) for row in rows], kind))


def _checked_column(name: str, make: Callable[[], _Converted]) -> _Converted:
    try:
        return make()
    except OverflowError as error:
        raise OutOfRangeError(f"column {name!r} has an integer that does not fit 64 bits; store it as text") from error
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidInputError(f"the data cannot be converted to Arrow: column {name!r}: {error}") from error


def _hugging_face_batches(data: Any, schema: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if schema is None:
        if data.features is None:
            raise InvalidInputError("this Hugging Face dataset does not know its features; pass schema=")
        schema = data.features.arrow_schema.remove_metadata()
    # Unlike the table below it, iteration honours select(), shuffle() and filter().
    return schema, _cast_all(data.with_format("arrow").iter(batch_size=_HUGGING_FACE_ROWS), schema)


def _cast_all(items: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for position, item in enumerate(items):
        if isinstance(item, pa.RecordBatch):
            yield _cast_batch(item, schema, position)
        elif isinstance(item, pa.Table):
            for batch in item.to_batches():
                yield _cast_batch(batch, schema, position)
        else:
            raise TypeError(f"item {position} of the data is a {type(item).__name__}; expected RecordBatch or Table")


def _cast_batch(batch: pa.RecordBatch, schema: pa.Schema, position: int) -> pa.RecordBatch:
    given = batch.schema
    if given.equals(schema, check_metadata=True):
        return batch
    if sorted(given.names) != sorted(schema.names):
        missing = [name for name in schema.names if name not in given.names]
        unexpected = [name for name in given.names if name not in schema.names]
        hint = nearest_name_hint(missing[0], given.names) if missing else ""
        raise SchemaError(
            f"item {position} of the data does not have the columns of the schema: "
            f"missing={missing}, unexpected={unexpected}{hint}"
        )
    columns = [_cast_column(batch.column(field.name), field, position) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


def _cast_column(array: pa.Array, field: pa.Field, position: int) -> pa.Array:
    if not field.nullable and array.null_count:
        raise SchemaError(
            f"column {field.name!r} of item {position} of the data holds {array.null_count} null values, "
            "but the schema declares it not nullable"
        )
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaError(
            f"column {field.name!r} of item {position} of the data: "
            f"type {array.type} cannot be cast to {field.type}: {error}"
        ) from error
