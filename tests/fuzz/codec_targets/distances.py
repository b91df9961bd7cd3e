from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import CodecError
from lancecodec.search.distances import Coarse, Nearest, query_size

WIDTHS = (4, 8, 2, 2, 1, 1)


def search(c: Chaos, lists: bool) -> tuple[Nearest, int, int]:
    """Return a search, and the bytes of a vector and the number of queries."""
    element, metric, dimension = c.random.randrange(6), c.random.randrange(4), c.random.randint(1, 40)
    if metric == 3:
        element = 5
    queries = c.random.randint(1, 6)
    size = query_size(dimension, element, metric)
    limits = (c.random.choice([None, -1.0, float("nan")]), c.random.choice([None, 3.0, float("inf")]))
    made = Nearest(c.buffer(size * queries), dimension, element, metric, c.number(9), lists, *limits)
    return made, dimension * WIDTHS[element], queries


def bits(c: Chaos, count: int) -> Any:
    return None if c.flag() else c.out((count + 7) // 8 + 1)


def chosen(c: Chaos, count: int) -> tuple[Any, int]:
    if c.flag() or not count:
        return None, count
    rows = c.integers(count)
    return rows, len(rows)


def drained(c: Chaos, made: Nearest, queries: int) -> object:
    for number in range(queries):
        count = made.count(number)
        made.drain(number, c.out(4 * count), c.out(8 * count), c.out(8 * count))
    return made.count(c.number(queries))


def add(c: Chaos) -> object:
    made, size, queries = search(c, lists=False)
    for _ in range(c.random.randint(1, 3)):
        count = c.random.choice([0, 1, c.random.randint(0, 200)])
        rows, wanted = chosen(c, count)
        ids = None if c.flag() else c.out(8 * wanted)
        addresses = None if c.flag() else c.out(8 * wanted)
        base = c.number(1000)
        made.add(c.out(size * count), count, rows, bits(c, count), c.random.choice([0, 0, 3, -1]), addresses, base, ids)
    return drained(c, made, queries)


def add_coarse(c: Chaos) -> object:
    element, dimension, count = c.random.randrange(3), c.random.randint(1, 40), c.random.randint(2, 200)
    kind = (np.float32, np.float64, np.float16)[element]
    values = c.damaged(c.rng.standard_normal((count, dimension)).astype(kind).tobytes(), 0.05)
    codes = Coarse(values, c.number(200) if c.flag(0.1) else count, dimension, element)
    if c.flag(0.1):
        made, _, queries = search(c, lists=c.flag())
    else:
        metric, queries = c.random.randrange(3), 1
        query = c.buffer(query_size(dimension, element, metric))
        made = Nearest(query, dimension, element, metric, c.random.randint(1, 9), False, c.random.choice([None, 0.5]))
    made.add_coarse(values if c.flag(0.8) else c.out(len(values)), codes, c.random.randint(0, 1000))
    return drained(c, made, queries)


def add_lists(c: Chaos) -> object:
    made, size, _ = search(c, lists=True)
    wide, lists = c.flag(), c.random.randint(0, 20)
    ends = np.cumsum(np.append(0, c.rng.integers(0, 5, lists)))
    count = int(ends[-1])
    if c.flag(0.1):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, count + 1, 2**31 - 1, -(2**31)])
    offsets = c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05)
    rows, wanted = chosen(c, lists)
    ids = None if c.flag() else c.out(8 * wanted)
    made.add_lists(
        *(c.out(size * count), count, bits(c, count), c.random.choice([0, 2, -1]), offsets, wide),
        *(rows, bits(c, lists), 0, None, c.number(9), ids),
    )
    return drained(c, made, 1)


def merge(c: Chaos) -> object:
    made, size, queries = search(c, lists=False)
    other = search(c, lists=False)[0]
    made.add(c.buffer(size * 9), 9, None, None, 0, None, 0, None)
    try:
        made.merge(other)
    except CodecError:
        made.merge(made)
    return drained(c, made, queries)


def sizes(c: Chaos) -> object:
    return query_size(c.number(99), c.number(5), c.number(3))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "distances.query_size": sizes,
    "distances.add": add,
    "distances.add_coarse": add_coarse,
    "distances.add_lists": add_lists,
    "distances.merge": merge,
}
