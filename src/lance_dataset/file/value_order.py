"""Order of stored values that is the order of values."""

from __future__ import annotations

import pyarrow as pa

from lancecodec.intervals import FLOAT, SIGNED, UNSIGNED

__all__ = ["key_order"]


def key_order(arrow_type: pa.DataType) -> int | None:
    """Return the order of the stored values that is the order of the values, None if there is none."""
    if pa.types.is_unsigned_integer(arrow_type):
        return UNSIGNED
    if pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type):
        return FLOAT
    signed = (pa.types.is_signed_integer, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    others = (pa.types.is_duration, pa.types.is_decimal128)
    return SIGNED if any(test(arrow_type) for test in (*signed, *others)) else None
