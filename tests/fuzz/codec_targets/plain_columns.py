from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.metadata import wrapped
from codec_targets.records import varint
from lancecodec import plain_columns, word_pages

WIDTH = 4


def packed(values: np.ndarray) -> tuple[bytes, bytes]:
    return word_pages.encode(values, 0, len(values), WIDTH, True, np.empty(0, np.int64), 0) or (b"", b"")


def opened(c: Chaos) -> plain_columns.PlainColumns:
    """Return columns of a file with packed values, values in place and damage."""
    rows, count = c.random.choice([1, 5, 1024, 1500, 3000]), c.random.randint(0, 4)
    values = c.rng.integers(0, 1 << 20, rows, np.int32)
    data, entries = bytearray(), []
    for number in range(count):
        parts: tuple[bytes, ...] = packed(values) if number % 2 == 0 else (values.tobytes(),)
        if len(parts) == 2 and c.flag(0.4):
            parts = (*packed(values % 40), np.arange(c.random.randint(0, 40), dtype=np.int64).tobytes())
        places = []
        for part in parts:
            data += bytes(-len(data) % 8)
            places.append((len(data), len(part)))
            data += bytes(c.damaged(part, 0.2)) if part else b""
        offsets = b"".join(varint(position) for position, _ in places)
        sizes = b"".join(varint(size) for _, size in places)
        encoding = wrapped(4, wrapped(2, wrapped(1, bytes([len(parts)]))))
        page = wrapped(1, offsets) + wrapped(2, sizes) + varint(24) + varint(rows) + encoding
        metadata = bytes(c.damaged(wrapped(1, wrapped(2, wrapped(1, b"kind"))) + wrapped(2, page), 0.2))
        entries.append(struct.pack("<QQ", len(data), len(metadata)))
        data += metadata
    bits = 8 * WIDTH
    levels = (c.number(5), c.number(17))
    content = c.random.choice([None, bytes(8 * c.random.randint(0, 40))])
    entries_of = (c.number(4), c.number(40), (lambda *_: content) if c.flag(0.3) else None)
    plausible = {
        1: (plain_columns.IN_PLACE, bits, bits, 1, False, 0.0, None, None),
        2: (1, bits, bits, 1, True, 0.0, levels if c.flag(0.2) else None, None),
        3: (1, c.random.choice([32, 64]), bits, 1, True, 0.0, levels if c.flag(0.2) else None, entries_of),
    }
    odd = (
        plain_columns.SIDE_BY_SIDE if c.flag(0.3) else c.number(5),
        c.random.choice([1, 8, 16, 32, 64, 128, 7]),
        c.random.choice([1, 8, 16, 32, 64]),
        c.number(3),
        c.flag(),
        c.random.choice([0.0, 8.0, float("nan")]),
        levels if c.flag() else None,
        entries_of if c.flag() else None,
    )
    numbers = [c.number(count) if c.flag(0.1) else number for number in range(count)]

    def plan_of(_kind: object, _column: bytes, page: bytes) -> object:
        return odd if c.flag(0.1) else plausible.get(page[0] if page else 0)

    given = rows if c.flag(0.9) else c.number()
    file, table = c.damaged(bytes(data), 0.2), c.damaged(b"".join(entries), 0.1)
    return plain_columns.PlainColumns(file, table, numbers, ["int32"] * count, given, plan_of)  # type: ignore[arg-type]


def read(c: Chaos) -> object:
    columns = opened(c)
    count = len(columns.in_place())
    first, last = (0, count) if c.flag(0.8) else (c.number(count), c.number(count))
    start = c.number(columns.rows) if c.flag(0.3) else 0
    stop = c.number(columns.rows) if c.flag(0.3) else columns.rows
    room = columns.places(max(columns.rows, 0) if columns.rows < 2**32 else 0, c.flag())[-1]
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


TARGETS: dict[str, Callable[[Chaos], object]] = {"plain_columns.read": read, "plain_columns.take": take}
