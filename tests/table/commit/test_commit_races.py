"""Tests of concurrent commits of several writers, and of the files that a losing commit leaves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.tables.bare_tables import SCHEMA, append, create, delete, deleted, fragment, read

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DatasetNotFoundError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.deletions import write_deletions
from lance_dataset.table.manifest import Manifest, encode_manifest
from lance_dataset.table.naming import manifest_path
from lance_dataset.table.operations import (
    Append,
    Delete,
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    UpdateConfig,
    UpdateMap,
)
from lance_dataset.table.paths import deletion_name
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import latest_version, list_versions, locate_version, read_latest, read_newest

# -- several writers -------------------------------------------------------------------------------------------------


def test_appends_go_together(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 1)
    append(store, root, 1, 2)
    third = append(store, root, 1, 3)
    assert [item.physical_rows for item in third.fragments] == [1, 2, 3]
    transaction = read_transaction(store, root, third)
    assert transaction is not None
    assert transaction.read_version == 2


def test_deletes_of_different_rows_go_together(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    base = create(store, root, 10, 10)
    delete(store, root, base, {0: [1, 2]})
    third = delete(store, root, base, {0: [5], 1: [0]})
    assert deleted(store, root, third) == {0: [1, 2, 5], 1: [0]}
    assert third.fragments[0].deletion_file is not None
    assert third.fragments[0].deletion_file.read_version == 2
    rest = delete(store, root, base, {0: [0, 3, 4, 6, 7, 8, 9]})
    assert [item.id for item in rest.fragments] == [1]


def test_deletes_of_one_row_do_not(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    base = create(store, root, 10, 10)
    delete(store, root, base, {0: [1, 2]})
    for rows in ({0: [2, 3]}, {0: list(range(10))}):
        with pytest.raises(CommitConflictError, match=r"Retryable commit conflict for version 2.*Delete") as caught:
            delete(store, root, base, rows)
        assert caught.value.retryable
    unknown = Delete((replace(base.fragments[0], deletion_file=write_deletions(store, root, 0, 1, [7])),))
    with pytest.raises(CommitConflictError, match="Retryable"):
        commit_transaction(store, root, Transaction(1, unknown))
    assert latest_version(store, root).version == 2


def test_conflicts(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    base = create(store, root, 10)
    commit_transaction(store, root, Transaction(1, Overwrite(SCHEMA, (fragment(),), {"k": "1"})))
    with pytest.raises(
        CommitConflictError, match=r"This Append transaction is incompatible.*Overwrite at version 2"
    ) as caught:
        append(store, root, 1, 1)
    assert not caught.value.retryable
    with pytest.raises(CommitConflictError, match="incompatible"):
        delete(store, root, base, {0: [1]})
    for config, retryable in (({}, True), ({"k": "2"}, False)):
        with pytest.raises(CommitConflictError) as caught:
            commit_transaction(store, root, Transaction(1, Overwrite(SCHEMA, (), config)))
        assert caught.value.retryable is retryable
    assert commit_transaction(store, root, Transaction(1, Restore(1))).version == 3


def test_strict_overwrite(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 10)
    append(store, root, 1, 1)
    overwrite = Overwrite(SCHEMA, (fragment(),))
    with pytest.raises(CommitConflictError):
        commit_transaction(store, root, Transaction(1, overwrite), max_retries=0)
    assert commit_transaction(store, root, Transaction(2, overwrite), max_retries=0).version == 3


def test_a_strict_overwrite_that_is_repeated(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 1)
    change = Transaction(1, Overwrite(SCHEMA, (fragment(5),)))
    commit_transaction(store, root, change, max_retries=0)
    append(store, root, 2, 1)
    with pytest.raises(CommitConflictError, match=f"{change.uuid} was committed already, as version 2") as caught:
        commit_transaction(store, root, change, max_retries=0)
    assert not caught.value.retryable
    with pytest.raises(VersionNotFoundError, match="computed against version 7, but the newest version is 3"):
        commit_transaction(store, root, replace(change, read_version=7), max_retries=0)


def test_versions_without_transaction(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 10)
    second = append(store, root, 1, 1)
    store.put(second.path, encode_manifest(replace(second, inline_transaction=None, transaction_file="")))
    with pytest.raises(CommitConflictError, match="version 2 does not have a transaction file"):
        append(store, root, 1, 1)
    assert append(store, root, 2, 1).version == 3


def test_sixteen_threads(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 1)
    with ThreadPoolExecutor(16) as pool:
        versions = list(pool.map(lambda rows: append(store, root, 1, rows).version, range(100, 132)))
    assert sorted(versions) == list(range(2, 34))
    manifest = read(store, root)
    assert sorted(item.physical_rows for item in manifest.fragments) == [1, *range(100, 132)]
    assert [item.id for item in manifest.fragments] == list(range(33))


def test_one_creator_wins(table: tuple[ObjectStore, str]) -> None:
    store, root = table

    def attempt(rows: int) -> int | None:
        try:
            return create(store, root, rows).num_rows
        except AlreadyExistsError:
            return None

    with ThreadPoolExecutor(8) as pool:
        winners = [rows for rows in pool.map(attempt, range(1, 9)) if rows is not None]
    assert winners == [read(store, root).num_rows]


def _append_often(root: str, process: int) -> None:
    store = LocalStore()
    for number in range(8):
        base = latest_version(store, root).version
        append(store, root, base, 1000 * process + number + 1)


def test_four_processes(tmp_path: Path) -> None:
    store, root = LocalStore(), f"{tmp_path}/t"
    create(store, root, 1)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_often, args=(root, index)) for index in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    manifest = read(store, root)
    expected = sorted([1] + [1000 * process + number + 1 for process in range(4) for number in range(8)])
    assert sorted(item.physical_rows for item in manifest.fragments) == expected
    assert manifest.version == 33
    assert not [name for name in os.listdir(f"{root}/_versions") if name.startswith(".tmp")]


def test_killed_writers_leave_a_readable_table(tmp_path: Path) -> None:
    store, root = LocalStore(), f"{tmp_path}/t"
    create(store, root, 1)
    program = (
        "from lance_dataset.io.local import LocalStore\n"
        "from lance_dataset.table.commit.loop import commit_transaction\n"
        "from lance_dataset.table.fragment import DataFile, Fragment\n"
        "from lance_dataset.table.operations import Append\n"
        "from lance_dataset.table.transaction import Transaction\n"
        "from lance_dataset.table.versions import latest_version\n"
        "import sys\n"
        "store, root = LocalStore(), sys.argv[1]\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    new = Fragment(0, (DataFile('f.lance', (0,), (0,), 2, 2),), physical_rows=1)\n"
        "    commit_transaction(store, root, Transaction(latest_version(store, root).version, Append((new,))))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    before = 1
    for attempt in range(3):
        process = subprocess.Popen([sys.executable, "-c", program, root], env=environment, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.037 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        manifest = read(store, root)
        assert manifest.version >= before
        assert manifest.num_rows == manifest.version
        assert [name.version for name in list_versions(store, root)] == list(range(1, manifest.version + 1))
        before = append(store, root, manifest.version, 1).version


# -- losing against others -------------------------------------------------------------------------------------------


class Busy(LocalStore):
    """A store in which others commit just before a number of the writer's versions."""

    def __init__(self, times: int) -> None:
        super().__init__(fsync=False)
        self.times = times
        self.reads: list[str] = []

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.endswith(".manifest") and self.times:
            self.times -= 1
            root = path.partition("/_versions/")[0]
            quiet = LocalStore(fsync=False)
            append(quiet, root, latest_version(quiet, root).version, 1)
        super().put_if_absent(path, data)

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return super().read(path)


