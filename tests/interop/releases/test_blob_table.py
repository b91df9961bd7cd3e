"""Tests of blob columns that releases around 0.20 stored in a second table; no later release reads them.

The fixture was written by pylance 0.20.0: ten rows written and appended again, of which those with i = 3 were deleted.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lance_dataset as lance
from lance_dataset.errors import MissingFileError

DATASET = Path(__file__).parents[2] / "fixtures" / "blob_table" / "pylance-0.20.0.lance"
NUMBERS = [i for _ in range(2) for i in range(10) if i != 3]


def value(i: int) -> bytes | None:
    return b"%d" % i * i if i % 4 else None


@pytest.mark.parametrize("mapped", ["true", "false"])
def test_scan_and_take(mapped: str) -> None:
    dataset = lance.dataset(DATASET, storage_options={"mmap": mapped})
    expected = [value(i) for i in NUMBERS]
    assert dataset.to_table().to_pydict() == {"i": NUMBERS, "b": expected}
    assert [batch.num_rows for batch in dataset.to_batches(columns=["b"], batch_size=5)] != []
    assert dataset.take([17, 0, 4, 4], columns=["b"])["b"].to_pylist() == [expected[row] for row in (17, 0, 4, 4)]
    assert dataset.to_table(filter="b = X'31'", columns=["i"])["i"].to_pylist() == [1, 1]
    assert dataset.count_rows("b IS NULL") == expected.count(None)


def test_earlier_version() -> None:
    """Each version uses the version of the second table that it names."""
    table = lance.dataset(DATASET, version=1).to_table()
    assert table.to_pydict() == {"i": list(range(10)), "b": [value(i) for i in range(10)]}


def test_second_table_is_missing(tmp_path: Path) -> None:
    shutil.copytree(DATASET, tmp_path / "t")
    shutil.rmtree(tmp_path / "t" / "_blobs")
    dataset = lance.dataset(tmp_path / "t")
    assert dataset.to_table(columns=["i"])["i"].to_pylist() == NUMBERS
    with pytest.raises(MissingFileError, match="blob columns of the dataset lie in version"):
        dataset.to_table()


def test_commits_keep_the_second_table(tmp_path: Path) -> None:
    shutil.copytree(DATASET, tmp_path / "t")
    dataset = lance.dataset(tmp_path / "t")
    dataset.delete("i = 5")
    left = [i for i in NUMBERS if i != 5]
    assert lance.dataset(tmp_path / "t").to_table().to_pydict() == {"i": left, "b": [value(i) for i in left]}
