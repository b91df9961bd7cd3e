from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import row_sets
from lancecodec.search.row_sets import RowSets


def values(c: Chaos) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of several sets, mostly ascending in each, and mostly ascending stops."""
    parts = []
    for _ in range(c.random.randint(0, 5)):
        top = 1 << c.random.choice([8, 15, 18, 40])
        count = min(c.random.choice([0, 1, 5, 200, 9000]), top)
        parts.append(np.unique(c.rng.integers(0, top, count, np.uint64)))
    stops = np.cumsum([len(part) for part in parts], dtype=np.int64)
    found = np.concatenate([np.empty(0, np.uint64), *parts])
    if len(found) and c.flag(0.1):
        found[c.random.randrange(len(found))] = c.random.choice([0, 1 << 63])
    if len(stops) and c.flag(0.1):
        stops[c.random.randrange(len(stops))] = c.random.choice([-1, 1 << 62, len(found) + 1])
    return found, stops


def form(c: Chaos) -> tuple[int, bool]:
    return c.random.choice([(8, False), (4, True), (4, False), (8, True), (5, True)])


def measure(c: Chaos) -> object:
    found, stops = values(c)
    return row_sets.measure(found, stops, *form(c), np.empty(len(stops) + c.flag(0.95), np.int64))


def encode(c: Chaos) -> object:
    found, stops = values(c)
    kind, bounds = form(c), np.empty(len(stops) + 1, np.int64)
    row_sets.measure(found, stops, *kind, bounds)
    out = c.out(int(bounds[-1]))
    if c.flag(0.1):
        bounds[c.random.randrange(len(bounds))] += c.random.choice([-1, 1])
    return row_sets.encode(found, stops, *kind, bounds, out)


def opened(c: Chaos) -> tuple[RowSets, int, int]:
    """Return sets that may be damaged, with their number and bytes."""
    found, stops = values(c)
    kind, bounds = c.random.choice([(8, False), (4, True)]), np.empty(len(stops) + 1, np.int64)
    row_sets.measure(found, stops, *kind, bounds)
    out = np.empty(int(bounds[-1]), np.uint8)
    row_sets.encode(found, stops, *kind, bounds, out)
    return RowSets(c.damaged(out, 0.4), bounds, *kind), len(stops), len(out)


def decode(c: Chaos) -> object:
    sets, count, _ = opened(c)
    stops = np.empty(count, np.int64)
    counts = np.empty(sets.describe(stops, np.empty(0, np.int64)), np.int64)
    sets.describe(stops, counts)
    stop = c.number(len(counts))
    size = int(counts[:stop].sum()) if isinstance(stop, int) and 0 <= stop <= len(counts) else 5
    return sets.decode(0, stop, np.empty(max(size + c.random.choice([0, 0, 0, -1, 1]), 0), np.uint64))


def intersect(c: Chaos) -> object:
    return opened(c)[0].intersect(np.empty(c.random.choice([0, 3, 9000, 1 << 17]), np.uint64))


def unite(c: Chaos) -> object:
    sets, count, size = opened(c)
    order, unions = c.integers(count), c.random.randint(1, 3)
    stops = np.sort(c.rng.integers(0, len(order) + 1 + c.flag(0.05), unions))
    return sets.unite(order, stops, np.empty(unions + 1, np.int64), c.out((len(order) + 1) * size + 24))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "row_sets.measure": measure,
    "row_sets.encode": encode,
    "row_sets.RowSets.decode": decode,
    "row_sets.RowSets.intersect": intersect,
    "row_sets.RowSets.unite": unite,
}
