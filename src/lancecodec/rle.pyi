"""Run-length encoding: a page of mini-block chunks, one chunk, or one block.

An entry is a value of 8, 16, 32 or 64 bits and the length of its run, of 8 bits (16 or 32 are possible in 2.3); longer
runs take several entries. Values are bit patterns: a float is a number of the same width.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def count(values: Buffer, bits: int, cut: int = 4096, length_bits: int = 8) -> tuple[int, int]:
    """Count runs, and the entries they take.

    Parameters
    ----------
    values
        Values of `bits` bits.
    cut
        Entries also end after every `cut` values, as they would at the ends of chunks; 0 for never.
    length_bits
        Width of a run length.

    Returns
    -------
    tuple of int
        Runs, not cut anywhere, and entries, cut every `cut` values and at the longest length.
    """

def encode_bound(
    n: int, bits: int, entries: int, length_bits: int = 8, max_values: int = 4096, max_bytes: int = 8186
) -> tuple[int, int, int]:
    """Sizes that suffice for the outputs of `encode`.

    Parameters
    ----------
    n, bits
        Number and width of the values.
    entries
        What `count` found with the same `length_bits`.

    Returns
    -------
    tuple of int
        Bytes of run values, bytes of run lengths, chunks.
    """

def encode(
    values: Buffer,
    bits: int,
    out_values: Buffer,
    out_lengths: Buffer,
    value_ends: NDArray[np.int64],
    length_ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    length_bits: int = 8,
    max_values: int = 4096,
    max_bytes: int = 8186,
) -> int:
    """Encode a page as chunks.

    A chunk takes what is left if that is at most `max_values` values and its entries at most `max_bytes` bytes, and
    else the largest power of two of values of which both are true: the chunks of the reference.

    Parameters
    ----------
    out_values, out_lengths
        Entries of all chunks, back to back; `encode_bound` tells the sizes.
    value_ends, length_ends
        Filled with the byte where each chunk ends in the two outputs.
    counts
        Filled with the number of values of each chunk.
    max_values
        A power of two, 64 to 32768.
    max_bytes
        At least 64 entries.

    Returns
    -------
    int
        Number of chunks.

    Raises
    ------
    CodecError
        An output is too small.
    """

def decode(
    values: Buffer, lengths: Buffer, n: int, bits: int, out: Buffer, length_bits: int = 8, strict: bool = False
) -> None:
    """Expand entries to n values.

    Parameters
    ----------
    values, lengths
        As many values as lengths.
    out
        At least n values; the rest is left as it is.
    strict
        The lengths must add up to n. Otherwise they may pass it, as old releases kept the whole last run of a chunk.

    Raises
    ------
    CodecError
        The buffers are no whole entries or not as many, a length is 0, or the lengths do not add up.
    """

def decode_page(
    values: Buffer,
    value_ends: NDArray[np.int64],
    lengths: Buffer,
    length_ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    bits: int,
    out: Buffer,
) -> int:
    """Undo `encode` of a page with lengths of 8 bits; returns the number of values."""

def take(
    values: Buffer,
    lengths: Buffer,
    n: int,
    bits: int,
    positions: NDArray[np.int64],
    out: Buffer,
    length_bits: int = 8,
) -> None:
    """Write the values at some of n positions, in any order, to `out`, without expanding the others."""

def block_size(entries: int, bits: int) -> int:
    """Bytes of a block of so many entries; ``count(values, bits, cut=0)`` tells how many."""

def encode_block(values: Buffer, bits: int, out: Buffer) -> int:
    """Encode values as one block: u64 size of the run values, run values, run lengths of 8 bits.

    Returns
    -------
    int
        Bytes written.
    """

def decode_block(data: Buffer, n: int, bits: int, out: Buffer) -> None:
    """Undo `encode_block`; the lengths must add up to n."""
