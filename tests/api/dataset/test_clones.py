"""Tests of shallow and deep clones: content, where their changes are written, and clean-up after a failed clone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InvalidInputError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.table.operations import Clone
from lance_dataset.table.transaction import read_transaction

CREATE = {"plain": {}, "stable": {"enable_stable_row_ids": True}, "legacy": {"data_storage_version": "legacy"}}


def make(path: Any, **options: Any) -> Any:
    """Write versions 1 to 4: two fragments of ten rows, one deletion, a setting."""
    lance_dataset.write_dataset(pa.table({"a": range(10), "s": list("abcdefghij")}), path, **options)
    part = pa.table({"a": range(10, 20), "s": list("abcdefghij")})
    dataset = lance_dataset.write_dataset(part, path, mode="append", session=options.get("session"))
    dataset.delete("a = 3 or a = 14")
    return dataset


def files(root: Any) -> set[str]:
    return {str(path.relative_to(root)) for path in Path(root).rglob("*") if path.is_file()}


def state(root: Any) -> dict[str, tuple[bytes, int]]:
    """Return the contents and modification times of all files in a folder."""
    return {name: (Path(root, name).read_bytes(), Path(root, name).stat().st_mtime_ns) for name in files(root)}


@pytest.mark.parametrize("options", CREATE)
@pytest.mark.parametrize("deep", [False, True])
def test_clones_hold_the_same(tmp_path: Path, options: str, deep: bool) -> None:
    source = make(tmp_path / "t", **CREATE[options])
    before = state(tmp_path / "t")
    clone = (source.deep_clone if deep else source.shallow_clone)(tmp_path / "c", 3)
    system = {"with_row_id": True, "with_row_address": True}
    assert (clone.version, clone.uri) == (3, str(tmp_path / "c"))
    assert_same(clone.to_table(**system), source.to_table(**system))
    assert_same(lance.dataset(tmp_path / "c").to_table(**system), source.to_table(**system))
    assert clone.version_refs() == [{"version": 3}]
    assert clone.has_stable_row_ids == source.has_stable_row_ids
    assert clone.data_storage_version == source.data_storage_version
    made = read_transaction(clone.snapshot.store, clone.snapshot.root, clone.snapshot.manifest)
    assert made is not None
    assert (made.read_version, made.operation) == (3, Clone(not deep, 3, str(tmp_path / "t")))
    assert bool([name for name in files(tmp_path / "c") if name.startswith(("data", "_deletions"))]) == deep
    assert state(tmp_path / "t") == before
    clone.validate()


@pytest.mark.parametrize("options", ["plain", "stable"])
def test_changes_go_to_the_clone(tmp_path: Path, options: str) -> None:
    source = make(tmp_path / "t", **CREATE[options])
    rows = source.to_table()
    before = state(tmp_path / "t")
    clone = source.shallow_clone(tmp_path / "c", 3)
    clone.delete("a = 5")
    clone.insert(pa.table({"a": range(50, 60), "s": list("abcdefghij")}))
    clone.delete("a = 55 or a = 12")
    expected = [each for each in [*range(20), *range(50, 60)] if each not in (3, 14, 5, 55, 12)]
    assert clone.to_table()["a"].to_pylist() == expected
    assert_same(lance.dataset(tmp_path / "c").to_table(), clone.to_table())
    clone.optimize.compact_files()
    assert sorted(clone.to_table()["a"].to_pylist()) == expected
    assert_same(lance.dataset(tmp_path / "c").to_table(), clone.to_table())
    assert {file.base_id for each in clone.snapshot.manifest.fragments for file in each.files} == {None}
    assert clone.checkout_version(3).count_rows() == 18
    clone.checkout_version(3).restore()
    assert_same(lance_dataset.dataset(tmp_path / "c").to_table(), rows)
    lance_dataset.write_dataset(pa.table({"z": [1]}), tmp_path / "c", mode="overwrite")
    assert state(tmp_path / "t") == before


def test_concurrent_deletes_on_a_clone(tmp_path: Path) -> None:
    """Concurrent deletes on a clone merge deletion files that lie in the source and in the clone."""
    source = make(tmp_path / "t")
    before = state(tmp_path / "t")
    clone = source.shallow_clone(tmp_path / "c", 3)
    other = lance_dataset.dataset(tmp_path / "c")
    clone.delete("a = 1")
    other.delete("a = 2")
    assert other.to_table()["a"].to_pylist() == [0, *range(4, 14), *range(15, 20)]
    assert_same(lance.dataset(tmp_path / "c").to_table(), other.to_table())
    assert state(tmp_path / "t") == before


def test_clones_of_clones_and_branches(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    branch = source.create_branch("dev", 3)
    lance_dataset.write_dataset(pa.table({"a": [100], "s": ["x"]}), branch, mode="append")
    first = source.shallow_clone(tmp_path / "c1", ("dev", None))
    assert [(base.path, base.name) for base in first.snapshot.manifest.base_paths] == [
        (str(tmp_path / "t"), None),
        (str(tmp_path / "t/tree/dev"), "dev"),
    ]
    first.delete("a = 100 or a = 1")
    inner = first.create_branch("dev")
    inner.delete("a = 2")
    second = inner.shallow_clone(tmp_path / "c2", None)
    second.delete("a = 7")
    third = second.deep_clone(tmp_path / "c3", None)
    expected = [each for each in range(20) if each not in (3, 14, 1, 2, 7)]
    for path in ("c2", "c3"):
        assert lance_dataset.dataset(tmp_path / path).to_table()["a"].to_pylist() == expected
        assert lance.dataset(tmp_path / path).to_table()["a"].to_pylist() == expected
    assert third.snapshot.manifest.base_paths == ()
    shutil.rmtree(tmp_path / "t")
    shutil.rmtree(tmp_path / "c1")
    assert lance_dataset.dataset(tmp_path / "c3").to_table()["a"].to_pylist() == expected
    with pytest.raises(MissingFileError):
        lance_dataset.dataset(tmp_path / "c2").to_table()


def test_references_to_clone(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    source.tags.create("two", 2)
    source.create_branch("dev", 1)
    cases = {2: 20, "two": 20, ("dev", None): 10, ("main", 1): 10, (None, None): 18, None: 18}
    for number, (reference, rows) in enumerate(cases.items()):
        assert source.shallow_clone(tmp_path / f"s{number}", reference).count_rows() == rows
        assert source.deep_clone(tmp_path / f"d{number}", reference).count_rows() == rows
    for reference in (99, "nope", ("nope", None), ("dev", 2)):
        for call in (source.shallow_clone, source.deep_clone):
            with pytest.raises(VersionNotFoundError):
                call(tmp_path / "x", reference)
    with pytest.raises(InvalidInputError):
        source.shallow_clone(tmp_path / "x", 1.5)
    assert not (tmp_path / "x").exists()


def test_settings_come_along_but_not_tags(tmp_path: Path) -> None:
    theirs = lance.write_dataset(pa.table({"a": [1]}).replace_schema_metadata({"k": "v"}), tmp_path / "t")
    theirs.update_config({"x": "y"})
    theirs.update_metadata({"note": "here"})
    theirs.tags.create("t")
    source = lance_dataset.dataset(tmp_path / "t")
    for clone in (source.shallow_clone(tmp_path / "s", None), source.deep_clone(tmp_path / "d", None)):
        assert (clone.config(), clone.metadata, clone.schema_metadata) == ({"x": "y"}, {"note": "here"}, {"k": "v"})
        assert clone.schema.equals(source.schema, check_metadata=True)
        assert clone.tags.list() == {}
        reference = lance.dataset(clone.uri)
        assert (reference.config(), reference.metadata) == ({"x": "y"}, {"note": "here"})


@pytest.mark.parametrize("deep", [False, True])
def test_there_is_a_dataset_already(tmp_path: Path, deep: bool) -> None:
    source = make(tmp_path / "t")
    other = make(tmp_path / "c")
    before = state(tmp_path / "c")
    with pytest.raises(AlreadyExistsError, match="Dataset already exists"):
        (source.deep_clone if deep else source.shallow_clone)(other.uri, 1)
    assert state(tmp_path / "c") == before


def test_a_deep_clone_that_fails_leaves_nothing(tmp_path: Path) -> None:
    source = make(tmp_path / "t")
    path = tmp_path / "t" / "data" / source.snapshot.manifest.fragments[1].files[0].path
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(CorruptFileError):
        source.deep_clone(tmp_path / "c", None)
    path.unlink()
    with pytest.raises(MissingFileError):
        source.deep_clone(tmp_path / "c", None)
    assert files(tmp_path / "c") == set()
    path.write_bytes(content)
    assert_same(source.deep_clone(tmp_path / "c", None).to_table(), source.to_table())


@pytest.mark.parametrize("memory", [False, True])
def test_a_deep_clone_goes_on_after_one_that_was_stopped(tmp_path: Path, memory: bool) -> None:
    options: dict[str, Any] = {"session": lance_dataset.Session()} if memory else {}
    source = make("memory://t" if memory else tmp_path / "t", **options)
    data = tmp_path / "c" / "data"
    data.mkdir(parents=True)
    (data / source.snapshot.manifest.fragments[0].files[0].path).write_bytes(b"half of it")
    clone = source.deep_clone(tmp_path / "c", None)
    assert_same(clone.to_table(), source.to_table())
    clone.validate()


def test_stores(tmp_path: Path) -> None:
    session = lance_dataset.Session()
    rows = make(tmp_path / "t").to_table()
    local = lance_dataset.dataset(tmp_path / "t", session=session)
    shallow = local.shallow_clone("memory://shallow", None)
    deep = local.deep_clone("memory://deep", None)
    for clone in (shallow, deep):
        assert_same(clone.to_table(), rows)
        clone.delete("a = 0")
    again = lance_dataset.dataset("memory://shallow", session=session).shallow_clone("memory://again", None)
    assert again.count_rows() == 17
    again.delete("a = 1")
    again.optimize.compact_files()
    with pytest.raises(UnsupportedError, match="deep_clone"):
        again.shallow_clone(tmp_path / "x", None)
    assert not (tmp_path / "x").exists()
    back = again.deep_clone(tmp_path / "back", None)
    assert_same(lance.dataset(tmp_path / "back").to_table(), again.to_table())
    assert back.count_rows() == 16
    other = lance_dataset.Session()
    with pytest.raises(UnsupportedError):
        again.shallow_clone("memory://other", None, session=other)
    moved = again.deep_clone("memory://again", None, session=other)
    assert_same(moved.to_table(), again.to_table())
    assert moved.session() is other


def test_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "with space")
    monkeypatch.chdir(tmp_path)
    for number, uri in enumerate(["with space", (tmp_path / "with space").as_uri(), "./with space/"]):
        clone = lance_dataset.dataset(uri).shallow_clone(f"c{number}", 3)
        assert [base.path for base in clone.snapshot.manifest.base_paths] == [str(tmp_path / "with space")]
        assert clone.uri == f"c{number}"
    monkeypatch.chdir("/")
    assert lance.dataset(tmp_path / "c1").count_rows() == 18
    assert lance_dataset.dataset(tmp_path / "c2").count_rows() == 18


def test_blob_columns(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [os.urandom(100_000), b"", None, b"x" * 50]
    table = pa.table([pa.array(values, pa.large_binary())], schema=pa.schema([field]))
    source = lance_dataset.write_dataset(table, tmp_path / "t", data_storage_version="2.1")
    for clone in (source.shallow_clone(tmp_path / "s", None), source.deep_clone(tmp_path / "d", None)):
        assert clone.to_table(blob_handling="all_binary") == source.to_table(blob_handling="all_binary")
        assert [blob and blob.read() for blob in clone.take_blobs("b", indices=[0, 3])] == [values[0], values[3]]


def test_base_paths_from_files_are_checked(tmp_path: Path) -> None:
    from dataclasses import replace

    from lance_dataset.table.manifest import BasePath, encode_manifest

    source = make(tmp_path / "t")
    clone = source.shallow_clone(tmp_path / "c", None)
    for path in ("", "a\0b"):
        bad = replace(clone.snapshot.manifest, base_paths=(BasePath(0, path, None, True),))
        Path(clone.snapshot.manifest.path).write_bytes(encode_manifest(bad))
        with pytest.raises(CorruptFileError, match="base path 0"):
            lance_dataset.dataset(tmp_path / "c").to_table()


def test_listing_files_in_an_unknown_base_path(tmp_path: Path) -> None:
    from dataclasses import replace

    from lance_dataset.table.manifest import encode_manifest

    clone = make(tmp_path / "t").shallow_clone(tmp_path / "c", None)
    Path(clone.snapshot.manifest.path).write_bytes(encode_manifest(replace(clone.snapshot.manifest, base_paths=())))
    with pytest.raises(CorruptFileError, match="base path"):
        lance_dataset.dataset(tmp_path / "c").tracked_files().read_all()


def test_many_files(tmp_path: Path) -> None:
    source = lance_dataset.write_dataset(pa.table({"a": range(400)}), tmp_path / "t", max_rows_per_file=10)
    source.delete("a % 7 = 0")
    clone = source.deep_clone(tmp_path / "c", None)
    assert_same(clone.to_table(), source.to_table())
    assert_same(lance.dataset(tmp_path / "c").to_table(), source.to_table())


def test_files_of_one_name_in_two_places(tmp_path: Path) -> None:
    from dataclasses import replace

    from lance_dataset.table.manifest import encode_manifest

    source = make(tmp_path / "t")
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    clone = source.shallow_clone(tmp_path / "c", None)
    first, second = clone.snapshot.manifest.fragments
    base = replace(clone.snapshot.manifest.base_paths[0], id=7, path=str(tmp_path / "copy"))
    moved = replace(second, files=tuple(replace(file, base_id=7, path=first.files[0].path) for file in second.files))
    changed = replace(
        clone.snapshot.manifest, fragments=(first, moved), base_paths=(*clone.snapshot.manifest.base_paths, base)
    )
    Path(clone.snapshot.manifest.path).write_bytes(encode_manifest(changed))
    with pytest.raises(CorruptFileError, match="same name"):
        lance_dataset.dataset(tmp_path / "c").deep_clone(tmp_path / "d", None)
    assert not (tmp_path / "d").exists()
