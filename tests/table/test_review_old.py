"""What a review of compaction, migration and commits on old tables found."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance as reference
import pyarrow as pa
import pytest
from bare_tables import SCHEMA, fragment

import lance_dataset as lance
from lance_dataset.errors import CommitConflictError
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.manifest import encode_manifest, read_manifest
from lance_dataset.table.naming import LATEST_COPY, Naming, manifest_name
from lance_dataset.table.old_tables.migration import migrate_names
from lance_dataset.table.operations import Append, Overwrite
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import find_latest, list_versions

ROOT = "/t"
COPY = f"{ROOT}/{LATEST_COPY}"


def legacy_table(store: MemoryStore, versions: int) -> None:
    """A table of versions with old names and a copy of the newest manifest."""
    operation = Overwrite(SCHEMA, (fragment(minor=0),))
    create_table(store, ROOT, Transaction(0, operation), enable_v2_manifest_paths=False)
    for version in range(1, versions):
        commit_transaction(store, ROOT, Transaction(version, Append((fragment(minor=0),))))


# -- the copy of the newest manifest ---------------------------------------------------------------------------------


class Interrupted(Exception):
    """The process ends here."""


class FragileStore(MemoryStore):
    """Ends the process before some change."""

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
    """A second run has nothing to rename then, but the copy would be out of date from the next version on."""
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
    """Calls a function after a file was read for the first time."""

    watched = ""
    then: Callable[[], None] | None = None

    def read(self, path: str) -> bytes:
        content = super().read(path)
        if path == self.watched and self.then is not None:
            then, self.then = self.then, None
            then()
        return content


def test_copy_replaced_while_it_is_adopted() -> None:
    """A release that keeps nothing but the copy commits the next version between two looks at it."""
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


# -- columns that changed while files were written -------------------------------------------------------------------


def add_all_null(dataset: Any) -> None:
    """Drop a column that has files of its own, and give its id to another."""
    dataset.drop_columns(["own"])
    reference.dataset(dataset.uri).add_columns(pa.field("other", pa.string()))


CHANGES: dict[str, tuple[Callable[[Any], object], bool]] = {
    "other type": (lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int64()}), False),
    "other type and name": (lambda ds: ds.alter_columns({"path": "a", "name": "b", "data_type": pa.int64()}), False),
    "id used again": (add_all_null, False),
    "other name": (lambda ds: ds.alter_columns({"path": "a", "name": "b"}), True),
    "dropped": (lambda ds: ds.drop_columns(["a"]), True),
    "added": (lambda ds: ds.add_columns(pa.field("other", pa.string())), True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_append_of_files_from_before_a_change_of_columns(tmp_path: Path, name: str) -> None:
    """They would read as null or as another type; the rules of the reference let them pass."""
    table = str(tmp_path / "t.lance")
    change, fits = CHANGES[name]
    reference.write_dataset(pa.table({"a": pa.array([1, 2], pa.int32()), "s": ["x", "y"]}), table)
    reference.dataset(table).add_columns({"own": "cast(a as bigint)"})
    read = lance.dataset(table)
    rows = pa.table({"a": pa.array([3], pa.int32()), "s": ["z"], "own": pa.array([3], pa.int64())})
    fragments = lance.fragment.write_fragments(rows, read, mode="append")
    change(reference.dataset(table))
    assert isinstance(fragments, list)
    append = lance.LanceOperation.Append(fragments)
    if fits:
        lance.LanceDataset.commit(table, append, read_version=read.version)
        after = reference.dataset(table).to_table()
        assert after["s"].to_pylist() == ["x", "y", "z"]
        assert [after[column].null_count for column in after.column_names if column != "other"] == [0] * (
            after.num_columns - ("other" in after.column_names)
        )
        return
    with pytest.raises(CommitConflictError, match="columns were changed") as caught:
        lance.LanceDataset.commit(table, append, read_version=read.version)
    assert caught.value.retryable
    assert reference.dataset(table).count_rows() == 2


# -- what is compacted -----------------------------------------------------------------------------------------------


def rows(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64())})


def test_fragments_beside_an_indexed_one(tmp_path: Path) -> None:
    """As in the reference, they are joined with each other, and the index keeps its own."""
    table, twin = str(tmp_path / "t.lance"), str(tmp_path / "twin.lance")
    reference.write_dataset(rows(10), table)
    reference.dataset(table).create_scalar_index("id", "BTREE")
    reference.write_dataset(rows(3), table, mode="append")
    assert lance.dataset(table).optimize.compact_files().fragments_removed == 0
    for _ in range(2):
        reference.write_dataset(rows(3), table, mode="append")
    shutil.copytree(table, twin)
    ours, theirs = lance.dataset(table), reference.dataset(twin)
    assert ours.optimize.compact_files().fragments_removed == theirs.optimize.compact_files().fragments_removed == 3
    assert [each.count_rows() for each in ours.get_fragments()] == [10, 9]
    assert reference.dataset(table).to_table(filter="id = 2").num_rows == 4
    ours.delete("id = 9 or id = 8")
    theirs.delete("id = 9 or id = 8")
    assert ours.optimize.compact_files().fragments_removed == theirs.optimize.compact_files().fragments_removed == 1
    assert [each.count_rows() for each in ours.get_fragments()] == [9, 8]
    assert reference.dataset(table).to_table(filter="id = 2").num_rows == 4


def test_byte_limit_where_sizes_are_not_known(tmp_path: Path) -> None:
    """Manifests of 0.20 do not say how large files are."""
    table = str(tmp_path / "t.lance")
    made = lance.write_dataset(rows(30), table, max_rows_per_file=10)._manifest
    bare = [replace(each, files=(replace(each.files[0], file_size_bytes=0),)) for each in made.fragments]
    Path(made.path).write_bytes(encode_manifest(replace(made, fragments=tuple(bare))))
    dataset = lance.dataset(table)
    assert [file.file_size_bytes for each in dataset._manifest.fragments for file in each.files] == [0, 0, 0]
    assert dataset.optimize.compact_files(max_source_bytes=1).fragments_removed == 0
    assert dataset.optimize.compact_files(max_source_bytes=1 << 30).fragments_removed == 3
