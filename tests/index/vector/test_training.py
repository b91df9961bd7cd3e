"""Tests of building vector indices, searched by pylance and by this package."""

from __future__ import annotations

import json
import uuid
import warnings
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.api.dataset import vector_arguments
from lance_dataset.errors import InvalidInputError, UnsupportedError

ROWS, DIMENSION = 900, 16
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "flat": ("IVF_FLAT", {}),
    "sq": ("IVF_SQ", {}),
    "pq8": ("IVF_PQ", {"num_sub_vectors": 4}),
    "rq1": ("IVF_RQ", {"num_bits": 1}),
    "rq5": ("IVF_RQ", {}),
    "rq8": ("IVF_RQ", {"num_bits": 8}),
    "pq4": ("IVF_PQ", {"num_sub_vectors": 8, "num_bits": 4}),
}


def vectors(kind: Any = np.float32) -> Any:
    rng = np.random.default_rng(3)
    if kind is np.uint8:
        return rng.integers(0, 256, (ROWS, DIMENSION), np.uint8)
    return (
        rng.standard_normal((12, DIMENSION))[rng.integers(0, 12, ROWS)] * 3 + rng.standard_normal((ROWS, 1))
    ).astype(kind) + rng.standard_normal((ROWS, DIMENSION)).astype(kind)


def write(path: Path, values: Any, mask: Any = None, **options: Any) -> None:
    flat = pa.array(values.reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, DIMENSION, mask=None if mask is None else pa.array(mask))
    lance.write_dataset(pa.table({"id": range(len(values)), "v": lists}), path, max_rows_per_file=400, **options)


def check(path: Path, query: Any, tolerance: float = 1e-4) -> list[int]:
    asked: dict[str, Any] = {
        "nearest": {"column": "v", "q": query, "k": 10, "nprobes": 3},
        "columns": ["id", "_distance"],
    }
    mine, other = (each.dataset(path).to_table(**asked) for each in (lance_dataset, lance))
    np.testing.assert_allclose(mine["_distance"], other["_distance"], rtol=tolerance, atol=tolerance)
    assert "ANNSubIndex" in lance.dataset(path).scanner(**asked).explain_plan(verbose=True)
    found: list[int] = other["id"].to_pylist()
    return found


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", KINDS)
def test_kinds(tmp_path: Path, name: str, metric: str) -> None:
    kind, parameters = KINDS[name]
    values = vectors()
    write(tmp_path, values)
    dataset = lance_dataset.dataset(tmp_path)
    assert dataset.create_index("v", kind, metric=metric.upper(), num_partitions=5, **parameters) is dataset
    for query in values[:3]:
        check(tmp_path, query)
    statistics = lance.dataset(tmp_path).stats.index_stats("v_idx")
    assert statistics["index_type"] == kind
    assert statistics["num_indexed_rows"] == ROWS


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.uint8])
def test_elements(tmp_path: Path, kind: Any) -> None:
    values = vectors(kind)
    write(tmp_path, values, enable_stable_row_ids=True)
    metric = "hamming" if kind is np.uint8 else "cosine"
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", metric=metric, num_partitions=4)
    assert check(tmp_path, values[5], 2e-3)[0] == 5


def test_unusable_vectors_are_left_out(tmp_path: Path) -> None:
    values = vectors()
    values[1, 3], values[2, 0], values[3] = np.nan, np.inf, 0
    write(tmp_path, values, np.arange(ROWS) == 4)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=3)
    sizes = lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["partitions"]
    assert sum(each["size"] for each in sizes) == ROWS - 4


def test_lists_of_vectors(tmp_path: Path) -> None:
    inner = pa.FixedSizeListArray.from_arrays(pa.array(vectors().reshape(-1)), DIMENSION)
    lists = pa.ListArray.from_arrays(pa.array(range(0, ROWS + 1, 3), pa.int32()), inner)
    lance.write_dataset(pa.table({"v": lists}), tmp_path)
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", metric="cosine", num_partitions=3)
    sizes = lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["partitions"]
    assert sum(each["size"] for each in sizes) == ROWS


