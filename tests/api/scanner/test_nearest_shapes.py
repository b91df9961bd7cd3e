"""Tests that searches share only what does not depend on the query."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.api.scanner.nearest_shapes import search_shapes
from lance_dataset.errors import FieldNotFoundError


def _table() -> pa.Table:
    numbers = pa.array(np.arange(40, dtype=np.float32))
    return pa.table(
        {
            "id": range(20),
            "v": pa.FixedSizeListArray.from_arrays(numbers, 2),
            "w": pa.FixedSizeListArray.from_arrays(numbers, 2),
        }
    )


def test_options_of_searches_do_not_mix(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(), tmp_path)
    for _ in range(2):
        for column in ("v", "w"):
            near = {"column": column, "q": [8.0, 9.0], "k": 3}
            assert dataset.to_table(nearest=near, columns=["id"]).schema.names == ["id", "_distance"]
            assert dataset.to_table(nearest=near, columns={"n": "id"}).schema.names == ["n", "_distance"]
            assert dataset.to_table(nearest=near, columns=[]).schema.names == ["_distance"]
            assert dataset.to_table(nearest=near).schema.names == ["id", "v", "w", "_distance"]
            assert dataset.to_table(nearest=near, columns=["id"], limit=1)["id"].to_pylist() == [4]
            assert dataset.to_table(nearest=near, columns=["id"], offset=2).num_rows == 1
            assert dataset.to_table(nearest=near, columns=[], with_row_id=True).schema.names == ["_distance", "_rowid"]
            batch = {**near, "q": [[8.0, 9.0], [0.0, 1.0]], "k": 1}
            assert dataset.to_table(nearest=batch, columns=["id"])["id"].to_pylist() == [4, 0]
            for wanted in (3, 15):
                found = dataset.to_table(nearest=near, columns=["id"], filter=f"id >= {wanted}", prefilter=True)
                assert min(found["id"].to_pylist()) == wanted
            ordered = dataset.to_table(nearest=near, columns=["id"], order_by=["id"])
            assert ordered["id"].to_pylist() == [3, 4, 5]
    with pytest.raises(FieldNotFoundError):
        dataset.to_table(nearest={"column": "v", "q": [8.0, 9.0]}, columns=["x"])


def test_other_versions_have_other_shapes(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(), tmp_path)
    near = {"column": "v", "q": [8.0, 9.0], "k": 3}
    assert dataset.to_table(nearest=near).num_columns == 4
    dataset.add_columns({"y": "id + 1"})
    assert dataset.to_table(nearest=near).num_columns == 5
    dataset.drop_columns(["v"])
    with pytest.raises(FieldNotFoundError):
        dataset.to_table(nearest=near)


def test_few_shapes_are_kept_and_freed_with_the_reader(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(_table(), tmp_path)
    for number in range(70):
        dataset.to_table(nearest={"column": "v", "q": [8.0, 9.0], "k": 3}, columns={f"n{number}": "id"})
    shapes = search_shapes(dataset.snapshot.reader)
    assert len(shapes._known) <= 32
    kept = weakref.ref(shapes)
    gc.disable()
    try:
        del shapes, dataset
        assert kept() is None
    finally:
        gc.enable()
