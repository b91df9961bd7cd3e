from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import clusters


def nearest(dimension: int, count: int) -> Case:
    rows = max(VALUES // dimension, 64)
    vectors = rng().standard_normal((rows, dimension), np.float32)
    panels = rng().standard_normal((count // clusters.PANEL, dimension, clusters.PANEL), np.float32)
    biases, numbers, scores = np.zeros(count, np.float32), np.empty(rows, np.int32), np.empty(rows, np.float32)
    return Case(lambda: clusters.nearest(vectors, dimension, panels, biases, numbers, scores), vectors.nbytes)


def add_up(dimension: int) -> Case:
    rows = max(VALUES // dimension, 64)
    vectors = rng().standard_normal((rows, dimension), np.float32)
    numbers = rng().integers(0, 256, rows, np.int32)
    sums, sizes = np.zeros((256, dimension)), np.zeros(256, np.int64)
    return Case(lambda: clusters.add_up(vectors, dimension, numbers, 256, sums, sizes), vectors.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "clusters.nearest, 256 of 128": lambda: nearest(128, 256),
    "clusters.nearest, 256 of 8": lambda: nearest(8, 256),
    "clusters.add_up, 128": lambda: add_up(128),
}
