"""Keys of joins: rows of several columns by value, in a hash table.

Keys are equal if all their bytes are: floating point numbers, too, are compared by their bits.

The columns of a key are described by tuples ``(width, null_is_value, validity, bit, data, first, offsets, wide)``:

width
    Bytes of a value; or `BITS`, `TEXTS` for values of variable width, `NOTHING` where only the validity counts.
null_is_value
    Whether a null equals another null; else rows where the column is null have no key.
validity, bit
    A bitmap, and the bit of the first row in it; None if no value is null.
data, first
    Buffer of the values, and the number of the first row's value (bit, offset) in it.
offsets, wide
    Of `TEXTS`: ascending 32-bit (or, `wide`, 64-bit) offsets into the data, one more than there are values.

Rows that have the same shape, which is the width and the `null_is_value` of each column, can be compared with each
other. `CodecError` is raised wherever a buffer is too short for its rows, offsets decrease or pass their data, or a
width is not supported.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

KeyColumn: TypeAlias = tuple[int, bool, Buffer | None, int, Buffer, int, Buffer | None, bool]

BITS: int
TEXTS: int
NOTHING: int

class KeyTable:
    """Distinct keys, numbered from 0 in the order they come.

    The hash has a secret of its own in each table, so nobody can prepare keys that collide. Keys are copied; besides
    them a table has 18 to 36 bytes per key, and 8 more if their size varies.
    """

    def __init__(self) -> None: ...
    def add(self, columns: Iterable[KeyColumn], rows: int, out: NDArray[np.int64]) -> None:
        """Number the keys of all rows, taking in those that are new; -1 for rows without a key.

        Raises
        ------
        CodecError
            The shape is not that of the first rows, or another thread adds keys, or somebody has looked for some.
        """

    def find(self, columns: Iterable[KeyColumn], rows: int, places: NDArray[np.int64], out: NDArray[np.int64]) -> int:
        """Look for the keys of all rows; several threads may do so at once.

        Parameters
        ----------
        places, out
            As many as there are rows. The first are set to the numbers of the rows whose keys are there, ascending,
            and to the numbers of these keys; what is behind them means nothing.

        Returns
        -------
        int
            How many rows were found.

        Raises
        ------
        CodecError
            The shape is not that of the table, or keys are being added.
        """

    def __len__(self) -> int:
        """Number of distinct keys."""

class KeyParts:
    """Divides keys by their hash, such that equal ones are together.

    Parameters
    ----------
    parts
        At most 2**20.
    """

    def __init__(self, parts: int) -> None: ...
    def numbers(self, columns: Iterable[KeyColumn], rows: int, out: NDArray[np.int64]) -> None:
        """The part of each row, -1 for rows without a key."""

def pack(columns: Iterable[KeyColumn], rows: int, ends: NDArray[np.int64]) -> bytes:
    """Rows as byte strings, different ones for different rows, of which none begins another.

    Parameters
    ----------
    ends
        Set to the ends of the strings, from a 0 on: one more than there are rows.

    Returns
    -------
    bytes
        The strings, one after the other.
    """

def measure_groups(groups: NDArray[np.int64], first: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
    """Set the first row and the number of rows of each number that `KeyTable.add` has given to rows.

    Parameters
    ----------
    groups
        What it has given to all rows from the first on.
    first, sizes
        As many as there are distinct keys.

    Raises
    ------
    CodecError
        Numbers that it cannot have given.
    """
