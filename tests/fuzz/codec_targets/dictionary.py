from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import dictionary


def strings(c: Chaos) -> tuple[int, Any, Any, bool]:
    """Return a number of strings, their bytes and their offsets, sometimes damaged."""
    count, wide = c.size() % 2000, c.random.random() < 0.5
    ends = np.cumsum(c.rng.integers(0, c.random.choice([2, 9, 20, 60]), count + 1))
    size = int(ends[-1])
    if c.random.random() < 0.15:
        ends[c.random.randrange(count + 1)] = c.random.choice([-1, size + 1, 2**31 - 1, 2**62, -(2**63)])
    offsets = np.frombuffer(bytearray(ends.astype(np.int64 if wide else np.int32).tobytes()), np.uint8)
    return count, c.out(size), offsets if c.random.random() < 0.95 else c.buffer(), wide


def validity(c: Chaos, count: int) -> tuple[Any, Any]:
    if c.random.random() < 0.5:
        return None, 0
    bit = c.random.randint(0, 20) if c.random.random() < 0.95 else c.number()
    return c.out((count + (bit if isinstance(bit, int) and 0 <= bit < 99 else 0) + 7) // 8), bit


def output(c: Chaos, count: int) -> tuple[Any, Any, Any]:
    """Return codes, their width, and positions."""
    code_width = c.random.choice([1, 2, 4, 4, 8, c.number()])
    plausible = code_width if code_width in (1, 2, 4, 8) else 4
    return c.out(count * plausible), code_width, c.integers(9, c.random.choice([count, count, 40]))


def build_fixed(c: Chaos) -> object:
    width, count = c.random.choice([1, 2, 4, 8, 16, c.random.randint(1, 40), c.number(300)]), c.size()
    plausible = width if isinstance(width, int) and 0 < width < 300 else 8
    values = c.out(count * plausible) if c.random.random() < 0.1 else c.buffer(count * plausible)
    codes, code_width, positions = output(c, count)
    limit = c.random.choice([2**63 - 1, 100, c.number()])
    return dictionary.build_fixed(values, width, codes, code_width, positions, *validity(c, count), limit)


def build_variable(c: Chaos) -> object:
    count, data, offsets, wide = strings(c)
    codes, code_width, positions = output(c, count)
    limit = c.random.choice([2**63 - 1, 100, c.number()])
    return dictionary.build_variable(
        data, offsets, wide, codes, code_width, positions, *validity(c, count), max_bytes=limit
    )


def sample(c: Chaos) -> object:
    blocks, size = c.random.choice([1, 2, 32, c.number()]), c.random.choice([1, 7, 128, c.number()])
    if c.random.random() < 0.5:
        count, data, offsets, wide = strings(c)
        return dictionary.sample_variable(data, offsets, wide, *validity(c, count), blocks, size)
    count, width = c.size(), c.random.randint(1, 20)
    return dictionary.sample_fixed(c.buffer(count * width), width, *validity(c, count), blocks, size)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "dictionary.build_fixed": build_fixed,
    "dictionary.build_variable": build_variable,
    "dictionary.sample": sample,
}
