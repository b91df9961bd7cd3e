"""Conversion of all kinds of data that users may pass to streams of record batches."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.dataset as pads

from lance_dataset.callers import callers_level
from lance_dataset.errors import InvalidInputError, OutOfRangeError, SchemaError, nearest_name_hint

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "PANDAS_INDEX",
    "ReaderLike",
    "as_batches",
    "checked_models",
    "has_no_rows",
    "known_rows",
    "models_table",
    "with_index",
]

_HUGGING_FACE_ROWS = 1024
#: Rows of an iterable of dicts that become one batch.
_GROUPED_ROWS = 8192
#: Names that pyarrow gives to the index of a pandas DataFrame, and the first of them.
PANDAS_INDEX = "__index_level_0__"
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
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
    """Row of data as an object of a model of pydantic."""

    def model_dump(self, *, by_alias: bool | None = None) -> dict[str, Any]:
        """Return the values by name."""
        ...


#: Data that calls write or merge; see `as_batches`.
ReaderLike: TypeAlias = (
    "pa.Table | pa.RecordBatch | pa.RecordBatchReader | pads.Dataset | pads.Scanner | pd.DataFrame | ArrowStream "
    "| ArrowArray | Mapping[str, Any] | Iterable[pa.RecordBatch | pa.Table | Mapping[str, Any] | Model]"
)


def as_batches(
    data: ReaderLike, schema: pa.Schema | None = None, *, keep_index: bool = False
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read data of any supported kind as a stream. Iterators are consumed batch by batch.

    Parameters
    ----------
    data
        Arrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner (those of this package too), pandas or polars
        DataFrame, dict of columns, list of dicts, list of pydantic objects, Hugging Face dataset, iterable of
        RecordBatch, Table, DataFrame or dict, or anything with the Arrow C stream or array interface.
    schema
        Schema to which the data is cast by column name, without overflow. It is required for an iterable of Arrow data.
        Other iterables have that of their first item, or group of rows.
    keep_index
        True to keep the index of a pandas DataFrame as a column even if it has no name.

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
        The data has other columns than the schema. While reading: a batch does not fit the schema.
    """
    schema = _arrow_schema(schema)
    if isinstance(data, pads.Dataset):
        data = data.scanner()
    if isinstance(data, pads.Scanner):
        data = data.to_reader()
    if isinstance(data, pa.Table):
        return _cast_stream(data.schema, iter(data.to_batches()), schema)
    if isinstance(data, pa.RecordBatch):
        return _cast_stream(data.schema, iter((data,)), schema)
    if isinstance(data, pa.RecordBatchReader):
        return _cast_stream(data.schema, iter(data), schema)
    if _is_frame(data, "pandas"):
        return as_batches(_pandas_table(data, schema, keep_index=keep_index))
    return _foreign_batches(data, schema)


def with_index(data: Any, preserve: bool | None) -> Any:
    """Return a pandas DataFrame as a table with its index, if `preserve`, or without it; anything else for None.

    Raises
    ------
    TypeError
        The data is not a pandas DataFrame.
    """
    if preserve is None:
        return data
    if not _is_frame(data, "pandas"):
        raise TypeError(f"preserve_index is for a pandas DataFrame, not {type(data).__name__}")
    return _convert(lambda: pa.Table.from_pandas(data, preserve_index=preserve))


