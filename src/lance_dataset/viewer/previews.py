"""Rows as the page shows them: values as short text, vectors as a few points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.reports.cells import cell_texts
from lance_dataset.reports.columns import ColumnKind, column_kind

__all__ = ["described_columns", "preview", "stream"]

#: Characters of a cell; the whole value is a request of its own.
_LONGEST_CELL = 160
#: Points of the small curve of a vector.
_POINTS = 48
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def described_columns(schema: pa.Schema) -> list[dict[str, str]]:
    """Return name, type and kind of the columns, for JSON."""
    return [
        {"name": field.name, "type": _cut(str(field.type), 400), "kind": column_kind(field).value} for field in schema
    ]


def preview(table: pa.Table, rows: Sequence[int] | np.ndarray | None = None) -> pa.Table:
    """Return a table of texts, and of lists of floats for vectors, whose columns are named by their places.

    Parameters
    ----------
    table
        Rows.
    rows
        Their numbers in the dataset, for the column ``row``.
    """
    arrays, fields = [], []
    for place, field in enumerate(table.schema):
        kind = column_kind(field)
        shown = _shown(_combined(table.column(place)), kind)
        arrays.append(shown)
        fields.append(pa.field(str(place), shown.type, metadata={"kind": kind.value, "name": field.name}))
    if rows is not None:
        arrays.append(pa.array(np.asarray(rows, np.float64)))  # JavaScript has no other plain numbers
        fields.append(pa.field("row", pa.float64()))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def stream(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _combined(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], found.type)
    return found.storage if isinstance(found, pa.ExtensionArray) else found


def _shown(column: pa.Array, kind: ColumnKind) -> pa.Array:
    if kind is ColumnKind.VECTOR:
        return _points(column)
    if kind is ColumnKind.BINARY:
        return _sizes(pc.binary_length(column.cast(pa.large_binary()) if _is_view(column.type) else column))
    if kind is ColumnKind.BLOB and pa.types.is_struct(column.type) and column.type.get_field_index("size") >= 0:
        return _sizes(pc.struct_field(column, "size"))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return pc.if_else(column.is_valid(), cell_texts(column, _LONGEST_CELL), pa.scalar(None, pa.string()))


def _is_view(kind: pa.DataType) -> bool:
    return pa.types.is_binary_view(kind)


def _sizes(sizes: pa.Array) -> pa.Array:
    return pa.array([None if size is None else _byte_text(size) for size in sizes.to_pylist()], pa.string())


def _byte_text(size: int) -> str:
    amount = float(size)
    for unit in _BYTE_UNITS:
        if amount < 1000 or unit == _BYTE_UNITS[-1]:
            break
        amount /= 1000
    return f"{size} B" if unit == "B" else f"{amount:.3g} {unit}"


def _points(column: pa.FixedSizeListArray) -> pa.Array:
    """Return up to 48 points of each vector; null for a null."""
    length = column.type.list_size
    chosen = np.unique(np.linspace(0, max(length - 1, 0), min(length, _POINTS)).astype(np.int64))
    if not len(chosen):
        return pa.nulls(len(column), pa.list_(pa.float32()))
    flat = column.values[column.offset * length : (column.offset + len(column)) * length]
    numbers = flat.cast(pa.float64(), safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    points = numbers.reshape(-1, length)[:, chosen].astype(np.float32)
    offsets = pa.array(np.arange(len(column) + 1, dtype=np.int32) * len(chosen))
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(offsets, pa.array(points.ravel()), mask=mask)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
