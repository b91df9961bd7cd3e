"""Tests of optimizing vector indices: new segments have the models of the old ones, and both packages search them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import UnsupportedError

DIMENSION = 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "sq": ("IVF_SQ", {}),
    "rq": ("IVF_RQ", {"num_bits": 3}),
    "pq": ("IVF_PQ", {"num_sub_vectors": 4}),
}


def rows(start: int, count: int, scale: float = 1) -> pa.Table:
    rng = np.random.default_rng(start)
    values = (rng.standard_normal((count, DIMENSION)) * scale).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "v": lists})


def check(path: Path, metric: str = "l2") -> None:
    """Compare searches of all partitions by both packages."""
    rng = np.random.default_rng(9)
    for query in rng.standard_normal((3, DIMENSION)).astype(np.float32):
        asked: dict[str, Any] = {
            "nearest": {"column": "v", "q": query, "k": 10, "nprobes": 8, "metric": metric},
            "columns": ["id", "_distance"],
            "fast_search": True,
        }
        mine, other = (each.dataset(path).to_table(**asked) for each in (lance_dataset, lance))
        assert mine.num_rows == 10
        np.testing.assert_allclose(mine["_distance"], other["_distance"], rtol=1e-4, atol=1e-4)


def segments(path: Path) -> list[set[int]]:
    return sorted((each["fragment_ids"] for each in lance.dataset(path).list_indices()), key=min)


@pytest.mark.parametrize("builder", [lance, lance_dataset])
@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_appended_rows(tmp_path: Path, kind: str, metric: str, builder: Any) -> None:
    name, parameters = KINDS[kind]
    lance.write_dataset(rows(0, 600), tmp_path, enable_stable_row_ids=metric == "dot")
    builder.dataset(tmp_path).create_index("v", name, metric=metric, num_partitions=3, **parameters)
    lance.write_dataset(rows(600, 200, 2), tmp_path, mode="append")
    dataset = lance_dataset.dataset(tmp_path)
    dataset.delete("id % 7 = 0")
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    assert segments(tmp_path) == [{0}, {1}]
    check(tmp_path, metric)
    old, new = (each["centroids"] for each in lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"])
    assert old == new
    lance.write_dataset(rows(800, 100), tmp_path, mode="append")
    dataset = lance_dataset.dataset(tmp_path)
    dataset.optimize.optimize_indices(num_indices_to_merge=1)
    assert segments(tmp_path) == [{0}, {1, 2}]
    check(tmp_path, metric)
    dataset.optimize.optimize_indices(num_indices_to_merge=5)
    assert segments(tmp_path) == [{0, 1, 2}]
    check(tmp_path, metric)
    dataset.update({"id": "id + 10000"}, "id % 5 = 1")
    dataset.optimize.optimize_indices(retrain=True)
    assert len(segments(tmp_path)) == 1
    check(tmp_path, metric)
    dataset.optimize.compact_files()
    check(tmp_path, metric)
    statistics = lance.dataset(tmp_path).stats.index_stats("v_idx")
    assert statistics["num_unindexed_rows"] == 0


def test_nothing_to_do(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(rows(0, 300), tmp_path)
    dataset.create_index("v", "IVF_FLAT", num_partitions=2)
    version = dataset.version
    dataset.optimize.optimize_indices()
    assert dataset.version == version


def test_untrained_indices_are_trained(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(rows(0, 100), tmp_path)
    dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, metric="cosine")
    assert dataset.list_indices()[0]["fragment_ids"] == set()
    dataset.insert(rows(100, 300))
    dataset.optimize.optimize_indices()
    assert segments(tmp_path) == [{0, 1}]
    check(tmp_path, "cosine")


def test_merging_segments(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 600), tmp_path)
    lance.dataset(tmp_path).create_index("v", "IVF_SQ", num_partitions=3)
    lance.write_dataset(rows(600, 200, 3), tmp_path, mode="append")
    lance.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0)
    dataset = lance_dataset.dataset(tmp_path)
    merged = dataset.merge_existing_index_segments(parts_of(dataset))
    dataset.commit_existing_index_segments("v_idx", "v", [merged])
    assert segments(tmp_path) == [{0, 1}]
    check(tmp_path)


def parts_of(dataset: Any) -> list[Any]:
    from lance_dataset.index.segments import segments_named
    from lance_dataset.records.index import Index

    return [Index.from_table(each.metadata) for each in segments_named(dataset.snapshot.reader, "v_idx")]


@pytest.mark.parametrize("kind", KINDS)
def test_segments_that_are_built_apart(tmp_path: Path, kind: str) -> None:
    name, parameters = KINDS[kind]
    lance.write_dataset(rows(0, 900), tmp_path, max_rows_per_file=300)
    dataset = lance_dataset.dataset(tmp_path)
    built = [
        dataset.create_index_uncommitted("v", name, num_partitions=2, fragment_ids=[each], **parameters)
        for each in range(3)
    ]
    merged = dataset.merge_existing_index_segments(built[:2])
    dataset.commit_existing_index_segments("v_idx", "v", [merged, built[2]])
    assert segments(tmp_path) == [{0, 1}, {2}]
    check(tmp_path)
    with pytest.raises(UnsupportedError, match="precomputed_partition_dataset"):
        dataset.create_index_uncommitted("v", name, precomputed_partition_dataset="x", fragment_ids=[0], **parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_vectors(tmp_path: Path, kind: str) -> None:
    name, parameters = KINDS[kind]
    dataset = lance_dataset.write_dataset(rows(0, 600), tmp_path)
    dataset.create_index("v", name, num_partitions=3, **parameters)
    dataset.insert(pa.table({"id": pa.array([600, 601]), "v": pa.nulls(2, rows(0, 1)["v"].type)}))
    dataset.optimize.optimize_indices()
    assert segments(tmp_path) == [{0}, {1}]
    check(tmp_path)
