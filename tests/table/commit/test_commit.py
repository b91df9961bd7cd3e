"""Tests of commits of transactions by one writer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.tables.bare_tables import SCHEMA, append, create, delete, deleted, fragment, read

from lance_dataset.errors import (
    AlreadyExistsError,
    DatasetNotFoundError,
    InvalidInputError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.table.commit.loop import commit_transaction, create_table
from lance_dataset.table.flags import Feature
from lance_dataset.table.lineage.row_ids import RowIds, RowVersions
from lance_dataset.table.manifest import Manifest, encode_manifest
from lance_dataset.table.operations import (
    Append,
    Overwrite,
    Restore,
)
from lance_dataset.table.transaction import Transaction, read_transaction
from lance_dataset.table.versions import latest_version, list_versions

# -- one writer ------------------------------------------------------------------------------------------------------


def test_create_and_append(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10, 20)
    assert first == read(store, root)
    assert [item.id for item in first.fragments] == [0, 1]
    assert (first.version, first.max_fragment_id, first.num_rows, first.reader_flags) == (1, 1, 30, 0)
    with pytest.raises(AlreadyExistsError, match="Dataset already exists"):
        create(store, root, 5)
    second = append(store, root, 1, 7)
    assert second == read(store, root, 2)
    assert [item.id for item in second.fragments] == [0, 1, 2]
    transaction = read_transaction(store, root, second)
    assert transaction is not None
    assert (transaction.read_version, transaction.operation.name) == (1, "Append")
    assert read_transaction(store, root, replace(second, inline_transaction=None)) == transaction
    assert read(store, root, 1) == first


def test_empty_tables(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    assert create(store, root).max_fragment_id is None
    assert append(store, root, 1).num_rows == 0
    third = append(store, root, 2, 3)
    assert third.fragments[0].id == 0
    with pytest.raises(InvalidInputError, match="no rows"):
        append(store, root, 3, 0)


def test_there_must_be_a_table(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    with pytest.raises(DatasetNotFoundError):
        append(store, root, 0, 1)
    with pytest.raises(InvalidInputError, match="Overwrite"):
        create_table(store, root, Transaction(0, Append((fragment(),))))
    create(store, root, 1)
    with pytest.raises(VersionNotFoundError, match="newest"):
        append(store, root, 2, 1)
    with pytest.raises(VersionNotFoundError):
        commit_transaction(store, root, Transaction(1, Restore(9)))


def test_names_follow_the_table(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 1, v2=False)
    append(store, root, 1, 1)
    assert [name.name for name in list_versions(store, root)] == ["1.manifest", "2.manifest"]


def test_overwrite_and_restore(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10)
    operation = Overwrite(SCHEMA, (fragment(5, minor=0),), {"k": "v"})
    second = commit_transaction(store, root, Transaction(1, operation))
    assert [item.id for item in second.fragments] == [1]
    assert second.storage_version == "0.1"
    assert second.config == {"k": "v"}
    assert second.writer_flags == Feature.TABLE_CONFIG
    third = commit_transaction(store, root, Transaction(2, Restore(1), tag="t"))
    assert (third.fragments, third.schema, third.config) == (first.fragments, first.schema, {})
    assert (third.version, third.max_fragment_id, third.tag, third.storage_version) == (3, 1, "t", "2.2")
    assert append(store, root, 3, 4).fragments[-1].id == 2


def test_deletes(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    manifest = create(store, root, 10, 20)
    manifest = delete(store, root, manifest, {0: [1], 1: [3, 4]})
    assert manifest.reader_flags == manifest.writer_flags == Feature.DELETION_FILES
    assert manifest.num_rows == 27
    manifest = delete(store, root, manifest, {1: list(range(20))})
    assert deleted(store, root, manifest) == {0: [1]}
    assert (manifest.max_fragment_id, manifest.num_rows) == (1, 9)
    manifest = delete(store, root, manifest, {0: list(range(10))})
    assert (manifest.fragments, manifest.reader_flags, manifest.num_rows) == ((), 0, 0)
    assert append(store, root, 4, 1).fragments[0].id == 2


def test_stable_row_ids(table: tuple[ObjectStore, str]) -> None:
    store, root = table

    def lineage(manifest: Manifest) -> list[tuple[list[int], int, int]]:
        rows = []
        for item in manifest.fragments:
            count = item.physical_rows
            assert isinstance(item.row_ids, bytes)
            ids = RowIds.decode(item.row_ids, count, "x").to_numpy().tolist()
            created = RowVersions.decode(item.created_at_versions, count, "x")  # type: ignore[arg-type]
            updated = RowVersions.decode(item.last_updated_at_versions, count, "x")  # type: ignore[arg-type]
            rows.append((ids, created.runs[0][1], updated.runs[0][1]))
        return rows

    first = create(store, root, 2, 3, stable=True)
    assert lineage(first) == [([0, 1], 1, 1), ([2, 3, 4], 1, 1)]
    second = append(store, root, 1, 2)
    assert lineage(second)[2] == ([5, 6], 2, 2)
    third = delete(store, root, second, {1: [0]})
    assert lineage(third) == lineage(second)
    assert third.reader_flags == Feature.STABLE_ROW_IDS | Feature.DELETION_FILES
    fourth = commit_transaction(store, root, Transaction(3, Overwrite(SCHEMA, (fragment(1),))))
    assert lineage(fourth) == [([7], 4, 4)]
    fifth = commit_transaction(store, root, Transaction(4, Restore(1)))
    assert lineage(fifth) == lineage(first)
    assert fifth.next_row_id == 8
    partial = replace(fragment(3), row_ids=RowIds.from_values([1, 0]).encode())
    with pytest.raises(InvalidInputError, match="row ids"):
        commit_transaction(store, root, Transaction(5, Append((partial,))))


def test_file_versions(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    create(store, root, 10)
    with pytest.raises(InvalidInputError, match="never mixes"):
        commit_transaction(store, root, Transaction(1, Append((fragment(minor=0),))))
    mixed = commit_transaction(store, root, Transaction(1, Append((fragment(minor=1),))))
    assert mixed.reader_flags == mixed.writer_flags == Feature.MIXED_FILE_VERSIONS
    assert mixed.storage_version == "2.2"
    kept = commit_transaction(store, root, Transaction(2, Restore(1)))
    assert kept.reader_flags == Feature.MIXED_FILE_VERSIONS


def test_field_ids_that_are_never_reused(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10)
    marked = replace(first, writer_flags=int(Feature.NON_REUSABLE_FIELD_IDS), max_allocated_field_id=51)
    store.put(first.path, encode_manifest(marked))
    second = commit_transaction(store, root, Transaction(1, Overwrite(SCHEMA, (fragment(),))))
    assert second.schema.fields[0].id == 52
    assert second.fragments[0].files[0].fields == (52,)
    assert second.max_allocated_field_id == 52
    assert second.writer_flags == Feature.NON_REUSABLE_FIELD_IDS


def test_features_that_cannot_be_kept_up(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10)
    for flags in ((0, 1 << 20), (int(Feature.MANAGED_BLOBS),) * 2):
        store.put(first.path, encode_manifest(replace(first, reader_flags=flags[0], writer_flags=flags[1])))
        assert read(store, root).num_rows == 10
        with pytest.raises(UnsupportedError, match="write to"):
            append(store, root, 1, 1)


def test_index_section_is_carried_or_dropped(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10)
    section = bytes.fromhex("0a 06 1a 04 61 5f 69 64")
    store.put(first.path, encode_manifest(replace(first, index_section=section)))
    assert append(store, root, 1, 5).index_section == section
    assert delete(store, root, read(store, root), {0: [1]}).index_section == section
    assert commit_transaction(store, root, Transaction(3, Overwrite(SCHEMA))).index_section is None
    assert commit_transaction(store, root, Transaction(4, Restore(2))).index_section == section


# -- detached versions -----------------------------------------------------------------------------------------------


def test_detached_versions(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10)
    append(store, root, 1, 5)
    change = Transaction(1, Append((fragment(7),)))
    detached = commit_transaction(store, root, change, detached=True)
    assert detached.version >> 63 == 1
    assert [item.physical_rows for item in detached.fragments] == [10, 7]
    assert latest_version(store, root).version == 2
    assert [name.version for name in list_versions(store, root)] == [1, 2]
    assert read(store, root, detached.version) == detached
    transaction = read_transaction(store, root, detached)
    assert transaction is not None
    assert (transaction.read_version, transaction.uuid) == (1, change.uuid)
    above = commit_transaction(
        store, root, Transaction(detached.version, Append((fragment(3),))), read_manifest=detached, detached=True
    )
    assert [item.physical_rows for item in above.fragments] == [10, 7, 3]
    with pytest.raises(InvalidInputError, match="only detached versions can follow"):
        append(store, root, detached.version, 1)
    with pytest.raises(VersionNotFoundError):
        commit_transaction(store, root, Transaction(9, Append((fragment(7),))), detached=True)
    restored = commit_transaction(store, root, Transaction(2, Restore(1)), detached=True)
    assert restored.fragments == first.fragments


def test_detached_versions_take_no_field_ids(table: tuple[ObjectStore, str]) -> None:
    store, root = table
    first = create(store, root, 10)
    marked = replace(first, writer_flags=int(Feature.NON_REUSABLE_FIELD_IDS), max_allocated_field_id=51)
    store.put(first.path, encode_manifest(marked))
    assert commit_transaction(store, root, Transaction(1, Append((fragment(),))), detached=True).num_rows == 20
    with pytest.raises(InvalidInputError, match="cannot change the schema"):
        commit_transaction(store, root, Transaction(1, Overwrite(SCHEMA, (fragment(),))), detached=True)
