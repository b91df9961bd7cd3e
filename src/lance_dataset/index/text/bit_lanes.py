"""Blocks of 128 or 256 numbers of equal width, packed in 4 or 8 interleaved lanes of 32 bits.

Number i of a block is number ``i // lanes`` of lane ``i % lanes``. A lane is a string of bits, lowest first, cut into
words of 32 bits. The first words of all lanes come first, then the second words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.index.text.byte_ranges import Bytes, Ints

__all__ = ["MAX_WIDTH", "bit_widths", "pack_blocks", "packed_size", "unpack_blocks"]

MAX_WIDTH = 32
_PER_LANE = 32


def packed_size(block: int, widths: Ints) -> Ints:
    """Return the sizes in bytes of packed blocks of `block` numbers."""
    return widths * (block // 8)


def bit_widths(values: NDArray[np.uint32]) -> Ints:
    """Return the bit width of the largest number of each block, int64[blocks]; values are uint32[blocks, block]."""
    largest = values.max(axis=1, initial=0).astype(np.float64)
    return np.frexp(largest)[1].astype(np.int64)


def unpack_blocks(data: Bytes, begins: Ints, widths: Ints, block: int) -> NDArray[np.uint32]:
    """Unpack blocks of numbers.

    Parameters
    ----------
    data
        Bytes that hold all blocks.
    begins, widths : int64[n]
        Start of each block and its bits per number, at most 32. The caller has checked that they lie inside the data.
    block
        Numbers of a block, 128 or 256.

    Returns
    -------
    -------
    uint32[n, block]
    """
    lanes = block // _PER_LANE
    out = np.zeros((len(begins), block), np.uint32)
    for width in np.unique(widths).tolist():
        if width == 0:
            continue
        of_width = np.flatnonzero(widths == width)
        packed = data[begins[of_width, None] + np.arange(lanes * 4 * width)]
        words = packed.view("<u4").reshape(len(of_width), width, lanes)
        out[of_width] = _unpacked(words, width).reshape(len(of_width), block)
    return out


def _unpacked(words: NDArray[np.uint32], width: int) -> NDArray[np.uint32]:
    """Return numbers [n, 32, lanes] of words [n, width, lanes]."""
    count, _, lanes = words.shape
    mask = np.uint32((1 << width) - 1)
    values = np.empty((count, _PER_LANE, lanes), np.uint32)
    for number in range(_PER_LANE):
        word, shift = divmod(number * width, 32)
        bits = words[:, word] >> np.uint32(shift)
        if shift + width > 32:
            bits |= words[:, word + 1] << np.uint32(32 - shift)
        values[:, number] = bits & mask
    return values


def pack_blocks(values: NDArray[np.uint32], widths: Ints, out: Bytes, begins: Ints) -> None:
    """Pack blocks, each with its own width.

    Parameters
    ----------
    values : uint32[n, block]
        The numbers; bits above the width are dropped.
    widths : int64[n]
        Bits per number.
    out
        Output buffer.
    begins : int64[n]
        Start of each block in the output.
    """
    lanes = values.shape[1] // _PER_LANE
    for width in np.unique(widths).tolist():
        if width == 0:
            continue
        of_width = np.flatnonzero(widths == width)
        packed = _packed(values[of_width].reshape(len(of_width), _PER_LANE, lanes), width)
        places = begins[of_width, None] + np.arange(lanes * 4 * width)
        out[places] = packed.reshape(len(of_width), -1).view(np.uint8)


def _packed(values: NDArray[np.uint32], width: int) -> NDArray[np.uint32]:
    """Return words [n, width, lanes] of numbers [n, 32, lanes]."""
    count, _, lanes = values.shape
    mask = np.uint32((1 << width) - 1)
    words = np.zeros((count, width, lanes), "<u4")
    for number in range(_PER_LANE):
        word, shift = divmod(number * width, 32)
        bits = values[:, number] & mask
        words[:, word] |= bits << np.uint32(shift)
        if shift + width > 32:
            words[:, word + 1] |= bits >> np.uint32(32 - shift)
    return words
