"""Full-zip pages: zipping and unzipping of items, and lookup of rows by their index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec.fullzip import ZipLayout, row_ranges

__all__ = ["CASES"]

WIDTH = 256
ROWS = 1 << 17


def fixed() -> tuple[ZipLayout, np.ndarray, np.ndarray]:
    """Return values of 256 bytes, a tenth of them null."""
    layout = ZipLayout(bits_def=1, max_definition=1, max_visible=1, width=WIDTH)
    values = rng().integers(0, 256, (ROWS, WIDTH)).astype(np.uint8)
    nulls = (rng().random(ROWS) < 0.1).astype(np.uint16)
    out = np.zeros(ROWS * (WIDTH + 1), np.uint8)
    layout.zip_items(ROWS, values, out, definition=nulls)
    return layout, values, out


def variable() -> tuple[ZipLayout, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return values of 100 to 300 bytes, without nulls."""
    layout = ZipLayout(offset_bits=32)
    offsets = np.append(0, np.cumsum(rng().integers(100, 301, ROWS))).astype(np.int32)
    data = rng().integers(0, 256, int(offsets[-1])).astype(np.uint8)
    out, index = np.zeros(len(data) + 4 * ROWS, np.uint8), np.zeros(ROWS + 1, np.uint32)
    layout.zip_items(ROWS, data, out, index, 4, offsets=offsets)
    return layout, offsets, data, out, index


def scan_fixed() -> Case:
    layout, values, zipped = fixed()
    levels = np.zeros(ROWS, np.uint16)
    return Case(lambda: layout.scan_fixed(zipped, 0, ROWS, values, levels), values.nbytes)


def take_fixed() -> Case:
    layout, values, zipped = fixed()
    items, levels = rng().integers(0, ROWS, 1000), np.zeros(1000, np.uint16)
    return Case(lambda: layout.take_fixed(zipped, items, values, levels), 1000 * WIDTH)


def scan_variable() -> Case:
    layout, offsets, data, zipped, _ = variable()
    begins, ends = np.array([0]), np.array([len(zipped)])
    return Case(lambda: layout.unzip_variable(zipped, begins, ends, False, offsets, data), data.nbytes)


def take_variable() -> Case:
    layout, offsets, data, zipped, index = variable()
    rows = rng().integers(0, ROWS, 1000)
    begins, ends = np.zeros(1000, np.int64), np.zeros(1000, np.int64)

    def work() -> None:
        row_ranges(index, 4, rows, len(zipped), begins, ends)
        layout.count(zipped, begins, ends)
        layout.unzip_variable(zipped, begins, ends, False, offsets, data)

    return Case(work, 1000 * 200)


def zip_variable() -> Case:
    layout, offsets, data, zipped, index = variable()
    return Case(lambda: layout.zip_items(ROWS, data, zipped, index, 4, offsets=offsets), data.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "fullzip.scan_fixed, 256 bytes with nulls": scan_fixed,
    "fullzip.take_fixed, 1000 of 128k": take_fixed,
    "fullzip.unzip_variable, 200 bytes": scan_variable,
    "fullzip.unzip_variable, 1000 of 128k": take_variable,
    "fullzip.zip_items, 200 bytes": zip_variable,
}