@pytest.mark.parametrize(("train", "rows"), [(False, ROWS), (True, 100)])
def test_untrained(tmp_path: Path, train: bool, rows: int) -> None:
    write(tmp_path, vectors()[:rows])
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, train=train)
    (index,) = dataset.list_indices()
    assert index["fragment_ids"] == set()
    assert lance.dataset(tmp_path).stats.index_stats("v_idx")["num_indexed_rows"] == 0


def test_errors(tmp_path: Path) -> None:
    write(tmp_path, vectors())
    dataset = lance_dataset.dataset(tmp_path)
    with pytest.raises(UnsupportedError):
        dataset.create_index("v", "OTHER")
    with pytest.raises(UnsupportedError, match="leave out accelerator"):
        dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, accelerator="cuda")
    with pytest.raises(UnsupportedError, match="precomputed_partition_dataset"):
        dataset.create_index("v", "IVF_FLAT", precomputed_partition_dataset="x")
    wrong_options: list[dict[str, Any]] = [
        *({"metric": "l3"}, {"metric": "hamming"}, {"num_partitions": 0}),
        *({"index_uuid": "x"}, {"fragment_ids": [0]}, {"fragment_ids": [9], "index_uuid": str(uuid.uuid4())}),
    ]
    for wrong in wrong_options:
        with pytest.raises(InvalidInputError):
            dataset.create_index("v", "IVF_FLAT", **wrong)
    wrong_codes: list[dict[str, Any]] = [{}, {"num_sub_vectors": 5}, {"num_sub_vectors": 4, "num_bits": 5}]
    for parameters in wrong_codes:
        with pytest.raises(InvalidInputError):
            dataset.create_index("v", "IVF_PQ", **parameters)
    with pytest.raises(KeyError):
        dataset.create_index("w", "IVF_FLAT")
    with pytest.raises(TypeError):
        dataset.create_index("id", "IVF_FLAT")
    dataset.create_index("v", "IVF_FLAT")
    with pytest.raises(RuntimeError, match="already exists"):
        dataset.create_index("v", "IVF_FLAT")
    dataset.create_index("v", "IVF_SQ", replace=True)


