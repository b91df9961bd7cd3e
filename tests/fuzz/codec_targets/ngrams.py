from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import ngrams


def texts(c: Chaos) -> tuple[Any, Any, bool, bool]:
    """Return bytes, mostly letters, and mostly plausible offsets into them."""
    wide, count = c.flag(), c.random.choice([0, 1, 8, c.random.randint(0, 100)])
    ends = np.cumsum(np.append(0, c.rng.integers(0, 30, count)))
    data = c.buffer(int(ends[-1]))
    if isinstance(data, np.ndarray) and c.flag(0.7):
        data[:] = c.rng.integers(ord("0"), ord("z") + 1, len(data))
    if c.flag(0.1):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, int(ends[-1]) + 1, 2**31 - 1, -(2**31)])
    return data, c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05), wide, c.flag()


def room(c: Chaos) -> object:
    return ngrams.room(*texts(c))


def find(c: Chaos) -> object:
    found = texts(c)
    size = ngrams.room(*found) if c.flag(0.8) else c.size()
    places = c.random.choice([size, size, size, max(size - 1, 0)])
    return ngrams.find(*found, np.empty(size, np.uint32), np.empty(places, np.uint32), np.empty(100, np.uint32))


def group(c: Chaos) -> object:
    count, tokens, rows = c.random.randint(0, 60), c.random.randint(0, 30), c.random.randint(1, 20)
    entries = [c.integers(top, count).astype(np.uint32) for top in (tokens, rows)]
    ids = c.rng.integers(0, 1 << 40, rows, np.uint64)
    return ngrams.group(*entries, ids, np.empty(tokens + c.flag(0.9), np.int64), np.empty(count, np.uint64))


TARGETS: dict[str, Callable[[Chaos], object]] = {"ngrams.room": room, "ngrams.find": find, "ngrams.group": group}
