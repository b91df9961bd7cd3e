"""Plain columns of wide tables, which are read together: a column by itself costs more than its values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import LanceError
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn
from lance_dataset.scan.checking import is_checking
from lance_dataset.scan.selection import Selection
from lance_dataset.types.schema import Field

__all__ = ["plain_range", "plain_rows"]

#: Columns from which on they are read together.
_MANY_COLUMNS = 16


def plain_range(
    fragment: FragmentReader, outputs: Sequence[OutputColumn], start: int, stop: int
) -> dict[int, pa.Array]:
    """Return the live rows in ``[start, stop)`` of the output columns of a fragment that can be read together.

    Returns
    -------
    dict
        By number of the output column; the others are to be read one by one.
    """
    wanted = _wanted(outputs)
    if len(wanted) < _MANY_COLUMNS or start >= stop:
        return {}
    return _read(fragment, wanted, start, stop, fragment.live_rows(start, stop))


def plain_rows(outputs: Sequence[OutputColumn], selection: Selection) -> dict[int, pa.Array]:
    """Return the selected rows of the output columns that can be read together, as `plain_range`.

    Columns that were read to find the rows are not among them.
    """
    if len(outputs) < _MANY_COLUMNS or len(selection.window.slices) != 1 or selection.num_rows == 0:
        return {}
    wanted = {number: field for number, field in _wanted(outputs).items() if id(field) not in selection.known}
    if len(wanted) < _MANY_COLUMNS:
        return {}
    part, places = selection.window.slices[0], selection.places
    if places is None and len(part.ranges) == 1:
        return _read(part.fragment, wanted, *part.ranges[0], None)
    rows = part.rows if places is None else part.rows_at(places)
    return _read(part.fragment, wanted, 0, 0, rows)


def _wanted(outputs: Sequence[OutputColumn]) -> dict[int, Field]:
    return {
        number: output.field
        for number, output in enumerate(outputs)
        if output.field is not None and not output.path and not output.field.children
    }


def _read(
    fragment: FragmentReader, fields: dict[int, Field], start: int, stop: int, rows: NDArray[np.int64] | None
) -> dict[int, pa.Array]:
    """Read some rows, or without `rows` all in ``[start, stop)``."""
    columns = fragment.plain_columns(list(fields.values()))
    if columns is None:
        return {}
    arrays = columns.read(start, stop) if rows is None else columns.take(rows)
    found = {number: array for number, array in zip(fields, arrays, strict=True) if array is not None}
    if is_checking():
        wanted = np.arange(start, stop) if rows is None else rows
        for number, array in found.items():
            _check(fragment, fields[number], wanted, array)
    return found


def _check(fragment: FragmentReader, field: Field, rows: NDArray[np.int64], found: pa.Array) -> None:
    """Raise an error unless a column that is read by itself has the same bytes at some rows."""
    expected = fragment.column(field).take(rows)
    if expected.type != found.type or not _comparable(expected).equals(_comparable(found)):
        raise LanceError(
            f"columns read together differ from column {field.name!r} of fragment {fragment.fragment.id} by itself; "
            "this is an error of this package, please report it with the file"
        )


def _comparable(array: pa.Array) -> pa.Array:
    """Return the values as bytes, so that NaN equals itself."""
    return array if pa.types.is_boolean(array.type) else array.view(pa.binary(array.type.byte_width))
