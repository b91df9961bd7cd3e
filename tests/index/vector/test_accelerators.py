"""Tests of the steps of building an index that PyTorch does, compared with those of the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.torch.kmeans
import lance.vector
import numpy as np
import pyarrow as pa
import pytest
import torch

import lance_dataset
from lance_dataset import vector
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.indices import IndicesBuilder, IvfModel
from lance_dataset.torch.kmeans import KMeans

ROWS, DIMENSION, PARTS = 600, 8, 2
HERE = torch.device("cpu")
NANS, NULLS = [5, 7], [10, 11]
METRICS = ["l2", "cosine"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of vectors of which some are null, have NaN or are deleted."""
    values = np.random.default_rng(0).random((ROWS, DIMENSION)).astype(np.float32)
    values[NANS[0]], values[NANS[1], 3] = np.nan, np.nan
    mask = pa.array(np.isin(np.arange(ROWS), NULLS))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION, mask=mask)
    place = tmp_path_factory.mktemp("vectors") / "t"
    made = lance_dataset.write_dataset(
        pa.table({"id": range(ROWS), "a v": vectors}), place, enable_stable_row_ids=True, max_rows_per_file=250
    )
    made.delete("id = 20")
    return str(place)


@pytest.fixture(scope="module")
def plain(path: str) -> str:
    """Return the path of the same vectors with a simple name."""
    table = lance_dataset.dataset(path).to_table().rename_columns(["id", "v"])
    lance_dataset.write_dataset(table, f"{path}-plain")
    return f"{path}-plain"


def both_models(numbers: Any, metric: str) -> tuple[KMeans, Any]:
    """Return a model of each package with the same centroids."""
    given = torch.nn.functional.normalize(torch.from_numpy(np.array(numbers)))
    theirs = lance.torch.kmeans.KMeans(len(given), metric=metric, centroids=given.clone(), device="cpu")
    return KMeans(len(given), metric=metric, centroids=given, device="cpu"), theirs  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", METRICS)
