"""Tests of `LanceFragment.open_session`, and of other ways to get a fragment."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import LanceFragment
from lance_dataset.errors import RowIndexError


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return the second fragment of a dataset, of 20 rows with two deleted, in both libraries."""
    path = tmp_path_factory.mktemp("session") / "t.lance"
    table = pa.table(
        {"id": range(30), "name": [f"n{n}" for n in range(30)], "s": [{"a": n, "b": None} for n in range(30)]}
    )
    lance.write_dataset(table.slice(0, 10), path)
    lance.write_dataset(table.slice(10), path, mode="append").delete("id IN (10, 15)")
    return lance_dataset.dataset(path).get_fragments()[1], lance.dataset(path).get_fragments()[1]


@pytest.mark.parametrize("rows", [[0, 1, 2], [5, 17], [], [3, 3, 9], np.array([2, 4]), pa.array([1])])
@pytest.mark.parametrize(
    "arguments", [(), (["id"],), (["name", "id"], True), (["s.a"],), ([], True), (None, True), (["s", "id"], False)]
)
def test_takes(pair: tuple[Any, Any], arguments: tuple[Any, ...], rows: Any) -> None:
    ours, theirs = (each.open_session(*arguments).take(rows) for each in pair)
    assert ours.to_pydict() == theirs.to_pydict()
    assert ours.schema == theirs.schema


def test_any_order(pair: tuple[Any, Any]) -> None:
    """Rows may be requested in any order; the reference refuses unsorted ones."""
    session = pair[0].open_session(["id"], with_row_address=True)
    for rows in ([9, 0, 9], [17, 4]):
        assert session.take(rows).to_pydict() == pair[0].take(rows, ["id", "_rowaddr"]).to_pydict()
    assert "columns=['id', '_rowaddr']" in repr(session)


def test_wrong_arguments(pair: tuple[Any, Any]) -> None:
    for fragment in pair:
        with pytest.raises(OSError, match="zz"):
            fragment.open_session(["zz"])
        with pytest.raises(TypeError):
            fragment.open_session({"y": "id"})
        session = fragment.open_session(["id"])
        with pytest.raises(OSError):
            session.take([18])
        with pytest.raises(OverflowError):
            session.take([-1])
        with pytest.raises(TypeError):
            session.take("x")
    with pytest.raises(RowIndexError, match="18 rows"):
        pair[0].open_session().take([18])


def test_a_session_stays_with_its_version(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(pa.table({"id": range(5)}), tmp_path / "t.lance")
    session = dataset.get_fragments()[0].open_session()
    dataset.delete("id = 0")
    assert session.take([0])["id"].to_pylist() == [0]
    assert dataset.get_fragments()[0].open_session().take([0])["id"].to_pylist() == [1]


def test_blob_columns_come_as_values(tmp_path: Path) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"one", None, b""], pa.large_binary())], pa.schema([blob]))
    lance.write_dataset(table, tmp_path / "t.lance", data_storage_version="2.1")
    fragment = lance_dataset.dataset(tmp_path / "t.lance").get_fragments()[0]
    assert fragment.open_session().take([2, 0, 1])["b"].to_pylist() == [b"", b"one", None]


def test_making_a_handle(pair: tuple[Any, Any]) -> None:
    fragment = pair[0]
    dataset = lance_dataset.dataset(pair[1]._ds.uri)
    for made in (
        LanceFragment(dataset, 1),
        LanceFragment(dataset, np.int64(1)),
        LanceFragment(dataset, None, fragment=fragment),
        LanceFragment(dataset, 0, fragment=fragment),
        pickle.loads(pickle.dumps(fragment)),
    ):
        assert made.fragment_id == 1
        assert made.count_rows() == 18
    with pytest.raises(ValueError, match="Either fragment or fragment_id must be specified"):
        LanceFragment(dataset, None)
    with pytest.raises(ValueError, match="no fragment 9"):
        LanceFragment(dataset, 9)
    with pytest.raises(TypeError):
        LanceFragment(dataset, "1")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        LanceFragment(dataset, None, fragment=1)  # type: ignore[arg-type]


def test_row_addresses_of_rewritten_fragments(pair: tuple[Any, Any]) -> None:
    for fragment, dataset in zip(
        pair, (lance_dataset.dataset(pair[1]._ds.uri), lance.dataset(pair[1]._ds.uri)), strict=True
    ):
        assert dataset.remap_row_addrs(pa.array([0, 1 << 32], pa.uint64())) is None
        with pytest.raises(TypeError):
            dataset.remap_row_addrs([0])
        assert fragment.validate() is None
        assert dataset.validate() is None
        assert dataset.latest_storage_options() is None
        assert dataset.storage_options_accessor is None
