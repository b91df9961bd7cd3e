"""Windows of columns of some pages, read with compiled code into outputs of exactly their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancecodec.take import ColumnTaker
from lancecodec.take_pages import PageTaker
from lancecodec.window import SpareMemory, Window

_GUARD = 64
_SPARE = SpareMemory(1 << 20)


@dataclass(frozen=True)
class Column:
    """Pages of a column and what they hold."""

    pages: Sequence[PageTaker | None]
    expected: pa.Array

    @property
    def width(self) -> int:
        kind = self.expected.type
        return -1 if is_text(kind) else 0 if pa.types.is_boolean(kind) else kind.bit_width // 8

    def taker(self) -> ColumnTaker:
        rows = [1 if page is None else page.num_rows for page in self.pages]
        starts = [0, *np.cumsum(rows).tolist()]
        return ColumnTaker(starts, self.width, lambda number: self.pages[number])


def joined(columns: Sequence[Column]) -> Column:
    """Return a column of the pages of several ones."""
    return Column(
        [page for column in columns for page in column.pages],
        pa.concat_arrays([column.expected for column in columns]),
    )


def is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def is_utf8(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_wide(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


class Guarded:
    """Memory of some bytes between others, which must stay as they are."""

    def __init__(self, size: int) -> None:
        self._memory = np.full(size + 2 * _GUARD, 0xA5, np.uint8)
        self.content = self._memory[_GUARD : _GUARD + size]

    def is_intact(self) -> bool:
        """Return True if the bytes around are unchanged."""
        return bool((self._memory[:_GUARD] == 0xA5).all() and (self._memory[-_GUARD:] == 0xA5).all())


@dataclass(frozen=True)
class Output:
    """Buffers for a column of a window."""

    values: Guarded
    validity: Guarded | None
    content: Guarded | None
    wide: bool
    text: bool

    def given(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None, bool, bool]:
        return (
            self.values.content,
            None if self.validity is None else self.validity.content,
            None if self.content is None else self.content.content,
            self.wide,
            self.text,
        )

    def is_intact(self) -> bool:
        """Return True if nothing was written elsewhere."""
        return all(part is None or part.is_intact() for part in (self.values, self.validity, self.content))

    def array(self, kind: pa.DataType, rows: int, nulls: int, size: int) -> pa.Array:
        buffers = [pa.py_buffer(self.validity.content.tobytes()) if nulls and self.validity else None]
        buffers.append(pa.py_buffer(self.values.content.tobytes()))
        if self.content is not None:
            buffers.append(pa.py_buffer(self.content.content[:size].tobytes()))
        array = pa.Array.from_buffers(kind, rows, buffers, nulls)
        array.validate(full=True)
        return array


def output(kind: pa.DataType, rows: int, nullable: bool, room: int) -> Output:
    validity, wide = Guarded((rows + 7) // 8) if nullable else None, is_wide(kind)
    text = is_utf8(kind)
    if is_text(kind):
        return Output(Guarded((rows + 1) * (8 if wide else 4)), validity, Guarded(room), wide, text)
    size = (rows + 7) // 8 if pa.types.is_boolean(kind) else rows * (kind.bit_width // 8)
    return Output(Guarded(size), validity, None, wide, text)


def bitmap_of(flags: np.ndarray, bit: int) -> np.ndarray:
    """Return a bitmap without bytes behind it, from a bit on; the bits in front are set."""
    return np.packbits(np.concatenate([np.ones(bit, bool), flags]), bitorder="little")


def window_of(
    columns: Sequence[Column], start: int, stop: int, flags: np.ndarray | None = None, bit: int = 0
) -> list[pa.Array | None]:
    """Return the rows of a window of some columns; None for a column that cannot be read there."""
    mask = None if flags is None else bitmap_of(flags, bit)
    window = Window([column.taker() for column in columns], start, stop, mask, bit)
    assert window.num_rows == (stop - start if flags is None else flags.sum())
    kinds = [column.expected.type for column in columns]
    outputs = [
        None if room is None else output(kind, window.num_rows, *room)
        for kind, room in zip(kinds, window.room(), strict=True)
    ]
    done = window.read([None if part is None else part.given() for part in outputs])
    assert all(part is None or part.is_intact() for part in outputs)
    found = [
        None if part is None or each is None else part.array(kind, window.num_rows, *each)
        for kind, part, each in zip(kinds, outputs, done, strict=True)
    ]
    for array, same in zip(found, arrays_of(window, kinds), strict=True):
        assert array is None or array.equals(same)
    return found


def arrays_of(window: Window, kinds: Sequence[pa.DataType], spare: SpareMemory = _SPARE) -> list[pa.Array | None]:
    """Return the columns of a window as new arrays; None for a column that cannot be read there."""
    found = window.arrays([(is_wide(kind), is_utf8(kind)) for kind in kinds], spare)
    arrays: list[pa.Array | None] = []
    for number, kind in enumerate(kinds):
        address = found.column(number)
        arrays.append(None if address is None else pa.Array._import_from_c(address, kind))
        assert found.column(number) is None
    for array in arrays:
        if array is not None:
            array.validate(full=True)
            assert all(buffer is None or buffer.address % 64 == 0 for buffer in array.buffers())
    return arrays
