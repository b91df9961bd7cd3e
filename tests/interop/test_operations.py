"""Tests of every operation applied by the reference and by this package: the manifests must be equal.

The reference changes a table. This package then commits the same transaction to a copy of the earlier table: once as it
is stored, and once through the public records that `read_transaction` returns.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.mem_wal import CompactedSsTable
from support.reference.changes import (
    CHANGES,
    TABLES,
    Change,
    append,
    append_some_columns,
    append_with_reserved_ids,
    cast,
    cloned,
    compact,
    compact_by_two,
    delete_all,
    delete_fragments,
    delete_rows,
    empty,
    index_segments,
    legacy,
    legacy_with_dictionary,
    merge_empty_column,
    merge_insert,
    merge_insert_some_columns,
    plain,
    replace_files,
    replace_nothing_there,
    replace_part_of_a_file,
    restore,
    restore_first,
    update,
    update_all,
    update_columns,
    update_columns_without_offsets,
    update_of_gone_fragments,
    update_twice,
    update_without_spilling,
)
from support.tables.manifest_content import manifest_content, manifest_of, transaction_of

import lance_dataset
from lance_dataset._proto import table_pb2
from lance_dataset.errors import CommitConflictError, InvalidInputError
from lance_dataset.io.local import LocalStore
from lance_dataset.table import operations as table_operations
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.coverage import REUSE_INDEX, parse_indices
from lance_dataset.table.operations import Rewrite, UpdateConfig, UpdateMap, UpdateMemWalState
from lance_dataset.table.transaction import Transaction

_FOLDERS = ("data", "_deletions", "_indices")


def followed(there: Path, copies: list[Path], change: Change) -> None:
    """Let the reference change a table, follow it in two copies, and compare version by version."""
    for copy in copies:
        shutil.copytree(there, copy)
    before = lance.dataset(there).version
    change(lance.dataset(there))
    after = lance.dataset(there).version
    assert after > before
    for copy in copies:
        for folder in _FOLDERS:
            if (there / folder).exists():
                shutil.copytree(there / folder, copy / folder, dirs_exist_ok=True)
    for version in range(before + 1, after + 1):
        commit_transaction(LocalStore(), str(copies[0]), transaction_of(there, version))
        for copy in copies[1:]:
            public = lance_dataset.dataset(there).read_transaction(version)
            if isinstance(public.operation, lance_dataset.LanceOperation.Other):  # no record, in the reference too
                commit_transaction(LocalStore(), str(copy), transaction_of(there, version))
            else:
                lance_dataset.LanceDataset.commit(copy, public)
        for copy in copies:
            expected = without_wrong_bases(there, manifest_content(manifest_of(there, version)))
            found = manifest_content(manifest_of(copy, version))
            assert {key: found[key] for key in found if found[key] != expected[key]} == {
                key: expected[key] for key in found if found[key] != expected[key]
            }


def without_wrong_bases(there: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest without base paths of indices that the reference rewrote in a clone.

    It keeps the base path, although the files are in the clone itself, and so cannot read these indices.
    """
    own = {uuid.UUID(folder.name).bytes for folder in there.glob("_indices/*")}
    for index in content["index_section"]:
        if any(str(table_pb2.UUID(uuid=each)) == index.get("uuid") for each in own):
            index.pop("base_id", None)
    return content


def check_reads(there: Path, copies: list[Path]) -> None:
    expected = lance.dataset(there).to_table()
    stable = lance.dataset(there).has_stable_row_ids
    system = ["_rowid", "_rowaddr"] + (["_row_created_at_version", "_row_last_updated_at_version"] if stable else [])
    columns = [*expected.column_names, *system]
    expected = lance.dataset(there).to_table(columns=columns)
    for copy in copies:
        assert lance.dataset(copy).to_table(columns=columns) == expected
        assert lance_dataset.dataset(copy).to_table(columns=columns) == expected
        lance.dataset(copy).validate()


