from __future__ import annotations

from collections.abc import Callable

from codec_targets.chaos import Chaos
from codec_targets.dictionary import strings, validity
from lancecodec import statistics
from lancecodec.statistics import DistinctSketch


def fixed(c: Chaos) -> object:
    width, count = c.random.choice([1, 2, 4, 8, c.number()]), c.size()
    plausible = width if width in (1, 2, 4, 8) else 1
    kind = c.random.choice(["u", "i", "f", c.random.choice(["", "x"])])
    widths = c.out((count + 1023) // 1024) if c.random.random() < 0.5 else None
    cut = c.random.choice([0, 128, 256, 4096, c.number()])
    return repr(statistics.fixed(c.buffer(count * plausible), width, kind, *validity(c, count), widths, cut))


def fixed_bytes(c: Chaos) -> object:
    width, count = c.random.choice([1, 3, 12, 16, 32, c.number()]), c.size() % 1000
    plausible = width if isinstance(width, int) and 0 < width < 100 else 1
    return repr(statistics.fixed_bytes(c.buffer(count * plausible), width, *validity(c, count)))


def variable(c: Chaos) -> object:
    count, data, offsets, wide = strings(c)
    return repr(statistics.variable(data, offsets, wide, *validity(c, count)))


def byte_entropy(c: Chaos) -> object:
    width = c.random.choice([1, 4, 8, 16, c.number()])
    plausible = width if isinstance(width, int) and 0 < width < 100 else 1
    return statistics.byte_entropy(c.buffer(c.size() * plausible), width)


def sketch(c: Chaos) -> object:
    made = DistinctSketch(c.random.choice([4, 12, c.number(20)]))
    if c.random.random() < 0.5:
        count, data, offsets, wide = strings(c)
        made.add_variable(data, offsets, wide, *validity(c, count))
    else:
        count, width = c.size(), c.random.randint(1, 20)
        made.add_fixed(c.buffer(count * width), width, *validity(c, count))
    data = bytes(made) if c.random.random() < 0.7 else c.buffer(16)
    made.merge(DistinctSketch.from_bytes(data))
    return made.estimate()


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "statistics.fixed": fixed,
    "statistics.fixed_bytes": fixed_bytes,
    "statistics.variable": variable,
    "statistics.byte_entropy": byte_entropy,
    "statistics.DistinctSketch": sketch,
}
