"""Rows of a window of several columns, decoded in one call during which other threads have the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_dataset.file.buffers import allocate
from lance_dataset.file.column import ColumnReader
from lance_dataset.file.take_shape import TakeShape, take_shape
from lance_dataset.read.concatenate import UnjoinableError, join_arrays
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.prefetch import Announcements
from lance_dataset.read.projection import OutputColumn
from lance_dataset.scan.check_mode import is_checking
from lance_dataset.scan.plain_values import check_column
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.windows import Slice
from lance_dataset.types.schema import Field
from lancecodec.take import ColumnTaker
from lancecodec.window import Window

__all__ = ["may_read_together", "window_columns", "window_values"]

_Reader: TypeAlias = "tuple[ColumnReader, ColumnTaker, TakeShape]"
#: Values, validity, bytes of texts, whether offsets have 64 bits, whether texts must be UTF-8.
_Output: TypeAlias = "tuple[pa.Buffer, pa.Buffer | None, pa.Buffer | None, bool, bool]"

#: Slices of fewer rows are read in other ways, and those of which less than this share is kept are taken row by row.
_LEAST_ROWS = 1 << 12
_LEAST_SHARE = 1 / 256
#: Chunks of fewer rows on average are joined.
_APART_ROWS = 1024
#: Most bytes of texts with 32-bit offsets.
_MOST_BYTES = (1 << 31) - 1
#: Announcements of the windows that are read, as long as reads have to wait for the device.
_announcements = Announcements()


def window_values(outputs: Sequence[OutputColumn], selection: Selection) -> dict[int, list[pa.Array]]:
    """Return the selected rows of the output columns that can be read together.

    Returns
    -------
    dict
        Chunks by number of the output column; the other columns are to be read one by one.
    """
    slices = selection.window.slices
    if not all(_is_plain(part) for part in slices) or selection.num_rows < _LEAST_SHARE * selection.window.width:
        return {}
    fields = {
        number: output.field
        for number, output in enumerate(outputs)
        if output.field is not None and not output.path and id(output.field) not in selection.known
    }
    if not fields or selection.num_rows == 0:
        return {}
    mask = None if selection.num_rows == selection.window.width else selection.mask
    found: dict[int, list[pa.Array]] = {number: [] for number in fields}
    base = 0
    for part in slices:
        kept = None if mask is None else mask.slice(base, part.width)
        base += part.width
        arrays = window_columns(part.fragment, {number: fields[number] for number in found}, *part.ranges[0], kept)
        found = {number: [*chunks, arrays[number]] for number, chunks in found.items() if number in arrays}
    return {number: _joined(chunks, fields[number]) for number, chunks in found.items()}


def _is_plain(part: Slice) -> bool:
    return len(part.ranges) == 1 and part.width >= _LEAST_ROWS and part.fragment.is_mapped


def _joined(chunks: list[pa.Array], field: Field) -> list[pa.Array]:
    """Return the chunks without empty ones, in one if they are small."""
    chunks = [chunk for chunk in chunks if len(chunk)]
    if len(chunks) < 2 or sum(map(len, chunks)) >= _APART_ROWS * len(chunks):
        return chunks
    try:
        return [join_arrays(chunks, chunks[0].type, field.name)]
    except UnjoinableError:
        return chunks


def may_read_together(field: Field) -> bool:
    """Return True if `window_columns` may be able to read a field, as far as its type tells."""
    shape = take_shape(field.storage_type)
    return shape is not None and not shape.listed and not shape.dimensions


def window_columns(
    fragment: FragmentReader, fields: Mapping[int, Field], start: int, stop: int, mask: pa.BooleanArray | None
) -> dict[int, pa.Array]:
    """Return rows of the columns of a fragment that can be read together.

    Parameters
    ----------
    fragment
        A fragment whose files are mapped.
    fields
        The columns, by any number.
    start, stop
        Range ``[start, stop)`` of physical rows, not empty.
    mask
        A boolean for each of these rows, true for those to return; None for all.

    Returns
    -------
    dict
        Array by number; the other columns are to be read one by one.
    """
    readers: dict[int, _Reader] = {}
    for number, field in fields.items():
        reader = fragment.column(field)
        shape = take_shape(reader.arrow_type)
        taker = None if shape is None or shape.listed or shape.dimensions else reader.taker()
        if taker is not None and shape is not None:
            readers[number] = reader, taker, shape
    found = _read(readers, start, stop, mask)
    if is_checking():
        rows = np.arange(start, stop) if mask is None else np.flatnonzero(np.asarray(mask)) + start
        for number, array in found.items():
            name = f"{fields[number].name!r} of fragment {fragment.fragment.id}"
            check_column(readers[number][0], rows, array, name)
    return found


def _read(readers: Mapping[int, _Reader], start: int, stop: int, mask: pa.BooleanArray | None) -> dict[int, pa.Array]:
    if not readers:
        return {}
    takers = [taker for _, taker, _ in readers.values()]
    window = Window(takers, start, stop) if mask is None else Window(takers, start, stop, *_bits(mask))

    def announce() -> None:
        for reader, _, _ in readers.values():
            reader.begin(start, stop)

    with _announcements.taking(announce):
        outputs = [
            None if room is None else _output(shape, window.num_rows, *room)
            for (_, _, shape), room in zip(readers.values(), window.room(), strict=True)
        ]
        results = window.read(outputs)
    found: dict[int, pa.Array] = {}
    for (number, (reader, _, _)), output, done in zip(readers.items(), outputs, results, strict=True):
        if output is not None and done is not None:
            found[number] = _array(reader.arrow_type, window.num_rows, output, *done)
            reader.end(start, stop)
    return found


def _bits(mask: pa.BooleanArray) -> tuple[pa.Buffer, int]:
    return mask.buffers()[1], mask.offset


def _output(shape: TakeShape, rows: int, nullable: bool, room: int) -> _Output | None:
    """Allocate the buffers of a column; None if its texts may not fit 32-bit offsets."""
    validity = allocate((rows + 7) // 8) if nullable else None
    if shape.width >= 0:
        size = rows * shape.width if shape.width else (rows + 7) // 8
        return allocate(size), validity, None, False, False
    if room > _MOST_BYTES and not shape.wide:
        return None
    offsets = allocate((rows + 1) * (8 if shape.wide else 4))
    return offsets, validity, allocate(max(room, 1)), shape.wide, shape.text


def _array(kind: pa.DataType, rows: int, output: _Output, nulls: int, size: int) -> pa.Array:
    values, validity, content, _, _ = output
    buffers = [validity if nulls else None, values]
    if content is not None:
        buffers.append(content.slice(0, size))
    return pa.Array.from_buffers(kind, rows, buffers, nulls)
