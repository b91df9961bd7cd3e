from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import batch_columns


def opened(c: Chaos) -> batch_columns.BatchColumns:
    """Return columns of a file of small batches, with some damage."""
    count, sizes = c.random.randint(0, 4), c.rng.integers(0, c.random.choice([3, 200]), c.random.randint(0, 6))
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    bits = [c.random.choice([1, 8, 16, 32, 64, 96, 7, c.number(600)]) for _ in range(count)]
    data, cells = bytearray(), b""
    for width in bits:
        for rows in sizes.tolist():
            cells += struct.pack("<qq", len(data), rows)
            data += c.content(
                max((rows * (width if isinstance(width, int) and width < 600 else 8) + 7) // 8, 0)
            ).tobytes()
    file, table = bytes(data) + bytes(c.damaged(cells, 0.3)), len(data) if c.flag(0.9) else c.number(len(data))
    if len(starts) > 1 and c.flag(0.1):
        starts[c.random.randrange(len(starts))] = c.random.choice([-1, 1, 2**31, 2**62])
    entries = [c.random.choice([0, 0, 3, 200, c.number()]) for _ in range(count)]
    numbers = [c.number(count) if c.flag(0.1) else number for number in range(count)]
    return batch_columns.BatchColumns(c.damaged(file, 0.1), starts, table, numbers, bits, entries)


def read(c: Chaos) -> object:
    columns = opened(c)
    count = len(columns.in_place())
    first, last = (0, count) if c.flag(0.8) else (c.number(count), c.number(count))
    start = c.number(columns.rows) if c.flag(0.3) else 0
    stop = c.number(columns.rows) if c.flag(0.3) else columns.rows
    room = columns.places(columns.rows if columns.rows < 2**20 else 0, c.flag())[-1]
    columns.extent()
    return columns.read(first, last, start, stop, c.out(room))


def take(c: Chaos) -> object:
    columns = opened(c)
    count = len(columns.in_place())
    first, last = (0, count) if c.flag(0.8) else (c.number(count), c.number(count))
    rows = c.integers(max(min(columns.rows, 2**40), 1))
    if c.flag(0.8):
        rows.sort()
    return columns.take(first, last, rows, c.out(columns.places(len(rows), True)[-1]))


TARGETS: dict[str, Callable[[Chaos], object]] = {"batch_columns.read": read, "batch_columns.take": take}
