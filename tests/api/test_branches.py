"""Tests of branches: creating, opening, writing and removing them, compared with the reference."""

from __future__ import annotations

import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.reference.outcomes import Call, check_call
from support.tables.equality import assert_same
from support.tables.over_store import dataset_over

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError, ReferenceExistsError, VersionNotFoundError
from lance_dataset.io.local import LocalStore


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a dataset with versions 1 to 3, a deletion, branches and a tag.

    Branch ``dev/x`` starts from version 3 and has versions 3 to 5; ``sub`` starts from that. Version 1 has the tag.
    """
    path = tmp_path_factory.mktemp("branches") / "t.lance"
    written = lance.write_dataset(pa.table({"a": range(10)}), path)
    written = lance.write_dataset(pa.table({"a": range(10, 20)}), path, mode="append")
    written.delete("a = 3")
    written.tags.create("first", 1)
    branch = written.create_branch("dev/x")
    lance.write_dataset(pa.table({"a": range(100, 110)}), branch, mode="append")
    branch.delete("a = 101")
    branch.create_branch("sub")
    written.create_branch("dev", 1)
    return path


@pytest.fixture
def pair(template: Path, tmp_path: Path) -> tuple[Any, Any]:
    """Return one copy per implementation. The base paths of the branches still refer to the template."""
    for name in ("ours", "theirs"):
        shutil.copytree(template, tmp_path / name / "t.lance")
    return lance_dataset.dataset(tmp_path / "ours/t.lance"), lance.dataset(tmp_path / "theirs/t.lance")


def facts(branches: Any) -> Any:
    """Return the facts about branches that do not differ from run to run."""
    items = branches if isinstance(branches, list) else sorted(branches.items())
    return [
        (name, sorted(each), each["parent_branch"], each["parent_version"], each["metadata"],
         [version for version, _ in each["branch_identifier"]])
        for name, each in items
    ]  # fmt: skip


def made(*arguments: Any, on: Any = None) -> Call:
    """Return a call that creates a branch and returns its place, its rows and all branches."""

    def call(lib: Any, ds: Any) -> Any:
        source = ds if on is None else ds.checkout_version(on)
        branch = source.create_branch(*arguments)
        where = branch.uri[len(ds.uri) :]
        return where, branch.version, branch.latest_version, branch.to_table(), facts(ds.branches.list())

    return call


NAMES = ["", "main", "/a", "a/", "a//b", "a/../b", "..", ".", "a\\b", "a.lock", "a/b.lock", "a b"]
NAMES += ["ü", ".a", "a.", "main/x", "a/main", "HEAD", "a.lock/b"]
CALLS: dict[str, Call] = {
    "list": lambda lib, ds: sorted(ds.branches.list().items()),
    "keys": lambda lib, ds: list(ds.branches.list()["dev"]),
    "ordered": lambda lib, ds: ds.branches.list_ordered(),
    "ordered_asc": lambda lib, ds: ds.branches.list_ordered("asc"),
    "ordered_bad": lambda lib, ds: ds.branches.list_ordered("up"),
    "create": made("x"),
    "create_version": made("x", 2),
    "create_tag": made("x", "first"),
    "create_pair": made("x/y/z", ("dev/x", 4)),
    "create_newest": made("x", ("dev/x", None)),
    "create_on_branch": made("x", on=("dev/x", 4)),
    "create_version_on_branch": made("x", 5, on=("dev/x", 4)),
    "create_other_version_on_branch": made("x", 2, on=("dev/x", 4)),
    "create_main_on_branch": made("x", (None, 2), on=("dev/x", 4)),
    "create_newest_main_on_branch": made("x", ("main", None), on=("dev/x", 4)),
    "create_tag_on_branch": made("x", "first", on=("dev/x", 4)),
    "create_same": made("dev"),
    "create_no_version": made("x", 9),
    "create_no_tag": made("x", "nope"),
    "create_no_branch": made("x", ("nope", 1)),
    "create_float": made("x", 1.5),
    **{f"create_name_{name!r}": made(name) for name in NAMES},
    "delete": lambda lib, ds: [ds.branches.delete("sub"), facts(ds.branches.list())],
    "delete_above_another": lambda lib, ds: [
        ds.branches.delete("dev"),
        ds.checkout_version(("dev/x", None)).to_table(),
    ],
    "delete_parent": lambda lib, ds: ds.branches.delete("dev/x"),
    "delete_tagged": lambda lib, ds: [ds.tags.create("t", ("sub", None)), ds.branches.delete("sub")],
    "delete_unknown": lambda lib, ds: ds.branches.delete("nope"),
    "delete_main": lambda lib, ds: ds.branches.delete("main"),
    "delete_bad": lambda lib, ds: ds.branches.delete("a b"),
    "metadata": lambda lib, ds: [ds.branches.replace_metadata("dev", {"k": "v"}), sorted(ds.branches.list().items())],
    "metadata_unknown": lambda lib, ds: ds.branches.replace_metadata("nope", {"k": "v"}),
    "metadata_number": lambda lib, ds: ds.branches.replace_metadata("dev", {"k": 1}),
    "checkout": lambda lib, ds: [ds.checkout_version(("dev/x", v)).to_table() for v in (3, 4, None)],
    "checkout_unknown": lambda lib, ds: ds.checkout_version(("nope", None)),
    "checkout_unknown_version": lambda lib, ds: ds.checkout_version(("dev/x", 2)),
    "versions": lambda lib, ds: ds.checkout_version(("dev/x", None)).version_refs(),
    "version_on_branch": lambda lib, ds: ds.checkout_version(("dev/x", 5)).checkout_version(4).to_table(),
    "no_version_on_branch": lambda lib, ds: ds.checkout_version(("dev/x", 5)).checkout_version(2),
    "open_folder": lambda lib, ds: lib.dataset(f"{ds.uri}/tree/dev/x").to_table(),
    "branches_of_folder": lambda lib, ds: facts(lib.dataset(f"{ds.uri}/tree/dev/x").branches.list()),
    "tags_of_folder": lambda lib, ds: sorted(lib.dataset(f"{ds.uri}/tree/dev/x").tags.list()),
    "overwrite": lambda lib, ds: [
        lib.write_dataset(pa.table({"z": [1]}), ds.checkout_version(("dev/x", 4)), mode="overwrite").to_table(),
        ds.latest_version,
        ds.checkout_version(("dev/x", None)).version,
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_like_the_reference(pair: tuple[Any, Any], name: str) -> None:
    check_call(CALLS[name], pair)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Return a dataset of this package: version 1 with ten rows, version 2 with twenty."""
    path = tmp_path / "t.lance"
    lance_dataset.write_dataset(pa.table({"a": range(10)}), path)
    return lance_dataset.write_dataset(pa.table({"a": range(10, 20)}), path, mode="append")


