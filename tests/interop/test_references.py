"""Tests of tags, branches and clones that one implementation makes and the other uses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.reference.both_read import assert_both_read
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import UnsafePathError

MODULES: dict[str, Any] = {"ours": lance_dataset, "reference": lance}
PAIRS = [("ours", "reference"), ("reference", "ours")]
CREATE = {
    "plain": {},
    "stable": {"enable_stable_row_ids": True},
    "v1_names": {"enable_v2_manifest_paths": False},
    "2.0": {"data_storage_version": "2.0"},
    "legacy": {"data_storage_version": "legacy"},
}
INDEX = "a_idx"


def rows(start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"a": numbers, "s": [f"text {each % 7}" for each in numbers]})


def make(path: Path, *, index: bool = False, **options: Any) -> Any:
    """Make two fragments of 100 rows, some deleted; optionally an index, which only the reference can make."""
    dataset = lance.write_dataset(rows(0, 100), path, **options)
    dataset = lance.write_dataset(rows(100, 100), path, mode="append")
    dataset.delete("a % 10 = 3")
    if index:
        dataset.create_scalar_index("a", "BTREE", name=INDEX)
    return dataset


def uses_index(dataset: Any) -> bool:
    return "ScalarIndexQuery" in dataset.scanner(filter="a = 42").explain_plan()


def ids(dataset: Any) -> list[int]:
    return sorted(dataset.to_table(columns=["a"])["a"].to_pylist())


@pytest.mark.parametrize(("maker", "user"), PAIRS)
@pytest.mark.parametrize("options", CREATE)
def test_branches(tmp_path: Path, maker: str, user: str, options: str) -> None:
    path = tmp_path / "t"
    make(path, **CREATE[options])
    first, second = MODULES[maker], MODULES[user]
    branch = first.dataset(path).create_branch("dev/x", 2)
    opened = second.dataset(path).checkout_version(("dev/x", None))
    assert opened.version == 2
    assert_both_read(branch.uri, rows(0, 200))
    second.write_dataset(rows(200, 50), opened, mode="append")
    second.dataset(path).checkout_version(("dev/x", None)).delete("a = 5 or a = 220")
    assert_both_read(branch.uri)
    branch.checkout_latest()
    branch.delete("a = 6 or a = 221")
    assert ids(second.dataset(path).checkout_version(("dev/x", None))) == sorted({*range(250)} - {5, 6, 220, 221})
    child = second.dataset(path).create_branch("child", ("dev/x", None))
    first.dataset(path).checkout_version(("child", None)).optimize.compact_files()
    assert ids(second.dataset(path).checkout_version(("child", None))) == ids(branch)
    assert_both_read(f"{path}/tree/child")
    for library in (first, second):
        with pytest.raises(OSError, match="child"):
            library.dataset(path).branches.delete("dev/x")
    second.dataset(path).branches.delete("child")
    first.dataset(path).branches.delete("dev/x")
    assert not list((path / "tree").rglob("*.manifest"))
    assert ids(second.dataset(path)) == [each for each in range(200) if each % 10 != 3]
    assert child.uri == f"{path}/tree/child"


@pytest.mark.parametrize(("maker", "user"), PAIRS)
def test_listings_agree(tmp_path: Path, maker: str, user: str) -> None:
    make(tmp_path / "t")
    dataset = MODULES[maker].dataset(tmp_path / "t")
    branch = dataset.create_branch("a/b", 1)
    branch.create_branch("c")
    dataset.create_branch("d", ("c", None))
    dataset.tags.create("one", 1)
    branch.tags.create("two")
    dataset.tags.replace_metadata("two", {"ä": "ö\n\"'"})
    dataset.branches.replace_metadata("c", {"k": "v"})
    dataset.tags.update("one", ("d", None))
    other = MODULES[user].dataset(tmp_path / "t")
    assert other.branches.list() == dataset.branches.list()
    assert other.branches.list_ordered("asc") == dataset.branches.list_ordered("asc")
    assert other.tags.list() == dataset.tags.list()
    assert other.tags.list_ordered() == dataset.tags.list_ordered()
    other.tags.update("one", 2)
    other.tags.replace_metadata("two", {})
    other.branches.replace_metadata("a/b", {"x": "y"})
    assert other.branches.list() == dataset.branches.list()
    assert other.tags.list() == dataset.tags.list()
    dataset.tags.delete("two")
    for name in ("d", "c", "a/b"):
        other.branches.delete(name)
    assert dataset.branches.list() == {}
    assert list(other.tags.list()) == ["one"]


@pytest.mark.parametrize("kind", ["shallow_clone", "deep_clone"])
@pytest.mark.parametrize(("maker", "user"), PAIRS)
@pytest.mark.parametrize("options", CREATE)
def test_clones(tmp_path: Path, maker: str, user: str, options: str, kind: str) -> None:
    source = make(tmp_path / "t", **CREATE[options])
    first, second = MODULES[maker], MODULES[user]
    getattr(first.dataset(tmp_path / "t"), kind)(tmp_path / "c", 3)
    assert_both_read(tmp_path / "c", source.to_table())
    second.dataset(tmp_path / "c").delete("a = 5")
    second.write_dataset(rows(200, 10), tmp_path / "c", mode="append")
    first.dataset(tmp_path / "c").delete("a = 6 or a = 205")
    assert_both_read(tmp_path / "c")
    nested = getattr(second.dataset(tmp_path / "c"), kind)(tmp_path / "c2", 6)
    first.dataset(tmp_path / "c2").optimize.compact_files()
    expected = [each for each in range(210) if each not in (5, 6, 205) and (each >= 200 or each % 10 != 3)]
    assert ids(second.dataset(tmp_path / "c2")) == ids(first.dataset(tmp_path / "c")) == expected
    assert_both_read(tmp_path / "c2")
    assert nested.version == 6
    assert_same(lance.dataset(tmp_path / "t").to_table(), source.to_table())


@pytest.mark.parametrize("options", ["plain", "stable"])
def test_indices_come_along(tmp_path: Path, options: str) -> None:
    source = make(tmp_path / "t", index=True, **CREATE[options])
    assert uses_index(source)
    ours = lance_dataset.dataset(tmp_path / "t")
    branch = ours.create_branch("dev")
    ours.shallow_clone(tmp_path / "s", None)
    branch.shallow_clone(tmp_path / "n", None)
    lance_dataset.dataset(tmp_path / "n").deep_clone(tmp_path / "d", None)
    for path, base_id in ((Path(branch.uri), 0), (tmp_path / "s", 0), (tmp_path / "n", 0), (tmp_path / "d", None)):
        clone = lance.dataset(path)
        assert [(each["name"], each["base_id"]) for each in clone.list_indices()] == [(INDEX, base_id)]
        assert uses_index(clone)
        assert clone.to_table(filter="a = 42")["a"].to_pylist() == [42]
        assert clone.stats.index_stats(INDEX)["num_indexed_rows"] == source.stats.index_stats(INDEX)["num_indexed_rows"]
        lance_dataset.write_dataset(rows(200, 10), path, mode="append")
        lance_dataset.dataset(path).delete("a = 42")
        clone = lance.dataset(path)
        assert clone.to_table(filter="a = 42 or a = 205")["a"].to_pylist() == [205]
        clone.optimize.optimize_indices()
        clone.optimize.compact_files()
        clone = lance.dataset(path)
        assert clone.to_table(filter="a = 41 or a = 205")["a"].to_pylist() == [41, 205]
        assert ids(lance_dataset.dataset(path)) == ids(clone)
    assert_same(lance.dataset(tmp_path / "t").to_table(), source.to_table())
    assert uses_index(lance.dataset(tmp_path / "t"))


def test_clone_of_a_table_opened_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference notes the path as it is, which means another place elsewhere; so the user has to confirm it."""
    source = make(tmp_path / "t")
    monkeypatch.chdir(tmp_path)
    lance.dataset("t").shallow_clone("c", 3)
    with pytest.raises(UnsafePathError, match=r"is relative.*trusted_bases=\['.*/t'\]"):
        lance_dataset.dataset("c").to_table()
    opened = lance_dataset.dataset("c", trusted_bases=[tmp_path])
    assert_same(opened.to_table(), source.to_table())
    assert_same(opened.deep_clone("d", None).to_table(), source.to_table())


