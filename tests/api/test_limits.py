"""Tests of negative and too large numbers and times: errors can be caught like those of the reference."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.reference.outcomes import Outcome, assert_same_outcome

import lance_dataset
from lance_dataset.errors import InvalidInputError, OutOfRangeError

TABLE = pa.table({"a": range(10), "b": range(10)})
SOURCE = pa.table({"a": [1], "b": [5]})
COUNTS = [-1, 0, 1, 2**32 - 1, 2**32, 2**63, 2**64, 1.5, "a"]
TIMES = [dt.timedelta(0), dt.timedelta(seconds=-1), dt.timedelta.min, dt.timedelta.max, 5]

Call = Callable[[Any, Any, Any], Any]


def merge(dataset: Any) -> Any:
    return dataset.merge_insert("a").when_matched_update_all()


BY_COUNT: dict[str, Call] = {
    "delete": lambda _, d, value: d.delete("a = 1", conflict_retries=value),
    "update": lambda _, d, value: d.update({"b": "1"}, conflict_retries=value),
    "merge_insert": lambda _, d, value: merge(d).conflict_retries(value).execute(SOURCE),
    "add_columns": lambda _, d, value: d.add_columns({"z": "a + 1"}, batch_size=value),
    "compact_files": lambda _, d, value: bool(d.optimize.compact_files(target_rows_per_fragment=value)),
    "batches of compact_files": lambda _, d, value: bool(d.optimize.compact_files(batch_size=value)),
    "get_fragment": lambda _, d, value: bool(d.get_fragment(value)),
}
BY_TIME: dict[str, Call] = {
    "delete": lambda _, d, value: d.delete("a = 1", retry_timeout=value),
    "update": lambda _, d, value: d.update({"b": "1"}, retry_timeout=value),
    "merge_insert": lambda _, d, value: merge(d).retry_timeout(value).execute(SOURCE),
}


def assert_alike(tmp_path: Path, call: Call, value: object) -> None:
    outcomes = []
    for library in (lance_dataset, lance):
        dataset = library.write_dataset(TABLE, tmp_path / library.__name__, mode="overwrite", max_rows_per_file=5)
        outcomes.append(Outcome.of(lambda module, handle: call(module, handle, value), library, dataset))
    assert_same_outcome(*outcomes)


@pytest.mark.parametrize("name", BY_COUNT)
def test_counts(tmp_path: Path, name: str) -> None:
    """Counts that the integers of the reference cannot hold raise errors like the reference's."""
    for value in COUNTS:
        assert_alike(tmp_path, BY_COUNT[name], value)


@pytest.mark.parametrize("name", BY_TIME)
def test_times(tmp_path: Path, name: str) -> None:
    """Negative times raise errors like the reference's."""
    for value in TIMES:
        assert_alike(tmp_path, BY_TIME[name], value)


def test_errors_are_of_the_package(tmp_path: Path) -> None:
    """A negative number raises an `OutOfRangeError`, which is an `InvalidInputError`."""
    dataset = lance_dataset.write_dataset(TABLE, tmp_path)
    for call in (
        lambda: dataset.delete("a = 1", conflict_retries=-1),
        lambda: dataset.optimize.compact_files(batch_size=-1),
    ):
        with pytest.raises(OutOfRangeError, match="must not be negative, got -1") as caught:
            call()
        assert isinstance(caught.value, InvalidInputError)


@pytest.mark.parametrize("name", ["max_rows_per_file", "max_rows_per_group", "max_bytes_per_file"])
def test_sizes_of_files(tmp_path: Path, name: str) -> None:
    """Invalid file sizes raise an error before anything is written."""
    for value, error in ((-1, OverflowError), (2**64, OverflowError), (0, InvalidInputError), (1.5, TypeError)):
        with pytest.raises(error, match=name):
            lance_dataset.write_dataset(TABLE, tmp_path, **{name: value})
    assert not list(tmp_path.iterdir())
