"""Tests of cleanup during crashes, failures, other writers and other cleanups."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tables.cleanup_table import ALL, ROWS, Hook, HookedStore, check_complete, files, hooked, versions
from support.tables.over_store import dataset_over

import lance_dataset as lance
from lance_dataset.errors import (
    CommitConflictError,
    CorruptFileError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.local import LocalStore
from lance_dataset.table.cleanup.plan import plan_cleanup
from lance_dataset.table.cleanup.removal import CleanupPolicy, cleanup
from lance_dataset.table.naming import Naming, manifest_name, named_path
from lance_dataset.table.references.catalog import Place, create_tag
from lance_dataset.table.versions import list_versions, read_latest


def once(action: Callable[[], object], when: Callable[[str, str], bool]) -> Hook:
    """Return a hook that runs an action before the first change of a kind."""
    done = threading.Event()

    def hook(kind: str, path: str) -> None:
        if when(kind, path) and not done.is_set():
            done.set()
            action()

    return hook


def removes_manifest(kind: str, path: str) -> bool:
    return kind == "delete" and path.endswith(".manifest")


def removes_file(kind: str, path: str) -> bool:
    return kind == "delete" and not path.endswith(".manifest")


def after_manifests(kind: str, path: str) -> bool:
    return kind == "sync"


MOMENTS = [removes_manifest, after_manifests]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Make a table of five versions, each with a data file and, except the first, a deletion file."""
    path = str(tmp_path / "table")
    for version in range(5):
        lance.write_dataset(ROWS, path, mode="overwrite").delete(f"x = {version}")
    return path


# -- crashes and failures ----------------------------------------------------------------------------------------------


class Crash(BaseException):
    """End of the process."""


@pytest.mark.parametrize("concurrency", [1, 8])
def test_crash_at_every_change(path: str, concurrency: int) -> None:
    fresh = path + "-fresh"
    os.rename(path, fresh)
    end: set[str] | None = None
    for step in range(100):
        os.system(f"rm -rf {path} && cp -a {fresh} {path}")
        left = [step]

        def hook(kind: str, _path: str, left: list[int] = left) -> None:
            left[0] -= kind != "sync"
            if left[0] < 0:
                raise Crash

        try:
            hooked(path, hook).cleanup_old_versions(**ALL, delete_concurrency=concurrency)
        except Crash:
            check_complete(path)
        else:
            end = end or files(path)
            assert step > 20
            break
        lance.dataset(path).cleanup_old_versions(**ALL, delete_unverified=True)
        assert versions(path) == [10]
        check_complete(path)
        # Leftover deletion and transaction files stay until they are older than the versions that are kept.
        assert not [name for name in files(path) if name.startswith("data/")][1:]
    assert end is not None
    assert len(end) == 1 + 1 + 1 + 1 + 1  # manifest, hint, data, deletion, transaction


def test_failing_removals(path: str) -> None:
    """A version whose manifest cannot be removed keeps its files."""
    stubborn = named_path(path, list_versions(LocalStore(), path)[3])

    def hook(kind: str, name: str) -> None:
        if kind == "delete" and (name == stubborn or name.endswith(".txn")):
            raise PermissionError(13, "no", name)

    removed = hooked(path, hook).cleanup_old_versions(**ALL)
    assert versions(path) == [4, 10]
    check_complete(path)
    assert removed.old_versions == 8
    assert removed.failed_deletes == 1 + 8
    assert removed.transaction_files_removed == 0
    assert lance.dataset(path).cleanup_old_versions(**ALL).old_versions == 1


@pytest.mark.parametrize("damage", [b"", b"junk" * 10, None])
def test_unreadable_manifests(path: str, damage: bytes | None) -> None:
    broken = Path(named_path(path, list_versions(LocalStore(), path)[2]))
    broken.write_bytes(broken.read_bytes()[:-30] if damage is None else damage)
    before = files(path)
    for call in ("cleanup_old_versions", "explain_cleanup_old_versions"):
        with pytest.raises(CorruptFileError, match="files that version 3 needs are not known"):
            getattr(lance.dataset(path), call)(**ALL)
    assert files(path) == before


@pytest.mark.parametrize("kind", ["tags", "branches"])
def test_unreadable_references(path: str, kind: str) -> None:
    folder = Path(path, "_refs", kind)
    folder.mkdir(parents=True)
    (folder / "odd.json").write_text("{")
    before = files(path)
    with pytest.raises(CorruptFileError, match=r"odd\.json"):
        lance.dataset(path).cleanup_old_versions(**ALL)
    assert files(path) == before


def test_unreadable_branches(path: str) -> None:
    branch = lance.dataset(path).create_branch("exp")
    for name in Path(branch.uri, "_versions").glob("*.manifest"):
        name.write_bytes(b"junk" * 10)
    before = files(path)
    with pytest.raises(CorruptFileError, match="needs are not known"):
        lance.dataset(path).cleanup_old_versions(**ALL)
    assert files(path) == before