def has_no_rows(data: Any) -> bool:
    """Return True if the data is a table or DataFrame without rows. Streams are not read for this."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return bool(data.num_rows == 0)
    return _is_frame(data, "pandas", "polars") and len(data) == 0


def known_rows(data: Any) -> int | None:
    """Return the number of rows of a table, DataFrame or dataset; None for other data, which is not read for this."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.num_rows
    if isinstance(data, pads.Dataset):
        return int(data.count_rows())
    return len(data) if _is_frame(data, "pandas", "polars") else None


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
    if _is_frame(data, "polars"):
        return as_batches(data.to_arrow(), schema)
    if isinstance(data, Mapping):
        return as_batches(_convert(lambda: _columns_table(data, schema)))
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return _hugging_face_batches(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        return as_batches(_convert(lambda: pa.RecordBatchReader.from_stream(data)), schema)
    if hasattr(data, "__arrow_c_array__"):
        return as_batches(_convert(lambda: pa.record_batch(data)), schema)
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return as_batches(_rows_table(data, schema))
    if isinstance(data, list) and data and _is_model(data[0]):
        return as_batches(models_table(type(data[0]), data, schema))
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise TypeError(_unknown(data))
    if schema is None:
        return _inferred(iter(data))
    return schema, _cast_all(_pieces(data, schema), schema)


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
            _checked_column(name, partial(pa.array, values, None if schema is None else schema.field(name).type))
        raise


def _rows_table(rows: Sequence[Any], schema: pa.Schema | None) -> pa.Table:
    if schema is not None:
        columns = [_row_values(rows, field.name, field.type) for field in schema]
        return _convert(lambda: pa.table(columns, schema=schema))
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
    return schema, _cast_all(_pieces(data.with_format("arrow").iter(batch_size=_HUGGING_FACE_ROWS), schema), schema)


def _cast_all(items: Iterable[tuple[int, pa.RecordBatch]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for position, batch in items:
        yield _cast_batch(batch, schema, position)


def _pieces(items: Iterable[Any], schema: pa.Schema | None) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Convert the items of an iterable to batches, rows in groups. Yield each with the number of its first item."""
    rows: list[Any] = []
    for position, item in enumerate(items):
        row = _as_row(item)
        if row is not None:
            rows.append(row)
        if rows and (row is None or len(rows) == _GROUPED_ROWS):
            first = position - len(rows) + (row is not None)
            yield from ((first, batch) for batch in _rows_table(rows, schema).to_batches())
            rows = []
        if row is None:
            yield from ((position, batch) for batch in _item_batches(item, position))
    if rows:
        yield from ((position + 1 - len(rows), batch) for batch in _rows_table(rows, schema).to_batches())


def _is_model(item: Any) -> bool:
    """Return True for an object of a model of pydantic, which is imported if there is one."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(item, pydantic.BaseModel)


def checked_models(model: Any, objects: Any) -> list[Any]:
    """Return objects of a model of pydantic. Raise TypeError unless they are a list, InvalidInputError if empty."""
    from lance_dataset.types.pydantic_models import is_model

    if not is_model(model):
        raise TypeError(f"`model_class` must be a Pydantic BaseModel subclass, got {model}")
    if not isinstance(objects, list):
        raise TypeError(f"Pydantic model data must be provided as a list, got {type(objects)}")
    if not objects:
        raise InvalidInputError("`data` must be a non-empty list of Pydantic model instances.")
    return objects


def models_table(model: type, objects: Sequence[Any], schema: pa.Schema | None = None) -> pa.Table:
    """Convert objects of a model of pydantic to a table.

    Parameters
    ----------
    model
        Their class; objects of classes that derive from it are not accepted.
    objects
        The objects.
    schema
        Schema of the table; None for that of the model.

    Raises
    ------
    TypeError
        An object is of another class, or a field of the model has no Arrow type.
    InvalidInputError
        A value does not fit its column.
    """
    from lance_dataset.types.pydantic_models import plain_rows, pydantic_to_schema

    for number, each in enumerate(objects):
        if type(each) is not model:
            raise TypeError(
                f"data[{number}] must be an instance of {model} exactly (subclasses are not accepted), "
                f"got {type(each)} (data has {len(objects)} items)"
            )
    of_model = pydantic_to_schema(model)
    return _rows_table(plain_rows(objects, of_model), of_model if schema is None else schema)


def _model_stream(model: type, items: Iterator[Any]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    from lance_dataset.types.pydantic_models import pydantic_to_schema

    def batches() -> Iterator[pa.RecordBatch]:
        while group := list(islice(items, _GROUPED_ROWS)):
            yield from models_table(model, group).to_batches()

    return pydantic_to_schema(model), batches()


def _as_row(item: Any) -> Mapping[str, Any] | None:
    if isinstance(item, Mapping):
        return item
    return item.model_dump(by_alias=False) if _is_model(item) else None


def _item_batches(item: Any, position: int) -> list[pa.RecordBatch]:
    if isinstance(item, pa.RecordBatch):
        return [item]
    if _is_frame(item, "pandas"):
        item = _pandas_table(item, None)
    elif _is_frame(item, "polars"):
        item = item.to_arrow()
    if isinstance(item, pa.Table):
        return item.to_batches()
    raise TypeError(
        f"item {position} of the data is a {type(item).__name__}; expected RecordBatch, Table, frame or dict"
    )


def _inferred(items: Iterator[Any]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read an iterable of rows or frames whose schema is that of its first ones."""
    first = next(items, None)
    if first is None or isinstance(first, pa.RecordBatch | pa.Table):
        raise InvalidInputError("Must provide schema to write dataset from RecordBatch iterable")
    if _is_model(first):
        return _model_stream(type(first), chain([first], items))
    pieces = _pieces(chain([first], items), None)
    position, batch = next(pieces)
    return batch.schema, _cast_all(chain([(position, batch)], pieces), batch.schema)


def _cast_stream(
    given: pa.Schema, batches: Iterator[pa.RecordBatch], schema: pa.Schema | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Cast a stream to a schema, unless it is None or has the same types."""
    if schema is None or given.equals(schema):
        return given, batches
    _check_names(given, schema, "the data does")
    return schema, _cast_all(enumerate(batches), schema)


def _check_names(given: pa.Schema, schema: pa.Schema, subject: str) -> None:
    if sorted(given.names) != sorted(schema.names):
        missing = [name for name in schema.names if name not in given.names]
        unexpected = [name for name in given.names if name not in schema.names]
        hint = nearest_name_hint(missing[0], given.names) if missing else ""
        raise SchemaError(
            f"{subject} not have the columns of the schema: missing={missing}, unexpected={unexpected}{hint}"
        )


def _pandas_table(frame: pd.DataFrame, schema: pa.Schema | None, *, keep_index: bool = False) -> pa.Table:
    """Convert a frame. An index without a name, as filtering leaves it, is dropped with a warning."""
    table = _convert(lambda: pa.Table.from_pandas(frame, schema=schema))
    unnamed = [name for name in table.column_names if _UNNAMED_INDEX.fullmatch(name) and name not in frame.columns]
    if keep_index or schema is not None or not unnamed:
        return table
    warnings.warn(
        f"the index of the DataFrame has no name and is not written; call reset_index(drop=True) to say so, or pass "
        f"preserve_index=True to write it as column {unnamed[0]!r}",
        stacklevel=callers_level(),
    )
    return table.drop_columns(unnamed)


def _cast_batch(batch: pa.RecordBatch, schema: pa.Schema, position: int) -> pa.RecordBatch:
    given = batch.schema
    if given.equals(schema, check_metadata=True):
        return batch
    _check_names(given, schema, f"item {position} of the data does")
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
