"""Random access to many columns of many fragments at once: row numbers in, Arrow arrays out.

A `RowTaker` knows the fragments of a table, these know their columns, and a column its pages; all but the table are
opened by callbacks when a row of them is asked for, and stay. One call sorts the rows, finds fragment and page of each,
and fills the buffers of a column with the values in the order asked. What cannot be taken here (a page for which the
callback gives None, a page that contradicts itself) leaves its column *missing*, so that the caller takes it another
way, which tells what is wrong. Objects may be used from several threads.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.take_pages import PageTaker

ADDRESSES: Final[str]
"""Stands for a column of 64-bit row addresses (fragment id in the upper half) in `FragmentTaker`."""

class ColumnTaker:
    """The pages of a column of a fragment.

    Parameters
    ----------
    starts
        First row of each page, then the number of rows.
    width
        Bytes of a value, as for pages.
    open_page
        Makes the page of a number, or gives None; called once for each, in a race perhaps more often.
    """

    width: int
    def __init__(self, starts: Sequence[int], width: int, open_page: Callable[[int], PageTaker | None]) -> None: ...
    @property
    def num_rows(self) -> int:
        """Number of rows."""

class FragmentTaker:
    """A fragment.

    Parameters
    ----------
    columns
        A column for each one of the `RowTaker`; None where it cannot be taken, `ADDRESSES` for the row addresses.
    rows
        Number of rows, deleted ones included.
    fragment_id
        Its id, for addresses.
    deleted
        The deleted rows, ascending, int64.
    """

    def __init__(
        self, columns: Sequence[ColumnTaker | str | None], rows: int, fragment_id: int, deleted: Buffer | None = None
    ) -> None: ...

class RowTaker:
    """Takes rows of some columns of a table.

    Parameters
    ----------
    shapes
        For each column: bytes of a value (as for pages), whether its offsets have 64 bits, whether it is UTF-8, and the
        dimensions of fixed-size lists, outermost first, which a value of so many bytes consists of; then bytes of the
        offsets of lists of such values, 4 or 8, or 0 if there are no lists.
    starts
        Live rows before each fragment, then all, int64.
    open_fragment
        Makes the fragment at a position.
    """

    num_columns: int
    def __init__(
        self,
        shapes: Sequence[tuple[int, bool, bool, Sequence[int], int]],
        starts: Buffer,
        open_fragment: Callable[[int], FragmentTaker],
    ) -> None: ...
    @property
    def num_rows(self) -> int:
        """Live rows of all fragments."""

    def numbers(self, rows: NDArray[np.int64]) -> TakenRows:
        """Live rows by number, at least one, in any order.

        Raises
        ------
        IndexError
            A number outside the table.
        CodecError
            A fragment that is not what the table says.
        """

    def places(self, rows: NDArray[np.int64]) -> TakenRows:
        """Rows, deleted or not, by ``position of the fragment << 32 | row``; otherwise as `numbers`."""

class TakenRows:
    """Rows that were found, and their columns as far as they were decoded."""

    num_rows: int
    def decode(self, column: int) -> None:
        """Decode a column; several threads may decode different ones. The GIL is released where it is worth it."""

    def decode_all(self) -> None:
        """Decode all columns, one after the other."""

    @property
    def missing(self) -> list[int]:
        """The columns that are not there, ascending."""

    def column(self, column: int) -> int:
        """Address of a decoded column as ``struct ArrowArray``; who imports it owns the buffers."""

    def batch(self) -> int:
        """Address of a struct array of all columns, none of them missing; columns cannot be had any more."""

def integers(values: list[object]) -> memoryview | None:
    """The numbers of a list as int64; None if one is no `int` from 0 to 2**63 - 1."""
