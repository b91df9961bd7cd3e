"""Folders with links that lead elsewhere: nothing outside of a dataset is changed, removed or copied."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance as pylance
import pyarrow as pa
import pytest

import lance_dataset as lance
from lance_dataset.errors import CorruptFileError, DatasetNotFoundError, MissingFileError, UnsafePathError
from lance_dataset.io import anchored
from lance_dataset.io.local import LocalStore
from lance_dataset.table.protocol import DirectProtocol
from lance_dataset.table.references.names import TABLE_FOLDERS

ROWS = pa.table({"a": range(10)})
EVERYTHING = {"older_than": dt.timedelta(0), "delete_unverified": True}
FOLDERS = ("data", "_versions", "_transactions", "_deletions", "_indices", "_fri")


@pytest.fixture(params=["descriptors", "paths"], autouse=True)
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run every test with the calls relative to open folders, and as on systems that do not have them."""
    monkeypatch.setattr(anchored, "HAS_FOLDER_CALLS", request.param == "descriptors")
    return str(request.param)


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Folder of somebody else with old files of all kinds, which is the same after the test."""
    folder = tmp_path / "outside"
    lance.write_dataset(ROWS, folder)
    lance.write_dataset(ROWS, folder, mode="overwrite")
    for name in ("secret", "secret.lance", "secret.arrow", "secret.txn", "sub/deep.lance", "secret.manifest"):
        for place in (folder, folder / "data"):
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(b"private")
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))
    before = tree(folder)
    yield folder
    assert tree(folder) == before


def table(folder: Path) -> Path:
    made = lance.write_dataset(ROWS, folder, max_rows_per_file=5)
    made.delete("a = 3")
    made.insert(ROWS)
    return folder


def link(path: Path, target: Path) -> None:
    """Put a link in the place of a folder."""
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("folder", FOLDERS)
def test_cleanup(folder: str, tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    opened = lance.dataset(path)
    target = outside if folder != "_versions" else outside / "_versions"
    if folder == "_versions":
        shutil.move(path / "_versions", tmp_path / "kept")
        target = tmp_path / "kept"
    link(path / folder, target)
    before = tree(tmp_path)
    for change in (opened.cleanup_old_versions, opened.explain_cleanup_old_versions):
        with pytest.raises(UnsafePathError, match=f"{folder} in the dataset .* is a symbolic link"):
            change(**EVERYTHING)
    assert tree(tmp_path) == before


def test_links_inside_a_folder_go_as_links(tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    for number, target in enumerate((outside, outside / "secret")):
        for folder in ("data", "_indices", "_transactions"):
            (path / folder).mkdir(exist_ok=True)
            (path / folder / f"link{number}.lance").symlink_to(target)
    lance.dataset(path).cleanup_old_versions(**EVERYTHING)
    assert lance.dataset(path).count_rows() == 19


@pytest.mark.parametrize("folder", ["", *TABLE_FOLDERS])
def test_removal_of_a_branch(folder: str, tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    opened = lance.dataset(path)
    opened.create_branch("x")
    link(path / "tree/x" / folder, outside / folder if folder else outside)
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        opened.branches.delete("x")
    assert "x" in opened.branches.list()


def test_tree_of_branches_that_is_a_link(tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    opened = lance.dataset(path)
    link(path / "tree", outside)
    with pytest.raises(UnsafePathError):
        opened.create_branch("x")


CHANGES: dict[str, Callable[[Any], object]] = {
    "append": lambda dataset: dataset.insert(ROWS),
    "overwrite": lambda dataset: lance.write_dataset(ROWS, dataset, mode="overwrite"),
    "delete": lambda dataset: dataset.delete("a = 1"),
    "update": lambda dataset: dataset.update({"a": "1"}, where="a = 2"),
    "compact": lambda dataset: dataset.optimize.compact_files(),
    "columns": lambda dataset: dataset.add_columns({"b": "a + 1"}),
    "tag": lambda dataset: dataset.tags.create("x", 1),
    "branch": lambda dataset: dataset.create_branch("x"),
    "restore": lambda dataset: dataset.checkout_version(1).restore(),
}
USES = {
    "data": {"append", "overwrite", "update", "compact", "columns"},
    "_versions": CHANGES.keys() - {"tag", "branch"},
    "_transactions": CHANGES.keys() - {"tag", "branch"},
    "_deletions": {"delete", "update"},
    "_refs": {"tag", "branch"},
    "_refs/tags": {"tag"},
    "_refs/branches": {"branch"},
}


@pytest.mark.parametrize(("folder", "change"), [(folder, change) for folder in USES for change in sorted(USES[folder])])
def test_changes(folder: str, change: str, tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    there = tmp_path / "there"
    if (path / folder).exists():
        shutil.move(path / folder, there)
    else:
        there.mkdir()
    (path / folder).parent.mkdir(exist_ok=True)
    (path / folder).symlink_to(there)
    opened = lance.dataset(path)
    before = tree(there)
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        CHANGES[change](opened)
    assert tree(there) == before
    assert lance.dataset(path).to_table() == opened.to_table()  # reading goes through links


def test_reference_files_that_are_links(tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    opened = lance.dataset(path)
    opened.tags.create("x", 1)
    content = (path / "_refs/tags/x.json").read_bytes()
    (tmp_path / "real.json").write_bytes(content)
    (path / "_refs/tags/x.json").unlink()
    (path / "_refs/tags/x.json").symlink_to(tmp_path / "real.json")
    opened.tags.update("x", 2)
    assert not (path / "_refs/tags/x.json").is_symlink()
    opened.tags.delete("x")
    assert (tmp_path / "real.json").read_bytes() == content


@pytest.mark.parametrize("kind", ["symbolic", "hard", "pipe"])
def test_the_version_hint_is_another_file(kind: str, tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    hint = path / "_versions/latest_version_hint.json"
    victim = tmp_path / "victim"
    victim.write_bytes(b"private")
    hint.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(hint)
    else:
        (hint.symlink_to if kind == "symbolic" else hint.hardlink_to)(victim)
    store = LocalStore().for_table(str(path))
    if kind == "symbolic":
        with pytest.raises(UnsafePathError):
            store.put_hint(str(hint), b"{}")
    else:
        store.put_hint(str(hint), b"{}")
        assert hint.read_bytes() == b"{}"
    lance.dataset(path).insert(ROWS)
    assert victim.read_bytes() == b"private"


@pytest.mark.parametrize("where", ["data", "file", "deletions", "index", "index file"])
def test_deep_clones_copy_nothing_from_elsewhere(where: str, tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    kept = tmp_path / "kept"
    if where.startswith("index"):
        reference = pylance.dataset(str(path))
        reference.create_scalar_index("a", "BTREE")
        linked = next((path / "_indices").iterdir())
        linked = linked if where == "index" else next(linked.iterdir())
    else:
        linked = {"data": path / "data", "deletions": path / "_deletions"}.get(where) or next((path / "data").iterdir())
    shutil.move(linked, kept)
    linked.symlink_to(kept)
    opened = lance.dataset(path)
    assert opened.count_rows() == 19
    with pytest.raises(UnsafePathError):
        opened.deep_clone(tmp_path / "clone", None)
    assert not [each for each in (tmp_path / "clone").rglob("*") if each.is_file()]


def test_clone_into_a_folder_with_links(tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    for number, folder in enumerate(("data", "_deletions", "_versions")):
        clone = tmp_path / f"clone{number}"
        (tmp_path / f"empty{number}").mkdir()
        link(clone / folder, tmp_path / f"empty{number}")
        for copy in (lance.dataset(path).deep_clone, lance.dataset(path).shallow_clone):
            if folder == "_versions" or copy.__name__ == "deep_clone":
                with pytest.raises(UnsafePathError):
                    copy(clone, None)
        assert tree(tmp_path / f"empty{number}") == {}


def test_a_root_that_is_a_link(tmp_path: Path) -> None:
    """The user chose it; it goes on working, through parents that are links too."""
    (tmp_path / "disk/real").mkdir(parents=True)
    (tmp_path / "way").symlink_to(tmp_path / "disk")
    (tmp_path / "t").symlink_to(tmp_path / "way/real")
    path = table(tmp_path / "t")
    opened = lance.dataset(path)
    for name, change in CHANGES.items():
        if name not in ("restore", "overwrite"):
            change(opened)
    branch = opened.checkout_version(("x", None))
    branch.insert(ROWS)
    lance.dataset(f"{path}/tree/x").insert(ROWS)
    opened.tags.delete("x")
    assert list(opened.all_files().read_all()["path"])
    opened.cleanup_old_versions(**EVERYTHING)
    opened.deep_clone(tmp_path / "way/clone", None)
    opened.branches.delete("x")
    assert lance.dataset(tmp_path / "disk/real").count_rows() == opened.count_rows()
    # as the reference does: the link goes, what it led to stays
    lance.LanceDataset.drop(path)
    assert not path.is_symlink()
    assert lance.dataset(tmp_path / "disk/real").count_rows() == opened.count_rows()


def test_drop_with_links_inside(tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    (path / "out").symlink_to(outside)
    (path / "data/out").symlink_to(outside)
    (path / "data/out.lance").symlink_to(outside / "secret")
    lance.LanceDataset.drop(path)
    assert not path.exists()


@pytest.mark.parametrize("calls", ["descriptors"], indirect=True)
def test_links_that_appear_during_a_removal(tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process replaces a folder by a link after it was listed. Only descriptors can prevent harm then."""
    path = table(tmp_path / "t")
    scandir = os.scandir

    def swap(folder: Any) -> Any:
        listed = scandir(folder)
        root = isinstance(folder, int) and os.path.samestat(os.fstat(folder), os.stat(path))
        if root and not (path / "data").is_symlink():
            shutil.rmtree(path / "data")
            (path / "data").symlink_to(outside)
        return listed

    monkeypatch.setattr(os, "scandir", swap)
    lance.LanceDataset.drop(path)
    assert not path.exists()