def test_attempts_go_on_where_the_last_one_was(tmp_path: Path) -> None:
    root = f"{tmp_path}/t"
    first = create(LocalStore(fsync=False), root, 1)
    store = Busy(6)
    made = commit_transaction(store, root, Transaction(1, Append((fragment(9),))), read_manifest=first)
    assert made.version == 8
    manifests = [path for path in store.reads if path.endswith(".manifest")]
    # The first manifest as the newest, then each as the winner and as the new base; none of the earlier ones again.
    assert len(manifests) <= 1 + 2 * 6
    assert sorted(os.listdir(f"{root}/_transactions")) == sorted(
        read(store, root, version).transaction_file for version in range(1, 9)
    )


def test_attempts_are_bounded(tmp_path: Path) -> None:
    root = f"{tmp_path}/t"
    create(LocalStore(fsync=False), root, 1)
    store = Busy(5)
    with pytest.raises(CommitConflictError, match=r"version 6: other writers were faster 5 times; try again") as caught:
        commit_transaction(store, root, Transaction(1, Append((fragment(9),))), max_retries=5)
    assert caught.value.retryable
    assert latest_version(store, root).version == 6


def test_a_version_that_goes_while_it_is_restored(tmp_path: Path) -> None:
    """Restoring a version that is removed meanwhile raises `VersionNotFoundError`, as its files are removed too."""
    root = f"{tmp_path}/t"

    class Cleaned(Busy):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".manifest") and self.times:
                self.delete(locate_version(self, root, 1))
            super().put_if_absent(path, data)

    create(LocalStore(fsync=False), root, 1)
    append(LocalStore(fsync=False), root, 1, 2)
    with pytest.raises(VersionNotFoundError, match="version 1"):
        commit_transaction(Cleaned(1), root, Transaction(2, Restore(1)))
    assert latest_version(LocalStore(), root).version == 3


