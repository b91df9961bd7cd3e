"""Tests of the identity of tables and transactions: replaced tables, ids of transactions and fragments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from support.tables.bare_tables import SCHEMA, create, fragment

import lance_dataset
from lance_dataset.errors import CommitConflictError, InvalidInputError
from lance_dataset.file.versions import DEFAULT_VERSION
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Append, Overwrite, Restore
from lance_dataset.table.paths import TRANSACTIONS_FOLDER
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import list_versions, read_latest, read_named


class Interleaved(MemoryStore):
    """A store that lets another writer act just before or just after a file is made."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}

    def put_if_absent(self, path: str, data: bytes) -> None:
        ending = path.rsplit(".", 1)[-1]
        self.before.pop(ending, lambda: None)()
        super().put_if_absent(path, data)
        self.after.pop(ending, lambda: None)()


def latest(store: ObjectStore, root: str) -> Manifest:
    manifest = read_latest(store, root)
    assert manifest is not None
    return manifest


def transaction_files(store: ObjectStore) -> set[str]:
    return {info.name for info in store.list(f"/t/{TRANSACTIONS_FOLDER}")}


def referenced(store: ObjectStore) -> set[str]:
    return {read_named(store, "/t", name).transaction_file for name in list_versions(store, "/t")}


@pytest.mark.parametrize(
    "given",
    [
        "x/../../../evil",
        "",
        "..",
        "9DE4C1A8-8C0D-4A34-9B0F-4F5C0E5B0B37",
        "9de4c1a88c0d4a349b0f4f5c0e5b0b37",
        "{9de4c1a8-8c0d-4a34-9b0f-4f5c0e5b0b37}",
        5,
        None,
    ],
)
def test_ids_that_are_no_uuids(tmp_path: Path, given: object) -> None:
    store, root = LocalStore(fsync=False), f"{tmp_path}/inner/t"
    change = Transaction(0, Overwrite(SCHEMA, (fragment(),)), uuid=given)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="UUID"):
        create_table(store, root, change)
    assert not list(tmp_path.iterdir())
    create(store, root, 1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match="UUID"):
        commit_transaction(store, root, replace(change, read_version=1, operation=Append((fragment(),))))
    assert sorted(tmp_path.rglob("*")) == before
    assert latest(store, root).version == 1


def test_a_transaction_is_committed_once() -> None:
    store = MemoryStore()
    create(store, "/t", 10)
    change = Transaction(1, Append((fragment(),)))
    assert commit_transaction(store, "/t", change).version == 2
    commit_transaction(store, "/t", Transaction(2, Append((fragment(),))))
    with pytest.raises(CommitConflictError, match=f"{change.uuid} was committed already, as version 2") as caught:
        commit_transaction(store, "/t", change)
    assert not caught.value.retryable
    assert latest(store, "/t").version == 3
    assert len(transaction_files(store)) == 3