def test_names_that_leave_the_folder(tmp_path: Path, outside: Path) -> None:
    path = table(tmp_path / "t")
    fragments = lance.write_fragments(ROWS, path)
    for name in ("../../outside/secret.lance", f"{outside}/secret.lance", "a/../../../outside/secret.lance"):
        fragments[0].files[0].path = name
        with pytest.raises((CorruptFileError, ValueError)):
            lance.fragment.remove_uncommitted(fragments, path)
    store = LocalStore().for_table(str(path))
    for name in (f"{path}/../outside/secret", f"{path}/./data", f"{path}//data"):
        for change in (store.delete, store.delete_tree, store.open_own, lambda each: list(store.list_tree(each))):
            with pytest.raises(UnsafePathError, match="not a plain path"):
                change(name)


def test_folders_in_folders_without_end(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    folder = os.open(path / "data", os.O_RDONLY)
    for _ in range(400):
        os.mkdir("f", dir_fd=folder)
        inner = os.open("f", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    with pytest.raises(UnsafePathError, match="lies in more than 256 folders"):
        lance.dataset(path).cleanup_old_versions(**EVERYTHING)


def test_data_files_must_be_lance_files(tmp_path: Path) -> None:
    """A manifest can name any file of a base path; only Lance files are copied."""
    path = table(tmp_path / "t")
    data = next((path / "data").iterdir())
    size = data.stat().st_size
    data.write_bytes(b"-----BEGIN PRIVATE KEY-----".ljust(size))
    with pytest.raises((CorruptFileError, MissingFileError), match="not a Lance file"):
        lance.dataset(path).deep_clone(tmp_path / "clone", None)
    assert not [each for each in (tmp_path / "clone").rglob("*") if each.is_file()]


def test_drop_leaves_the_entries_of_other_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is that of a branch only if its name stays inside the table."""
    forgotten: list[str] = []
    monkeypatch.setattr(DirectProtocol, "forget", lambda _self, _store, root, _versions: forgotten.append(root))
    path = table(tmp_path / "t")
    (path / "_refs/branches").mkdir(parents=True)
    for name in ("x", "a%2Fb", "..%2F..%2Fother", "%2Fother", ".", "a%2F..%2F..%2F..%2Fother"):
        (path / f"_refs/branches/{name}.json").write_text("{}")
    lance.LanceDataset.drop(path)
    assert set(forgotten) == {str(path), f"{path}/tree/x", f"{path}/tree/a/b"}


def test_links_in_a_circle_are_missing_files(tmp_path: Path) -> None:
    (tmp_path / "_versions").symlink_to(tmp_path / "_versions")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").symlink_to(tmp_path / "folder" / "x")
    store = LocalStore().for_table(str(tmp_path))
    assert not list(store.list(f"{tmp_path}/_versions"))
    assert not list(store.list_names(f"{tmp_path}/_versions"))
    assert not list(store.list(f"{tmp_path}/folder"))
    assert [info.name for info in store.list_tree(str(tmp_path / "folder"))] == ["x"]
    with pytest.raises(MissingFileError):
        store.read(f"{tmp_path}/folder/x")
    with pytest.raises(DatasetNotFoundError):
        lance.dataset(tmp_path)


def test_files_in_place_of_folders(tmp_path: Path) -> None:
    table = lance.write_dataset(pa.table({"x": [1]}), tmp_path / "t")
    for name in ("data", "_transactions"):
        (tmp_path / "t" / name).rename(tmp_path / name)
        (tmp_path / "t" / name).write_bytes(b"x")
        with pytest.raises(CorruptFileError, match=f"{name}.*Not a directory; .*wrong kind"):
            lance.write_dataset(pa.table({"x": [2]}), table, mode="append")
        (tmp_path / "t" / name).unlink()
        (tmp_path / name).rename(tmp_path / "t" / name)
    lance.write_dataset(pa.table({"x": [2]}), table, mode="append")
    assert lance.dataset(tmp_path / "t").to_table()["x"].to_pylist() == [1, 2]


def test_errors_of_the_system_name_the_whole_path(tmp_path: Path) -> None:
    store = LocalStore().for_table(str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for path, change in (
        ("file/x", lambda path: store.put(path, b"")),
        ("file/x/y", store.open_output),
        ("folder", store.delete),
        ("folder", lambda path: store.put(path, b"")),
        ("a/" + "n" * 300, store.open_output),
    ):
        with pytest.raises(OSError, match=str(tmp_path)) as caught:
            change(f"{tmp_path}/{path}")
        named = caught.value.filename2 or caught.value.filename or str(caught.value)
        assert str(named).startswith(f"{tmp_path}/{path.partition('/')[0]}")
