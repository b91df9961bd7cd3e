"""Dictionary building: codes of equal values, and where each entry appears first.

Values are compared as bytes: for floating point, -0.0 and 0.0 differ and NaNs are equal if their bits are.
Equal values are found with a hash table under a secret of the process; results do not depend on it.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: Widest fixed-width value, in bytes, that is looked up.
MAX_WIDTH: int

def build_fixed(
    values: Buffer,
    width: int,
    codes: Buffer,
    code_width: int,
    positions: NDArray[np.int64],
    validity: Buffer | None = None,
    bit: int = 0,
    max_bytes: int = ...,
) -> tuple[int, int] | None:
    """Number the distinct values of `width` bytes in order of first appearance.

    Parameters
    ----------
    values
        n values of `width` (1 to 256) bytes.
    codes
        Output for n unsigned codes of `code_width` (1, 2, 4 or 8) bytes. A null has code 0, whatever its bytes.
    positions
        Output for the index of each entry's first value. Its length limits the number of entries, as does
        `code_width`, and 2**30.
    validity
        Bitmap, from bit `bit` on; None if no value is null. A null is no entry.
    max_bytes
        Limits the bytes of all entries together.

    Returns
    -------
    tuple or None
        Number of entries and their bytes together; None if there are more than the limits allow. Then codes and
        positions have no meaning.

    Raises
    ------
    CodecError
        A buffer is too small, or a width is not supported.
    """

def build_variable(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    codes: Buffer,
    code_width: int,
    positions: NDArray[np.int64],
    validity: Buffer | None = None,
    bit: int = 0,
    max_bytes: int = ...,
) -> tuple[int, int] | None:
    """Number the distinct strings in order of first appearance; parameters and results as for `build_fixed`.

    Parameters
    ----------
    values
        Concatenated values; the first offset need not be 0.
    offsets
        n + 1 ascending 32-bit (or, `wide`, 64-bit) offsets; those before the first valid value are not looked at.
    max_bytes
        Limits the bytes of all entries together, offsets not counted.

    Raises
    ------
    CodecError
        Offsets decrease or pass `values`, or a buffer is too small.
    """

def sample_fixed(
    values: Buffer, width: int, validity: Buffer | None = None, bit: int = 0, blocks: int = 32, size: int = 128
) -> tuple[int, int]:
    """Count how many valid values a spread sample has, and how many of them are distinct.

    The sample is `blocks` stretches of `size` neighbouring values at equal distances, from the first value on; all
    values if there are fewer, and with nulls the first valid value. Nearly as many distinct values as values mean that
    a dictionary will not pay.
    """

def sample_variable(
    values: Buffer,
    offsets: Buffer,
    wide: bool,
    validity: Buffer | None = None,
    bit: int = 0,
    blocks: int = 32,
    size: int = 128,
) -> tuple[int, int]:
    """`sample_fixed` for strings between offsets."""
