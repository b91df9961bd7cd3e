"""Tests of step-wise builds of IVF_PQ indices: files of either package are used by the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.file
import lance.indices
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
import lance_dataset.indices
from lance_dataset.errors import CorruptFileError, InvalidIndexError, InvalidInputError, UnsupportedError

ROWS, DIMENSION = 3000, 16
BOTH = {"ours": (lance_dataset, lance_dataset.indices), "theirs": (lance, lance.indices)}


def write(path: Path) -> Any:
    rng = np.random.default_rng(0)
    values = (3 * rng.integers(0, 4, (ROWS, 1)) + rng.standard_normal((ROWS, DIMENSION))).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    table = pa.table({"id": np.arange(ROWS), "v": lists, "h": lists.cast(pa.list_(pa.float16(), DIMENSION))})
    lance.write_dataset(table, path, max_rows_per_file=1000)
    return values


#: Packages that take the steps. pylance does not assign vectors to partitions by cosine, which is the second one.
STEPS = {
    "ours theirs ours theirs": ("l2", "dot"),
    "theirs ours theirs ours": ("l2", "cosine", "dot"),
    "ours ours ours ours": ("l2", "cosine", "dot"),
}


@pytest.mark.parametrize(
    ("steps", "metric"), [(steps, metric) for steps, metrics in STEPS.items() for metric in metrics]
)
def test_all_steps(tmp_path: Path, steps: str, metric: str) -> None:
    values = write(tmp_path / "data")
    folder = str(tmp_path)
    builders = []
    for step in steps.split():
        package, indices = BOTH[step]
        builders.append((indices, indices.IndicesBuilder(package.dataset(tmp_path / "data"), "v")))
    builder = builders[0][1]
    ivf = builder.train_ivf(4, sample_rate=100, distance_type=metric)
    pq = builder.train_pq(ivf, 4, sample_rate=10)
    ivf.save(f"{folder}/ivf.lance")
    pq.save(f"{folder}/pq.lance")
    loaded = [
        (each.IvfModel.load(f"{folder}/ivf.lance"), each.PqModel.load(f"{folder}/pq.lance")) for each, _ in builders
    ]
    for one, other in loaded:
        assert (one.num_partitions, one.distance_type) == (4, metric)
        assert (other.num_subvectors, other.num_bits, other.dimension) == (4, 8, DIMENSION)
        assert one.centroids.equals(ivf.centroids)
        assert other.codebook.equals(pq.codebook)
    builders[1][1].transform_vectors(*loaded[1], f"{folder}/codes.lance")
    names = builders[2][1].shuffle_transformed_vectors(["codes.lance"], folder, loaded[2][0])
    assert names == ["sorted_0.lance"]
    builders[3][1].load_shuffled_vectors(names, folder, *loaded[3], index_name="x")
    query: dict[str, Any] = {"column": "v", "q": values[7], "k": 10, "nprobes": 4, "refine_factor": 20}
    found = [each.dataset(tmp_path / "data").to_table(nearest=query)["id"].to_pylist() for each, _ in BOTH.values()]
    assert sorted(found[0]) == sorted(found[1])
    (described,) = lance_dataset.dataset(tmp_path / "data").describe_indices()
    assert (described.name, described.index_type, described.num_rows_indexed) == ("x", "IVF_PQ", ROWS)


def test_the_same_codes(tmp_path: Path) -> None:
    write(tmp_path / "data")
    rng = np.random.default_rng(0)
    centroids, words = (
        pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(n * DIMENSION, np.float32)), DIMENSION)
        for n in (5, 256)
    )
    tables = []
    for name, (package, indices) in BOTH.items():
        builder = indices.IndicesBuilder(package.dataset(tmp_path / "data"), ["v"])
        ivf, pq = indices.IvfModel(centroids, "l2"), indices.PqModel(4, words)
        fragments = [builder.dataset.get_fragment(2), builder.dataset.get_fragment(0)]
        builder.transform_vectors(ivf, pq, str(tmp_path / name), fragments=fragments)
        reader = lance.file.LanceFileReader(str(tmp_path / name))
        tables.append(reader.read_all().to_table().sort_by("_rowid"))
    assert tables[0].schema == tables[1].schema
    assert tables[0] == tables[1]


def test_parts_of_the_rows(tmp_path: Path) -> None:
    """An index covers the fragments whose codes it has; the others are searched exactly."""
    values = write(tmp_path / "data")
    dataset = lance_dataset.dataset(tmp_path / "data")
    builder = lance_dataset.indices.IndicesBuilder(dataset, "v")
    models = (
        builder.train_ivf(2, sample_rate=100),
        lance_dataset.indices.PqModel(
            8, pa.FixedSizeListArray.from_arrays(pa.array(values[:16].reshape(-1)), DIMENSION), num_bits=4
        ),
    )
    for number in (0, 2):
        builder.transform_vectors(*models, str(tmp_path / str(number)), fragments=[dataset.get_fragments()[number]])
    names = builder.shuffle_transformed_vectors(["2", "0"], str(tmp_path), models[0])
    builder.load_shuffled_vectors(names, str(tmp_path), *models)
    (described,) = dataset.describe_indices()
    assert described.segments[0].fragment_ids == {0, 2}
    near = {"column": "v", "q": values[1500], "k": 1}
    for package in (lance_dataset, lance):
        assert package.dataset(tmp_path / "data").to_table(nearest=near)["id"].to_pylist() == [1500]
    with pytest.raises(InvalidIndexError):
        builder.load_shuffled_vectors(names, str(tmp_path), *models)


CALLS: list[Callable[[Any], Any]] = [
    lambda b: b.train_ivf(),
    lambda b: b.train_ivf(4, sample_rate=1),
    lambda b: b.train_ivf(4, distance_type="zz"),
    lambda b: b.train_ivf(4, distance_type="hamming"),
    lambda b: b.train_ivf(0),
    lambda b: b.train_ivf(-1),
    lambda b: b.train_ivf(2.5),
    lambda b: b.train_ivf(4, max_iters=0),
    lambda b: b.train_ivf(4, fragment_ids=[0]),
    lambda b: b.train_ivf(4, fragment_ids=[9]),
    lambda b: b.train_ivf(4, fragment_ids=[]),
    lambda b: b.train_ivf(20),
    *(
        lambda b, options=options: b.train_pq(b.train_ivf(4, sample_rate=100, max_iters=2), **options)
        for options in (
            {},
            {"num_subvectors": 5, "sample_rate": 10},
            {"num_subvectors": 0, "sample_rate": 10},
            {"num_subvectors": 4, "num_bits": 4},
            {"num_subvectors": 4, "sample_rate": 10, "fragment_ids": [0, 1]},
            {"num_subvectors": 4, "sample_rate": 1},
        )
    ),
    lambda b: b.prepare_global_ivf_pq(4, 5, sample_rate=10),
    lambda b: type(b)(b.dataset, "nothing"),
    lambda b: type(b)(b.dataset, "id"),
    lambda b: type(b)(b.dataset, 3),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps") / "data"
    write(folder)
    return folder


@pytest.mark.filterwarnings("ignore:num_partitions is float")
@pytest.mark.parametrize("number", range(len(CALLS)))
def test_errors_of_the_reference(path: Path, number: int) -> None:
    package, indices = BOTH["theirs"]
    with pytest.raises((ValueError, TypeError, KeyError, OverflowError)) as expected:
        CALLS[number](indices.IndicesBuilder(package.dataset(path), "v"))
    package, indices = BOTH["ours"]
    with pytest.raises(expected.type):
        CALLS[number](indices.IndicesBuilder(package.dataset(path), "v"))


def test_models(path: Path, tmp_path: Path) -> None:
    for package, indices in BOTH.values():
        builder = indices.IndicesBuilder(package.dataset(path), "h")
        found = builder.prepare_global_ivf_pq(4, None, sample_rate=10)
        assert found["ivf_centroids"].type == pa.list_(pa.float16(), DIMENSION)
        assert found["pq_codebook"].type == pa.list_(pa.float16(), DIMENSION)
        assert len(found["pq_codebook"]) == 256
        model = builder.train_pq(builder.train_ivf(4, sample_rate=10), sample_rate=10)
        assert model.num_subvectors == 1
        assert builder.train_ivf(4, sample_rate=10, distance_type="L2").distance_type == "l2"
    builder = lance_dataset.indices.IndicesBuilder(lance_dataset.dataset(path), "v")
    ivf = builder.train_ivf(4, sample_rate=10)
    ivf.save(tmp_path / "ivf")
    with pytest.raises(KeyError):
        lance_dataset.indices.PqModel.load(tmp_path / "ivf")
    with pytest.raises(ValueError):
        lance_dataset.indices.IvfModel.load(tmp_path / "missing")
    for call in (
        lambda: builder.assign_ivf_partitions(ivf, "mps"),
        lambda: builder.train_ivf(4, accelerator="cuda"),
        lambda: builder.transform_vectors(ivf, None, "x", partition_ds_uri="y"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UnsupportedError, match=r"processors|as they are read"):
            call()
    with pytest.raises(TypeError):
        lance_dataset.indices.IvfModel(pa.array([1.0]), "l2")
    with pytest.raises(TypeError):
        lance_dataset.indices.PqModel(1, pa.array([1.0]))


def test_wrong_files(path: Path, tmp_path: Path) -> None:
    builder = lance_dataset.indices.IndicesBuilder(lance_dataset.dataset(path), "v")
    ivf = builder.train_ivf(4, sample_rate=10)
    pq = builder.train_pq(ivf, 4, sample_rate=10)
    code = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4], pa.uint8()), 4)
    rows: dict[str, Any] = {
        "_rowid": pa.array([5], pa.uint64()),
        "__ivf_part_id": pa.array([1], pa.uint32()),
        "__pq_code": code,
    }
    wrong: list[dict[str, Any]] = [
        {**rows, "__ivf_part_id": pa.array([4], pa.uint32())},
        {**rows, "__ivf_part_id": pa.array([4], pa.int64())},
        {**rows, "_rowid": pa.array([None], pa.uint64())},
        {**rows, "__pq_code": pa.array([1])},
        {"a": pa.array([1])},
    ]
    for number, columns in enumerate(wrong):
        with lance_dataset.file.LanceFileWriter(tmp_path / str(number)) as writer:
            writer.write_batch(pa.RecordBatch.from_pydict(columns))
        with pytest.raises(CorruptFileError):
            builder.shuffle_transformed_vectors([str(number)], str(tmp_path), ivf)
        with pytest.raises(CorruptFileError):
            builder.load_shuffled_vectors([str(number)], str(tmp_path), ivf, pq)
    for names in ([], ["missing"]):
        with pytest.raises(ValueError):
            builder.shuffle_transformed_vectors(names, str(tmp_path), ivf)
        with pytest.raises(ValueError):
            builder.load_shuffled_vectors(names, str(tmp_path), ivf, pq)
    with lance_dataset.file.LanceFileWriter(tmp_path / "far") as writer:
        writer.write_batch(pa.RecordBatch.from_pydict({**rows, "_rowid": pa.array([1 << 40], pa.uint64())}))
    names = builder.shuffle_transformed_vectors(["far"], str(tmp_path), ivf)
    with pytest.raises(InvalidInputError, match="no codes of rows"):
        builder.load_shuffled_vectors(names, str(tmp_path), ivf, pq)
