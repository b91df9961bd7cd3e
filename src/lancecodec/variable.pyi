"""Strings and binaries as offsets and bytes: mini-block chunks, blocks, and single values.

Offsets are 32 bits, or 64 where an argument called `wide` is true; `wide` speaks of the offsets given, `out_wide` of
those written, and any combination is possible. Arrow offsets need not begin at 0. Offsets that decrease, are negative
or leave their bytes raise `CodecError`, as do buffers that are too small, and values too long for the offsets that are
to be written.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def plan_bound(length: int) -> int:
    """Largest number of chunks `plan` cuts `length` values into."""

def plan(
    offsets: Buffer,
    wide: bool,
    length: int,
    out_wide: bool,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    target: int = 4096,
    max_values: int = 4096,
) -> int:
    """Cut values into chunks by the doubling rule of the reference.

    A chunk takes 2, 4, 8 ... values as long as twice as many still fit `target`; what is left is one chunk if it fits.

    Parameters
    ----------
    offsets
        Arrow offsets of `length` values.
    counts, ends
        Receive the number of values of each chunk and its end byte in the output of `encode`; `plan_bound` entries.
    target
        Bytes of offsets and values per chunk; two values are taken even if they need more.
    max_values
        A chunk that is not the last one has at most half as many values.

    Returns
    -------
    int
        Number of chunks k; ``ends[k - 1]`` is the size of the output.
    """

def encode(
    offsets: Buffer,
    wide: bool,
    data: Buffer,
    length: int,
    out_wide: bool,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: Buffer,
) -> int:
    """Write planned chunks back to back: offsets from the start of the chunk, bytes, 0x48 up to a whole offset.

    `counts` and `ends` have one entry per chunk. Returns the size written, ``ends[-1]``.
    """

def decode_bound(size: int, length: int, chunks: int, wide: bool) -> int:
    """Most value bytes that `chunks` chunks of `size` bytes together with `length` values can hold."""

def decode(
    source: Buffer,
    wide: bool,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
    length: int,
    out_wide: bool,
    offsets: Buffer,
    out: Buffer,
) -> int:
    """Chunks back to back to ``length + 1`` Arrow offsets and value bytes; returns the number of the latter."""

def decode_chunk(
    buffer: Buffer, length: int, wide: bool, out_wide: bool, offsets: Buffer, base: int = 0
) -> tuple[int, int]:
    """Offsets of one chunk, from `base` on; returns where in `buffer` the value bytes begin, and how many they are.

    The buffer has its exact size: with the padding to a whole offset, without that between chunk buffers.
    """

def chunk_value(buffer: Buffer, length: int, wide: bool, index: int) -> tuple[int, int]:
    """Begin and size of one value of a chunk of `length` values; the other offsets are not looked at."""

def decode_generic(
    coded_offsets: Buffer,
    wide: bool,
    length: int,
    values_size: int,
    out_wide: bool,
    offsets: Buffer,
    base: int = 0,
) -> None:
    """Check that decoded offsets of a chunk (2.3) go from 0 to `values_size`, and write them from `base` on."""

def rebase(offsets: Buffer, wide: bool, length: int, out_wide: bool, out: Buffer, base: int = 0) -> tuple[int, int]:
    """Write ``length + 1`` Arrow offsets so that they begin at `base`; returns the first and last one given."""

def block_bound(length: int, size: int, wide: bool) -> int:
    """Size of a block of `length` values of `size` bytes together."""

def encode_block(offsets: Buffer, wide: bool, data: Buffer, length: int, out_wide: bool, out: Buffer) -> int:
    """Write values as one block: offset width, position of the bytes, offsets from 0, bytes. Returns its size."""

def decode_block(buffer: Buffer, length: int, out_wide: bool, offsets: Buffer, base: int = 0) -> tuple[int, int]:
    """Offsets of a block of `length` values; returns where in `buffer` the value bytes begin, and how many they are.

    The width is that of the block's own header. The shorter header of writers before the format was stable is read too.
    """

def measure(offsets: Buffer, wide: bool, length: int) -> tuple[int, int]:
    """Check Arrow offsets; returns the bytes of all values together and of the longest one."""

def select_offsets(
    offsets: Buffer, wide: bool, length: int, index: NDArray[np.int64], out_wide: bool, out: Buffer
) -> int:
    """Offsets from 0 of the values at positions `index`; returns how many bytes those values have together."""

def select_bytes(offsets: Buffer, wide: bool, data: Buffer, length: int, index: NDArray[np.int64], out: Buffer) -> int:
    """Copy the bytes of the values at positions `index`, back to back; returns how many they are.

    What follows them in `out` may change too.
    """
