"""Tests of dropping a table: its files go, those of others stay."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.table.dropping import foreign_paths

ROWS = pa.table({"a": [1, 2]})


def test_files_of_others_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    notes = {"docs/thesis.txt", "data/notes.csv", "data/sub/x.txt", "tree/oak.txt", "readme", "tree/oaks/data/x.lance"}
    for name in notes:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
    dataset = lance_dataset.write_dataset(ROWS, home)
    lance_dataset.write_dataset(ROWS, home / "data" / "other")
    branch = dataset.create_branch("trial/one")
    branch.insert(ROWS)
    branch.delete("a = 1")
    dataset.tags.create("first", 1)
    with caplog.at_level(logging.WARNING):
        lance_dataset.LanceDataset.drop(home)
    left = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert {path for path in left if not path.startswith("data/other/")} == notes
    assert lance_dataset.dataset(home / "data" / "other").count_rows() == 2
    assert "docs/thesis.txt" in caplog.text
    with pytest.raises(ValueError, match="was not found"):
        lance_dataset.dataset(home)
    assert not (home / "_versions").exists()
    assert not (home / "tree" / "trial").exists()
    assert lance_dataset.write_dataset(ROWS, home).count_rows() == 2


def test_nothing_else_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lance_dataset.write_dataset(ROWS, tmp_path / "d").delete("a = 1")
    lance_dataset.LanceDataset.drop(tmp_path / "d")
    assert not (tmp_path / "d").exists()
    assert caplog.text == ""


def test_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    session = lance_dataset.Session()
    dataset = lance_dataset.write_dataset(ROWS, "memory://d", session=session)
    store, root = dataset.snapshot.location.store, dataset.snapshot.location.root
    store.put(f"{root}/other/file", b"mine")
    from lance_dataset.table.dropping import drop_table

    assert drop_table(store, root) == ["other/file"]
    assert [info.path for info in store.list_tree(root)] == [f"{root}/other/file"]


def test_what_belongs_to_a_table() -> None:
    own = [
        *("data/a.lance", "data/a/00.blob", "data/.tmp_x", "_versions/1.manifest", "_latest.manifest", ".tmp_1"),
        *("_refs/tags/x.json", "_mem_wal/u/hex_gen_1/_versions/1.manifest", "_indices/u/page.lance"),
        *("tree/b/data/x.lance", "tree/b/_versions/1.manifest", "tree/b/c/_versions/1.manifest", "tree/r/data/x.lance"),
    ]
    foreign = [
        *("x", "data/a.parquet", "data/in/_versions/1.manifest", "data/in/data/a.lance", "tree/z/data/x.lance"),
        *("tree/b/x", "tree/b/data/in/_versions/1.manifest", "tree/b/data/in/data/a.lance", "other.lance"),
    ]
    assert foreign_paths([*own, *foreign], ["r"]) == sorted(foreign)


def test_creating_beside_other_files_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    lance_dataset.write_dataset(pa.table({"a": [1]}), tmp_path)
    assert f"{tmp_path} is created in a folder that has other files: thesis.txt" in caplog.text
    caplog.clear()
    lance_dataset.write_dataset(pa.table({"a": [1]}), tmp_path, mode="append")
    lance_dataset.write_dataset(pa.table({"a": [1]}), tmp_path / "empty" / "new.lance")
    assert not caplog.text
