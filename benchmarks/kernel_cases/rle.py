"""Run-length encoding of runs of random lengths (geometrically distributed)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import rle

SIZE = 64 << 20
AVERAGES = (2, 8, 100)


def values_of(bits: int, average: int) -> np.ndarray:
    dtype = np.dtype(f"<u{bits // 8}")
    n = SIZE // dtype.itemsize
    lengths = rng().geometric(1 / average, n // average + n // 50 + 1000)
    return np.repeat(np.arange(len(lengths)).astype(dtype), lengths)[:n]


class Page:
    def __init__(self, bits: int, average: int) -> None:
        self.bits = bits
        self.source = values_of(bits, average)
        _, entries = rle.count(self.source, bits)
        value_size, length_size, chunks = rle.encode_bound(len(self.source), bits, entries)
        self.values, self.lengths = np.empty(value_size, np.uint8), np.empty(length_size, np.uint8)
        self.value_ends, self.length_ends, self.counts = np.empty((3, chunks), np.int64)

    def encode(self) -> int:
        ends = self.value_ends, self.length_ends
        return rle.encode(self.source, self.bits, self.values, self.lengths, *ends, self.counts)


def count(bits: int, average: int) -> Case:
    source = values_of(bits, average)
    return Case(lambda: rle.count(source, bits), source.nbytes)


def encode(bits: int, average: int) -> Case:
    page = Page(bits, average)
    return Case(page.encode, page.source.nbytes)


def decode(bits: int, average: int) -> Case:
    page = Page(bits, average)
    chunks = page.encode()
    out = np.empty_like(page.source)
    value_ends, length_ends, counts = page.value_ends[:chunks], page.length_ends[:chunks], page.counts[:chunks]
    return Case(
        lambda: rle.decode_page(page.values, value_ends, page.lengths, length_ends, counts, bits, out), out.nbytes
    )


def block(bits: int, average: int) -> Case:
    source = values_of(bits, average)
    data = np.empty(rle.block_size(rle.count(source, bits, 0)[1], bits), np.uint8)
    rle.encode_block(source, bits, data)
    out = np.empty_like(source)
    return Case(lambda: rle.decode_block(data, len(source), bits, out), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    f"rle.{name}, u{bits} in runs of {average}": partial(make, bits, average)
    for name, make in [("decode", decode), ("encode", encode), ("count", count)]
    for bits in (8, 16, 32, 64)
    for average in AVERAGES
} | {"rle.decode_block, u16 in runs of 8": partial(block, 16, 8)}
