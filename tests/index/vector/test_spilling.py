"""Tests of vector indices that are built of more vectors than fit in the memory limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.changes.indexing import segments
from lance_dataset.errors import StorageError
from lance_dataset.index.vector.training import clustering, entries, shuffling, trainer
from lance_dataset.index.vector.training.shuffling import PartitionedRows
from lance_dataset.records.index_progress import IndexProgress
from lance_dataset.scan.page_release import Release

ROWS, DIMENSION = 3000, 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "sq": ("IVF_SQ", {}),
    "pq": ("IVF_PQ", {"num_sub_vectors": 4}),
    "rq": ("IVF_RQ", {}),
}


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let little be held in memory, and batches be small."""
    monkeypatch.setattr(shuffling, "_LEAST_BYTES", 1)
    monkeypatch.setattr(trainer, "_LEAST_SAMPLE_BYTES", 300 * DIMENSION * 4)
    monkeypatch.setattr(trainer, "_BATCH_ROWS", 250)


def write(path: Path, values: Any) -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    lance.write_dataset(pa.table({"id": range(len(values)), "v": lists}), path, max_rows_per_file=1100)


@pytest.mark.parametrize("metric", ["l2", "cosine"])
@pytest.mark.parametrize("name", KINDS)
def test_the_same_index(tmp_path: Path, name: str, metric: str, spilling: None) -> None:
    """With given models, an index does not depend on the memory limit."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal((ROWS, DIMENSION)).astype(np.float32)
    write(tmp_path, values)
    kind, parameters = KINDS[name]
    given: dict[str, Any] = {**parameters, "ivf_centroids": values[:7], "metric": metric}
    if name == "pq":
        given["pq_codebook"] = rng.standard_normal((4, 256, 4)).astype(np.float32)
    if name == "rq":
        described = {"num_bits": 5, "rotation_type": "fast", "fast_rotation_signs": [90] * 8, "code_dim": DIMENSION}
        given["rabitq_model"] = json.dumps(described)
    dataset = lance_dataset.dataset(tmp_path)
    stored = []
    for limit in (1 << 30, 40_000):
        dataset.create_index("v", kind, name="x", replace=True, memory_limit=limit, **given)
        (segment,) = dataset.describe_indices()[0].segments
        folder = tmp_path / "_indices" / segment.uuid
        stored.append([lance_dataset.file.LanceFileReader(folder / "auxiliary.idx").read_all().to_table()])
        stored[-1].append(lance.dataset(tmp_path).stats.index_stats("x")["indices"][0]["partitions"])
    assert stored[0] == stored[1]
    asked: dict[str, Any] = {
        "nearest": {"column": "v", "q": values[5], "k": 10, "nprobes": 3},
        "columns": ["_distance"],
    }
    mine, other = (each.to_table(**asked)["_distance"] for each in (dataset, lance.dataset(tmp_path)))
    np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_trained_with_a_sample(tmp_path: Path, name: str, spilling: None) -> None:
    rng = np.random.default_rng(3)
    values = (10 * rng.integers(0, 4, (ROWS, 1)) + rng.standard_normal((ROWS, DIMENSION))).astype(np.float32)
    write(tmp_path, values)
    kind, parameters = KINDS[name]
    dataset = lance_dataset.dataset(tmp_path)
    told: list[IndexProgress] = []
    dataset.create_index("v", kind, num_partitions=4, memory_limit=40_000, progress_callback=told.append, **parameters)
    assert [each.stage for each in told if each.event == "complete"] == ["load_data", "encode_data"]
    sizes = [each["size"] for each in dataset.index_statistics("v_idx")["indices"][0]["partitions"]]
    assert sum(sizes) == ROWS
    assert min(sizes) > 100
    asked: dict[str, Any] = {"nearest": {"column": "v", "q": values[5], "k": 10, "nprobes": 4, "refine_factor": 30}}
    (near,) = np.argsort(((values - values[5]) ** 2).sum(axis=1))[None, :10]
    for each in (dataset, lance.dataset(tmp_path)):
        assert len(set(near.tolist()) & set(each.to_table(columns=["id"], **asked)["id"].to_pylist())) >= 8


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_PQ"])
def test_graphs(tmp_path: Path, kind: str, spilling: None, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
    write(tmp_path, values)
    monkeypatch.setattr(trainer, "_HELD_PART", 100)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", kind, num_partitions=3, num_sub_vectors=8, memory_limit=2_000_000)
    for each in (dataset, lance.dataset(tmp_path)):
        for number in (5, 1500, 2999):
            near = {"column": "v", "q": values[number], "k": 1, "nprobes": 3, "refine_factor": 20}
            assert each.to_table(columns=["id"], nearest=near)["id"].to_pylist() == [number]


def test_small_samples(tmp_path: Path, spilling: None) -> None:
    write(tmp_path, np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32))
    dataset = lance_dataset.dataset(tmp_path)
    with pytest.warns(UserWarning, match="leaves 300 of 3000 vectors for the training of 100 partitions"):
        dataset.create_index("v", "IVF_FLAT", num_partitions=100, memory_limit=1000)
    with pytest.warns(UserWarning, match="gets 300 of the 400 requested partitions.*memory limit"):
        dataset.create_index("v", "IVF_FLAT", num_partitions=400, memory_limit=1000, replace=True)


def test_mapped_bytes_are_released(tmp_path: Path, spilling: None, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32))
    dataset = lance_dataset.dataset(tmp_path)
    dataset.delete("id % 7 = 0")
    released: list[int] = []
    monkeypatch.setattr(segments, "_RELEASED_BYTES", 40_000)
    monkeypatch.setattr(Release, "fragment", lambda self, fragment: released.append(fragment.fragment.id))
    dataset.create_index("v", "IVF_SQ", num_partitions=4, memory_limit=40_000)
    passes = 2
    assert released == sorted(released[: len(released) // passes]) * passes
    assert set(released) == {0, 1, 2}


def test_optimizing(tmp_path: Path, spilling: None) -> None:
    values = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
    write(tmp_path, values)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", "IVF_SQ", num_partitions=4)
    dataset.insert(dataset.to_table().slice(0, 2500))
    dataset.optimize.optimize_indices(num_indices_to_merge=1, memory_limit=40_000)
    (found,) = dataset.index_statistics("v_idx")["indices"]
    assert sum(each["size"] for each in found["partitions"]) == ROWS + 2500


@pytest.mark.parametrize("budget", [1, 2000, 1 << 30])
def test_rows_are_regrouped(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffling, "_LEAST_BYTES", 1)
    rng = np.random.default_rng(0)
    with PartitionedRows(300, budget) as rows:
        added = []
        for size in (0, 5, 1000, 1, 37):
            places = rng.integers(0, 250, size).astype(np.int32)
            codes, ids = rng.integers(0, 256, (size, 3), np.uint8), rng.random(size)
            rows.add(places, {"codes": codes, "ids": ids})
            added.append((places, codes, ids))
        assert rows.is_spilled == (budget < 1 << 30)
        expected = [np.concatenate(each) for each in zip(*added, strict=True)]
        found = list(rows.partitions())
    assert rows.lengths.tolist() == np.bincount(expected[0], minlength=300).tolist()
    for number, part in enumerate(found):
        np.testing.assert_array_equal(part["codes"], expected[1][expected[0] == number])
        np.testing.assert_array_equal(part["ids"], expected[2][expected[0] == number])


def test_no_rows_are_regrouped() -> None:
    with PartitionedRows(2, 1 << 20) as rows:
        rows.add(np.empty(0, np.int32), {"codes": np.empty((0, 3))})
        assert list(rows.partitions()) == [{}, {}]


def test_a_file_that_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffling, "_LEAST_BYTES", 1)
    with PartitionedRows(2, 1) as rows:
        rows.add(np.zeros(100, np.int32), {"ids": np.arange(100)})
        (run,) = rows._runs
        run._file.truncate(10)  # type: ignore[attr-defined]
        with pytest.raises(StorageError, match="TMPDIR"):
            list(rows.partitions())


def test_the_sample_is_uniform() -> None:
    rng = np.random.default_rng(0)
    seen = np.zeros(1000)
    for _ in range(300):
        reservoir = entries._Reservoir(100, rng)
        for start in range(0, 1000, 130):
            reservoir.add(np.arange(start, min(start + 130, 1000))[:, None])
        seen += np.bincount(reservoir.sample[:, 0], minlength=1000)
    assert seen.sum() == 300 * 100
    assert np.abs(seen.reshape(10, 100).sum(axis=1) - 3000).max() < 300


@pytest.mark.parametrize("metric", ["l2", "dot", "hamming"])
def test_clusters_within_clusters(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    if metric == "hamming":
        values: Any = rng.integers(0, 256, (4000, 8), np.uint8)
    else:
        values = (rng.standard_normal((50, 8))[rng.integers(0, 50, 4000)] * 4 + rng.standard_normal((4000, 8))).astype(
            np.float32
        )
    losses = []
    for limit in (1 << 20, 30):
        monkeypatch.setattr(clustering, "_FLAT_CLUSTERS", limit)
        found = clustering.cluster(values, 300, metric, np.random.default_rng(2))
        assert found.shape == (300, 8)
        losses.append(float(clustering.assigned(values, found, metric)[1].sum()))
    assert losses[1] < losses[0] + 0.1 * abs(losses[0])


def test_clusters_of_equal_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_FLAT_CLUSTERS", 10)
    found = clustering.cluster(np.ones((500, 4), np.float32), 400, "l2", np.random.default_rng(2))
    assert found.shape == (400, 4)
    np.testing.assert_allclose(found, 1, rtol=0.1)
