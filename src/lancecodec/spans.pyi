"""Runs of values at any places of one buffer, one after the other: what a file of many small pages is read by.

Span k is ``counts[k]`` consecutive values from ``positions[k]`` on. A scan has a span for each page, rows by number are
spans of one value each. Spans may come in any order, overlap and lie at any address. An empty span may be anywhere. The
source may be a mapped file that changes meanwhile; `positions` and `counts` must stay as they are.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def fixed(src: Buffer, positions: NDArray[np.int64], counts: NDArray[np.int64], width: int, out: Buffer) -> None:
    """Copy values of `width` bytes each (1: counts are numbers of bytes), span after span, to `out`.

    Parameters
    ----------
    positions
        Byte of the first value of each span.
    out
        At least the sum of `counts` values; bytes behind the last value may be overwritten.

    Raises
    ------
    CodecError
        A count is negative, a span is not within `src`, or `out` is too small.
    """

def bits(src: Buffer, positions: NDArray[np.int64], counts: NDArray[np.int64], out: Buffer) -> None:
    """Copy bits, span after span, to `out` from bit 0 on; unused bits of the last byte become 0.

    Parameters
    ----------
    positions
        Bit of the first value of each span: bit b is bit ``b % 8`` of byte ``b // 8``.

    Raises
    ------
    CodecError
        A count is negative, a span is not within `src`, or `out` is too small.
    """

def offsets(
    src: Buffer,
    positions: NDArray[np.int64],
    counts: NDArray[np.int64],
    wide: bool,
    out_wide: bool,
    out: Buffer,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int:
    """Join the offsets of variable-width values or lists: a span of n > 0 values has n + 1 stored offsets.

    Parameters
    ----------
    positions
        Byte of the first stored offset of each span.
    wide
        Stored offsets are signed integers of 64, otherwise of 32 bits.
    out, out_wide
        Output for one 32-bit (or, `out_wide`, 64-bit) offset more than there are values: 0, then the ends. What lies
        between the spans' own ranges is left out, so that span k covers ``sizes[k]`` bytes or items.
    starts, sizes
        Outputs with an entry for each span: its first stored offset, and the last less the first; 0 and 0 for an empty
        span, of which nothing is read. With them as positions and counts `fixed` copies the bytes of strings.

    Returns
    -------
    int
        Sum of `sizes`, which is the last offset.

    Raises
    ------
    OffsetOverflowError
        The sum of `sizes` is more than the offsets of `out` hold.
    CodecError
        Stored offsets decrease or are negative, a count is negative, a span is not within `src`, or an output is too
        small. Whether the values are within a buffer is not looked at.
    """

def empties(offsets: Buffer, wide: bool, n: int, out_validity: Buffer) -> int:
    """Set bit i if value i has bytes; return how many have none (in old files the null strings).

    Parameters
    ----------
    offsets
        n + 1 ascending 32-bit (or, `wide`, 64-bit) offsets.
    out_validity
        Bitmap; unused bits of the last byte become 0.

    Raises
    ------
    CodecError
        `n` is negative, or a buffer is too small.
    """

class BatchPages:
    """The pages of one field of a table in batches, for reads of few rows.

    Parameters
    ----------
    src
        The file.
    starts
        int64, first row of each batch, and the number of rows.
    positions, lengths
        int64, first byte and number of values of the page of each batch. These arrays must stay as they are.
    bits
        Bits of a value: 1, or whole bytes.

    Raises
    ------
    CodecError
        The arrays do not go together, or a page starts outside the file.
    """

    def __init__(
        self,
        src: Buffer,
        starts: NDArray[np.int64],
        positions: NDArray[np.int64],
        lengths: NDArray[np.int64],
        bits: int,
    ) -> None: ...
    def locate(self, rows: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Position of the value of each row: in bytes, or in bits for values of one bit.

        Raises
        ------
        CodecError
            There is no such row, its page has fewer values, or `out` is too small.
        """

    def take(self, rows: NDArray[np.int64], out: Buffer) -> None:
        """Values of some rows, one after another; unused bits of the last byte become 0.

        Raises
        ------
        CodecError
            As for `locate`, or a value is outside the file. Bytes of `out` behind the last value may be overwritten.
        """