def test_partitions_and_codes_of_given_models(plain: str, tmp_path: Path, metric: str) -> None:
    """With the same models, both packages write the same rows, residuals and codes."""
    rng = np.random.default_rng(1)
    ours, theirs = both_models(rng.random((4, DIMENSION)).astype(np.float32), metric)
    words = [both_models(rng.random((256, DIMENSION // PARTS)).astype(np.float32), metric) for _ in range(PARTS)]
    made: dict[str, list[pa.Table]] = {"partitions": [], "codes": [], "one pass": []}
    for module, functions, model, number in ((lance_dataset, vector, ours, 0), (lance, lance.vector, theirs, 1)):
        source: Any = module.dataset(plain)
        folder = tmp_path / module.__name__
        place = functions.compute_partitions(source, "v", model, 100, folder / "p", num_sub_vectors=PARTS)
        assert place == str(folder / "p")
        made["partitions"].append(module.dataset(place).to_table())
        models = [each[number] for each in words]
        found, files = functions.compute_pq_codes(module.dataset(place), models, 100, str(folder / "c"))
        assert found == str(folder / "c")
        assert sorted(files) == sorted(each.name for each in (folder / "c" / "data").iterdir())
        made["codes"].append(module.dataset(found).to_table())
        found, _ = functions.one_pass_assign_ivf_pq_on_accelerator(
            source, "v", metric, HERE, model, models, str(folder / "o"), 100
        )
        assert module.dataset(found).data_storage_version == "0.1"
        made["one pass"].append(module.dataset(found).to_table())
    for mine, other in made.values():
        assert mine.schema == other.schema
        assert mine.sort_by("row_id") == other.sort_by("row_id")
    assert made["codes"][0].sort_by("row_id") == made["one pass"][0].sort_by("row_id")


def test_parts_of_a_dataset(path: str, tmp_path: Path) -> None:
    model, _ = both_models(np.eye(4, DIMENSION, dtype=np.float32), "l2")
    source = lance_dataset.dataset(path)
    for options in ({}, {"filter_nan": False}):
        place = vector.compute_partitions(source, "a v", model, 64, tmp_path / f"all {len(options)}", **options)
        rows = lance_dataset.dataset(place).to_table()["row_id"].to_pylist()
        assert sorted(rows) == sorted(set(range(ROWS)) - {*NANS, *NULLS, 20})
    place = vector.compute_partitions(source, "a v", model, dst_dataset_uri=tmp_path / "first", sample_size=50)
    rows = lance_dataset.dataset(place).to_table()["row_id"].to_pylist()
    assert rows == sorted(set(range(53)) - {*NANS, *NULLS, 20})


@pytest.mark.parametrize("metric", ["L2", "cosine"])
def test_models_are_as_good_as_those_of_the_reference(plain: str, metric: str) -> None:
    shapes, losses = [], []
    values = lance_dataset.dataset(plain).to_table(filter="id > 20")["v"].combine_chunks()
    vectors = torch.from_numpy(np.array(values.flatten()).reshape(-1, DIMENSION))
    for module, functions in ((lance_dataset, vector), (lance, lance.vector)):
        torch.manual_seed(0)
        found = functions.one_pass_train_ivf_pq_on_accelerator(
            module.dataset(plain), "v", 8, metric, HERE, PARTS, max_iters=20
        )
        centroids, model, codewords, models = found
        assert model.centroids.numpy() == pytest.approx(centroids)
        assert np.stack([each.centroids.numpy() for each in models]) == pytest.approx(codewords)
        shapes.append([(each.shape, each.dtype) for each in (centroids, codewords)])
        check = KMeans(8, metric=model.metric, centroids=torch.from_numpy(centroids), device="cpu")
        check.max_iters = 1
        check.fit(vectors)
        losses.append(check.total_distance)
    assert shapes[0] == shapes[1]
    assert losses[0] < losses[1] + 0.1 * abs(losses[1])


def test_types_of_codewords(plain: str, tmp_path: Path) -> None:
    _, model = vector.train_ivf_centroids_on_accelerator(lance_dataset.dataset(plain), "v", 2, "l2", HERE)
    place = vector.compute_partitions(
        lance_dataset.dataset(plain), "v", model, dst_dataset_uri=tmp_path / "p", num_sub_vectors=4
    )
    codewords, models = vector.train_pq_codebook_on_accelerator(place, "l2", HERE, 4, dtype=np.float16)
    assert (codewords.dtype, codewords.shape, len(models)) == (np.float16, (4, 256, 2), 4)


def test_partitions_of_a_builder(plain: str, tmp_path: Path) -> None:
    centroids = pa.FixedSizeListArray.from_arrays(
        pa.array(np.eye(4, DIMENSION, dtype=np.float32).reshape(-1)), DIMENSION
    )
    found = []
    for module, model in ((lance_dataset, IvfModel(centroids, "l2")), (lance, lance.indices.IvfModel(centroids, "l2"))):
        builder: Any = (IndicesBuilder if module is lance_dataset else lance.indices.IndicesBuilder)(
            module.dataset(plain), "v"
        )
        place = builder.assign_ivf_partitions(model, HERE, output_uri=str(tmp_path / module.__name__))
        assert place == str(tmp_path / module.__name__)
        found.append(module.dataset(place).to_table().sort_by("row_id"))
    assert found[0] == found[1]


WRONG: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (ValueError, "divisible", {"num_sub_vectors": 3}),
    (ValueError, "positive", {"num_sub_vectors": 0}),
    (ValueError, "positive", {"batch_size": 0}),
    (TypeError, "KMeans", {"kmeans": None}),
    (TypeError, "fixed-size lists", {"column": "id"}),
    (ValueError, "nope", {"column": "nope"}),
    (InvalidInputError, "not trained", {"kmeans": KMeans(3, device="cpu")}),
]


@pytest.mark.parametrize(("kind", "text", "options"), WRONG)
def test_wrong_arguments(plain: str, tmp_path: Path, kind: type[Exception], text: str, options: dict[str, Any]) -> None:
    model, _ = both_models(np.eye(4, DIMENSION, dtype=np.float32), "l2")
    arguments = {"column": "v", "kmeans": model, "dst_dataset_uri": tmp_path / "p", **options}
    with pytest.raises(kind, match=text):
        vector.compute_partitions(lance_dataset.dataset(plain), **arguments)
    assert not (tmp_path / "p").exists()


def test_devices_and_places(plain: str, tmp_path: Path) -> None:
    source = lance_dataset.dataset(plain)
    with pytest.raises(ValueError, match="accelerator"):
        vector.train_ivf_centroids_on_accelerator(source, "v", 2, "l2", "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(UnsupportedError, match="no device"):
            vector.train_ivf_centroids_on_accelerator(source, "v", 2, "l2", "cuda")
    with pytest.raises(ValueError, match="Invalid metric_type: x"):
        vector.train_ivf_centroids_on_accelerator(source, "v", 2, "x", HERE)
    with pytest.raises(ValueError, match="cannot make"):
        vector.train_ivf_centroids_on_accelerator(source, "v", ROWS, "l2", HERE)
    with pytest.raises(ValueError, match="no models"):
        vector.compute_pq_codes(source, [])
    lance_dataset.write_dataset(pa.table({"x": [1]}), tmp_path / "there")
    model, _ = both_models(np.eye(4, DIMENSION, dtype=np.float32), "l2")
    with pytest.raises(OSError, match="already exists"):
        vector.compute_partitions(source, "v", model, dst_dataset_uri=tmp_path / "there")
    assert lance_dataset.dataset(vector.compute_partitions(source, "v", model)).count_rows() == ROWS - 5
