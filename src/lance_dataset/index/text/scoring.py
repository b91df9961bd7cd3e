"""BM25: what a document counts for a word, and the one-byte code of document lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.byte_ranges import Ints

__all__ = ["Corpus", "decode_lengths", "length_codes"]

Floats = NDArray[np.float32]

_K1 = np.float32(1.2)
_B = np.float32(0.75)


@dataclass(frozen=True)
class Corpus:
    """The documents that scores are relative to.

    Attributes
    ----------
    documents
        Number of documents.
    tokens
        Number of their tokens together.
    """

    documents: int
    tokens: int

    def limits(self, frequencies: Ints) -> Floats:
        """What a document counts at most for words that are in so many documents, float32[n]."""
        number = np.float32(self.documents)
        found = frequencies.astype(np.float32)
        half, one = np.float32(0.5), np.float32(1)
        odds = (number - found + half) / (found + half) + one
        # numpy's logarithm of 32-bit numbers is not always the nearest one.
        return np.log(odds.astype(np.float64)).astype(np.float32) * (_K1 + one)

    def shares(self, frequencies: Ints, lengths: Ints) -> Floats:
        """How much of the limit a document counts, float32[n].

        Parameters
        ----------
        frequencies : int64[n]
            How often the word is in the document.
        lengths : int64[n]
            Tokens of the document.
        """
        often = frequencies.astype(np.float32)
        one = np.float32(1)
        average = np.float32(max(self.tokens, 1)) / np.float32(self.documents)
        return often / (often + _K1 * (one - _B + _B * lengths.astype(np.float32) / average))


def length_codes(lengths: Ints) -> Ints:
    """One-byte codes of lengths below 2**32: three bits behind the highest, which is exact up to 16."""
    bits = np.frexp(lengths.astype(np.float64))[1].astype(np.int64)
    shifts = np.maximum(bits - 4, 0)
    return np.where(lengths < 8, lengths, ((lengths >> shifts) & 7) | ((shifts + 1) << 3))


def decode_lengths(codes: Ints) -> Ints:
    """The shortest length of each code."""
    return np.where(codes < 8, codes, ((codes & 7) | 8) << np.maximum((codes >> 3) - 1, 0))
