"""Tests of searches of partitions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lance_dataset.index.vector.searching.segment import encoded_query
from lancecodec import CodecError
from lancecodec.search.distances import ELEMENTS, METRICS
from lancecodec.search.quantized import (
    EFFORTS,
    STORAGES,
    Partitions,
    distances_to,
    extra_codes,
    least_distances,
    rotate,
)


def found(made: Partitions, query: Any, numbers: list[int], k: int, **options: Any) -> tuple[Any, Any]:
    """Search, with all rows of fragment 0 that `allowed` leaves."""
    near, ids, places = np.empty(k, np.float32), np.empty(k, np.uint64), np.empty(k, np.uint64)
    allowed = options.get("allowed")
    count = made.search(
        *(query, np.array(numbers), np.ones(len(numbers), np.float32), k),
        *(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([options.get("rows", 1 << 20)])),
        *(allowed, 0 if allowed is None else 8 * len(allowed), EFFORTS.index("normal")),
        *(options.get("lowest"), options.get("below"), near, ids, places),
    )
    return near[:count], places[:count]


def test_plain_vectors() -> None:
    rng = np.random.default_rng(1)
    vectors, query = rng.standard_normal((300, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    made = Partitions(STORAGES.index("FLAT"), 2, 16, 0, 0)
    for number in range(2):
        ids = np.arange(150 * number, 150 * number + 150, dtype=np.uint64)
        made.fill(number, 150, vectors[150 * number :][:150].copy(), ids, ids)
    assert made.is_filled(1)
    distances = ((vectors - query) ** 2).sum(axis=1)
    near, places = found(made, query, [1, 0], 7)
    assert places.tolist() == np.argsort(distances)[:7].tolist()
    np.testing.assert_allclose(near, np.sort(distances)[:7], rtol=1e-5)
    allowed = np.zeros(300, bool)
    allowed[::3] = True
    _, places = found(made, query, [0, 1], 7, allowed=np.packbits(allowed, bitorder="little"), rows=300)
    assert places.tolist() == (3 * np.argsort(distances[::3])[:7]).tolist()
    assert found(made, query, [0], 7, rows=3)[1].max() < 3
    assert found(made, query, [0, 1], 7, below=0.0)[1].tolist() == []
    out = np.empty(300, np.float32)
    distances_to(query, vectors, 300, 16, 0, 0, out)
    np.testing.assert_allclose(out, distances, rtol=1e-5)


def coarse_input(kind: str, n: int, dimension: int, scale: float) -> Any:
    rng = np.random.default_rng(dimension)
    values = rng.standard_normal((n, dimension))
    if kind == "clusters":
        values = rng.standard_normal((20, dimension))[rng.integers(0, 20, n)] + values / 4
    elif kind == "equal":
        values = np.repeat(values[:3], (n + 2) // 3, axis=0)[:n]
    elif kind == "far":
        values += 500
    return values * scale


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("element", "fde")
@pytest.mark.parametrize("kind", ["clusters", "normal", "equal", "far", "infinite"])
def test_coarse_codes_find_the_same(kind: str, element: str, metric: str) -> None:
    """Bit by bit, with ties, for queries inside and outside the range of the vectors."""
    n, dtype, rng = 500, {"f": np.float32, "d": np.float64, "e": np.float16}[element], np.random.default_rng(1)
    ids = np.arange(n, dtype=np.uint64)
    for dimension, scale in ((1, 1.0), (16, 1e-3), (100, 60.0), (128, 1.0)):
        vectors = coarse_input(kind, n, dimension, scale).astype(dtype)
        if kind == "infinite":
            vectors[7] = np.inf
        sides = []
        for coarse in (False, True):
            made = Partitions(STORAGES.index("FLAT"), 1, dimension, ELEMENTS.index(element), METRICS.index(metric))
            made.fill(0, n, vectors, ids, ids)
            if coarse:
                assert made.coarsen(0) == (0 if kind == "infinite" else n * (dimension + 8))
            sides.append(made)
        for k, factor in ((1, 1.0), (10, 1.0), (10, 4.0), (100, 0.0)):
            query = vectors[rng.integers(10, n)].astype(np.float64) * factor
            query += rng.standard_normal(dimension) * scale * 0.2 * bool(factor)
            asked = encoded_query(query, element, metric)
            plain, short = (found(made, asked, [0], k) for made in sides)
            np.testing.assert_array_equal(plain[0], short[0])
            np.testing.assert_array_equal(plain[1], short[1])


def test_coarse_codes_are_made_once_of_plain_floats() -> None:
    ids = np.arange(4, dtype=np.uint64)
    made = Partitions(STORAGES.index("FLAT"), 2, 8, 0, 0)
    with pytest.raises(CodecError, match="not filled"):
        made.coarsen(0)
    made.fill(0, 4, np.arange(32, dtype=np.float32), ids, ids)
    assert made.coarsen(0) == 4 * 16
    with pytest.raises(CodecError, match="already"):
        made.coarsen(0)
    made.fill(1, 4, np.zeros(32, np.float32), ids, ids)
    assert made.coarsen(1) == 0  # all are equal
    for storage, element in (("SQ", 0), ("FLAT", ELEMENTS.index("u1"))):
        other = Partitions(STORAGES.index(storage), 1, 8, element, 0)
        other.fill(0, 4, np.zeros(32, np.uint8), ids, ids)
        with pytest.raises(CodecError, match=r"only plain|no coarse codes"):
            other.coarsen(0)


@pytest.mark.parametrize("n", [1, 5, 256, 10_000])
def test_least_distances(n: int) -> None:
    rng = np.random.default_rng(n)
    distances = rng.integers(0, max(n // 3, 1), n).astype(np.float32)
    distances[rng.integers(0, n, n // 10)] = np.inf
    for k in (1, 3, n // 2 + 1, n, n + 2):
        numbers = np.full(k, -1)
        assert least_distances(distances, k, numbers) == min(k, n)
        assert numbers[:n].tolist() == np.argsort(distances, kind="stable")[:k].tolist()
    distances[0] = np.nan
    numbers = np.empty(n, np.int64)
    assert least_distances(distances, n, numbers) == n - 1
    assert numbers[: n - 1].tolist() == np.argsort(distances, kind="stable")[: n - 1].tolist()
    for k, room in ((0, 1), (-1, 1), (n, n - 1)):
        with pytest.raises(CodecError, match="the least distances need an output"):
            least_distances(distances, k, np.empty(room, np.int64))


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("metric", [0, 2])
def test_product_codes(by_column: bool, bits: int, metric: int) -> None:
    rng = np.random.default_rng(2)
    rows, parts, words = 133, 4, 1 << bits
    codebook, centroid = rng.standard_normal((parts, words, 3)), rng.standard_normal(12)
    codes, query = rng.integers(0, words, (rows, parts)).astype(np.uint8), rng.standard_normal(12).astype(np.float32)
    stored = codes if bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4
    made = Partitions(
        *(STORAGES.index("PQ"), 1, 12, 0, metric),
        bits=bits,
        parts=parts,
        by_column=by_column,
        codebook=codebook.astype(np.float32).transpose(0, 2, 1).copy(),
        centroids=centroid.astype(np.float32),
    )
    ids = np.arange(rows, dtype=np.uint64)
    made.fill(0, rows, np.ascontiguousarray(stored.T if by_column else stored), ids, ids)
    vectors = codebook[np.arange(parts), codes].reshape(rows, 12)
    distances = ((query - centroid - vectors) ** 2).sum(axis=1) if metric == 0 else 1 - vectors @ query
    near, _ = found(made, query, [0], 20)
    np.testing.assert_allclose(near, np.sort(distances)[:20], rtol=1e-4, atol=1e-5)


def test_rotations_keep_lengths() -> None:
    golden = np.arange(1, 9, dtype=np.float32)
    rotate(golden, 8, bytes.fromhex("5a0f9301"))
    np.testing.assert_allclose(golden, [-4, 7, 8, -7, 2, 3, -2, -3], atol=1e-5)
    longer = np.arange(1, 25, dtype=np.float32)
    rotate(longer, 24, bytes.fromhex("5a0f93010203814224ff0055"))
    np.testing.assert_allclose(longer[:4], [-3.40625, -1.59375, 2.6875, -7.0625], atol=1e-4)
    assert np.linalg.norm(longer) == pytest.approx(70)


def _best_qualities(sizes: Any, top: int, first: float) -> Any:
    """Return the best cosine that one of the scales reaches, for each vector."""
    last = (top + 10) / sizes.max(axis=1, keepdims=True)
    parts = np.linspace(first, 1, 16, endpoint=False)
    steps = [np.minimum(np.floor(sizes * last * part + 1e-5), top) + 0.5 for part in parts]
    return np.max([(each * sizes).sum(axis=1) / np.linalg.norm(each, axis=1) for each in steps], axis=0)


@pytest.mark.parametrize("dimension", [7, 8, 24, 136])
@pytest.mark.parametrize(("bits", "first"), [(1, 0.15), (2, 0.2), (5, 0.71), (8, 0.81)])
def test_extra_codes_keep_directions(bits: int, first: float, dimension: int) -> None:
    vectors = np.random.default_rng(bits).standard_normal((300, dimension)).astype(np.float32)
    vectors[0], vectors[1] = -vectors[1], 1000 * vectors[2]
    codes, top = np.empty(vectors.shape, np.uint8), (1 << bits) - 1
    extra_codes(vectors, dimension, bits, first, codes)
    sizes = np.abs(vectors.astype(np.float64)) / np.linalg.norm(vectors, axis=1, keepdims=True)
    middles = np.where(vectors < 0, top - codes.astype(np.float64), codes) + 0.5
    quality = (middles * sizes).sum(axis=1) / np.linalg.norm(middles, axis=1)
    np.testing.assert_allclose(quality, _best_qualities(sizes, top, first), rtol=1e-6)
    assert codes.max() <= top


@pytest.mark.parametrize("value", [0, 1e-30, np.inf, np.nan])
def test_vectors_without_direction_have_no_extra_codes(value: float) -> None:
    codes = np.full(24, 9, np.uint8)
    extra_codes(np.full(24, value, np.float32), 24, 3, 0.5, codes)
    assert not codes.any()


def test_wrong_arguments_are_refused() -> None:
    ids = np.arange(4, dtype=np.uint64)
    made = Partitions(STORAGES.index("SQ"), 1, 8, 0, 0, step=0.1)
    with pytest.raises(CodecError, match="not filled"):
        found(made, np.zeros(8, np.float32), [0], 1)
    with pytest.raises(CodecError, match="too small"):
        made.fill(0, 4, np.zeros(31, np.uint8), ids, ids)
    made.fill(0, 4, np.zeros(32, np.uint8), ids, ids)
    with pytest.raises(CodecError, match="no partition"):
        made.fill(0, 4, np.zeros(32, np.uint8), ids, ids)
    with pytest.raises(CodecError, match="outside"):
        found(made, np.zeros(8, np.float32), [0], 1, allowed=np.zeros(1, np.uint8), rows=9)
    with pytest.raises(CodecError, match="cannot be cut"):
        Partitions(STORAGES.index("PQ"), 1, 8, 0, 0, bits=8, parts=3)
    with pytest.raises(CodecError, match="multiple of 8"):
        Partitions(STORAGES.index("RQ"), 1, 12, 0, 0)
    vectors, codes = np.zeros(16, np.float32), np.empty(16, np.uint8)
    for dimension, bits, first, out in ((8, 9, 0.5, codes), (8, 1, 1.0, codes), (3, 1, 0, codes), (8, 1, 0, codes[:9])):
        with pytest.raises(CodecError):
            extra_codes(vectors, dimension, bits, first, out)
