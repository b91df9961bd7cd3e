"""Tests of system columns in scans, filters, takes and counts, compared with the reference; and of saved reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance as reference
import numpy as np
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset as lance
from lance_dataset.errors import MissingFileError, RowIndexError
from lance_dataset.io.resolve import resolve
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.table.manifest import encode_manifest, read_manifest
from lance_dataset.table.versions import locate_version

SYSTEM = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table after deletes, updates and an append."""
    path = str(tmp_path_factory.mktemp("system") / "t.lance")
    rows = pa.table({"a": np.arange(50), "s": [{"x": number, "y": str(number)} for number in range(50)]})
    dataset = reference.write_dataset(rows, path, enable_stable_row_ids=request.param, max_rows_per_file=10)
    dataset.delete("a in (2, 5, 11, 33) or (a > 38 and a < 44)")
    dataset.update({"a": "a + 100"}, where="a % 9 = 3")
    dataset.insert(rows.slice(0, 7))
    dataset.update({"a": "a + 100"}, where="a > 120")
    return path


# -- scans and takes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["a", *SYSTEM]},
        {"columns": SYSTEM[::-1]},
        {"columns": ["a", "_rowaddr", "_row_created_at_version"], "with_row_id": True, "include_deleted_rows": True},
        {"columns": ["_rowoffset", "a"], "limit": 7, "offset": 13},
        {"with_row_id": True, "with_row_address": True},
    ],
    ids=str,
)
def test_scans(table: str, options: dict[str, object]) -> None:
    assert_same(lance.dataset(table).to_table(**options), reference.dataset(table).to_table(**options))


@pytest.mark.parametrize("columns", [None, SYSTEM, ["_rowid", "a", "s.x"], {"b": "a + 1", "id": "_rowid"}], ids=str)
def test_takes(table: str, columns: object) -> None:
    rows = [0, 12, 3, 3, 40, 12]
    ours, theirs = lance.dataset(table), reference.dataset(table)
    assert_same(ours.take(rows, columns=columns), theirs.take(rows, columns=columns))
    ids = ours.to_table(columns=["_rowid"]).column(0).take(pa.array(rows)).to_pylist()
    assert_same(ours._take_rows(ids, columns=columns), theirs._take_rows(ids, columns=columns))
    assert_same(ours._take_rows(pa.array(ids), columns=columns), ours.take(rows, columns=columns))
    assert_same(ours._take_rows(np.array(ids), columns=columns, ignore_deletions=True), ours.take(rows, columns))


def test_ids_of_deleted_rows_give_nothing(table: str) -> None:
    ours, theirs = lance.dataset(table), reference.dataset(table)
    dead = 2
    for ids in ([dead], [0, dead, 1], []):
        assert_same(ours._take_rows(ids), theirs._take_rows(ids))
    if ours.has_stable_row_ids:
        for ids in ([2**64 - 1, 0, 77, 2**32], [2**63, 5, 6]):
            assert_same(ours._take_rows(ids), theirs._take_rows(ids))


@pytest.mark.parametrize(
    "ids", [[100], [0, 7 << 32], [2**64 - 1], [-1], [1.5], "x", None, [[1]], ["1"], [None]], ids=str
)
def test_ids_that_are_none(table: str, ids: object) -> None:
    """Invalid ids raise an exception that programs written for the reference catch."""
    ours, theirs = lance.dataset(table), reference.dataset(table)
    try:
        expected = theirs._take_rows(ids)
    except Exception as error:
        with pytest.raises(type(error)):
            ours._take_rows(ids)
    else:
        assert_same(ours._take_rows(ids), expected)


def test_take_without_columns(table: str) -> None:
    assert lance.dataset(table)._take_rows([0, 1, 0], columns=[]).num_rows == 3


def test_ignored_deletions(table: str) -> None:
    """If deletions are ignored, deleted rows return, and rows that moved are found at their new place.

    A deleted row can return only if a single fragment has its id.
    """
    dataset = lance.dataset(table)
    found = dataset._take_rows([2, 3, 0], ["a"], ignore_deletions=True)["a"].to_pylist()
    assert found == [2, 103, 0] if dataset.has_stable_row_ids else [2, 3, 0]