@pytest.mark.parametrize("arrow", [False, True])
def test_given_models(tmp_path: Path, arrow: bool) -> None:
    values = vectors()
    write(tmp_path, values)
    rng = np.random.default_rng(5)
    centroids: Any = values[rng.choice(ROWS, 4, replace=False)]
    words: Any = rng.standard_normal((4, 256, DIMENSION // 4)).astype(np.float32)
    if arrow:
        centroids = pa.FixedSizeListArray.from_arrays(pa.array(centroids.reshape(-1)), DIMENSION)
        words = pa.FixedSizeListArray.from_arrays(pa.array(words.reshape(-1)), DIMENSION)
    given: dict[str, Any] = {"num_sub_vectors": 4, "ivf_centroids": centroids, "pq_codebook": words}
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_PQ", name="ours", **given)
    lance.dataset(tmp_path).create_index("v", "IVF_PQ", name="theirs", num_partitions=4, **given)
    mine, other = (lance.dataset(tmp_path).stats.index_stats(name)["indices"][0] for name in ("ours", "theirs"))
    assert mine["centroids"] == other["centroids"]
    assert mine["partitions"] == other["partitions"]
    assert mine["loss"] == pytest.approx(other["loss"], rel=1e-5)
    check(tmp_path, values[7])


def test_wrong_models(tmp_path: Path) -> None:
    write(tmp_path, vectors())
    dataset = lance_dataset.dataset(tmp_path)
    centroids = np.ones((3, DIMENSION), np.float32)
    wrong: list[dict[str, Any]] = [
        {"ivf_centroids": np.ones((3, DIMENSION + 1))},
        {"ivf_centroids": centroids, "num_partitions": 4},
        {"ivf_centroids": centroids * np.nan},
        {"ivf_centroids": [[1.0], [1.0, 2.0]]},
        {"ivf_centroids": np.ones(DIMENSION)},
        {"pq_codebook": np.ones((4, 256, 4))},
        {"ivf_centroids": centroids, "pq_codebook": np.ones((4, 255, 4))},
    ]
    for parameters in wrong:
        with pytest.raises(InvalidInputError):
            dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, **parameters)
    with pytest.raises(TypeError):
        dataset.create_index("v", "IVF_FLAT", ivf_centroids=[["a"]])


def test_vectors_far_from_the_origin(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = (vectors() + rng.standard_normal((ROWS, DIMENSION)) + 3000).astype(np.float32)
    write(tmp_path, values)
    lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", num_partitions=20)
    (found,) = lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"]
    wide, centroids = values.astype(np.float64), np.array(found["centroids"])
    nearest = ((wide[:, None] - centroids) ** 2).sum(axis=2)
    assert found["loss"] == pytest.approx(nearest.min(axis=1).sum(), rel=1e-3)
    assert [each["size"] for each in found["partitions"]] == np.bincount(nearest.argmin(axis=1), minlength=20).tolist()


@pytest.mark.filterwarnings("ignore:.*requested partitions")
@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("name", KINDS)
def test_equal_vectors(tmp_path: Path, name: str, rows: int) -> None:
    kind, parameters = KINDS[name]
    write(tmp_path, np.ones((rows, DIMENSION), np.float32))
    lance_dataset.dataset(tmp_path).create_index("v", kind, num_partitions=4, **parameters)
    asked: dict[str, Any] = {"nearest": {"column": "v", "q": np.ones(DIMENSION), "k": 3}, "columns": ["_distance"]}
    mine, other = (each.dataset(tmp_path).to_table(**asked)["_distance"] for each in (lance_dataset, lance))
    assert len(mine) == min(rows, 3)
    np.testing.assert_allclose(mine, other, atol=1e-5)


def test_fewer_partitions_than_asked_for(tmp_path: Path) -> None:
    write(tmp_path, vectors()[:50])
    with pytest.warns(UserWarning, match="50 of the 100 requested partitions") as caught:
        lance_dataset.dataset(tmp_path).create_index("v", "IVF_FLAT", num_partitions=100)
    assert caught[0].filename == __file__
    assert lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["num_partitions"] == 50


@pytest.mark.parametrize("package", [lance, lance_dataset])
@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("IVF_PQ", {}, 3),
        ("IVF_PQ", {"sample_rate": 100}, 9),
        ("IVF_PQ", {"sample_rate": 2000}, 1),
        ("IVF_HNSW_PQ", {}, 3),
        ("IVF_SQ", {"sample_rate": 100}, 20),
    ],
)
def test_partitions_have_as_many_vectors_as_the_training_samples(
    tmp_path: Path, kind: str, parameters: dict[str, Any], expected: int, package: Any
) -> None:
    """Product quantization gets no more of the requested partitions than the sample rate allows."""
    write(tmp_path, vectors())
    code = {"num_sub_vectors": 4, "num_bits": 4} if "PQ" in kind else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        package.dataset(tmp_path).create_index("v", kind, num_partitions=20, **code, **parameters)
    assert lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["num_partitions"] == expected
    if package is lance_dataset:  # pylance logs it
        told = [str(each.message) for each in caught if "requested partitions" in str(each.message)]
        assert len(told) == (expected < 20)
        assert all(f"gets {expected} of the 20 requested" in each for each in told)


def test_the_default_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = vectors()
    for name, column in (("float", values), ("bits", vectors(np.uint8)), ("odd", values[:, :12].copy())):
        lists = pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])
        lance.write_dataset(pa.table({"v": lists}), tmp_path / name)
    for name, memory, kind, metric, reason in (
        ("float", 1 << 30, "IVF_FLAT", "L2", "fit in a quarter of the memory, 4.0 GiB"),
        ("float", 1000, "IVF_RQ", "L2", "0.1 MiB, take more than a quarter"),
        ("odd", 1000, "IVF_SQ", "L2", "12 is not a multiple of 8"),
        ("bits", 1000, "IVF_FLAT", "Hamming", "vectors of bits"),
    ):
        monkeypatch.setattr(vector_arguments, "default_memory_limit", lambda memory=memory: memory)
        dataset = lance_dataset.dataset(tmp_path / name)
        dataset.create_index("v", replace=True)
        dataset.insert(dataset.to_table())
        dataset.optimize.optimize_indices(retrain=True)
        for package in (lance_dataset, lance):
            (described,) = package.dataset(tmp_path / name).describe_indices()
            assert described.index_type == kind
            assert described.details["metric_type"].lower() == metric.lower()
            assert reason in described.details["runtime_hints"]["lance_dataset.reason"]
    with pytest.raises(TypeError):
        lance_dataset.write_dataset(pa.table({"a": [1]}), tmp_path / "none").create_index("a")
    with pytest.raises(KeyError):
        dataset.create_index("nothing")


