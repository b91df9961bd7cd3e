"""Inversion: from the tokens of each document to the documents of each token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.byte_ranges import Ints

__all__ = ["Inverted", "invert"]


@dataclass(frozen=True)
class Inverted:
    """Posting lists of all words of a partition.

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


def invert(codes: NDArray[np.int32], counts: Ints, ranks: Ints, positions: NDArray[np.int32] | None) -> Inverted:
    """Return the posting lists of documents.

    Parameters
    ----------
    codes : int32[tokens]
        Code of each token.
    counts : int64[documents]
        Number of tokens of each document.
    ranks : int64[words]
        Number of the word of each code.
    positions : int32[tokens]
        Position of each token in its document; None if positions are not kept.
    """
    words = ranks[codes]
    owners = np.repeat(np.arange(len(counts)), counts)
    order = np.argsort(words, kind="stable")
    words, owners = words[order], owners[order]
    first = np.append(True, (words[1:] != words[:-1]) | (owners[1:] != owners[:-1]))[: len(words)]
    firsts = np.flatnonzero(first)
    steps = None
    if positions is not None:
        ordered = positions[order].astype(np.int64)
        steps = np.diff(ordered, prepend=0)
        steps[firsts] = ordered[firsts]
    return Inverted(
        np.bincount(words[firsts], minlength=len(ranks)),
        owners[firsts].astype(np.uint32),
        np.diff(firsts, append=len(words)).astype(np.uint32),
        None if steps is None else steps.astype(np.uint32),
    )
