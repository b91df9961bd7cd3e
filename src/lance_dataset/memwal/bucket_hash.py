"""Hash of a value by which rows are spread over buckets: MurmurHash3 of 32 bits (Appleby, public domain)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError

__all__ = ["bucket_numbers", "is_bucketable"]

_Hashes = NDArray[np.uint32]
_types = pa.types


def is_bucketable(kind: pa.DataType) -> bool:
    """Return True for types of values that can be spread over buckets."""
    tests = (
        _types.is_boolean,
        _types.is_integer,
        _types.is_date32,
        _types.is_time,
        _types.is_timestamp,
        _types.is_float32,
        _types.is_float64,
        _types.is_string,
        _types.is_large_string,
    )
    return any(test(kind) for test in tests)


def bucket_numbers(values: pa.Array, buckets: int) -> pa.Array:
    """Return the bucket of each value, int32; null is in bucket 0.

    Raises
    ------
    UnsupportedError
        Values of the type cannot be spread.
    """
    if not is_bucketable(values.type):
        raise UnsupportedError(f"values of type {values.type} cannot be spread over buckets")
    hashes = _hashes(values) & np.uint32(0x7FFFFFFF)
    numbers = (hashes % np.uint32(buckets)).astype(np.int32)
    if values.null_count:
        numbers[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return pa.array(numbers)


def _hashes(values: pa.Array) -> _Hashes:
    kind = values.type
    if _types.is_string(kind) or _types.is_large_string(kind):
        return _text_hashes(values)
    if _types.is_floating(kind):
        return _float_hashes(values)
    if _types.is_boolean(kind):
        values = values.cast(pa.uint8())
    elif not _types.is_integer(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    if values.type.bit_width == 64:
        return _two_blocks(numbers.view(np.uint64))
    return _finished(_mixed(np.zeros(len(numbers), np.uint32), numbers.astype(np.int64).astype(np.uint32)), 4)


def _float_hashes(values: pa.Array) -> _Hashes:
    numbers = np.array(values.fill_null(0).to_numpy(zero_copy_only=False))
    numbers[numbers == 0] = 0.0  # and not minus zero
    wide = values.type.bit_width == 64
    bits = numbers.view(np.uint64 if wide else np.uint32)
    bits[np.isnan(numbers)] = 0x7FF8000000000000 if wide else 0x7FC00000
    if wide:
        return _two_blocks(bits)
    return _finished(_mixed(np.zeros(len(bits), np.uint32), bits.astype(np.uint32)), 4)


def _two_blocks(bits: NDArray[np.uint64]) -> _Hashes:
    low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    return _finished(_mixed(_mixed(np.zeros(len(bits), np.uint32), low), high), 8)


def _text_hashes(values: pa.Array) -> _Hashes:
    values = values.fill_null("").cast(pa.large_binary())
    _, offsets, data = values.buffers()
    places = np.frombuffer(offsets, np.int64, len(values) + 1, values.offset * 8)
    starts, lengths = places[:-1], np.diff(places)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    hashes = np.zeros(len(values), np.uint32)
    words = lengths // 4
    for word in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > word)
        at = starts[rows] + word * 4
        block = np.zeros(len(rows), np.uint32)
        for byte in range(4):
            block |= content[at + byte].astype(np.uint32) << np.uint32(8 * byte)
        hashes[rows] = _mixed(hashes[rows], block)
    for byte in range(3):  # each byte that is left is a block of its own, with its sign
        rows = np.flatnonzero(lengths % 4 > byte)
        block = content[starts[rows] + words[rows] * 4 + byte].view(np.int8).astype(np.int32).view(np.uint32)
        hashes[rows] = _mixed(hashes[rows], block)
    return _finished(hashes, lengths.astype(np.uint32))


def _rotated(values: _Hashes, bits: int) -> _Hashes:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))


def _mixed(hashes: _Hashes, block: _Hashes) -> _Hashes:
    block = _rotated(block * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(hashes ^ block, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(hashes: _Hashes, length: _Hashes | int) -> _Hashes:
    hashes = hashes ^ np.asarray(length, np.uint32)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))
