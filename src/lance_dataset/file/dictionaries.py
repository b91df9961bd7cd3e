"""Dictionary arrays to plain ones, by the same kernels that decode pages."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.file.buffers import bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like
from lance_dataset.file.v2_1.read.arrays import BinaryDictionary

__all__ = ["decode_dictionary_array"]

#: Below so many rows Arrow is as fast.
_FEW_ROWS = 1024


def decode_dictionary_array(array: pa.DictionaryArray) -> pa.Array:
    """The values behind the indices, of the type of the entries.

    Raises
    ------
    OffsetOverflowError, pyarrow.ArrowInvalid
        They do not fit one array.
    """
    entries, indices, length = array.dictionary, array.indices, len(array)
    if not is_binary_like(entries.type) or entries.null_count or length < _FEW_ROWS:
        return array.dictionary_decode()
    bits, nulls = indices.type.bit_width, indices.null_count
    validity = bitmap_at_zero(indices.buffers()[0], indices.offset, length) if nulls else None
    data = indices.buffers()[1].slice(indices.offset * bits // 8, length * bits // 8)
    plain = BinaryDictionary(entries).resolve(data, bits, length, validity)
    if validity is None:
        return plain
    return pa.Array.from_buffers(plain.type, length, [validity, *plain.buffers()[1:]], nulls)
