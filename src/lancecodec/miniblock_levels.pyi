"""Repetition and definition levels of mini-block chunks, and the index that finds rows in them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from lancecodec.miniblock import Chunks

FLAT: Final[int]
INLINE: Final[int]
RLE: Final[int]
OUT_OF_LINE: Final[int]

class Levels:
    """Levels of the chunks of a page; general compression of the values does not matter here.

    Parameters
    ----------
    chunks
        The chunks.
    repetition, definition
        How the stream is stored: (`FLAT`, 0), (`INLINE`, 0), (`RLE`, 0) or (`OUT_OF_LINE`, packed bits); None exactly
        if the chunks do not have it.
    max_repetition, max_definition
        Largest levels the layers have.
    max_visible
        Largest definition level of an entry that owns a value.
    """

    def __init__(
        self,
        chunks: Chunks,
        *,
        repetition: tuple[int, int] | None = None,
        definition: tuple[int, int] | None = None,
        max_repetition: int = 0,
        max_definition: int = 0,
        max_visible: int = 0,
    ) -> None: ...
    def begins(self, first: int, stop: int) -> memoryview:
        """int64: entries of chunks [first, stop) before each of them, then all. Reads their headers; cache it."""

    def scan(self, first: int, stop: int, repetition: Buffer | None = None, definition: Buffer | None = None) -> int:
        """Decode the levels of chunks [first, stop) to 16-bit outputs; returns the number of entries.

        A stream without output is not looked at.

        Raises
        ------
        CodecError
            An output is too small, a level does not exist, or the entries that own values are not as many as the
            chunk's values (checked where both streams exist if `definition` is given, else by the number of entries).
        """

    def take(self, items: NDArray[np.int64], definition: Buffer) -> None:
        """Definition levels of single values, in any order, of a page without lists."""

    def take_rows(
        self,
        index: RepetitionIndex,
        rows: NDArray[np.int64],
        begins: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> tuple[bytes, bytes | None]:
        """Levels of whole rows, in any order, of a page with lists; ascending rows are the fastest.

        Parameters
        ----------
        index
            The repetition index of the page.
        begins, counts
            Receive for each row its first value (of the page) and how many values it has.

        Returns
        -------
        tuple
            Repetition and definition levels, 16 bits each, row after row; None without a definition stream.
        """

def row_starts(
    repetition: Buffer,
    definition: Buffer | None,
    length: int,
    max_repetition: int,
    max_visible: int,
    entries: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int:
    """Where rows start in decoded levels: their entries and the values before them, then both ends.

    Entries before the first row start belong to a row that started in an earlier chunk. `entries` and `values` need one
    element more than there are rows. Returns the number of rows that start.
    """

class RepetitionIndex:
    """Which rows start and end in which chunks: the last page buffer of pages with lists.

    Parameters
    ----------
    data
        Pairs of 64-bit integers, one per chunk.
    num_chunks
        Number of chunks.
    num_rows
        Rows of the page.

    Raises
    ------
    CodecError
        The size is wrong, or the rows do not add up.
    """

    num_chunks: int
    num_rows: int
    started: memoryview
    """int64: rows that start before each chunk, then all."""
    ended: memoryview
    """int64: rows that end before each chunk, then all."""

    def __init__(self, data: Buffer, num_chunks: int, num_rows: int) -> None: ...
    def chunk_range(self, start: int, stop: int) -> tuple[int, int, int]:
        """Chunks [first, last) that rows [start, stop) lie in, and how many row starts in them to skip; zeros for none.

        In the levels of those chunks row `start` begins at the row start with that number, counted from 0.
        """