# -- filters -------------------------------------------------------------------------------------------------------

FILTERS = [
    "_rowid = 1",
    "1 = _rowid",
    "_rowid = 2",
    "_rowid = 3",
    "_rowid = 21",
    "_rowid = 1000000000000",
    "_rowid in (30, 3, 1, 2, 49, 3)",
    "_rowid not in (30, 3, 1, 2, 49, 3)",
    "_rowid in (1, null)",
    "_rowid = 1 and a = 1",
    "_rowid = 1 and a = 2",
    "_rowid = 1 or _rowid = 12 or _rowaddr = 4",
    "_rowid = 1 or a = 49",
    "_rowid in (1, 3, 4) and _rowaddr in (1, 4294967300)",
    "_rowid in (1, 3, 4) and not _rowid = 3",
    "_rowid in (1, 3, 4) and _rowid not in (3, 9)",
    "(_rowid = 1 or _rowid = 3) and a = 3",
    "_rowid in (1, 3, 4, 30) and a in (3, 30)",
    "_rowid = 3 and _rowid = _rowaddr",
    "not _rowid = 3",
    "_rowid > 40 and _rowid < 46",
    "_rowaddr = 1",
    "_rowaddr in (0, 4294967296, 4294967297, 99999999999999)",
    "_rowaddr = 5 or _rowaddr = 4294967298",
    "_rowoffset = 3",
    "_rowoffset in (0, 39, 1000) and a < 100",
    "_rowid is null",
    "_row_created_at_version = 1",
    "_row_last_updated_at_version = 3",
    "_row_last_updated_at_version > _row_created_at_version",
]


@pytest.mark.parametrize("text", FILTERS)
def test_filters(table: str, text: str) -> None:
    ours, theirs = lance.dataset(table), reference.dataset(table)
    columns = ["a", "_rowid", "_rowaddr"]
    expected = theirs.to_table(columns=columns, filter=text)
    assert_same(ours.to_table(columns=columns, filter=text), expected)
    assert ours.count_rows(text) == theirs.count_rows(text)
    everything = ours.to_table(columns=[*columns, *SYSTEM[2:]])
    assert_same(
        pa.Table.from_batches(ours.scanner(columns, text, batch_size=3).to_batches(), expected.schema), expected
    )
    assert_same(ours.to_table(columns=["a"], filter=text, limit=1, offset=1), expected.select(["a"]).slice(1, 1))
    assert_same(ours.to_table(columns=["a"], filter=text, order_by=["a"]), expected.sort_by("a").select(["a"]))
    assert everything.num_rows == ours.count_rows()
    for fragment in ours.get_fragments():
        mine = [row for row in expected.to_pylist() if row["_rowaddr"] >> 32 == fragment.fragment_id]
        assert fragment.to_table(columns=columns, filter=text).to_pylist() == mine
    deleted = {"with_row_id": True, "include_deleted_rows": True}
    mine = [row["_rowid"] for row in ours.to_table(columns=["a"], filter=text, **deleted).to_pylist()]
    assert [each for each in mine if each is not None] == expected["_rowid"].to_pylist()


def test_what_the_reference_refuses(table: str) -> None:
    """System columns can be used in any expression; the reference refuses some."""
    everything = reference.dataset(table).to_table(columns=SYSTEM).to_pylist()
    dataset = lance.dataset(table)
    found = dataset.to_table(columns=SYSTEM, filter="_rowoffset < 3 or _row_created_at_version + _rowoffset = 20")
    offsets = [row["_rowoffset"] for row in everything]
    assert found.to_pylist() == [
        row for row in everything if row["_rowoffset"] < 3 or row["_row_created_at_version"] + row["_rowoffset"] == 20
    ]
    text = "_row_created_at_version > 1 and _rowid in (50, 51, 3)"
    expected = [row for row in everything if row["_row_created_at_version"] > 1 and row["_rowid"] in (50, 51, 3)]
    assert dataset.to_table(columns=SYSTEM, filter=text).to_pylist() == expected
    computed = dataset.to_table(columns={"twice": "_rowid * 2", "at": "_rowoffset"})
    assert computed["at"].to_pylist() == offsets
    assert computed["twice"].to_pylist() == [row["_rowid"] * 2 for row in everything]


