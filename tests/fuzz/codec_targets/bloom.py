from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import bloom


def strings(c: Chaos, count: int, longest: int, unit: int = 1) -> tuple[Any, Any, bool]:
    """Return bytes and mostly plausible offsets into them."""
    wide = c.flag()
    ends = np.cumsum(np.append(0, c.rng.integers(0, longest + 1, count) * unit))
    data = c.buffer(int(ends[-1]))
    if c.flag(0.1):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, int(ends[-1]) + 1, 2**31 - 1, -(2**31)])
    return data, c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05), wide


def hash_fixed(c: Chaos) -> object:
    width, count = c.number(40), c.random.randint(0, 100)
    return bloom.hash_fixed(
        c.buffer(width * count if isinstance(width, int) and 0 <= width < 99 else 9), width, c.out(8 * count)
    )


def hash_variable(c: Chaos) -> object:
    count = c.random.randint(0, 60)
    return bloom.hash_variable(*strings(c, count, 70), c.out(8 * count))


def insert(c: Chaos) -> object:
    count, size = c.random.randint(0, 12), c.random.choice([32, 64, 96, c.number(64)])
    stops = np.sort(c.rng.integers(0, 101, count))
    if count and c.flag(0.1):
        stops[c.random.randrange(count)] = c.random.choice([-1, 101, 2**62, -(2**63)])
    room = count * size if isinstance(size, int) and 0 <= size < 99 else 9
    return bloom.insert(c.buffer(800), stops, size, c.out(room))


def probe(c: Chaos) -> object:
    count = c.random.randint(0, 12)
    return bloom.probe(*strings(c, count, 3, 32), c.buffer(8 * c.random.randint(0, 9)), c.out(count))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "bloom.hash_fixed": hash_fixed,
    "bloom.hash_variable": hash_variable,
    "bloom.insert": insert,
    "bloom.probe": probe,
}
