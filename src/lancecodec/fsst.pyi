"""FSST: strings as rows of one-byte codes for the symbols of a table, one table a page.

P. Boncz, T. Neumann, V. Leis: FSST: Fast Random Access String Compression, VLDB 2020. A code below the number of
symbols stands for a symbol of 1 to 8 bytes, the code 255 (escape) for the byte behind it.

A writer calls `build`, then `Encoder.encode`; or, if the sizes that `build` returns promise too little, it writes the
strings as they are with a table from `write_verbatim_table`. A reader calls `SymbolTable.decode` for each chunk.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: Bytes of a serialised symbol table, however many symbols it has.
TABLE_SIZE: int
#: Most symbols in a table.
MAX_SYMBOLS: int

def encode_bound(size: int) -> int:
    """Bytes of output that `Encoder.encode` asks for, given strings of `size` bytes together."""

def build(data: Buffer, offsets: Buffer, wide: bool, n: int, table: Buffer) -> tuple[int, int]:
    """Make a symbol table for strings, from a sample of about 16 KiB of them.

    The same strings always give the same table.

    Parameters
    ----------
    data
        Bytes that the offsets point into.
    offsets
        The n + 1 offsets of the strings, the first of which may be any; 64 bits each if `wide`, else 32.
    n
        Number of strings.
    table
        Output of `TABLE_SIZE` bytes. The table says that strings are compressed, and has no symbols if all are empty.

    Returns
    -------
    tuple
        Bytes of the sample, and bytes it has when compressed with this table. Their ratio is an estimate for all
        strings, a little too good as the table was made for the sample; from 1 on, verbatim strings are smaller.

    Raises
    ------
    CodecError
        The offsets decrease or pass the data, or an argument has the wrong size.
    """

def write_table(symbols: Iterable[bytes], table: Buffer) -> None:
    """Serialise symbols in code order into `table`, an output of `TABLE_SIZE` bytes.

    Raises
    ------
    CodecError
        There are more than `MAX_SYMBOLS`, or one has not 1 to 8 bytes.
    """

def write_verbatim_table(table: Buffer) -> None:
    """Write the table of strings that are stored as they are into `table`, an output of `TABLE_SIZE` bytes."""

class SymbolTable:
    """The symbols of a page, ready to decode its strings.

    Strings are given by `data`, the bytes of all of them back to back, and `ends`: n offsets of 32 bits, or 64 if
    `wide`. String i ends before byte ``ends[i] - first`` of `data` and begins where the one before ended, string 0 at
    byte 0. So `ends` may be Arrow offsets without the first one, and `first` the first one.

    Parameters
    ----------
    table
        The 2312 bytes from the description of the page.

    Raises
    ------
    CodecError
        They are no symbol table.
    """

    compressed: bool
    """False if the strings are stored as they are."""
    symbols: list[bytes]
    """The symbols in code order."""

    def __init__(self, table: Buffer) -> None: ...
    def decoded_size(self, data: Buffer) -> int:
        """Bytes that all strings of `data` together have when decoded.

        Raises
        ------
        CodecError
            A code has no symbol, or the last byte is an escape.
        """

    def decode(
        self,
        data: Buffer,
        ends: Buffer,
        wide: bool,
        first: int,
        n: int,
        base: int,
        out_wide: bool,
        out_ends: Buffer,
        out: Buffer,
    ) -> int:
        """Decode strings into Arrow's form.

        Parameters
        ----------
        data, ends, wide, first, n
            The strings, as above.
        base
            Where `out` begins among the bytes of the final array: added to the ends.
        out_ends
            Output of n ends, of 64 bits if `out_wide`, else 32. May be `ends` if both have the same width.
        out
            Output for the bytes. With the exact `decoded_size` it is large enough. Those behind the last string may be
            overwritten, so that chunks are to be decoded in ascending order into one output.

        Returns
        -------
        int
            Number of bytes written.

        Raises
        ------
        CodecError
            The ends decrease or pass the data, a code has no symbol, a string ends in an escape, an output is too
            small, or an end does not fit its width.
        """

    def take_ends(
        self,
        data: Buffer,
        ends: Buffer,
        wide: bool,
        first: int,
        n: int,
        rows: NDArray[np.int64],
        base: int,
        out_wide: bool,
        out_ends: Buffer,
    ) -> int:
        """Ends of the decoded strings at positions `rows`, in that order; returns their bytes together.

        Looks only at the strings taken. Parameters and errors are those of `decode`; a row that is not below n is an
        error too.
        """

    def take_bytes(
        self,
        data: Buffer,
        ends: Buffer,
        wide: bool,
        first: int,
        n: int,
        rows: NDArray[np.int64],
        out: Buffer,
    ) -> int:
        """Bytes of the strings at positions `rows`, back to back; returns how many there are.

        Parameters and errors are those of `take_ends` and `decode`.
        """

class Encoder:
    """The symbols of a page, ready to compress its strings; for a verbatim table it copies them.

    Parameters
    ----------
    table
        The table, from `build` or `write_table`.
    """

    def __init__(self, table: SymbolTable) -> None: ...
    def encode(
        self, data: Buffer, offsets: Buffer, wide: bool, n: int, out_wide: bool, out_offsets: Buffer, out: Buffer
    ) -> int:
        """Compress strings, each into the longest symbols from left to right.

        If several symbols of three bytes and more have the same first three bytes, the first of them in code order is
        the only one used; `build` makes no such tables.

        Parameters
        ----------
        data, offsets, wide, n
            The strings, as in `build`.
        out_offsets
            Output of n + 1 offsets from 0 on, of 64 bits if `out_wide`, else 32.
        out
            Output of at least `encode_bound` of the strings' bytes, most of which are scratch.

        Returns
        -------
        int
            Number of compressed bytes, at the start of `out`.

        Raises
        ------
        CodecError
            The offsets decrease or pass the data, an output is too small, or an offset does not fit 32 bits.
        """
