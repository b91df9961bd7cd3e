"""Tests of migrating manifest names and adopting the copy of the newest manifest, with an interrupt or a race."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from support.tables.bare_tables import SCHEMA, fragment

from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.manifest import read_manifest
from lance_dataset.table.naming import LATEST_COPY, Naming, manifest_name
from lance_dataset.table.old_tables.migration import migrate_names
from lance_dataset.table.operations import Append, Overwrite
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import find_latest, list_versions

ROOT = "/t"
COPY = f"{ROOT}/{LATEST_COPY}"


def legacy_table(store: MemoryStore, versions: int) -> None:
    """Make a table of versions with old names and a copy of the newest manifest."""
    operation = Overwrite(SCHEMA, (fragment(minor=0),))
    create_table(store, ROOT, Transaction(0, operation), enable_v2_manifest_paths=False)
    for version in range(1, versions):
        commit_transaction(store, ROOT, Transaction(version, Append((fragment(minor=0),))))


class Interrupted(Exception):
    """End of the process."""


class FragileStore(MemoryStore):
    """A store that ends the process before a change."""

    changes_left: Iterator[int] = itertools.count()

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._change()
        super().put_if_absent(path, data)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)

    def _change(self) -> None:
        if next(self.changes_left, None) is None:
            raise Interrupted


def test_migration_interrupted_before_the_copy_is_removed() -> None:
    """A second migration removes the copy if the first was interrupted before that, although no name is left to change.

    Otherwise the copy would be out of date from the next version on.
    """
    for stop in itertools.count():
        store = FragileStore()
        legacy_table(store, 2)
        store.changes_left = iter(range(stop))
        try:
            migrate_names(store, ROOT)
        except Interrupted:
            store.changes_left = itertools.count()
            migrate_names(store, ROOT)
            assert not store.exists(COPY)
            assert [name.naming for name in list_versions(store, ROOT)] == [Naming.V2, Naming.V2]
        else:
            assert stop == 5
            return


class RacingStore(MemoryStore):
    """A store that calls a function after a file was read for the first time."""

    watched = ""
    then: Callable[[], None] | None = None

    def read(self, path: str) -> bytes:
        content = super().read(path)
        if path == self.watched and self.then is not None:
            then, self.then = self.then, None
            then()
        return content


def test_copy_replaced_while_it_is_adopted() -> None:
    """The copy is adopted correctly if an old release commits the next version between two reads of it."""
    store = RacingStore()
    legacy_table(store, 2)
    second = store.read(COPY)
    commit_transaction(store, ROOT, Transaction(2, Append((fragment(minor=0),))))
    third = store.read(COPY)
    store.delete_tree(f"{ROOT}/_versions")
    store.put(COPY, second)
    store.watched, store.then = COPY, lambda: store.put(COPY, third)
    made = commit_transaction(store, ROOT, Transaction(3, Append((fragment(minor=0),))))
    assert (made.version, made.num_rows) == (4, 40)
    assert store.read(f"{ROOT}/_versions/{manifest_name(3, Naming.V1)}") == third
    for name in list_versions(store, ROOT):
        assert read_manifest(store, f"{ROOT}/_versions/{name.name}").version == name.version
    latest = find_latest(store, ROOT)
    assert latest is not None
    assert latest.version == 4
