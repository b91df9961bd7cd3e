from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import automata


def write_fst(c: Chaos) -> object:
    size, count = c.random.randint(0, 5), c.random.randint(0, 40)
    keys = sorted({bytes(c.rng.integers(97, 100, c.random.randint(0, size), np.uint8)) for _ in range(count)})
    if c.flag(0.1):
        c.random.shuffle(keys)
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    if c.flag(0.2):
        offsets[c.random.randrange(len(offsets))] = c.random.choice([-1, 3, 2**40, -(2**63)])
    return automata.write_fst(b"".join(keys), offsets, c.buffer(8 * len(keys) + (8 if c.flag(0.05) else 0)))


def crc32c(c: Chaos) -> object:
    return automata.crc32c(c.buffer())


TARGETS: dict[str, Callable[[Chaos], object]] = {"automata.write_fst": write_fst, "automata.crc32c": crc32c}
