"""Fixed-size lists of fixed-width items: chunks of bit streams, and rows of whole bytes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class Shape:
    """Dimensions, levels with validity and value width of a fixed-size list, nested or not.

    The validity of a level is that of its *items*: one bitmap in which row i has bits ``i * c`` to ``(i + 1) * c``, c
    being the product of the dimensions up to the level. The values of the innermost level are one stream too, of bits
    if their width is no whole number of bytes.

    Parameters
    ----------
    dimensions
        List sizes, outermost first; at least 1 each, 32 levels at most.
    has_validity
        For each level, whether its items have a bitmap.
    bits
        Width of a value; 0 if every item is null and no values are stored.

    Raises
    ------
    CodecError
        A dimension below 1, or a product of dimensions and width beyond 2**56 bits.
    """

    dimensions: tuple[int, ...]
    has_validity: tuple[bool, ...]

    def __init__(self, dimensions: Sequence[int], has_validity: Sequence[bool], bits: int) -> None: ...
    @property
    def bits(self) -> int:
        """Width of a value."""

    @property
    def buffers(self) -> int:
        """Buffers of a chunk: one bitmap per level with validity, outermost first, then the values if there are any."""

    @property
    def row_bytes(self) -> int:
        """Size of a row that stands alone: whole bytes for the bits of each buffer."""

    def rows_per_chunk(self) -> int:
        """Rows of every chunk but the last, by the reference's rule; CodecError if a row is too wide for chunks."""

    def plan(self, rows: int, per_chunk: int, ends: NDArray[np.int64]) -> int:
        """End bytes of the chunks in each output of `encode`, one line per buffer; returns the number of chunks."""

    def encode(
        self,
        validity: Sequence[tuple[Buffer, int] | None],
        values: Buffer | None,
        first: int,
        rows: int,
        per_chunk: int,
        outputs: Sequence[Buffer],
    ) -> None:
        """Cut rows into chunks, each stream into an output of its own.

        Parameters
        ----------
        validity
            For each level None or its bitmap and the bit of the first item.
        values
            Value buffer, of which item `first` is the first one taken; ignored if `bits` is 0.
        outputs
            One per buffer, of the size `plan` gives. Spare bits of the last byte of a chunk are 0.
        """

    def decode_chunk(
        self,
        buffers: Sequence[Buffer],
        rows: int,
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
    ) -> None:
        """Append the rows of one chunk as rows `row` and after of the target bitmaps and values.

        Other bits of the targets stay as they are. Chunk buffers must have exactly the size of their rows.
        """

    def decode(
        self,
        buffers: Sequence[Buffer],
        ends: NDArray[np.int64],
        counts: NDArray[np.int64],
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
    ) -> None:
        """The same for chunks back to back: chunk k has ``counts[k]`` rows, and ends at ``ends[s, k]`` of buffer s."""

    def take_chunk(
        self,
        buffers: Sequence[Buffer],
        rows: int,
        index: NDArray[np.int64],
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
    ) -> None:
        """As `decode_chunk`, for the rows at positions `index` of a chunk of `rows` rows."""

    def pack_rows(
        self,
        validity: Sequence[tuple[Buffer, int] | None],
        values: Buffer | None,
        first: int,
        rows: int,
        out: Buffer,
        stride: int = 0,
    ) -> None:
        """Write rows that stand alone, row i at byte ``i * stride`` of `out` (0: back to back); see `encode`.

        The values of a row must be whole bytes. To leave room before the first row, pass a slice.
        """

    def unpack_rows(
        self,
        source: Buffer,
        rows: int,
        validity: Sequence[Buffer | None],
        values: Buffer | None,
        row: int = 0,
        stride: int = 0,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        """Append rows that stand alone, at ``i * stride`` (0: back to back) or ``places[i]``; see `decode_chunk`."""
