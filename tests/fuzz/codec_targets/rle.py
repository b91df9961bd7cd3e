from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import rle


def widths(c: Chaos) -> tuple[Any, Any]:
    bits = c.random.choice([8, 16, 32, 64]) if c.random.random() < 0.98 else c.number()
    return bits, c.random.choice([8, 8, 8, 16, 32]) if c.random.random() < 0.98 else c.number()


def bytes_of(bits: Any) -> int:
    return bits // 8 if bits in (8, 16, 32, 64) else 1


def exactly(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8).copy()


def entries(c: Chaos, bits: Any, length_bits: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Return run values, run lengths, and the number of values they give, sometimes damaged."""
    runs = c.random.choice([0, 1, 7, 8, 9, 100, 1000])
    lengths = c.rng.integers(1, c.random.choice([2, 3, 9, 40, 256]), runs)
    n = int(lengths.sum())
    if runs and c.random.random() < 0.3:
        lengths[c.random.randrange(runs)] = c.random.choice([0, 255, 2**16 - 1, 2**32 - 1])
    values = c.rng.integers(0, 256, runs * bytes_of(bits) + c.random.choice([0] * 20 + [1]), np.uint8)
    return values, exactly(lengths.astype(f"<u{bytes_of(length_bits) if length_bits != 64 else 4}").tobytes()), n


def about(c: Chaos, n: int) -> Any:
    return n if c.random.random() < 0.7 else c.random.choice([n - 1, n + 1, n // 2, c.number(n)])


def decode(c: Chaos) -> object:
    bits, length_bits = widths(c)
    values, lengths, n = entries(c, bits, length_bits)
    wanted = about(c, n)
    out = c.out(n * bytes_of(bits))
    return rle.decode(values, lengths, wanted, bits, out, length_bits, c.random.random() < 0.3)


def take(c: Chaos) -> object:
    bits, length_bits = widths(c)
    values, lengths, n = entries(c, bits, length_bits)
    positions = c.integers(n)
    return rle.take(values, lengths, about(c, n), bits, positions, c.out(len(positions) * bytes_of(bits)), length_bits)


def decode_block(c: Chaos) -> object:
    bits, _ = widths(c)
    values, lengths, n = entries(c, bits, 8)
    size = len(values) if c.random.random() < 0.9 else c.random.choice([0, 1, len(values) + 1, 2**63, 2**64 - 1])
    block = exactly(struct.pack("<Q", size) + values.tobytes() + lengths.tobytes())
    return rle.decode_block(
        block[: c.random.choice([len(block)] * 9 + [5])], about(c, n), bits, c.out(n * bytes_of(bits))
    )


def source(c: Chaos, bits: Any) -> np.ndarray:
    runs = c.rng.integers(0, 3, c.random.choice([0, 1, 50, 3000])).astype(f"<u{bytes_of(bits)}")
    values = np.repeat(runs, c.rng.integers(1, c.random.choice([2, 5, 600]), len(runs)))[:20_000]
    return exactly(values.tobytes() + bytes(c.random.choice([0] * 30 + [1])))


def encode(c: Chaos) -> object:
    bits, length_bits = widths(c)
    values = source(c, bits)
    limits = [c.random.choice([64, 1024, 4096]), c.random.choice([800, 8186, c.number()])]
    _, found = rle.count(values, bits, c.random.choice([0, 64, 4096, c.number()]), length_bits)
    value_size, length_size, chunks = rle.encode_bound(len(values) // bytes_of(bits), bits, found, length_bits, *limits)
    places = [c.integers(9, max(chunks - c.random.choice([0, 0, 0, 1]), 0)) for _ in range(3)]
    made = rle.encode(values, bits, c.out(value_size), c.out(length_size), *places, length_bits, *limits)
    assert made <= chunks
    return made


def encode_block(c: Chaos) -> object:
    bits, _ = widths(c)
    values = source(c, bits)
    return rle.encode_block(values, bits, c.out(rle.block_size(rle.count(values, bits, 0)[1], bits)))


def decode_page(c: Chaos) -> object:
    bits, _ = widths(c)
    made = [entries(c, bits, 8) for _ in range(c.random.randint(0, 3))]
    value_ends = np.cumsum([len(values) for values, _, _ in made], dtype=np.int64)
    length_ends = np.cumsum([len(lengths) for _, lengths, _ in made], dtype=np.int64)
    counts = np.array([n for _, _, n in made], np.int64)
    for ends in (value_ends, length_ends, counts):
        if len(ends) and c.random.random() < 0.05:
            ends[c.random.randrange(len(ends))] = c.random.choice([-1, 0, 1, 2**62, 2**63 - 1])
    values = exactly(b"".join(values.tobytes() for values, _, _ in made))
    lengths = exactly(b"".join(lengths.tobytes() for _, lengths, _ in made))
    out = c.out(sum(n for _, _, n in made) * bytes_of(bits))
    return rle.decode_page(values, value_ends, lengths, length_ends, counts, bits, out)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "rle.decode": decode,
    "rle.take": take,
    "rle.decode_block": decode_block,
    "rle.encode": encode,
    "rle.encode_block": encode_block,
    "rle.decode_page": decode_page,
}
