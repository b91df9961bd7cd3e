"""Fusion of two rankings of rows, by text and by vector, into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.late_dataclass import dataclass

__all__ = ["FUSIONS", "Fused", "Fusion", "FusionMethod"]

FusionMethod: TypeAlias = Literal["rrf", "weighted"]
FUSIONS = ("rrf", "weighted")
_SIDES = 2

Addresses = NDArray[np.uint64]
Numbers = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Fused:
    """Rows of two rankings, the most relevant first.

    Attributes
    ----------
    addresses : uint64[n]
        Addresses of the rows.
    relevance : float32[n]
        What they are ordered by.
    places : tuple of int64[n]
        Place of each row in the first and in the second ranking; -1 where a ranking does not have it.
    """

    addresses: Addresses
    relevance: Numbers
    places: tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Fusion:
    """Rule for the relevance of rows, given their places or scores in two rankings.

    Attributes
    ----------
    method
        ``rrf`` (reciprocal rank fusion): the sum of ``weight / (rrf_k + place)`` over the rankings, with places from 1.
        ``weighted``: the sum of ``weight * score``, with the scores of each ranking spread over 0 to 1.
    weights
        Weight of each ranking.
    rrf_k
        The larger, the less the first places stand out.

    Notes
    -----
    Cormack, Clarke and Buettcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009.
    """

    method: str = "rrf"
    weights: tuple[float, float] = (1.0, 1.0)
    rrf_k: float = 60.0

    @classmethod
    def of(cls, method: object, weights: object, rrf_k: object) -> Fusion:
        """Check what a user gives; None for the default weights.

        Raises
        ------
        TypeError
            A value has the wrong type.
        InvalidInputError
            A value is never valid.
        """
        if method not in FUSIONS:
            raise InvalidInputError(f"fusion must be one of {', '.join(FUSIONS)}, not {method!r}")
        constant = _number("rrf_k", rrf_k)
        if weights is None:
            return cls(str(method), rrf_k=constant)
        if isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != _SIDES:
            raise TypeError(f"weights must be a pair of numbers, for the text and for the vector, not {weights!r}")
        first, second = (_number("a weight", each) for each in weights)
        if not first + second:
            raise InvalidInputError("the weights of the text and of the vector must not both be 0")
        return cls(str(method), (first, second), constant)

    def fuse(self, first: tuple[Addresses, Numbers], second: tuple[Addresses, Numbers]) -> Fused:
        """Unite two rankings; rows of equal relevance are in the order of the table.

        Parameters
        ----------
        first, second
            Addresses of the rows, the best first, and their scores, of which larger ones are better.
        """
        rankings = first, second
        rows = np.unique(np.concatenate([addresses for addresses, _ in rankings]))
        relevance = np.zeros(len(rows), np.float64)
        places = []
        for (addresses, scores), weight in zip(rankings, self.weights, strict=True):
            mine = np.searchsorted(rows, addresses)
            relevance[mine] += weight * self._shares(scores)
            place = np.full(len(rows), -1, np.int64)
            place[mine] = np.arange(len(addresses))
            places.append(place)
        order = np.lexsort((rows, -relevance))
        return Fused(rows[order], relevance[order].astype(np.float32), (places[0][order], places[1][order]))

    def _shares(self, scores: Numbers) -> NDArray[np.float64]:
        if self.method == "rrf":
            return 1 / (self.rrf_k + np.arange(1, len(scores) + 1))
        return _spread(scores.astype(np.float64))


def _spread(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores spread over 0 to 1; those that are not finite count as the worst."""
    finite = np.isfinite(scores)
    if not finite.any():
        return np.zeros(len(scores))
    low, high = float(scores[finite].min()), float(scores[finite].max())
    if low == high:
        return np.where(finite, 1.0, 0.0)
    return np.where(finite, (np.where(finite, scores, low) - low) / (high - low), 0.0)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    found = float(value)
    if not (math.isfinite(found) and found >= 0):
        raise InvalidInputError(f"{name} must be finite and not negative, not {value!r}")
    return found