@pytest.mark.parametrize("uri", ["t", "./t", "~/t", "x/t", "x/t/"])
def test_branches_of_a_table_opened_by_a_relative_path(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They can only mean the table that they lie in, from every working directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / uri.removeprefix("~/")
    source = make(path)
    lance.dataset(uri).create_branch("b/c").create_branch("d")
    monkeypatch.chdir("/")
    for trusted in (None, []):
        for name in ("b/c", "d"):
            opened = lance_dataset.dataset(path, trusted_bases=trusted).checkout_version((name, None))
            assert_same(opened.to_table(), source.to_table())
    assert_same(lance_dataset.dataset(path / "tree/d").to_table(), source.to_table())


def test_large_blobs_come_along(tmp_path: Path) -> None:
    """Blobs in separate files beside a data file are part of clones."""
    values = [os.urandom(200_000), b"short", os.urandom(5_000_000)]
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
    table = pa.table({"id": pa.array(range(3)), "b": lance.blob_array(values)}, schema=schema)
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2")
    source = lance_dataset.dataset(tmp_path / "t")
    source.deep_clone(tmp_path / "d", None)
    source.shallow_clone(tmp_path / "s", None)
    for name in ("d", "s"):
        blobs = lance.dataset(tmp_path / name).take_blobs("b", indices=[0, 1, 2])
        assert [blob.read() for blob in blobs] == values


def test_what_the_reference_leaves_of_a_branch(tmp_path: Path) -> None:
    """A branch that the reference deleted only in part can be deleted and created again.

    The reference keeps the table of a branch if another branch is below it, and cannot create the branch again.
    """
    source = make(tmp_path / "t")
    source.create_branch("dev")
    source.create_branch("dev/x")
    source.branches.delete("dev")
    ours = lance_dataset.dataset(tmp_path / "t")
    with pytest.raises(OSError, match=r"branches\.delete"):
        ours.create_branch("dev", 1)
    ours.branches.delete("dev")
    ours.create_branch("dev", 1)
    assert lance.dataset(tmp_path / "t").checkout_version(("dev", None)).count_rows() == 100
    assert lance.dataset(tmp_path / "t").checkout_version(("dev/x", None)).count_rows() == 180
