from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import bitstream

#: Bytes of the values, more than any cache holds.
SIZE = 64 << 20
WIDTHS = {8: (3,), 16: (7, 13), 32: (7, 17), 64: (31, 45, 61)}


def values(bits: int, width: int, signed: bool) -> np.ndarray:
    kind = np.dtype(f"<{'i' if signed else 'u'}{bits // 8}")
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1)) if signed else (0, 2**width)
    return np.resize(rng().integers(low, high, 1 << 19, kind), SIZE * 8 // bits)


def encode(bits: int, width: int, signed: bool) -> Case:
    source, n = values(bits, width, signed), SIZE * 8 // bits
    out = np.ones(bitstream.encoded_size(n, width), np.uint8)
    return Case(lambda: bitstream.encode(source, bits, width, signed, out), SIZE)


def stream(bits: int, width: int, signed: bool) -> np.ndarray:
    n = SIZE * 8 // bits
    data = np.ones(bitstream.encoded_size(n, width), np.uint8)
    bitstream.encode(values(bits, width, signed), bits, width, signed, data)
    return data


def decode(bits: int, width: int, signed: bool) -> Case:
    data, n, out = stream(bits, width, signed), SIZE * 8 // bits, np.ones(SIZE, np.uint8)
    return Case(lambda: bitstream.decode(data, bits, width, signed, 0, n, out), SIZE)


def select(bits: int, width: int) -> Case:
    data, n = stream(bits, width, False), SIZE * 8 // bits
    positions = np.sort(rng().integers(0, n, n // 100))
    out = np.ones(len(positions) * bits // 8, np.uint8)
    return Case(lambda: bitstream.select(data, bits, width, False, positions, out), out.size)


CASES: dict[str, Callable[[], Case]] = {
    f"bitstream.{work.__name__}, {bits} bits, width {width}{', signed' * signed}": partial(work, bits, width, signed)
    for work in (decode, encode)
    for bits in WIDTHS
    for width in WIDTHS[bits]
    for signed in (False, True)
}
CASES |= {f"bitstream.select, {bits} bits, 1 of 100": partial(select, bits, WIDTHS[bits][0]) for bits in WIDTHS}
