"""Tests of distances and nearest vectors against NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lancecodec import CodecError
from lancecodec.search.distances import ELEMENTS, METRICS, Coarse, Nearest, query_size

KINDS: dict[str, Any] = {"f": np.float32, "d": np.float64, "e": np.float16, "i1": np.int8, "u1": np.uint8}
SEARCHES = [(element, metric) for element in ELEMENTS for metric in METRICS[:3]] + [("u1", "hamming")]


def vectors(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> tuple[Any, NDArray[np.float64]]:
    """Return random vectors as they are stored, and as numbers."""
    if element in ("i1", "u1"):
        stored = rng.integers(0, 256, shape).astype(KINDS[element])
        return stored, stored.astype(np.float64)
    numbers = rng.standard_normal(shape)
    if element == "b":
        bits = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    stored = numbers.astype(KINDS[element])
    return stored, stored.astype(np.float64)


def encoded(queries: NDArray[np.float64], element: str, metric: str) -> bytes:
    if metric == "hamming":
        return queries.astype(np.uint8).tobytes()
    numbers = queries.astype(np.float64 if element == "d" else np.float32)
    size = query_size(queries.shape[1], ELEMENTS.index(element), METRICS.index(metric))
    padded = np.zeros((len(queries), size // numbers.itemsize), numbers.dtype)
    padded[:, : queries.shape[1]] = numbers
    return padded.tobytes()


def plain(queries: NDArray[np.float64], numbers: NDArray[np.float64], metric: str) -> NDArray[np.float64]:
    """Return the distances of all vectors to all queries."""
    if metric == "hamming":
        different = queries.astype(np.uint8)[:, None, :] ^ numbers.astype(np.uint8)[None]
        return np.unpackbits(different, axis=2).sum(axis=2).astype(np.float64)
    if metric == "l2":
        return ((queries[:, None, :] - numbers[None]) ** 2).sum(axis=2)
    products = queries @ numbers.T
    if metric == "dot":
        return 1 - products
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(numbers, axis=1)[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1 - products / lengths


def made(queries: NDArray[np.float64], element: str, metric: str, k: int, **options: Any) -> Nearest:
    bytes_ = encoded(queries, element, metric)
    return Nearest(bytes_, queries.shape[1], ELEMENTS.index(element), METRICS.index(metric), k, **options)


def drained(search: Nearest, query: int = 0) -> tuple[NDArray[np.float32], list[int], list[int]]:
    count = search.count(query)
    distances, ids, addresses = np.empty(count, np.float32), np.empty(count, np.uint64), np.empty(count, np.uint64)
    search.drain(query, distances, ids, addresses)
    assert search.count(query) == 0
    return distances, ids.tolist(), addresses.tolist()


@pytest.mark.parametrize(("element", "metric"), SEARCHES)
@given(dimension=st.integers(1, 70), count=st.integers(0, 150), queries=st.integers(1, 9), seed=st.integers(0, 99))
def test_all_types_and_metrics(element: str, metric: str, dimension: int, count: int, queries: int, seed: int) -> None:
    """The nearest vectors and their distances are those of plain sums in 64 bits."""
    rng = np.random.default_rng(seed)
    stored, numbers = vectors(rng, element, (count, dimension))
    wanted = vectors(rng, element, (queries, dimension))[1]
    k = int(rng.integers(1, 30))
    search = made(wanted, element, metric, k)
    search.add(stored, count, None, None, 0, None, 0, None)
    expected = plain(wanted, numbers, metric)
    for query in range(queries):
        distances, ids, addresses = drained(search, query)
        assert ids == addresses
        known = expected[query][~np.isnan(expected[query])]
        assert len(ids) == min(k, len(known))
        scale = 1 + np.abs(known).max(initial=0)
        np.testing.assert_allclose(distances, np.sort(known)[:k], rtol=2e-6, atol=2e-6 * scale)
        np.testing.assert_allclose(distances, expected[query][ids], rtol=2e-6, atol=2e-6 * scale)


def test_all_halves() -> None:
    """Every half, small ones included, counts as its value; infinity is the farthest, and NaN is never found."""
    stored = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        brain = (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    for element, numbers in (("e", stored.view(np.float16).astype(np.float64)), ("b", brain)):
        search = made(np.zeros((1, 1)), element, "dot", 1 << 16)
        search.add(stored, 1 << 16, None, None, 0, None, 0, None)
        assert sorted(drained(search)[1]) == np.flatnonzero(np.isfinite(numbers)).tolist()
        ones = made(np.ones((1, 1)), element, "dot", 1 << 16)
        ones.add(stored, 1 << 16, None, None, 0, None, 0, None)
        distances, ids, _ = drained(ones)
        assert sorted(ids) == np.flatnonzero(~np.isnan(numbers)).tolist()
        assert np.array_equal(distances, (1 - numbers[ids]).astype(np.float32))


def test_equal_distances_are_ordered_by_id() -> None:
    values = np.zeros((300, 4), np.float32)
    ids = np.random.default_rng(3).permutation(300).astype(np.uint64)
    addresses = (ids * 7).astype(np.uint64)
    for k in (1, 5, 64, 65, 299, 300, 1 << 40):
        search = made(np.zeros((1, 4)), "f", "l2", k)
        search.add(values, 300, None, None, 0, addresses, 0, ids)
        assert drained(search)[1:] == (list(range(300))[:k], list(range(0, 2100, 7))[:k])


@given(seed=st.integers(0, 200))
def test_rows_nulls_and_merges(seed: int) -> None:
    """Parts that are searched separately and merged give the same as all together."""
    rng = np.random.default_rng(seed)
    count, k = int(rng.integers(1, 200)), int(rng.integers(1, 40))
    values = rng.integers(0, 4, (count, 3)).astype(np.float32)
    valid = rng.random(count) < 0.8
    skip = int(rng.integers(0, 9))
    bits = np.packbits(np.append(np.ones(skip, bool), valid), bitorder="little")
    rows = np.sort(rng.choice(count, int(rng.integers(0, count + 1)), replace=False))
    wanted = rng.integers(0, 4, (2, 3)).astype(np.float64)
    parts = np.split(rows, [len(rows) // 3, len(rows) // 2])
    searches = [made(wanted, "f", "l2", k) for _ in parts]
    for search, part in zip(searches, parts, strict=True):
        search.add(values, count, part, bits, skip, None, 1000, None)
    for other in searches[1:]:
        searches[0].merge(other)
    kept = rows[valid[rows]]
    expected = plain(wanted, values.astype(np.float64), "l2")
    for query in range(2):
        order = kept[np.lexsort((kept, expected[query][kept]))][:k]
        distances, ids, _ = drained(searches[0], query)
        assert ids == (order + 1000).tolist()
        assert distances.tolist() == expected[query][order].tolist()


def test_limits_of_distances() -> None:
    values = np.arange(10, dtype=np.float32).reshape(-1, 1)
    for lowest, below, expected in (
        (None, None, list(range(10))),
        (4.0, None, list(range(2, 10))),
        (None, 4.0, [0, 1]),
        (4.0, 25.0, [2, 3, 4]),
        (25.0, 4.0, []),
        (float("nan"), 4.0, []),
        (float("-inf"), float("inf"), list(range(10))),
    ):
        search = made(np.zeros((1, 1)), "f", "l2", 10, lowest=lowest, below=below)
        search.add(values, 10, None, None, 0, None, 0, None)
        assert drained(search)[1] == expected


@pytest.mark.parametrize(("element", "metric"), SEARCHES)
@pytest.mark.parametrize("wide", [False, True])
def test_lists_of_vectors(element: str, metric: str, wide: bool) -> None:
    """The distance of a list is the sum over the queries of those to its nearest valid vector."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 4, 60)
    lengths[3] = 150
    ends = np.cumsum(np.append(0, lengths))
    count, dimension = int(ends[-1]), 9
    stored, numbers = vectors(rng, element, (count, dimension))
    wanted = vectors(rng, element, (3, dimension))[1]
    valid = rng.random(count) < 0.9
    bits = np.packbits(np.append(np.ones(2, bool), valid), bitorder="little")
    offsets = ends.astype(np.int64 if wide else np.int32)
    search = made(wanted, element, metric, 100, lists=True)
    present = rng.random(60) < 0.9
    search.add_lists(
        *(stored, count, bits, 2, offsets, wide, None, np.packbits(present, bitorder="little"), 0, None, 0, None)
    )
    each = plain(wanted, numbers, metric)
    expected = {}
    for row, (low, high) in enumerate(pairwise(ends.tolist())):
        inside = np.flatnonzero(valid[low:high]) + low
        if present[row] and len(inside):
            expected[row] = each[:, inside].min(axis=1).sum()
    distances, ids, _ = drained(search)
    assert sorted(ids) == sorted(expected)
    np.testing.assert_allclose(distances, [expected[row] for row in ids], rtol=1e-5, atol=1e-4)
    few = made(wanted, element, metric, 100, lists=True)
    rows = np.array([3, 5, 59])
    few.add_lists(stored, count, None, 0, offsets, wide, rows, None, 0, None, 0, rows.astype(np.uint64) * 2)
    assert sorted(drained(few)[1]) == [2 * row for row in (3, 5, 59) if lengths[row]]


