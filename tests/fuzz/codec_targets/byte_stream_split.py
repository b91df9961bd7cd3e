from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codec_targets.chaos import Chaos
from lancecodec import byte_stream_split


def width(c: Chaos) -> Any:
    return c.random.choice([32, 64]) if c.random.random() < 0.97 else c.number()


def bytes_of(bits: Any) -> int:
    return bits // 8 if bits in (32, 64) else 1


def chunk_of(c: Chaos) -> Any:
    return c.random.choice([1, 7, 512, 1024]) if c.random.random() < 0.9 else c.number()


def encode(c: Chaos) -> object:
    bits, n, chunk = width(c), c.size(), chunk_of(c)
    size = n * bytes_of(bits) + c.random.choice([0] * 20 + [1])
    chunks = -(-n // chunk) if isinstance(chunk, int) and chunk > 0 else 1
    return byte_stream_split.encode(c.buffer(size), bits, chunk, c.out(size), c.integers(9, chunks))


def decode(c: Chaos) -> object:
    bits, n = width(c), c.size()
    count = n if c.random.random() < 0.9 else c.number(n)
    return byte_stream_split.decode(c.out(n * bytes_of(bits)), count, bits, c.out(n * bytes_of(bits)))


def decode_page(c: Chaos) -> object:
    bits, n = width(c), c.size()
    count = n if c.random.random() < 0.9 else c.number(n)
    return byte_stream_split.decode_page(c.out(n * bytes_of(bits)), count, bits, chunk_of(c), c.out(n * bytes_of(bits)))


def take(c: Chaos) -> object:
    bits, n = width(c), c.size()
    count = n if c.random.random() < 0.9 else c.number(n)
    positions = c.integers(n)
    out = c.out(len(positions) * bytes_of(bits))
    return byte_stream_split.take(c.out(n * bytes_of(bits)), count, bits, positions, out)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "byte_stream_split.encode": encode,
    "byte_stream_split.decode": decode,
    "byte_stream_split.decode_page": decode_page,
    "byte_stream_split.take": take,
}
