"""BM25: the score of a document for a word, and the one-byte code of document lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.byte_ranges import Ints

__all__ = ["K1", "Corpus", "decode_lengths", "length_codes"]

Floats = NDArray[np.float32]

#: How slowly the score grows with the frequency of a word.
K1 = np.float32(1.2)
_B = np.float32(0.75)


@dataclass(frozen=True)
class Corpus:
    """Documents that scores are relative to.

    Attributes
    ----------
    documents
        Number of documents.
    tokens
        Total number of their tokens, with weights if columns have them.
    """

    documents: int
    tokens: float

    def limits(self, frequencies: Ints) -> Floats:
        """Return the highest score of a document for words with these document frequencies, float32[n]."""
        number = np.float32(self.documents)
        found = frequencies.astype(np.float32)
        half, one = np.float32(0.5), np.float32(1)
        odds = (number - found + half) / (found + half) + one
        # numpy's logarithm of a 32-bit number is not always the nearest float.
        return np.log(odds.astype(np.float64)).astype(np.float32) * (K1 + one)

    def shares(self, frequencies: Ints, lengths: Ints) -> Floats:
        """Return the share of the limit that each document scores, float32[n].

        Parameters
        ----------
        frequencies : int64[n]
            Number of occurrences of the word in the document.
        lengths : int64[n]
            Number of tokens of the document.
        """
        often = frequencies.astype(np.float32)
        return often / (often + self.norms(lengths))

    def norms(self, lengths: NDArray[np.integer[Any]] | Floats) -> Floats:
        """Return what is added to the frequency to find the share, for documents of these lengths, float32[n]."""
        one = np.float32(1)
        average = np.float32(max(self.tokens, 1)) / np.float32(self.documents)
        return K1 * (one - _B + _B * lengths.astype(np.float32) / average)


def length_codes(lengths: Ints) -> Ints:
    """Encode lengths below 2**32 in one byte: the highest bit and the three bits after it; exact up to 16."""
    bits = np.frexp(lengths.astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(bits - 4, 0)
    return np.where(lengths < 8, lengths, ((lengths >> shifts) & 7) | ((shifts + 1) << 3))


def decode_lengths(codes: Ints) -> Ints:
    """Return the shortest length of each code."""
    return np.where(codes < 8, codes, ((codes & 7) | 8) << np.maximum((codes >> 3) - 1, 0))
