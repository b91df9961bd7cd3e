"""Sequences of 2.3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import sequences

SIZE = 64 << 20


def decode_range(bits: int) -> Case:
    out = np.empty(SIZE, np.uint8)
    return Case(lambda: sequences.decode_range(5, 7, SIZE * 8 // bits, bits, out), SIZE)


def deltas(bits: int) -> np.ndarray:
    return rng().integers(0, 16, SIZE * 8 // bits - 1).astype(f"<u{bits // 8}")


def decode_delta(bits: int) -> Case:
    source, out = deltas(bits), np.empty(SIZE, np.uint8)
    return Case(lambda: sequences.decode_delta(3, source, bits, out), SIZE)


def encode_delta(bits: int) -> Case:
    values, out = np.cumsum(deltas(bits), dtype=f"<u{bits // 8}"), np.empty(SIZE, np.uint8)
    return Case(lambda: sequences.encode_delta(values, bits, out), SIZE)


def range_of(bits: int) -> Case:
    values = np.arange(5, SIZE * 8 // bits + 5, dtype=f"<u{bits // 8}")
    return Case(lambda: sequences.range_of(values, bits), SIZE)


def decode_dictionary(bits: int) -> Case:
    indices, items = rng().integers(0, 4096, SIZE * 8 // bits, np.uint32), np.arange(4096, dtype=f"<u{bits // 8}")
    out = np.empty(SIZE, np.uint8)
    return Case(lambda: sequences.decode_dictionary(indices, items, bits, out), SIZE)


CASES: dict[str, Callable[[], Case]] = {
    f"sequences.{make.__name__}, {bits} bits": partial(make, bits)
    for make in (decode_range, decode_delta, encode_delta, range_of, decode_dictionary)
    for bits in (32, 64)
}