@pytest.mark.parametrize("left", [0, 10])
def test_a_transaction_file_that_a_power_failure_cut_short(table: tuple[ObjectStore, str], left: int) -> None:
    """A transaction file that a power failure cut short does not prevent a retry.

    Such files are written without waiting for the disk.
    """
    store, root = table
    create(store, root, 1)
    change = Transaction(1, Append((fragment(2),)))
    store.put(f"{root}/_transactions/{change.file_name}", change.encode()[:left])
    assert commit_transaction(store, root, change).version == 2
    assert store.read(f"{root}/_transactions/{change.file_name}") == change.encode()
    store.put(f"{root}/_transactions/2-{change.uuid}.txn", b"other")
    with pytest.raises(CommitConflictError, match="another transaction with the same id"):
        commit_transaction(store, root, replace(change, read_version=2))


def test_deletes_that_lose_leave_nothing_behind(tmp_path: Path) -> None:
    root, quiet = f"{tmp_path}/t", LocalStore(fsync=False)
    base = create(quiet, root, 10, 10)
    delete(quiet, root, base, {0: [1], 1: [1]})
    made = delete(Busy(3), root, base, {0: [5], 1: [6]})
    assert deleted(quiet, root, made) == {0: [1, 5], 1: [1, 6]}
    # One file of each fragment for version 2. Of ours only the first ones remain, owned by the planner of the delete.
    assert len(os.listdir(f"{root}/_deletions")) == 2 + 2 + 2
    known = set(os.listdir(f"{root}/_deletions"))
    with pytest.raises(CommitConflictError) as caught:
        delete(Busy(20), root, base, {0: [7]}, max_retries=2)
    assert caught.value.retryable
    left = set(os.listdir(f"{root}/_deletions")) - known
    assert {name.split("-")[1] for name in left} == {"1"}


def test_retried_deletes_do_not_read_history_again(tmp_path: Path) -> None:
    root, quiet = f"{tmp_path}/t", LocalStore(fsync=False)
    base = create(quiet, root, 10, 10)
    for _ in range(12):
        append(quiet, root, latest_version(quiet, root).version, 1)
    delete(quiet, root, base, {0: [1]})
    store = Busy(2)
    made = delete(store, root, base, {0: [5]})
    assert deleted(quiet, root, made) == {0: [1, 5]}
    manifests = [path for path in store.reads if path.endswith(".manifest")]
    assert len(manifests) <= 16 + 2 * 2
    files = [path for path in store.reads if "/_deletions/" in path]
    assert len(files) == 1  # theirs, once: later versions did not change the fragment


def test_automatic_cleanup_follows(tmp_path: Path) -> None:
    store, root = LocalStore(fsync=False), f"{tmp_path}/t"
    config = {"lance.auto_cleanup.interval": "3", "lance.auto_cleanup.older_than": "0s"}
    create_table(store, root, Transaction(0, Overwrite(SCHEMA, (fragment(),), config)))
    append(store, root, 1, 1)
    assert [name.version for name in list_versions(store, root)] == [1, 2]
    append(store, root, 2, 1)
    versions = [name.version for name in list_versions(store, root)]
    assert versions[-1] == 3
    assert 1 not in versions


