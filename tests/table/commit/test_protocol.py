"""Tests of commit protocols (direct, under a lock, external table): each version is created once and completely."""

from __future__ import annotations

import contextlib
import pickle
import threading
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stores.stepping_stores import ROOT, STAGED, Lock, PlainStore, append, names, rows
from support.tables.bare_tables import SCHEMA, create

import lance_dataset
from lance_dataset.errors import (
    AlreadyExistsError,
    StorageError,
    UnsupportedError,
)
from lance_dataset.io.guarded import CommitLock, commit_lock_of, with_commit_lock
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import create_table
from lance_dataset.table.naming import (
    ManifestName,
    Naming,
    final_manifest_name,
    manifest_name,
    newest_names,
    parse_manifest_name,
    sorted_names,
)
from lance_dataset.table.operations import Overwrite
from lance_dataset.table.protocol import commit_protocol
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import list_versions, read_version

TABLE = pa.table({"id": pa.array(range(10), pa.int64())})


# -- names -------------------------------------------------------------------------------------------------------------


def newest(names: Iterable[str], in_order: bool) -> list[ManifestName]:
    known = sorted(names) if in_order else list(names)
    return newest_names(iter(known), in_order=in_order, exists=known.__contains__)


@pytest.mark.parametrize("in_order", [False, True])
def test_newest_names(in_order: bool) -> None:
    v2 = [manifest_name(version, Naming.V2) for version in (1, 2, 30)]
    v1 = [manifest_name(version, Naming.V1) for version in (1, 2, 30)]
    others = [
        "d9223372036854775809.manifest",
        "d18446744073709551615.manifest",
        ".tmp_x",
        "latest_version_hint.json",
        STAGED,
        "x.manifest",
    ]
    assert newest(others[:-1], in_order) == newest([], in_order) == []
    assert newest(v2 + others[:-1], in_order) == [parse_manifest_name(v2[-1])]
    assert newest(v1 + others, in_order) == [parse_manifest_name(name) for name in v1]
    # Old programs continued after the new names were introduced.
    later = ["31.manifest", *v2, *others]
    assert newest(later, in_order)[-1] == parse_manifest_name("31.manifest")
    assert len(newest(later, in_order)) == 4
    # A migration that stopped half way.
    assert [name.version for name in newest([v2[2], v2[1], v1[0]], in_order)] == [1, 2, 30]


def test_a_listing_in_order_is_left_early() -> None:
    taken = []

    def listed() -> Iterator[str]:
        for version in range(5000, 0, -1):
            taken.append(version)
            yield manifest_name(version, Naming.V2)

    found = newest_names(listed(), in_order=True, exists=lambda _: False)
    assert [name.version for name in found] == [5000]
    assert len(taken) < 1000
    every = newest_names(listed(), in_order=True, exists="5001.manifest".__eq__)
    assert every[-1].version == 5000


def test_a_listing_in_order_of_both_kinds() -> None:
    new = [manifest_name(version, Naming.V2) for version in range(2000, 3000)]
    asked = []

    def found(*old: int) -> list[int]:
        known = sorted([*new, *(manifest_name(version, Naming.V1) for version in old)])
        asked.clear()

        def exists(name: str) -> bool:
            asked.append(name)
            return name in known

        return [name.version for name in newest_names(iter(known), in_order=True, exists=exists)]

    assert found() == [2999]
    assert asked == ["3000.manifest"]
    assert found(3000) == list(range(2000, 3001))
    assert found(1) == [1, *range(2000, 3000)]
    assert asked == []


def test_names_that_only_look_new() -> None:
    text = "x" * 20 + ".manifest"
    assert newest([text, "0" * 19 + "x.manifest", manifest_name(3, Naming.V2)], False)[-1].version == 3
    assert sorted_names([text]) == []


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.integers(1, 40).map(lambda version: manifest_name(version, Naming.V2)),
            st.integers(1, 40).map(lambda version: manifest_name(version, Naming.V1)),
            st.sampled_from(
                ["d9223372036854775809.manifest", f"d{2**64 - 1}.manifest", STAGED, ".tmp_x", "x.manifest"]
            ),
            st.sampled_from(["latest_version_hint.json", "+7.manifest", "7", "x.manifest", "x" * 20 + ".manifest"]),
            st.sampled_from([f"{2**63}.manifest", "9" * 20 + ".manifest", "1_0.manifest"]),
        ),
        max_size=6,
        unique=True,
    ),
    st.booleans(),
)
def test_newest_names_agree_with_a_look_at_each(found: list[str], in_order: bool) -> None:
    every = sorted_names(found)
    got = newest(found, in_order)
    if got != every:
        assert len(got) == 1
        assert got[-1] == every[-1]
        assert len({name.naming for name in every}) == 1


def test_final_names() -> None:
    assert final_manifest_name("7.manifest") == "7.manifest"
    assert final_manifest_name(f"7.manifest-{uuid.uuid4()}") == "7.manifest"
    for other in ("7.txn", "7.manifest.tmp", ""):
        assert final_manifest_name(other) is None