def _loses_files(path: str, keep: Callable[[int], bool]) -> None:
    for fragment in reference.dataset(path).get_fragments():
        if not keep(fragment.fragment_id):
            for file in fragment.data_files():
                (Path(path) / "data" / file.path).unlink()


@pytest.mark.parametrize("stable", [False, True])
def test_named_rows_are_all_that_is_read(tmp_path: Path, stable: bool) -> None:
    """Rows named by id are read without the files of other fragments."""
    path = str(tmp_path / "t.lance")
    reference.write_dataset(pa.table({"a": range(100)}), path, enable_stable_row_ids=stable, max_rows_per_file=10)
    _loses_files(path, lambda number: number == 4)
    dataset = lance.dataset(path)
    ids = [43, 47] if stable else [(4 << 32) + 3, (4 << 32) + 7]
    addresses = [(4 << 32) + 3, (4 << 32) + 7]
    for text in (
        f"_rowid in ({ids[0]}, {ids[1]})",
        f"_rowid = {ids[0]} or _rowid = {ids[1]}",
        f"_rowaddr in ({addresses[0]}, {addresses[1]})",
        "_rowoffset in (43, 47)",
        f"a > 3 and _rowid in ({ids[0]}, {ids[1]})",
    ):
        assert dataset.to_table(filter=text)["a"].to_pylist() == [43, 47], text
        assert dataset.count_rows(text) == 2
    assert dataset._take_rows(ids)["a"].to_pylist() == [43, 47]
    assert dataset.take([43])["a"].to_pylist() == [43]
    with pytest.raises(MissingFileError):
        dataset.to_table(filter="a in (43, 47)")
    assert dataset.delete(f"_rowid = {ids[0]}") == {"num_deleted_rows": 1}
    assert dataset.to_table(filter=f"_rowid in ({ids[0]}, {ids[1]})")["a"].to_pylist() == [47]


def test_listed_rows_in_the_order_of_the_scan(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(pa.table({"a": range(60)}), path, enable_stable_row_ids=True, max_rows_per_file=10)
    dataset.update({"a": "a + 100"}, where="a % 7 = 0")
    dataset.delete("a = 11")
    text = "_rowid in (3, 7, 11, 12, 14, 25, 26, 27, 51)"
    assert dataset.to_table(filter=text)["a"].to_pylist() == [3, 12, 25, 26, 27, 51, 107, 114]
    assert dataset.to_table(filter=text, offset=1, limit=3)["a"].to_pylist() == [12, 25, 26]
    fragments = dataset.get_fragments()
    some = [fragments[6], fragments[2], fragments[0]]
    assert dataset.scanner(filter=text, fragments=some).to_table()["a"].to_pylist() == [107, 114, 25, 26, 27, 3]
    twice = dataset.scanner(filter=text, fragments=[fragments[0], fragments[0]]).to_table()
    assert twice["a"].to_pylist() == [3, 3]
    batches = dataset.scanner(filter=text, batch_size=3, strict_batch_size=True).to_batches()
    assert [batch["a"].to_pylist() for batch in batches] == [[3, 12, 25], [26, 27, 51], [107, 114]]


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
def test_many_named_rows(tmp_path: Path, version: str) -> None:
    """Named rows in many places are fetched one by one, including the columns of the filter."""
    numbers = np.arange(20_000)
    rows = pa.table({"a": numbers, "t": [f"text {number}" for number in numbers]})
    dataset = lance.write_dataset(rows, tmp_path / "t.lance", data_storage_version=version, max_rows_per_file=15_000)
    dataset.delete("a % 100 = 7")
    wanted = np.arange(0, 20_000, 37)
    ids = (wanted // 15_000 << 32) + wanted % 15_000
    text = f"_rowid in ({', '.join(map(str, ids))}) and t != 'text 74' and a >= 37"
    expected = [number for number in wanted.tolist() if number % 100 != 7 and number not in (74, 0)]
    assert dataset.to_table(filter=text)["a"].to_pylist() == expected
    assert dataset.to_table(columns=["t"], filter=text)["t"].to_pylist() == [f"text {number}" for number in expected]
    assert dataset.count_rows(text) == len(expected)


def test_errors_are_not_hidden(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [0, 1, 2]}), tmp_path / "t.lance")
    with pytest.raises(Exception, match=r"(?i)divi"):
        dataset.to_table(filter="_rowid = 1 and 1 / a = 1")