@pytest.mark.parametrize("ending", ["txn", "manifest"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_same_transaction_at_the_same_time(ending: str, when: str) -> None:
    """If two writers commit the same transaction at the same time, the winner's file stays."""
    store = Interleaved()
    create(store, "/t", 10)
    change = Transaction(1, Append((fragment(),)), properties={"a": "1", "b": "2", "c": "3"})
    outcomes = []

    def other() -> None:
        try:
            outcomes.append(commit_transaction(store, "/t", change))
        except CommitConflictError as error:
            outcomes.append(error)

    getattr(store, when)[ending] = other
    try:
        outcomes.append(commit_transaction(store, "/t", change))
    except CommitConflictError as error:
        outcomes.append(error)
    [made] = [outcome for outcome in outcomes if isinstance(outcome, Manifest)]
    [refused] = [outcome for outcome in outcomes if isinstance(outcome, CommitConflictError)]
    assert not refused.retryable
    assert "already, as version 2" in str(refused)
    assert made == latest(store, "/t")
    assert [name.version for name in list_versions(store, "/t")] == [1, 2]
    assert transaction_files(store) == referenced(store)


def test_the_loser_takes_its_file_away() -> None:
    store = Interleaved()
    create(store, "/t", 10)
    store.before["manifest"] = lambda: commit_transaction(store, "/t", Transaction(1, Append((fragment(),))))
    change = Transaction(1, Append((fragment(),)))
    assert commit_transaction(store, "/t", change).version == 3
    assert f"1-{change.uuid}.txn" not in transaction_files(store)
    assert len(transaction_files(store)) == 3


def test_an_id_that_another_transaction_has() -> None:
    store = MemoryStore()
    create(store, "/t", 10)
    change = Transaction(1, Append((fragment(),)))
    path = f"/t/{TRANSACTIONS_FOLDER}/{change.file_name}"
    store.put(path, change.encode())  # as of a writer that crashed; now it tries again
    other = replace(change, operation=Append((fragment(),)))
    with pytest.raises(CommitConflictError, match="another transaction with the same id") as caught:
        commit_transaction(store, "/t", other)
    assert not caught.value.retryable
    assert store.read(path) == change.encode()
    assert commit_transaction(store, "/t", change).version == 2


@pytest.mark.parametrize("newer", [0, 2])
@pytest.mark.parametrize("naming", [True, False])
def test_replaced_tables(newer: int, naming: bool) -> None:
    """A change on a replaced table is refused: its base is identified by the commit, not by the number alone."""
    store = MemoryStore()
    stale = create(store, "/t", 10, v2=naming)
    store.delete_tree("/t")
    create(store, "/t", 10, v2=naming)
    for version in range(1, newer + 1):
        commit_transaction(store, "/t", Transaction(version, Append((fragment(),))))
    for operation in (Append((fragment(),)), Restore(1), Overwrite(SCHEMA, (fragment(),))):
        with pytest.raises(CommitConflictError, match="was replaced") as caught:
            commit_transaction(store, "/t", Transaction(1, operation), read_manifest=stale)
        assert not caught.value.retryable
    assert latest(store, "/t").version == newer + 1


def test_replaced_by_an_older_one() -> None:
    store = MemoryStore()
    create(store, "/t", 10)
    stale = commit_transaction(store, "/t", Transaction(1, Append((fragment(),))))
    store.delete_tree("/t")
    create(store, "/t", 10)
    with pytest.raises(CommitConflictError, match="was replaced"):
        commit_transaction(store, "/t", Transaction(2, Append((fragment(),))), read_manifest=stale)


def test_base_version_that_was_cleaned_up() -> None:
    """If the base version was cleaned up, the transactions of newer versions decide."""
    store = MemoryStore()
    first = create(store, "/t", 10)
    commit_transaction(store, "/t", Transaction(1, Append((fragment(),))))
    store.delete(first.path)
    change = Transaction(1, Append((fragment(),)))
    assert commit_transaction(store, "/t", change, read_manifest=first).version == 3


def test_fragment_ids_that_are_taken() -> None:
    store = MemoryStore()
    create(store, "/t", 10, 10)
    for added in ([1], [0, 2], [5, 5]):
        change = Append(tuple(fragment(fragment_id=number) for number in added))
        with pytest.raises(InvalidInputError, match=rf"fragment ids \[{added[-1]}\]"):
            commit_transaction(store, "/t", Transaction(1, change))
    assert transaction_files(store) == referenced(store)
    made = commit_transaction(store, "/t", Transaction(1, Append((fragment(fragment_id=7),))))
    assert [item.id for item in made.fragments] == [0, 1, 7]
    overwrite = Overwrite(SCHEMA, tuple(fragment(fragment_id=number) for number in (0, 1, 1, 7)))
    made = commit_transaction(store, "/t", Transaction(2, overwrite))
    assert [item.id for item in made.fragments] == [8, 9, 10, 11]


def test_default_storage_version(tmp_path: Path) -> None:
    """A table that was made without files can be appended to."""
    store, root = LocalStore(fsync=False), f"{tmp_path}/t"
    assert create(store, root).storage_version == DEFAULT_VERSION
    dataset = lance_dataset.write_dataset(pa.table({"a": [1, 2]}), root, mode="append")
    assert dataset.to_table().to_pydict() == {"a": [1, 2]}
    assert lance.dataset(root).to_table().to_pydict() == {"a": [1, 2]}
