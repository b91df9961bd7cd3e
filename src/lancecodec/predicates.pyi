"""Which values of a buffer satisfy a predicate, as bitmaps.

Bit i of an output (bit ``i % 8`` of byte ``i // 8``) is that of value i; bits past the last value are undefined. Values
under nulls are values like all others.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

PREFIX: int
SUFFIX: int
WHOLE: int
EQUAL: int
LESS: int
LESS_EQUAL: int

def positions(bits: Buffer, length: int, out: NDArray[np.int64]) -> int:
    """Write the positions of the set bits among the first `length` to `out`, ascending; return their number.

    Raises
    ------
    CodecError
        More bits are set than `out` has room for, or the bitmap is too short.
    """

def contains(data: Buffer, offsets: Buffer, wide: bool, text: Buffer, out: Buffer) -> None:
    """Mark the strings that contain a text.

    The bytes of all strings are searched as one.

    Parameters
    ----------
    data
        Concatenated values.
    offsets
        Ascending 32-bit (or, `wide`, 64-bit) offsets into `data`, one more than there are values.
    text
        At least one byte.
    out
        A bit per value.

    Raises
    ------
    CodecError
        An offset that mattered decreases or passes the data, an empty text, or an output that is too small.
    """

def compare_text(data: Buffer, offsets: Buffer, wide: bool, text: Buffer, place: int, out: Buffer) -> None:
    """Mark the strings that begin with (`PREFIX`), end with (`SUFFIX`) or are (`WHOLE`) a text.

    Parameters and errors as of `contains`.
    """

def compare_decimals(values: Buffer, bound: Buffer, order: int, negated: bool, out: Buffer) -> None:
    """Mark the integers of 128 or 256 bits that are equal to, less than, or not greater than a bound.

    Parameters
    ----------
    values
        Signed little-endian integers.
    bound
        One such integer; its size (16 or 32 bytes) is that of the values.
    order
        `EQUAL`, `LESS` or `LESS_EQUAL`.
    negated
        Mark the others instead.
    out
        A bit per value.

    Raises
    ------
    CodecError
        Sizes that do not fit each other, or an unknown order.
    """

def marked(codes: Buffer, code_width: int, marks: Buffer, out: Buffer) -> None:
    """Mark the dictionary indices whose entry is marked.

    Parameters
    ----------
    codes
        Unsigned integers of `code_width` bytes (1, 2, 4 or 8); those without an entry are not marked.
    marks
        A byte per entry, 0 or 1.
    out
        A bit per code.

    Raises
    ------
    CodecError
        Another width, or sizes that do not fit each other.
    """

class IntegerSet:
    """Integers of one width to look for.

    Parameters
    ----------
    members
        Integers of `width` bytes (1, 2, 4 or 8), signed or not, any order, repeats allowed; copied.
    """

    def __init__(self, members: Buffer, width: int) -> None: ...
    def contains(self, values: Buffer, out: Buffer) -> None:
        """Mark the values (of the same width) that are members.

        Raises
        ------
        CodecError
            Sizes that do not fit each other.
        """

class StringSet:
    """Strings to look for.

    Parameters
    ----------
    data, offsets, wide
        The strings as in `contains`, at most 2**31 - 1 of them; copied.
    """

    def __init__(self, data: Buffer, offsets: Buffer, wide: bool) -> None: ...
    def contains(self, data: Buffer, offsets: Buffer, wide: bool, out: Buffer) -> None:
        """Mark the strings that are members; parameters and errors as of `contains`."""
