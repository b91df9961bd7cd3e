"""Tests of deletes: the same sequence on copies of one dataset, compared with the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.reference.outcomes import Outcome, assert_same_outcome, build_table

import lance_dataset

SEQUENCES = {
    "none": ["false"],
    "null": ["n > null"],
    "unmatched": ["id > 1000"],
    "twice": ["id < 5", "id < 8", "id < 8"],
    "fragment": ["id >= 20 and id < 40", "id = 41"],
    "all": ["true"],
    "all in steps": ["id < 30", "id >= 30"],
    "expression": [pc.field("n") > 5, pc.field("s").isin(["text 1"])],
    "nested": ["st.x % 3 = 0"],
    "row ids": ["_rowid < 3", "_rowaddr >= 8589934592"],
    "bad": ["n >"],
    "unknown": ["nope = 1"],
    "no boolean": ["id"],
    "empty": [""],
    "nulls": ["s is null", "n is not null"],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_like_the_reference(tmp_path: Path, name: str) -> None:
    """Counts, rows and versions match the reference, and each library reads what the other wrote."""
    ends = []
    for library, other in ((lance_dataset, lance), (lance, lance_dataset)):
        path = tmp_path / library.__name__
        for start in (0, 20, 40):
            lance.write_dataset(build_table(20, start), path, mode="append", data_storage_version="2.0")
        dataset = library.dataset(path)
        outcomes = [
            Outcome.of(lambda lib, ds, text=predicate: ds.delete(text), library, dataset)
            for predicate in SEQUENCES[name]
        ]
        mine, read = dataset.to_table(with_row_id=True), other.dataset(path).to_table(with_row_id=True)
        assert repr(mine.to_pydict()) == repr(read.to_pydict())
        ends.append((outcomes, repr(mine.to_pydict()), len(dataset.get_fragments())))
    for ours, theirs in zip(ends[0][0], ends[1][0], strict=True):
        assert_same_outcome(ours, theirs)
    assert ends[0][1:] == ends[1][1:]


def test_append_after_deleting_everything(tmp_path: Path) -> None:
    """After deleting all rows the schema remains, and fragment ids are not used again."""
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    dataset.truncate_table()
    assert dataset.to_table().num_rows == 0
    assert dataset.schema.names == ["a"]
    dataset.insert(pa.table({"a": [3]}))
    assert dataset.to_table().to_pydict() == {"a": [3]}
    assert dataset.fragment_ids() == [1]


def deletion_files(path: Path) -> set[str]:
    return {file.name for file in (path / "_deletions").iterdir()}


def referenced(path: Path) -> set[str]:
    """Return the names of the deletion files that some version refers to, as the reference sees them."""
    found = set()
    for version in lance.dataset(path).versions():
        for fragment in lance.dataset(path, version=version["version"]).get_fragments():
            name = fragment.deletion_file()
            if name is not None:
                found.add(Path(name).name)
    return found


def test_no_deletion_file_is_left_over(tmp_path: Path) -> None:
    """A delete that is refused, repeated, or rebased on another delete leaves no unused deletion file."""
    path = tmp_path / "d"
    lance_dataset.write_dataset(pa.table({"a": range(100)}), path)
    refused, again, merged = (lance_dataset.dataset(path) for _ in range(3))
    lance_dataset.dataset(path).delete("a = 5")
    with pytest.raises(lance_dataset.errors.CommitConflictError):
        refused.delete("a = 5 or a = 6", conflict_retries=0)
    assert deletion_files(path) == referenced(path)
    assert again.delete("a = 5 or a = 7") == {"num_deleted_rows": 1}
    assert deletion_files(path) == referenced(path)
    assert merged.delete("a = 8") == {"num_deleted_rows": 1}
    assert merged.version == 4
    assert deletion_files(path) == referenced(path)
    assert len(deletion_files(path)) == 3
    assert lance.dataset(path).to_table()["a"].to_pylist() == [n for n in range(100) if n not in (5, 7, 8)]


def test_retries(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    with pytest.raises(lance_dataset.errors.InvalidInputError, match="must not be negative"):
        dataset.delete("a = 1", conflict_retries=-1)
    for timeout in (5, "x"):
        with pytest.raises(TypeError, match="retry_timeout must be a datetime"):
            dataset.delete("a = 1", retry_timeout=timeout)  # type: ignore[arg-type]
    assert dataset.delete("a = 3", conflict_retries=None, retry_timeout=None) == {"num_deleted_rows": 0}
    assert dataset.delete("a = 1", conflict_retries=0) == {"num_deleted_rows": 1}


@pytest.mark.parametrize("predicate", [None, 5, b"a = 1", ["a = 1"]])
def test_predicate_is_text(tmp_path: Path, predicate: Any) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    fragment = dataset.get_fragments()[0]
    for change in (dataset.delete, fragment.delete):
        with pytest.raises(TypeError):
            change(predicate)
    if predicate is not None:
        for call in (lambda: dataset.update({"a": "1"}, predicate), lambda: dataset.to_table(filter=predicate)):
            with pytest.raises(TypeError, match="A filter is a string or a pyarrow expression"):
                call()
    assert dataset.version == 1


def test_dataset_that_was_replaced(tmp_path: Path) -> None:
    """A handle does not change a dataset that has replaced the one it shows."""
    path = tmp_path / "d"
    stale = lance_dataset.write_dataset(pa.table({"a": [1, 2, 3]}), path)
    assert stale.to_table().num_rows == 3  # the files are open now
    lance_dataset.LanceDataset.drop(path)
    lance.write_dataset(pa.table({"a": [7, 8, 9, 10]}), path, data_storage_version="2.0")
    for change in (lambda: stale.delete("a = 1"), stale.restore):
        with pytest.raises(lance_dataset.errors.CommitConflictError, match="was replaced") as caught:
            change()
        assert not caught.value.retryable
    assert deletion_files(path) == set()
    assert lance.dataset(path).version == 1
    stale.checkout_latest()
    assert stale.delete("a = 8") == {"num_deleted_rows": 1}
    assert lance.dataset(path).to_table()["a"].to_pylist() == [7, 9, 10]
