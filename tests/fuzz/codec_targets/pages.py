from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.pages import EndsPages, FixedPages


def fixed_pages(c: Chaos) -> object:
    starts = [0, *sorted(c.random.randint(0, 200) for _ in range(c.random.randint(0, 5)))]
    sizes = np.diff(starts).tolist()
    bits = c.random.choice([1, 8, 8, 16, 32, 64, 128, 24, 800, c.number()])
    plausible = bits if isinstance(bits, int) and 0 < bits < 1000 else 8
    present = c.random.random()
    values = [c.out((n * plausible + 7) // 8) if c.random.random() < 0.9 else None for n in sizes]
    validity = [c.out((n + 7) // 8) if c.random.random() < present else None for n in sizes]
    if c.random.random() < 0.05:
        starts[-1] = c.number()
    pages = FixedPages(starts, bits, values, validity)
    del values, validity
    rows = c.integers(max(starts[-1], 1))
    validity_out = c.out((len(rows) + 7) // 8) if pages.has_nulls or c.random.random() < 0.3 else None
    return pages.take(rows, c.out((len(rows) * plausible + 7) // 8), validity_out)


def ends_page(c: Chaos, rows: int) -> Any:
    if c.random.random() < 0.1:
        return None
    codes, entries = None, 0
    if c.random.random() < 0.3:
        codes, entries = c.out(rows), c.random.choice([0, 1, 40, 255, c.number()])
    count = entries if codes is not None and isinstance(entries, int) and 0 <= entries < 300 else rows
    raw = np.cumsum(c.rng.integers(0, 9, count)).astype(np.uint64)
    limit = int(raw[-1]) if count else 0
    adjustment = limit + c.random.choice([0, 1, 1, 1, 1, 50])
    raw = raw + (c.rng.random(count) < 0.3).astype(np.uint64) * np.uint64(adjustment)
    ends = raw.view(np.uint8) if c.random.random() < 0.8 else c.out(8 * count)
    data = c.out(limit) if c.random.random() < 0.8 else None
    base = c.random.choice([0, 5, c.number()])
    return ends, adjustment, limit if c.random.random() < 0.9 else c.number(), base, data, codes, entries


def ends_pages(c: Chaos) -> object:
    starts = [0, *sorted(c.random.randint(0, 200) for _ in range(c.random.randint(0, 5)))]
    pages = EndsPages(starts, [ends_page(c, n) for n in np.diff(starts).tolist()])
    rows, wide = c.integers(starts[-1]), c.random.random() < 0.5
    offsets, validity = c.out((len(rows) + 1) * (8 if wide else 4)), c.out((len(rows) + 7) // 8)
    begins = c.integers(5, len(rows)) if c.random.random() < 0.5 else None
    total, _ = pages.take_offsets(rows, wide, offsets, validity, begins)
    if c.random.random() < 0.1:
        offsets = c.out((len(rows) + 1) * (8 if wide else 4))
    return pages.take_bytes(rows, wide, offsets, c.out(min(total, 10_000)))


TARGETS: dict[str, Callable[[Chaos], object]] = {"pages.FixedPages": fixed_pages, "pages.EndsPages": ends_pages}
