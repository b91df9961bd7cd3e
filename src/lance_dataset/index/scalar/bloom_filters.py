"""Bloom-filter indices: a filter of the values of each zone."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lancecodec.search import bloom

__all__ = ["BLOOM_FILTERS", "FILTERS", "HAS_NULL", "ITEMS", "PROBABILITY", "hashed", "is_hashable"]

#: Name of the file, which has one row for each zone.
BLOOM_FILTERS: Final = "bloomfilter.lance"
#: Columns of whether there are nulls, and of the filters.
HAS_NULL, FILTERS = "has_null", "bloom_filter_data"
#: Keys of the number of rows in a zone, and of the probability of a false answer for as many different values.
ITEMS, PROBABILITY = "bloomfilter_item", "bloomfilter_probability"


def is_hashable(kind: pa.DataType) -> bool:
    """Return True for types of values that filters can have."""
    tests = (
        pa.types.is_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_date,
        pa.types.is_time,
        pa.types.is_timestamp,
    )
    return any(test(kind) for test in tests) or is_variable(kind)


def is_variable(kind: pa.DataType) -> bool:
    """Return True for types of values of variable width."""
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_binary)) or is_wide(kind)


def is_wide(kind: pa.DataType) -> bool:
    """Return True for types of values with offsets of 64 bits."""
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def hashed(values: pa.Array) -> NDArray[np.uint64]:
    """Return the hashes of values, of which none is null."""
    kind, found = values.type, np.empty(len(values), np.uint64)
    if not len(values):
        return found
    if is_variable(kind):
        _, offsets, data = values.buffers()
        width = 8 if is_wide(kind) else 4
        places = memoryview(offsets)[values.offset * width : (values.offset + len(values) + 1) * width]
        bloom.hash_variable(b"" if data is None else data, places, is_wide(kind), found.data)
    else:
        width = kind.bit_width // 8
        content = memoryview(values.buffers()[1])[values.offset * width : (values.offset + len(values)) * width]
        bloom.hash_fixed(content, width, found.data)
    return found