def test_ignored_parameters(tmp_path: Path) -> None:
    write(tmp_path, vectors())
    dataset = lance_dataset.dataset(tmp_path)
    ignored = {
        "streaming_sample_rate": 3,
        "storage_options": {"a": "b"},
        "filter_nan": False,
        "index_file_version": "v3",
    }
    dataset.create_index("v", "IVF_FLAT", num_partitions=2, m=20, **ignored)
    with pytest.warns(UserWarning, match="no parameter 'foo': it is ignored") as caught:
        dataset.create_index("v", "IVF_FLAT", num_partitions=2, replace=True, foo=3)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="falling back to CPU"):
        dataset.create_index("v", "IVF_SQ", num_partitions=2, replace=True, accelerator="cuda")
    with pytest.raises(UnsupportedError, match="only read"):
        dataset.create_index("v", "IVF_PQ", num_sub_vectors=4, replace=True, index_file_version="Legacy")
    wrong: list[dict[str, Any]] = [{"streaming_sample_rate": 0}, {"index_file_version": "v9"}, {"max_iters": 0}]
    for parameters in wrong:
        for package in (lance, lance_dataset):
            with pytest.raises(ValueError):
                package.dataset(tmp_path).create_index("v", "IVF_FLAT", num_partitions=2, replace=True, **parameters)
    with pytest.raises(TypeError):
        dataset.create_index("v", "IVF_FLAT", replace=True, ef_construction="x")


@pytest.mark.parametrize("name", ["pq8", "pq4", "rq1", "rq5"])
def test_codes_row_by_row(tmp_path: Path, name: str) -> None:
    kind, parameters = KINDS[name]
    values = vectors()
    write(tmp_path, values)
    dataset = lance_dataset.dataset(tmp_path)
    dataset.create_index("v", kind, num_partitions=3, skip_transpose=True, **parameters)
    for query in values[:3]:
        check(tmp_path, query)
    key = "transposed" if kind == "IVF_PQ" else "packed"
    assert lance.dataset(tmp_path).stats.index_stats("v_idx")["indices"][0]["sub_index"][key] is False
    dataset.insert(dataset.to_table().slice(0, 100))
    dataset.optimize.optimize_indices(num_indices_to_merge=1)
    assert dataset.index_statistics("v_idx")["indices"][0]["sub_index"][key] is False
    check(tmp_path, values[5])


def test_given_rotation(tmp_path: Path) -> None:
    values = vectors()
    write(tmp_path, values)
    dataset = lance_dataset.dataset(tmp_path)
    given: dict[str, Any] = {"ivf_centroids": values[:3], "fragment_ids": [0]}
    first = lance.dataset(tmp_path).create_index_uncommitted("v", "IVF_RQ", "x", num_partitions=3, **given)
    file = lance_dataset.file.LanceFileReader(tmp_path / "_indices" / first.uuid / "auxiliary.idx")
    (model,) = json.loads(file.metadata().schema.metadata[b"storage_metadata"])
    # segments of a part of the fragments are stored row by row by pylance
    second = dataset.create_index_uncommitted("v", "IVF_RQ", "x", rabitq_model=model, skip_transpose=True, **given)
    tables = [
        lance_dataset.file.LanceFileReader(tmp_path / "_indices" / each.uuid / "auxiliary.idx").read_all().to_table()
        for each in (first, second)
    ]
    assert tables[0]["_rowid"] == tables[1]["_rowid"]
    # the centroids are vectors, too: of their differences, zeros, the signs are arbitrary
    signs = [np.asarray(each["_rabit_codes"].combine_chunks().flatten()) for each in tables]
    assert np.mean(signs[0] != signs[1]) < 0.05
    described = json.loads(model)
    wrong: list[object] = [
        "zz",
        "[]",
        json.dumps({**described, "num_bits": 3}),
        json.dumps({**described, "code_dim": 8}),
    ]
    wrong += [json.dumps({**described, "fast_rotation_signs": each}) for each in ([1], [300] * 8, "x", None)]
    for each in wrong:
        with pytest.raises(ValueError):
            dataset.create_index_uncommitted("v", "IVF_RQ", "x", rabitq_model=each, **given)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        dataset.create_index_uncommitted("v", "IVF_RQ", "x", rabitq_model=3, **given)  # type: ignore[arg-type]
    text = json.dumps({**described, "rotation_type": "matrix"})
    with pytest.raises(UnsupportedError, match="fast"):
        dataset.create_index_uncommitted("v", "IVF_RQ", "x", rabitq_model=text, **given)


