"""Inversion: from the tokens of each document to the documents of each token, one range of words after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.training.token_store import StoredTokens
from lancecodec.search.inversion import WordDocuments, WordLists

__all__ = ["Inversion", "PostingLists"]

#: Occurrences whose posting lists are made together, and the greatest number of passes over all words for that.
_OCCURRENCES = 1 << 19
_PASSES = 16


@dataclass(frozen=True)
class PostingLists:
    """Posting lists of consecutive words.

    Attributes
    ----------
    lengths : int64[words]
        Number of documents of each word.
    documents, frequencies : uint32[postings]
        Documents of each word, ascending, and how often it occurs in each.
    steps : uint32[occurrences]
        Distance of each occurrence to the one before it in the same document, or to the start of that; None if
        positions are not kept.
    """

    lengths: Ints
    documents: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    steps: NDArray[np.uint32] | None


class Inversion:
    """Posting lists of documents, made for some words at a time.

    Parameters
    ----------
    parts
        Tokens of consecutive documents; their codes are replaced by the numbers of the words. The list is emptied.
    ranks : uint32[words]
        Number of the word of each code.
    positions
        True if positions are kept.
    """

    def __init__(self, parts: list[StoredTokens], ranks: NDArray[np.uint32], *, positions: bool) -> None:
        self._positions = positions
        self._documents: list[WordDocuments] = []
        first = 0
        while parts:
            part = parts.pop(0).ranked(ranks)
            self._documents.append(WordDocuments(part.codes, part.lengths, first, part.positions))
            first += len(part.lengths)
        self._lengths, self._occurrences = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
        seen = np.zeros(len(ranks), np.uint32)
        for each in self._documents:
            each.count(seen, self._lengths, self._occurrences)

    def ranges(self) -> list[tuple[int, int]]:
        """Return ranges of words whose posting lists are made together, in their order."""
        ends = np.cumsum(self._occurrences)
        most = max(_OCCURRENCES, int(ends[-1]) // _PASSES) if len(ends) else 0
        found, start = [], 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            found.append((start, stop))
            start = stop
        return found

    def lists(self, low: int, high: int) -> PostingLists:
        """Return the posting lists of words. Any thread may call it."""
        lengths, occurrences = self._lengths[low:high], self._occurrences[low:high]
        words, postings = len(lengths), int(lengths.sum())
        found, often = np.empty(postings, np.uint32), np.empty(postings, np.uint32)
        steps = np.empty(int(occurrences.sum()), np.uint32) if self._positions else None
        lists = WordLists(
            low,
            np.cumsum(lengths) - lengths,
            np.cumsum(occurrences) - occurrences,
            np.zeros(words, np.uint32),
            np.zeros(words, np.uint32),
            found,
            often,
            steps,
        )
        for each in self._documents:
            each.fill(lists)
        return PostingLists(lengths, found, often, steps)
