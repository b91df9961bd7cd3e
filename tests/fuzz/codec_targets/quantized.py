from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import CodecError
from lancecodec.search.quantized import Partitions, distances_to, extra_codes, least_distances, rotate

WIDTHS = (4, 8, 2, 2, 1, 1)


def made(c: Chaos) -> tuple[Partitions, int, int, int]:
    """Return partitions, the bytes of a row, the dimension, and the number of factors."""
    storage, dimension = c.random.randrange(4), 8 * c.random.randint(1, 9)
    element = c.random.randrange(6) if storage == 0 else 0
    metric, bits = c.random.choice([0, 2]), c.random.choice([4, 8]) if storage == 1 else c.random.randint(1, 9)
    parts, raw = c.random.choice([1, 2, 4, 8]), c.flag()
    found = Partitions(
        *(storage, 3, dimension, element, metric),
        bits=bits,
        parts=parts,
        by_column=c.flag(),
        raw=raw,
        codebook=c.buffer(4 * dimension << bits) if storage == 1 else None,
        centroids=c.buffer(12 * dimension),
        squares=c.buffer(12),
        start=c.random.choice([0.0, -1.0]),
        step=c.random.choice([0.0, 0.1]),
    )
    width = (WIDTHS[element] * dimension, parts * bits // 8, dimension, dimension // 8)[storage]
    factors = 0 if storage != 3 else 2 if not raw else 3 if bits == 1 else 5
    return found, width, dimension, factors


def search(c: Chaos) -> object:
    found, width, dimension, factors = made(c)
    for number in range(3):
        rows = c.random.choice([0, 1, 32, 33, c.random.randint(0, 200)])
        addresses = c.integers(9) if c.flag() and rows < 9 else np.arange(rows, dtype=np.uint64)
        extra = c.out(rows * dimension) if factors == 5 else None
        found.fill(number, rows, c.out(rows * width), c.out(8 * rows), addresses, extra, [c.out(4 * rows)] * factors)
        if c.flag() and number != 1:
            with contextlib.suppress(CodecError):
                found.coarsen(number)
    k = c.number(30)
    allowed = None if c.flag() else c.out(20)
    numbers = np.array([0, 2, c.random.choice([1, 1, 1, 5, -1])], np.int64)
    return found.search(
        *(c.out(8 * dimension), numbers, c.out(12), k, np.zeros(1, np.int64), np.zeros(1, np.int64)),
        *(np.full(1, c.number(150)), allowed, c.number(160), c.number(2), None, c.random.choice([None, 3.0])),
        *(c.out(4 * 32), c.out(8 * 32), c.out(8 * 32)),
    )


def coarse(c: Chaos) -> object:
    rows, dimension, element = c.random.randint(0, 90), c.random.randint(1, 40), c.random.randrange(3)
    kind = (np.float32, np.float64, np.float16)[element]
    found = Partitions(0, 3, dimension, element, c.random.choice([0, 1, 2]))
    values = c.damaged(c.rng.standard_normal((rows, dimension)).astype(kind).tobytes(), 0.2)
    found.fill(0, rows, values, c.out(8 * rows), c.out(8 * rows))
    return found.coarsen(c.number(2) if c.flag(0.2) else 0)


def distances(c: Chaos) -> object:
    dimension, element, count = c.random.randint(1, 40), c.random.randrange(6), c.random.randint(0, 90)
    metric = c.random.randrange(3)
    return distances_to(
        c.out(8 * (dimension + 16)), c.out(count * dimension * WIDTHS[element]), count, dimension, element, metric,
        c.out(4 * count),
    )  # fmt: skip


def least(c: Chaos) -> object:
    return least_distances(c.out(4 * c.random.randint(0, 90)), c.number(40), c.out(8 * 40))


def rotation(c: Chaos) -> object:
    dimension = c.random.randint(1, 70)
    return rotate(c.out(4 * dimension * 2), dimension, c.out(4 * ((dimension + 7) // 8)))


def steps(c: Chaos) -> object:
    dimension, n = c.random.randint(1, 70), c.random.randint(0, 3)
    first = c.random.choice([0.0, 0.5, 0.99, 1.0, float("nan")])
    return extra_codes(c.out(4 * dimension * n), dimension, c.number(9), first, c.out(dimension * n))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "quantized.search": search,
    "quantized.coarsen": coarse,
    "quantized.distances_to": distances,
    "quantized.least_distances": least,
    "quantized.rotate": rotation,
    "quantized.extra_codes": steps,
}
