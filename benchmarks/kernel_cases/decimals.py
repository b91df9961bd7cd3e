from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import decimals


def numbers(count: int) -> np.ndarray:
    words = np.empty((count, 2), np.int64)
    words[:, 0] = rng().integers(-(10**9), 10**9, count)
    words[:, 1] = words[:, 0] >> 63
    return words


def multiply(others: int) -> Case:
    left, right, out = numbers(VALUES), numbers(others), np.empty(2 * VALUES, np.int64)
    return Case(lambda: decimals.multiply(left, right, VALUES, 10**38 - 1, out), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "decimals.multiply": lambda: multiply(VALUES),
    "decimals.multiply, one": lambda: multiply(1),
}