def test_one_listing_opens_a_table() -> None:
    class Counting(MemoryStore):
        listed: list[str] = []  # noqa: RUF012

        def list_names(self, prefix: str) -> Iterator[str]:
            self.listed.append(prefix)
            return super().list_names(prefix)

    store = Counting()
    create(store, ROOT, 10)
    store.listed.clear()
    assert rows(store) == [10]
    assert store.listed == [f"{ROOT}/_versions"]
    assert read_version(store, ROOT, 1, Naming.V2).version == 1
    assert read_version(store, ROOT, 1, Naming.V1).version == 1
    assert len(store.listed) == 1


# -- the lock of a user ------------------------------------------------------------------------------------------------


def test_a_lock_makes_plain_stores_usable() -> None:
    plain = PlainStore()
    with pytest.raises(UnsupportedError):
        create(plain, ROOT, 1)
    assert names(plain) == []
    lock = Lock()
    store = with_commit_lock(plain, lock)
    assert commit_lock_of(plain) is None
    create(store, ROOT, 1)
    assert [append(store, 2), append(store, 3)] == [2, 3]
    assert rows(store) == rows(plain) == [1, 2, 3]
    assert lock.log == [1, 2, 3]
    with pytest.raises(UnsupportedError):
        append(plain)
    with pytest.raises(AlreadyExistsError):
        create_table(store, ROOT, Transaction(0, Overwrite(SCHEMA, ())))


def test_a_lock_lets_one_of_many_win() -> None:
    store = with_commit_lock(PlainStore(), Lock())
    create(store, ROOT, 1)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                append(store, 100 * number + turn + 1)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert sorted(rows(store)[1:]) == sorted(100 * number + turn + 1 for number in range(4) for turn in range(5))
    assert [name.version for name in list_versions(store, ROOT)] == list(range(1, 22))


def test_a_loser_learns_of_it_whatever_the_lock_makes_of_errors() -> None:
    @contextlib.contextmanager
    def swallowing(version: int) -> Iterator[None]:
        with contextlib.suppress(Exception):
            yield

    @contextlib.contextmanager
    def replacing(version: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise RuntimeError("another error") from error

    for lock in (swallowing, replacing):
        store = with_commit_lock(MemoryStore(), lock)
        create(store, ROOT, 1)
        with pytest.raises(AlreadyExistsError):
            commit_protocol(store).publish(store, ROOT, 1, Naming.V2, b"")
        # Also if the version exists under another name.
        with pytest.raises(AlreadyExistsError):
            commit_protocol(store).publish(store, ROOT, 1, Naming.V1, b"")


def test_locks_that_fail(tmp_path: Path) -> None:
    class Refusing:
        def __enter__(self) -> None:
            raise RuntimeError("taken")

        def __exit__(self, *_: object) -> None:
            raise AssertionError("was never entered")

    def conflict(version: int) -> CommitLock:
        raise lance.commit.CommitConflictError("somebody else has it")

    path = str(tmp_path / "t")
    lance_dataset.write_dataset(TABLE, path)
    for lock in (lambda _: Refusing(), lambda _: 5, conflict):
        with pytest.raises(OSError):
            lance_dataset.write_dataset(TABLE, path, mode="append", commit_lock=lock)
        with pytest.raises(OSError):
            lance.write_dataset(TABLE, path, mode="append", commit_lock=lock)
    with pytest.raises(StorageError, match=r"lock of version 2 could not be taken.* RuntimeError: taken"):
        lance_dataset.write_dataset(TABLE, path, mode="append", commit_lock=lambda _: Refusing())
    for module in (lance, lance_dataset):
        with pytest.raises(TypeError, match="must be a function, got <class 'int'>"):
            module.write_dataset(TABLE, path, mode="append", commit_lock=5)
    assert lance_dataset.dataset(path).version == 1
    assert len(list((tmp_path / "t" / "data").iterdir())) == 1 + 3  # those of the reference stay


def test_a_lock_that_cannot_be_released(tmp_path: Path) -> None:
    @contextlib.contextmanager
    def stuck(version: int) -> Iterator[None]:
        yield
        raise RuntimeError("stuck")

    with pytest.warns(RuntimeWarning, match="version 1 is committed, but its lock could not be released: stuck"):
        made = lance_dataset.write_dataset(TABLE, tmp_path / "t", commit_lock=stuck)
    assert made.version == 1


def test_handles_keep_the_lock(tmp_path: Path) -> None:
    """Handles keep the lock: same calls and same locked versions as in the reference."""
    logs = []
    for module in (lance_dataset, lance):
        path, lock = str(tmp_path / module.__name__), Lock()
        written = module.write_dataset(TABLE, path, commit_lock=lock)
        written.delete("id = 1")
        opened = module.dataset(path, commit_lock=lock)
        opened.delete("id = 2")
        module.dataset(path).delete("id = 3")
        operation = module.LanceOperation.Restore(1)
        module.LanceDataset.commit(path, operation, commit_lock=lock)
        logs.append(lock.log)
    assert logs[0] == logs[1] == [1, 2, 3, 5]


def test_the_lock_goes_along_with_a_pickled_handle(tmp_path: Path) -> None:
    handle = lance_dataset.write_dataset(TABLE, tmp_path / "t", commit_lock=Lock())
    again = pickle.loads(pickle.dumps(handle))
    again.delete("id = 1")
    assert commit_lock_of(again.snapshot.store).log == [2]
