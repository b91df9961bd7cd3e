"""Bloom filters of the keys of SSTables: blocks as in Parquet, hashes by SipHash-1-3 (Aumasson and Bernstein)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["FILTER_BYTES", "key_filter", "key_hashes"]

#: Size of every filter.
FILTER_BYTES: Final = 32_768
_BLOCKS = FILTER_BYTES // 32
_SALTS: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
#: First bit of each word of a block.
_WORDS: Final = np.arange(0, 256, 32, dtype=np.uint32)
#: Keys that are hashed together: integers, so that intermediate results stay in the caches of the processor, and other
#: keys, of which those of one length are hashed together.
_ROWS, _MIXED_ROWS = 1 << 13, 1 << 17
_Words = NDArray[np.uint64]
_NOTHING, _NULL, _PRESENT = (pa.scalar(each, pa.binary()) for each in (b"", b"\x01", b"\x00"))


def key_filter(columns: Sequence[pa.Array]) -> bytes:
    """Return the filter of keys, given their columns; without columns it is empty."""
    bits = np.zeros(FILTER_BYTES * 8, bool)
    step = _ROWS if len(columns) == 1 and pa.types.is_integer(columns[0].type) else _MIXED_ROWS
    for start in range(0, len(columns[0]) if columns else 0, step):
        hashes = key_hashes([column.slice(start, step) for column in columns])
        blocks = ((hashes >> np.uint64(32)) * np.uint64(_BLOCKS)) >> np.uint64(32)
        places = (hashes.astype(np.uint32)[:, None] * _SALTS) >> np.uint32(27)
        bits[places + _WORDS + (blocks.astype(np.uint32) << np.uint32(8))[:, None]] = True
    return np.packbits(bits, bitorder="little").tobytes()


def key_hashes(columns: Sequence[pa.Array]) -> _Words:
    """Return the hash of each key."""
    numbers = _number_words(columns[0]) if len(columns) == 1 else None
    if numbers is not None:
        return _siphash(numbers)
    parts = [_parts(column) for column in columns]
    rows = len(columns[0])
    lengths = np.sum([part[1] for part in parts], axis=0)
    hashes = np.empty(rows, np.uint64)
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        content = np.zeros((len(chosen), (length // 8 + 1) * 8), np.uint8)
        at = np.zeros(len(chosen), np.int64)
        for data, sizes, starts in parts:
            _place(content, at, data, starts[chosen], sizes[chosen])
            at += sizes[chosen]
        content[:, -1] = length & 0xFF
        hashes[chosen] = _siphash([np.ascontiguousarray(word) for word in content.view("<u8").T])
    return hashes


def _number_words(column: pa.Array) -> list[_Words] | None:
    """Return the words that are hashed for integers without nulls; None for other keys."""
    if column.null_count or column.type not in (pa.int32(), pa.int64()):
        return None
    numbers = column.to_numpy()
    if column.type == pa.int32():
        return [(numbers.view(np.uint32).astype(np.uint64) << np.uint64(8)) | np.uint64(5 << 56)]
    wide = numbers.view(np.uint64)
    return [wide << np.uint64(8), (wide >> np.uint64(56)) | np.uint64(9 << 56)]


def _place(
    target: NDArray[np.uint8],
    at: NDArray[np.int64],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> None:
    """Copy the bytes of one column into the rows of the target."""
    if (sizes == sizes[0]).all() and (at == at[0]).all():
        width = np.arange(sizes[0])
        target[:, at[0] : at[0] + sizes[0]] = data[starts[:, None] + width]
        return
    total = int(sizes.sum())
    within = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    target[rows, np.repeat(at, sizes) + within] = data[np.repeat(starts, sizes) + within]


def _parts(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the hashed bytes of a column, and the length and start of those of each value."""
    found = pc.if_else(column.is_valid(), _join(_PRESENT, _body(column)), _NULL).cast(pa.large_binary())
    _, offsets, data = found.buffers()
    places = np.frombuffer(offsets, np.int64, len(found) + 1, found.offset * 8)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return content, np.diff(places), places[:-1]


def _join(*parts: pa.Array | pa.Scalar) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _body(column: pa.Array) -> pa.Array | pa.Scalar:
    kind = column.type
    if kind in (pa.int32(), pa.int64()):
        return _fixed(column.fill_null(0).to_numpy(zero_copy_only=False), kind.bit_width // 8)
    if kind == pa.string():
        return _join(column.fill_null("").cast(pa.binary()), pa.scalar(b"\xff", pa.binary()))
    if kind == pa.binary():
        lengths = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _join(_fixed(lengths, 8), column.fill_null(b""))
    return pa.array([b""] * len(column), pa.binary())


def _fixed(numbers: NDArray[np.generic], width: int) -> pa.Array:
    """Return integers as their bytes, the lowest first."""
    data = np.ascontiguousarray(numbers).astype(f"<i{width}")
    return pa.Array.from_buffers(pa.binary(width), len(data), [None, pa.py_buffer(data)]).cast(pa.binary())


def _rotated(values: _Words, bits: int) -> _Words:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _siphash(words: Sequence[_Words]) -> _Words:
    """Return SipHash-1-3 with a key of zeros of rows, given their words, the last of which end with their length."""
    rows = len(words[0])
    state = [
        np.full(rows, start, np.uint64)
        for start in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    ]
    for block in words:
        state[3] = state[3] ^ block
        _round(state)
        state[0] = state[0] ^ block
    state[2] = state[2] ^ np.uint64(0xFF)
    for _ in range(3):
        _round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(state: list[_Words]) -> None:
    a, b, c, d = state
    a = a + b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c = c + d
    d = _rotated(d, 16) ^ c
    a = a + d
    d = _rotated(d, 21) ^ a
    c = c + b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    state[:] = a, b, c, d
