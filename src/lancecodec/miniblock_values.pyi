"""Values of mini-block chunks: ranges and single positions, written to their final place.

Positions count the values (visible items) of the page. Outputs are the caller's. All functions raise CodecError for
positions outside the page, for outputs that are too small, for chunks that were not loaded or not decompressed, and
for chunks that contradict their codec; the output is then undefined, nothing else is.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.miniblock import Chunks

FLAT: Final[int]
INLINE: Final[int]
RLE: Final[int]
SPLIT: Final[int]

class FixedValues:
    """Fixed-width values of the chunks of a page.

    Parameters
    ----------
    chunks
        The chunks.
    kind
        `FLAT`, `INLINE` (bit packing), `RLE` (lengths of 8 bits) or `SPLIT` (byte streams).
    bits
        Width of a value; any for `FLAT` (a fixed-size list of items is one wide value), 8, 16, 32, 64 for `INLINE` and
        `RLE`, 32 or 64 for `SPLIT`.
    buffer
        First value buffer of the codec; those in front are validity bitmaps of list items, which can be read as flat
        values of as many bits as a list has items.
    """

    def __init__(self, chunks: Chunks, kind: int, bits: int, buffer: int = 0) -> None: ...
    def scan(self, start: int, stop: int, out: Buffer, at: int = 0) -> None:
        """Write values [start, stop) to `out` from value `at` on.

        A width that is not whole bytes makes `out` a bit string; bits outside the values written stay as they are, so
        threads must not write neighbouring ranges that share a byte.
        """

    def take(self, items: NDArray[np.int64], out: Buffer, at: int = 0) -> None:
        """Write value ``items[i]`` to position ``at + i``; any order, repeats allowed.

        Fastest when ascending: neighbours of one chunk are handled together. Many positions in no order make it decode
        the page once instead, if that is not more than eight times what was asked for.
        """

    def scan_dictionary(
        self,
        start: int,
        stop: int,
        entries: Buffer,
        width: int,
        count: int,
        out: Buffer,
        at: int = 0,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> None:
        """As `scan`, the values being indices into `count` entries of `width` bytes, which are written.

        `validity` says (from its bit `bit` on, for value `start`) which values are not null: a null may have any index,
        and becomes entry 0 if that is out of range. Without it every index must have an entry.
        """

    def take_dictionary(
        self,
        items: NDArray[np.int64],
        entries: Buffer,
        width: int,
        count: int,
        out: Buffer,
        at: int = 0,
        validity: Buffer | None = None,
        bit: int = 0,
    ) -> None:
        """As `take`, through a dictionary as in `scan_dictionary`; bit ``bit + i`` is that of ``items[i]``."""

def check_indices(
    indices: Buffer, bits: int, length: int, count: int, validity: Buffer | None = None, bit: int = 0
) -> None:
    """Check decoded dictionary indices of 8, 16, 32 or 64 bits in place: all below `count`; a null's becomes 0 if not.

    Raises
    ------
    CodecError
        An index of a valid value has no entry.
    """

class VariableValues:
    """Strings and binaries of the chunks of a page.

    Parameters
    ----------
    chunks
        The chunks.
    wide
        Stored offsets have 64 bits, else 32.
    symbol_table
        The page's FSST table, if the values are FSST codes.
    buffer
        The value buffer they are in.
    """

    def __init__(self, chunks: Chunks, wide: bool, symbol_table: Buffer | None = None, buffer: int = 0) -> None: ...
    def size(self, start: int, stop: int) -> int:
        """Bytes that values [start, stop) have together; several times as fast as decoding them."""

    def estimate(self, start: int, stop: int) -> int:
        """Bytes that `scan` most likely needs room for to write values [start, stop) in one call, from a few chunks.

        Exact if the values are no FSST codes; otherwise a few percent above what they are likely to decode to.
        """

    def scan(
        self, start: int, stop: int, wide: bool, offsets: Buffer, out: Buffer, base: int = 0, exact: bool = False
    ) -> tuple[int, int]:
        """Offsets and bytes of values [start, stop) in one pass.

        Parameters
        ----------
        wide
            The offsets written have 64 bits, else 32.
        offsets
            Receives ``stop - start + 1`` of them, the first being `base`.
        out
            Receives the bytes, as far as there is room.
        exact
            There is room for all values (see `size`): do not stop early, but fail if there is not.

        Returns
        -------
        tuple
            First value that was not written, and the number of bytes written. It stops before a chunk that might not
            fit in what is left of `out`: its stored size must fit, eight times that with FSST. Then enlarge `out` and
            call again from there, with offsets and out moved on and the new base; or use the two passes below.
        """

    def scan_offsets(self, start: int, stop: int, wide: bool, out: Buffer, base: int = 0) -> int:
        """First pass: ``stop - start + 1`` offsets from `base` on; returns the exact number of bytes."""

    def scan_bytes(self, start: int, stop: int, out: Buffer) -> int:
        """Second pass: the bytes, back to back; returns their number."""

    def take_offsets(self, items: NDArray[np.int64], wide: bool, out: Buffer, base: int = 0) -> int:
        """First pass for values ``items[i]`` in any order: ``len(items) + 1`` offsets; returns the number of bytes."""

    def take_bytes(self, items: NDArray[np.int64], out: Buffer) -> int:
        """Second pass: the bytes of values ``items[i]``, back to back; returns their number."""
