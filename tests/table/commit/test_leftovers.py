"""Tests of files of failed changes: removed, unless a version uses them or it is unknown whether one does."""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pytest
from support.tables.bare_tables import append, create, fragment

from lance_dataset.errors import CommitConflictError, LanceError
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.leftovers import ChangeFiles, data_files_of
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.deletions import write_deletions
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.operations import Append, CreateIndex, Delete
from lance_dataset.table.paths import DataFolder, FileLocator
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import list_versions

ROOT = "/t"
RETRYABLE = CommitConflictError("others were faster", retryable=True)
FINAL = CommitConflictError("others replaced it", retryable=False)


class UnreadableVersions(MemoryStore):
    """A store that fails to list on request."""

    fails = False

    def list_names(self, prefix: str, *args: object, **options: object) -> object:  # type: ignore[override]
        if self.fails:
            raise OSError("no answer")
        return super().list_names(prefix, *args, **options)  # type: ignore[arg-type]


def made(store: ObjectStore) -> tuple[Fragment, Fragment]:
    """Make a new fragment with its data file, and fragment 0 with a new deletion file."""
    create(store, ROOT, 10)
    new = fragment(5)
    store.put(f"{ROOT}/data/{new.files[0].path}", b"data")
    file = write_deletions(store, ROOT, 0, 1, np.array([3], np.uint32))
    return new, replace(fragment(10), deletion_file=file)


def left(store: ObjectStore, new: Fragment, masked: Fragment) -> list[bool]:
    assert masked.deletion_file is not None
    deletions = FileLocator(store, ROOT).deletion_file(masked.id, masked.deletion_file)[1]
    return [store.exists(f"{ROOT}/data/{new.files[0].path}"), store.exists(deletions)]


@pytest.mark.parametrize("error", [RETRYABLE, FINAL, KeyboardInterrupt(), OSError("disk")])
def test_a_change_that_is_no_version(error: BaseException) -> None:
    store = MemoryStore()
    new, masked = made(store)
    append(store, ROOT, 1, 7)
    with pytest.raises(type(error)), ChangeFiles(store, ROOT, data_files_of([new]), [masked]).taken_back(1):
        raise error
    assert left(store, new, masked) == [False, False]


@pytest.mark.parametrize("error", [FINAL, KeyboardInterrupt(), OSError("disk")])
@pytest.mark.parametrize("which", ["data", "deletions"])
def test_a_version_all_the_same(error: BaseException, which: str) -> None:
    store = MemoryStore()
    new, masked = made(store)
    operation = Append((new,)) if which == "data" else Delete((masked,), (), "x")
    files = ChangeFiles(store, ROOT, data_files_of([new]), [masked])

    def commit() -> None:
        with files.taken_back(1):
            commit_transaction(store, ROOT, Transaction(1, operation))
            raise error

    with pytest.raises(type(error)):
        commit()
    assert left(store, new, masked) == [which == "data", which == "deletions"]


def test_versions_that_cannot_be_read() -> None:
    store = UnreadableVersions()
    new, masked = made(store)
    files = ChangeFiles(store, ROOT, data_files_of([new]), [masked])
    store.fails = True
    with pytest.raises((OSError, LanceError)):
        list(list_versions(store, ROOT))
    with pytest.raises(OSError, match="disk"), files.taken_back(1):
        raise OSError("disk")
    store.fails = False
    assert left(store, new, masked) == [True, True]
    files.remove_unless_committed(1)
    assert left(store, new, masked) == [False, False]


def test_files_of_base_paths() -> None:
    store, other = MemoryStore(), MemoryStore()
    new, _ = made(store)
    there = replace(new.files[0], base_id=4)
    other.put(f"/elsewhere/{there.path}", b"data")
    ChangeFiles(store, ROOT, [there, new.files[0]], folders=[DataFolder(other, "/elsewhere", 4)]).remove()
    assert not other.exists(f"/elsewhere/{there.path}")
    assert store.exists(f"{ROOT}/data/{there.path}"), "only what lies in the folders is of the change"


def test_no_files_no_look() -> None:
    store = UnreadableVersions()
    create(store, ROOT, 10)
    store.fails = True
    with pytest.raises(OSError, match="disk"), ChangeFiles(store, ROOT).taken_back(1):
        raise OSError("disk")


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("error", [FINAL, OSError("disk")])
def test_indices_of_a_failed_change(error: Exception, committed: bool) -> None:
    store = MemoryStore()
    create(store, ROOT, 10)
    index = IndexMetadata(str(uuid.uuid4()), "mine", (0,), 1, encode_bitmap([0]))
    file = f"{FileLocator(store, ROOT).index_folder(index.uuid, None)[1]}/page_data.lance"
    store.put(file, b"index")
    if committed:
        commit_transaction(store, ROOT, Transaction(1, CreateIndex((index,))))
    with pytest.raises(type(error)), ChangeFiles(store, ROOT, indices=[index.uuid]).taken_back(1):
        raise error
    assert store.exists(file) == committed
