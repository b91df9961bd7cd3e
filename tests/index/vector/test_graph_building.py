"""Tests of indices with graphs that are built here: pylance searches them, and finds no less than in its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from support.nearest import check_nearest

import lance_dataset
from lance_dataset.errors import InvalidInputError, MemoryLimitError, UnsupportedError
from lance_dataset.index.vector.graph import decode_graph
from lance_dataset.index.vector.index_file import GRAPH_COLUMNS, VectorIndexFile
from lance_dataset.index.vector.searching.open_indices import vector_indices

ROWS, DIMENSION = 2500, 16
GRAPH: dict[str, Any] = {"m": 12, "ef_construction": 60}
FEW_CODEWORDS: dict[str, Any] = {"max_iters": 4, "sample_rate": 8}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_HNSW_FLAT", {}),
    "sq": ("IVF_HNSW_SQ", {}),
    "pq8": ("IVF_HNSW_PQ", {"num_sub_vectors": 8, **FEW_CODEWORDS}),
    "pq4": ("IVF_HNSW_PQ", {"num_sub_vectors": 8, "num_bits": 4, **FEW_CODEWORDS}),
}


def vectors(count: int, seed: int = 0, kind: Any = np.float32) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(kind)


def table(values: NDArray[Any], first: int = 0) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.table({"id": pa.array(range(first, first + len(values)), pa.int64()), "v": lists})


def made(path: Path, name: str, metric: str = "l2", kind: Any = np.float32, **options: Any) -> NDArray[Any]:
    """Write a table with an index, and return queries."""
    index, parameters = KINDS[name]
    written = lance_dataset.write_dataset(table(vectors(ROWS, kind=kind)), path, max_rows_per_file=1000)
    written.create_index("v", index, metric=metric, **{"num_partitions": 2, **GRAPH, **parameters, **options})
    return vectors(12, 7, kind)


def found(package: Any, path: Path, query: NDArray[Any], **nearest: Any) -> dict[int, float]:
    asked = {"column": "v", "q": query, "k": 8, "nprobes": 2, **nearest}
    rows = package.dataset(path).to_table(columns=["id", "_distance"], nearest=asked)
    return dict(zip(rows["id"].to_pylist(), rows["_distance"].to_pylist(), strict=True))


def check(path: Path, queries: Any, tolerance: float = 1e-4, **nearest: Any) -> None:
    check_nearest(path, queries, tolerance, 0.98, nearest={"column": "v", "k": 8, "nprobes": 2, **nearest})


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", KINDS)
def test_pylance_searches_them(tmp_path: Path, name: str, metric: str) -> None:
    queries = made(tmp_path, name, metric)
    check(tmp_path, queries)
    check(tmp_path, queries[:4], refine_factor=2, ef=40)


@pytest.mark.parametrize("kind", [np.float64, np.float16])
@pytest.mark.parametrize("name", KINDS)
def test_other_elements(tmp_path: Path, name: str, kind: Any) -> None:
    check(tmp_path, made(tmp_path, name, kind=kind), 2e-3)


def test_bits(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 256, (ROWS, DIMENSION)).astype(np.uint8)
    written = lance_dataset.write_dataset(table(values), tmp_path)
    written.create_index("v", "IVF_HNSW_FLAT", metric="hamming", num_partitions=2)
    for query in values[:6]:
        assert found(lance_dataset, tmp_path, query, k=1) == found(lance, tmp_path, query, k=1)
    with pytest.raises(UnsupportedError, match="use IVF_FLAT or IVF_HNSW_FLAT"):
        written.create_index("v", "IVF_HNSW_SQ", metric="hamming", replace=True)


def test_lists_of_vectors(tmp_path: Path) -> None:
    inner = pa.FixedSizeListArray.from_arrays(pa.array(vectors(2 * ROWS).reshape(-1)), DIMENSION)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 2 * ROWS + 1, 2, dtype=np.int32)), inner)
    written = lance_dataset.write_dataset(pa.table({"id": pa.array(range(ROWS)), "v": lists}), tmp_path)
    written.create_index("v", "IVF_HNSW_SQ", metric="cosine", num_partitions=2)
    check(tmp_path, vectors(4, 2)[:, None], k=5)


@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize("name", ["flat", "sq"])
def test_recall_is_that_of_pylance(tmp_path: Path, name: str, metric: str) -> None:
    """In one batch of 1,000 queries; graphs of pylance differ from build to build, which is 0.004 here."""
    values, queries = vectors(5000, 1), vectors(1000, 8)
    share: dict[str, float] = {}
    for package in (lance_dataset, lance):
        path = tmp_path / package.__name__
        written = package.write_dataset(table(values), path)
        written.create_index("v", KINDS[name][0], metric=metric, num_partitions=1, m=10, ef_construction=60)
        near = {"column": "v", "q": queries, "k": 10}
        dataset = lance_dataset.dataset(path)
        asked = ({**near, "ef": 40}, {**near, "use_index": False, "metric": metric})
        found, true = (dataset.to_table(columns=["id"], nearest=each) for each in asked)
        pairs = [
            {tuple(row.values()) for row in each.select(["query_index", "id"]).to_pylist()} for each in (found, true)
        ]
        share[package.__name__] = len(pairs[0] & pairs[1]) / len(pairs[1])
    assert share["lance_dataset"] >= share["lance"] - 0.01
    assert share["lance_dataset"] > 0.85


def exact(path: Path, query: NDArray[Any], metric: str) -> dict[int, float]:
    return found(lance_dataset, path, query, k=10, use_index=False, metric=metric)


def test_files(tmp_path: Path) -> None:
    """Graphs are whole, keep the limits, and do not depend on the number of threads."""
    made(tmp_path, "flat", m=6, ef_construction=30, max_level=3)
    dataset = lance_dataset.dataset(tmp_path)
    (segment,) = vector_segments(dataset)
    file = VectorIndexFile(segment.segment.folder.open("index.idx"))
    for place, length in enumerate(segment.source.lengths.tolist()):
        start, rows = int(file.ivf.partitions.offsets[place]), int(file.ivf.partitions.lengths[place])
        note = json.loads(file.notes[place])
        assert note["params"] == {"max_level": 3, "m": 6, "ef_construction": 30, "prefetch_distance": 2}
        assert len(note["level_offsets"]) == 4
        graph = decode_graph(file.notes[place], file.table.read(start, start + rows, list(GRAPH_COLUMNS)), length, "x")
        assert graph.entry_point == 0
        assert 0 in graph.levels[2].nodes
        degrees = [np.diff(level.offsets) for level in graph.levels]
        assert degrees[0].max() <= 15
        assert degrees[1].max() <= 6
        lowest = graph.levels[0]
        pairs = lowest.nodes[lowest.sources], lowest.nodes[lowest.neighbors]
        stored = segment.source.read(place).codes
        expected = ((stored[pairs[0]].astype(np.float64) - stored[pairs[1]]) ** 2).sum(axis=1)
        np.testing.assert_allclose(lowest.distances, expected, rtol=1e-4)
    statistics = lance.dataset(tmp_path).stats.index_stats("v_idx")
    assert statistics["indices"][0]["sub_index"]["params"]["m"] == 6


def test_threads_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_dataset.index.vector.training import graphs

    monkeypatch.setattr(graphs, "_SHARED_ROWS", 1500)
    monkeypatch.setattr(graphs, "_FIRST_ROWS", 200)
    files = []
    for threads in ("1", "3"):
        monkeypatch.setenv("LANCE_CPU_THREADS", threads)
        made(tmp_path / threads, "sq", num_partitions=1)
        (folder,) = (tmp_path / threads / "_indices").iterdir()
        files.append((folder / "index.idx").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_few_rows(tmp_path: Path, rows: int) -> None:
    written = lance_dataset.write_dataset(table(vectors(rows)), tmp_path)
    centroids = np.concatenate([vectors(2), np.full((1, DIMENSION), 1e6, np.float32)])  # a partition stays empty
    written.create_index("v", "IVF_HNSW_FLAT", ivf_centroids=centroids)
    mine, other = (found(package, tmp_path, vectors(1)[0], nprobes=3, k=2) for package in (lance_dataset, lance))
    assert mine == pytest.approx(other)
    assert len(mine) == min(rows, 2)


def test_equal_vectors(tmp_path: Path) -> None:
    values = np.repeat(vectors(3), 300, axis=0)
    written = lance_dataset.write_dataset(table(values), tmp_path)
    written.create_index("v", "IVF_HNSW_SQ", num_partitions=1)
    for package in (lance_dataset, lance):
        near = found(package, tmp_path, values[0], k=300, ef=500)
        assert len(near) == 300
        assert max(near.values()) < 1e-3


@pytest.mark.parametrize("name", ["flat", "sq", "pq8"])
def test_optimizing(tmp_path: Path, name: str) -> None:
    queries = made(tmp_path, name)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.insert(table(vectors(500, 3), ROWS))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    check(tmp_path, queries[:5])
    dataset.delete("id % 3 = 0")
    check(tmp_path, queries[:5])
    dataset.insert(table(vectors(200, 4), 5000))
    dataset.optimize.optimize_indices(num_indices_to_merge=2)
    assert len(vector_segments(dataset)) == 1
    check(tmp_path, queries[:5])
    dataset.optimize.compact_files()
    check(tmp_path, queries[:5], ef=60)
    dataset.insert(table(vectors(200, 5), 6000))
    dataset.optimize.optimize_indices(retrain=True)
    check(tmp_path, queries[:5])
    (information,) = dataset.list_indices()
    assert information["type"] == KINDS[name][0]


def vector_segments(dataset: Any) -> Any:
    indices = vector_indices(dataset.snapshot.reader)
    assert indices is not None
    return next(iter(indices.by_field.values()))[0].segments


@pytest.mark.parametrize("name", ["flat", "pq8"])
def test_pylance_extends_and_compacts_them(tmp_path: Path, name: str) -> None:
    queries = made(tmp_path, name)
    theirs = lance.dataset(tmp_path)
    theirs.insert(table(vectors(500, 3), ROWS))
    theirs.optimize.optimize_indices(num_indices_to_merge=1)
    check(tmp_path, queries[:5])
    theirs.delete("id % 4 = 0")
    theirs.optimize.compact_files()
    check(tmp_path, queries[:5], ef=60)


def test_indices_of_pylance_are_extended(tmp_path: Path) -> None:
    lance.write_dataset(table(vectors(ROWS)), tmp_path).create_index(
        "v", "IVF_HNSW_SQ", num_partitions=2, m=10, ef_construction=60
    )
    dataset = lance_dataset.dataset(tmp_path)
    dataset.insert(table(vectors(500, 3) * 2, ROWS))
    dataset.optimize.optimize_indices(num_indices_to_merge=1)
    check(tmp_path, vectors(6, 7))
    statistics = lance.dataset(tmp_path).stats.index_stats("v_idx")
    assert statistics["indices"][0]["sub_index"]["params"]["m"] == 10


def test_segments(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(table(vectors(ROWS)), tmp_path, max_rows_per_file=1000)
    built = [
        dataset.create_index_uncommitted("v", "IVF_HNSW_FLAT", fragment_ids=ids, ivf_centroids=vectors(2), m=8)
        for ids in ([0], [1, 2])
    ]
    dataset.commit_existing_index_segments("v_idx", "v", built)
    check(tmp_path, vectors(5, 7))
    merged = dataset.merge_existing_index_segments(built)
    dataset.commit_existing_index_segments("v_idx", "v", [merged])
    check(tmp_path, vectors(5, 7))


def test_spilled_partitions(tmp_path: Path) -> None:
    values = np.random.default_rng(2).standard_normal((40_000, 64)).astype(np.float32)
    written = lance_dataset.write_dataset(table(values), tmp_path)
    written.create_index(
        "v", "IVF_HNSW_SQ", num_partitions=40, m=4, ef_construction=8, sample_rate=16, memory_limit=8 << 20
    )
    check(tmp_path, values[:5], nprobes=10)
    with pytest.raises(MemoryLimitError, match="ask for more partitions"):
        written.create_index("v", "IVF_HNSW_SQ", num_partitions=1, sample_rate=16, memory_limit=8 << 20, replace=True)


def test_wrong_parameters(tmp_path: Path) -> None:
    written = lance_dataset.write_dataset(table(vectors(300)), tmp_path)
    wrong_options: list[dict[str, Any]] = [
        *({"m": 3}, {"m": 0}, {"m": -1}, {"m": 1 << 20}, {"ef_construction": 10}, {"ef_construction": 1 << 25}),
        *({"max_level": 0}, {"max_level": 65}),
    ]
    for options in wrong_options:
        with pytest.raises((InvalidInputError, OverflowError)):
            written.create_index("v", "IVF_HNSW_FLAT", **options)
    with pytest.raises(InvalidInputError, match="num_sub_vectors is required for IVF_HNSW_PQ"):
        written.create_index("v", "IVF_HNSW_PQ")
    assert not written.list_indices()


def test_recall_is_reached_by_longer_walks(tmp_path: Path) -> None:
    """Walks with the usual `ef` find too little; those for more candidates find more."""
    made(tmp_path, "flat", num_partitions=1, m=4, ef_construction=10)
    dataset = lance_dataset.dataset(tmp_path)
    hits = {"usual": 0, "recall": 0}
    for query in vectors(30, 9):
        nearest = {"column": "v", "q": query, "k": 10}
        expected = exact(tmp_path, query, "l2").keys()
        for name, options in (("usual", {}), ("recall", {"recall": 0.9})):
            rows = dataset.to_table(columns=["id"], nearest={**nearest, **options})
            hits[name] += len(expected & set(rows["id"].to_pylist()))
    assert hits["usual"] < 240
    assert hits["recall"] > 255
