from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search.quantized import STORAGES, Partitions, distances_to, extra_codes, least_distances, rotate

DIMENSION = 128

#: Centroids of a large index.
CENTROIDS = 1 << 13


def search(storage: str, **options: int) -> Case:
    """Search one partition."""
    rows, bits = max(VALUES // DIMENSION, 64), options.get("bits", 8)
    number = STORAGES.index(storage)
    centroids, codebook = np.zeros((1, DIMENSION), np.float32), None
    width = {"FLAT": 4 * DIMENSION, "SQ": DIMENSION, "RQ": DIMENSION // 8}.get(storage, 0)
    if storage == "PQ":
        width = options["parts"] * bits // 8
        codebook = rng().standard_normal(DIMENSION << bits).astype(np.float32)
    made = Partitions(
        *(number, 1, DIMENSION, 0, 0),
        **options,
        by_column=True,
        raw=True,
        codebook=codebook,
        centroids=centroids,
        squares=centroids,
        step=0.1,
    )
    codes = rng().integers(0, 100, rows * width, np.uint8)
    ids = np.arange(rows, dtype=np.uint64)
    factors = [np.ones(rows, np.float32)] * (3 if bits == 1 else 5) if storage == "RQ" else []
    extra = rng().integers(0, 15, rows * DIMENSION, np.uint8) if storage == "RQ" else None
    made.fill(0, rows, codes, ids, ids, extra, factors)
    query = rng().standard_normal(DIMENSION).astype(np.float32)
    near, found, places = np.empty(10, np.float32), np.empty(10, np.uint64), np.empty(10, np.uint64)
    fragment, start, size = np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, rows)
    numbers, distances = np.zeros(1, np.int64), np.ones(1, np.float32)

    def work() -> None:
        made.search(
            *(query, numbers, distances, 10, fragment, start, size, None, 0, 1, None, None, near, found, places)
        )

    return Case(work, rows * width)


def coarse_codes() -> Case:
    """Make the coarse codes of a partition."""
    rows = max(VALUES // DIMENSION, 64)
    vectors, ids = rng().standard_normal((rows, DIMENSION)).astype(np.float32), np.arange(rows, dtype=np.uint64)

    def work() -> None:
        made = Partitions(STORAGES.index("FLAT"), 1, DIMENSION, 0, 0)
        made.fill(0, rows, vectors, ids, ids)
        made.coarsen(0)

    return Case(work, vectors.nbytes)


def rotation() -> Case:
    vectors = rng().standard_normal((64, DIMENSION)).astype(np.float32)
    signs = rng().integers(0, 256, DIMENSION // 2, np.uint8)
    return Case(lambda: rotate(vectors, DIMENSION, signs), vectors.nbytes)


def steps() -> Case:
    vectors = rng().standard_normal((64, DIMENSION)).astype(np.float32)
    codes = np.empty(vectors.size, np.uint8)
    return Case(lambda: extra_codes(vectors, DIMENSION, 4, 0.59, codes), vectors.nbytes)


def centroids() -> Case:
    vectors = rng().standard_normal((CENTROIDS, DIMENSION)).astype(np.float32)
    out = np.empty(CENTROIDS, np.float32)
    return Case(lambda: distances_to(vectors[0], vectors, CENTROIDS, DIMENSION, 0, 0, out), vectors.nbytes)


def order() -> Case:
    distances = rng().random(CENTROIDS, np.float32)
    numbers = np.empty(CENTROIDS // 64, np.int64)
    return Case(lambda: least_distances(distances, len(numbers), numbers), distances.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "quantized.search, flat": lambda: search("FLAT"),
    "quantized.search, PQ 8 bits": lambda: search("PQ", bits=8, parts=16),
    "quantized.search, PQ 4 bits": lambda: search("PQ", bits=4, parts=32),
    "quantized.search, SQ": lambda: search("SQ"),
    "quantized.search, RQ 1 bit": lambda: search("RQ", bits=1),
    "quantized.search, RQ 5 bits": lambda: search("RQ", bits=5),
    "quantized.coarsen": coarse_codes,
    "quantized.rotate": rotation,
    "quantized.extra_codes": steps,
    "quantized.distances_to": centroids,
    "quantized.least_distances": order,
}
