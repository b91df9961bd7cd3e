"""Tests of the errors of wrong parameters of vector indices and of searches: they name what was wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError, LanceError, UnsupportedError

ROWS, DIMENSION = 400, 8
VALUES = np.random.default_rng(0).standard_normal((ROWS, DIMENSION)).astype(np.float32)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_dataset.LanceDataset:
    """Return a table with an index of vectors. No test changes it."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(VALUES.reshape(-1)), DIMENSION)
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "v": lists, "w": lists})
    made = lance_dataset.write_dataset(table, tmp_path_factory.mktemp("wrong") / "data")
    made.create_index("v", "IVF_PQ", num_partitions=3, num_sub_vectors=4, num_bits=4, max_iters=3)
    return made


BUILDS: list[tuple[str, Mapping[str, Any], type[Exception], str]] = [
    ("IVF_FLAT", {"num_partitions": 0}, InvalidInputError, "num_partitions must be positive, not 0"),
    ("IVF_FLAT", {"num_partitions": -3}, LanceError, "num_partitions must not be negative, got -3"),
    ("IVF_FLAT", {"num_partitions": "3"}, TypeError, "num_partitions must be an integer, not str"),
    ("IVF_FLAT", {"target_partition_size": 0}, InvalidInputError, "target_partition_size must be positive"),
    ("IVF_FLAT", {"sample_rate": 0}, InvalidInputError, "sample_rate must be positive"),
    ("IVF_FLAT", {"max_iters": -1}, LanceError, "max_iters must not be negative"),
    ("IVF_FLAT", {"memory_limit": -1}, LanceError, "memory_limit must not be negative"),
    ("IVF_FLAT", {"metric": "manhattan"}, InvalidInputError, "Metric manhattan not supported; known are l2"),
    ("IVF_FLAT", {"metric": "hamming"}, InvalidInputError, "uint8 has hamming, floats have the others"),
    (
        "IVF_FLAT",
        {"ivf_centroids": VALUES[:3, :4]},
        InvalidInputError,
        "have 4 values, but the vectors of the column 8",
    ),
    ("IVF_FLAT", {"ivf_centroids": VALUES[:3] * np.nan}, InvalidInputError, "ivf_centroids must be finite"),
    (
        "IVF_FLAT",
        {"ivf_centroids": np.full((3, 8), 1e300)},
        InvalidInputError,
        "ivf_centroids have numbers that vectors of float cannot have",
    ),
    (
        "IVF_PQ",
        {"ivf_centroids": VALUES[:3], "pq_codebook": np.full((4, 256, 2), 1e300), "num_sub_vectors": 4},
        InvalidInputError,
        "pq_codebook has numbers that vectors of float cannot have",
    ),
    ("IVF_HNSW_RQ", {}, UnsupportedError, "Only IVF_FLAT, .* are supported"),  # pylance 14.0.2 does not have it, too
    (
        "IVF_PQ",
        {"num_sub_vectors": 3},
        InvalidInputError,
        r"dimension \(8\) must be divisible by num_sub_vectors \(3\)",
    ),
    ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 5}, LanceError, "num_bits of IVF_PQ must be 8, or 4"),
    ("IVF_PQ", {}, InvalidInputError, "num_sub_vectors is required"),
    ("IVF_HNSW_FLAT", {"m": 3}, InvalidInputError, "m must be from 4"),
]


@pytest.mark.parametrize("number", range(len(BUILDS)))
def test_builds(dataset: lance_dataset.LanceDataset, number: int) -> None:
    kind, parameters, error, text = BUILDS[number]
    version = dataset.version
    with pytest.raises(error, match=text):
        dataset.create_index("w", kind, **parameters)
    assert dataset.version == version


