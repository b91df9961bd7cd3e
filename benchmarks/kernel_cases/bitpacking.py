from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import bitpacking

#: Bytes of the values, more than any cache holds.
SIZE = 64 << 20
#: Widths by value size.
WIDTHS = {8: (1, 3, 7), 16: (1, 3, 7, 8, 13), 32: (1, 3, 7, 8, 13, 17, 31), 64: (1, 3, 7, 8, 13, 17, 31, 45)}


def values(bits: int, width: int) -> np.ndarray:
    """Return random values of some width: a few megabytes, repeated."""
    some = np.frombuffer(rng().bytes(4 << 20), f"<u{bits // 8}")
    return np.resize(some & some.dtype.type(2**width - 1), SIZE * 8 // bits)


def empty(size: int, odd: bool = False) -> np.ndarray:
    return np.full(size + odd, 1, np.uint8)[odd:]


def packed(bits: int, width: int, odd: bool) -> np.ndarray:
    out = empty(bitpacking.packed_size(SIZE * 8 // bits, width), odd)
    bitpacking.pack(values(bits, width), bits, width, out)
    return out


def unpack(bits: int, width: int, odd: bool) -> Case:
    data, out, n = packed(bits, width, odd), empty(SIZE, odd), SIZE * 8 // bits
    return Case(lambda: bitpacking.unpack(data, bits, width, 0, n, out), SIZE)


def pack(bits: int, width: int, odd: bool) -> Case:
    source, out = empty(SIZE, odd), empty(bitpacking.packed_size(SIZE * 8 // bits, width), odd)
    source[:] = values(bits, width).view(np.uint8)
    return Case(lambda: bitpacking.pack(source, bits, width, out), SIZE)


def inline_encode(bits: int, width: int, odd: bool) -> Case:
    source, n = empty(SIZE, odd), SIZE * 8 // bits
    source[:] = values(bits, width).view(np.uint8)
    out, ends = empty(bitpacking.inline_bound(n, bits), odd), np.zeros(n // 1024, np.int64)
    return Case(lambda: bitpacking.inline_encode(source, bits, out, ends), SIZE)


def inline_decode(bits: int, width: int, odd: bool) -> Case:
    n = SIZE * 8 // bits
    data, ends = empty(bitpacking.inline_bound(n, bits), odd), np.zeros(n // 1024, np.int64)
    data = data[: bitpacking.inline_encode(values(bits, width), bits, data, ends)]
    out = empty(SIZE, odd)
    return Case(lambda: bitpacking.inline_decode(data, ends, bits, n, out), SIZE)


def out_of_line_decode(bits: int, width: int, count: int) -> Case:
    """Decode sequences shorter than the caches, like levels, always the same one."""
    source, out = values(bits, width)[:count], empty(count * bits // 8)
    data = empty(bitpacking.out_of_line_size(count, bits, width))
    bitpacking.out_of_line_encode(source, bits, width, data)

    def work() -> None:
        for _ in range(1000):
            bitpacking.out_of_line_decode(data, bits, width, count, out)

    return Case(work, 1000 * out.size)


def select(bits: int, width: int, share: int) -> Case:
    data, n = packed(bits, width, False), SIZE * 8 // bits
    positions = np.sort(rng().integers(0, n, n // share))
    out = empty(len(positions) * bits // 8)
    return Case(lambda: bitpacking.select(data, bits, width, positions, out), out.size)


def widths(bits: int) -> Case:
    source, out = values(bits, bits), empty(SIZE * 8 // bits // 1024)
    return Case(lambda: bitpacking.block_widths(source, bits, out), SIZE)


CASES: dict[str, Callable[[], Case]] = {
    f"bitpacking.{work.__name__}, {bits} bits, width {width}{', odd' * odd}": partial(work, bits, width, odd)
    for work in (unpack, pack, inline_decode, inline_encode)
    for bits in WIDTHS
    for width in WIDTHS[bits]
    for odd in ((False, True) if width in (3, 13) else (False,))
}
CASES |= {
    f"bitpacking.select, {bits} bits, 1 of {n}": partial(select, bits, 7, n) for bits in WIDTHS for n in (8, 1000)
}
CASES |= {f"bitpacking.block_widths, {bits} bits": partial(widths, bits) for bits in WIDTHS}
CASES |= {
    f"bitpacking.out_of_line_decode, 16 bits, width 1, {n} at once": partial(out_of_line_decode, 16, 1, n)
    for n in (300, 1024, 4096)
}
