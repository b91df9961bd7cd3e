from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec.search import sorting


def sort_keys(c: Chaos) -> object:
    count = c.random.randint(0, 200)
    keys = c.buffer(8 * count + (1 if c.flag(0.1) else 0))
    return sorting.sort_keys(keys, c.out(8 * count), c.out(4 * count), c.out(8 * count), c.out(4 * count))


TARGETS: dict[str, Callable[[Chaos], object]] = {"sorting.sort_keys": sort_keys}