def test_centroids_in_a_file(tmp_path: Path) -> None:
    values = vectors()
    write(tmp_path / "data", values)
    np.save(tmp_path / "centroids.npy", values[:3])
    (tmp_path / "other").write_bytes(b"something")
    dataset = lance_dataset.dataset(tmp_path / "data")
    dataset.create_index("v", "IVF_FLAT", ivf_centroids_file=str(tmp_path / "centroids.npy"))
    assert np.asarray(dataset.centroids(column="v").flatten()).tolist() == values[:3].reshape(-1).tolist()
    with pytest.raises(InvalidInputError, match="same time"):
        dataset.create_index("v", "IVF_FLAT", ivf_centroids_file="x", ivf_centroids=values[:3])
    with pytest.raises(InvalidInputError, match="NumPy"):
        dataset.create_index("v", "IVF_FLAT", ivf_centroids_file=str(tmp_path / "other"))
    with pytest.raises(FileNotFoundError):
        dataset.create_index("v", "IVF_FLAT", ivf_centroids_file=str(tmp_path / "missing"))


@pytest.mark.parametrize("package", [lance, lance_dataset])
def test_files_of_some_fragments(tmp_path: Path, package: Any) -> None:
    """Files of a segment with a given id are written, and a commit of either package makes an index of them."""
    write(tmp_path, vectors())
    dataset, ids = lance_dataset.dataset(tmp_path), [str(uuid.uuid4()) for _ in range(2)]
    centroids = vectors()[:3]
    for made, fragments in zip(ids, ([0], [1, 2]), strict=True):
        built = dataset.create_index(
            "v", "IVF_SQ", ivf_centroids=centroids, fragment_ids=fragments, index_uuid=made, replace=True
        )
        assert built is dataset
        assert not dataset.list_indices()
        assert {file.name for file in (tmp_path / "_indices" / made).iterdir()} == {"index.idx", "auxiliary.idx"}
    opened = package.dataset(tmp_path)
    field = opened.lance_schema.field("v").id()
    added = [
        package.Index(made, "v_idx", [field], opened.version, fragments, 1)
        for made, fragments in zip(ids, ({0}, {1, 2}), strict=True)
    ]
    package.LanceDataset.commit(tmp_path, package.LanceOperation.CreateIndex(added, []), read_version=opened.version)
    check(tmp_path, vectors()[5])


def test_given_id(tmp_path: Path) -> None:
    write(tmp_path, vectors())
    dataset, made = lance_dataset.dataset(tmp_path), str(uuid.uuid4())
    dataset.create_index("v", "IVF_FLAT", num_partitions=2, index_uuid=made)
    assert [each["uuid"] for each in dataset.list_indices()] == [made]
    check(tmp_path, vectors()[5])
    with pytest.raises(InvalidInputError, match=f"has a segment with the id {made} already"):
        dataset.create_index("v", "IVF_FLAT", name="other", num_partitions=2, index_uuid=made)
    check(tmp_path, vectors()[5])


@pytest.mark.parametrize("name", ["pq8", "rq5"])
def test_differences_too_large_for_the_type(tmp_path: Path, name: str) -> None:
    """Differences of large halves overflow, but no row is lost. Queries of pylance may overflow, too."""
    values = np.random.default_rng(0).uniform(-65000, 65000, (ROWS, DIMENSION)).astype(np.float16)
    write(tmp_path, values)
    kind, parameters = KINDS[name]
    lance_dataset.dataset(tmp_path).create_index("v", kind, num_partitions=2, **parameters)
    near = {"column": "v", "q": values[3], "k": ROWS, "nprobes": 2}
    assert lance_dataset.dataset(tmp_path).to_table(nearest=near).num_rows == ROWS
    assert lance.dataset(tmp_path).to_table(nearest={**near, "q": np.zeros(DIMENSION, np.float16)}).num_rows == ROWS
