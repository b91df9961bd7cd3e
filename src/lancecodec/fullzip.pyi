"""Full-zip pages of file versions 2.1 and 2.2: levels and values zipped item by item, and the index of their rows.

Reading is done over byte ranges of the zipped buffer (or of what was read of it), each of one or more whole rows:
`row_span` and `row_ranges` find them, ``(0, size)`` is the whole page.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class ZipLayout:
    """How the items of a page are put together. Does not change, so threads may share it.

    Parameters
    ----------
    bits_rep, bits_def
        Bits of the levels in a control word.
    max_repetition, max_definition
        Largest levels the layers have; `max_repetition` is the number of list layers.
    max_visible
        Largest definition level of an item that owns a value.
    width
        Bytes of a value, if all have the same.
    offset_bits
        Bits (32 or 64) of the length in front of each value, if they vary. A visible null then has no length and is
        delivered as a value of no bytes.
    symbol_table
        FSST table of values that vary. Values that are compressed one by one (General) are delivered as stored.
    """

    item_size: int | None
    """Bytes of every item, or None if they differ."""

    def __init__(
        self,
        *,
        bits_rep: int = 0,
        bits_def: int = 0,
        max_repetition: int = 0,
        max_definition: int = 0,
        max_visible: int = 0,
        width: int | None = None,
        offset_bits: int | None = None,
        symbol_table: Buffer | None = None,
    ) -> None: ...
    def count(self, data: Buffer, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[int, int, int, int]:
        """Items, visible items, rows and value bytes in byte ranges of `data`: the sizes of what unzipping gives.

        Not needed without lists, where items = visible items = rows are known, if for value bytes the ranges' own size
        (without FSST) is taken. Raises CodecError also for a range that does not begin with a row.
        """

    def unzip_fixed(
        self,
        data: Buffer,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        values: Buffer,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
    ) -> tuple[int, int, int]:
        """Levels (16 bits) and visible values of the items in byte ranges; returns items, visible items and rows.

        Values are packed, those of nulls included. The caller compares the counts with what it expects.
        """

    def unzip_variable(
        self,
        data: Buffer,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        wide: bool,
        offsets: Buffer,
        values: Buffer,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
        base: int = 0,
    ) -> tuple[int, int, int, int]:
        """As `unzip_fixed`; offsets (64 bits if `wide`) from `base` on, one more than visible items, and the bytes.

        Returns items, visible items, rows and the number of value bytes.
        """

    def scan_fixed(self, data: Buffer, start: int, stop: int, values: Buffer, definition: Buffer | None = None) -> None:
        """Items [start, stop) of a page where `item_size` is not None."""

    def take_fixed(
        self, data: Buffer, items: NDArray[np.int64], values: Buffer, definition: Buffer | None = None
    ) -> None:
        """Items ``items[i]``, in any order, of a page where `item_size` is not None; needs no index."""

    def zipped_size(
        self,
        length: int,
        values: Buffer,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
        offsets: Buffer | None = None,
        wide: bool = False,
    ) -> tuple[int, int, int]:
        """Bytes, rows and visible items that `zip_items` will find."""

    def zip_items(
        self,
        length: int,
        values: Buffer,
        out: Buffer,
        index: Buffer | None = None,
        index_width: int = 0,
        *,
        repetition: Buffer | None = None,
        definition: Buffer | None = None,
        offsets: Buffer | None = None,
        wide: bool = False,
    ) -> tuple[int, int]:
        """Zip items and, if wanted, write their index; returns bytes and rows.

        Parameters
        ----------
        length
            Number of items.
        values
            Visible values, those of nulls included: packed, or with `offsets` (64 bits if `wide`), one more than
            visible items. What offsets say of nulls is left out.
        index
            Receives rows + 1 positions of `index_width` bytes: 1, 2, 4 or 8.
        repetition, definition
            Levels of 16 bits, given exactly where the layout has bits for them.

        Raises
        ------
        CodecError
            An output is too small, a level does not exist or does not fit its bits, the first item starts no row, the
            values are fewer than the visible items, or a position does not fit the index.
        """

def index_width(size: int, rows: int) -> int:
    """Bytes of an entry of a repetition index of `size` bytes for `rows` rows: 1, 2, 4 or 8."""

def row_ranges(
    index: Buffer,
    width: int,
    rows: NDArray[np.int64],
    size: int,
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    first: int = 0,
) -> None:
    """Byte ranges of rows, in any order, in zipped items of `size` bytes.

    `index` may be a part of the repetition index that begins with the entry of row `first`; it needs the entry behind
    the last row too. Only the entries used are checked.
    """

def row_span(index: Buffer, width: int, start: int, stop: int, size: int, first: int = 0) -> tuple[int, int]:
    """Byte range of rows [start, stop); `index` as in `row_ranges`."""
