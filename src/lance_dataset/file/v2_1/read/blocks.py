"""Whole buffers of values: dictionaries, and the levels of constant pages."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.v2_1.compressive import (
    Encoding,
    Flat,
    General,
    InlineBitpacking,
    OutOfLineBitpacking,
    Rle,
    Variable,
)
from lance_dataset.file.v2_1.read.arrays import binary_array, empty_array, fixed_array, value_bits
from lancecodec import bitpacking, flat, general, rle, variable

__all__ = ["decode_dictionary", "decode_levels"]

#: Bytes that a dictionary or a level stream may have decompressed, beside what its stored size allows.
_MAX_BYTES = 1 << 31
#: What packing to 0 bits may yield out of nothing, and bytes that a stored byte can become otherwise (runs of 255).
_FREE_BYTES = 16 << 20
_MAX_EXPANSION = 256


def decode_dictionary(
    buffer: pa.Buffer, encoding: Encoding, size: int, value_type: pa.DataType, where: str
) -> pa.Array:
    """The entries of a page dictionary.

    Raises
    ------
    CodecError, CorruptFileError
        The buffer contradicts the encoding, or the encoding the type.
    UnsupportedError
        An encoding that dictionaries do not have.
    """
    if isinstance(encoding, General):
        plain = general.decompress(encoding.scheme, buffer, max_size=_MAX_BYTES)
        return decode_dictionary(pa.py_buffer(plain), encoding.values, size, value_type, where)
    if size == 0:
        return empty_array(value_type)
    if isinstance(encoding, Variable):
        if not is_binary_like(value_type):
            raise CorruptFileError(f"{where}: a dictionary of strings does not fit the type {value_type}")
        return _decode_binary(buffer, size, value_type)
    bits = value_bits(value_type)
    if bits == 0 or (bits % 8 and bits != 1):
        raise CorruptFileError(f"{where}: a dictionary of fixed-width values does not fit the type {value_type}")
    if size > _MAX_BYTES * 8 // bits:
        raise CorruptFileError(f"{where}: claims a dictionary of {size} entries")
    return fixed_array(value_type, size, _decode_fixed(buffer, encoding, size, bits, where))


def _decode_binary(buffer: pa.Buffer, size: int, value_type: pa.DataType) -> pa.Array:
    wide = is_wide(value_type)
    if size > buffer.size // 4:
        raise CorruptFileError(f"a dictionary of {size} strings in {buffer.size} bytes")
    offsets = allocate((size + 1) * (8 if wide else 4))
    begin, length = variable.decode_block(buffer, size, wide, offsets)
    return binary_array(value_type, size, offsets, buffer.slice(begin, length))


def _decode_fixed(buffer: pa.Buffer, encoding: Encoding, count: int, bits: int, where: str) -> pa.Buffer:
    stored = encoding.values if isinstance(encoding, Rle) else encoding
    if getattr(stored, "bits", None) != bits:
        raise CorruptFileError(f"{where}: a block of {encoding} does not hold values of {bits} bits")
    bytes_needed = (count * bits + 7) // 8
    if bytes_needed > _FREE_BYTES + _MAX_EXPANSION * buffer.size:
        raise CorruptFileError(f"{where}: {buffer.size} bytes claim to hold {count} values of {bits} bits")
    out = allocate(bytes_needed)
    if isinstance(encoding, Flat):
        flat.decode(buffer, count, bits, out)
    elif isinstance(encoding, InlineBitpacking):
        bitpacking.inline_block_decode(buffer, bits, count, out)
    elif isinstance(encoding, OutOfLineBitpacking):
        bitpacking.out_of_line_decode(buffer, bits, encoding.width, count, out)
    elif isinstance(encoding, Rle) and encoding.lengths == Flat(8):
        rle.decode_block(buffer, count, bits, out)
    else:
        raise UnsupportedError(f"{where}: a block with encoding {encoding} cannot be read by this release")
    return out


def decode_levels(buffer: pa.Buffer, encoding: Encoding | None, count: int, where: str) -> pa.Buffer:
    """16-bit levels; without an encoding they are stored as such."""
    if encoding is None:
        if buffer.size != 2 * count:
            raise CorruptFileError(f"{where}: {buffer.size} bytes are no {count} levels")
        return buffer
    return _decode_fixed(buffer, encoding, count, 16, where)
