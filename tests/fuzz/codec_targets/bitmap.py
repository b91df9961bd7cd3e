from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec import bitmap

TARGETS: dict[str, Callable[[Chaos], object]] = {
    "bitmap.pack": lambda c: bitmap.pack(c.buffer(n := c.size()), c.out((n + 7) // 8)),
    "bitmap.unpack": lambda c: bitmap.unpack(c.out(40), c.number(20), c.number(300), c.out(300)),
    "bitmap.copy": lambda c: bitmap.copy(c.out(40), c.number(20), c.number(300), c.out(40), c.number(20)),
    "bitmap.fill": lambda c: bitmap.fill(c.out(40), c.number(20), c.number(300), c.random.random() < 0.5),
    "bitmap.select": lambda c: bitmap.select(c.out(40), c.number(20), c.number(300), c.number(300)),
    "bitmap.count": lambda c: bitmap.count(c.out(40), c.number(20), c.number(300)),
    "bitmap.gather": lambda c: bitmap.gather(c.out(40), c.number(320), i := c.integers(300), c.out((len(i) + 7) // 8)),
}
