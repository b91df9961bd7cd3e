"""Levels of a page: rows, chunks, repetition index, control words.

Streams are 16-bit little-endian levels at any address. `max_repetition` is the number of list layers, the level that
rows start with.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

def max_level(levels: Buffer) -> int:
    """Highest level of a stream; 0 of an empty one."""

def count_rows(repetition: Buffer, max_repetition: int) -> int:
    """Number of rows that start in a repetition stream."""

def count_visible(definition: Buffer, start: int, stop: int, max_visible_definition: int) -> int:
    """Number of items among ``[start, stop)`` that own a value."""

def row_starts(repetition: Buffer, max_repetition: int, out: NDArray[np.int64]) -> int:
    """Write the item that each row starts with; returns the number of rows, which `out` must have room for."""

def row_items(repetition: Buffer, max_repetition: int, start: int, stop: int) -> tuple[int, int]:
    """Items ``(first, last)`` of rows ``[start, stop)``: from `first` up to, not including, `last`.

    Items before the first row start belong to no row of this stream (a chunk may begin within a row).
    """

def cut(
    definition: Buffer | None,
    num_items: int,
    max_visible_definition: int,
    counts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Divide the items of a page among its chunks.

    A chunk ends right behind its last visible item; items without a value that follow go to the next chunk, and the
    last chunk takes all that is left.

    Parameters
    ----------
    definition
        Definition levels of the page; None if it has none.
    counts
        Visible items of each chunk: at least 1 each, all visible items together.
    ends
        Output: end item of each chunk.

    Returns
    -------
    int
        The largest number of items in one chunk; chunk headers hold at most 65,535.
    """

def repetition_index(repetition: Buffer, max_repetition: int, ends: NDArray[np.int64], out: Buffer) -> None:
    """Write the repetition index of a mini-block page: 16 bytes per chunk.

    Each pair of 64-bit words is the number of rows that end in the chunk, and the number of its last items that belong
    to a row that does not (0 if the chunk ends with a row).

    Parameters
    ----------
    ends
        End item of each chunk, as `cut` gives them.
    """

def control_width(bits_repetition: int, bits_definition: int) -> int:
    """Bytes of a full-zip control word: 0 (no words), 1, 2 or 4."""

def pack_control_words(
    repetition: Buffer | None,
    definition: Buffer | None,
    num_items: int,
    bits_repetition: int,
    bits_definition: int,
    out: Buffer,
) -> None:
    """Write one control word ``(repetition << bits_definition) | definition`` per item; None stands for zeros.

    Raises
    ------
    CodecError
        A level does not fit its bits, or `out` is too small.
    """

def unpack_control_words(
    words: Buffer,
    num_items: int,
    bits_repetition: int,
    bits_definition: int,
    repetition: Buffer | None,
    definition: Buffer | None,
) -> None:
    """Undo `pack_control_words` into streams of exactly `num_items` levels; None: not wanted.

    Raises
    ------
    CodecError
        `words` or an output is not that of `num_items` items. Levels are not checked; `LevelUnraveler` does that.
    """
