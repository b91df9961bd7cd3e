"""Shares of a job: how many tasks run at once, and which pieces each of them gets."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

__all__ = ["cores", "grouped"]


def cores(spark: Any) -> int:
    """Return the number of tasks that run at once; Spark Connect does not say it."""
    context = getattr(spark, "_jsc", None)  # a JavaSparkContext
    return int(context.defaultParallelism()) if context is not None else os.cpu_count() or 1


def grouped(numbers: Sequence[int], count: int) -> list[list[int]]:
    """Cut numbers into at most `count` lists of about the same length."""
    count = min(count, len(numbers))
    bounds = [len(numbers) * part // count for part in range(count + 1)] if count else []
    return [list(numbers[start:stop]) for start, stop in itertools.pairwise(bounds)]
