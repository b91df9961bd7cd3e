"""Filters of the keys that a merge inserted, which prevent two merges from inserting the same key.

Keys are hashed with XXH64 (Collet, https://xxhash.com). The filter is the split-block Bloom filter of Parquet (Putze,
Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from lance_dataset.table.operations import KeyFilter

__all__ = ["build_key_filter", "may_share_keys"]

#: Parameters of the reference's filters. Filters with other parameters cannot be compared with them.
_BYTES = 32_768
_ITEMS = 8_192
_PROBABILITY = 0.00057
_BLOCK_BYTES = 32
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)

#: Number of rows that are hashed together. Each takes some hundred bytes meanwhile.
_ROWS_AT_ONCE = 1 << 16


def may_share_keys(first: KeyFilter, second: KeyFilter) -> bool:
    """Return True if two filters may contain the same key, or if they cannot be compared.

    Parameters
    ----------
    first, second
        The filters.
    """
    if first.field_ids != second.field_ids:
        return True
    if first.key_hashes is not None and second.key_hashes is not None:
        return not first.key_hashes.isdisjoint(second.key_hashes)
    if first.key_hashes is not None or second.key_hashes is not None:
        return True
    if (first.num_bits, first.number_of_items, first.probability) != (
        second.num_bits,
        second.number_of_items,
        second.probability,
    ) or len(first.bitmap) != len(second.bitmap):
        return True
    # A full filter stands for keys that cannot be hashed. The reference leaves it empty in that case.
    if first.bitmap.count(0xFF) == len(first.bitmap) or second.bitmap.count(0xFF) == len(second.bitmap):
        return True
    common = np.frombuffer(first.bitmap, np.uint8) & np.frombuffer(second.bitmap, np.uint8)
    return bool(common.any())


def build_key_filter(field_ids: Sequence[int], keys: Sequence[pa.Array | pa.ChunkedArray]) -> KeyFilter:
    """Build the filter of some rows from their key columns.

    Parameters
    ----------
    field_ids
        Fields of the key columns.
    keys
        The columns, of equal length. Rows with a null among them are left out, because nulls equal nothing.

    Returns
    -------
    KeyFilter
        A filter of the size that the reference uses, which is designed for 8,192 keys. If a column is not a 32-bit or
        64-bit integer, string or binary, the filter is full, so that it conflicts with every other filter.
    """
    blocks = np.zeros((_BYTES // _BLOCK_BYTES, len(_SALT)), np.uint32)
    whole = pa.Table.from_arrays(list(keys), [str(number) for number in range(len(keys))])
    if not all(_is_hashable(column.type) for column in whole.columns):
        blocks[:] = 0xFFFFFFFF
    else:
        for batch in whole.to_batches(_ROWS_AT_ONCE):
            _insert(blocks, _hashes(batch.columns))
            if bool((blocks == 0xFFFFFFFF).all()):
                break  # nothing is left to set
    return KeyFilter(
        field_ids=tuple(field_ids),
        bitmap=blocks.astype("<u4").tobytes(),
        num_bits=_BYTES * 8,
        number_of_items=_ITEMS,
        probability=_PROBABILITY,
    )


def _insert(blocks: npt.NDArray[np.uint32], hashes: npt.NDArray[np.uint64]) -> None:
    """Set one bit in each of the eight words of the block of every hash."""
    block = ((hashes >> np.uint64(32)) * np.uint64(len(blocks)) >> np.uint64(32)).astype(np.int64)
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    bits = low[:, None] * _SALT[None, :] >> np.uint32(27)
    words = np.arange(len(_SALT))[None, :]
    np.bitwise_or.at(blocks, (block[:, None], words), np.uint32(1) << bits)


def _hashes(columns: Sequence[pa.Array]) -> npt.NDArray[np.uint64]:
    """Return the XXH64 hash of the key of every row without nulls."""
    valid = columns[0].is_valid()
    for column in columns[1:]:
        valid = pc.and_(valid, column.is_valid())
    parts = [_key_bytes(column.filter(valid)) for column in columns]
    digest = xxhash.xxh64_intdigest
    if len(parts) == 1:
        hashes = [digest(key) for key in parts[0]]
    else:
        hashes = [digest(b"".join(part + b"\0" for part in row)) for row in zip(*parts, strict=True)]
    return np.array(hashes, np.uint64)


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int32(kind) or pa.types.is_int64(kind) or _is_unsigned(kind))


def _is_unsigned(kind: pa.DataType) -> bool:
    return bool(pa.types.is_uint32(kind) or pa.types.is_uint64(kind))


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_text(kind) for is_text in texts)


def _is_hashable(kind: pa.DataType) -> bool:
    return _is_integer(kind) or _is_text(kind)


def _key_bytes(column: pa.Array) -> Iterator[bytes]:
    """Yield the bytes of every value."""
    if _is_integer(column.type):
        wide = "<u8" if _is_unsigned(column.type) else "<i8"
        packed = column.to_numpy(zero_copy_only=False).astype(wide).tobytes()
        return (packed[start : start + 8] for start in range(0, len(packed), 8))
    return iter(column.cast(pa.large_binary()).to_pylist())
