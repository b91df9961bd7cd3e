from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.miniblock import counts_of, joined, level_buffers, opened
from lancecodec import miniblock_levels as levels
from lancecodec.miniblock_levels import Levels, RepetitionIndex


def definitions(c: Chaos) -> object:
    """Read single definition levels of a page without lists."""
    counts, top = counts_of(c), c.random.randint(1, 5)
    kind = c.random.choice([levels.FLAT, levels.RLE])
    parts = [[level_buffers(c, kind, n, top)] for n in counts]
    page = opened(c, [[b""] for _ in counts], counts, levels=counts, level_streams=joined(parts))
    column = Levels(page, definition=(kind, 0), max_definition=c.random.choice([top, 65_535]))
    items = c.integers(sum(counts))
    return column.take(items, c.out(2 * len(items)))


def rows(c: Chaos) -> object:
    """Read whole rows of a page of lists whose entries all own a value."""
    counts = counts_of(c)
    n = sum(counts)
    starts = c.rng.random(n) < c.random.choice([0.01, 0.3, 0.9])
    starts[0] = True
    edges = np.append(0, np.cumsum(counts))
    streams = [[starts[a:b].astype(np.uint16).tobytes(), bytes(2 * (b - a))] for a, b in pairwise(edges)]
    page = opened(c, [[b""] for _ in counts], counts, levels=counts, level_streams=joined(streams))
    column = Levels(
        page,
        repetition=(levels.FLAT, 0),
        definition=(levels.FLAT, 0),
        max_repetition=1,
        max_definition=c.random.choice([0, 1, 9]),
    )
    started = np.array([int(starts[:stop].sum()) for stop in edges[1:]])
    within = np.append(~starts[edges[1:-1]], False)
    pairs = np.stack([np.diff(started - within, prepend=0), within], 1).astype(np.uint64)
    index = RepetitionIndex(c.damaged(pairs, 0.2), len(counts), int(starts.sum()))
    wanted = c.integers(index.num_rows)
    begins, found = (np.zeros(len(wanted) - (c.random.random() < 0.05 and len(wanted) > 0), np.int64) for _ in range(2))
    return column.take_rows(index, wanted, begins, found)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "miniblock_rows.take": definitions,
    "miniblock_rows.take_rows": rows,
}
