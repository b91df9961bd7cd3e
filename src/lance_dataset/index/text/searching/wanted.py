"""Words that a search in a full-text index looks for, and the rows that it may find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chooser", "Fuzziness", "Occurrences", "PhraseWords", "WantedTexts"]

#: Bits of the documents of a partition that may be found, given the addresses of the rows of all.
Chooser = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]


@dataclass(frozen=True)
class WantedTexts:
    """Rows that a search may return.

    Attributes
    ----------
    best
        Number of rows, those with the largest scores; None for all.
    chooser
        Function that says which rows may be found, by their addresses; None for all live rows.
    by_address
        True for the order of addresses instead of that of scores.
    """

    best: int | None = None
    chooser: Chooser | None = None
    by_address: bool = False


@dataclass(frozen=True)
class Fuzziness:
    """Distance from the words of a query that words may have.

    Attributes
    ----------
    distance
        Number of characters that are inserted, deleted or replaced, at most.
    prefix
        Number of first characters that must be equal.
    most
        Number of words for all those of the query together, at most; the first words of the query come first.
    """

    distance: int
    prefix: int
    most: int


@dataclass(frozen=True)
class PhraseWords:
    """Words in an order.

    Attributes
    ----------
    words
        The words, each with its place.
    slop
        How many places later than in the phrase a word may follow the one before.
    """

    words: tuple[tuple[str, int], ...]
    slop: int


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Rows with the numbers of some words in them.

    Attributes
    ----------
    addresses : uint64[n]
        Addresses of the rows.
    counts : int64[n, words]
        Occurrences of the words.
    """

    addresses: NDArray[np.uint64]
    counts: NDArray[np.int64]
