"""Slices of many ranges: rows, width and cuts are those of the ranges one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest

from lance_dataset.scan.windows import Slice


@pytest.mark.parametrize("count", [1, 2, 8, 9, 10, 300])
def test_cuts(count: int) -> None:
    random = np.random.default_rng(count)
    bounds = np.cumsum(random.integers(1, 4, 2 * count)).tolist()
    whole = Slice(cast("Any", None), tuple(pairwise(bounds))[::2])
    rows = [row for start, stop in whole.ranges for row in range(start, stop)]
    assert whole.rows.tolist() == rows
    assert whole.width == len(rows)
    for _ in range(200):
        first, stop = random.integers(-2, len(rows) + 3, 2).tolist()
        part = whole.cut(first, stop)
        assert part.rows.tolist() == rows[max(first, 0) : max(stop, 0)]
        assert part.width == len(part.rows)
        assert all(low < high for low, high in part.ranges)
