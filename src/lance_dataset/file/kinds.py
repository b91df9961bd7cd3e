"""Groups of Arrow types that share a storage layout."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["is_binary_like", "is_empty_struct", "is_text", "is_wide"]

_TEXT = frozenset(kind.id for kind in (pa.string(), pa.large_string()))
_BINARY_LIKE = _TEXT | {pa.binary().id, pa.large_binary().id}


def is_wide(arrow_type: pa.DataType) -> bool:
    """Return True if the type has 64-bit offsets."""
    kinds = pa.types
    return kinds.is_large_string(arrow_type) or kinds.is_large_binary(arrow_type) or kinds.is_large_list(arrow_type)


def is_binary_like(arrow_type: pa.DataType) -> bool:
    """Return True for strings and binaries of either offset width."""
    return arrow_type.id in _BINARY_LIKE


def is_text(arrow_type: pa.DataType) -> bool:
    """Return True for strings of either offset width."""
    return arrow_type.id in _TEXT


def is_empty_struct(arrow_type: pa.DataType) -> bool:
    """Return True for structs without children."""
    return pa.types.is_struct(arrow_type) and arrow_type.num_fields == 0
