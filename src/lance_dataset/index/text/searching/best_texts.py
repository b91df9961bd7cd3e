"""The best documents of several partitions of a full-text index, or all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.searched_partition import SearchedPartition
from lance_dataset.index.text.searching.wanted import WantedTexts
from lancecodec.errors import CodecError
from lancecodec.search.postings import Phrase, search

__all__ = ["BestTexts"]


class BestTexts:
    """The best rows of several partitions, or all."""

    def __init__(self, wanted: WantedTexts) -> None:
        self._wanted = wanted
        self._parts: list[FoundTexts] = []

    def _worst(self) -> float:
        """Return the score that more rows must exceed."""
        best = self._wanted.best
        if best is None or not self._parts:
            return -1.0
        scores = np.concatenate([part.scores for part in self._parts])
        return -1.0 if len(scores) < best else float(np.partition(scores, len(scores) - best)[len(scores) - best])

    def add(
        self,
        searched: SearchedPartition,
        numbers: Sequence[int],
        weights: NDArray[np.float32],
        *,
        every: bool,
        phrase: Phrase | None = None,
    ) -> None:
        """Search a partition for words, given by number."""
        if self._wanted.best == 0:
            return
        docs, scores = self._search(searched, numbers, weights, every, self._wanted.best, phrase)
        self._parts.append(searched.found(docs, scores))

    def _search(
        self,
        searched: SearchedPartition,
        numbers: Sequence[int],
        weights: NDArray[np.float32],
        every: bool,
        best: int | None,
        phrase: Phrase | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        part = searched.partition
        terms = part.terms(numbers)
        lengths = [term.length for term in terms]
        most = min(lengths) if every or phrase is not None else min(sum(lengths), part.count)
        best = 0 if best is None or best >= most else best
        docs, scores = np.empty(best or most, np.uint32), np.empty(best or most, np.float32)
        chosen = searched.chosen(self._wanted.chooser)
        bits = None if chosen is None else chosen.data
        places = None if phrase is None else part.positions(numbers)
        try:
            count = search(terms, weights, part.norms, bits, every, best, self._worst(), docs, scores, phrase, places)
        except CodecError as error:
            raise part.corrupt(f"postings of the words {list(numbers)}: {error}") from error
        return docs[:count], scores[:count]

    def add_groups(self, searched: SearchedPartition, groups: Sequence[tuple[list[int], NDArray[np.float32]]]) -> None:
        """Search a partition for documents with a word of each group."""
        if len(groups) == 1:
            self.add(searched, *groups[0], every=False)
            return
        docs, scores = self._search(searched, *groups[0], False, None)
        for numbers, weights in groups[1:]:
            others, more = self._search(searched, numbers, weights, False, None)
            docs, mine, theirs = np.intersect1d(docs, others, assume_unique=True, return_indices=True)
            scores = scores[mine] + more[theirs]
        self._parts.append(searched.found(docs, scores))

    def found(self) -> FoundTexts:
        """Return the rows in the order that is wanted."""
        found = FoundTexts.concat(self._parts)
        return found.by_address() if self._wanted.by_address else found.ordered(self._wanted.best)
