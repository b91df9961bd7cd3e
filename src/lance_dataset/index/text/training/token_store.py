"""Tokens of the documents of a new partition, in as few bytes as their numbers need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.analysis.batches import TokenBatch
from lancecodec.search.inversion import rank_codes

__all__ = ["StoredTokens", "TokenStore"]

#: Tokens of a part. Its memory is used as tokens are added.
_PART_TOKENS = 1 << 22
_CODE_KINDS = (np.uint16, np.uint32)
_POSITION_KINDS = (np.uint8, np.uint16, np.uint32)

_Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class StoredTokens:
    """Tokens of consecutive documents.

    Attributes
    ----------
    codes : uint16 or uint32[tokens]
        Codes of the tokens.
    positions : uint8, uint16 or uint32[tokens]
        Position of each token in its document; None if they are not kept.
    lengths : uint32[documents]
        Number of tokens of each document.
    """

    codes: _Numbers
    positions: _Numbers | None
    lengths: NDArray[np.uint32]

    def ranked(self, ranks: NDArray[np.uint32]) -> StoredTokens:
        """Return the tokens with ranks in place of codes, which may be written over."""
        codes = self.codes if len(ranks) <= 1 << 16 else self.codes.astype(np.uint32, copy=False)
        rank_codes(codes, ranks)
        return StoredTokens(codes, self.positions, self.lengths)


class TokenStore:
    """Tokens of documents, which are added one after the other.

    Parameters
    ----------
    positions
        True to keep their positions.
    """

    def __init__(self, *, positions: bool) -> None:
        self._with_positions = positions
        self._full: list[StoredTokens] = []
        self._codes: _Numbers = np.empty(0, np.uint16)
        self._positions: _Numbers = np.empty(0, np.uint8)
        self._lengths: list[NDArray[np.uint32]] = []
        self._used = 0
        self.num_tokens = self.num_documents = 0
        #: Bytes of the numbers of all tokens.
        self.nbytes = 0

    def add(self, tokens: TokenBatch) -> None:
        """Add documents after the others."""
        count = len(tokens.codes)
        code_kind = _narrowest(_CODE_KINDS, tokens.codes)
        position_kind = _narrowest(_POSITION_KINDS, tokens.positions if self._with_positions else tokens.codes[:0])
        wide = code_kind.itemsize > self._codes.itemsize or position_kind.itemsize > self._positions.itemsize
        if wide or count > len(self._codes) - self._used:
            self._close()
            self._codes = np.empty(max(_PART_TOKENS, count), code_kind)
            self._positions = np.empty(len(self._codes) if self._with_positions else 0, position_kind)
        place = slice(self._used, self._used + count)
        self._codes[place] = tokens.codes
        if self._with_positions:
            self._positions[place] = tokens.positions
        self._lengths.append(tokens.counts.astype(np.uint32))
        self._used += count
        self.num_tokens += count
        self.num_documents += len(tokens.ends)
        self.nbytes += count * (self._codes.itemsize + (self._positions.itemsize if self._with_positions else 0))

    def _close(self) -> None:
        """Begin a new part."""
        if self._lengths:
            positions = self._positions[: self._used] if self._with_positions else None
            self._full.append(StoredTokens(self._codes[: self._used], positions, np.concatenate(self._lengths)))
        self._lengths, self._used = [], 0
        self._codes, self._positions = self._codes[:0], self._positions[:0]

    def parts(self) -> list[StoredTokens]:
        """Return all tokens; the store is empty then."""
        self._close()
        found, self._full = self._full, []
        return found


def _narrowest(kinds: tuple[type[np.unsignedinteger[Any]], ...], values: NDArray[np.int32]) -> np.dtype[Any]:
    most = int(values.max()) if len(values) else 0
    return np.dtype(next(kind for kind in kinds if most <= np.iinfo(kind).max))
