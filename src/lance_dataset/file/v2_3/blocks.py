"""Dictionaries of 2.3 pages: what 2.2 has, and integers in any encoding, and fixed-size lists."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.v2_1.compressive import Encoding, FixedSizeList, Flat, General, Variable
from lance_dataset.file.v2_1.read import blocks
from lance_dataset.file.v2_1.read.arrays import fixed_array, value_bits
from lance_dataset.file.v2_1.read.zipped_values import fixed_values, fixed_width
from lance_dataset.file.v2_3.sequences import decode_integers
from lancecodec import general

__all__ = ["decode_dictionary"]

_MAX_BYTES = 1 << 31


def decode_dictionary(
    buffer: pa.Buffer, encoding: Encoding, size: int, value_type: pa.DataType, where: str
) -> pa.Array:
    """The entries of a page dictionary; see `v2_1.blocks.decode_dictionary`."""
    if isinstance(encoding, General):
        plain = general.decompress(encoding.scheme, buffer, max_size=_MAX_BYTES)
        return decode_dictionary(pa.py_buffer(plain), encoding.values, size, value_type, where)
    if isinstance(encoding, FixedSizeList):
        width = fixed_width(encoding) or 0
        if size * width != buffer.size or width == 0:
            raise CorruptFileError(f"{where}: a dictionary of {size} lists of {width} bytes in {buffer.size} bytes")
        return fixed_values(encoding, value_type, buffer, size, where)
    if isinstance(encoding, Flat | Variable):
        return blocks.decode_dictionary(buffer, encoding, size, value_type, where)
    return fixed_array(value_type, size, decode_integers(encoding, buffer, size, value_bits(value_type)))
