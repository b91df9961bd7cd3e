"""Partitions of a full-text index with the rows of a version that their documents are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.partition import Partition
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.wanted import Chooser, Occurrences
from lance_dataset.properties import cached_property

__all__ = ["SearchedPartition"]


@dataclass(frozen=True, eq=False)
class SearchedPartition:
    """Partition with the addresses of its rows."""

    partition: Partition
    addresses: NDArray[np.uint64]
    live: NDArray[np.bool_]

    def measured(self, corpus: Corpus, cache: TermCache) -> SearchedPartition:
        """Return the same documents with scores that are relative to others."""
        return replace(self, partition=self.partition.measured(corpus, cache))

    def found(self, docs: NDArray[np.uint32], scores: NDArray[np.float32]) -> FoundTexts:
        """Return documents as rows, or as elements of lists."""
        elements = self.partition.elements
        return FoundTexts(self.addresses[docs], scores, None if elements is None else elements[docs])

    @cached_property
    def bits(self) -> NDArray[np.uint8] | None:
        """Bits of the documents that may be found; None for all."""
        return None if self.live.all() else np.packbits(self.live, bitorder="little")

    @cached_property
    def _sorted_live(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Addresses of the documents that may be found, ascending, and their exact lengths."""
        addresses, lengths = self.addresses[self.live], self.partition.lengths[self.live].astype(np.int64)
        order = np.argsort(addresses, kind="stable")
        return addresses[order], lengths[order]

    def lengths_at(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the lengths of the documents of rows, 0 for rows without one."""
        known, lengths = self._sorted_live
        if not len(known):
            return np.zeros(len(addresses), np.int64)
        places = np.minimum(np.searchsorted(known, addresses), len(known) - 1)
        return np.where(known[places] == addresses, lengths[places], 0)

    def occurrences(self, words: Sequence[str], chooser: Chooser | None) -> Occurrences:
        """Return the rows that have any of some words."""
        part = self.partition
        numbers = [part.number(word) for word in words]
        lists = [(np.empty(0, np.uint32),) * 2 if number is None else part.decoded(number) for number in numbers]
        docs = np.unique(np.concatenate([np.empty(0, np.uint32), *(docs for docs, _ in lists)]))
        counts = np.zeros((len(docs), len(words)), np.int64)
        for word, (mine, often) in enumerate(lists):
            counts[np.searchsorted(docs, mine), word] = often
        kept = self.live[docs]
        if chooser is not None:
            kept &= chooser(self.addresses[docs])
        return Occurrences(self.addresses[docs[kept]], counts[kept])

    def chosen(self, chooser: Chooser | None) -> NDArray[np.uint8] | None:
        """Return the bits of the documents that may be found; None for all."""
        if chooser is None:
            return self.bits
        return np.packbits(self.live & chooser(self.addresses), bitorder="little")
