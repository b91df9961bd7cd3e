"""Families of Arrow types that are stored alike."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["is_binary_like", "is_text", "is_wide"]


def is_wide(arrow_type: pa.DataType) -> bool:
    """Whether the type has 64-bit offsets."""
    kinds = pa.types
    return kinds.is_large_string(arrow_type) or kinds.is_large_binary(arrow_type) or kinds.is_large_list(arrow_type)


def is_binary_like(arrow_type: pa.DataType) -> bool:
    """String or binary, of either offset width."""
    kinds = pa.types
    return (
        kinds.is_string(arrow_type)
        or kinds.is_binary(arrow_type)
        or kinds.is_large_string(arrow_type)
        or kinds.is_large_binary(arrow_type)
    )


def is_text(arrow_type: pa.DataType) -> bool:
    """String of either offset width."""
    return pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
