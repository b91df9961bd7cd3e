from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from codec_targets.intervals import random_test
from lancecodec.zones import ZoneBounds


def gathered(c: Chaos) -> object:
    bounds = ZoneBounds(c.number(c.random.choice([1, 5, 100])))
    for _ in range(3):
        n, bit = c.random.randint(0, 200), c.random.randint(0, 9)
        mask = c.buffer((n + bit + 7) // 8) if c.flag() else None
        if c.flag(0.3):
            wide = c.flag()
            size = c.random.randint(0, 300)
            ends = sorted(c.random.randint(0, size) for _ in range(n + 1))
            if c.flag(0.2):
                ends[c.random.randrange(n + 1)] = c.random.randint(-5, size + 5)
            offsets = b"".join(end.to_bytes(8 if wide else 4, "little", signed=True) for end in ends)
            bounds.add_texts(c.buffer(size), offsets, wide, mask, bit)
        else:
            bits = c.random.choice([8, 16, 32, 64, 128])
            bounds.add_fixed(c.buffer(bits // 8 * n), bits, c.random.randint(0, 2), mask, bit)
        if c.flag(0.2):
            bounds.halve()
    count = len(bounds)
    low, high, flags = c.out(16 * count), c.out(16 * count), c.out(count)
    bounds.write(low, high, flags)
    random_test(c, c.random.choice([8, 16, 32, 64])).verdicts(c.buffer(16 * count), high, c.buffer(count), c.out(count))
    return bounds


TARGETS: dict[str, Callable[[Chaos], object]] = {"zones.ZoneBounds": gathered}
