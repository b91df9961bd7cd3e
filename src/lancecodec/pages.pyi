"""Random access over the pages of a column: row numbers in, values at their final place out."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: One page of `EndsPages`, for type checkers only.
EndsTable: TypeAlias = tuple[Buffer, int, int, int, Buffer | None, Buffer | None, int]

class FixedPages:
    """Fixed-width values of a column, each page a value buffer and perhaps a validity bitmap.

    Parameters
    ----------
    starts
        First row of each page, then the total: one entry more than there are pages, from 0 on.
    bits
        Width of a value: 1 or a multiple of 8.
    values
        One buffer per page; None for a page of nulls only.
    validity
        One bitmap per page; None for a page without nulls.

    Raises
    ------
    CodecError
        A buffer is too small for its page.
    """

    has_nulls: bool
    num_rows: int

    def __init__(
        self, starts: Sequence[int], bits: int, values: list[Buffer | None], validity: list[Buffer | None]
    ) -> None: ...
    def take(self, rows: NDArray[np.int64], out: Buffer, validity: Buffer | None = None) -> int:
        """Write value ``rows[i]`` to position i of `out` and its validity to bit i; returns the number of nulls.

        `validity` may be None only if `has_nulls` is false.
        """

class EndsPages:
    """Variable-width values of a column: pages of 2.0 end offsets, plain or behind a dictionary.

    Parameters
    ----------
    starts
        As for `FixedPages`.
    pages
        Per page None (all null) or ``(ends, adjustment, limit, base, data, codes, entries)``: the u64 end buffer, the
        null adjustment, the number of items (bytes) covered, the position of the first one in the item column, the
        value bytes (None for lists), and for dictionary pages the u8 code buffer (0 is null, k is entry k - 1) with
        the number of dictionary entries (else None and 0).
    """

    num_rows: int

    def __init__(
        self,
        starts: Sequence[int],
        pages: list[EndsTable | None],
    ) -> None: ...
    def take_offsets(
        self,
        rows: NDArray[np.int64],
        wide: bool,
        offsets: Buffer,
        validity: Buffer,
        begins: NDArray[np.int64] | None = None,
    ) -> tuple[int, int]:
        """Offsets and validity of the taken values, and where each begins in the item column.

        A null has length 0. Returns the total number of items and the number of nulls. A total above what all pages
        cover is believed only after no end of the pages concerned was found to decrease.
        """

    def take_bytes(self, rows: NDArray[np.int64], wide: bool, offsets: Buffer, out: Buffer) -> None:
        """Copy the bytes of the taken values to the places `take_offsets` gave them."""
