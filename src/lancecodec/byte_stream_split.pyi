"""Byte-stream split: first the first bytes of all values of a chunk, then their second bytes, and so on.

Values have 32 or 64 bits. It saves no space by itself, but makes floats easier to compress.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def encode(values: Buffer, bits: int, chunk_values: int, out: Buffer, ends: NDArray[np.int64]) -> int:
    """Encode a page in chunks of `chunk_values` values, the last one of the rest.

    Parameters
    ----------
    chunk_values
        The reference takes 1024 values of 32 bits, 512 of 64.
    out
        As many bytes as `values`: the chunks back to back.
    ends
        Filled with the byte where each chunk ends.

    Returns
    -------
    int
        Number of chunks.
    """

def decode(data: Buffer, n: int, bits: int, out: Buffer) -> None:
    """Decode one chunk of exactly n values.

    Raises
    ------
    CodecError
        The data is shorter or longer than n values, or the output too small.
    """

def decode_page(data: Buffer, n: int, bits: int, chunk_values: int, out: Buffer) -> None:
    """Undo `encode` of n values."""

def take(data: Buffer, n: int, bits: int, positions: NDArray[np.int64], out: Buffer) -> None:
    """Write the values at some positions of a chunk of n values, in any order, to `out`."""
