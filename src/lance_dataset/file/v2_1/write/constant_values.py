"""Whether all values of a page are the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.v2_1.read.arrays import value_bits
from lance_dataset.file.v2_1.write.leaf_values import Words, words_of
from lancecodec import bitmap, statistics

__all__ = ["constant_value"]


def constant_value(values: pa.Array, validity: pa.Buffer | None) -> bytes | tuple[bytes, bytes] | None:
    """The one value that all valid values of a page equal bit by bit.

    Parameters are those of `choose_chunks`.

    Returns
    -------
    bytes, tuple or None
        The value (a boolean as byte 0 or 1), for strings and binaries the Arrow offsets and data of an array of it;
        None if values differ, none is valid, or the type has no constant pages (nested types, dictionaries).
    """
    if len(values) == 0:
        return None
    if is_binary_like(values.type):
        return _constant_string(values, validity)
    bits = value_bits(values.type)
    if bits == 0 or (bits % 8 and bits != 1):
        return None
    if bits == 1:
        return _constant_boolean(values, validity)
    return _constant_word(words_of(values, validity))


def _constant_word(words: Words) -> bytes | None:
    data = memoryview(words.buffer).cast("B")
    width = words.width
    if words.validity is None and data[:width] != data[-width:]:
        return None
    probe = min(words.count, 64)
    if words.validity is None and data[: (probe - 1) * width] != data[width : probe * width]:
        return None
    found = (
        statistics.fixed(words.buffer, width, validity=words.validity)
        if width in (1, 2, 4, 8)
        else statistics.fixed_bytes(words.buffer, width, words.validity)
    )
    if not found.all_equal or found.first_valid < 0:
        return None
    return bytes(data[found.first_valid * width : (found.first_valid + 1) * width])


def _constant_boolean(values: pa.Array, validity: pa.Buffer | None) -> bytes | None:
    count = len(values)
    bits = np.empty(count, np.uint8)
    bitmap.unpack(values.buffers()[1], values.offset, count, bits.data)
    if validity is not None:
        valid = np.empty(count, np.uint8)
        bitmap.unpack(validity, 0, count, valid.data)
        bits = bits[valid != 0]
    if len(bits) == 0 or bits.min() != bits.max():
        return None
    return bytes(bits[:1])


def _constant_string(values: pa.Array, validity: pa.Buffer | None) -> tuple[bytes, bytes] | None:
    wide = is_wide(values.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    _, offsets, data = values.buffers()
    begin = values.offset * kind.itemsize
    offsets = offsets.slice(begin, (len(values) + 1) * kind.itemsize)
    found = statistics.variable(data if data is not None else b"", offsets, wide, validity)
    if not found.all_equal or found.first_valid < 0:
        return None
    first, stop = np.frombuffer(offsets, kind, 2, found.first_valid * kind.itemsize).tolist()
    content = data.slice(first, stop - first).to_pybytes() if stop > first else b""
    return np.array([0, len(content)], kind).tobytes(), content