def files(root: str, below: str = "") -> set[str]:
    return {str(path.relative_to(root)) for path in Path(root, below).rglob("*") if path.is_file()}


def test_writing_goes_to_the_branch(dataset: Any) -> None:
    branch = dataset.create_branch("dev", 1)
    before = files(dataset.uri)
    branch.insert(pa.table({"a": range(50, 60)}))
    branch.delete("a = 2 or a = 55")
    branch.optimize.compact_files()
    assert all(path.startswith("tree/dev/") for path in files(dataset.uri) - before)
    assert before <= files(dataset.uri)
    assert sorted(branch.to_table()["a"].to_pylist()) == [0, 1, *range(3, 10), *range(50, 55), *range(56, 60)]
    assert dataset.latest_version == 2
    assert dataset.count_rows() == 20
    assert_same(lance.dataset(dataset.uri).checkout_version(("dev", None)).to_table(), branch.to_table())
    branch.checkout_version(1).restore()
    restored = dataset.checkout_version(("dev", None))
    assert restored.to_table()["a"].to_pylist() == list(range(10))
    assert restored.snapshot.manifest.branch == "dev"
    branch.validate()


def test_a_handle_knows_its_place(dataset: Any) -> None:
    branch = dataset.create_branch("dev/x")
    assert branch.uri == f"{dataset.uri}/tree/dev/x"
    assert branch.checkout_version((None, None)).uri == dataset.uri
    assert branch.create_branch("y").uri == f"{dataset.uri}/tree/y"
    again = pickle.loads(pickle.dumps(branch))
    assert (again.uri, again.version) == (branch.uri, branch.version)
    assert_same(again.to_table(), branch.to_table())
    opened = lance_dataset.dataset(dataset.uri, version=("dev/x", None))
    assert opened.uri == branch.uri
    opened.tags.create("here")
    assert lance_dataset.dataset(branch.uri, version="here").uri == branch.uri
    assert lance_dataset.dataset(branch.uri, version=("main", 1)).uri == dataset.uri


