"""Products of decimals: of the 128-bit integers that are their digits."""

from typing_extensions import Buffer

def multiply(left: Buffer, right: Buffer, n: int, most: int, out: Buffer) -> bool:
    """Multiply n numbers with as many others, or all of them with one.

    Parameters
    ----------
    left
        At least n numbers of 16 bytes, little-endian two's complement.
    right
        As many; or one, which all are multiplied with.
    most
        Greatest magnitude of a product, less than 2**127.
    out
        At least n products of 16 bytes.

    Returns
    -------
    bool
        False if there is a product of a greater magnitude; what `out` holds then means nothing.

    Raises
    ------
    CodecError
        A buffer is too small, or `most` is no such magnitude.
    """
