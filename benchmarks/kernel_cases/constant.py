"""Copies of one value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case
from lancecodec import constant

SIZE = 64 << 20


def fill(width: int) -> Case:
    value, out = np.arange(width, dtype=np.uint8), np.empty(SIZE, np.uint8)
    return Case(lambda: constant.fill(value, SIZE // width, out), SIZE)


def fill_bits(bits: int, at: int) -> Case:
    value, out = np.full((bits + 7) // 8, 0x5B, np.uint8), np.empty(SIZE, np.uint8)
    return Case(lambda: constant.fill_bits(value, bits, (8 * SIZE - at) // bits, out, at), SIZE)


CASES: dict[str, Callable[[], Case]] = {
    **{f"constant.fill, {width} bytes": partial(fill, width) for width in (1, 2, 4, 8, 16, 100)},
    **{f"constant.fill_bits, {bits} bits": partial(fill_bits, bits, 3) for bits in (1, 3)},
}
