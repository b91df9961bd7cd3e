"""Column types that compiled random access supports."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import pyarrow as pa

from lance_dataset.file.buffers import bit_width
from lance_dataset.file.kinds import is_binary_like, is_text, is_wide

__all__ = ["TakeShape", "take_shape"]

_MAX_LISTS = 8
_MAX_BITS = 1 << 40


class TakeShape(NamedTuple):
    """Properties of an Arrow type that `lancecodec.take` needs.

    Attributes
    ----------
    width
        Bytes of a value; 0 for booleans, -1 for strings and binaries.
    wide
        True if strings and binaries have 64-bit offsets.
    text
        True if they are UTF-8.
    dimensions
        Dimensions of fixed-size lists, outermost first.
    listed
        Bytes of the offsets of an outer list, 4 or 8; 0 without one.
    """

    width: int
    wide: bool = False
    text: bool = False
    dimensions: tuple[int, ...] = ()
    listed: int = 0


@lru_cache(maxsize=256)
def take_shape(arrow_type: pa.DataType) -> TakeShape | None:
    """Return the shape of a type without children, of fixed-size lists of it, or of lists of either; else None."""
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        inner = take_shape(arrow_type.value_type)
        return None if inner is None or inner.listed else inner._replace(listed=8 if is_wide(arrow_type) else 4)
    if is_binary_like(arrow_type):
        return TakeShape(-1, is_wide(arrow_type), is_text(arrow_type))
    dimensions: list[int] = []
    items = arrow_type
    while pa.types.is_fixed_size_list(items):
        dimensions.append(items.list_size)
        items = items.value_type
    if pa.types.is_dictionary(items) or pa.types.is_nested(items):
        return None
    try:
        bits = bit_width(items) * prod(dimensions)
    except ValueError:
        return None
    if pa.types.is_boolean(arrow_type):
        return TakeShape(0)
    if not 0 < bits <= _MAX_BITS or bits % 8 or len(dimensions) > _MAX_LISTS:
        return None
    return TakeShape(bits // 8, dimensions=tuple(dimensions))
