from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from lancecodec.search import clusters


def nearest(c: Chaos) -> object:
    dimension, rows, panels = c.random.randint(1, 40), c.random.randint(0, 60), c.random.randint(0, 4)
    return clusters.nearest(
        c.buffer(4 * rows * dimension),
        dimension if c.random.random() < 0.9 else c.number(),
        c.buffer(4 * clusters.PANEL * panels * dimension),
        c.buffer(4 * clusters.PANEL * panels),
        *(c.out(4 * rows), c.out(4 * rows)),
    )


def add_up(c: Chaos) -> object:
    dimension, rows, count = c.random.randint(1, 40), c.random.randint(0, 60), c.random.randint(0, 300)
    return clusters.add_up(
        c.buffer(4 * rows * dimension),
        dimension if c.random.random() < 0.9 else c.number(),
        c.out(4 * rows),
        count if c.random.random() < 0.9 else c.number(),
        *(c.out(8 * count * dimension), c.out(8 * count)),
    )


TARGETS: dict[str, Callable[[Chaos], object]] = {"clusters.nearest": nearest, "clusters.add_up": add_up}