def test_many_deletes_in_one_fragment(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    base = create(store, root, 40, 3)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda row: delete(store, root, base, {0: [row]}).version, range(0, 40, 2)))
    assert sorted(made) == list(range(2, 22))
    last = read(store, root)
    assert deleted(store, root, last) == {0: list(range(0, 40, 2))}
    files = {info.name for info in store.list(f"{root}/_deletions")}
    fragments = [item for version in made for item in read(store, root, version).fragments]
    kept = {deletion_name(item.id, item.deletion_file) for item in fragments if item.deletion_file is not None}
    # The caller owns the files of the first attempts; all others are part of a version.
    assert {name for name in files if name.split("-")[1] != "1"} <= kept
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda row: _tried(store, root, last, row), [1, 1, 3, 1]))
    assert sorted(results) == ["conflict", "conflict", "done", "done"]
    assert deleted(store, root, read(store, root)) == {0: sorted([1, 3, *range(0, 40, 2)])}


def _tried(store: ObjectStore, root: str, base: Manifest, row: int) -> str:
    try:
        delete(store, root, base, {0: [row]})
    except CommitConflictError as error:
        return "conflict" if error.retryable else "error"
    return "done"


def test_opening_while_others_commit_and_clean_up() -> None:
    """Opening works if the newest listed version is removed before it is read."""

    class Busy(MemoryStore):
        busy = False

        def read(self, path: str) -> bytes:
            if self.busy and path.endswith(".manifest"):
                self.busy = False
                commit_transaction(self, "/t", Transaction(1, Append((fragment(),))))
                self.delete(path)
            return super().read(path)

    store = Busy()
    create(store, "/t", 10)
    store.busy = True
    newest = read_latest(store, "/t")
    assert newest is not None
    assert newest.version == 2
    store.delete(newest.path)
    with pytest.raises(DatasetNotFoundError):
        read_newest(store, "/t")


@pytest.mark.parametrize("stable", [False, True])
def test_changes_go_on_where_history_was_cleaned_up(stable: bool) -> None:
    """Small changes can be committed after a cleanup: the version of the handle and the newest one suffice."""

    def table(*meanwhile: Operation) -> tuple[ObjectStore, Manifest]:
        store = MemoryStore()
        read = create(store, "/t", 10, 10, stable=stable)
        for operation in meanwhile:
            latest = read_latest(store, "/t")
            assert latest is not None
            commit_transaction(store, "/t", Transaction(latest.version, operation))
        for name in list_versions(store, "/t")[:-1]:
            store.delete(manifest_path("/t", name.version, name.naming))
        return store, read

    append, overwrite = Append((fragment(),)), Overwrite(SCHEMA, (fragment(),))
    setting, other = (UpdateConfig(UpdateMap({key: "1"})) for key in "ab")

    def attempt(operation: Operation, *meanwhile: Operation) -> int | None:
        store, read = table(*meanwhile)
        try:
            return commit_transaction(store, "/t", Transaction(1, operation), read_manifest=read).version
        except CommitConflictError:
            return None

    assert attempt(append, append, append) == 4
    assert attempt(setting, other, append) == 4
    assert attempt(setting, setting, append) is None
    assert attempt(append, overwrite, append) is None
    assert attempt(Delete((), (0,)), append, append) == 4
    assert attempt(Delete((), (0,)), Delete((), (0,)), append) is None
    assert attempt(Rewrite(()), append, append) is None


def test_a_timeout_ends_the_attempts() -> None:
    class Faster(MemoryStore):
        turns = 0

        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".manifest") and self.turns:
                self.turns -= 1
                time.sleep(0.02)
                raise AlreadyExistsError(path)
            super().put_if_absent(path, data)

    store = Faster()
    create(store, "/t", 10)
    store.turns = 50
    with pytest.raises(CommitConflictError, match="other writers were faster"):
        commit_transaction(store, "/t", Transaction(1, Append((fragment(),))), timeout=0.05)
    assert store.turns > 40
    store.turns = 1
    assert commit_transaction(store, "/t", Transaction(1, Append((fragment(),))), timeout=60).version == 2
