"""List and binary offsets as Lance 2.0 stores them: one u64 end per value, a null has an adjustment added."""

from typing_extensions import Buffer

def decode(
    raw: Buffer,
    start: int,
    stop: int,
    adjustment: int,
    limit: int,
    wide: bool,
    offsets: Buffer,
    validity: Buffer,
) -> tuple[int, int, int]:
    """Decode values ``[start, stop)`` into Arrow offsets that begin at 0.

    Parameters
    ----------
    raw
        Little-endian u64 ends of values 0, 1, ... of the page.
    start, stop
        Range of values.
    adjustment
        What was added to the end of a null; above `limit`.
    limit
        Number of items the page covers.
    wide
        Write 64-bit offsets instead of 32-bit ones.
    offsets
        Output, ``stop - start + 1`` entries.
    validity
        Output bitmap, ``ceil((stop - start) / 8)`` bytes, all written; unused bits of the last one become 0.

    Returns
    -------
    tuple of int
        First item of the range, end of its last item, number of nulls.

    Raises
    ------
    CodecError
        Ends decrease or pass `limit`, or a buffer is too small.
    OffsetOverflowError
        32-bit offsets were asked for and do not suffice.
    """

def encode(
    offsets: Buffer,
    wide: bool,
    length: int,
    validity: Buffer | None,
    bit: int,
    base: int,
    adjustment: int,
    out: Buffer,
) -> None:
    """Turn ``length + 1`` Arrow offsets into `length` u64 ends, relative to the first offset and shifted by `base`.

    Parameters
    ----------
    validity
        Bitmap whose bit `bit` belongs to the first value, or None when all are valid; `adjustment` is added to nulls.
    out
        At least ``8 * length`` writable bytes.

    Raises
    ------
    CodecError
        Offsets decrease or are negative, a buffer is too small, or `adjustment` is not above the last end.
    """
