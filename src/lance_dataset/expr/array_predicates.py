"""Predicates over Arrow arrays, evaluated by the codec core as bitmaps straight from the buffers of an array.

All return boolean arrays that are null wherever the input is null.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate, bitmap_at_zero
from lance_dataset.file.kinds import is_binary_like, is_wide
from lancecodec import predicates

__all__ = [
    "compare_decimals",
    "contains_text",
    "exceeds_precision",
    "is_comparable_decimal",
    "is_text",
    "marked",
    "member_test",
    "places_of",
    "text_test",
    "unscaled",
]

#: Orders of the codec core by operator, and whether each is negated.
_ORDERS = {
    "=": (predicates.EQUAL, False),
    "!=": (predicates.EQUAL, True),
    "<": (predicates.LESS, False),
    ">=": (predicates.LESS, True),
    "<=": (predicates.LESS_EQUAL, False),
    ">": (predicates.LESS_EQUAL, True),
}


def is_text(arrow_type: pa.DataType) -> bool:
    """Return True if values are strings or binaries with offsets."""
    return is_binary_like(arrow_type)


def is_comparable_decimal(arrow_type: pa.DataType) -> bool:
    """Return True if `compare_decimals` supports a type."""
    return bool(pa.types.is_decimal128(arrow_type) or pa.types.is_decimal256(arrow_type))


def unscaled(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return decimals as the integers they are stored as, in a type of the same width and scale 0."""
    if isinstance(values, pa.Scalar):
        return unscaled(pa.repeat(values, 1))[0]
    kind = pa.decimal128 if pa.types.is_decimal128(values.type) else pa.decimal256
    target = kind(values.type.precision, 0)
    return pa.Array.from_buffers(target, len(values), values.buffers(), values.null_count, values.offset)


def compare_decimals(values: pa.Array, operator: str, bound: pa.Scalar) -> pa.BooleanArray:
    """Compute ``values operator bound`` for decimals of one type; `bound` must not be null."""
    width = values.type.byte_width
    limit = pa.repeat(bound, 1).buffers()[1].slice(0, width)
    order, negated = _ORDERS[operator]
    bits = _bits(len(values))
    predicates.compare_decimals(_fixed(values, width), limit, order, negated, bits)
    return _boolean(values, bits)


def exceeds_precision(values: pa.Array | pa.Scalar) -> bool:
    """Return True if a decimal has more digits than its type allows, which only happens in damaged arrays."""
    if isinstance(values, pa.Scalar):
        values = pa.repeat(values, 1)
    width = values.type.byte_width
    most = 10**values.type.precision - 1
    for order, bound in ((predicates.LESS_EQUAL, most), (predicates.LESS, -most)):
        bits = _bits(len(values))
        limit = bound.to_bytes(width, "little", signed=True)
        predicates.compare_decimals(_fixed(values, width), limit, order, bound > 0, bits)
        if _boolean(values, bits).true_count:
            return True
    return False


def contains_text(values: pa.Array, text: bytes) -> pa.BooleanArray:
    """Return whether strings or binaries contain a non-empty text."""
    bits = _bits(len(values))
    predicates.contains(*_strings(values), text, bits)
    return _boolean(values, bits)


def text_test(values: pa.Array, text: bytes, place: int) -> pa.BooleanArray:
    """Return whether strings or binaries begin with, end with or equal a non-empty text.

    Parameters
    ----------
    place
        `lancecodec.predicates.PREFIX`, `SUFFIX` or `WHOLE`.
    """
    bits = _bits(len(values))
    predicates.compare_text(*_strings(values), text, place, bits)
    return _boolean(values, bits)


def member_test(members: pa.Array) -> Callable[[pa.Array], pa.BooleanArray] | None:
    """Return a membership test for arrays, or None if Arrow's own test is as good.

    Parameters
    ----------
    members
        Values without nulls; the tested arrays have the same type.
    """
    kind = members.type
    if is_text(kind):
        strings = predicates.StringSet(*_strings(members))

        def strings_among(values: pa.Array) -> pa.BooleanArray:
            bits = _bits(len(values))
            strings.contains(*_strings(values), bits)
            return _boolean(values, bits)

        return strings_among
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)) or pa.types.is_interval(kind):
        return None
    width = kind.bit_width // 8
    integers = predicates.IntegerSet(_fixed(members, width), width)

    def integers_among(values: pa.Array) -> pa.BooleanArray:
        bits = _bits(len(values))
        integers.contains(_fixed(values, width), bits)
        return _boolean(values, bits)

    return integers_among


def marked(indices: pa.Array, marks: NDArray[np.uint8]) -> pa.BooleanArray:
    """Return whether the entries that dictionary indices refer to are marked (1); null where the index is null."""
    width = indices.type.bit_width // 8
    bits = _bits(len(indices))
    predicates.marked(_fixed(indices, width), width, marks.data, bits)
    return _boolean(indices, bits)


def places_of(mask: pa.BooleanArray) -> NDArray[np.int64]:
    """Return the positions where a mask without nulls is true, ascending."""
    length = len(mask)
    out = np.empty(mask.true_count, np.int64)
    if len(out):
        predicates.positions(bitmap_at_zero(mask.buffers()[1], mask.offset, length), length, out)
    return out


def _bits(count: int) -> pa.Buffer:
    return allocate((count + 7) // 8)


def _boolean(values: pa.Array, bits: pa.Buffer) -> pa.BooleanArray:
    length, nulls = len(values), values.null_count
    validity = bitmap_at_zero(values.buffers()[0], values.offset, length) if nulls else None
    return pa.Array.from_buffers(pa.bool_(), length, [validity, bits], nulls)


def _fixed(values: pa.Array, width: int) -> pa.Buffer:
    """Return the values buffer of an array of fixed width."""
    data = values.buffers()[1]
    if data is None:
        return pa.py_buffer(b"")
    return data.slice(values.offset * width, len(values) * width)


def _strings(values: pa.Array) -> tuple[pa.Buffer, pa.Buffer, bool]:
    """Return the bytes and offsets of an array of strings, and whether the offsets have 64 bits."""
    wide = is_wide(values.type)
    width = 8 if wide else 4
    _, offsets, data = values.buffers()
    empty = pa.py_buffer(b"")
    if offsets is None or offsets.size == 0:  # Arrow may omit the offsets of an empty array
        offsets = pa.py_buffer(bytes(width))
    else:
        offsets = offsets.slice(values.offset * width, (len(values) + 1) * width)
    return data if data is not None else empty, offsets, wide
