"""Sets of characters in the form that the kernels of tokenizers use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.expr.characters import ranges_of
from lancecodec.search.tokens import Alphabet

__all__ = ["alphabet"]


def alphabet(*tables: str, but: bool = False) -> Alphabet:
    """Return the characters of tables as tokenizers use them; or all other characters."""
    pairs = np.array([pair for table in tables for pair in ranges_of(table)], np.int32).reshape(-1, 2)
    return Alphabet((_complement(pairs) if but else pairs).ravel())


def _complement(pairs: NDArray[np.int32]) -> NDArray[np.int32]:
    pairs = pairs[np.argsort(pairs[:, 0])]
    return np.column_stack([np.append(0, pairs[:, 1]), np.append(pairs[:, 0], 0x110000)]).astype(np.int32)
