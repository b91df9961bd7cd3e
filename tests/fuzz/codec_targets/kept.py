from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.dictionary import strings as some_strings
from lancecodec import kept


def mask(c: Chaos, count: int) -> tuple[Any, Any, Any, int]:
    """Return a bitmap, its first bit, the number of its bits, and how many of these are set."""
    offset = c.random.choice([0, 0, 1, 7, 8, c.number()])
    plain = offset if isinstance(offset, int) and 0 <= offset < 100 else 0
    flags = c.rng.random(count) < c.random.choice([0.0, 0.05, 0.5, 0.95, 1.0])
    bits = np.packbits(np.concatenate([np.ones(plain, bool), flags]), bitorder="little")
    length = count if c.random.random() < 0.95 else c.number()
    return bits, offset, length, int(flags.sum()) + (c.random.random() < 0.05)


def fixed(c: Chaos) -> object:
    count, width = c.size(), c.random.choice([1, 2, 4, 8, 16, 3, c.number()])
    plausible = width if isinstance(width, int) and 0 < width <= 100 else 8
    bits, offset, length, some = mask(c, count)
    return kept.fixed(c.out(count * plausible), width, bits, offset, length, c.out(some * plausible))


def bitmap(c: Chaos) -> object:
    count, start = c.size(), c.random.choice([0, 0, 1, 9, c.number()])
    bits, offset, length, some = mask(c, count)
    return kept.bitmap(c.out(count // 8 + 2), start, bits, offset, length, c.out((some + 7) // 8), some)


def strings(c: Chaos) -> object:
    count, data, offsets, wide = some_strings(c)
    bits, offset, length, some = mask(c, count)
    ends = c.out((some + 1) * (8 if wide else 4))
    total = kept.ends(offsets, wide, bits, offset, length, ends, some)
    return kept.strings(data, offsets, wide, bits, offset, length, c.buffer(min(total, 10**6)))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "kept.fixed": fixed,
    "kept.bitmap": bitmap,
    "kept.strings": strings,
}
