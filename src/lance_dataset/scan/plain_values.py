"""Plain columns of wide tables, or of many fragments, are read together: one by itself costs more than its values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import LanceError
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.plain_columns import JoinedParts
from lance_dataset.file.reader import join_parts
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn
from lance_dataset.scan.check_mode import is_checking
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.windows import Slice
from lance_dataset.types.schema import Field

__all__ = ["can_join", "check_column", "plain_parts", "plain_range", "plain_rows"]

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


def can_join(field: Field) -> bool:
    """Return True if `plain_parts` may be able to read a field."""
    return not field.children and not field.metadata and field.blob is None


def plain_parts(slices: Sequence[Slice], field: Field) -> list[JoinedParts]:
    """Read the rows of a column in many fragments together, as far as they can be.

    Returns
    -------
    list of (int, int, pyarrow.Array)
        The values of neighbours, each as the number of the first slice, the number after the last one, and an array.
        Other slices are to be read by themselves.
    """
    if not can_join(field):
        return []
    parts, places = [], []
    for place, slice_ in enumerate(slices):
        part = slice_.fragment.part(field, *slice_.ranges[0]) if len(slice_.ranges) == 1 else None
        if part is not None:
            parts.append(part)
            places.append(place)
    joined = []
    for first, last, array in join_parts(parts, field):
        # slices that cannot be read together may lie between those that can
        if places[last - 1] - places[first] == last - 1 - first:
            joined.append((places[first], places[last - 1] + 1, array))
    if is_checking():
        for first, last, array in joined:
            _check_parts(slices[first:last], field, array)
    return joined


def _check_parts(slices: Sequence[Slice], field: Field, found: pa.Array) -> None:
    base = 0
    for slice_ in slices:
        _check(slice_.fragment, field, slice_.rows, found.slice(base, slice_.width))
        base += slice_.width


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
    check_column(fragment.column(field), rows, found, f"{field.name!r} of fragment {fragment.fragment.id}")


def check_column(reader: ColumnReader, rows: NDArray[np.int64], found: pa.Array, name: str) -> None:
    """Raise an error unless a column that is read by itself has the same bytes at some rows."""
    expected = reader.take(rows)
    if expected.type != found.type or not _comparable(expected).equals(_comparable(found)):
        raise LanceError(
            f"columns read together differ from column {name} by itself; this is an error of this package, please "
            "report it with the file"
        )


def _comparable(array: pa.Array) -> pa.Array:
    """Return the values as bytes, so that NaN equals itself."""
    kind = array.type
    as_it_is = pa.types.is_boolean(kind) or pa.types.is_dictionary(kind) or is_binary_like(kind)
    return array if as_it_is else array.view(pa.binary(array.type.byte_width))
