"""Cleanup against everything that can happen meanwhile: crashes, failures, other writers, other cleanups."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy

import lance_dataset as lance
from lance_dataset.errors import (
    CommitConflictError,
    CorruptFileError,
    MissingFileError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.external.base import ManifestEntry
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.resolve import resolve
from lance_dataset.table.cleanup.branch_usage import BranchUsage
from lance_dataset.table.cleanup.durations import format_duration, parse_duration
from lance_dataset.table.cleanup.file_usage import FileUsage, VersionFiles, version_files
from lance_dataset.table.cleanup.plan import plan_cleanup
from lance_dataset.table.cleanup.removal import CleanupPolicy, Removed, cleanup
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.naming import Naming, manifest_name, named_path
from lance_dataset.table.references.catalog import Place, create_tag
from lance_dataset.table.versions import list_versions, read_latest

ROWS = pa.table({"x": range(10)})
ALL = {"older_than": dt.timedelta(0)}
Hook = Callable[[str, str], None]


class HookedStore(LocalStore):
    """Calls a function before each change."""

    def __init__(self, hook: Hook) -> None:
        super().__init__(fsync=False)
        self.hook = hook

    def delete(self, path: str) -> None:
        self.hook("delete", path)
        super().delete(path)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.hook("put", path)
        super().put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.hook("put", path)
        super().put_if_absent(path, data)

    def sync(self, prefix: str) -> None:
        self.hook("sync", prefix)
        super().sync(prefix)


def hooked(path: str, hook: Hook, version: int | None = None) -> lance.LanceDataset:
    return lance.LanceDataset(path, version, _store=(HookedStore(hook), path))


def once(action: Callable[[], object], when: Callable[[str, str], bool]) -> Hook:
    """Do something before the first change of a kind."""
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
    """A table of five versions, each with a file of its own and a deletion file but the first."""
    path = str(tmp_path / "table")
    for version in range(5):
        lance.write_dataset(ROWS, path, mode="overwrite").delete(f"x = {version}")
    return path


def versions(path: str) -> list[int]:
    return [name.version for name in list_versions(LocalStore(), path)]


def check_complete(path: str) -> None:
    """Every version that is listed has its files."""
    for name in list_versions(LocalStore(), path):
        manifest = read_manifest(LocalStore(), named_path(path, name))
        used = version_files(manifest)
        for file in (*used.own, *(f"data/{data.decode()}" for data in used.data)):
            assert os.path.exists(f"{path}/{file}"), (name.version, file)
        lance.dataset(path, version=name.version).to_table()


def files(path: str) -> set[str]:
    return {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}


# -- crashes and failures ----------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process is gone."""


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
        # What is left over of deletions and transactions stays until it is older than the versions that are kept.
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
        with pytest.raises(CorruptFileError, match="not known which files version 3 needs"):
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
    with pytest.raises(CorruptFileError, match="not known which files"):
        lance.dataset(path).cleanup_old_versions(**ALL)
    assert files(path) == before


