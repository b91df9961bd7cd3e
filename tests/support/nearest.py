"""Comparison of vector searches of both packages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import numpy as np

import lance_dataset

__all__ = ["check_nearest"]


def check_nearest(
    path: Path, queries: Iterable[Any], tolerance: float, share: float, *, farther: float = 0, **options: Any
) -> None:
    """Run searches with both packages on the same files, and compare rows and distances.

    No row may be farther than the one that pylance has in its place. It may be nearer, in a share of the places: graphs
    that pylance builds differ from run to run, its walks do not reach all rows, and small partitions are scanned here.
    Rows of equal distances may differ. A share `farther` of the places may have farther rows: where many codes have
    equal distances, walks go other ways.
    """
    equal = worse = total = 0
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    for query in queries:
        asked = {**options, "nearest": {**options["nearest"], "q": query}, "columns": ["id", "_distance"]}
        mine, other = (each.to_table(**asked) for each in (ours, theirs))
        known = dict(zip(other["id"].to_pylist(), other["_distance"].to_pylist(), strict=True))
        for row, distance in zip(mine["id"].to_pylist(), mine["_distance"].to_pylist(), strict=True):
            assert abs(known.get(row, distance) - distance) <= tolerance * (1 + abs(distance)), (row, query)
        expected = np.asarray(other["_distance"])
        assert mine.num_rows >= len(expected)
        excess = (np.asarray(mine["_distance"])[: len(expected)] - expected) / (1 + np.abs(expected))
        assert farther or (excess <= tolerance).all(), (mine, other)
        worse += int(np.count_nonzero(excess > tolerance))
        equal += int(np.count_nonzero(np.abs(excess) <= tolerance))
        total += len(expected)
    assert equal >= share * total > 0
    assert worse <= farther * total
