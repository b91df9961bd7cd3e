from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.dictionary import strings, validity
from lancecodec import gather


def fixed(c: Chaos) -> object:
    width, index_width, count = c.number(40), c.random.choice([1, 1, 2, 4, 8, c.number()]), c.size()
    plausible = width if isinstance(width, int) and 0 <= width <= 100 else 8
    entry = index_width if index_width in (1, 2, 4, 8) else 1
    indices, out = c.out(count * entry), c.out(count * plausible)
    return gather.fixed(c.buffer(), width, indices, index_width, out, *validity(c, count))


def binary(c: Chaos) -> object:
    """Gather in two passes, with codes that mostly have an entry."""
    entries, data, offsets, wide = strings(c)
    count, index_width, out_wide = c.size() % 3000, c.random.choice([1, 2, 4, 8]), c.random.random() < 0.5
    codes = c.rng.integers(0, max(min(entries, 2 ** min(8 * index_width, 62)), 1), count)
    if count and c.random.random() < 0.2:
        codes[c.random.randrange(count)] = c.random.choice([entries, 2**31, -1])
    indices = np.frombuffer(bytearray(codes.astype(f"<i{index_width}").tobytes()), np.uint8)
    nulls, bit = validity(c, count)
    places = c.out((count + 1) * (8 if out_wide else 4))
    base = 0 if c.random.random() < 0.8 else c.number()
    total = gather.binary_offsets(data, offsets, wide, indices, index_width, out_wide, places, base, nulls, bit)
    return gather.binary(data, offsets, wide, indices, index_width, c.out(min(total, 10**6)), nulls, bit)


def short(c: Chaos) -> object:
    """Gather in one pass, with codes that mostly have an entry."""
    entries, data, offsets, wide = strings(c)
    count, index_width, out_wide = c.size() % 3000, c.random.choice([1, 2, 4, 8]), c.random.random() < 0.5
    codes = c.rng.integers(0, max(min(entries, 2 ** min(8 * index_width, 62)), 1), count)
    if count and c.random.random() < 0.2:
        codes[c.random.randrange(count)] = c.random.choice([entries, 2**31, -1])
    table = gather.ShortEntries(data, offsets, wide)
    indices = np.frombuffer(bytearray(codes.astype(f"<i{index_width}").tobytes()), np.uint8)
    places = c.out((count + 1) * (8 if out_wide else 4))
    base = 0 if c.random.random() < 0.8 else c.number()
    return table.gather(indices, index_width, out_wide, places, c.out(table.room(count)), base)


def variable(c: Chaos) -> object:
    count, index_width = c.size() % 500, c.random.choice([1, 2, 4, 8])
    ends, places = np.sort(c.integers(300)), np.sort(c.integers(9000, count + 1))
    index = c.out(count * index_width)
    if c.random.random() < 0.5:
        return gather.variable_offsets(ends, index, index_width, c.integers(5, count + c.random.choice([0, 1])))
    return gather.variable(c.out(300), ends, index, index_width, places, c.out(9000))


def expand(c: Chaos) -> object:
    begins, wide = c.integers(10**6), c.random.random() < 0.5
    return gather.expand_ranges(begins, c.out((len(begins) + 1) * (8 if wide else 4)), wide, c.integers(9, c.size()))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "gather.fixed": fixed,
    "gather.binary": binary,
    "gather.ShortEntries": short,
    "gather.variable": variable,
    "gather.expand_ranges": expand,
}
