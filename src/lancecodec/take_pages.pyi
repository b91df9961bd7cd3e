"""Pages of all layouts as random access wants them: checked and described once, to be asked for rows again and again.

`lancecodec.take` takes rows of many of them.
"""

from typing_extensions import Buffer

from lancecodec.miniblock import Chunks

class PageTaker:
    """A page that can be asked for rows; made by the functions below. It keeps its buffers alive."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

def nulls(rows: int, width: int, *, required: bool = False) -> PageTaker:
    """A page of nulls.

    Parameters
    ----------
    rows
        Number of rows.
    width
        Bytes of a value; 0 for booleans, -1 for values of any number of bytes. So it is below.
    required
        Whether a null is damage. So it is below.
    """

def constant(
    rows: int, width: int, value: Buffer, *, definition: Buffer | None = None, required: bool = False
) -> PageTaker:
    """A page of one value.

    Parameters
    ----------
    value
        Its bytes; a boolean has one, 0 or 1.
    definition
        A level of 16 bits per row, 0 or (null) 1.

    Raises
    ------
    CodecError
        A value of another width, or too few levels.
    """

class Lists:
    """Rows of lists in the chunks of a mini-block page.

    Parameters
    ----------
    started
        Rows that start before each chunk, then all, int64 (`miniblock_levels.RepetitionIndex.started`).
    repetition
        Codec of the repetition levels, as for `miniblock_levels.Levels`.
    null_items, null_lists, empty_lists
        What definition levels stand for, in this order from 1 on.
    required
        Whether a null list is damage.
    """

    num_rows: int
    def __init__(
        self,
        started: Buffer,
        repetition: tuple[int, int],
        *,
        null_items: bool = False,
        null_lists: bool = False,
        empty_lists: bool = False,
        required: bool = False,
    ) -> None: ...

def fixed_chunks(
    chunks: Chunks,
    width: int,
    kind: int,
    bits: int,
    *,
    definition: tuple[int, int] | None = None,
    entries: Buffer | None = None,
    offsets: Buffer | None = None,
    wide: bool = False,
    count: int = 0,
    lists: Lists | None = None,
    required: bool = False,
) -> PageTaker:
    """A mini-block page of values of one width, or of indices into a dictionary.

    Parameters
    ----------
    chunks
        All chunks of the page, not compressed.
    kind, bits
        Codec and width of what the chunks hold, as for `miniblock_values.FixedValues`.
    definition
        Codec of the definition levels, as for `miniblock_levels.Levels`; levels are 0 or (null) 1.
    entries, offsets, wide, count
        The dictionary: `count` entries of `width` bytes, or with `count` + 1 offsets, of 64 bits if `wide`.
    lists
        How rows are lists of values; None if each is one.

    Raises
    ------
    CodecError
        Arguments that do not fit each other.
    """

def text_chunks(
    chunks: Chunks,
    wide: bool,
    *,
    symbol_table: Buffer | None = None,
    definition: tuple[int, int] | None = None,
    lists: Lists | None = None,
    required: bool = False,
) -> PageTaker:
    """A mini-block page of strings or binaries; arguments as for `miniblock_values.VariableValues` and above."""

def zipped(
    data: Buffer,
    rows: int,
    width: int,
    *,
    bits_def: int = 0,
    index: Buffer | None = None,
    index_width: int = 0,
    offset_bits: int | None = None,
    symbol_table: Buffer | None = None,
    required: bool = False,
) -> PageTaker:
    """A full-zip page without lists; arguments as for `fullzip.ZipLayout`.

    Parameters
    ----------
    data
        The items; a boolean is a byte.
    index, index_width
        Positions of the rows, where values have any number of bytes.
    """
