from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import sequences


def width(c: Chaos) -> Any:
    return c.random.choice([32, 64]) if c.random.random() < 0.97 else c.number()


def bytes_of(bits: Any) -> int:
    return bits // 8 if bits in (32, 64) else 1


def decode_range(c: Chaos) -> object:
    bits, n = width(c), c.size()
    count = n if c.random.random() < 0.95 else c.number(n)
    return sequences.decode_range(c.number(10**6), c.number(), count, bits, c.out(n * bytes_of(bits)))


def decode_delta(c: Chaos) -> object:
    bits, n = width(c), c.size()
    deltas = c.rng.integers(0, 9, n).astype(f"<u{bytes_of(bits)}")
    source = c.buffer(deltas.nbytes) if c.random.random() < 0.3 else deltas
    return sequences.decode_delta(c.number(10**6), source, bits, c.out((n + 1) * bytes_of(bits)))


def encode_delta(c: Chaos) -> object:
    bits, n = width(c), c.size()
    return sequences.encode_delta(c.out(n * bytes_of(bits)), bits, c.out((n - 1) * bytes_of(bits)))


def decode_dictionary(c: Chaos) -> object:
    bits, n, items = width(c), c.size(), c.random.choice([1, 2, 40, 4096, c.random.randint(0, 5000)])
    indices = c.rng.integers(0, items + c.random.choice([0, 0, 0, 1]) or 1, n).astype("<u4")
    return sequences.decode_dictionary(indices, c.out(items * bytes_of(bits)), bits, c.out(n * bytes_of(bits)))


def frame(c: Chaos, sizes: int) -> np.ndarray:
    parts = [c.random.choice([0, 4, 8, 100]) for _ in range(2)]
    told = [part if c.random.random() < 0.9 else c.random.choice([0, 2**63, 2**64 - 1]) for part in parts[:sizes]]
    data = struct.pack(f"<{sizes}Q", *told) + bytes(sum(parts))
    return np.frombuffer(data[: c.random.choice([len(data)] * 9 + [c.random.randint(0, len(data))])], np.uint8).copy()


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "sequences.decode_range": decode_range,
    "sequences.range_of": lambda c: sequences.range_of(c.out(c.size() * 8), width(c)),
    "sequences.decode_delta": decode_delta,
    "sequences.encode_delta": encode_delta,
    "sequences.decode_dictionary": decode_dictionary,
    "sequences.rle_frame": lambda c: sequences.rle_frame(frame(c, 1)),
    "sequences.dictionary_frame": lambda c: sequences.dictionary_frame(frame(c, 2)),
    "sequences.runs_of_constant": lambda c: sequences.runs_of_constant(
        c.random.choice([1, 2, c.number()]), c.number(90)
    ),
    "sequences.runs_of_range": lambda c: (
        sequences.runs_of_range(1, 1, c.random.choice([0, 1, 3, 6, 10, c.number()]))
        if c.random.random() < 0.5
        else sequences.runs_of_range(c.number(), c.number(), c.number(10**6))
    ),
}