@pytest.mark.parametrize(
    ("column", "error", "text"),
    [("id", TypeError, "must be a fixed-size list"), ("zz", KeyError, "No field named zz"), (5, TypeError, "")],
)
def test_columns(dataset: lance_dataset.LanceDataset, column: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dataset.create_index(column, "IVF_FLAT", num_partitions=2)


SEARCHES: list[tuple[Mapping[str, Any], type[Exception], str]] = [
    ({"q": VALUES[0][:4]}, InvalidInputError, "size 4 does not match the size 8 of the vectors in column 'v'"),
    ({"q": np.zeros((2, 4))}, InvalidInputError, "size 4 does not match the size 8"),
    ({"q": []}, InvalidInputError, "not empty"),
    ({"q": np.zeros((2, 2, 8))}, InvalidInputError, "one or two dimensions"),
    ({"q": "text"}, TypeError, "array of numbers, got str"),
    ({"q": None}, TypeError, "array of numbers, got NoneType"),
    ({"q": VALUES[0] * np.nan}, InvalidInputError, "query vector 0 for column 'v' has NaN or null at position 0"),
    ({"q": [None] * 8}, InvalidInputError, "has NaN or null at position 0"),
    ({"q": np.stack([VALUES[0], VALUES[0] * np.nan])}, InvalidInputError, "query vector 1 for column 'v' has NaN"),
    ({"q": np.zeros(8, complex)}, TypeError, "got complex128"),
    ({"k": 0}, InvalidInputError, "Nearest-K must be >= 1 but got 0"),
    ({"k": -1}, InvalidInputError, "Nearest-K must be >= 1 but got -1"),
    ({"k": "5"}, TypeError, "Nearest-K must be a whole number, not str"),
    ({"k": 1.5}, TypeError, "Nearest-K must be a whole number, not float"),
    ({"k": 1 << 70}, InvalidInputError, r"Nearest-K must be less than 2\*\*63"),
    ({"nprobes": 0}, InvalidInputError, "nprobes must be >= 1 but got 0"),
    ({"nprobes": "3"}, TypeError, "nprobes must be a whole number, not str"),
    ({"minimum_nprobes": 5, "maximum_nprobes": 2}, InvalidInputError, "minimum_nprobes must be <= maximum_nprobes"),
    ({"refine_factor": 0}, InvalidInputError, "refine_factor must be >= 1"),
    ({"ef": 0}, InvalidInputError, "ef must be >= 1"),
    ({"metric": "manhattan"}, InvalidInputError, "Metric type 'manhattan' is not supported; the names are: l2"),
    ({"metric": "hamming"}, InvalidInputError, "hamming counts the bits of uint8 vectors"),
    ({"distance_range": (1,)}, InvalidInputError, "distance_range must be a tuple"),
    ({"search_effort": 2}, InvalidInputError, r"search_effort must be in \[0, 1\]"),
    ({"approx_mode": "x"}, InvalidInputError, "approx_mode must be one of"),
    ({"kk": 3}, TypeError, "no parameter 'kk'; did you mean 'k'"),
    ({"column": "id"}, TypeError, "Query column id must be a vector"),
    ({"column": "x"}, LanceError, "No field named x to search; the names are: id, v, w"),
    ({"column": 5}, TypeError, "the column of nearest must be a name, not int"),
]


@pytest.mark.parametrize("column", ["v", "w"])
@pytest.mark.parametrize("number", range(len(SEARCHES)))
def test_searches(dataset: lance_dataset.LanceDataset, number: int, column: str) -> None:
    """The errors are the same with and without an index."""
    parameters, error, text = SEARCHES[number]
    with pytest.raises(error, match=text.replace("'v'", f"'{column}'")):
        dataset.to_table(nearest={"column": column, "q": VALUES[0], "k": 5, **parameters})


@pytest.mark.parametrize("parameters", [{"k": 1 << 40}, {"nprobes": 1 << 40}, {"refine_factor": 1 << 40}])
def test_huge_numbers_take_no_memory(dataset: lance_dataset.LanceDataset, parameters: dict[str, int]) -> None:
    found = dataset.to_table(nearest={"column": "v", "q": VALUES[0], **parameters}, columns=["id"])
    assert found.num_rows == (ROWS if "k" in parameters else 10)
