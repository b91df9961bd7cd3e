from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec import constant


def fill(c: Chaos) -> object:
    width, n = c.random.choice([0, 1, 2, 3, 4, 8, 16, 100, 5000]), c.random.randint(0, 300)
    return constant.fill(c.buffer(width), n if c.random.random() < 0.9 else c.number(n), c.out(width * n))


def fill_bits(c: Chaos) -> object:
    bits, n, at = c.random.choice([1, 1, 2, 3, 8, 13, 64, 40_000]), c.random.randint(0, 100), c.random.randint(0, 20)
    out = c.out((at + n * bits + 7) // 8)
    value = c.buffer((bits + 7) // 8 + c.random.choice([0] * 20 + [1]))
    return constant.fill_bits(value, bits, n if c.random.random() < 0.9 else c.number(n), out, at)


TARGETS: dict[str, Callable[[Chaos], object]] = {"constant.fill": fill, "constant.fill_bits": fill_bits}
