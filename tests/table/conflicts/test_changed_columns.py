"""Tests of appends of files that were written before another writer changed the columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance as reference
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.errors import CommitConflictError


def add_all_null(dataset: Any) -> None:
    """Drop a column that has its own files, and give its id to another."""
    dataset.drop_columns(["own"])
    reference.dataset(dataset.uri).add_columns(pa.field("other", pa.string()))


CHANGES: dict[str, tuple[Callable[[Any], object], bool]] = {
    "other type": (lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int64()}), False),
    "other type and name": (lambda ds: ds.alter_columns({"path": "a", "name": "b", "data_type": pa.int64()}), False),
    "id used again": (add_all_null, False),
    "other name": (lambda ds: ds.alter_columns({"path": "a", "name": "b"}), True),
    "dropped": (lambda ds: ds.drop_columns(["a"]), True),
    "added": (lambda ds: ds.add_columns(pa.field("other", pa.string())), True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_append_of_files_from_before_a_change_of_columns(tmp_path: Path, name: str) -> None:
    """Appends of files from before a change of columns are refused unless the files still fit.

    Otherwise they would read as null or as another type; the rules of the reference allow them.
    """
    table = str(tmp_path / "t.lance")
    change, fits = CHANGES[name]
    reference.write_dataset(pa.table({"a": pa.array([1, 2], pa.int32()), "s": ["x", "y"]}), table)
    reference.dataset(table).add_columns({"own": "cast(a as bigint)"})
    read = lance.dataset(table)
    rows = pa.table({"a": pa.array([3], pa.int32()), "s": ["z"], "own": pa.array([3], pa.int64())})
    fragments = lance.fragment.write_fragments(rows, read, mode="append")
    change(reference.dataset(table))
    assert isinstance(fragments, list)
    append = lance.LanceOperation.Append(fragments)
    if fits:
        lance.LanceDataset.commit(table, append, read_version=read.version)
        after = reference.dataset(table).to_table()
        assert after["s"].to_pylist() == ["x", "y", "z"]
        assert [after[column].null_count for column in after.column_names if column != "other"] == [0] * (
            after.num_columns - ("other" in after.column_names)
        )
        return
    with pytest.raises(CommitConflictError, match="columns were changed") as caught:
        lance.LanceDataset.commit(table, append, read_version=read.version)
    assert caught.value.retryable
    assert reference.dataset(table).count_rows() == 2
