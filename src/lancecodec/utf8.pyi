"""UTF-8 validation of whole value buffers."""

from typing_extensions import Buffer

def validate(data: Buffer, offsets: Buffer, wide: bool) -> None:
    """Check that every value is valid UTF-8.

    Parameters
    ----------
    data
        Concatenated values.
    offsets
        Ascending 32-bit (or, `wide`, 64-bit) offsets into `data`, one more than there are values.

    Raises
    ------
    CodecError
        The bytes are no UTF-8, or a value starts inside a character.
    """
