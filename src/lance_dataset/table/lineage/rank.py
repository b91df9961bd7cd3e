"""Bit arrays with constant-time rank: the number of set bits before a position.

The number of bits before every 64-bit word is stored beside the words, as in Jacobson's rank structure (Space-efficient
static trees and graphs, 1989). One level is enough, because 32 bits hold the counts of one bitmap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_dataset.late_dataclass import dataclass

__all__ = ["RankedBits"]

_ONE = np.uint64(1)
_BYTE_COUNTS = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


@dataclass(frozen=True, eq=False)
class RankedBits:
    """Bit array with rank counts.

    Attributes
    ----------
    words
        uint64: bit ``i % 64`` of word ``i // 64`` is bit i.
    before
        uint32: number of set bits before each word, modulo 2**32. The difference of two counts is correct if fewer than
        2**32 bits lie between them.
    """

    words: NDArray[np.uint64]
    before: NDArray[np.uint32]

    @classmethod
    def of(cls, bits: NDArray[np.uint8]) -> RankedBits:
        """Build from bits packed into bytes, least significant first. Zeros pad the last word."""
        padded = np.zeros(-(-len(bits) // 8) * 8, np.uint8)
        padded[: len(bits)] = bits
        return cls._counted(padded.view("<u8").astype(np.uint64, copy=False))

    @classmethod
    def joined(cls, parts: Sequence[RankedBits]) -> RankedBits:
        """Concatenate several bit arrays."""
        return cls._counted(np.concatenate([np.empty(0, np.uint64), *(part.words for part in parts)]))

    @classmethod
    def _counted(cls, words: NDArray[np.uint64]) -> RankedBits:
        before = np.zeros(len(words), np.uint32)
        np.cumsum(_count(words[:-1]), out=before[1:], dtype=np.uint32)
        return cls(words, before)

    def __len__(self) -> int:
        return 64 * len(self.words)

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self.words.nbytes + self.before.nbytes

    def test(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for each position whose bit is set."""
        return (self.words[positions >> 6] >> (positions & 63).astype(np.uint64) & _ONE).astype(bool)

    def rank(self, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the number of set bits before each position, modulo 2**32."""
        word = positions >> 6
        below = (_ONE << (positions & 63).astype(np.uint64)) - _ONE
        return self.before[word] + _count(self.words[word] & below).astype(np.uint32)


def _count(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the number of set bits in each word."""
    if hasattr(np, "bitwise_count"):  # from NumPy 2.0 on
        return np.bitwise_count(words)
    return _BYTE_COUNTS[np.ascontiguousarray(words).view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.uint8)
