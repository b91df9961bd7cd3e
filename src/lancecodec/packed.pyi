"""Packed structs: rows of fixed or variable width, and the columns they hold.

Fixed-width rows have the bytes of their children back to back. Variable-width rows have the length of a variable-width
child in front of it and are described by Arrow offsets themselves. Columns of fixed width are ``rows * width`` bytes.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: Child to be packed: ``(data, width)``, or ``(data, bytes of the length, Arrow offsets, wide)``. For type checkers.
Child: TypeAlias = tuple[Buffer, int] | tuple[Buffer, int, Buffer, bool]
#: Child of a row to be split: whether it is variable, and its width or that of its length (4 or 8).
Field: TypeAlias = tuple[bool, int]

def row_bytes(widths: Sequence[int]) -> int:
    """Size of a fixed-width row; CodecError unless every width is at least 1."""

def pack(columns: Sequence[Buffer], widths: Sequence[int], rows: int, out: Buffer, stride: int = 0) -> int:
    """Write columns as rows, row i at byte ``i * stride`` of `out` (0: back to back); returns ``rows * row_bytes``."""

def unpack(source: Buffer, widths: Sequence[int], rows: int, columns: Sequence[Buffer | None], stride: int = 0) -> None:
    """Write rows as columns; None for a child that is not wanted."""

def take(
    source: Buffer,
    widths: Sequence[int],
    rows: int,
    index: NDArray[np.int64],
    columns: Sequence[Buffer | None],
    stride: int = 0,
) -> None:
    """Write the rows at positions `index` of `rows` rows as columns; None for a child that is not wanted."""

def row_offsets(
    children: Sequence[Child], rows: int, wide: bool, out: Buffer, validity: Buffer | None = None, bit: int = 0
) -> None:
    """Offsets from 0 of variable-width rows.

    Bit ``bit + i`` of `validity` is that of row i: a null row is empty. CodecError if 32 bits do not suffice for an
    offset or for the length of a value.
    """

def pack_rows(children: Sequence[Child], rows: int, out: Buffer, validity: Buffer | None = None, bit: int = 0) -> int:
    """Write the bytes of variable-width rows; returns how many they are. What follows them in `out` may change too."""

def split_rows(
    offsets: Buffer,
    wide: bool,
    data: Buffer,
    rows: int,
    fields: Sequence[Field],
    outputs: Sequence[Buffer | tuple[Buffer, bool] | None],
    validity: Buffer | None = None,
    bit: int = 0,
) -> list[int]:
    """Split variable-width rows: fixed children, and the offsets of variable ones.

    Parameters
    ----------
    offsets, wide, data
        The rows, as Arrow values.
    outputs
        For a fixed child its column; for a variable one ``(offsets, wide)``, ``rows + 1`` entries from 0 on; None for a
        child that is not wanted.
    validity, bit
        As in `row_offsets`: null rows leave zeros and empty values.

    Returns
    -------
    list of int
        How many bytes each variable child has, 0 for fixed ones.

    Raises
    ------
    CodecError
        A value passes the end of its row, a row has bytes left over, or 32-bit offsets do not suffice.
    """

def split_bytes(
    offsets: Buffer,
    wide: bool,
    data: Buffer,
    rows: int,
    fields: Sequence[Field],
    outputs: Sequence[Buffer | None],
    validity: Buffer | None = None,
    bit: int = 0,
) -> None:
    """Copy the bytes of the variable children, back to back; None for a child that is not wanted or has fixed width.

    What follows them in an output may change too.
    """
