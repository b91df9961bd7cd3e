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

import numpy as np
import pytest

from lance_dataset.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DatasetNotFoundError,
    InvalidInputError,
    UnsupportedError,
    VersionNotFoundError,
)
from lance_dataset.io.base import ObjectStore
from lance_dataset.io.local import LocalStore
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit import commit_transaction, create_table
from lance_dataset.table.deletions import read_deletions, write_deletions
from lance_dataset.table.flags import Feature
from lance_dataset.table.manifest import Manifest, encode_manifest, read_manifest
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.row_ids import RowIds, RowVersions
from lance_dataset.table.transaction import Append, Delete, Overwrite, Restore, Transaction, read_transaction
from lance_dataset.table.versions import latest_version, list_versions, locate_version

from .conftest import SCHEMA, create, fragment


@pytest.fixture(params=["memory", "local"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ObjectStore, str]:
    return (MemoryStore(), "/t") if request.param == "memory" else (LocalStore(fsync=False), f"{tmp_path}/t")


def read(store: ObjectStore, root: str, version: int | None = None) -> Manifest:
    number = version if version is not None else latest_version(store, root).version
    return read_manifest(store, locate_version(store, root, number))


def append(store: ObjectStore, root: str, read_version: int, *rows: int) -> Manifest:
    return commit_transaction(store, root, Transaction(read_version, Append(tuple(fragment(n) for n in rows))))


def delete(store: ObjectStore, root: str, base: Manifest, rows: dict[int, list[int]], **options: object) -> Manifest:
    """Delete offsets of fragments as a writer does that looked at `base`."""
    updated, removed = [], []
    for fragment_id, offsets in rows.items():
        current = base.fragment(fragment_id)
        assert current is not None
        old = read_deletions(FileLocator(store, root), current)
        complete = np.union1d(old, np.array(offsets, np.uint32))
        if len(complete) == current.physical_rows:
            removed.append(fragment_id)
        else:
            file = write_deletions(store, root, fragment_id, base.version, complete)
            updated.append(replace(current, deletion_file=file))
    operation = Delete(tuple(updated), tuple(removed), "x")
    affected = {key: np.array(value, np.uint32) for key, value in rows.items()}
    return commit_transaction(
        store,
        root,
        Transaction(base.version, operation),
        affected_rows=affected,
        **options,  # type: ignore[arg-type]
    )


def deleted(store: ObjectStore, root: str, manifest: Manifest) -> dict[int, list[int]]:
    locator = FileLocator(store, root)
    return {item.id: read_deletions(locator, item).tolist() for item in manifest.fragments if item.deletion_file}


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
    with pytest.raises(InvalidInputError, match="newest"):
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
    sixth = commit_transaction(store, root, Transaction(5, Append((partial,))))
    assert lineage(sixth)[-1] == ([1, 0, 8], 6, 6)
    assert sixth.next_row_id == 9


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
        "from lance_dataset.table.commit import commit_transaction\n"
        "from lance_dataset.table.fragment import DataFile, Fragment\n"
        "from lance_dataset.table.transaction import Append, Transaction\n"
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