def test_vectors_at_any_address() -> None:
    values = np.arange(20, dtype=np.float32)
    odd = memoryview(b"." + values.tobytes())[1:]
    search = made(np.zeros((1, 5)), "f", "l2", 4)
    search.add(odd, 4, None, None, 0, None, 0, None)
    assert drained(search)[1] == [0, 1, 2, 3]


@pytest.mark.parametrize("metric", METRICS[:3])
@pytest.mark.parametrize("element", "fde")
def test_coarse_codes_find_the_same(element: str, metric: str) -> None:
    """Bit by bit, with ties and limits; blocks in which most vectors are near are compared as a whole."""
    rng = np.random.default_rng(4)
    for dimension, count, near in ((3, 2000, 1), (100, 700, 1), (40, 3000, 30)):
        stored, _ = vectors(rng, element, (count, dimension))
        stored[count // 2 :] = stored[: count - count // 2]  # ties
        codes = Coarse(stored, count, dimension, ELEMENTS.index(element))
        assert codes.nbytes == count * (dimension + 8)
        query = rng.standard_normal(dimension) / near
        padded = np.zeros(query_size(dimension, ELEMENTS.index(element), METRICS.index(metric)) // 8 * 2, np.float32)
        wanted = padded if element != "d" else np.zeros(len(padded) // 2)
        wanted[:dimension] = query
        for k, lowest, below in ((1, None, None), (10, None, None), (10, 0.9, 1.1), (600, None, None)):
            found = []
            for coarse in (False, True):
                made = Nearest(
                    wanted, dimension, ELEMENTS.index(element), METRICS.index(metric), k, False, lowest, below
                )
                if coarse:
                    made.add_coarse(stored, codes, 70)
                else:
                    made.add(stored, count, None, None, 0, None, 70, None)
                n = made.count(0)
                out = np.empty(n, np.float32), np.empty(n, np.uint64), np.empty(n, np.uint64)
                made.drain(0, *out)
                found.append(out)
            for plain, short in zip(*found, strict=True):
                np.testing.assert_array_equal(plain, short)


def test_coarse_codes_of_other_vectors() -> None:
    values = np.arange(32, dtype=np.float32)
    codes = Coarse(values, 8, 4, 0)
    assert codes.nbytes == 8 * 12
    for wrong in ((values, 9, 4, 0), (values, -1, 4, 0), (values, 8, 0, 0), (values, 8, 4, 5), (values, 8, 4, 1)):
        with pytest.raises(CodecError):
            Coarse(*wrong)
    none = Coarse(np.ones(32, np.float32), 8, 4, 0)
    assert none.nbytes == 0
    search = Nearest(bytes(64), 4, 0, 0, 2)
    for one, data, known in (
        (search, values[:31], codes),
        (search, values, none),
        (Nearest(bytes(128), 4, 0, 0, 2), values, codes),
        (Nearest(bytes(64), 4, 0, 0, 2, lists=True), values, codes),
        (Nearest(bytes(64), 8, 0, 0, 2), values, codes),
        (Nearest(bytes(128), 4, 1, 0, 2), values, codes),
        (Nearest(bytes(4), 4, 5, 3, 2), values, codes),
    ):
        with pytest.raises(CodecError):
            one.add_coarse(data, known, 0)


def test_wrong_arguments_are_errors() -> None:
    for dimension, element, metric in ((0, 0, 0), (1 << 25, 0, 0), (4, 6, 0), (4, -1, 0), (4, 0, 4), (4, 0, 3)):
        with pytest.raises(CodecError):
            query_size(dimension, element, metric)
    for queries, k in ((b"", 1), (bytes(63), 1), (bytes(64), 0), (bytes(64), -1)):
        with pytest.raises(CodecError):
            Nearest(queries, 4, 0, 0, k)
    search, lists = Nearest(bytes(64), 4, 0, 0, 2), Nearest(bytes(64), 4, 0, 0, 2, lists=True)
    data, numbers = bytes(48), np.arange(3, dtype=np.int64)
    for arguments in (
        (data, 4, None, None, 0, None, 0, None),
        (data, -1, None, None, 0, None, 0, None),
        (data, 3, numbers + 1, None, 0, None, 0, None),
        (data, 3, numbers - 1, None, 0, None, 0, None),
        (data, 3, b"abc", None, 0, None, 0, None),
        (data, 3, None, b"", 0, None, 0, None),
        (data, 3, None, b"a", 6, None, 0, None),
        (data, 3, None, b"a", -1, None, 0, None),
        (data, 3, None, None, 0, numbers[:2], 0, None),
        (data, 3, None, None, 0, None, 0, numbers[:2]),
    ):
        with pytest.raises(CodecError):
            search.add(*arguments)
    with pytest.raises(CodecError):
        lists.add(data, 3, None, None, 0, None, 0, None)
    for ends in ([0, 4], [-1, 0], [2, 1], []):
        with pytest.raises(CodecError):
            lists.add_lists(data, 3, None, 0, np.array(ends, np.int32), False, None, None, 0, None, 0, None)
    with pytest.raises(CodecError):
        search.add_lists(data, 3, None, 0, np.array([0, 3], np.int32), False, None, None, 0, None, 0, None)
    with pytest.raises(CodecError):
        search.merge(search)
    with pytest.raises(CodecError):
        search.merge(Nearest(bytes(128), 4, 0, 0, 2))
    search.add(data, 3, None, None, 0, None, 0, None)
    with pytest.raises(CodecError):
        search.drain(0, bytearray(4), bytearray(16), bytearray(16))
    for query in (-1, 1):
        with pytest.raises(CodecError):
            search.count(query)
