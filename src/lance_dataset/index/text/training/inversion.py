"""Inversion: from the tokens of each document to the documents of each token, one range of words after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.analysis.batches import TokenBatch
from lance_dataset.index.text.byte_ranges import Ints
from lancecodec.search.inversion import WordDocuments, WordLists, rank_codes

__all__ = ["PostingLists", "inverted"]

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


def inverted(batches: Sequence[TokenBatch], ranks: NDArray[np.uint32], *, positions: bool) -> Iterator[PostingLists]:
    """Yield the posting lists of all words.

    The codes in the batches are replaced by the numbers of the words.

    Parameters
    ----------
    batches
        Tokens of consecutive documents, whose codes may be changed.
    ranks : uint32[words]
        Number of the word of each code.
    positions
        True if positions are kept.
    """
    documents: list[WordDocuments] = []
    first = 0
    for batch in batches:
        rank_codes(batch.codes, ranks)
        documents.append(WordDocuments(batch.codes, batch.ends, first, batch.positions if positions else None))
        first += len(batch.ends)
    lengths, occurrences = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
    seen = np.zeros(len(ranks), np.uint32)
    for each in documents:
        each.count(seen, lengths, occurrences)
    ends = np.cumsum(occurrences)
    most = max(_OCCURRENCES, int(ends[-1]) // _PASSES) if len(ends) else 0
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield _lists(documents, start, lengths[start:stop], occurrences[start:stop], positions)
        start = stop


def _lists(
    documents: Sequence[WordDocuments], low: int, lengths: Ints, occurrences: Ints, positions: bool
) -> PostingLists:
    """Return the posting lists of the words from `low` on."""
    words, postings = len(lengths), int(lengths.sum())
    found, often = np.empty(postings, np.uint32), np.empty(postings, np.uint32)
    steps = np.empty(int(occurrences.sum()), np.uint32) if positions else None
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
    for each in documents:
        each.fill(lists)
    return PostingLists(lengths, found, often, steps)
