from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec import word_pages


def encode(c: Chaos) -> object:
    width, count = c.random.choice([1, 2, 4, 8, 8, c.number()]), c.size()
    plausible = width if width in (1, 2, 4, 8) else 8
    begin = c.random.choice([0, 0, 1, c.number()])
    values = c.out(count * plausible + (begin if isinstance(begin, int) and 0 <= begin < 99 else 0))
    rows = c.integers(count) if c.flag() else c.integers(1, 0)
    given = count if c.flag(0.9) else c.number()
    return word_pages.encode(values, begin, given, width, c.flag(), rows, c.random.choice([0, 5, 300, c.number()]))


TARGETS: dict[str, Callable[[Chaos], object]] = {"word_pages.encode": encode}
