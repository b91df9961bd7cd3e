from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec import decimals


def multiply(c: Chaos) -> object:
    n = c.random.randint(0, 100)
    left, right = c.buffer(16 * n + c.random.choice([0] * 9 + [-1, 3])), c.buffer(c.random.choice([16, 16 * n, 16 * n]))
    most = c.random.choice([2**127 - 1, 2**127 - 1, 10**38 - 1, 0, c.number()])
    return decimals.multiply(left, right, n if c.flag(0.9) else c.number(n), most, c.out(16 * n))


TARGETS: dict[str, Callable[[Chaos], object]] = {"decimals.multiply": multiply}