@pytest.mark.parametrize("spelling", ["relative", "file", "slash"])
def test_spellings_of_the_location(dataset: Any, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(dataset.uri)
    monkeypatch.chdir(folder.parent)
    uri = {"relative": folder.name, "file": folder.as_uri(), "slash": f"{folder}/"}[spelling]
    branch = lance_dataset.dataset(uri).create_branch("dev", "first" if False else 1)
    assert branch.uri == f"{uri.rstrip('/')}/tree/dev"
    assert [base.path for base in branch.snapshot.manifest.base_paths] == [str(folder)]
    assert lance_dataset.dataset(branch.uri).count_rows() == 10
    monkeypatch.chdir("/")
    assert lance.dataset(folder).checkout_version(("dev", None)).count_rows() == 10


def test_a_branch_that_was_not_finished(dataset: Any) -> None:
    dataset.create_branch("half", 1)
    os.unlink(f"{dataset.uri}/_refs/branches/half.json")  # the writer was stopped before
    assert dataset.branches.list() == {}
    with pytest.raises(VersionNotFoundError):
        dataset.checkout_version(("half", None))
    with pytest.raises(ReferenceExistsError, match=r"branches.delete\('half'\)"):
        dataset.create_branch("half", 1)
    dataset.branches.delete("half")
    assert dataset.create_branch("half", 2).count_rows() == 20
    Path(dataset.uri, "tree", "quarter").mkdir()
    Path(dataset.uri, "tree", "quarter", "_unfinished").touch()
    with pytest.raises(ReferenceExistsError, match=r"branches.delete\('quarter'\)"):
        dataset.create_branch("quarter", 1)
    dataset.branches.delete("quarter")
    assert dataset.create_branch("quarter", 2).count_rows() == 20
    dataset.branches.delete("quarter")
    with pytest.raises(VersionNotFoundError):
        dataset.branches.delete("quarter")


def test_a_removal_that_was_not_finished(dataset: Any) -> None:
    branch = dataset.create_branch("dev", 1)
    lance_dataset.write_dataset(pa.table({"a": [5]}), branch, mode="append")
    os.unlink(f"{dataset.uri}/_refs/branches/dev.json")
    with pytest.raises(ReferenceExistsError):
        dataset.create_branch("dev", 1)
    dataset.branches.delete("dev")
    assert files(dataset.uri, "tree") == set()
    assert dataset.create_branch("dev", 1).count_rows() == 10


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_reference_while_a_branch_is_removed(dataset: Any, kind: str) -> None:
    """Removing a branch fails if a reference to it is created after the search for references."""
    dev = dataset.create_branch("dev", 1)
    dev.delete("a < 5")

    class Store(LocalStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            if path.endswith("/tree/dev/_unfinished"):
                dev.tags.create("late") if kind == "tag" else dev.create_branch("late")

    with pytest.raises(InvalidInputError, match="referenced by"):
        dataset_over(Store(), dataset.uri).branches.delete("dev")
    assert dataset.branches.list()["dev"]["parent_version"] == 1
    place = "late" if kind == "tag" else ("late", None)
    assert dataset.checkout_version(place).count_rows() == dataset.checkout_version(("dev", None)).count_rows()
    dataset.checkout_version(place).to_table()
    dataset.tags.delete("late") if kind == "tag" else dataset.branches.delete("late")
    dataset.branches.delete("dev")
    assert files(dataset.uri, "tree") == set()


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_removal_while_a_reference_is_made(dataset: Any, kind: str) -> None:
    dataset.create_branch("dev", 1).delete("a < 5")

    class Store(LocalStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith("/late.json"):
                dataset.branches.delete("dev")
            super().put_if_absent(path, data)

    handle = dataset_over(Store(), dataset.uri).checkout_version(("dev", None))
    with pytest.raises(CommitConflictError, match="removed at the same time"):
        handle.tags.create("late") if kind == "tag" else handle.create_branch("late")
    assert dataset.tags.list() == dataset.branches.list() == {}
    assert files(dataset.uri, "tree") == set()


def test_removal_leaves_the_others(dataset: Any) -> None:
    for name in ("dev", "dev/x", "dev/x/y", "other"):
        dataset.create_branch(name, 1)
    lance_dataset.write_dataset(pa.table({"a": [5]}), dataset.checkout_version(("dev/x", None)), mode="append")
    dataset.branches.delete("dev/x")
    assert sorted(dataset.branches.list()) == ["dev", "dev/x/y", "other"]
    assert not [path for path in files(dataset.uri, "tree/dev/x") if not path.startswith("tree/dev/x/y/")]
    for name in dataset.branches.list():
        dataset.checkout_version((name, None)).validate()
    assert dataset.create_branch("dev/x", 2).count_rows() == 20
    dataset.validate()


def test_a_branch_among_the_files_of_another(dataset: Any) -> None:
    with pytest.raises(InvalidInputError, match="folder"):
        dataset.create_branch("dev/data")
    theirs = lance.dataset(dataset.uri)
    lance.write_dataset(pa.table({"a": [5]}), theirs.create_branch("dev"), mode="append")
    theirs.create_branch("dev/data")
    dataset.branches.delete("dev")
    assert dataset.checkout_version(("dev/data", None)).count_rows() == 20
    assert all(path.startswith("tree/dev/data/_") for path in files(dataset.uri, "tree"))


def test_one_of_many_creates_a_branch(dataset: Any) -> None:
    def attempt(number: int) -> int | None:
        handle = lance_dataset.dataset(dataset.uri)
        try:
            return handle.create_branch("dev", 1).version
        except ReferenceExistsError:
            return None

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(attempt, range(16)))
    assert sum(result is not None for result in results) == 1
    branch = dataset.checkout_version(("dev", None))
    assert branch.version_refs() == [{"version": 1}]
    assert branch.count_rows() == 10


def test_branches_of_different_versions_at_once(dataset: Any) -> None:
    def attempt(number: int) -> Any:
        handle = lance_dataset.dataset(dataset.uri)
        try:
            return handle.create_branch("dev", 1 + number % 2).version
        except ReferenceExistsError:
            return None

    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            (winner,) = [result for result in pool.map(attempt, range(8)) if result is not None]
        branch = dataset.checkout_version(("dev", None))
        assert branch.version_refs() == [{"version": winner}]
        assert branch.count_rows() == 10 * winner
        dataset.branches.delete("dev")
        assert files(dataset.uri, "tree") == set()


def test_in_memory() -> None:
    session = lance_dataset.Session()
    ds = lance_dataset.write_dataset(pa.table({"a": range(10)}), "memory://t", session=session)
    branch = ds.create_branch("dev")
    assert branch.uri == "memory://t/tree/dev"
    branch.delete("a = 1")
    again = lance_dataset.dataset("memory://t", version=("dev", None), session=session)
    assert again.count_rows() == 9
    again.delete("a = 2")
    ds.delete("a = 3")
    assert (ds.count_rows(), again.count_rows()) == (9, 8)
    again.optimize.compact_files()
    assert again.create_branch("b").count_rows() == 8
    ds.branches.delete("b")
    ds.branches.delete("dev")
    assert ds.branches.list() == {}


def test_storage_options_of_the_handle(dataset: Any) -> None:
    branch = dataset.create_branch("dev", storage_options={"local_fsync": "false"})
    assert branch.initial_storage_options == {"local_fsync": "false"}
    branch.delete("a = 1")
    assert branch.count_rows() == 19


def test_drop_removes_branches(dataset: Any) -> None:
    dataset.create_branch("dev")
    lance_dataset.LanceDataset.drop(dataset.uri)
    assert not os.path.exists(dataset.uri)
