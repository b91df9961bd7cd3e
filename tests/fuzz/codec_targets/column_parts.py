"""Targets for `lancecodec.column_parts`: a column of several files, with damage everywhere."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.metadata import wrapped
from codec_targets.plain_columns import WIDTH, packed
from codec_targets.records import varint
from lancecodec import column_parts, plain_columns


def texts(c: Chaos, rows: int) -> tuple[bytes, bytes]:
    """Return the words and the only chunk of texts."""
    values = [bytes(c.random.randint(0, 9)) for _ in range(rows)]
    content = np.cumsum([4 * (rows + 1), *map(len, values)]).astype("<u4").tobytes() + b"".join(values)
    content += bytes(-len(content) % 4)
    chunk = struct.pack("<HH", 0, len(content) % 2**16).ljust(8, b"\0") + content
    chunk += bytes(-len(chunk) % 8)
    return struct.pack("<H", (len(chunk) // 8 - 1) % 2**12 << 4), chunk


def part(c: Chaos) -> tuple[bytes | bytearray, int, int, int, int, int]:
    """Return a range of rows of a file with packed values, values in place or texts, and damage."""
    rows, kind = c.random.choice([1, 5, 900, 1500]), c.random.randint(1, 4)
    values = c.rng.integers(0, 1 << 20, rows, np.int32)
    buffers = (values.tobytes(),) if kind == 2 else texts(c, rows) if kind == 3 else packed(values)
    if kind == 4:
        buffers = *buffers, b"entries"
    data, places = bytearray(), []
    for each in buffers:
        data += bytes(-len(data) % 8)
        places.append((len(data), len(each)))
        data += bytes(c.damaged(each, 0.2)) if each else b""
    offsets, sizes = (b"".join(map(varint, each)) for each in zip(*places, strict=True))
    encoding = wrapped(4, wrapped(2, wrapped(1, bytes([kind]) + varint(rows))))
    page = wrapped(1, offsets) + wrapped(2, sizes) + varint(24) + varint(rows) + encoding
    metadata = bytes(c.damaged(wrapped(1, wrapped(2, wrapped(1, b"kind"))) + wrapped(2, page), 0.2))
    data += metadata + struct.pack("<QQ", len(data), len(metadata))
    stop = rows if c.flag(0.8) else c.number(rows)
    position = len(data) - 16 if c.flag(0.9) else c.number()
    return c.damaged(bytes(data), 0.2), position, int(c.flag(0.05)), rows, c.number(stop) if c.flag(0.3) else 0, stop


def opened(c: Chaos) -> tuple[column_parts.ColumnParts, list[tuple[int, int, int, int, int]]]:
    inline = 1, 8 * WIDTH, 8 * WIDTH, 1, True, 0.0, None, None
    placed = plain_columns.IN_PLACE, 8 * WIDTH, 8 * WIDTH, 1, False, 0.0, None, None
    plausible = {1: (0, inline), 2: (0, placed), 3: (1, (0, 8, 8, 1, False, 32.0, None, None)), 4: (3, inline)}
    levels = c.random.choice([None, (c.number(6), c.number(20))])
    least = c.random.choice([0.0, 8.0, float("nan")])
    odd = (c.number(70), c.number(80), c.number(80), c.number(3), c.flag(), least, levels, None)

    def plan_of(_column: bytes, page: bytes) -> object:
        rows = c.random.choice([1, 5, 900, 1500]) if len(page) < 3 else page[1] & 127 | page[2] << 7
        rows = rows if len(page) != 2 else page[1]
        form, plan = plausible.get(page[0] if page else 0, (0, odd))
        return rows, c.number(5) if c.flag(0.1) else form, "dictionary", odd if c.flag(0.1) else plan

    found = column_parts.ColumnParts([part(c) for _ in range(c.random.randint(0, 5))], {}, plan_of)  # type: ignore[arg-type]
    return found, found.groups(c.random.choice([0, 4000, 1 << 40]))


def chosen(c: Chaos, groups: list[tuple[int, int, int, int, int]], *forms: int) -> tuple[int, int, int, int]:
    """Return a range of parts, mostly of some forms, and numbers of their rows and bytes."""
    fitting = [group for group in groups if group[0] in forms]
    if fitting and c.flag(0.9):
        return c.random.choice(fitting)[1:]
    return c.number(6), c.number(6), c.random.randint(0, 3000), c.random.randint(0, 9000)


def read(c: Chaos) -> object:
    parts, groups = opened(c)
    first, last, rows, size = chosen(c, groups, column_parts.VALUES)
    parts.places(first, last)
    return parts.read(first, last, c.out(max(size, (rows + 7) // 8)), c.out((rows + 7) // 8))


def read_indices(c: Chaos) -> object:
    parts, groups = opened(c)
    first, last, rows, size = chosen(c, groups, column_parts.INDICES)
    parts.dictionaries(first, last)
    count = max(last - first, 0) if c.flag(0.9) else c.number(6)
    bases = c.integers(1 << c.random.randint(0, 33))[:count]
    counts = np.full(len(bases), 1 << c.random.randint(0, 32))
    return parts.read_indices(first, last, bases, counts, c.out(size), c.out((rows + 7) // 8))


def read_texts(c: Chaos) -> object:
    parts, groups = opened(c)
    first, last, rows, size = chosen(c, groups, column_parts.TEXTS, column_parts.WIDE_TEXTS)
    wide = c.flag()
    offsets = c.out((rows + 1) * (8 if wide else 4))
    return parts.read_texts(first, last, wide, offsets, c.out(size), c.out((rows + 7) // 8))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "column_parts.read": read,
    "column_parts.read_indices": read_indices,
    "column_parts.read_texts": read_texts,
}
