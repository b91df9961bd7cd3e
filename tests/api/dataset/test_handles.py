"""Handles: what they read again, what subclasses may change, what can be pickled."""

from __future__ import annotations

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import DatasetNotFoundError, VersionNotFoundError
from lance_dataset.fragment import FragmentSession

TABLE = pa.table({"id": range(10), "name": [str(number) for number in range(10)]})


def test_checking_out_the_version_shown_reads_it_again(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    shutil.rmtree(tmp_path / "d")
    with pytest.raises((DatasetNotFoundError, VersionNotFoundError)):
        dataset.checkout_version(1)
    lance_dataset.write_dataset(TABLE.slice(0, 4), tmp_path / "d")
    assert dataset.checkout_version(1).count_rows() == 4


class Counting(lance_dataset.LanceDataset):
    """A dataset that counts its scans, with a signature of its own."""

    scans = 0

    def scanner(self, columns: Any = None, **options: Any) -> Any:
        type(self).scans += 1
        return super().scanner(columns, **options)


def test_scans_call_the_scanner_of_a_subclass(tmp_path: Path) -> None:
    lance_dataset.write_dataset(TABLE, tmp_path / "d")
    dataset = Counting(tmp_path / "d")
    assert dataset.to_table() == TABLE
    assert dataset.to_table(["id"], "id < 3", 2).num_rows == 2
    assert sum(batch.num_rows for batch in dataset.to_batches(columns=["id"], batch_size=3)) == 10
    assert len(dataset.to_pandas(limit=3)) == 3
    assert Counting.scans == 4


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_sessions_of_fragments_can_be_copied(tmp_path: Path, copied: Any) -> None:
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "d")
    fragment = dataset.get_fragments()[0]
    for session in (fragment.open_session(["id"], with_row_address=True), FragmentSession(fragment, ["name"])):
        assert copied(session).take([3, 1]) == session.take([3, 1])
