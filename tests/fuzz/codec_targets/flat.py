from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codec_targets.chaos import Chaos
from lancecodec import flat


def shape(c: Chaos) -> tuple[int, int, Any, Any]:
    """Return the number of values and bits of the buffers, and both as passed to the call."""
    n, bits = (
        c.random.choice([0, 1, 8, 9, c.random.randint(0, 700)]),
        c.random.choice([1, 1, 3, 8, 13, 16, 32, 64, 128, 200]),
    )
    said = n if c.random.random() < 0.9 else c.number(n)
    return n, bits, said, bits if c.random.random() < 0.95 else c.number()


def size(bits: int) -> int:
    return (bits + 7) // 8


def encode(c: Chaos) -> object:
    n, bits, count, width = shape(c)
    bit, chunk = (
        c.random.randint(0, 9),
        c.random.choice([1, 2, 8, 64, 4096]) if c.random.random() < 0.95 else c.number(),
    )
    chunk_values = chunk if isinstance(chunk, int) and 0 < chunk < 10_000 else 4096
    chunks = -(-n // chunk_values)
    out = c.out(n // chunk_values * size(chunk_values * bits) + size(n % chunk_values * bits))
    return flat.encode(c.out(size(bit + n * bits)), bit, count, width, chunk, out, c.integers(9, chunks))


def decode(c: Chaos) -> object:
    n, bits, count, width = shape(c)
    return flat.decode(c.out(size(n * bits)), count, width, c.out(size(n * bits)))


def decode_bits(c: Chaos) -> object:
    n, bits, count, width = shape(c)
    at = c.random.randint(0, 20) if c.random.random() < 0.95 else c.number()
    return flat.decode_bits(c.out(size(n * bits)), count, width, c.out(size(n * bits + 20)), at)


def take(c: Chaos) -> object:
    n, bits, count, width = shape(c)
    positions = c.integers(n)
    return flat.take(c.out(size(n * bits)), count, width, positions, c.out(size(len(positions) * bits)))


def take_bits(c: Chaos) -> object:
    n, bits, count, width = shape(c)
    positions, at = c.integers(n), c.random.randint(0, 20)
    return flat.take_bits(c.out(size(n * bits)), count, width, positions, c.out(size(at + len(positions) * bits)), at)


def booleans(c: Chaos) -> object:
    n, at = c.size(), c.random.randint(0, 20) if c.random.random() < 0.95 else c.number()
    return flat.booleans_from_bytes(c.buffer(n), c.out(size(n + 20)), at)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "flat.chunk_values": lambda c: flat.chunk_values(c.number(), c.number(), c.number(10_000), c.number(5000)),
    "flat.power_of_two_values": lambda c: flat.power_of_two_values(c.number()),
    "flat.encode": encode,
    "flat.decode": decode,
    "flat.decode_bits": decode_bits,
    "flat.take": take,
    "flat.take_bits": take_bits,
    "flat.booleans_from_bytes": booleans,
}
