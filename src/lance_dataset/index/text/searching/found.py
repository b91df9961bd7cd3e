"""Rows that a search for words finds, or elements of lists, with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["FoundTexts"]


@dataclass(frozen=True, eq=False)
class FoundTexts:
    """Documents with their scores.

    Attributes
    ----------
    addresses : uint64[n]
        Addresses of the rows.
    scores : float32[n]
        Scores.
    elements : uint32[n]
        Places in the lists of the rows; None if rows are documents.
    """

    addresses: NDArray[np.uint64]
    scores: NDArray[np.float32]
    elements: NDArray[np.uint32] | None = None

    def with_scores(self, scores: NDArray[np.float32]) -> FoundTexts:
        """Return the same documents with other scores."""
        return replace(self, scores=scores)

    def ordered(self, best: int | None = None) -> FoundTexts:
        """Return the best documents, or all for None, by descending score, then in the order of the table."""
        found, left = self, len(self.scores) - (len(self.scores) if best is None else best)
        if best and left > 0:
            least = np.partition(self.scores, left)[left]
            found = self.take(np.flatnonzero(self.scores >= least))
        keys = (found.addresses, -found.scores)
        order = np.lexsort(keys if found.elements is None else (found.elements, *keys))
        return found.take(order[:best])

    def by_address(self) -> FoundTexts:
        """Return the documents in the order of the table."""
        if self.elements is not None:
            return self.take(np.lexsort((self.elements, self.addresses)))
        if (self.addresses[1:] > self.addresses[:-1]).all():
            return self
        return self.take(np.argsort(self.addresses, kind="stable"))

    def places(self, others: FoundTexts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of documents that others have, too, here and there; both are in the order of the table."""
        if len(self.addresses) > len(others.addresses):
            there, here = others.places(self)
            return here, there
        if not len(self.addresses):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        mine, theirs = self._keys(others)
        found = np.minimum(np.searchsorted(theirs, mine), len(theirs) - 1)
        here = np.flatnonzero(theirs[found] == mine)
        return here, found[here]

    def _keys(self, others: FoundTexts) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return numbers for the documents here and there, in the same order."""
        if self.elements is None or others.elements is None:
            return self.addresses, others.addresses
        _, ranks = np.unique(np.concatenate([self.addresses, others.addresses]), return_inverse=True)
        keys = (ranks.astype(np.uint64) << np.uint64(32)) | np.concatenate([self.elements, others.elements])
        return keys[: len(self.addresses)], keys[len(self.addresses) :]

    def without(self, places: NDArray[np.int64]) -> FoundTexts:
        """Return the documents but those at some places."""
        kept = np.ones(len(self.addresses), bool)
        kept[places] = False
        return self.take(np.flatnonzero(kept))

    def take(self, places: NDArray[np.int64]) -> FoundTexts:
        """Return the documents at some places."""
        elements = None if self.elements is None else self.elements[places]
        return FoundTexts(self.addresses[places], self.scores[places], elements)

    @staticmethod
    def concat(parts: Sequence[FoundTexts]) -> FoundTexts:
        """Return the documents of several parts."""
        if len(parts) == 1:
            return parts[0]
        elements = [part.elements for part in parts if part.elements is not None]
        return FoundTexts(
            np.concatenate([np.empty(0, np.uint64), *(part.addresses for part in parts)]),
            np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)]),
            np.concatenate(elements) if elements else None,
        )