#: Changes that the reference cannot make, or that its stored transaction does not describe.
IMPOSSIBLE: dict[Callable[..., None], set[Change]] = {
    legacy: {
        append_some_columns,
        merge_empty_column,
        replace_part_of_a_file,
        replace_files,
        replace_nothing_there,
        cast,
        update_twice,
    },
    # without the dictionary in the data, or in the transaction
    legacy_with_dictionary: {
        append,
        append_some_columns,
        append_with_reserved_ids,
        merge_insert,
        merge_insert_some_columns,
        update_without_spilling,
        update_columns,
        update_columns_without_offsets,
        replace_part_of_a_file,
        replace_files,
        replace_nothing_there,
        cast,
        index_segments,
        merge_empty_column,
        restore,
        restore_first,
    },
    empty: {
        delete_rows,
        delete_fragments,
        delete_all,
        update,
        update_all,
        update_twice,
        update_without_spilling,
        update_columns,
        update_columns_without_offsets,
        update_of_gone_fragments,
        merge_insert_some_columns,
        compact,
        compact_by_two,
        replace_part_of_a_file,
        replace_nothing_there,
        index_segments,
    },
    cloned: {restore_first},  # has no first version
}


CASES = [
    pytest.param(change, make, stable, id=f"{change.__name__}-{make.__name__}-{'stable' if stable else 'addresses'}")
    for make, ways in TABLES.items()
    for stable in ways
    for change in CHANGES
    if change not in IMPOSSIBLE.get(make, ())
]


@pytest.mark.parametrize(("change", "make", "stable"), CASES)
def test_same_manifest(tmp_path: Path, change: Change, make: Callable[..., None], stable: bool) -> None:
    there, copies = tmp_path / "there", [tmp_path / "stored", tmp_path / "public"]
    make(there, enable_stable_row_ids=stable)
    followed(there, copies, change)
    check_reads(there, copies)


def change_after_compaction(dataset: lance.LanceDataset) -> None:
    update_columns(dataset)
    dataset = lance.dataset(dataset.uri)
    append(dataset)
    replace_part_of_a_file(lance.dataset(dataset.uri))


def compact_log(dataset: lance.LanceDataset) -> None:
    """Merge with generations of the log, which are recorded; the reference has no call for progress without rows."""
    for generation in (1, 3):
        merge = lance.dataset(dataset.uri).merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        merge = merge.mark_sstables_as_compacted([CompactedSsTable(SHARD, generation)])
        merge.execute(pa.table({"a": [3, 4 + generation], "b": [7, 7]}, schema=KEYED))


SHARD = "11111111-2222-4333-8444-555555555555"
KEYED = pa.schema(
    [
        pa.field("a", pa.int64(), False, metadata={"lance-schema:unenforced-primary-key": "true"}),
        pa.field("b", pa.int64()),
    ]
)


KEY, CLUSTERING = "lance-schema:unenforced-primary-key", "lance-schema:unenforced-clustering-key:position"
KEYS: list[tuple[bool, list[tuple[dict[str, dict[str, str | None]], bool]]]] = [
    (True, [({"a": {KEY: "true"}}, False)]),
    (True, [({"a": {KEY: "YES"}}, False), ({"a": {"z": "1"}}, False), ({"b": {"z": "1"}}, True)]),
    (True, [({"a": {f"{KEY}:position": "2"}, "b": {f"{KEY}:position": "1"}}, False)]),
    (True, [({"a": {f"{KEY}:position": "0"}}, False)]),
    (True, [({"a": {CLUSTERING: "1"}, "b": {CLUSTERING: "2"}}, False)]),
    (False, [({"a": {KEY: "false"}}, False)]),
    (False, [({"a": {f"{KEY}:position": "x"}}, False)]),
    (False, [({"a": {CLUSTERING: "x"}}, False)]),
    (False, [({"n": {KEY: "true"}}, False)]),
    (False, [({"a": {KEY: "true"}}, False), ({"b": {KEY: "true"}}, False)]),
    (False, [({"a": {KEY: "true"}}, False), ({"a": {KEY: None}}, False)]),
    (False, [({"a": {KEY: "true"}}, False), ({"a": {"z": "1"}}, True)]),
    (False, [({"a": {CLUSTERING: "1"}}, False), ({"b": {CLUSTERING: "2"}}, False)]),
]


