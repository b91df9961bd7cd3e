from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from codec_targets.chaos import Chaos
from codec_targets.miniblock import counts_of, joined, level_buffers, opened
from codec_targets.take import constant, fixed, texts, width_of, zipped
from lancecodec import CodecError, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.take import ColumnTaker
from lancecodec.take_pages import PageTaker
from lancecodec.window import SpareMemory, Window

SPARE = SpareMemory(1 << 20)


def flags(c: Chaos) -> PageTaker:
    """Return a page of booleans, some of which are null."""
    counts = counts_of(c)
    parts = joined([[level_buffers(c, levels.FLAT, n, 1)] for n in counts])
    chunks = opened(
        c, [[c.content((n + 7) // 8).tobytes()] for n in counts], counts, levels=counts, level_streams=parts
    )
    return take_pages.fixed_chunks(chunks, 0, values.FLAT, 1, definition=(levels.FLAT, 0))


def column(c: Chaos) -> tuple[ColumnTaker, int]:
    """Return a column of some pages of one width, and the width."""
    makers = [fixed, fixed, texts, texts, flags, zipped, constant]
    made = [page for page in (c.random.choice(makers)(c) for _ in range(c.random.randint(1, 3))) if page.num_rows]
    if not made:
        raise CodecError("no page")
    width = width_of(made[0])
    mine = [page for page in made if width_of(page) == width]
    starts = np.append(0, np.cumsum([page.num_rows for page in mine])).tolist()
    return ColumnTaker(starts, width, lambda number: mine[number] if c.flag(0.98) else None), width


def kind_of(width: int, wide: bool) -> pa.DataType:
    if width < 0:
        return pa.large_binary() if wide else pa.binary()
    return pa.binary(width) if width else pa.bool_()


def output(c: Chaos, window: Window, width: int, room: tuple[bool, int], wide: bool, text: bool) -> tuple[object, ...]:
    """Return buffers for a column, usually large enough."""
    rows = window.num_rows
    size = rows * width if width else (rows + 7) // 8
    if width < 0:
        size = (rows + 1) * (8 if wide else 4)
    validity = c.out((rows + 7) // 8) if room[0] or c.flag(0.1) else None
    content = c.out(min(room[1], 1 << 20)) if width < 0 else None
    return c.out(size), validity, content, wide, text


def read(c: Chaos) -> object:
    """Read a window of some columns; arrays of those that are read are valid."""
    columns = [column(c) for _ in range(c.random.randint(1, 3))]
    rows = min(taker.num_rows for taker, _ in columns)
    start, stop = sorted([c.random.randint(0, rows), c.random.randint(0, rows)])
    takers: list[ColumnTaker | None] = [taker if c.flag(0.95) else None for taker, _ in columns]
    if c.flag(0.05):
        stop = c.number(rows)
    if c.flag():
        window = Window(takers, start, stop)
    else:
        bit = c.random.choice([0, 0, 1, 7, 64, c.number()])
        plain = bit if isinstance(bit, int) and 0 <= bit < 100 else 0
        keep = c.rng.random(min(max(stop - start, 0), 10_000)) < c.random.choice([0.0, 0.01, 0.5, 0.95, 1.0])
        window = Window(takers, start, stop, np.packbits(np.append(np.ones(plain, bool), keep), bitorder="little"), bit)
    wide, text = c.flag(), c.flag(0.2)
    if c.flag():
        return imported(c, window, [kind_of(width, wide) for _, width in columns], wide, text)
    given = [
        None if room is None or c.flag(0.02) else output(c, window, width, room, wide, text)
        for (_, width), room in zip(columns, window.room(), strict=True)
    ]
    found = window.read(given)  # type: ignore[arg-type]
    for (_, width), out, done in zip(columns, given, found, strict=True):
        if out is not None and done is not None:
            validate(out, kind_of(width, wide), window.num_rows, *done)
    return found


def imported(c: Chaos, window: Window, kinds: list[pa.DataType], wide: bool, text: bool) -> object:
    """Make new arrays of the columns; all are valid."""
    memory = SPARE if c.flag(0.9) else SpareMemory(c.number(1 << 40))
    found = window.arrays([(wide, text)] * (len(kinds) if c.flag(0.98) else c.random.randint(0, 4)), memory)
    arrays = []
    for number, kind in enumerate(kinds):
        address = found.column(number) if c.flag(0.95) else None
        if address is not None:
            arrays.append(pa.Array._import_from_c(address, kind))
            arrays[-1].validate(full=True)
    return arrays


def validate(out: tuple[object, ...], kind: pa.DataType, rows: int, nulls: int, size: int) -> None:
    values, validity, content, _, _ = out
    buffers = [pa.py_buffer(bytes(validity)) if nulls else None, pa.py_buffer(bytes(values))]  # type: ignore[call-overload]
    if content is not None:
        buffers.append(pa.py_buffer(bytes(content)[:size]))  # type: ignore[call-overload]
    array = pa.Array.from_buffers(kind, rows, buffers, nulls)
    array.validate(full=True)


TARGETS: dict[str, Callable[[Chaos], object]] = {"window.read": read}