def test_ranges_of_rows() -> None:
    rows = np.array([1, 2, 3, 9, 20])
    assert RowRanges.of_rows(rows).within(0, 100) == [(1, 4), (9, 10), (20, 21)]
    assert RowRanges.of_rows(rows[:0]).within(0, 100) == []
    assert RowRanges.of_rows(rows).intersection(RowRanges.of_rows(rows[:0])).within(0, 100) == []
    others = RowRanges(np.array([0, 3, 19]), np.array([2, 15, 30]))
    assert RowRanges.of_rows(rows).intersection(others).within(0, 100) == [(1, 2), (3, 4), (9, 10), (20, 21)]


# -- large numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fragment_id", [2**31 - 1, 2**31, 2**32 - 1])
def test_large_fragment_ids(tmp_path: Path, fragment_id: int) -> None:
    path = tmp_path / "t"
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table({"a": [1, 2, 3], "b": [b"x", b"yy", b"zzz"]}, pa.schema([pa.field("a", pa.int64()), blob]))
    lance.write_dataset(rows, path, data_storage_version="2.1")
    store, root = resolve(str(path))
    name = locate_version(store, root, 1)
    manifest = read_manifest(store, name)
    moved = replace(manifest, fragments=(replace(manifest.fragments[0], id=fragment_id),), max_fragment_id=fragment_id)
    store.put(name, encode_manifest(moved))
    dataset = lance.dataset(path)
    base = fragment_id << 32
    assert dataset._take_rows([base + 2, base], ["a"])["a"].to_pylist() == [3, 1]
    assert dataset.to_table(columns=["a"], filter=f"_rowid = {base + 1}")["a"].to_pylist() == [2]
    for selector in ({"ids": [base + 1]}, {"addresses": [base + 1]}, {"indices": [1]}):
        assert dataset.read_blobs("b", **selector) == [(base + 1, b"yy")]
        assert [file.read() for file in dataset.take_blobs("b", **selector)] == [b"yy"]
    with pytest.raises(RowIndexError):
        dataset._take_rows([base + 3])


# -- many fragments ------------------------------------------------------------------------------------------------


def test_one_row_of_many_fragments(tmp_path: Path) -> None:
    """A take from a few of many fragments makes readers for these fragments only."""
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": range(300)}), path, max_rows_per_file=1)
    dataset = lance.dataset(path)
    assert dataset.take([123, 7])["a"].to_pylist() == [123, 7]
    assert dataset._take_rows([5 << 32])["a"].to_pylist() == [5]
    assert sorted(dataset.snapshot.reader.fragments._known) == [5, 7, 123]
    assert dataset.to_table(columns=["_rowoffset"])["_rowoffset"].to_pylist() == list(range(300))


@pytest.mark.parametrize("order", ["forward", "backward"])
def test_rows_that_the_manifest_does_not_count(tmp_path: Path, order: str) -> None:
    """Fragments of old releases, without the number of deleted rows, are counted."""
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": range(40)}), path, max_rows_per_file=10).delete("a in (1, 12, 13, 35)")
    store, root = resolve(str(path))
    name = locate_version(store, root, 2)
    manifest = read_manifest(store, name)
    forgetful = tuple(
        each
        if each.deletion_file is None
        else replace(each, deletion_file=replace(each.deletion_file, num_deleted_rows=0))
        for each in manifest.fragments
    )
    store.put(name, encode_manifest(replace(manifest, fragments=forgetful)))
    dataset = lance.dataset(path)
    fragments = dataset.get_fragments()
    for fragment in fragments if order == "forward" else fragments[::-1]:
        assert fragment.to_table(columns=["_rowoffset", "a"]).num_rows == fragment.count_rows()
    found = dataset.to_table(columns=["_rowoffset", "a"])
    assert found["_rowoffset"].to_pylist() == list(range(36))
    assert dataset.take([10, 35])["a"].to_pylist() == [11, 39]
