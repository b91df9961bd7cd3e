"""Tagged records inside of records: where they are, and their numbers as columns.

The bytes are those of protobuf messages: a list of a hundred thousand messages is looked through without an object for
each. A record is a range of bytes ``[start, end)``; the outermost one is the whole buffer.
"""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

#: What a column holds for each record: the last value of a field; how often the field is there with bytes, be they text
#: or a record; how many numbers it has (packed ones count one by one); the largest of these as a signed 32-bit number;
#: the lower 32 bits of the last value, unsigned, as readers take what is declared to have no more; or of the last text,
#: how many characters do not belong into a plain file name: all but ASCII letters and digits, ``-``, ``_`` and ``.``,
#: and a ``.`` in front (an empty text counts as 1).
LAST: int
COUNT: int
ITEMS: int
MAX: int
LAST_32: int
SIGNS: int
#: Most columns of one call.
MAX_COLUMNS: int

def locate(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    field: int,
    owners: NDArray[np.int64],
    heads: NDArray[np.int64],
    inner_starts: NDArray[np.int64],
    inner_ends: NDArray[np.int64],
) -> int:
    """Find the records that lie in a field of other records.

    Parameters
    ----------
    starts, ends
        The other records.
    field
        Number of the field.
    owners, heads, inner_starts, inner_ends
        Outputs, all of one length: the position in `starts` of the record around, the first byte of the field, and the
        bytes of the record. What does not fit is counted only, so that empty outputs ask for the number.

    Returns
    -------
    int
        Number of records found.

    Raises
    ------
    CodecError
        The bytes are no records, or a range is not within `src`.
    """

def numbers(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    field: int,
    owners: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """All numbers in a field of records, packed ones one by one, as signed 32-bit numbers.

    Parameters
    ----------
    starts, ends
        The records.
    field
        Number of the field.
    owners, out
        Outputs of one length: the position in `starts` of the record around each number, and the number. What does not
        fit is counted only.

    Returns
    -------
    int
        How many numbers there are.

    Raises
    ------
    CodecError
        The bytes are no records, or a range is not within `src`.
    """

def columns(
    src: Buffer,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    wanted: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Numbers in fields of records, a column for each field.

    Parameters
    ----------
    starts, ends
        The n records.
    wanted
        Shape (columns, 4): the field; a field of the record in it, or 0 for the field itself; `LAST`, `COUNT`,
        `ITEMS` or `MAX`; the value where there is none.
    out
        Shape (columns, n). Unsigned 64-bit values come as the signed numbers of the same bits.

    Raises
    ------
    CodecError
        The bytes are no records, a range is not within `src`, or the arrays do not go together.
    """
