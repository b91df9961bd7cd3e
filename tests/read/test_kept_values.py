"""Tests of `kept_values` against Arrow's filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.read.kept_values import kept_values

KINDS = [
    *(pa.int8(), pa.uint16(), pa.int32(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us")),
    *(pa.decimal128(30, 2), pa.decimal256(40, 3), pa.binary(3), pa.binary(20)),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int16(), pa.string())),
    *(pa.list_(pa.float32(), 5), pa.list_(pa.int16(), 1)),
]


def values_of(kind: pa.DataType, rng: np.random.Generator, count: int, *, nulls: bool) -> pa.Array:
    numbers = rng.integers(0, 100, count)
    gone = rng.random(count) < 0.2 if nulls else None
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([bytes([number]) * kind.byte_width for number in numbers.tolist()], kind, mask=gone)
    if pa.types.is_fixed_size_list(kind):
        items = pa.array(np.repeat(numbers, kind.list_size), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=None if gone is None else pa.array(gone))
    if pa.types.is_boolean(kind):
        return pa.array(numbers < 50, mask=gone)
    if pa.types.is_date32(kind):
        return pa.array(numbers.astype(np.int32), mask=gone).cast(kind)
    if kind.id in (pa.string().id, pa.large_string().id, pa.binary().id, pa.large_binary().id):
        return pa.array(["x" * number for number in numbers.tolist()], mask=gone).cast(kind)
    if pa.types.is_dictionary(kind):
        return pa.array([str(number) for number in numbers.tolist()], mask=gone).dictionary_encode().cast(kind)
    return pa.array(numbers, mask=gone).cast(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("nulls", [False, True])
def test_same_as_filter(kind: pa.DataType, nulls: bool) -> None:
    rng = np.random.default_rng(len(str(kind)))
    for count in (0, 1, 63, 64, 65, 130, 3000):
        for share in (0.0, 0.03, 0.5, 0.9, 1.0):
            for first, skipped in ((0, 0), (3, 5)):
                values = values_of(kind, rng, count + first, nulls=nulls).slice(first)
                mask = pa.array(rng.random(count + skipped) < share, pa.bool_()).slice(skipped)
                kept = kept_values(values, mask)
                assert kept is not None
                kept.validate(full=True)
                assert kept.equals(values.filter(mask))
                if pa.types.is_dictionary(kind):
                    decoded = kept_values(values, mask, decode=True)
                    assert decoded is not None
                    assert decoded.equals(values.filter(mask).dictionary_decode())


def test_types_that_are_left_to_others() -> None:
    mask = pa.array([True, False])
    with_null = pa.array([[1, None], [2, 3]], pa.list_(pa.int32(), 2))
    bits = pa.array([[True], [False]], pa.list_(pa.bool_(), 1))
    for values in (pa.array([[1], []]), pa.array([{"a": 1}, None]), pa.nulls(2), with_null, bits):
        assert kept_values(values, mask) is None
