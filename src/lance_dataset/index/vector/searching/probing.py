"""Choice of the partitions that a search looks into."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Probing", "first_probes"]

#: For numbers of rows up to the first one: margin of the distance, and least and largest number of partitions.
_RULES: dict[str, tuple[tuple[float, float, int, int], ...]] = {
    "l2": (
        *((1, 0.2175, 5, 19), (10, 0.265, 6, 24), (100, 0.33, 11, 38), (200, 0.375, 15, 56)),
        *((500, 0.3725, 22, 81), (1000, 0.4175, 29, 93), (math.inf, 0.4175, 98, 392)),
    ),
    "cosine": (
        *((1, 0.235, 3, 50), (10, 0.2875, 8, 77), (100, 0.38, 7, 106), (200, 0.415, 18, 156)),
        *((500, 0.45, 28, 192), (1000, 0.47, 34, 248), (math.inf, 0.47, 104, 416)),
    ),
    "dot": (
        *((1, 0.14, 56, 112), (10, 0.055, 144, 432), (100, 0.0625, 200, 768), (200, 0.0675, 211, 833)),
        *((500, 0.07, 244, 971), (1000, 0.0725, 279, 1092), (math.inf, 0.0725, 279, 1116)),
    ),
}


@dataclass(frozen=True)
class Probing:
    """Wishes of a query about the partitions to look into.

    Attributes
    ----------
    least, most
        Numbers of partitions; None if the query does not say.
    is_fixed
        True if `least` is the number of partitions at first; False if a rule may raise it.
    effort
        Effort from 0 to 1 instead of numbers; None for the usual one.
    """

    least: int | None = None
    most: int | None = None
    is_fixed: bool = False
    effort: float | None = None

    def counts(self, distances: NDArray[np.float32], k: int, metric: str) -> tuple[int, int]:
        """Return how many partitions to search at first, and how many if these have too few rows.

        Parameters
        ----------
        distances
            Distances of the query to the centroids.
        k
            Number of rows to find.
        metric
            Metric of the index.
        """
        total = len(distances)
        most = min(total, self.most or total)
        least = min(self.least or 1, most)
        if self.is_fixed or not total:
            return least, most
        usual = first_probes(distances, k, metric)
        if self.effort is None:
            return min(max(least, usual), most), most
        low, high = max(least, 1), max(usual, 1)
        if self.effort <= 0.5:
            wanted = low ** (1 - 2 * self.effort) * high ** (2 * self.effort)
        else:
            wanted = high ** (2 - 2 * self.effort) * total ** (2 * self.effort - 1)
        return max(1, min(math.ceil(round(wanted, 9)), most)), most


def first_probes(distances: NDArray[np.float32], k: int, metric: str) -> int:
    """Return the usual number of partitions: of those whose centroids are nearly as near as the nearest one.

    Parameters
    ----------
    distances
        Distances of the query to the centroids.
    k
        Number of rows to find.
    metric
        Metric of the index.
    """
    margin, least, most = next(rule[1:] for rule in _RULES.get(metric, _RULES["l2"]) if k <= rule[0])
    nearest = float(distances.min())
    reach = margin * (abs(1 - nearest) if metric == "dot" else nearest)
    near = int(np.count_nonzero(distances <= nearest + reach))
    return min(max(near, least), most, len(distances))
