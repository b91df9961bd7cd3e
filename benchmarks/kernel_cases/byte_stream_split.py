"""Byte-stream split of pages, with the chunks of the reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import byte_stream_split

SIZE = 64 << 20


def encode(bits: int) -> Case:
    values, out = rng().integers(0, 256, SIZE, np.uint8), np.empty(SIZE, np.uint8)
    chunk = 32768 // bits
    ends = np.empty(SIZE * 8 // bits // chunk, np.int64)
    return Case(lambda: byte_stream_split.encode(values, bits, chunk, out, ends), SIZE)


def decode(bits: int) -> Case:
    data, out = rng().integers(0, 256, SIZE, np.uint8), np.empty(SIZE, np.uint8)
    return Case(lambda: byte_stream_split.decode_page(data, SIZE * 8 // bits, bits, 32768 // bits, out), SIZE)


def take(bits: int) -> Case:
    data, positions = rng().integers(0, 256, 4096, np.uint8), rng().integers(0, 32768 // bits, 100_000)
    out = np.empty(len(positions) * bits // 8, np.uint8)
    return Case(lambda: byte_stream_split.take(data, 32768 // bits, bits, positions, out), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    f"byte_stream_split.{name}, {bits} bits": partial(make, bits)
    for name, make in [("encode", encode), ("decode_page", decode), ("take", take)]
    for bits in (32, 64)
}
