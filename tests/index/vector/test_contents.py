"""Tests of what vector indices show of themselves: centroids, partitions, near duplicates; compared with pylance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.vector
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import VectorIndexReader as TheirReader

import lance_dataset
import lance_dataset.vector
from lance_dataset.dataset import VectorIndexReader

ROWS = 1500
BOTH = ((lance_dataset, lance_dataset.vector), (lance, lance.vector))


def lists(values: Any) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table with indices of many kinds; deletions, and two segments."""
    folder = tmp_path_factory.mktemp("contents")
    rng = np.random.default_rng(0)
    values = rng.standard_normal((ROWS, 16)).astype(np.float32)
    bits = rng.integers(0, 256, (ROWS, 8), np.uint8)
    bits[100:110], bits[200:220], bits[1400] = bits[100], bits[200], bits[100]
    bits[205, 0] ^= 1
    bits[206, :2] ^= 255
    table = pa.table(
        {"id": np.arange(ROWS), "v": lists(values), "w": lists(values.astype(np.float16)), "b": lists(bits)}
    )
    dataset = lance.write_dataset(table, folder, max_rows_per_file=600)
    dataset.create_index("v", "IVF_PQ", "pq", num_partitions=4, num_sub_vectors=4, metric="cosine")
    dataset.create_index("v", "IVF_PQ", "old", num_partitions=2, num_sub_vectors=4, index_file_version="legacy")
    dataset.create_index("v", "IVF_RQ", "rq", num_partitions=3)
    dataset.create_index("w", "IVF_HNSW_SQ", "graph", num_partitions=2)
    dataset.create_index("b", "IVF_FLAT", "bits", num_partitions=3, metric="hamming")
    dataset.create_scalar_index("id", "BTREE", "scalar")
    dataset.create_index("v", "IVF_FLAT", "empty", train=False)
    return folder


@pytest.mark.parametrize("name", ["pq", "old", "rq", "graph", "bits"])
def test_centroids_and_partitions(path: Path, name: str) -> None:
    mine, other = lance_dataset.dataset(path), lance.dataset(path)
    assert mine.centroids(index_name=name).equals(other.centroids(index_name=name))
    assert mine.get_ivf_model(name).centroids.equals(other.get_ivf_model(name).centroids)
    assert mine.get_ivf_model(name).distance_type == mine.index_statistics(name)["indices"][0]["metric_type"]
    ours, theirs = VectorIndexReader(mine, name), TheirReader(other, name)
    assert ours.num_partitions() == theirs.num_partitions()
    for partition in range(ours.num_partitions()):
        for options in ({}, {"with_vector": True}):
            found, expected = (each.read_partition(partition, **options) for each in (ours, theirs))
            assert found.column_names == expected.column_names
            assert found.schema.metadata == expected.schema.metadata
            assert found.to_pydict() == expected.to_pydict()
    for wrong in (-1, ours.num_partitions()):
        for reader in (ours, theirs):
            with pytest.raises(IndexError, match="out of range"):
                reader.read_partition(wrong)


def test_by_column(path: Path) -> None:
    for package, _ in BOTH:
        dataset = package.dataset(path)
        assert dataset.centroids(column="b").equals(dataset.centroids(index_name="bits"))
        with pytest.raises(KeyError, match="No IVF index for column"):
            dataset.centroids(column="id")
        with pytest.raises(ValueError, match="Must provide"):
            dataset.centroids()
        for name in ("nothing", "scalar", "empty"):
            with pytest.raises(ValueError):
                dataset.centroids(index_name=name)
            with pytest.raises(ValueError):
                dataset.get_ivf_model(name)
    for reader, dataset in (
        (VectorIndexReader, lance_dataset.dataset(path)),
        (TheirReader, lance.dataset(path)),
    ):
        with pytest.raises(KeyError):
            reader(dataset, "nothing")
        for name in ("scalar", "empty"):
            with pytest.raises(ValueError, match="is not vector index"):
                reader(dataset, name)


