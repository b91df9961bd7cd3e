"""Tests of intervals: of plain values, and of packed ones as they are unpacked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from kernel_cases.miniblock import CHUNK, LARGE, ends, page
from lancecodec import intervals
from lancecodec.intervals import FLOAT, SIGNED, UNSIGNED, ChunkRanges, IntervalTest
from lancecodec.miniblock_values import INLINE

__all__ = ["CASES"]

OUT = np.empty(LARGE // 8, np.uint8)


def plain(bits: int, order: int) -> Case:
    values = rng().integers(0, 256, VALUES * bits // 8).astype(np.uint8)
    test = IntervalTest(bits, order, [(1 << (bits - 1), (1 << (bits - 1)) + (1 << (bits - 2)))])
    return Case(lambda: test.values(values, OUT), values.nbytes)


def packed(bits: int, width: int) -> Case:
    """Search values of `bits` bits that are packed to `width` bits; every chunk has the bound in its range."""
    block = np.append(np.array([width], f"u{bits // 8}").view(np.uint8), rng().integers(0, 256, 128 * width))
    chunks = page(LARGE, CHUNK, [(np.tile(block.astype(np.uint8), LARGE // CHUNK), ends(LARGE, CHUNK, len(block)))])
    sign = 1 << (bits - 1)
    test, ranges = IntervalTest(bits, SIGNED, [(sign, sign + (1 << (width - 1)))]), ChunkRanges(LARGE // CHUNK)
    return Case(lambda: intervals.search(chunks, INLINE, bits, None, test, ranges, 0, LARGE, OUT), LARGE * bits // 8)


def indices(marked: bool) -> Case:
    """Search indices of 12 bits."""
    block = np.append(np.array([12], "u2").view(np.uint8), rng().integers(0, 256, 128 * 12))
    chunks = page(LARGE, CHUNK, [(np.tile(block.astype(np.uint8), LARGE // CHUNK), ends(LARGE, CHUNK, len(block)))])
    marks = rng().integers(0, 2, 4096).astype(np.uint8) if marked else None
    test, ranges = IntervalTest(16, UNSIGNED, [(7, 4000)]), ChunkRanges(LARGE // CHUNK)
    options = {"entries": 4096, "marks": marks}
    run = partial(intervals.search_indices, chunks, INLINE, 16, None, test, ranges, 0, LARGE, OUT, **options)
    return Case(run, LARGE * 2)


CASES: dict[str, Callable[[], Case]] = {
    "intervals.IntervalTest, 8 bits": lambda: plain(8, SIGNED),
    "intervals.IntervalTest, 32 bits": lambda: plain(32, SIGNED),
    "intervals.IntervalTest, 64 bits": lambda: plain(64, SIGNED),
    "intervals.IntervalTest, 128 bits": lambda: plain(128, SIGNED),
    "intervals.IntervalTest, doubles": lambda: plain(64, FLOAT),
    "intervals.search, inline 32 of 13": lambda: packed(32, 13),
    "intervals.search, inline 64 of 17": lambda: packed(64, 17),
    "intervals.search_indices, an interval": lambda: indices(False),
    "intervals.search_indices, marks": lambda: indices(True),
}
