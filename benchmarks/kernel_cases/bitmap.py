from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import bitmap

BITS = 8 * VALUES


def pack() -> Case:
    values, out = rng().integers(0, 2, BITS, np.uint8), np.empty(VALUES, np.uint8)
    return Case(lambda: bitmap.pack(values, out), values.nbytes)


def unpack(offset: int) -> Case:
    bits, out = rng().integers(0, 256, VALUES + 1, np.uint8), np.empty(BITS, np.uint8)
    return Case(lambda: bitmap.unpack(bits, offset, BITS, out), out.nbytes)


def copy(offset: int) -> Case:
    bits, out = rng().integers(0, 256, 8 * VALUES + 1, np.uint8), np.empty(8 * VALUES, np.uint8)
    return Case(lambda: bitmap.copy(bits, offset, 8 * BITS, out), out.nbytes)


def count() -> Case:
    bits = rng().integers(0, 256, 8 * VALUES, np.uint8)
    return Case(lambda: bitmap.count(bits, 3, 8 * BITS - 3), bits.nbytes)


def select() -> Case:
    bits = np.full(BITS, 0b01010011, np.uint8)
    return Case(lambda: bitmap.select(bits, 3, 8 * BITS - 3, 4 * BITS - 8), bits.nbytes)


def gather() -> Case:
    """Gather bits by number; the size is that of the numbers, because the bits are negligible."""
    bits, out = rng().integers(0, 256, VALUES // 8, np.uint8), np.empty(VALUES // 8, np.uint8)
    index = rng().integers(0, VALUES, VALUES)
    return Case(lambda: bitmap.gather(bits, VALUES, index, out), index.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "bitmap.pack": pack,
    "bitmap.unpack": lambda: unpack(0),
    "bitmap.unpack, bit 3": lambda: unpack(3),
    "bitmap.copy": lambda: copy(0),
    "bitmap.copy, bit 3": lambda: copy(3),
    "bitmap.count": count,
    "bitmap.select": select,
    "bitmap.gather": gather,
}