def outcomes(call: Callable[[Any, Any], Any], path: Path) -> list[Any]:
    """Return the results of both packages, or the types of the errors of the reference with True if ours is one."""
    found: list[Any] = []
    for package, helpers in BOTH[::-1]:
        try:
            result = call(helpers, package.dataset(path))
        except Exception as error:
            found.append(error)
        else:
            found.append(result.read_all() if isinstance(result, pa.RecordBatchReader) else result)
    expected, mine = found
    if isinstance(expected, Exception):
        assert isinstance(mine, type(expected)), (mine, expected)
        return [None, None]
    if isinstance(mine, Exception):
        raise mine
    return [mine, expected]


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda h, d: h.get_ivf_partition_info(d, "bits"),
    lambda h, d: h.get_ivf_partition_info(d, "pq"),
    lambda h, d: h.get_ivf_partition_info(d, "nothing"),
    lambda h, d: h.get_ivf_partition_info(d, "scalar"),
    lambda h, d: h.get_ivf_partition_info(d, "bits", index_segments=[]),
    lambda h, d: h.get_ivf_partition_info(d, "bits", index_segments="x"),
    lambda h, d: h.get_ivf_partition_info(d, "bits", index_segments=["x"]),
    lambda h, d: h.get_ivf_partition_info(d, "bits", index_segments=["0313c3da-2c86-4735-b43c-fc2aaef117ef"]),
    *(
        lambda h, d, partition=partition, limit=limit: h.hamming_clustering_for_ivf_partition(
            d, "bits", partition, limit
        )
        for partition in (0, 1, 2, 3, -1)
        for limit in (0, 1, 40, 64)
    ),
    lambda h, d: h.hamming_clustering_for_ivf_partition(d, "bits", 0, -1),
    lambda h, d: h.hamming_clustering_for_ivf_partition(d, "nothing", 0, 1),
    lambda h, d: h.hamming_clustering_for_ivf_partition(d, "pq", 0, 1),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 0, 90, 200, 0),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 0, 90, 5000, 1),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 2, 190, 50),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 0, 900, 5),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 9, 0, 5),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 0, 0, 0),
    lambda h, d: h.hamming_clustering_for_range(d, "b", 0, -1, 5),
    lambda h, d: h.hamming_clustering_for_range(d, "v", 0, 0, 5),
    lambda h, d: h.hamming_clustering_for_range(d, "nothing", 0, 0, 5),
    lambda h, d: h.hamming_clustering_for_sample(d, "b", None, 1),
    lambda h, d: h.hamming_clustering_for_sample(d, "b", 5000, 0),
    lambda h, d: h.hamming_clustering_for_sample(d, "b", 0, 0),
    lambda h, d: h.hamming_clustering_for_sample(d, "v", 5, 0),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_partition_sizes_and_clusters(path: Path, number: int) -> None:
    mine, expected = outcomes(CALLS[number], path)
    assert mine == expected


def pairs(table: pa.Table) -> dict[tuple[int, int], float]:
    columns = (table[name].to_pylist() for name in ("row_id_a", "row_id_b", "distance"))
    return {(a, b): distance for a, b, distance in zip(*columns, strict=True)}


PAIRS: list[Callable[[Any, Any], Any]] = [
    *(lambda h, d, limit=limit: h.find_duplicate_pairs(d, "b", limit) for limit in (0, 1, 1.5, -1, 20)),
    lambda h, d: h.find_duplicate_pairs(d, "v", 1),
    lambda h, d: h.find_duplicate_pairs(d, "id", 1),
    lambda h, d: h.find_duplicate_pairs(d, "b", float("nan")),
    lambda h, d: h.find_duplicate_pairs(d, "b", 1, max_concurrency=0),
    lambda h, d: h.find_duplicate_pairs(d, "b", 1, memory_limit=100_000, max_concurrency=1),
    *(
        lambda h, d, partition=partition: h.find_duplicate_pairs_in_partition(d, "b", segment_of(d), partition, 0)
        for partition in (0, 1, 2, 3)
    ),
    lambda h, d: h.find_duplicate_pairs_in_partition(d, "b", "x", 0, 0),
    lambda h, d: h.find_duplicate_pairs_in_partition(d, "b", "0313c3da-2c86-4735-b43c-fc2aaef117ef", 0, 0),
    lambda h, d: h.find_duplicate_pairs_in_partition(d, "v", segment_of(d), 0, 0),
]


