from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import dictionary

LIMIT = 100_000


def fixed(width: int, distinct: int, nulls: bool = False) -> Case:
    pool = rng().integers(0, 256, (distinct, width), np.uint8)
    values = pool[rng().integers(0, distinct, VALUES)]
    validity = np.packbits(rng().random(VALUES) < 0.8, bitorder="little") if nulls else None
    codes, positions = np.empty(VALUES, np.uint32), np.empty(LIMIT, np.int64)
    return Case(lambda: dictionary.build_fixed(values, width, codes, 4, positions, validity), values.nbytes)


def too_many() -> Case:
    """Measure how early unique values are given up; the size is that of the values read."""
    values = rng().permutation(VALUES)
    codes, positions = np.empty(VALUES, np.uint32), np.empty(LIMIT, np.int64)
    return Case(lambda: dictionary.build_fixed(values, 8, codes, 4, positions), 8 * LIMIT)


def variable(shortest: int, longest: int, distinct: int) -> Case:
    lengths = rng().integers(shortest, longest + 1, distinct)
    pool = [rng().integers(97, 123, n, np.uint8).tobytes() for n in lengths]
    picks = rng().integers(0, distinct, VALUES)
    data = b"".join(pool[i] for i in picks)
    offsets = np.concatenate([[0], np.cumsum(lengths[picks])]).astype(np.int32)
    codes, positions = np.empty(VALUES, np.uint32), np.empty(LIMIT, np.int64)
    return Case(
        lambda: dictionary.build_variable(data, offsets, False, codes, 4, positions), len(data) + offsets.nbytes
    )


def sample(distinct: int) -> Case:
    values = rng().integers(0, distinct, VALUES)
    return Case(lambda: dictionary.sample_fixed(values, 8), 8 * 4096)


CASES: dict[str, Callable[[], Case]] = {
    "dictionary.build_fixed, 2 bytes, 2000": lambda: fixed(2, 2_000),
    "dictionary.build_fixed, 4 bytes, 200": lambda: fixed(4, 200),
    "dictionary.build_fixed, 8 bytes, 10": lambda: fixed(8, 10),
    "dictionary.build_fixed, 8 bytes, 2000": lambda: fixed(8, 2_000),
    "dictionary.build_fixed, 8 bytes, 2000, nulls": lambda: fixed(8, 2_000, nulls=True),
    "dictionary.build_fixed, 8 bytes, 50000": lambda: fixed(8, 50_000),
    "dictionary.build_fixed, 16 bytes, 200": lambda: fixed(16, 200),
    "dictionary.build_fixed, too many": too_many,
    "dictionary.build_variable, 4 to 12 bytes, 200": lambda: variable(4, 12, 200),
    "dictionary.build_variable, 10 to 40 bytes, 200": lambda: variable(10, 40, 200),
    "dictionary.build_variable, 4 to 12 bytes, 50000": lambda: variable(4, 12, 50_000),
    "dictionary.sample_fixed, unique": lambda: sample(10**9),
}
