"""Tests of sorting against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.search import sorting


def _sorted(keys: np.ndarray, skew: int = 0) -> tuple[np.ndarray, np.ndarray] | None:
    """Sort keys at any address; return them and their places, None if they were in order."""
    count = len(keys)
    out, other = (memoryview(bytearray(8 * count + skew))[skew:] for _ in range(2))
    places, scratch = np.full(count, 7, np.uint32), np.empty(count, np.uint32)
    source = memoryview(b"." * skew + keys.tobytes())[skew:]
    if not sorting.sort_keys(source, out, places, other, scratch):
        assert not any(out)
        return None
    return np.frombuffer(bytes(out), np.uint64), places


@given(
    st.integers(0, 64).flatmap(lambda bits: st.lists(st.integers(0, (1 << bits) - 1), max_size=80)),
    st.integers(0, 2**64 - 1),
    st.integers(0, 7),
)
def test_keys_are_sorted_and_equal_ones_keep_their_order(numbers: list[int], base: int, skew: int) -> None:
    keys = np.array([(number + base) % 2**64 for number in numbers], np.uint64)
    found = _sorted(keys, skew)
    if found is None:
        assert (np.diff(keys.astype(object)) >= 0).all()
        return
    order = np.argsort(keys, kind="stable")
    assert found[0].tolist() == keys[order].tolist()
    assert found[1].tolist() == order.tolist()


@pytest.mark.parametrize("bits", [1, 11, 12, 22, 23, 40, 64])
def test_many_keys(bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, (1 << bits) - 1, 50_000, np.uint64, endpoint=True)
    found = _sorted(keys)
    assert found is not None
    order = np.argsort(keys, kind="stable")
    assert np.array_equal(found[1], order)
    assert np.array_equal(found[0], keys[order])


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ((9, 8, 4, 8, 4), "not a number of 64-bit keys"),
        ((16, 8, 8, 16, 8), "sizes of 2 keys"),
        ((16, 16, 4, 16, 8), "sizes of 2 keys"),
        ((16, 16, 8, 8, 8), "sizes of 2 keys"),
        ((16, 16, 8, 16, 12), "sizes of 2 keys"),
    ],
)
def test_wrong_sizes(sizes: tuple[int, ...], problem: str) -> None:
    with pytest.raises(CodecError, match=problem):
        sorting.sort_keys(*map(bytearray, sizes))


def test_places_at_odd_addresses() -> None:
    with pytest.raises(CodecError, match="aligned"):
        sorting.sort_keys(bytes(8), bytearray(8), memoryview(bytearray(5))[1:], bytearray(8), bytearray(4))
