"""Tests of limits of a cleanup: amount of work, speed, and the durations that users write."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
import uuid
from pathlib import Path

import pytest
import sqlalchemy
from support.tables.cleanup_table import ALL, ROWS, check_complete, files, hooked
from support.tables.over_store import dataset_over

import lance_dataset as lance
from lance_dataset.errors import (
    MissingFileError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.external.base import ManifestEntry
from lance_dataset.io.guarded import external_manifests_of
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.io.resolve import resolve
from lance_dataset.table.cleanup.branch_usage import BranchUsage
from lance_dataset.table.cleanup.durations import format_duration, parse_duration
from lance_dataset.table.cleanup.file_usage import FileUsage, VersionFiles
from lance_dataset.table.cleanup.removal import CleanupPolicy, Removed, cleanup
from lance_dataset.table.naming import Naming, manifest_name
from lance_dataset.table.versions import read_latest


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Make a table of five versions, each with a data file and, except the first, a deletion file."""
    path = str(tmp_path / "table")
    for version in range(5):
        lance.write_dataset(ROWS, path, mode="overwrite").delete(f"x = {version}")
    return path


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
        """A store whose removals wait until a number of them have started, or half a second has passed."""

        def delete(self, path: str) -> None:
            with lock:
                active[0] += 1
                most[0] = max(most[0], active[0])
                if most[0] >= limit:
                    reached.set()
            reached.wait(0.5)
            time.sleep(0.005)
            super().delete(path)
            with lock:
                active[0] -= 1

    for limit in (1, 3):
        most[0], reached = 0, threading.Event()
        dataset = dataset_over(Slow(fsync=False), path)
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
    """The entries of removed versions in an external manifest store are removed too."""
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
    manifests = external_manifests_of(store)
    assert manifests is not None
    manifests.put_if_exists(manifests.key(store.uri(path), path), ManifestEntry(2, pending, None))
    final.unlink()
    # Without the external store it is unknown which files are needed.
    assert lance.dataset(path).cleanup_old_versions(delete_unverified=True).bytes_removed == 0
    assert lance.dataset(path, storage_options=options).cleanup_old_versions(delete_unverified=True).bytes_removed == 15
    assert {name for name in files(path) if ".manifest-" in name} == alive | {pending}
    assert dead.isdisjoint(files(path))
    assert lance.dataset(path, version=2, storage_options=options).count_rows() == 20


def test_leftovers_of_atomic_writes(path: str) -> None:
    """Temporary files of a local store are removed after seven days, wherever a writer was killed."""
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
    """A very old table, with the copy of the newest manifest only, can be cleaned."""
    store = MemoryStore()
    lance_fixture = Path(__file__).parents[2] / "fixtures/datasets/pylance-0.4.21-default/ds.lance"
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
    """Another table inside a folder of the table stays; the reference removes its files."""
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
    """A cleanup of a branch opened through a link raises an error; through a link to the table, tags are found."""
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
    """Large manifests are removed in small steps, because their content is in memory for a while."""
    monkeypatch.setattr("lance_dataset.table.cleanup.removal._STEP_BYTES", 1)
    kinds: list[str] = []
    removed = hooked(path, lambda kind, name: kinds.append(kind)).cleanup_old_versions(**ALL)
    assert removed.old_versions == kinds.count("sync") == 9
    check_complete(path)


def test_branch_inside_the_folders_of_another(tmp_path: Path) -> None:
    """The files of a branch a/data, which releases of the reference allow, stay although they are among those of a."""
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
