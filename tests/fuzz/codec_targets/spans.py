from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import spans


def places(c: Chaos, room: int, most: int) -> tuple[Any, Any, int]:
    """Return spans within `room` units, a few of them wrong, and the number of values."""
    n = c.random.choice([0, 1, 8, 300, c.random.randint(0, 600)])
    counts = np.ones(n, np.int64) if c.flag() else c.rng.integers(0, c.random.choice([2, 20, most + 1]), n)
    counts = np.minimum(counts, room)
    positions = c.rng.integers(0, room - counts + 1)
    total = int(counts.sum())
    if n and c.flag(0.2):
        wrong = c.random.choice([positions, counts])
        wrong[c.random.randrange(n)] = c.random.choice([-1, room, room + 1, 2**31, 2**62, 2**63 - 1, -(2**63)])
    if c.flag(0.03):
        positions = c.integers(room)
    return positions, counts, total


def fixed(c: Chaos) -> object:
    width = c.random.choice([0, 1, 1, 2, 3, 4, 8, 16, 32, 40, c.number()])
    size = width if isinstance(width, int) and 0 < width <= 40 else 8
    values = c.size()
    positions, counts, total = places(c, values, 200)
    return spans.fixed(c.out(values * size), positions * size, counts, width, c.out(total * size))


def bits(c: Chaos) -> object:
    size = c.size()
    positions, counts, total = places(c, size * 8, 600)
    return spans.bits(c.out(size), positions, counts, c.out((total + 7) // 8))


def offsets(c: Chaos) -> object:
    wide, out_wide, values = c.flag(), c.flag(), c.size()
    positions, counts, total = places(c, values, 3000)
    stored = np.cumsum(c.rng.integers(0, c.random.choice([1, 9, 10**5]), values + 1)) + c.random.choice([0, 70, 2**30])
    source = stored.astype(np.int64 if wide else np.int32).view(np.uint8)
    source = c.damaged(source, 0.3) if c.flag(0.9) else c.buffer()
    skew, stride = c.random.choice([0, 0, 1, 5]), 8 if wide else 4
    source = np.concatenate([c.content(skew), source]) if isinstance(source, np.ndarray) else source
    starts, sizes = c.integers(5, len(counts) - (c.random.random() < 0.02)), c.integers(5, len(counts))
    out = c.out((total + 1) * (8 if out_wide else 4))
    return spans.offsets(source, positions * stride + skew, counts, wide, out_wide, out, starts, sizes)


def empties(c: Chaos) -> object:
    values, wide = c.size(), c.flag()
    n = values if c.flag(0.8) else c.number(values)
    return spans.empties(c.out((values + 1) * (8 if wide else 4)), wide, n, c.out((values + 7) // 8))


def batches(c: Chaos) -> object:
    bits, count = c.random.choice([0, 1, 8, 32, 64, 96, 12]), c.random.randrange(0, 6)
    sizes = c.rng.integers(0, 30, count)
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    size = c.size()
    positions, lengths = c.rng.integers(0, size + 1, count), sizes + c.rng.integers(0, 3, count)
    for array in (starts, positions, lengths):
        if len(array) and c.flag(0.1):
            array[c.random.randrange(len(array))] = c.random.choice([-1, 2**31, 2**62, -(2**63), 10**6])
    pages = spans.BatchPages(c.out(size), starts, positions, lengths, bits)
    rows = c.rng.integers(0, max(int(sizes.sum()), 1), c.random.choice([0, 1, 9, 300]))
    if len(rows) and c.flag(0.1):
        rows[0] = c.random.choice([-1, 10**6, 2**63 - 1])
    if c.flag():
        return pages.locate(rows, c.integers(0, len(rows)))
    return pages.take(rows, c.out((len(rows) * bits + 7) // 8))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "spans.fixed": fixed,
    "spans.bits": bits,
    "spans.offsets": offsets,
    "spans.empties": empties,
    "spans.BatchPages": batches,
}
