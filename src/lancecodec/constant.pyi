"""Many copies of one value."""

from typing_extensions import Buffer

def fill(value: Buffer, n: int, out: Buffer) -> None:
    """Write n copies of a value of any number of bytes.

    Parameters
    ----------
    value
        The bytes of the value; there may be none.
    out
        At least n values; the rest is left as it is.
    """

def fill_bits(value: Buffer, bits: int, n: int, out: Buffer, at: int = 0) -> None:
    """Write n copies of a value of any number of bits to bit `at` of `out` and on; other bits stay as they are.

    Parameters
    ----------
    value
        ``ceil(bits / 8)`` bytes, of which the lowest `bits` bits count.
    """
