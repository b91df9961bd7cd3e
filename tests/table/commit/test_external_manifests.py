"""Tests of commits whose manifests are listed in an external table, interrupted at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from support.stores.stepping_stores import ROOT, STAGED, Lock, PlainStore, append, names, rows
from support.tables.bare_tables import SCHEMA, create, fragment

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptFileError,
    DatasetNotFoundError,
    MissingFileError,
    StorageError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.external.base import ExternalManifests, ManifestEntry
from lance_dataset.io.external.sql import SqlManifests, sql_manifests
from lance_dataset.io.guarded import with_commit_lock, with_manifests
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.dropping import drop_table
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.naming import (
    Naming,
    manifest_name,
    manifest_path,
)
from lance_dataset.table.old_tables.migration import migrate_names
from lance_dataset.table.operations import Append, Overwrite
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import find_latest, list_versions, locate_version, read_latest, read_version


class Crash(BaseException):
    """End of the process."""


class Steps:
    """A counter of changes of a store and an external table together, which ends the process at one of them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.last = -1
        self.error: Callable[[], BaseException] = Crash

    def __call__(self, what: str) -> None:
        if len(self.done) == self.last:
            raise self.error()
        self.done.append(what)


class SteppingStore(MemoryStore):
    """A store that reports every change before it is made."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._steps(f"put {_kind(path)}")
        super().put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._steps(f"create {_kind(path)}")
        super().put_if_absent(path, data)

    def delete(self, path: str) -> None:
        self._steps(f"delete {_kind(path)}")
        super().delete(path)


class SteppingManifests(ExternalManifests):
    """An external table that reports every change before it is made."""

    def __init__(self, inner: ExternalManifests, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps
        self.key = inner.key  # type: ignore[method-assign]
        self.get = inner.get  # type: ignore[method-assign]
        self.get_latest = inner.get_latest  # type: ignore[method-assign]

    def key(self, uri: str, root: str) -> str: ...
    def get(self, key: str, version: int) -> ManifestEntry | None: ...
    def get_latest(self, key: str) -> ManifestEntry | None: ...

    def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
        self._steps("insert")
        self._inner.put_if_absent(key, entry)

    def put_if_exists(self, key: str, entry: ManifestEntry) -> None:
        self._steps("update")
        self._inner.put_if_exists(key, entry)

    def delete(self, key: str, versions: Iterable[int] | None = None) -> None:
        self._steps("forget")
        self._inner.delete(key, versions)


def _kind(path: str) -> str:
    return "transaction" if path.endswith(".txn") else "staging" if ".manifest-" in path else path.rsplit(".", 1)[-1]


@pytest.fixture
def manifests(tmp_path: Path) -> SqlManifests:
    return sql_manifests(f"sqlite:///{tmp_path}/manifests.db")


def entry_of(version: int, name: str = "", size: int | None = None) -> ManifestEntry:
    return ManifestEntry(version, f"_versions/{name or manifest_name(version, Naming.V2)}", size)


# -- an external table -------------------------------------------------------------------------------------------------


def test_commits_through_a_table(manifests: SqlManifests) -> None:
    steps = Steps()
    store = with_manifests(SteppingStore(steps), SteppingManifests(manifests, steps))
    create(store, ROOT, 1)
    expected = ["create transaction", "put staging", "insert", "create manifest", "update", "delete staging"]
    assert steps.done == expected
    assert append(store, 2) == 2
    assert steps.done == expected * 2
    key = manifests.key(store.uri(ROOT), ROOT)
    content = store.read(manifest_path(ROOT, 2, Naming.V2))
    assert manifests.get_latest(key) == entry_of(2, size=len(content))
    assert names(store) == sorted(manifest_name(version, Naming.V2) for version in (1, 2))
    assert rows(store) == [1, 2]


def test_stores_without_conditional_put(manifests: SqlManifests) -> None:
    store = with_manifests(PlainStore(), manifests)
    create(store, ROOT, 1)
    assert [append(store, 2), append(store, 3)] == [2, 3]
    assert rows(store) == [1, 2, 3]
    migrate_names(store, ROOT)
    with pytest.raises(AlreadyExistsError):
        create_table(store, ROOT, Transaction(0, Overwrite(SCHEMA, ())))


@pytest.mark.parametrize("last", range(6))
@pytest.mark.parametrize("then", ["reader", "writer", "both"])
def test_a_writer_may_end_at_any_step(manifests: SqlManifests, last: int, then: str) -> None:
    steps = Steps()
    inner = SteppingStore(steps)
    store = with_manifests(inner, SteppingManifests(manifests, steps))
    create(store, ROOT, 1)
    steps.done, steps.last = [], last
    with pytest.raises(Crash):
        append(store, 2)
    steps.last = -1
    inserted = "insert" in steps.done
    whole = [1, 2] if inserted else [1]
    if then != "writer":
        assert rows(store) == whole
    if then != "reader":
        assert append(store, 3) == len(whole) + 1
        whole.append(3)
    assert rows(store) == whole
    # Programs that do not know of the table read the same.
    plain = with_manifests(inner, None)
    assert rows(plain) == whole
    key = manifests.key(store.uri(ROOT), ROOT)
    for version in range(1, len(whole) + 1):
        entry = manifests.get(key, version)
        assert entry is not None
        assert entry.path == entry_of(version).path
        assert entry.size == len(store.read(f"{ROOT}/{entry.path}"))
    staged = [name for name in names(store) if ".manifest-" in name]
    # Files that were never referred to stay for a cleanup, as do those that the writer had no time to remove.
    assert len(staged) == (1 if steps_left(last) else 0)


def steps_left(last: int) -> bool:
    return last in (2, 5)


@pytest.mark.parametrize("last", range(3, 6))
def test_failures_after_the_insert_do_not_fail_the_commit(
    manifests: SqlManifests, last: int, caplog: pytest.LogCaptureFixture
) -> None:
    steps = Steps()
    store = with_manifests(SteppingStore(steps), SteppingManifests(manifests, steps))
    create(store, ROOT, 1)
    steps.done, steps.last, steps.error = [], last, lambda: OSError("the network is down")
    assert append(store, 2) == 2
    assert ("will be completed" in caplog.text) == (last == 3)
    steps.last = -1
    assert rows(store) == [1, 2]
    assert append(store, 3) == 3


@pytest.mark.parametrize("last", range(3))
def test_failures_before_the_insert_fail_the_commit(manifests: SqlManifests, last: int) -> None:
    steps = Steps()
    store = with_manifests(SteppingStore(steps), SteppingManifests(manifests, steps))
    create(store, ROOT, 1)
    steps.done, steps.last, steps.error = [], last, lambda: OSError("the network is down")
    with pytest.raises(OSError, match="network"):
        append(store, 2)
    steps.last = -1
    assert rows(store) == [1]
    assert append(store, 3) == 2


def test_a_repeated_insert_meets_its_own_entry(manifests: SqlManifests) -> None:
    """A repeated insert recognizes its own entry, also if a reader completed the version in between."""

    class Repeating(SteppingManifests):
        completed_by: ObjectStore | None = None

        def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
            self._inner.put_if_absent(key, entry)
            if self.completed_by is not None:
                find_latest(self.completed_by, ROOT)
            self._inner.put_if_absent(key, entry)

    objects = MemoryStore()
    repeating = Repeating(manifests, Steps())
    store = with_manifests(objects, repeating)
    create(store, ROOT, 1)
    assert append(store, 2) == 2
    repeating.completed_by = with_manifests(objects, manifests)
    assert append(store, 3) == 3
    assert rows(store) == [1, 2, 3]
    assert manifests.get(manifests.key(store.uri(ROOT), ROOT), 4) is None


def test_an_insert_whose_answer_is_lost(manifests: SqlManifests) -> None:
    class Silent(SteppingManifests):
        def put_if_absent(self, key: str, entry: ManifestEntry) -> None:
            self._inner.put_if_absent(key, entry)
            raise StorageError("no answer")

    store = with_manifests(MemoryStore(), Silent(manifests, Steps()))
    create(store, ROOT, 1)
    assert append(store, 2) == 2
    assert rows(store) == [1, 2]


def staged_version(store: MemoryStore, manifests: SqlManifests, *, staging: bool = True, final: bool = False) -> None:
    """Make a table with one version, and a second one that its writer did not complete."""
    create(store, ROOT, 1)
    direct = with_manifests(store, None)
    append(direct, 2)
    path = manifest_path(ROOT, 2, Naming.V2)
    content = store.read(path)
    if staging:
        store.put(f"{ROOT}/_versions/{STAGED}", content)
    if not final:
        store.delete(path)
    manifests.put_if_absent(manifests.key(store.uri(ROOT), ROOT), entry_of(2, STAGED, len(content)))


@pytest.mark.parametrize(("staging", "final"), [(True, False), (True, True), (False, True)])
@pytest.mark.parametrize("how", ["latest", "version", "list"])
def test_readers_complete_versions(manifests: SqlManifests, staging: bool, final: bool, how: str) -> None:
    objects = MemoryStore()
    staged_version(objects, manifests, staging=staging, final=final)
    store = with_manifests(objects, manifests)
    if how == "latest":
        assert rows(store) == [1, 2]
    elif how == "version":
        assert read_version(store, ROOT, 2).version == 2
    else:
        assert [name.version for name in list_versions(store, ROOT)] == [1, 2]
    assert names(objects) == sorted(manifest_name(version, Naming.V2) for version in (1, 2))
    size = len(objects.read(manifest_path(ROOT, 2, Naming.V2)))
    assert manifests.get(manifests.key(store.uri(ROOT), ROOT), 2) == entry_of(2, size=size)


def test_readers_that_may_only_read(manifests: SqlManifests) -> None:
    class ReadOnly(MemoryStore):
        def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
            raise PermissionError("read only")

        put_if_absent = delete = put  # type: ignore[assignment]

    objects = MemoryStore()
    staged_version(objects, manifests)
    reader = ReadOnly()
    reader._objects = objects._objects
    store = with_manifests(reader, manifests)
    assert rows(store) == [1, 2]
    assert read_version(store, ROOT, 2).version == 2
    assert [name.version for name in list_versions(store, ROOT)] == [1, 2]
    with pytest.raises(PermissionError):
        append(store, 3)
    assert rows(with_manifests(objects, manifests)) == [1, 2]
    assert names(objects) == sorted(manifest_name(version, Naming.V2) for version in (1, 2))


def test_a_version_of_which_nothing_is_left(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    staged_version(objects, manifests, staging=False)
    store = with_manifests(objects, manifests)
    with pytest.raises(CorruptFileError, match="but neither that nor"):
        read_latest(store, ROOT)
    drop_table(store, ROOT)
    assert find_latest(store, ROOT) is None


@pytest.mark.parametrize("name", ["18446744073709551612.manifest", "x.manifest", "../../x/2.manifest", "2.txn"])
def test_entries_that_name_something_else(manifests: SqlManifests, name: str) -> None:
    store = with_manifests(MemoryStore(), manifests)
    create(store, ROOT, 1)
    manifests.put_if_absent(manifests.key(store.uri(ROOT), ROOT), entry_of(2, name))
    with pytest.raises(CorruptFileError, match="says that version 2 is in"):
        read_latest(store, ROOT)


def test_a_table_that_is_not_listed(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    create(objects, ROOT, 1)
    for count in range(2, 6):
        append(objects, count)
    store = with_manifests(objects, manifests)
    key = manifests.key(store.uri(ROOT), ROOT)
    # An entry for an old version would make it the newest.
    assert read_version(store, ROOT, 2).version == 2
    assert manifests.get_latest(key) is None
    assert rows(store) == [1, 2, 3, 4, 5]
    assert append(store, 6) == 6
    assert manifests.get_latest(key) == entry_of(6, size=len(objects.read(manifest_path(ROOT, 6, Naming.V2))))
    assert read_version(store, ROOT, 3).version == 3
    assert manifests.get(key, 3) == entry_of(3, size=len(objects.read(manifest_path(ROOT, 3, Naming.V2))))
    assert [name.version for name in list_versions(store, ROOT)] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(VersionNotFoundError):
        read_version(store, ROOT, 7)
    with pytest.raises(DatasetNotFoundError):
        read_version(store, "/other", 1)


def test_writers_that_do_not_know_of_the_table(manifests: SqlManifests) -> None:
    """Versions of writers that do not know of the table are kept, and those of this package follow them."""
    objects = MemoryStore()
    store = with_manifests(objects, manifests)
    create(store, ROOT, 1)
    assert append(objects, 2) == 2
    assert append(objects, 3) == 3
    assert append(store, 4) == 4
    assert rows(store) == rows(objects) == [1, 2, 3, 4]
    key = manifests.key(store.uri(ROOT), ROOT)
    for version in range(1, 5):
        size = len(objects.read(manifest_path(ROOT, version, Naming.V2)))
        assert manifests.get(key, version) == entry_of(version, size=size)
    assert not [name for name in names(objects) if ".manifest-" in name]


def test_dropping(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    store = with_manifests(objects, manifests)
    branch = f"{ROOT}/tree/dev/x"
    for root in (ROOT, branch, "/dir/tt"):
        create(store, root, 1)
        append(store, 2, root)
    objects.put(f"{ROOT}/_refs/branches/dev%2Fx.json", b"{}")
    drop_table(store, ROOT)
    assert manifests.get_latest(manifests.key(store.uri(ROOT), ROOT)) is None
    assert manifests.get_latest(manifests.key(store.uri(branch), branch)) is None
    assert rows(store, "/dir/tt") == [1, 2]
    create(store, ROOT, 5)
    assert rows(store) == [5]


def test_a_table_removed_by_others(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    store = with_manifests(objects, manifests)
    create(store, ROOT, 1)
    objects.delete_tree(ROOT)
    with pytest.raises(MissingFileError, match="drop removes what it left"):
        read_latest(store, ROOT)


def test_forgotten_versions(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    store = with_manifests(objects, manifests)
    create(store, ROOT, 1)
    for count in range(2, 6):
        append(store, count)
    commit_protocol(store).forget(store, ROOT, [1, 2])
    for version in (1, 2, 3):
        objects.delete(manifest_path(ROOT, version, Naming.V2))
    # The reference removes old versions without their entries, here 3.
    for version in (1, 2, 3):
        with pytest.raises(VersionNotFoundError):
            read_version(store, ROOT, version)
    assert [name.version for name in list_versions(store, ROOT)] == [4, 5]
    assert append(store, 6) == 6


def test_old_names_and_their_migration(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    store = with_manifests(objects, manifests)
    create(store, ROOT, 1, v2=False)
    assert append(store, 2) == 2
    key = manifests.key(store.uri(ROOT), ROOT)
    entry = manifests.get_latest(key)
    assert entry is not None
    assert entry.path == "_versions/2.manifest"
    migrate_names(store, ROOT)
    for version in (1, 2):
        found = manifests.get(key, version)
        assert found is not None
        assert found.path == entry_of(version).path
    assert names(store) == sorted(manifest_name(version, Naming.V2) for version in (1, 2))
    assert append(store, 3) == 3
    assert rows(store) == [1, 2, 3]


def test_detached_versions_have_no_entry(manifests: SqlManifests) -> None:
    store = with_manifests(MemoryStore(), manifests)
    made = create(store, ROOT, 1)
    number = 2**63 + 12345
    content = store.read(locate_version(store, ROOT, made.version))
    commit_protocol(store).publish(store, ROOT, number, Naming.DETACHED, content)
    assert locate_version(store, ROOT, number).endswith(f"/d{number}.manifest")
    with pytest.raises(AlreadyExistsError):
        commit_protocol(store).publish(store, ROOT, number, Naming.DETACHED, content)
    latest = find_latest(store, ROOT)
    assert latest is not None
    assert latest.version == 1


def test_a_lock_and_a_table(manifests: SqlManifests) -> None:
    lock = Lock()
    store = with_commit_lock(with_manifests(PlainStore(), manifests), lock)
    create(store, ROOT, 1)
    append(store, 2)
    assert lock.log == [1, 2]
    assert manifests.get_latest(manifests.key(store.uri(ROOT), ROOT)) is not None
    assert rows(store) == [1, 2]
    assert read_manifest(store, locate_version(store, ROOT, 2)).version == 2


def test_a_lost_race_is_told(manifests: SqlManifests) -> None:
    objects = MemoryStore()
    store = with_manifests(objects, manifests)
    create(store, ROOT, 1)
    change = Transaction(1, Append((fragment(2),)))
    commit_transaction(store, ROOT, change)
    with pytest.raises(CommitConflictError, match="committed already"):
        commit_transaction(store, ROOT, change)
    with pytest.raises(AlreadyExistsError):
        commit_protocol(store).publish(store, ROOT, 2, Naming.V2, b"another")
    assert names(store) == sorted(manifest_name(version, Naming.V2) for version in (1, 2))


def test_put_if_absent(manifests: SqlManifests) -> None:
    for store in (MemoryStore(), with_manifests(PlainStore(), manifests), with_commit_lock(PlainStore(), Lock())):
        store.put_if_absent("/a", b"1")
        with pytest.raises(AlreadyExistsError):
            store.put_if_absent("/a", b"2")
        assert store.read("/a") == b"1"
