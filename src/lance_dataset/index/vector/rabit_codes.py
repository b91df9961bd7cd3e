"""Bits of RaBitQ codes beyond the signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["packed_blocks", "unpacked_blocks", "unpacked_stream"]

Bytes = NDArray[np.uint8]
_BLOCK = 64


def unpacked_blocks(stored: Bytes, bits: int, dimension: int) -> Bytes:
    """Return the codes of the column ``__blocked_ex_codes``, a byte for each value.

    Parameters
    ----------
    stored : uint8[rows, bytes]
        Blocks of 64 values, `bits` times 8 bytes each.
    bits
        Bits of a value, from 1 to 8.
    dimension
        Number of values of a row.

    Returns
    -------
    uint8[rows, dimension]
    """
    rows, blocks = len(stored), -(-dimension // _BLOCK)
    x = stored.reshape(rows, blocks, 8 * bits)
    out = np.empty((rows, blocks, _BLOCK), np.uint8)
    quarters = out.reshape(rows, blocks, 4, 16)
    if bits == 1:
        out[:] = np.unpackbits(x, axis=2, bitorder="little")
    elif bits in (2, 3):
        for place in range(4):
            quarters[:, :, place] = x[:, :, :16] >> 2 * place & 3
    elif bits == 4:
        pairs, halves = x.reshape(rows, blocks, 4, 8), out.reshape(rows, blocks, 4, 2, 8)
        halves[:, :, :, 0], halves[:, :, :, 1] = pairs & 15, pairs >> 4
    elif bits == 5:
        for place in range(2):
            both = x[:, :, 16 * place : 16 * place + 16]
            quarters[:, :, 2 * place], quarters[:, :, 2 * place + 1] = both & 15, both >> 4
    elif bits in (6, 7):
        quarters[:, :, 3] = 0
        for place in range(3):
            both = x[:, :, 16 * place : 16 * place + 16]
            quarters[:, :, place] = both & 63
            quarters[:, :, 3] |= both >> 6 << 2 * place
    else:
        out[:] = x
    if bits in (3, 5, 7):
        out |= _plane(x[:, :, 8 * (bits - 1) :]) << (bits - 1)
    return np.ascontiguousarray(out.reshape(rows, blocks * _BLOCK)[:, :dimension])


def packed_blocks(codes: Bytes, bits: int) -> Bytes:
    """Return the bytes of the column ``__blocked_ex_codes``; invert `unpacked_blocks`.

    Parameters
    ----------
    codes : uint8[rows, dimension]
        The codes, a byte for each value.
    bits
        Bits of a value, from 1 to 8.
    """
    rows, dimension = codes.shape
    blocks = -(-dimension // _BLOCK)
    padded = np.zeros((rows, blocks, _BLOCK), np.uint8)
    padded.reshape(rows, blocks * _BLOCK)[:, :dimension] = codes
    low: NDArray[Any] = padded & ((1 << bits - bits % 2) - 1) if bits in (3, 5, 7) else padded
    quarters = low.reshape(rows, blocks, 4, 16)
    parts: list[NDArray[Any]] = []
    if bits == 1:
        parts.append(np.packbits(low, axis=2, bitorder="little"))
    elif bits in (2, 3):
        parts.append(quarters[:, :, 0] | quarters[:, :, 1] << 2 | quarters[:, :, 2] << 4 | quarters[:, :, 3] << 6)
    elif bits == 4:
        halves = low.reshape(rows, blocks, 4, 2, 8)
        parts.append((halves[:, :, :, 0] | halves[:, :, :, 1] << 4).reshape(rows, blocks, 32))
    elif bits == 5:
        parts.extend(quarters[:, :, place] | quarters[:, :, place + 1] << 4 for place in (0, 2))
    elif bits in (6, 7):
        parts.extend(quarters[:, :, place] | (quarters[:, :, 3] >> 2 * place & 3) << 6 for place in range(3))
    else:
        parts.append(low)
    if bits in (3, 5, 7):
        place, column = np.divmod(np.arange(_BLOCK), 16)
        plane = np.empty_like(padded)
        plane[:, :, 8 * (column % 8) + 2 * place + column // 8] = padded >> (bits - 1) & 1
        parts.append(np.packbits(plane, axis=2, bitorder="little"))
    return np.concatenate(parts, axis=2, dtype=np.uint8).reshape(rows, 8 * bits * blocks)


def unpacked_stream(stored: Bytes, bits: int, dimension: int) -> Bytes:
    """Return the codes of the column ``__ex_codes``, a byte for each value: the lowest bit comes first."""
    every = np.unpackbits(stored, axis=1, bitorder="little")[:, : dimension * bits]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    return np.asarray(every.reshape(len(stored), dimension, bits) @ weights, np.uint8)


def _plane(stored: Bytes) -> Bytes:
    """Return the highest bits of 64 values."""
    every = np.unpackbits(stored, axis=2, bitorder="little")
    place, column = np.divmod(np.arange(_BLOCK), 16)
    return every[:, :, 8 * (column % 8) + 2 * place + column // 8]
