"""Flat values: copies, copies of bits, and single values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import flat

SIZE = 64 << 20
TAKEN = 1_000_000


def decode(bits: int) -> Case:
    data, out = rng().integers(0, 256, SIZE, np.uint8), np.empty(SIZE, np.uint8)
    return Case(lambda: flat.decode(data, SIZE * 8 // bits, bits, out), SIZE)


def decode_bits(at: int) -> Case:
    data, out = rng().integers(0, 256, SIZE, np.uint8), np.empty(SIZE + 1, np.uint8)
    return Case(lambda: flat.decode_bits(data, SIZE * 8, 1, out, at), SIZE)


def encode(bits: int, bit: int) -> Case:
    data, out = rng().integers(0, 256, SIZE, np.uint8), np.empty(SIZE, np.uint8)
    chunk, n = flat.chunk_values(bits), SIZE * 8 // bits - bit
    ends = np.empty(n // chunk + 1, np.int64)
    return Case(lambda: flat.encode(data, bit, n, bits, chunk, out, ends), SIZE)


def take(bits: int) -> Case:
    data, out = rng().integers(0, 256, 4096, np.uint8), np.empty(TAKEN * bits // 8, np.uint8)
    positions = rng().integers(0, 4096 * 8 // bits, TAKEN)
    call = flat.take if bits >= 8 else flat.take_bits
    return Case(lambda: call(data, 4096 * 8 // bits, bits, positions, out), out.nbytes)


def booleans() -> Case:
    values, out = rng().integers(0, 2, SIZE, np.uint8), np.empty(SIZE // 8 + 1, np.uint8)
    return Case(lambda: flat.booleans_from_bytes(values, out, 3), SIZE)


CASES: dict[str, Callable[[], Case]] = {
    "flat.decode, 32 bits": partial(decode, 32),
    "flat.decode_bits, at bit 0": partial(decode_bits, 0),
    "flat.decode_bits, at bit 3": partial(decode_bits, 3),
    "flat.encode, 32 bits": partial(encode, 32, 0),
    "flat.encode, 1 bit from bit 3": partial(encode, 1, 3),
    "flat.booleans_from_bytes, at bit 3": booleans,
    **{f"flat.take, {bits} bits": partial(take, bits) for bits in (1, 8, 32, 64, 128)},
}
