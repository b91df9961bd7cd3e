"""Rows of a window of many columns, decoded in one call during which other threads have the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_dataset.errors import LanceError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn
from lance_dataset.scan.check_mode import is_checking
from lance_dataset.scan.plain_values import check_column
from lance_dataset.scan.selection import Selection
from lancecodec.take import ColumnTaker
from lancecodec.window import Window

__all__ = ["window_values"]

#: Fewer columns are read one by one.
_MANY_COLUMNS = 2
#: Windows of fewer rows, and of which less than this share is kept, are taken row by row.
_LEAST_ROWS = 1 << 12
_LEAST_SHARE = 1 / 256
#: Most bytes of texts with 32-bit offsets.
_MOST_BYTES = (1 << 31) - 1


def window_values(outputs: Sequence[OutputColumn], selection: Selection) -> dict[int, pa.Array]:
    """Return the selected rows of the output columns that can be read together.

    Returns
    -------
    dict
        By number of the output column; the others are to be read one by one.
    """
    place = _place(selection)
    if place is None:
        return {}
    fragment, start, stop = place
    readers: dict[int, tuple[ColumnReader, ColumnTaker, TakeShape]] = {}
    for number, output in enumerate(outputs):
        if output.field is None or output.path or id(output.field) in selection.known:
            continue
        reader = fragment.column(output.field)
        shape = take_shape(reader.arrow_type)
        taker = None if shape is None or shape.listed or shape.dimensions else reader.taker()
        if taker is not None and shape is not None:
            readers[number] = reader, taker, shape
    if len(readers) < _MANY_COLUMNS:
        return {}
    return _read(fragment, readers, start, stop, selection)


def _place(selection: Selection) -> tuple[FragmentReader, int, int] | None:
    """Return the fragment and range of rows of the window, None if its rows are not read together."""
    slices = selection.window.slices
    if len(slices) != 1 or len(slices[0].ranges) != 1 or slices[0].width < _LEAST_ROWS:
        return None
    if selection.num_rows < _LEAST_SHARE * slices[0].width or not slices[0].fragment.is_mapped:
        return None
    return slices[0].fragment, *slices[0].ranges[0]


def _read(
    fragment: FragmentReader,
    readers: dict[int, tuple[ColumnReader, ColumnTaker, TakeShape]],
    start: int,
    stop: int,
    selection: Selection,
) -> dict[int, pa.Array]:
    whole = selection.num_rows == stop - start
    mask = None if whole else selection.mask
    for reader, _, _ in readers.values():
        reader.begin(start, stop)
    takers = [taker for _, taker, _ in readers.values()]
    bits = (None, 0) if mask is None else (mask.buffers()[1], mask.offset)
    window = Window(takers, start, stop, *bits)
    outputs = [
        None if room is None else _output(shape, window.num_rows, *room)
        for (_, _, shape), room in zip(readers.values(), window.room(), strict=True)
    ]
    found: dict[int, pa.Array] = {}
    for (number, (reader, _, shape)), output, result in zip(
        readers.items(), outputs, window.read(outputs), strict=True
    ):
        if output is not None and result is not None:
            found[number] = _array(reader.arrow_type, shape, window.num_rows, output, *result)
            reader.end(start, stop)
    if is_checking():
        rows = np.arange(start, stop) if mask is None else np.flatnonzero(np.asarray(mask)) + start
        for number, array in found.items():
            check_column(readers[number][0], rows, array, repr(readers[number][0]))
    return found


_Output = tuple[pa.Buffer, pa.Buffer | None, pa.Buffer | None, bool, bool]


def _output(shape: TakeShape, rows: int, nullable: bool, room: int) -> _Output | None:
    """Allocate the buffers of a column; None if its texts may not fit 32-bit offsets."""
    validity = allocate((rows + 7) // 8) if nullable else None
    if shape.width > 0:
        return allocate(rows * shape.width), validity, None, False, False
    if shape.width == 0:
        return allocate((rows + 7) // 8), validity, None, False, False
    if room > _MOST_BYTES and not shape.wide:
        return None
    return allocate((rows + 1) * (8 if shape.wide else 4)), validity, allocate(max(room, 1)), shape.wide, shape.text


def _array(kind: pa.DataType, shape: TakeShape, rows: int, output: _Output, nulls: int, size: int) -> pa.Array:
    values, validity, content, _, _ = output
    buffers = [validity if nulls else None, values]
    if content is not None:
        buffers.append(content.slice(0, size))
    return pa.Array.from_buffers(kind, rows, buffers, nulls)