def test_unknown_features(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleanup removes nothing if a version uses unknown features, as it may need files unknown to this release."""

    def refuse(_flags: int, where: str) -> None:
        raise UnsupportedError(f"{where}: unknown")

    monkeypatch.setattr("lance_dataset.table.cleanup.file_usage.check_writable", refuse)
    before = files(path)
    with pytest.raises(UnsupportedError, match="files that version 1 needs are not known"):
        lance.dataset(path).cleanup_old_versions(**ALL)
    assert files(path) == before


# -- others at work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
def test_tag_meanwhile(path: str, moment: Callable[[str, str], bool]) -> None:
    def tag() -> None:
        # Like a writer that looked for the manifest a moment ago.
        target = Path(path, "_refs/tags/late.json")
        target.parent.mkdir(parents=True)
        target.write_text('{"branch": null, "version": 4, "manifestSize": 1}')

    removed = hooked(path, once(tag, moment)).cleanup_old_versions(**ALL)
    assert versions(path) == [4, 10]
    assert removed.old_versions == 8
    check_complete(path)


def test_tag_before_anything_is_removed(path: str) -> None:
    store = LocalStore()
    manifest = read_latest(store, path)
    assert manifest is not None
    plan = plan_cleanup(store, path, manifest, CleanupPolicy())
    create_tag(store, path, "late", Place(None, 4))
    assert len(plan.old) == 9
    cleanup(store, path, manifest, CleanupPolicy(error_if_tagged=False))
    assert versions(path) == [4, 10]


@pytest.mark.parametrize("moment", MOMENTS)
def test_branch_meanwhile(path: str, moment: Callable[[str, str], bool]) -> None:
    source = lance.dataset(path, version=6)

    def branch() -> None:
        if moment is removes_manifest:
            source.create_branch("late")

    # One thread: version 6 still exists when the branch is made.
    removed = hooked(path, once(branch, moment)).cleanup_old_versions(**ALL, delete_concurrency=1)
    check_complete(path)
    if moment is removes_manifest:
        assert versions(path) == [6, 10]
        assert removed.old_versions == 8
        assert lance.dataset(path).checkout_version(("late", None)).to_table().num_rows == 9


@pytest.mark.parametrize("moment", MOMENTS)
def test_restore_meanwhile(path: str, moment: Callable[[str, str], bool]) -> None:
    old = lance.dataset(path, version=3)
    content = Path(named_path(path, list_versions(LocalStore(), path)[2])).read_bytes()

    def restore() -> None:
        # The manifest was read before it was removed.
        target = Path(named_path(path, name))
        target.write_bytes(content)
        old.restore()
        target.unlink()

    name = list_versions(LocalStore(), path)[2]
    removed = hooked(path, once(restore, moment)).cleanup_old_versions(**ALL, delete_concurrency=1)
    assert removed.old_versions >= 8
    assert versions(path)[-2:] == [10, 11]
    check_complete(path)
    assert lance.dataset(path).to_table().num_rows == 10


class PausedStore(HookedStore):
    """A store that calls a function after each object was put."""

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        LocalStore.put(self, path, data, durable=durable)
        self.hook("put", path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        LocalStore.put_if_absent(self, path, data)
        self.hook("put", path)

    def delete(self, path: str) -> None:
        LocalStore.delete(self, path)


def cleaned_when(path: str, ending: str, version: int | None = None) -> lance.LanceDataset:
    """Return a handle whose write meets a whole cleanup just before a file with the given ending is put."""
    action = lambda: lance.LanceDataset(path).cleanup_old_versions(**ALL)  # noqa: E731
    return hooked(path, once(action, lambda kind, name: kind == "put" and name.endswith(ending)), version)


@pytest.mark.parametrize("name", ["new", "old"])
def test_cleanup_before_a_tag_is_written(path: str, name: str) -> None:
    """Tagging a version that a cleanup removes just before the tag is put raises a retryable `CommitConflictError`."""
    lance.dataset(path).tags.create("old", 10)
    before = lance.dataset(path).tags.list()
    tags = cleaned_when(path, f"{name}.json", 3).tags
    with pytest.raises(CommitConflictError, match=r"version main:3 of .* was removed at the same time") as caught:
        (tags.update if name == "old" else tags.create)(name, 3)
    assert caught.value.retryable
    assert lance.dataset(path).tags.list() == before
    with pytest.raises(FileNotFoundError):
        tags.create("new", 3)


def test_cleanup_before_a_branch_is_written(path: str) -> None:
    with pytest.raises(CommitConflictError, match="version main:3"):
        cleaned_when(path, "exp.json", 3).create_branch("exp")
    dataset = lance.dataset(path)
    assert dataset.branches.list() == {}
    assert not any("tree" in file for file in files(path))
    assert dataset.create_branch("exp").to_table() == dataset.to_table()


def test_branch_and_clone_of_a_removed_version(path: str, tmp_path: Path) -> None:
    """Making a branch, tag or clone from a handle on a removed version raises an error."""
    stale = lance.dataset(path, version=3)
    lance.dataset(path).cleanup_old_versions(**ALL)
    with pytest.raises(CommitConflictError):
        stale.create_branch("exp")
    with pytest.raises(FileNotFoundError):
        stale.tags.create("old")
    with pytest.raises(VersionNotFoundError):
        stale.shallow_clone(str(tmp_path / "clone"), None)
    assert not (tmp_path / "clone").exists()


@pytest.mark.parametrize("version", [1, 4])
def test_cleanup_before_a_restore_is_published(path: str, version: int) -> None:
    with pytest.raises(CommitConflictError, match=f"version {version} of .* was removed by a cleanup") as caught:
        cleaned_when(path, ".manifest", version).restore()
    assert caught.value.retryable
    assert versions(path) == [10]
    check_complete(path)
    assert lance.write_dataset(ROWS, path, mode="append").version == 11


def test_restored_version_others_have_built_on(path: str) -> None:
    def interfere() -> None:
        lance.write_dataset(ROWS, path, mode="append")
        Path(named_path(path, list_versions(LocalStore(), path)[2])).unlink()

    hook = once(interfere, lambda kind, name: kind == "put" and name.endswith(".manifest"))
    dataset = dataset_over(PausedStore(hook), path, 3)
    with pytest.raises(CommitConflictError, match="others have already built on that") as caught:
        dataset.restore()
    assert not caught.value.retryable
    assert versions(path)[-2:] == [11, 12]


@pytest.mark.parametrize("meanwhile", [False, True])
def test_detached_version_of_a_removed_one(path: str, meanwhile: bool) -> None:
    stale = cleaned_when(path, ".manifest", 3) if meanwhile else lance.dataset(path, version=3)
    if not meanwhile:
        lance.dataset(path).cleanup_old_versions(**ALL)
    change = lance.LanceOperation.UpdateConfig(config_updates=lance.LanceOperation.UpdateMap({"a": "b"}))
    with pytest.raises(OSError, match="version 3"):
        lance.LanceDataset.commit(stale, change, read_version=3, detached=True)
    assert [file for file in files(path) if file.endswith(".manifest")] == [f"_versions/{manifest_name(10, Naming.V2)}"]


def test_commit_meanwhile(path: str) -> None:
    hook = once(lambda: lance.write_dataset(ROWS, path, mode="append"), removes_manifest)
    hooked(path, hook).cleanup_old_versions(**ALL, delete_unverified=True)
    assert versions(path) == [10, 11]
    check_complete(path)


def test_stale_writer_is_told(path: str) -> None:
    stale = lance.dataset(path, version=2)
    lance.dataset(path).cleanup_old_versions(**ALL)
    with pytest.raises(CommitConflictError) as caught:
        lance.LanceDataset.commit(path, lance.LanceOperation.Append([]), read_version=stale.version)
    assert caught.value.retryable
    assert "version 3 does not have a transaction" in str(caught.value)
    with pytest.raises(MissingFileError):
        stale.to_table()


def test_files_of_a_running_writer_stay(path: str) -> None:
    fragments = lance.write_fragments(ROWS, path) if hasattr(lance, "write_fragments") else None
    target = Path(path, "data", "young.lance")
    target.write_bytes(b"young")
    lance.dataset(path).cleanup_old_versions(**ALL)
    assert target.exists()
    assert fragments is None or all(Path(path, "data", file.path).exists() for each in fragments for file in each.files)
    os.utime(target, (time.time() - 8 * 86400,) * 2)
    removed = lance.dataset(path).cleanup_old_versions()
    assert not target.exists()
    assert (removed.data_files_removed, removed.bytes_removed) == (1, 5)


def test_two_cleanups_at_once(path: str) -> None:
    for _ in range(20):
        lance.write_dataset(ROWS, path, mode="overwrite")
    threads = [
        threading.Thread(target=lance.dataset(path).cleanup_old_versions, kwargs={**ALL, "delete_concurrency": 2})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in range(5):
        lance.write_dataset(ROWS, path, mode="append")
    for thread in threads:
        thread.join()
    check_complete(path)
    assert versions(path)[-1] == 35
    assert lance.dataset(path).count_rows() == 60


def test_version_put_back_by_another_cleanup(path: str) -> None:
    """A version keeps its files if another cleanup removes its manifest and puts it back."""
    fourth = Path(named_path(path, list_versions(LocalStore(), path)[3]))
    content = fourth.read_bytes()

    def hook(kind: str, name: str) -> None:
        if kind == "sync":
            fourth.write_bytes(content)

    hooked(path, hook).cleanup_old_versions(**ALL)
    assert versions(path) == [4, 10]
    check_complete(path)
