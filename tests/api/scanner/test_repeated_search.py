"""Searches that differ only in the vector find what each of them finds alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import LanceDataset

ROWS, DIMENSION = 600, 8

OPTIONS: list[dict[str, Any]] = [
    {},
    {"columns": ["id"]},
    {"columns": ["id", "_distance"], "with_row_id": True},
    {"columns": ["x", "id"], "limit": 3, "offset": 2},
    {"filter": "x < 100", "prefilter": True},
    {"filter": "x < 100"},
    {"columns": {"double": "x * 2"}},
    {"order_by": ["x"]},
    {"disable_scoring_autoprojection": True},
    {"fast_search": True},
]
PARAMETERS: list[dict[str, Any]] = [
    {},
    {"k": 3},
    {"k": 3, "nprobes": 2},
    {"nprobes": 2, "refine_factor": 2},
    {"use_index": False},
    {"distance_range": (0.5, 6.0)},
    {"recall": 0.9},
]


@pytest.fixture(params=[False, True], ids=["plain", "indexed"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> LanceDataset:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((ROWS, DIMENSION)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    table = pa.table({"id": np.arange(ROWS), "x": rng.integers(0, 200, ROWS), "v": vectors})
    made = lance_dataset.write_dataset(table, tmp_path / "t")
    if request.param:
        made.create_index("v", "IVF_FLAT", num_partitions=4)
    made.delete("id % 7 = 0")
    return made


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_other_vectors(dataset: LanceDataset, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    for parameters in PARAMETERS:
        for _ in range(3):
            nearest = {"column": "v", "q": rng.standard_normal(DIMENSION), **parameters}
            found = dataset.to_table(nearest=nearest, **options)
            assert found == dataset.scanner(nearest=nearest, **options).to_table()


def test_other_forms_of_vectors(dataset: LanceDataset) -> None:
    rng = np.random.default_rng(5)
    vector = rng.standard_normal(DIMENSION).astype(np.float32)
    expected = dataset.to_table(nearest={"column": "v", "q": vector})
    for form in (vector.tolist(), pa.array(vector), vector.astype(np.float64), pa.scalar(vector.tolist())):
        assert dataset.to_table(nearest={"column": "v", "q": form}) == expected
    batch = dataset.to_table(nearest={"column": "v", "q": np.stack([vector, -vector])})
    assert batch.column_names[0] == "query_index"
    assert batch.num_rows == 2 * expected.num_rows
    assert dataset.to_table(nearest={"column": "v", "q": vector}) == expected


def test_refusals_are_the_same(dataset: LanceDataset) -> None:
    good = np.zeros(DIMENSION)
    dataset.to_table(nearest={"column": "v", "q": good, "k": 1})
    wrong: list[Any] = [np.zeros(3), np.full(DIMENSION, np.nan), "text", None, [], np.zeros((1, 1, DIMENSION))]
    for bad in wrong:
        messages = []
        for find in (dataset.to_table, lambda **options: dataset.scanner(**options).to_table()):
            with pytest.raises((TypeError, ValueError)) as error:
                find(nearest={"column": "v", "q": bad, "k": 1})
            messages.append((type(error.value), str(error.value)))
        assert messages[0] == messages[1]
    for parameters in ({"k": 1.0}, {"k": "1"}, {"k": [1]}, {"use_index": 1}, {"other": 1}):
        with pytest.raises((TypeError, ValueError)):
            dataset.to_table(nearest={"column": "v", "q": good, "k": 1, **parameters})
    dataset.to_table(nearest={"column": "v", "q": good, "k": 1, "use_index": True})
    with pytest.raises(TypeError, match="use_index must be True or False"):
        dataset.to_table(nearest={"column": "v", "q": good, "k": 1, "use_index": 1})


def test_new_versions(dataset: LanceDataset) -> None:
    nearest = {"column": "v", "q": np.zeros(DIMENSION), "k": 1}
    first = dataset.to_table(columns=["id"], nearest=nearest)["id"][0].as_py()
    dataset.to_table(columns=["id"], nearest=nearest)
    dataset.delete(f"id = {first}")
    assert dataset.to_table(columns=["id"], nearest=nearest)["id"][0].as_py() != first


def test_default_options_count(dataset: LanceDataset) -> None:
    nearest = {"column": "v", "q": np.zeros(DIMENSION), "k": 1}
    limited = lance_dataset.dataset(dataset.uri, default_scan_options={"with_row_id": True})
    for _ in range(2):
        assert "_rowid" in limited.to_table(nearest=nearest).column_names
        assert "_rowid" not in dataset.to_table(nearest=nearest).column_names
