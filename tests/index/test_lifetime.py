"""Lifetime of what is open of the indices of a dataset."""

from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path

import pyarrow as pa

import lance_dataset


def test_indices_are_freed_with_the_last_handle(tmp_path: Path) -> None:
    """Without the help of the garbage collector, so that files are not kept open for long."""
    dataset = lance_dataset.write_dataset(pa.table({"k": range(5000)}), tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    gc.collect()
    gc.disable()
    try:
        dataset = lance_dataset.dataset(tmp_path / "t", session=lance_dataset.Session())
        assert dataset.scanner(filter="k = 5", fast_search=True).count_rows() == 1
        session, reader = weakref.ref(dataset.snapshot.session), weakref.ref(dataset.snapshot.reader)
        del dataset
        assert session() is None
        assert reader() is None
    finally:
        gc.enable()


def test_scans_with_indices_survive_pickling(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"k": range(5000)}), tmp_path / "t")
    dataset.create_scalar_index("k", "BTREE")
    indices = pickle.loads(pickle.dumps(dataset.scanner(filter="k = 5")._asked.indices))
    gc.collect()
    (found,) = indices.by_value.values()
    assert found[0].name == "k_idx"
    assert found[0].fragment_ids == {0}
