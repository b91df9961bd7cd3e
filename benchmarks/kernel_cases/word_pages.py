"""Pages of words, of a column of millions and of one of a few thousand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import word_pages

COUNT = word_pages.MAX_VALUES


def packed() -> Case:
    values, rows = rng().integers(0, 1_000_000, COUNT, np.int32), np.arange(0, COUNT, COUNT // 4000)[:4000]
    return Case(lambda: word_pages.encode(values, 0, COUNT, 4, True, rows, 100), values.nbytes)


def plain(count: int) -> Case:
    values = rng().standard_normal(count)
    return Case(lambda: word_pages.encode(values, 0, count, 8, True, np.arange(0, count, 20), 10), values.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "word_pages.encode, packed": packed,
    "word_pages.encode, plain, few": lambda: plain(5_000),
}
