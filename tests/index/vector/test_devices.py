"""Tests of training on devices of PyTorch, with the one that every machine has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

import lance_dataset
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.vector.training.clustering import assigned, cluster
from lance_dataset.index.vector.training.devices import clustering_on, device_of
from lance_dataset.indices import IndicesBuilder

ROWS, DIMENSION = 1500, 8
HERE = torch.device("cpu")


def numbers(element: Any = np.float32) -> NDArray[Any]:
    return np.random.default_rng(0).standard_normal((ROWS, DIMENSION)).astype(element)


def write(path: Path, element: Any = np.float32) -> lance_dataset.LanceDataset:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers(element).reshape(-1)), DIMENSION)
    return lance_dataset.write_dataset(pa.table({"v": lists}), path)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("element", [np.float16, np.float32, np.float64])
def test_clusters_are_as_good_as_those_of_processors(metric: str, element: Any) -> None:
    values = numbers(element)
    if metric == "cosine":
        values = (values / np.linalg.norm(values, axis=1)[:, None]).astype(element)
    losses = []
    for clustering in (clustering_on(HERE), cluster):
        found = clustering(values, 20, metric, np.random.default_rng(1), 30)
        assert found.shape == (20, DIMENSION)
        assert found.dtype == (np.float64 if element is np.float64 else np.float32)
        losses.append(float(assigned(values, found, metric)[1].sum()))
    assert losses[0] < losses[1] + 0.05 * abs(losses[1])


@pytest.mark.parametrize(("element", "far"), [(np.float32, 3000), (np.float64, 1e9)])
def test_clusters_far_from_the_origin(element: Any, far: float) -> None:
    """Differences of large numbers do not lose their digits."""
    values = (numbers(np.float64) + far).astype(element)
    losses = []
    for clustering in (clustering_on(HERE), cluster):
        found = clustering(values, 20, "l2", np.random.default_rng(1), 30)
        losses.append(float(assigned(values, found, "l2")[1].sum()))
    assert losses[0] < 1.05 * losses[1]


def test_every_cluster_has_vectors() -> None:
    """There are fewer different vectors than clusters at first."""
    values = np.repeat(numbers()[:5], 40, axis=0)
    found = clustering_on(HERE)(values, 5, "l2", np.random.default_rng(0), 20)
    assert len(np.unique(assigned(values, found, "l2")[0])) == 5


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_indices(tmp_path: Path, metric: str) -> None:
    dataset = write(tmp_path)
    dataset.create_index(
        "v", "IVF_PQ", num_partitions=4, num_sub_vectors=4, accelerator=HERE, metric=metric, max_iters=10
    )
    assert dataset.measure_recall("v", nprobes=4, refine_factor=20) > 0.95
    near = {"column": "v", "q": numbers()[3], "k": 10, "nprobes": 4}
    mine, other = (each.dataset(tmp_path).to_table(nearest=near) for each in (lance_dataset, lance))
    np.testing.assert_allclose(mine["_distance"], other["_distance"], rtol=1e-4, atol=1e-4)


def test_models(tmp_path: Path) -> None:
    builder = IndicesBuilder(write(tmp_path), "v")
    model = builder.train_ivf(4, accelerator=HERE, sample_rate=64)
    assert model.num_partitions == 4
    both = builder.prepare_global_ivf_pq(4, 4, accelerator=HERE, sample_rate=64, num_bits=4)
    assert len(both["ivf_centroids"]) == 4


@pytest.mark.parametrize("accelerator", ["cpu", "tpu", 5])
def test_wrong_accelerators(tmp_path: Path, accelerator: Any) -> None:
    dataset = write(tmp_path)
    with pytest.raises(InvalidInputError, match="must be 'cuda', 'mps' or a torch"):
        dataset.create_index("v", "IVF_PQ", num_partitions=4, num_sub_vectors=4, accelerator=accelerator)
    with pytest.raises(InvalidInputError, match="must be 'cuda', 'mps' or a torch"):
        IndicesBuilder(dataset, "v").train_ivf(4, accelerator=accelerator, sample_rate=64)
    with pytest.warns(UserWarning, match="falling back to CPU"):
        dataset.create_index("v", "IVF_FLAT", num_partitions=2, accelerator=accelerator)


def test_missing_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for accelerator in ("cuda", "mps", torch.device("cuda:3"), torch.device("xpu")):
        with pytest.raises(UnsupportedError, match=r"PyTorch has no device .*leave out accelerator"):
            device_of(accelerator)
    with pytest.raises(UnsupportedError, match="bits are clustered on processors"):
        clustering_on(HERE)(np.zeros((4, 2), np.uint8), 2, "hamming", np.random.default_rng(0))


def test_without_pytorch() -> None:
    code = """
import sys
sys.modules["torch"] = None
from lance_dataset.index.vector.training.devices import device_of
assert device_of(None) is None
try:
    device_of("cuda")
except NotImplementedError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "accelerator 'cuda' needs PyTorch, which is not installed" in done.stdout
