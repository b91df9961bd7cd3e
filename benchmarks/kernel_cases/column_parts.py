"""A column of a thousand files of a few hundred values each: found, and decoded."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from kernel_cases.plain_columns import text, varint
from lancecodec import column_parts, miniblock_values, word_pages

FILES, ROWS = 1000, 400


def opened() -> Callable[[], column_parts.ColumnParts]:
    """Return a function that finds the column in all files."""
    encoded = word_pages.encode(rng().integers(0, 1 << 20, ROWS, np.int32), 0, ROWS, 4, True, np.empty(0, np.int64), 0)
    words, chunks = encoded or (b"", b"")
    offsets, sizes = varint(0) + varint(64), varint(len(words)) + varint(len(chunks))
    page = text(1, offsets) + text(2, sizes) + varint(24) + varint(ROWS) + text(4, text(2, text(1, b"e" * 40)))
    column = text(1, text(2, text(1, b"c" * 40))) + text(2, page)
    start = 64 + len(chunks)
    data = words.ljust(64, b"\0") + chunks + column + struct.pack("<QQ", start, len(column))
    parts = [(data, start + len(column), 0, ROWS, 0, ROWS)] * FILES
    plan = ROWS, column_parts.VALUES, None, (miniblock_values.INLINE, 32, 32, 1, True, 0.0, None, None)
    return lambda: column_parts.ColumnParts(parts, {}, lambda *_: plan)


def find() -> Case:
    return Case(opened(), FILES * 120)


def read() -> Case:
    parts, out = opened()(), np.empty(FILES * ROWS, np.int32)
    validity = np.empty(FILES * ROWS // 8 + 1, np.uint8)
    return Case(lambda: parts.read(0, FILES, out, validity), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {"column_parts.find": find, "column_parts.read": read}
