"""A thousand columns of a few thousand values each, packed and in place: found, scanned and taken."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import miniblock_values, plain_columns, word_pages

COLUMNS, ROWS = 1000, 4096


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def text(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def opened() -> Callable[[], plain_columns.PlainColumns]:
    """Return a function that finds the columns of a file, whose pages are all the same."""
    encoded = word_pages.encode(rng().integers(0, 1 << 20, ROWS, np.int32), 0, ROWS, 4, True, np.empty(0, np.int64), 0)
    words, chunks = encoded or (b"", b"")
    offsets, sizes = varint(0) + varint(64), varint(len(words)) + varint(len(chunks))
    page = text(1, offsets) + text(2, sizes) + varint(24) + varint(ROWS) + text(4, text(2, text(1, b"e" * 40)))
    column = text(1, text(2, text(1, b"c" * 40))) + text(2, page)
    start = 64 + len(chunks)
    table = b"".join(struct.pack("<QQ", start + number * len(column), len(column)) for number in range(COLUMNS))
    data = words.ljust(64, b"\0") + chunks + column * COLUMNS
    plan = (miniblock_values.INLINE, 32, 32, 1, True, 0.0, None, None)
    numbers, kinds = list(range(COLUMNS)), ["int32"] * COLUMNS
    return lambda: plain_columns.PlainColumns(data, table, numbers, kinds, ROWS, lambda *_: plan)


def find() -> Case:
    return Case(opened(), COLUMNS * 120)


def read() -> Case:
    columns = opened()()
    out = np.empty(columns.places(ROWS, False)[-1], np.uint8)
    return Case(lambda: columns.read(0, COLUMNS, 0, ROWS, out), len(out))


def take() -> Case:
    columns, rows = opened()(), np.arange(0, ROWS, 10)
    out = np.empty(columns.places(len(rows), True)[-1], np.uint8)
    return Case(lambda: columns.take(0, COLUMNS, rows, out), len(out))


CASES: dict[str, Callable[[], Case]] = {
    "plain_columns.find": find,
    "plain_columns.read": read,
    "plain_columns.take, a tenth": take,
}