@pytest.mark.parametrize(("possible", "steps"), KEYS)
def test_keys_in_metadata(
    tmp_path: Path, possible: bool, steps: list[tuple[dict[str, dict[str, str | None]], bool]]
) -> None:
    """Keys declared in metadata of fields cannot be changed.

    Both libraries accept the last step, or both refuse it.
    """
    there, copies = tmp_path / "there", [tmp_path / "stored", tmp_path / "public"]
    fields = [pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False), pa.field("n", pa.int64())]
    lance.write_dataset(pa.table({name: [1, 2] for name in "abn"}, schema=pa.schema(fields)), there)

    def change(dataset: lance.LanceDataset) -> None:
        for updates, replaces in steps if possible else steps[:-1]:
            lance.dataset(dataset.uri).update_field_metadata(updates, replace=replaces)
        dataset.update_config({"a": "b"})

    followed(there, copies, change)
    if possible:
        return
    updates, replaces = steps[-1]
    ids = {"a": 0, "b": 1, "n": 2}
    with pytest.raises(OSError, match=r"reserved key|Primary key"):
        lance.dataset(there).update_field_metadata(updates, replace=replaces)
    maps = {ids[name]: UpdateMap(values, replaces) for name, values in updates.items()}
    ours = Transaction(lance.dataset(copies[0]).version, UpdateConfig(field_metadata=maps))
    with pytest.raises(InvalidInputError, match=r"reserved key|Primary key"):
        commit_transaction(LocalStore(), str(copies[0]), ours)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_log(tmp_path: Path, stable: bool) -> None:
    there, copies = tmp_path / "there", [tmp_path / "stored", tmp_path / "public"]
    data = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]}, schema=KEYED)
    dataset = lance.write_dataset(data, there, enable_stable_row_ids=stable)
    dataset.create_scalar_index("b", "BTREE")
    dataset.initialize_mem_wal()
    followed(there, copies, compact_log)
    check_reads(there, copies)
    for copy in copies:
        state = UpdateMemWalState((table_operations.CompactedSsTable(SHARD, 3),))
        with pytest.raises(CommitConflictError, match="Stale SSTable compaction"):
            commit_transaction(LocalStore(), str(copy), Transaction(5, state))
        state = UpdateMemWalState((table_operations.CompactedSsTable(SHARD, 4),))
        made = commit_transaction(LocalStore(), str(copy), Transaction(5, state))
        assert made.fragments == manifest_of(copy, 5).fragments
        merge = lance.dataset(copy).merge_insert("a").when_matched_update_all()
        with pytest.raises(OSError, match="not greater than the recorded generation 4"):
            merge.mark_sstables_as_compacted([CompactedSsTable(SHARD, 4)]).execute(data)


def test_indices_that_follow_later(tmp_path: Path) -> None:
    """Compactions with deferred indices write the index that maps old to new rows."""
    there, copy = tmp_path / "there", tmp_path / "copy"
    plain(there)
    dataset = lance.dataset(there)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    for rows in (6, 1000):
        shutil.copytree(there, copy)
        before = lance.dataset(there).version
        lance.dataset(there).optimize.compact_files(target_rows_per_fragment=rows, defer_index_remap=True)
        shutil.copytree(there, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_versions"))
        for version in range(before + 1, lance.dataset(there).version + 1):
            transaction, expected = transaction_of(there, version), manifest_of(there, version)
            if isinstance(transaction.operation, Rewrite):
                found = [index for index in parse_indices(expected.index_section) if index.name == REUSE_INDEX]
                reuse = IndexMetadata.from_proto(found[0], "copy") if found else None
                transaction = replace(transaction, operation=replace(transaction.operation, reuse_index=reuse))
            commit_transaction(LocalStore(), str(copy), transaction)
            assert manifest_content(manifest_of(copy, version)) == manifest_content(expected)
        shutil.rmtree(copy)
    copies = [tmp_path / "stored", tmp_path / "public"]
    followed(there, copies, change_after_compaction)
    check_reads(there, copies)
