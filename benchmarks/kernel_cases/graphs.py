from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search.graphs import GraphBuilder, GraphPartitions
from lancecodec.search.quantized import STORAGES

DIMENSION, DEGREE = 128, 20


def walk(storage: str) -> Case:
    """Walk the graph of one partition: neighbors along a line of vectors, and some at random."""
    rows, number = max(VALUES // DIMENSION, 512), STORAGES.index(storage)
    places = np.arange(rows)[:, None] + np.arange(-DEGREE // 4, DEGREE // 4)
    neighbors = np.concatenate([places % rows, rng().integers(0, rows, (rows, DEGREE // 2))], axis=1)
    made = GraphPartitions(number, 1, DIMENSION, 0, 0, step=0.1)
    ends = (np.arange(rows + 1) * DEGREE).astype(np.uint32)
    bounds, nodes = np.array([0, rows]), np.arange(rows, dtype=np.uint32)
    made.link(0, rows, 0, bounds, nodes, ends, neighbors.astype(np.uint32).ravel())
    vectors = np.cumsum(rng().standard_normal((rows, DIMENSION)), axis=0)
    codes = vectors.astype(np.float32) if storage == "FLAT" else np.clip(vectors + 128, 0, 255).astype(np.uint8)
    ids = np.arange(rows, dtype=np.uint64)
    made.fill(0, rows, codes, ids, ids)
    query = vectors[rows // 2].astype(np.float32)
    near, found, places_found = np.empty(10, np.float32), np.empty(10, np.uint64), np.empty(10, np.uint64)
    fragment, start, size = np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, rows)
    numbers, distances = np.zeros(1, np.int64), np.ones(1, np.float32)

    def work() -> None:
        made.search(
            *(query, numbers, distances, 10, fragment, start, size, None, 0, 1, None, None),
            *(near, found, places_found, 15),
        )

    return Case(work, 15 * DEGREE * codes.itemsize * DIMENSION)


def build(element: int) -> Case:
    """Build a graph of one level."""
    rows = max(VALUES // DIMENSION // 4, 256)
    drawn = rng().standard_normal((rows, DIMENSION))
    vectors = np.clip(drawn * 40 + 128, 0, 255).astype(np.uint8) if element == 5 else drawn.astype(np.float32)
    heights, order = np.zeros(rows, np.uint8), np.arange(rows, dtype=np.uint32)

    def work() -> None:
        scale = 1.0 if element == 5 else 0.0
        made = GraphBuilder(vectors, rows, DIMENSION, element, 0, heights, order, 20, 150, scale)
        made.run(rows)
        made.finish()

    return Case(work, vectors.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "graphs.walk, flat": lambda: walk("FLAT"),
    "graphs.walk, SQ": lambda: walk("SQ"),
    "graphs.build, 32-bit floats": lambda: build(0),
    "graphs.build, bytes": lambda: build(5),
}
