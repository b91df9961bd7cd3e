"""Tests of products of 128-bit numbers, compared with Python's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.decimals import multiply

LARGEST = 2**127 - 1
EDGES = [0, 1, -1, 2**63, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**64), LARGEST, -LARGEST - 1, 10**19, 10**38]
numbers = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63) | st.integers(-LARGEST - 1, LARGEST)


def packed(values: list[int]) -> bytes:
    return b"".join(value.to_bytes(16, "little", signed=True) for value in values)


@given(
    st.lists(st.tuples(numbers, numbers), max_size=20), st.sampled_from([0, 1, 10**19, 10**38 - 1, LARGEST]), numbers
)
def test_products(pairs: list[tuple[int, int]], most: int, one: int) -> None:
    left = [a for a, _ in pairs]
    for right, used in ([b for _, b in pairs], None), ([one], [one] * len(pairs)):
        out = bytearray(16 * len(pairs) + 3)
        products = [a * b for a, b in zip(left, used or right, strict=False)]
        if used is None and len(pairs) == 1:
            products = [left[0] * right[0]]
        fits = multiply(packed(left), packed(right), len(pairs), most, out)
        assert fits == all(abs(product) <= most for product in products)
        if fits:
            assert out[: 16 * len(pairs)] == packed(products)


def test_buffers_at_odd_addresses() -> None:
    left, right = memoryview(b"x" + packed([-3, 10**20])).cast("B")[1:], memoryview(b"xyz" + packed([7, -2]))[3:]
    out = np.zeros(33, np.uint8)[1:]
    assert multiply(left, right, 2, LARGEST, out)
    assert out.tobytes() == packed([-21, -2 * 10**20])


@pytest.mark.parametrize(
    ("left", "right", "n", "most", "out"),
    [
        (31, 32, 2, 1, 32),
        (32, 31, 2, 1, 32),
        (32, 17, 2, 1, 32),
        (32, 32, 2, 1, 31),
        (16, 16, -1, 1, 16),
        (0, 16, 2**61, 1, 0),
    ],
)
def test_buffers_are_checked(left: int, right: int, n: int, most: int, out: int) -> None:
    with pytest.raises(CodecError):
        multiply(bytes(left), bytes(right), n, most, bytearray(out))


@pytest.mark.parametrize("most", [-1, 2**127])
def test_limits_are_checked(most: int) -> None:
    with pytest.raises(CodecError, match="magnitude"):
        multiply(bytes(16), bytes(16), 1, most, bytearray(16))
