"""Gathers of values by index into buffers of the caller."""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def fixed(
    values: Buffer,
    width: int,
    indices: Buffer,
    index_width: int,
    out: Buffer,
    validity: Buffer | None = None,
    bit: int = 0,
) -> None:
    """Write value ``indices[i]`` of `width` bytes to position i of `out` (also: fixed-width dictionary decode).

    Parameters
    ----------
    indices
        Unsigned little-endian integers of `index_width` (1, 2, 4 or 8) bytes, at any address.
    validity
        Bitmap from bit `bit` on: a null may have any index. One outside `values` counts as 0, or as a value of zero
        bytes if `values` is empty. With None every index must be inside.

    Raises
    ------
    CodecError
        An index is outside `values`, or `out` or `validity` is too small.
    """

def binary_offsets(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    indices: Buffer,
    index_width: int,
    out_wide: bool,
    out: Buffer,
    base: int = 0,
    validity: Buffer | None = None,
    bit: int = 0,
) -> int:
    """Offsets of strings behind a dictionary: the first pass of their decoding.

    Parameters
    ----------
    values, offsets
        The dictionary: ascending 32-bit (or, `wide`, 64-bit) offsets into the bytes of its entries.
    indices
        n unsigned little-endian integers of `index_width` (1, 2, 4 or 8) bytes.
    out
        Output for n + 1 offsets of 32 (or, `out_wide`, 64) bits, the first of which is `base`.
    validity
        Bitmap from bit `bit` on: a null has length 0 and may have any index. With None every index must be inside.

    Returns
    -------
    int
        Number of bytes of all values together.

    Raises
    ------
    CodecError
        An index has no entry, entries' offsets do not ascend within `values`, a buffer is too small, or the sum passes
        what the offsets hold.
    """

def binary(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    indices: Buffer,
    index_width: int,
    out: Buffer,
    validity: Buffer | None = None,
    bit: int = 0,
) -> int:
    """Bytes of strings behind a dictionary: the second pass, with the parameters of `binary_offsets`.

    Writes the strings one after the other and returns the number of bytes. `out` needs no more room than that; with 64
    bytes more the last strings are copied as fast as the others, and those bytes may be overwritten.
    """

#: Bytes of the longest string that `ShortEntries` takes.
SHORT_ENTRY: int

class ShortEntries:
    """A dictionary of short strings, laid out for gathers in one pass.

    Parameters
    ----------
    values, offsets, wide
        The dictionary, as for `binary_offsets`; no entry may have more than `SHORT_ENTRY` bytes.

    Attributes
    ----------
    longest
        Bytes of the longest entry.

    Raises
    ------
    CodecError
        An entry is longer, or the offsets do not ascend within `values`.
    """

    longest: int

    def __init__(self, values: Buffer, offsets: Buffer, wide: bool) -> None: ...
    def room(self, length: int) -> int:
        """Bytes that `gather` needs for the bytes of `length` values, whichever they are."""

    def gather(
        self, indices: Buffer, index_width: int, out_wide: bool, offsets: Buffer, out: Buffer, base: int = 0
    ) -> int:
        """Offsets and bytes of the strings behind n indices; returns the number of bytes.

        Parameters
        ----------
        indices
            n unsigned little-endian integers of `index_width` (1, 2, 4 or 8) bytes, all of which have an entry.
        out_wide, offsets, base
            Output for n + 1 offsets of 32 (or, `out_wide`, 64) bits, the first of which is `base`.
        out
            Output of at least ``room(n)`` bytes; those behind the last string may be overwritten.

        Raises
        ------
        CodecError
            An index has no entry, or a buffer is too small.
        OffsetOverflowError
            n of the longest entry would pass what the offsets hold: use `binary_offsets` and `binary`.
        """

def variable_offsets(
    value_offsets: NDArray[np.int64], indices: Buffer, index_width: int, out: NDArray[np.int64]
) -> int:
    """First pass of a variable-width gather: n + 1 output offsets from 0 on; returns the total number of bytes."""

def variable(
    values: Buffer,
    value_offsets: NDArray[np.int64],
    indices: Buffer,
    index_width: int,
    out_offsets: NDArray[np.int64],
    out: Buffer,
) -> None:
    """Second pass of a variable-width gather: copy value ``indices[i]`` to ``out[out_offsets[i]]``."""

def expand_ranges(begins: NDArray[np.int64], offsets: Buffer, wide: bool, out: NDArray[np.int64]) -> None:
    """Write ``begins[i], begins[i] + 1, ...`` to ``out[offsets[i]:offsets[i + 1]]`` for each of n ranges.

    Parameters
    ----------
    offsets
        n + 1 ascending 32-bit (or, `wide`, 64-bit) integers.
    """