def segment_of(dataset: Any) -> str:
    (found,) = (each for each in dataset.describe_indices() if each.name == "bits")
    return str(found.segments[0].uuid)


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_pairs(path: Path, number: int) -> None:
    mine, expected = outcomes(PAIRS[number], path)
    if mine is not None:
        assert mine.schema == expected.schema
        assert pairs(mine) == pairs(expected)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT", "IVF_SQ", "IVF_PQ"])
def test_pairs_of_floats(tmp_path: Path, kind: str, metric: str) -> None:
    values = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    dataset = lance.write_dataset(pa.table({"v": lists(values)}), tmp_path)
    dataset.create_index("v", kind, num_partitions=1, metric=metric, num_sub_vectors=4)
    found = pairs(lance_dataset.vector.find_duplicate_pairs(lance_dataset.dataset(tmp_path), "v", 0.7).read_all())
    first, second = np.triu_indices(400, 1)
    unit = values / np.linalg.norm(values, axis=1)[:, None] if metric == "cosine" else values
    products = (unit[first] * unit[second]).sum(axis=1)
    distances = ((unit[first] - unit[second]) ** 2).sum(axis=1) if metric == "l2" else 1 - products
    near = distances <= 0.7
    assert set(found) == set(zip(first[near].tolist(), second[near].tolist(), strict=True))
    np.testing.assert_allclose(list(found.values()), distances[near], atol=1e-4)
    if "FLAT" in kind:
        expected = pairs(lance.vector.find_duplicate_pairs(dataset, "v", 0.7).read_all())
        assert found.keys() == expected.keys()


def test_deleted_rows_are_left_out(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 256, (300, 8), np.uint8)
    bits[10:14] = bits[10]
    bits[250] = bits[10]
    table = pa.table({"b": lists(bits)})
    dataset = lance_dataset.write_dataset(table, tmp_path, max_rows_per_file=100)
    dataset.create_index("b", "IVF_FLAT", "bits", metric="hamming", num_partitions=1)
    dataset.delete("_rowid IN (10, 12)")
    helpers = lance_dataset.vector
    clusters = helpers.hamming_clustering_for_ivf_partition(dataset, "bits", 0, 0).read_all()
    assert clusters.to_pylist() == [{"representative": 11, "duplicates": [13, (2 << 32) + 50]}]
    assert clusters == helpers.hamming_clustering_for_sample(dataset, "b", None, 0).read_all()
    assert set(pairs(helpers.find_duplicate_pairs(dataset, "b", 0).read_all())) == {
        (11, 13),
        (11, (2 << 32) + 50),
        (13, (2 << 32) + 50),
    }
    assert helpers.hamming_clustering_for_range(dataset, "b", 0, 0, 13, 0).read_all().num_rows == 0
    dataset.insert(table)
    with pytest.raises(ValueError, match="does not cover all fragments"):
        helpers.find_duplicate_pairs(dataset, "b", 0)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    assert len(pairs(helpers.find_duplicate_pairs(dataset, "b", 0).read_all())) == 3 + 10
    assert helpers.get_ivf_partition_info(dataset, "bits") == [{"partition_id": 0, "size": 600}]


def test_chains(tmp_path: Path) -> None:
    """A cluster is all that chains of near vectors reach; lists without a vector are left out."""
    bits = np.zeros((70, 8), np.uint8)
    order = np.random.default_rng(0).permutation(64)
    for place, length in enumerate(order):
        bits[place] = np.packbits(np.arange(64) < length)
    bits[64:] = 255
    array = pa.FixedSizeListArray.from_arrays(pa.array(bits.reshape(-1)), 8, mask=pa.array([False] * 65 + [True] * 5))
    dataset = lance_dataset.write_dataset(pa.table({"b": array}), tmp_path)
    found = lance_dataset.vector.hamming_clustering_for_sample(dataset, "b", None, 1).read_all()
    assert found.to_pylist() == [{"representative": 0, "duplicates": list(range(1, 65))}]
