"""Tests of walks of graphs of partitions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lancecodec import CodecError
from lancecodec.search.graphs import GraphBuilder, GraphPartitions
from lancecodec.search.quantized import EFFORTS, STORAGES

ROWS = 600


def nearest_edges(vectors: NDArray[Any], rows: NDArray[Any], count: int) -> NDArray[np.uint32]:
    """Return the nearest rows of some rows among them, and some others, so that all can be reached."""
    some = vectors[rows]
    distances = ((some[:, None] - some) ** 2).sum(axis=2)
    near = np.argsort(distances, axis=1)[:, 1 : count + 1]
    rng = np.random.default_rng(0)
    return rows[np.concatenate([near, rng.integers(0, len(rows), (len(rows), 6))], axis=1)].astype(np.uint32)


def linked(made: GraphPartitions, number: int, vectors: NDArray[Any], entry: int = 5) -> None:
    """Give a partition a graph of two levels and an empty one: rows whose number 5 divides are on the upper one."""
    rows, upper = np.arange(len(vectors)), np.arange(0, len(vectors), 5)
    lower_edges, upper_edges = nearest_edges(vectors, rows, 10), nearest_edges(vectors, upper, 6)
    degrees = np.concatenate([np.full(len(rows), 16), np.full(len(upper), 12)])
    made.link(
        *(number, len(rows), entry, np.array([0, len(rows), len(rows) + len(upper), len(rows) + len(upper)])),
        np.concatenate([rows, upper]).astype(np.uint32),
        np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint32),
        np.concatenate([lower_edges.ravel(), upper_edges.ravel()]),
    )


def found(made: GraphPartitions, query: Any, k: int, ef: int, **options: Any) -> tuple[Any, Any]:
    """Search all rows of fragment 0 that `allowed` leaves."""
    near, ids, places = np.empty(k, np.float32), np.empty(k, np.uint64), np.empty(k, np.uint64)
    allowed = options.get("allowed")
    count = made.search(
        *(query, np.zeros(1, np.int64), np.ones(1, np.float32), k),
        *(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([options.get("rows", 1 << 20)])),
        *(allowed, 0 if allowed is None else 8 * len(allowed), EFFORTS.index("normal")),
        *(options.get("lowest"), options.get("below"), near, ids, places, ef),
    )
    return near[:count], places[:count]


def plain(vectors: NDArray[Any], metric: int = 0) -> GraphPartitions:
    made = GraphPartitions(STORAGES.index("FLAT"), 1, vectors.shape[1], 0, metric)
    linked(made, 0, vectors)
    ids = np.arange(len(vectors), dtype=np.uint64)
    made.fill(0, len(vectors), vectors, ids, ids)
    return made


@pytest.mark.parametrize("metric", [0, 1, 2])
def test_walks_find_the_nearest(metric: int) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((ROWS, 24)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    made, hits = plain(vectors, metric), 0
    for query in rng.standard_normal((20, 24)).astype(np.float32):
        padded = np.zeros(32, np.float32)
        padded[:24] = query
        products = vectors @ query
        distances = ((vectors - query) ** 2).sum(axis=1) if metric == 0 else 1 - products
        distances = 1 - products / np.linalg.norm(query) if metric == 1 else distances
        near, places = found(made, padded, 5, 60)
        np.testing.assert_allclose(near, distances[places.astype(int)], rtol=1e-4, atol=1e-5)
        assert (np.diff(near) >= 0).all()
        assert len(set(places.tolist())) == 5
        hits += len(set(places.tolist()) & set(np.argsort(distances)[:5].tolist()))
        assert found(made, padded, 5, 0)[1].tolist() == np.argsort(distances)[:5].tolist()
    assert hits > 95


def test_rows_that_may_not_be_found_are_passed() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((ROWS, 16)).astype(np.float32)
    made = plain(vectors)
    hits = 0
    for step in (2, 3, 60):
        allowed = np.zeros(ROWS, bool)
        allowed[::step] = True
        bits = np.packbits(allowed, bitorder="little")
        for query in rng.standard_normal((10, 16)).astype(np.float32):
            distances = ((vectors[::step] - query) ** 2).sum(axis=1)
            _, places = found(made, query, 4, 12, allowed=bits, rows=ROWS)
            assert (places % step == 0).all()
            hits += len(set(places.tolist()) & set((step * np.argsort(distances)[:4]).tolist()))
    assert hits > 105
    assert not len(found(made, vectors[0], 4, 12, allowed=bytes(75), rows=ROWS)[1])


def test_limits_of_distances() -> None:
    vectors = np.random.default_rng(3).standard_normal((ROWS, 16)).astype(np.float32)
    made, query = plain(vectors), vectors[7]
    distances = np.sort(((vectors - query) ** 2).sum(axis=1))
    near, _ = found(made, query, 5, 20, lowest=float(distances[3]) * 1.0001)
    assert near.min() > distances[3]
    near, _ = found(made, query, 5, 20, below=float(distances[3]))
    assert len(near) <= 3
    assert (near < distances[3]).all()


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("metric", [0, 2])
@pytest.mark.parametrize("bits", [4, 8, 0])
def test_walks_of_codes(by_column: bool, bits: int, metric: int) -> None:
    """Distances are those of a scan; without bits, codes are bytes."""
    rng = np.random.default_rng(4)
    parts, words, dimension = 4, 1 << bits, 12
    codebook, centroid = rng.standard_normal((parts, words, 3)), rng.standard_normal(dimension)
    codes = rng.integers(0, words, (ROWS, parts)).astype(np.uint8)
    stored = codes if bits != 4 else codes[:, ::2] | codes[:, 1::2] << 4
    vectors = codebook[np.arange(parts), codes].reshape(ROWS, dimension)
    options: dict[str, Any] = {
        "bits": bits,
        "parts": parts,
        "by_column": by_column,
        "codebook": codebook.astype(np.float32).transpose(0, 2, 1).copy(),
        "centroids": centroid.astype(np.float32),
    }
    if not bits:
        stored = rng.integers(0, 256, (ROWS, dimension), np.uint8)
        vectors, options = stored * 0.01, {"start": 0.0, "step": 0.01}
    made = GraphPartitions(STORAGES.index("PQ" if bits else "SQ"), 1, dimension, 0, metric, **options)
    linked(made, 0, vectors)
    ids = np.arange(ROWS, dtype=np.uint64)
    made.fill(0, ROWS, np.ascontiguousarray(stored.T if by_column and bits else stored), ids, ids)
    for query in rng.standard_normal((5, dimension)).astype(np.float32):
        near, places = found(made, query, 6, 40)
        every = dict(zip(*(array.tolist() for array in found(made, query, ROWS, 0)[::-1]), strict=True))
        np.testing.assert_allclose(near, [every[place] for place in places.tolist()], rtol=1e-4, atol=1e-5)


def test_distances_that_are_not_numbers() -> None:
    vectors = np.random.default_rng(5).standard_normal((ROWS, 16)).astype(np.float32)
    made = GraphPartitions(STORAGES.index("FLAT"), 1, 16, 0, 0)
    linked(made, 0, vectors)
    vectors[::3] = np.nan
    vectors[1::3] = np.inf
    ids = np.arange(ROWS, dtype=np.uint64)
    made.fill(0, ROWS, vectors, ids, ids)
    near, places = found(made, vectors[2], 5, 20)
    assert places[0] == 2
    assert not np.isnan(near).any()
    assert not len(found(made, np.full(16, np.nan, np.float32), 5, 20)[0])


def test_wrong_graphs_are_refused() -> None:
    vectors = np.random.default_rng(6).standard_normal((50, 8)).astype(np.float32)
    rows = np.arange(50, dtype=np.uint32)
    ends, neighbors = np.arange(51, dtype=np.uint32), np.roll(rows, 1)
    good: list[Any] = [0, 50, 0, np.array([0, 50]), rows, ends, neighbors]

    def refused(match: str, **changes: Any) -> None:
        names = ("number", "rows", "entry", "bounds", "nodes", "ends", "neighbors")
        with pytest.raises(CodecError, match=match):
            GraphPartitions(0, 1, 8, 0, 0).link(
                *(changes.get(name, each) for name, each in zip(names, good, strict=True))
            )

    refused("no partition", number=1)
    refused("as many ends", ends=ends[:-1])
    refused("as many ends", bounds=np.zeros(70, np.int64))
    refused("do not divide", bounds=np.array([0, 49]))
    refused("do not divide", bounds=np.array([1, 50]))
    refused("do not divide", bounds=np.array([0, 2**62, 50]))
    refused("begin or end outside", ends=ends + 1)
    refused("begin or end outside", ends=ends[::-1].copy())
    refused("not rows in ascending order", rows=49)
    refused("not rows in ascending order", nodes=rows[::-1].copy())
    refused("not on the level of its node", neighbors=rows + 1)
    refused("entry point", entry=50)
    refused("entry point", entry=-1)
    upper = {"bounds": np.array([0, 48, 50]), "nodes": np.append(rows[:48], rows[48:]), "rows": 48}
    refused("not rows in ascending", **upper)
    refused("not on the one below", bounds=np.array([0, 49, 50]), rows=50, neighbors=rows * 0)
    made = plain(np.resize(vectors, (ROWS, 8)))
    with pytest.raises(CodecError, match="no partition"):
        linked(made, 0, vectors)


def test_graphs_of_other_rows_are_not_walked() -> None:
    vectors = np.random.default_rng(7).standard_normal((ROWS, 16)).astype(np.float32)
    made = GraphPartitions(STORAGES.index("FLAT"), 1, 16, 0, 0)
    linked(made, 0, vectors[:500])
    ids = np.arange(ROWS, dtype=np.uint64)
    made.fill(0, ROWS, vectors, ids, ids)
    assert found(made, vectors[590], 1, 5)[1].tolist() == [590]


Graph = list[NDArray[Any]]


def heights_and_order(n: int, m: int = 8) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    rng = np.random.default_rng(9)
    heights = np.minimum(-np.log(1 - rng.random(n)) / np.log(m), 5).astype(np.uint8)
    order = rng.permutation(n)
    return heights, order[np.argsort(-heights[order].astype(np.int64), kind="stable")].astype(np.uint32)


def written(made: GraphBuilder) -> Graph:
    levels, nodes, edges = made.finish()
    graph: Graph = [np.empty(levels + 1, np.int64), np.empty(nodes, np.uint32), np.empty(nodes + 1, np.uint32)]
    graph += [np.empty(edges, np.uint32), np.empty(edges, np.float32)]
    made.write(*graph)
    return graph


def built(vectors: NDArray[Any], element: int, metric: int, scale: float = 0, ef: int = 60) -> tuple[int, Graph]:
    """Build a graph with 8 neighbors; return the entry point and the graph."""
    n, dimension = vectors.shape
    heights, order = heights_and_order(n)
    made = GraphBuilder(vectors, n, dimension, element, metric, heights, order, 8, ef, scale)
    made.run(n)
    return int(order[0]) if n else 0, written(made)


@pytest.mark.parametrize("dimension", [16, 13])
@pytest.mark.parametrize(
    ("element", "kind", "metric"), [(0, "<f4", 0), (0, "<f4", 2), (1, "<f8", 0), (2, "<f2", 0), (5, "u1", 3)]
)
def test_built_graphs_are_walked(element: int, kind: str, metric: int, dimension: int) -> None:
    rng = np.random.default_rng(8)
    drawn = rng.standard_normal((3000, dimension))
    drawn /= np.linalg.norm(drawn, axis=1)[:, None] if metric == 2 else 1
    vectors = rng.integers(0, 256, (3000, dimension), np.uint8) if element == 5 else drawn.astype(kind)
    entry, graph = built(vectors, element, metric)
    bounds, nodes, ends, neighbors, distances = graph
    degrees = np.diff(ends.astype(np.int64))
    assert degrees[:3000].max() <= 17
    assert degrees[3000:].max() <= 8
    first, second = np.repeat(nodes, degrees), neighbors
    if element == 5:
        expected = np.unpackbits(vectors[first] ^ vectors[second], axis=1).sum(axis=1)
    else:
        pairs = vectors[first].astype(np.float64), vectors[second].astype(np.float64)
        expected = 1 - (pairs[0] * pairs[1]).sum(axis=1) if metric == 2 else ((pairs[0] - pairs[1]) ** 2).sum(axis=1)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-5)
    made = GraphPartitions(STORAGES.index("FLAT"), 1, dimension, element, metric)
    made.link(0, 3000, entry, bounds, nodes, ends, neighbors)
    ids = np.arange(3000, dtype=np.uint64)
    made.fill(0, 3000, vectors, ids, ids)
    hits = 0
    for query in vectors[rng.integers(0, 3000, 30)]:
        encoded = np.zeros(16, np.float64 if element == 1 else np.float32)
        encoded[:dimension] = query
        encoded = query if element == 5 else encoded
        exact = set(found(made, encoded, 5, 0)[1].tolist())
        hits += len(exact & set(found(made, encoded, 5, 50)[1].tolist()))
    assert hits >= (125 if element == 5 else 145)  # distances in bits have many ties


def test_built_graphs_of_bytes() -> None:
    codes = np.random.default_rng(9).integers(0, 256, (500, 20), np.uint8)
    _, (_, nodes, ends, neighbors, distances) = built(codes, 5, 0, 0.25)
    first = np.repeat(nodes, np.diff(ends.astype(np.int64)))
    expected = ((codes[first].astype(np.float64) - codes[neighbors]) ** 2).sum(axis=1) / 4
    np.testing.assert_allclose(distances, expected, rtol=1e-6)


def test_steps_in_parts_build_the_same_graph() -> None:
    vectors = np.random.default_rng(10).standard_normal((1500, 16)).astype(np.float32)
    heights, order = heights_and_order(1500)
    made = GraphBuilder(vectors, 1500, 16, 0, 0, heights, order, 8, 60)
    while made.batch()[0] < made.batch()[1]:
        first, stop = made.batch()
        middle = (first + stop) // 2
        made.find(middle, stop)
        made.find(first, middle)
        for part in (2, 0, 1):
            made.link(part, 3)
        made.advance()
    for mine, other in zip(written(made), built(vectors, 0, 0)[1], strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize("count", [0, 1, 2, 700])
def test_equal_vectors_can_all_be_reached(count: int) -> None:
    """Equal vectors have no reason to be neighbors of others, but every row is reached."""
    vectors = np.ones((count, 16), np.float32)
    vectors[: count // 2] = 5
    entry, (bounds, _, ends, neighbors, _) = built(vectors, 0, 0)
    assert bounds[1:2].tolist() in ([count], [])
    reached, fresh = {entry}, [entry]
    while fresh and count:
        row = fresh.pop()
        more = set(neighbors[ends[row] : ends[row + 1]].tolist()) - reached
        reached |= more
        fresh += more
    assert len(reached) == max(count, 1)


def test_wrong_arguments_of_builders_are_refused() -> None:
    vectors, heights = np.zeros((4, 8), np.float32), np.array([0, 1, 0, 0], np.uint8)
    order = np.array([1, 0, 2, 3], np.uint32)
    good: list[Any] = [vectors, 4, 8, 0, 0, heights, order, 2, 4, 0.0]
    for place, wrong in [
        *((0, vectors[:3]), (1, 5), (1, -1), (2, 9), (3, 7), (4, 3), (5, heights[:3]), (6, order[:3]), (7, 0)),
        *((8, 0), (9, -1.0), (9, 1.0), (6, order[::-1].copy()), (6, np.zeros(4, np.uint32)), (6, order + 1)),
        *((5, heights * 64), (7, 1 << 20), (8, 1 << 30), (9, float("nan"))),
    ]:
        with pytest.raises(CodecError):
            GraphBuilder(*[wrong if number == place else each for number, each in enumerate(good)])
    made = GraphBuilder(*good)
    with pytest.raises(CodecError, match="next batch"):
        made.find(0, 3)
    with pytest.raises(CodecError, match="no part"):
        made.link(1, 1)
    outputs = [np.empty(3, np.int64), np.empty(5, np.uint32), np.empty(6, np.uint32), np.empty(40), np.empty(40)]
    with pytest.raises(CodecError, match="not finished"):
        made.write(*outputs)
    made.run(4)
    made.finish()
    with pytest.raises(CodecError, match="complete"):
        made.run(4)
    with pytest.raises(CodecError, match="too small"):
        made.write(*outputs[:4], np.empty(0))
