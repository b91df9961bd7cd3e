"""Deletes: the same sequence on copies of one dataset, next to the reference."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from differential import Outcome, assert_same_outcome, build_table

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
    """Same counts, rows and versions; the other library reads what each wrote."""
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
    """The schema survives, fragment ids are not used again."""
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    dataset.truncate_table()
    assert dataset.to_table().num_rows == 0
    assert dataset.schema.names == ["a"]
    dataset.insert(pa.table({"a": [3]}))
    assert dataset.to_table().to_pydict() == {"a": [3]}
    assert dataset.fragment_ids() == [1]
