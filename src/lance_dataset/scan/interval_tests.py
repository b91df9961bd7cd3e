"""Conditions on one column as intervals of its values, which can be tested without decoding the column.

The result of a condition that only compares a column with constants changes at these constants, and nowhere else. So
the filter is computed for null, for the values around each constant, and at the ends of the type. What it says of two
of them holds for all values between. So NaN, both zeros and nulls mean what they mean in filters.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import groupby
from math import inf
from operator import itemgetter

import pyarrow as pa

from lance_dataset.expr.compiled import Filter
from lance_dataset.expr.tree import (
    And,
    Column,
    Comparison,
    Constant,
    Expression,
    IsDistinct,
    IsNull,
    IsTruth,
    Not,
    OneOf,
    Or,
)
from lance_dataset.file.value_order import key_order
from lancecodec.intervals import FLOAT, MOST_INTERVALS, UNSIGNED, IntervalTest

__all__ = ["interval_test"]

#: Conditions with more constants are not examined; they rarely have few intervals.
_MOST_CONSTANTS = 256
#: Nodes that only combine the results of comparisons.
_LOGIC = (And, Or, Not, IsTruth)
#: Nodes that compare their operands.
_COMPARISONS = (Comparison, IsDistinct, OneOf, IsNull)


def interval_test(filter: Filter, arrow_type: pa.DataType) -> IntervalTest | None:
    """Return a filter of one column as a test of its values.

    Parameters
    ----------
    filter
        The filter.
    arrow_type
        Type of the stored values of the column.

    Returns
    -------
    IntervalTest or None
        None if the filter does more than compare one column with constants, if its values have no order that the
        stored values have too, or if those that pass are spread over too many intervals.
    """
    order = key_order(arrow_type)
    if order is None or filter.tree is None or len(filter.columns) != 1:
        return None
    plain = None if order == FLOAT else _plain(filter.tree, (filter.columns[0],), arrow_type, order)
    if plain is not None:
        return IntervalTest(arrow_type.bit_width, order, plain, null=False)
    constants: list[pa.Scalar] = []
    for value in _compared(filter.tree, (filter.columns[0],), arrow_type):
        if value is None or len(constants) == _MOST_CONSTANTS:
            return None
        constants.append(value)
    bits = arrow_type.bit_width
    points = _points(constants, arrow_type, order)
    *passes, null = filter.mask(_batch(filter.columns[0], points, arrow_type, order)).to_pylist()
    intervals = list(_intervals(points, passes))
    return IntervalTest(bits, order, intervals, null=null) if len(intervals) <= MOST_INTERVALS else None


def _plain(
    node: Expression, path: tuple[str, ...], arrow_type: pa.DataType, order: int
) -> list[tuple[int, int]] | None:
    """Return the intervals of keys that pass one comparison of a column, or an AND of them; None for other conditions.

    The keys of the type are in the order of the values. Null does not pass.
    """
    top = (1 << arrow_type.bit_width) - 1
    if isinstance(node, And):
        if len(node.operands) > MOST_INTERVALS:
            return None  # each may add an interval
        found = [(0, top)]
        for operand in node.operands:
            other = _plain(operand, path, arrow_type, order)
            if other is None:
                return None
            both = [(max(one[0], two[0]), min(one[1], two[1])) for one in found for two in other]
            found = [each for each in both if each[0] <= each[1]]
        return found if len(found) <= MOST_INTERVALS else None
    if not isinstance(node, Comparison) or not isinstance(node.left, Column) or not isinstance(node.right, Constant):
        return None
    column, value = node.left, node.right.value
    if column.path != path or not column.type.equals(arrow_type) or not value.type.equals(arrow_type):
        return None
    if not value.is_valid:
        return None
    bits = arrow_type.bit_width
    key = _key(next(_words(pa.array([value], arrow_type), bits // 8)), bits, order)
    below, above = [(0, key - 1)] if key else [], [(key + 1, top)] if key < top else []
    kept = {"=": [(key, key)], "!=": below + above, "<": below, ">": above, "<=": [(0, key)], ">=": [(key, top)]}
    return kept.get(node.operator)


def _compared(node: Expression, path: tuple[str, ...], arrow_type: pa.DataType) -> Iterator[pa.Scalar | None]:
    """Yield the constants with which a condition compares a column; None if it does anything else."""
    if isinstance(node, Constant):
        if not pa.types.is_boolean(node.type):
            yield None
    elif isinstance(node, _LOGIC):
        for child in node.children():
            yield from _compared(child, path, arrow_type)
    elif isinstance(node, _COMPARISONS):
        for child in node.children():
            if isinstance(child, Constant) and child.value.type.equals(arrow_type):
                if child.value.is_valid:
                    yield child.value
            elif not (isinstance(child, Column) and child.path == path and child.type.equals(arrow_type)):
                yield None
        if isinstance(node, OneOf):
            yield from node.values.drop_null() if node.values.type.equals(arrow_type) else (None,)
    else:
        yield None


def _points(constants: list[pa.Scalar], arrow_type: pa.DataType, order: int) -> list[int]:
    """Return the keys between which the result of a condition does not change, ascending."""
    bits = arrow_type.bit_width
    top = (1 << bits) - 1
    found = {0, top}
    if constants:
        found.update(_key(value, bits, order) for value in _words(pa.array(constants, arrow_type), bits // 8))
    if order == FLOAT:
        found.update(_SPECIAL[bits])
    near = {key + step for key in found for step in (-1, 0, 1)}
    return sorted(near - {-1, top + 1})


def _words(values: pa.Array, width: int) -> Iterator[int]:
    """Yield stored values of some bytes, taken as unsigned integers."""
    data = values.buffers()[1].to_pybytes()
    for start in range(0, len(values) * width, width):
        yield int.from_bytes(data[start : start + width], "little")


def _batch(column: str, keys: list[int], arrow_type: pa.DataType, order: int) -> pa.RecordBatch:
    """Return the values with some keys, followed by a null, as a column."""
    bits, length = arrow_type.bit_width, len(keys) + 1
    data = b"".join([_value(key, bits, order).to_bytes(bits // 8, "little") for key in (*keys, _key(0, bits, order))])
    validity = ((1 << len(keys)) - 1).to_bytes(length // 8 + 1, "little")
    values = pa.Array.from_buffers(arrow_type, length, [pa.py_buffer(validity), pa.py_buffer(data)], 1)
    return pa.RecordBatch.from_arrays([values], names=[column])


def _key(value: int, bits: int, order: int) -> int:
    """Return the key of a stored value, taken as an unsigned integer; see `lancecodec.intervals`."""
    sign = 1 << (bits - 1)
    if order == UNSIGNED:
        return value
    return value ^ ((1 << bits) - 1) if order == FLOAT and value & sign else value ^ sign


def _value(key: int, bits: int, order: int) -> int:
    """Return the stored value with a key."""
    sign = 1 << (bits - 1)
    if order == UNSIGNED:
        return key
    return key ^ ((1 << bits) - 1) if order == FLOAT and not key & sign else key ^ sign


def _intervals(points: list[int], passes: list[bool]) -> Iterator[tuple[int, int]]:
    """Yield the intervals of keys in which values pass. Two points that pass have no other value between them."""
    for _, run in groupby(zip(points, passes, strict=True), itemgetter(1)):
        keys = list(run)
        if keys[0][1]:
            yield keys[0][0], keys[-1][0]


#: Keys of the infinities and zeros.
_SPECIAL = {
    bits: [_key(int.from_bytes(struct.pack(code, value), "little"), bits, FLOAT) for value in (-inf, inf, -0.0, 0.0)]
    for bits, code in ((32, "<f"), (64, "<d"))
}
