"""Repetition and definition levels as the buffers that pages store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.v2_1.compressive import Encoding, Flat, OutOfLineBitpacking, Rle
from lance_dataset.file.v2_1.write.request import steps
from lancecodec import bitpacking, rle
from lancecodec import levels as level_codec

__all__ = ["LevelStream", "encode_levels"]

_BITS = 16
_BLOCK = 1024
_LEVEL_BYTES = 2
_RLE_HEADER_BYTES = 8
_RLE_ENTRY_BYTES = 3


@dataclass(frozen=True)
class LevelStream:
    """Encoded levels.

    Attributes
    ----------
    encoding
        Of each slice of the stream.
    data
        The encoded slices, back to back.
    ends
        The byte where each slice ends.
    """

    encoding: Encoding
    data: memoryview | bytes
    ends: NDArray[np.int64]


def encode_levels(stream: bytes, ends: NDArray[np.int64], runs: bool) -> LevelStream:
    """Encode a stream slice by slice with whatever makes it smallest.

    Packing with the width in each block (`InlineBitpacking`) is never smaller than packing with one width.

    Parameters
    ----------
    stream
        16-bit levels.
    ends
        The level where each slice ends.
    runs
        Whether run-length encoding is allowed, as it is from 2.2 on.
    """
    counts = steps(ends)
    width = level_codec.max_level(stream).bit_length()
    packed = _packed_sizes(counts, width)
    plain_size, packed_size = len(stream), int(packed.sum())
    if runs and _run_bound(stream, len(counts)) < min(plain_size, packed_size):
        return _run_lengths(stream, ends)
    if packed_size < plain_size:
        return _packed(stream, ends, packed, width)
    return LevelStream(Flat(_BITS), stream, ends * _LEVEL_BYTES)


def _packed_sizes(counts: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Bytes of each slice packed out of line: whole blocks, and the shorter of a packed and a plain tail."""
    block = _BLOCK * width // 8
    full, tail = np.divmod(counts, _BLOCK)
    return full * block + np.where(tail > 0, np.minimum(tail * _LEVEL_BYTES, block), 0)


def _run_bound(stream: bytes, slices: int) -> int:
    """No slice-wise run-length encoding is larger: a cut adds at most one entry."""
    _, entries = rle.count(stream, _BITS, 0)
    return (entries + slices - 1) * _RLE_ENTRY_BYTES + slices * _RLE_HEADER_BYTES


def _packed(stream: bytes, ends: NDArray[np.int64], sizes: NDArray[np.int64], width: int) -> LevelStream:
    out_ends = np.cumsum(sizes)
    out = memoryview(bytearray(int(out_ends[-1])))
    if not np.any(ends[:-1] % _BLOCK):  # slices of whole blocks are packed as one
        bitpacking.out_of_line_encode(stream, _BITS, width, out)
    else:
        source, first, begin = memoryview(stream), 0, 0
        for level, end in zip((ends * _LEVEL_BYTES).tolist(), out_ends.tolist(), strict=True):
            bitpacking.out_of_line_encode(source[first:level], _BITS, width, out[begin:end])
            first, begin = level, end
    return LevelStream(OutOfLineBitpacking(_BITS, width), out, out_ends)


def _run_lengths(stream: bytes, ends: NDArray[np.int64]) -> LevelStream:
    source, first, begin = memoryview(stream), 0, 0
    out = memoryview(bytearray(_run_bound(stream, len(ends))))
    out_ends = np.empty(len(ends), np.int64)
    for number, level in enumerate((ends * _LEVEL_BYTES).tolist()):
        begin += rle.encode_block(source[first:level], _BITS, out[begin:])
        out_ends[number], first = begin, level
    return LevelStream(Rle(Flat(_BITS), Flat(8)), out[:begin], out_ends)
