"""Tests of finding versions by manifest name, the copy of the newest manifest, and the migration of names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.tables.bare_tables import SCHEMA, create, fragment

from lance_dataset.errors import (
    AlreadyExistsError,
    CorruptFileError,
    DatasetNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.manifest import Manifest, encode_manifest, read_manifest
from lance_dataset.table.naming import LATEST_COPY, Naming, manifest_name, manifest_path
from lance_dataset.table.old_tables.latest_copy import update_latest_copy
from lance_dataset.table.old_tables.migration import migrate_names
from lance_dataset.table.operations import Append, Overwrite, Restore
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import (
    find_latest,
    latest_version,
    list_versions,
    locate_version,
    read_latest,
    read_named,
    read_version,
)

ROOT = "/t"


class RootedStore(LocalStore):
    """The local file system below a folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(fsync=False)
        self._folder = folder

    def read(self, path: str) -> bytes:
        return super().read(self._folder + path)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        super().put(self._folder + path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(self._folder + path, data)

    def list_names(self, prefix: str) -> Iterator[str]:
        return super().list_names(self._folder + prefix)

    def exists(self, path: str) -> bool:
        return super().exists(self._folder + path)

    def delete(self, path: str) -> None:
        super().delete(self._folder + path)

    def delete_tree(self, prefix: str) -> None:
        super().delete_tree(self._folder + prefix)


class Interrupted(Exception):
    """End of the process."""


class SteppingStore(MemoryStore):
    """A store that calls a function before every change."""

    step: Callable[[], None] | None = None

    def _before(self) -> None:
        if self.step is not None:
            self.step()

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._before()
        super().put(path, data, durable=durable)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._before()
        super().put_if_absent(path, data)

    def delete(self, path: str) -> None:
        self._before()
        super().delete(path)


def append(store: ObjectStore, version: int, *, minor: int = 2) -> Manifest:
    return commit_transaction(store, ROOT, Transaction(version, Append((fragment(minor=minor),))))


def v1_table(store: ObjectStore, versions: int = 3) -> dict[int, bytes]:
    """Return a table with old names, and the content of its manifests by version."""
    create(store, ROOT, 10, v2=False)
    for version in range(1, versions):
        append(store, version)
    return contents(store)


def contents(store: ObjectStore) -> dict[int, bytes]:
    return {name.version: store.read(f"{ROOT}/_versions/{name.name}") for name in list_versions(store, ROOT)}


def names(store: ObjectStore) -> list[str]:
    return sorted(name for name in store.list_names(f"{ROOT}/_versions") if name.endswith(".manifest"))


def v2_names(*versions: int) -> list[str]:
    return sorted(manifest_name(version, Naming.V2) for version in versions)


def legacy_table(store: ObjectStore, *, v2: bool = False) -> Manifest:
    operation = Overwrite(SCHEMA, (fragment(minor=0),))
    return create_table(store, ROOT, Transaction(0, operation), enable_v2_manifest_paths=v2)


# -- both schemes ----------------------------------------------------------------------------------------------------


def test_reading_goes_on_between_the_schemes() -> None:
    store = MemoryStore()
    kept = v1_table(store)
    store.put(manifest_path(ROOT, 2, Naming.V2), kept[2])
    store.delete(manifest_path(ROOT, 2, Naming.V1))
    store.put(manifest_path(ROOT, 3, Naming.V2), kept[3])
    assert [(name.version, name.naming) for name in list_versions(store, ROOT)] == [
        (1, Naming.V1),
        (2, Naming.V2),
        (3, Naming.V2),
    ]
    assert latest_version(store, ROOT).version == 3
    assert [read_version(store, ROOT, version).version for version in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(UnsupportedError, match="migrate_manifest_paths_v2"):
        append(store, 3)
    with pytest.raises(AlreadyExistsError):
        create(store, ROOT, 1)
    migrate_names(store, ROOT)
    assert names(store) == v2_names(1, 2, 3)
    assert append(store, 3).version == 4
    assert names(store) == v2_names(1, 2, 3, 4)


def test_the_larger_number_is_newer_whatever_the_scheme() -> None:
    """The larger version is newer under either naming scheme.

    A writer that does not know of the migration continues with the old names, as the reference does.
    """
    store = MemoryStore()
    kept = v1_table(store)
    for version in (1, 2):
        store.put(manifest_path(ROOT, version, Naming.V2), kept[version])
        store.delete(manifest_path(ROOT, version, Naming.V1))
    assert latest_version(store, ROOT).version == 3
    migrate_names(store, ROOT)
    assert contents(store) == kept


def test_two_contents_of_one_version() -> None:
    store = MemoryStore()
    v1_table(store)
    other = replace(read_version(store, ROOT, 2), tag="other")
    store.put(manifest_path(ROOT, 2, Naming.V2), encode_manifest(other))
    for call in (list_versions, latest_version, read_latest, migrate_names):
        with pytest.raises(CorruptFileError, match="different content"):
            call(store, ROOT)
    with pytest.raises(CorruptFileError, match="different content"):
        locate_version(store, ROOT, 2)
    assert read_version(store, ROOT, 1).version == 1


def test_renamed_after_the_listing() -> None:
    store = MemoryStore()
    v1_table(store)
    listed = list_versions(store, ROOT)
    migrate_names(store, ROOT)
    assert [read_named(store, ROOT, name).version for name in listed] == [1, 2, 3]


# -- migration -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return MemoryStore() if request.param == "memory" else RootedStore(str(tmp_path))


def test_migration(store: ObjectStore) -> None:
    kept = v1_table(store, 5)
    store.put(f"{ROOT}/_versions/.tmp_x", b"")
    migrate_names(store, ROOT)
    assert names(store) == v2_names(1, 2, 3, 4, 5)
    assert contents(store) == kept
    migrate_names(store, ROOT)
    assert contents(store) == kept
    after = append(store, 5)
    assert (after.version, after.num_rows) == (6, 60)
    assert names(store) == v2_names(1, 2, 3, 4, 5, 6)


def test_migration_of_nothing() -> None:
    store = MemoryStore()
    with pytest.raises(DatasetNotFoundError):
        migrate_names(store, ROOT)
    create(store, ROOT, 1)
    before = contents(store)
    migrate_names(store, ROOT)
    assert contents(store) == before


def test_migration_refuses_what_it_does_not_know() -> None:
    store = MemoryStore()
    v1_table(store)
    future = replace(read_version(store, ROOT, 3), version=4, writer_flags=1 << 40)
    store.put(manifest_path(ROOT, 4, Naming.V1), encode_manifest(future))
    before = contents(store)
    with pytest.raises(UnsupportedError, match="flag"):
        migrate_names(store, ROOT)
    assert contents(store) == before


def test_every_version_has_a_name_at_any_time() -> None:
    store = SteppingStore()
    kept = v1_table(store, 4)
    steps = 0

    def look() -> None:
        nonlocal steps
        steps += 1
        assert contents(store) == kept
        assert latest_version(store, ROOT).version == 4
        assert all(read_version(store, ROOT, version).version == version for version in kept)
        listed = [name for name in names(store) if len(name) == 29]
        assert not listed or listed[0] == manifest_name(4, Naming.V2)  # the first of a sorted listing is the newest

    store.step = look
    migrate_names(store, ROOT)
    assert steps == 8


def test_interrupted_anywhere_and_run_again() -> None:
    for stop in itertools.count():
        store = SteppingStore()
        kept = v1_table(store)
        countdown = iter(range(stop))

        def step(countdown: Iterator[int] = countdown) -> None:
            if next(countdown, None) is None:
                raise Interrupted

        store.step = step
        try:
            migrate_names(store, ROOT)
        except Interrupted:
            store.step = None
            assert contents(store) == kept
            if len({name.naming for name in list_versions(store, ROOT)}) > 1:
                with pytest.raises(UnsupportedError, match="multiple manifest naming schemes"):
                    append(store, 3)
            migrate_names(store, ROOT)
            assert (names(store), contents(store)) == (v2_names(1, 2, 3), kept)
        else:
            assert stop == 6
            return


def test_two_migrations_at_once() -> None:
    """Two migrations work if the second starts and ends before any step of the first."""
    store = SteppingStore()
    kept = v1_table(store)

    def other() -> None:
        store.step = None
        migrate_names(store, ROOT)

    store.step = other
    migrate_names(store, ROOT)
    assert (names(store), contents(store)) == (v2_names(1, 2, 3), kept)


# -- the copy of the newest ------------------------------------------------------------------------------------------


def copy_version(store: ObjectStore) -> int | None:
    path = f"{ROOT}/{LATEST_COPY}"
    return read_manifest(store, path).version if store.exists(path) else None


def test_copy_follows_legacy_tables(store: ObjectStore) -> None:
    legacy_table(store)
    assert copy_version(store) == 1
    second = append(store, 1, minor=0)
    assert store.read(f"{ROOT}/{LATEST_COPY}") == store.read(second.path)
    commit_transaction(store, ROOT, Transaction(2, Restore(1)))
    assert copy_version(store) == 3


def test_copy_is_for_legacy_tables_with_old_names_only() -> None:
    for make in (lambda store: create(store, ROOT, 1, v2=False), lambda store: legacy_table(store, v2=True)):
        store = MemoryStore()
        make(store)
        append(store, 1, minor=2 if store.exists(manifest_path(ROOT, 1, Naming.V1)) else 0)
        assert copy_version(store) is None


def test_stale_copy_is_brought_up_to_date() -> None:
    """A stale copy is updated; later releases of the reference do not update it."""
    store = MemoryStore()
    legacy_table(store)
    stale = store.read(f"{ROOT}/{LATEST_COPY}")
    append(store, 1, minor=0)
    store.put(f"{ROOT}/{LATEST_COPY}", stale)
    assert latest_version(store, ROOT).version == 2
    append(store, 2, minor=0)
    assert copy_version(store) == 3


def test_copy_never_gets_older() -> None:
    store = MemoryStore()
    legacy_table(store)
    for version in (1, 2):
        append(store, version, minor=0)
    update_latest_copy(store, ROOT, 2, store.read(manifest_path(ROOT, 2, Naming.V1)))
    assert copy_version(store) == 3
    # a slow writer, whose version is no longer the newest when it writes the copy
    store.put(f"{ROOT}/{LATEST_COPY}", store.read(manifest_path(ROOT, 1, Naming.V1)))
    update_latest_copy(store, ROOT, 2, store.read(manifest_path(ROOT, 2, Naming.V1)))
    assert copy_version(store) == 3


def test_broken_copy_is_replaced() -> None:
    store = MemoryStore()
    legacy_table(store)
    store.put(f"{ROOT}/{LATEST_COPY}", b"garbage")
    assert latest_version(store, ROOT).version == 1
    append(store, 1, minor=0)
    assert copy_version(store) == 2


def test_failing_copy_does_not_fail_the_commit(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(MemoryStore):
        def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
            if path.endswith(LATEST_COPY):
                raise OSError("disk full")
            super().put(path, data, durable=durable)

    store = Failing()
    assert legacy_table(store).version == 1
    assert "out of date: disk full" in caplog.text


def only_copy(store: ObjectStore) -> bytes:
    legacy_table(store)
    append(store, 1, minor=0)
    content = store.read(f"{ROOT}/{LATEST_COPY}")
    store.delete_tree(f"{ROOT}/_versions")
    return content


def test_table_of_nothing_but_the_copy(store: ObjectStore) -> None:
    content = only_copy(store)
    latest = find_latest(store, ROOT)
    assert latest is not None
    assert (latest.version, latest.naming) == (2, Naming.LATEST_COPY)
    assert [name.version for name in list_versions(store, ROOT)] == [2]
    assert read_version(store, ROOT, 2) == read_latest(store, ROOT)
    with pytest.raises(VersionNotFoundError, match="latest version is 2"):
        read_version(store, ROOT, 1)
    with pytest.raises(AlreadyExistsError):
        legacy_table(store)
    after = append(store, 2, minor=0)
    assert names(store) == ["2.manifest", "3.manifest"]
    assert store.read(f"{ROOT}/_versions/2.manifest") == content
    assert (after.version, after.num_rows, copy_version(store)) == (3, 30, 3)
    assert read_transaction(store, ROOT, after) is not None


def test_migration_of_the_copy() -> None:
    store = MemoryStore()
    content = only_copy(store)
    migrate_names(store, ROOT)
    assert (names(store), contents(store)) == (v2_names(2), {2: content})
    assert copy_version(store) is None  # it would be out of date from the next version on


def test_migration_keeps_a_copy_of_something_else() -> None:
    store = MemoryStore()
    legacy_table(store)
    other = replace(read_version(store, ROOT, 1), tag="other")
    store.put(f"{ROOT}/{LATEST_COPY}", encode_manifest(other))
    migrate_names(store, ROOT)
    assert copy_version(store) == 1


def test_unreadable_copy_of_nothing() -> None:
    store = MemoryStore()
    store.put(f"{ROOT}/{LATEST_COPY}", b"garbage")
    with pytest.raises(CorruptFileError):
        find_latest(store, ROOT)
