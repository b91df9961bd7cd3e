"""Layouts of the codes of a partition: plain rows, column by column, or in blocks for vector instructions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "pack_blocks", "transposed", "unpack_blocks", "untransposed"]

Codes = NDArray[np.uint8]

_BLOCK = 32
#: Rows of a block that share bytes: row `_ORDER[j]` and the row 16 further.
_ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])


def transposed(codes: Codes) -> Codes:
    """Store plain rows ``[rows, width]`` column by column, in the same shape."""
    return np.ascontiguousarray(codes.T).reshape(codes.shape)


def untransposed(stored: Codes) -> Codes:
    """Invert `transposed`."""
    rows, width = stored.shape
    return stored.reshape(width, rows).T


def pack_blocks(codes: Codes) -> Codes:
    """Store plain rows of sign bits in blocks of 32 rows, in the same shape.

    A block has 32 bytes for each column: the low halves of the bytes of all its rows, then the high ones. The rows
    after the last whole block are stored column by column.
    """
    rows, width = codes.shape
    whole = rows // _BLOCK * _BLOCK
    blocks = codes[:whole].reshape(-1, _BLOCK, width).transpose(0, 2, 1)
    first, second = blocks[:, :, _ORDER], blocks[:, :, _ORDER + 16]
    low = (first & 15) | (second & 15) << 4
    high = (first >> 4) | (second >> 4) << 4
    packed = np.concatenate([low, high], axis=2, dtype=np.uint8)
    return np.concatenate([packed.ravel(), transposed(codes[whole:]).ravel()]).reshape(rows, width)


def unpack_blocks(stored: Codes) -> Codes:
    """Invert `pack_blocks`."""
    rows, width = stored.shape
    whole = rows // _BLOCK * _BLOCK
    packed = stored[:whole].reshape(-1, width, 2, 16)
    low, high = packed[:, :, 0], packed[:, :, 1]
    codes = np.empty((whole // _BLOCK, width, _BLOCK), np.uint8)
    codes[:, :, _ORDER] = (low & 15) | (high & 15) << 4
    codes[:, :, _ORDER + 16] = (low >> 4) | (high >> 4) << 4
    return np.concatenate([codes.transpose(0, 2, 1).reshape(whole, width), untransposed(stored[whole:])])