def test_unknown_features(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version may need files this release has never heard of."""

    def refuse(_flags: int, where: str) -> None:
        raise UnsupportedError(f"{where}: unknown")

    monkeypatch.setattr("lance_dataset.table.cleanup.file_usage.check_writable", refuse)
    before = files(path)
    with pytest.raises(UnsupportedError, match="not known which files version 1 needs"):
        lance.dataset(path).cleanup_old_versions(**ALL)
    assert files(path) == before


# -- others at work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
def test_tag_meanwhile(path: str, moment: Callable[[str, str], bool]) -> None:
    def tag() -> None:
        # As a writer that looked for the manifest a moment ago.
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

    # One thread: version 6 is still there when the branch is made.
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
    """Calls a function after each object was put."""

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        LocalStore.put(self, path, data, durable=durable)
        self.hook("put", path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        LocalStore.put_if_absent(self, path, data)
        self.hook("put", path)

    def delete(self, path: str) -> None:
        LocalStore.delete(self, path)


def cleaned_when(path: str, ending: str, version: int | None = None) -> lance.LanceDataset:
    """A handle in whose way a whole cleanup comes, right before a file with some ending is put."""
    action = lambda: lance.LanceDataset(path).cleanup_old_versions(**ALL)  # noqa: E731
    return hooked(path, once(action, lambda kind, name: kind == "put" and name.endswith(ending)), version)


@pytest.mark.parametrize("name", ["new", "old"])
def test_cleanup_before_a_tag_is_written(path: str, name: str) -> None:
    """The writer has seen the manifest, which is gone when the tag is there."""
    lance.dataset(path).tags.create("old", 10)
    before = lance.dataset(path).tags.list()
    tags = cleaned_when(path, f"{name}.json", 3).tags
    with pytest.raises(CommitConflictError, match=r"version main:3 of .* was removed at the same moment") as caught:
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
    """Handles stay when their versions are removed."""
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
    dataset = lance.LanceDataset(path, 3, _store=(PausedStore(hook), path))
    with pytest.raises(CommitConflictError, match="others have built on that already") as caught:
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
    """It is gone when its turn comes, and back when the files are to go."""
    fourth = Path(named_path(path, list_versions(LocalStore(), path)[3]))
    content = fourth.read_bytes()

    def hook(kind: str, name: str) -> None:
        if kind == "sync":
            fourth.write_bytes(content)

    hooked(path, hook).cleanup_old_versions(**ALL)
    assert versions(path) == [4, 10]
    check_complete(path)


# -- limits ------------------------------------------------------------------------------------------------------------


def test_rate_limit(path: str) -> None:
    moments: list[float] = []

    def hook(kind: str, _path: str) -> None:
        if kind == "delete":
            moments.append(time.monotonic())

    hooked(path, hook).cleanup_old_versions(versions=[1, 2, 3, 4], delete_rate_limit=50)
    assert len(moments) >= 10
    assert moments[-1] - moments[0] >= (len(moments) - 1) / 50 * 0.95


def test_concurrency(path: str) -> None:
    active, most, lock = [0], [0], threading.Lock()

    class Slow(LocalStore):
        def delete(self, path: str) -> None:
            with lock:
                active[0] += 1
                most[0] = max(most[0], active[0])
            time.sleep(0.005)
            super().delete(path)
            with lock:
                active[0] -= 1

    for limit in (1, 3):
        most[0] = 0
        dataset = lance.LanceDataset(path, _store=(Slow(fsync=False), path))
        dataset.cleanup_old_versions(versions=[limit * 2, limit * 2 + 1], delete_concurrency=limit)
        assert most[0] == limit


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"retain_versions": 0}, ValueError),
        ({"retain_versions": -1}, OverflowError),
        ({"retain_versions": 1.5}, TypeError),
        ({"versions": []}, ValueError),
        ({"versions": [-1]}, OverflowError),
        ({"versions": "12"}, TypeError),
        ({"older_than": 5}, TypeError),
        ({"delete_rate_limit": 0}, ValueError),
        ({"delete_concurrency": 0}, ValueError),
        ({"delete_concurrency": 1 << 61}, ValueError),
        ({"delete_concurrency": -1}, OverflowError),
        ({"delete_unverified": "no"}, TypeError),
        ({"delete_unverified": 1}, TypeError),
        ({"error_if_tagged_old_versions": "yes"}, TypeError),
    ],
    ids=str,
)
def test_wrong_arguments(path: str, options: dict[str, object], error: type[Exception]) -> None:
    before = files(path)
    with pytest.raises(error):
        lance.dataset(path).cleanup_old_versions(**options)
    assert files(path) == before


def test_switches_that_are_not_given(path: str) -> None:
    dataset = lance.dataset(path)
    dataset.tags.create("old", 1)
    for call in (dataset.cleanup_old_versions, dataset.explain_cleanup_old_versions):
        with pytest.raises(ValueError, match="1 tagged version"):
            call(dt.timedelta(0), delete_unverified=None, error_if_tagged_old_versions=None)


def test_wrong_limit_of_files(path: str) -> None:
    with pytest.raises(ValueError, match="max_files must be positive"):
        lance.dataset(path).explain_cleanup_old_versions(max_files=0)


def test_memory_store() -> None:
    session = lance.Session()
    for _ in range(4):
        lance.write_dataset(ROWS, "memory://a", mode="overwrite", session=session)
    dataset = lance.dataset("memory://a", session=session)
    assert dataset.cleanup_old_versions(**ALL).data_files_removed == 3
    assert dataset.to_table().num_rows == 10


def test_external_manifest_store(tmp_path: Path) -> None:
    """Entries of removed versions go too."""
    options = {"manifest_store_url": f"sqlite:///{tmp_path}/manifests.db", "manifest_store_table": "mine"}
    path = str(tmp_path / "t")
    for _ in range(4):
        lance.write_dataset(ROWS, path, mode="overwrite", storage_options=options)
    dataset = lance.dataset(path, storage_options=options)
    assert dataset.cleanup_old_versions(**ALL).old_versions == 3
    engine = sqlalchemy.create_engine(options["manifest_store_url"])
    with engine.connect() as connection:
        assert [row[0] for row in connection.execute(sqlalchemy.text("select version from mine"))] == [4]
    engine.dispose()
    assert lance.write_dataset(ROWS, path, mode="append", storage_options=options).version == 5
    check_complete(path)


def test_staging_manifests_of_dead_writers(tmp_path: Path) -> None:
    options = {"manifest_store_url": f"sqlite:///{tmp_path}/manifests.db", "manifest_store_table": "mine"}
    path = str(tmp_path / "t")
    for _ in range(3):
        lance.write_dataset(ROWS, path, mode="append" if os.path.exists(path) else "create", storage_options=options)

    def staging(version: int, age: float) -> str:
        name = f"_versions/{manifest_name(version, Naming.V2)}-{uuid.uuid4()}"
        Path(path, name).write_bytes(b"12345")
        os.utime(f"{path}/{name}", (time.time() - age * 86400,) * 2)
        return name

    dead = {staging(2, 8), staging(2, 9), staging(3, 8)}
    alive = {staging(2, 6.9), staging(4, 8)}
    pending = f"_versions/{manifest_name(2, Naming.V2)}-{uuid.uuid4()}"
    final = Path(path, "_versions", manifest_name(2, Naming.V2))
    Path(path, pending).write_bytes(final.read_bytes())
    os.utime(f"{path}/{pending}", (time.time() - 8 * 86400,) * 2)
    store = resolve(path, options)[0]
    assert store.external_manifests is not None
    store.external_manifests.put_if_exists(store.external_manifests.key(store, path), ManifestEntry(2, pending, None))
    final.unlink()
    # Without the external store nobody knows which are needed.
    assert lance.dataset(path).cleanup_old_versions(delete_unverified=True).bytes_removed == 0
    assert lance.dataset(path, storage_options=options).cleanup_old_versions(delete_unverified=True).bytes_removed == 15
    assert {name for name in files(path) if ".manifest-" in name} == alive | {pending}
    assert dead.isdisjoint(files(path))
    assert lance.dataset(path, version=2, storage_options=options).count_rows() == 20


def test_leftovers_of_atomic_writes(path: str) -> None:
    """Temporary names of a local store, wherever a writer was killed."""
    left = [f"{path}/{folder}.tmp_abc" for folder in ("", "_versions/", "_transactions/", "_deletions/", "data/")]
    for name in left:
        Path(name).write_bytes(b"12345")
    lance.dataset(path).cleanup_old_versions()
    assert all(os.path.exists(name) for name in left)
    for name in left:
        os.utime(name, (time.time() - 8 * 86400,) * 2)
    assert lance.dataset(path).cleanup_old_versions() == lance.CleanupStats(25, 0, 0, 0, 0, 0, 0)
    assert not any(os.path.exists(name) for name in left)


def test_table_of_nothing_but_the_copy() -> None:
    """Very old tables may have no numbered manifest."""
    store = MemoryStore()
    lance_fixture = Path(__file__).parent.parent / "fixtures/datasets/pylance-0.4.21-default/ds.lance"
    for file in lance_fixture.rglob("*"):
        if file.is_file() and "_versions" not in file.parts:
            store.put(f"/t/{file.relative_to(lance_fixture)}", file.read_bytes())
    manifest = read_latest(store, "/t")
    assert manifest is not None
    assert cleanup(store, "/t", manifest, CleanupPolicy()) == Removed()


def test_base_path_that_is_the_table_itself() -> None:
    usage = FileUsage()
    usage.add(VersionFiles(frozenset({b"a.lance"}), frozenset({"_indices/i"}), frozenset({(1, "data/b.lance")})))
    assert usage.uses("data/a.lance")
    assert usage.uses("data/a/0.blob")
    assert usage.uses("data/b.lance")
    assert usage.uses("data/b/0.blob")
    assert usage.uses("_indices/i/deep/file")
    assert not usage.uses("data/c.lance")
    assert not usage.uses("_indices/j/file")


def test_branch_that_is_a_base_path_of_the_main_one(path: str) -> None:
    branch = lance.dataset(path).create_branch("exp")
    lance.dataset(path).add_bases([lance.DatasetBasePath(f"{path}/tree/exp", "exp", is_dataset_root=True)])
    lance.write_dataset(ROWS, path, mode="append", target_bases=["exp"])
    branch.cleanup_old_versions(**ALL, delete_unverified=True)
    assert lance.dataset(path).to_table().num_rows == 19


@pytest.mark.parametrize("inner", ["data/other.lance", "data", "data/a/b", "_indices/t"])
def test_another_table_inside_a_folder(path: str, inner: str) -> None:
    """The reference removes its files."""
    other = lance.write_dataset(ROWS, f"{path}/{inner}")
    other.delete("x = 1")
    lance.write_dataset(ROWS, other.create_branch("exp"), mode="append")
    left = f"{path}/data/left.lance"
    Path(left).write_bytes(b"12345")
    theirs = f"{path}/{inner}/data" if inner == "data" else f"{path}/{inner}"
    before = files(theirs)
    lance.dataset(path).cleanup_old_versions(**ALL, delete_unverified=True)
    assert files(theirs) == before
    assert not os.path.exists(left)
    assert lance.dataset(path).to_table().num_rows == lance.dataset(other.uri).to_table().num_rows == 9
    assert lance.dataset(other.uri).checkout_version(("exp", None)).to_table().num_rows == 19


def test_branch_behind_a_link(path: str, tmp_path: Path) -> None:
    """Tags and branches are found by the place of a branch."""
    branch = lance.dataset(path).create_branch("exp")
    branch.tags.create("keep")
    lance.write_dataset(ROWS, branch, mode="overwrite")
    (tmp_path / "link").symlink_to(f"{path}/tree/exp")
    before = files(path)
    with pytest.raises(ValueError, match="link to the branch 'exp'; open it as"):
        lance.dataset(str(tmp_path / "link")).cleanup_old_versions(**ALL)
    assert files(path) == before
    (tmp_path / "table-link").symlink_to(path)
    with pytest.raises(ValueError, match="tagged version"):
        lance.dataset(f"{tmp_path}/table-link/tree/exp").cleanup_old_versions(**ALL)


def test_large_manifests_go_in_small_steps(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their content is kept in memory for a while."""
    monkeypatch.setattr("lance_dataset.table.cleanup.removal._STEP_BYTES", 1)
    kinds: list[str] = []
    removed = hooked(path, lambda kind, name: kinds.append(kind)).cleanup_old_versions(**ALL)
    assert removed.old_versions == kinds.count("sync") == 9
    check_complete(path)


def test_branch_inside_the_folders_of_another(tmp_path: Path) -> None:
    """Releases of the reference allow a branch a/data, whose files lie among those of branch a."""
    store: ObjectStore = LocalStore()
    lance.write_dataset(ROWS, tmp_path / "t").create_branch("a")
    root = str(tmp_path / "t")
    (tmp_path / "t/_refs/branches/a%2Fdata.json").write_text(
        '{"parentBranch": "a", "parentVersion": 1, "createAt": 1, "manifestSize": 1}'
    )
    usage = BranchUsage(store, root, "a")
    usage.refresh()
    assert usage.owns(f"{root}/tree/a/data/data/x.lance")
    assert not usage.owns(f"{root}/tree/a/data/x.lance")


def test_missing_version_is_no_error(path: str) -> None:
    with pytest.raises(MissingFileError):
        LocalStore().read(f"{path}/_versions/none.manifest")
    assert lance.dataset(path).cleanup_old_versions(versions=[99, 3]).old_versions == 1


# -- durations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0", 0), ("0s", 0), ("14d", 14 * 86400), ("14days", 14 * 86400), ("1h 30m", 5400), ("1h30m", 5400)),
        *(("1.5s", 1.5), ("1w", 7 * 86400), ("1M", 2630016), ("1year", 31557600), ("1 d 2 h", 93600), (" 5min ", 300)),
        *(("1ms", 0.001), ("1us", 1e-6), ("3ns", 3e-9), ("1d1d", 2 * 86400)),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds * 1e9, abs=0)


@pytest.mark.parametrize("text", ["", " ", "5", "-1s", "1H", "3fortnights", "99999999999999999999d", "s", "1.s", "d1"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_duration_round_trip() -> None:
    for seconds in (0, 1, 59, 60, 3599, 3661, 86400, 90061, 14 * 86400, 2630016, 34560000, 31557600 * 3 + 1):
        assert parse_duration(format_duration(seconds)) == seconds * 10**9
    assert format_duration(34560000) == "1year 1month 4days 7h 26m 24s"
