"""The metadata at the end of a 2.x file: its tables, its descriptor, and the pages that a column lists.

What is here reads the messages as writers write them, in a fraction of the time a general parser takes. Whatever looks
otherwise (fields that repeat or are unknown, broken messages, buffers outside of the file) is for that parser to judge:
the functions say None, or False, and raise nothing.
"""

from typing_extensions import Buffer

def entries_fit(table: Buffer, low: int, high: int, total: int) -> bool:
    """Whether all entries of a table lie where they may.

    Parameters
    ----------
    table
        A position and a size in bytes, 8 bytes each, for every entry.
    low, high
        Every entry lies in the bytes ``[low, high)``.
    total
        The sizes are not more than that together.
    """

def scan_column(
    src: Buffer, file_size: int
) -> tuple[bytes, tuple[tuple[int, int], ...], list[tuple[tuple[tuple[int, int], ...], int, bytes]]] | None:
    """The metadata of a column.

    Parameters
    ----------
    src
        A serialized ``ColumnMetadata``.
    file_size
        Size of the file in bytes: every buffer lies inside, and those of all pages together are not larger.

    Returns
    -------
    encoding : bytes
        The serialized `Any` with the encoding of the column.
    buffers : tuple
        (position, size) of the buffers of the column.
    pages : list
        Of every page the (position, size) of its buffers, its length, and the serialized `Any` with its encoding; pages
        that are encoded as the one before share its bytes.
    """

def scan_descriptor(src: Buffer) -> tuple[bytes, int] | None:
    """The serialized schema and the number of rows of a serialized ``FileDescriptor``."""
