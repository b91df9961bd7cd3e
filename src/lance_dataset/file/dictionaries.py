"""Decoding of dictionary arrays to plain ones, with the kernels that decode pages."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.structural.arrays import BinaryDictionary, resolve_fixed, value_bits

__all__ = ["decode_dictionary_array"]

#: Number of rows below which Arrow is as fast.
_FEW_ROWS = 1024


def decode_dictionary_array(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of the indices, in the type of the entries.

    Raises
    ------
    OffsetOverflowError, pyarrow.ArrowInvalid
        The values do not fit one array.
    """
    entries, indices, length = array.dictionary, array.indices, len(array)
    fixed = value_bits(entries.type) // 8 > 0
    if not (fixed or is_binary_like(entries.type)) or entries.null_count or length < _FEW_ROWS:
        return array.dictionary_decode()
    bits, nulls = indices.type.bit_width, indices.null_count
    validity = bitmap_at_zero(indices.buffers()[0], indices.offset, length) if nulls else None
    data = indices.buffers()[1].slice(indices.offset * bits // 8, length * bits // 8)
    if fixed:
        plain = resolve_fixed(entries, data, bits, length, validity)
    else:
        plain = BinaryDictionary(entries).resolve(data, bits, length, validity)
    if validity is None:
        return plain
    return pa.Array.from_buffers(plain.type, length, [validity, *plain.buffers()[1:]], nulls)
