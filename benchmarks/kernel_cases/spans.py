"""Small pages of one file, read whole and by row. Between the pages of a column are those of others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import spans

#: Rows of a page, and pages of a scan: a million rows.
PAGE = 1_024
PAGES = 1_000
TAKEN = 250_000


def page_positions(size: int, pages: int = PAGES) -> np.ndarray:
    """Return the starts of pages of `size` bytes, with as many bytes of other columns between them."""
    return np.arange(pages, dtype=np.int64) * (2 * size) + 3


def scan_fixed(width: int, pages: int = PAGES) -> Case:
    positions = page_positions(PAGE * width, pages)
    counts, out = np.full(pages, PAGE), np.zeros(pages * PAGE * width, np.uint8)
    source = rng().integers(0, 256, int(positions[-1]) + PAGE * width, np.uint8)
    return Case(lambda: spans.fixed(source, positions, counts, width, out), out.nbytes)


def take_fixed(width: int, in_order: bool) -> Case:
    source, out = rng().integers(0, 256, 2 * PAGES * PAGE * width, np.uint8), np.zeros(TAKEN * width, np.uint8)
    positions, counts = rng().integers(0, len(source) - width, TAKEN), np.ones(TAKEN, np.int64)
    if in_order:
        positions.sort()
    return Case(lambda: spans.fixed(source, positions, counts, width, out), out.nbytes)


def scan_bits(skew: int) -> Case:
    positions, counts = page_positions(PAGE // 8) * 8 + skew, np.full(PAGES, PAGE)
    out = np.zeros(PAGES * PAGE // 8, np.uint8)
    source = rng().integers(0, 256, 2 * len(out) + 8, np.uint8)
    return Case(lambda: spans.bits(source, positions, counts, out), out.nbytes)


def take_bits() -> Case:
    source, out = rng().integers(0, 256, PAGES * PAGE // 4, np.uint8), np.zeros((TAKEN + 7) // 8, np.uint8)
    positions, counts = np.sort(rng().integers(0, 8 * len(source), TAKEN)), np.ones(TAKEN, np.int64)
    return Case(lambda: spans.bits(source, positions, counts, out), out.nbytes)


def pages_of_strings(wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer of the pages of a column, each with bytes and then offsets, and the starts of the offsets."""
    pieces, positions, at = [], [], 0
    for _ in range(PAGES):
        ends = np.cumsum([at, *rng().integers(12, 29, PAGE)])
        pieces.append(rng().integers(97, 123, int(ends[-1]) - at, np.uint8))
        pieces.append(ends.astype(np.int64 if wide else np.int32).view(np.uint8))
        positions.append(int(ends[-1]))
        at = int(ends[-1]) + pieces[-1].nbytes
    return np.concatenate(pieces), np.array(positions, np.int64)


def read_offsets(wide: bool, out_wide: bool, taken: bool) -> Case:
    source, positions = pages_of_strings(wide)
    counts = np.full(PAGES, PAGE)
    if taken:
        rows = np.sort(rng().integers(0, PAGES * PAGE, TAKEN))
        positions, counts = positions[rows // PAGE] + rows % PAGE * (8 if wide else 4), np.ones(TAKEN, np.int64)
    out = np.zeros(int(counts.sum()) + 1, np.int64 if out_wide else np.int32)
    starts, sizes = np.zeros_like(counts), np.zeros_like(counts)
    return Case(lambda: spans.offsets(source, positions, counts, wide, out_wide, out, starts, sizes), out.nbytes)


def take_bytes() -> Case:
    """Read the bytes of taken strings."""
    source, positions = pages_of_strings(True)
    rows = np.sort(rng().integers(0, PAGES * PAGE, TAKEN))
    places, counts = positions[rows // PAGE] + rows % PAGE * 8, np.ones(TAKEN, np.int64)
    ends, starts, sizes = np.zeros(TAKEN + 1, np.int32), np.zeros_like(counts), np.zeros_like(counts)
    out = np.zeros(spans.offsets(source, places, counts, True, False, ends, starts, sizes), np.uint8)
    return Case(lambda: spans.fixed(source, starts, sizes, 1, out), out.nbytes)


def empties(wide: bool) -> Case:
    offsets = np.cumsum(rng().integers(0, 4, PAGES * PAGE + 1)).astype(np.int64 if wide else np.int32)
    out = np.zeros(PAGES * PAGE // 8, np.uint8)
    return Case(lambda: spans.empties(offsets, wide, PAGES * PAGE, out), offsets.nbytes)


def rows_of_batches(bits: int) -> Case:
    """Read random rows out of a million in batches of 1,024; their batch and place are looked up on the way."""
    starts = np.arange(0, PAGES * PAGE + 1, PAGE, dtype=np.int64)
    page = PAGE * bits // 8 + 3
    positions, lengths = np.arange(PAGES, dtype=np.int64) * page, np.full(PAGES, PAGE, np.int64)
    source = rng().integers(0, 256, PAGES * page, np.uint8)
    pages = spans.BatchPages(source, starts, positions, lengths, bits)
    rows = rng().integers(0, PAGES * PAGE, TAKEN)
    out = np.zeros(TAKEN * bits // 8, np.uint8)
    return Case(lambda: pages.take(rows, out), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "spans.fixed, 1 byte, pages": lambda: scan_fixed(1),
    "spans.fixed, 8 bytes, pages": lambda: scan_fixed(8),
    "spans.fixed, 8 bytes, 64 MiB of pages": lambda: scan_fixed(8, 8 * PAGES),
    "spans.fixed, 4 bytes, sorted rows": lambda: take_fixed(4, True),
    "spans.fixed, 8 bytes, sorted rows": lambda: take_fixed(8, True),
    "spans.fixed, 8 bytes, random rows": lambda: take_fixed(8, False),
    "spans.fixed, 512 bytes, sorted rows": lambda: take_fixed(512, True),
    "spans.fixed, strings of 12 to 28 bytes, sorted rows": take_bytes,
    "spans.bits, pages": lambda: scan_bits(0),
    "spans.bits, pages from bit 5 on": lambda: scan_bits(5),
    "spans.bits, sorted rows": take_bits,
    "spans.offsets, 64 to 32 bits, pages": lambda: read_offsets(True, False, False),
    "spans.offsets, 64 to 64 bits, pages": lambda: read_offsets(True, True, False),
    "spans.offsets, 32 to 32 bits, pages": lambda: read_offsets(False, False, False),
    "spans.offsets, 64 to 32 bits, sorted rows": lambda: read_offsets(True, False, True),
    "spans.empties, 32 bits": lambda: empties(False),
    "spans.empties, 64 bits": lambda: empties(True),
    "spans.BatchPages.take, 8 bytes, random rows": lambda: rows_of_batches(64),
    "spans.BatchPages.take, bits, random rows": lambda: rows_of_batches(1),
}
