"""Tests of rebasing operations on later versions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from support.tables.bare_tables import SCHEMA, fragment

from lance_dataset._proto import table_pb2
from lance_dataset.errors import CommitConflictError, CorruptFileError, InvalidInputError
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.commit.rebase import check_overlaid_rows, check_reuse_index, rebase_index, rebase_rows
from lance_dataset.table.conflicts.log import log_progress
from lance_dataset.table.deletions import read_deletions, write_deletions
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.indices.coverage import coverage
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import (
    CompactedSsTable,
    CreateIndex,
    DataOverlay,
    Delete,
    Merge,
    Rewrite,
    Update,
    UpdateMemWalState,
    UpdateMode,
)
from lance_dataset.table.overlays import Overlay
from lance_dataset.table.paths import FileLocator
from lance_dataset.table.roaring import encode_bitmap

ROOT = "/t"
SHARDS = [str(uuid.UUID(int=number)) for number in (7, 8, 9)]


def manifest(version: int, fragments: Iterable[Fragment], section: bytes | None = None) -> Manifest:
    return Manifest(version, SCHEMA, tuple(fragments), index_section=section)


def three() -> list[Fragment]:
    return [fragment(10, fragment_id=number) for number in range(3)]


def masked(store: MemoryStore, fragment_: Fragment, version: int, *rows: int) -> Fragment:
    return replace(fragment_, deletion_file=write_deletions(store, ROOT, fragment_.id, version, list(rows)))


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Delete, Update])
def test_masked_rows_are_joined(kind: type[Delete] | type[Update]) -> None:
    store, locator = MemoryStore(), FileLocator(MemoryStore(), ROOT)
    locator = FileLocator(store, ROOT)
    first = three()
    ours = tuple(masked(store, each, 1, 5) for each in first)
    latest = manifest(
        4, [masked(store, first[0], 3, 1, 2), first[1], masked(store, first[2], 3, *range(5), *range(6, 10))]
    )
    new = (fragment(3),)
    operation = Delete(ours) if kind is Delete else Update((), ours, new)
    rows = {number: np.array([5], np.uint32) for number in range(3)}
    done = rebase_rows(store, ROOT, operation, {0, 2}, latest, rows)
    assert [each.id for each in done.updated_fragments] == [0, 1]
    joined, untouched = done.updated_fragments
    assert read_deletions(locator, joined).tolist() == [1, 2, 5]
    assert joined.deletion_file is not None
    assert joined.deletion_file.read_version == 4
    assert untouched == ours[1]
    removed = done.deleted_fragment_ids if isinstance(done, Delete) else done.removed_fragment_ids
    assert removed == (2,)
    if isinstance(done, Update):
        assert done.new_fragments == new


def test_rows_that_were_masked_already() -> None:
    store, first = MemoryStore(), three()
    operation = Delete(tuple(masked(store, each, 1, 5) for each in first))
    rows = {number: np.array([5], np.uint32) for number in range(3)}
    latest = manifest(4, [masked(store, first[0], 3, 1), masked(store, first[1], 3, 4, 5), first[2]])
    before = sorted(info.path for info in store.list(f"{ROOT}/_deletions"))
    for marked, base in (
        ({0, 1}, latest),
        ({0, 1, 2}, latest),
        ({0, 1}, replace(latest, fragments=(latest.fragments[0],))),
    ):
        with pytest.raises(CommitConflictError, match=r"version 4: This Delete .*Please retry") as caught:
            rebase_rows(store, ROOT, operation, marked, base, rows)
        assert caught.value.retryable
        assert sorted(info.path for info in store.list(f"{ROOT}/_deletions")) == before
    with pytest.raises(InvalidInputError, match=r"fragment 0 .*affected rows"):
        rebase_rows(store, ROOT, operation, {0}, latest, {})


def overlay(*offsets: int) -> bytes:
    message = table_pb2.DataOverlayFile(
        data_file=DataFile("o.lance", (0,), (0,), 2, 2, 100).to_proto(), shared_offset_bitmap=encode_bitmap(offsets)
    )
    return message.SerializeToString()


def test_overlays_of_rows_that_moved() -> None:
    store, first = MemoryStore(), three()
    read = manifest(1, [masked(store, first[0], 1, 3), *first[1:]])
    latest = manifest(2, [masked(store, first[0], 2, 3, 7), *first[1:]])
    for rows, conflict in (([3], False), ([6, 8], False), ([7], True), ([1, 7, 9], True)):
        operation = DataOverlay(((0, (overlay(*rows),)),))
        if conflict:
            with pytest.raises(CommitConflictError, match=r"DataOverlay.*Update at version 2"):
                check_overlaid_rows(store, ROOT, operation, {0}, read, latest)
        else:
            check_overlaid_rows(store, ROOT, operation, {0}, read, latest)
    with pytest.raises(CommitConflictError):
        check_overlaid_rows(store, ROOT, DataOverlay(((0, (overlay(1),)),)), {0}, None, latest)


def test_coverage_of_overlays() -> None:
    file = DataFile("o.lance", (0, -2, 4), (0, 1, 2), 2, 2, 100)
    bitmaps = [encode_bitmap([1]), encode_bitmap([2]), encode_bitmap([3, 70_000])]
    coverage_ = table_pb2.DataOverlayFile.FieldCoverage(offset_bitmaps=bitmaps)
    message = table_pb2.DataOverlayFile(data_file=file.to_proto(), field_coverage=coverage_, committed_version=6)
    decoded = Overlay.decode(message.SerializeToString())
    assert decoded.live_fields == {0, 4}
    assert decoded.committed_version == 6
    assert decoded.covers_any(np.array([70_000], np.uint32))
    assert not decoded.covers_any(np.array([2], np.uint32))
    assert decoded.covers_any(None)
    for broken in (
        table_pb2.DataOverlayFile(data_file=file.to_proto()),
        table_pb2.DataOverlayFile(
            data_file=file.to_proto(),
            field_coverage=table_pb2.DataOverlayFile.FieldCoverage(offset_bitmaps=bitmaps[:1]),
        ),
    ):
        with pytest.raises(CorruptFileError, match=r"overlay file 'o\.lance'"):
            Overlay.decode(broken.SerializeToString())


# -- indices -----------------------------------------------------------------------------------------------------------


def index(name: str, fields: tuple[int, ...], fragments: Iterable[int] | None) -> IndexMetadata:
    bitmap = b"" if fragments is None else encode_bitmap(list(fragments))
    return IndexMetadata(str(uuid.uuid4()), name, fields, 1, bitmap)


def test_new_indices_lose_what_was_updated_in_place() -> None:
    first = three()
    ours = CreateIndex((index("a", (0,), [0, 1, 2]), index("b", (1,), [0, 1, 2]), index("both", (1, 0), [1])))
    update = Update((), (first[1],), (), (0,), mode=UpdateMode.REWRITE_COLUMNS)
    done = rebase_index(ours, update, 3, None)
    assert [coverage(each) for each in done.new_indices] == [{0, 2}, {0, 1, 2}, set()]
    assert done.new_indices[2].fragment_bitmap.hex() == "3a30000000000000"
    moved = replace(update, mode=UpdateMode.REWRITE_ROWS)
    assert rebase_index(ours, moved, 3, None) == ours
    vague = CreateIndex((index("a", (0,), None),))
    with pytest.raises(CommitConflictError, match=r"CreateIndex.*Update at version 3"):
        rebase_index(vague, update, 3, None)
    assert rebase_index(vague, replace(update, fields_modified=(1,)), 3, None) == vague


def test_new_indices_lose_what_a_merge_replaced() -> None:
    first = three()
    other = replace(first[1], files=(replace(first[1].files[0], path="other.lance"),))
    wider = replace(first[2], files=(*first[2].files, DataFile("new.lance", (7,), (0,), 2, 2, 10)))
    ours = CreateIndex((index("a", (0,), [0, 1, 2]),))
    merge = Merge((first[0], other, wider), SCHEMA)
    done = rebase_index(ours, merge, 3, manifest(1, first))
    assert [coverage(each) for each in done.new_indices] == [{0, 2}]
    unknown = rebase_index(ours, merge, 3, None)
    assert [coverage(each) for each in unknown.new_indices] == [set()]


def test_the_index_of_the_log_gets_its_progress() -> None:
    def tables(*generations: int) -> tuple[CompactedSsTable, ...]:
        return tuple(CompactedSsTable(shard, number) for shard, number in zip(SHARDS, generations, strict=False))

    log = IndexMetadata(
        str(uuid.uuid4()), "__lance_mem_wal", details=IndexDetails("/lance.table.MemWalIndexDetails", b"\x10\x01")
    )
    once = rebase_index(CreateIndex((log, index("a", (0,), [0]))), UpdateMemWalState(tables(5, 2)), 3, None)
    twice = rebase_index(once, UpdateMemWalState(tables(4, 3, 1)), 4, None)
    assert set(log_progress(twice.new_indices[0])) == set(tables(5, 3, 1))
    assert twice.new_indices[1] == once.new_indices[1]
    details = twice.new_indices[0].details
    assert details is not None
    assert b"\x10\x01" in details.value  # other fields are kept
    broken = replace(log, details=IndexDetails("/lance.table.MemWalIndexDetails", b"\x4a\xff"))
    with pytest.raises(CorruptFileError, match="__lance_mem_wal"):
        rebase_index(CreateIndex((broken,)), UpdateMemWalState(tables(1)), 3, None)


def test_reuse_indices_follow_each_other() -> None:
    def section(*indices: IndexMetadata) -> bytes:
        return table_pb2.IndexSection(indices=[each.to_proto() for each in indices]).SerializeToString()

    old, new, ours = (index("__lance_frag_reuse", (), [0]) for _ in range(3))
    read, same, changed = manifest(1, [], section(old)), manifest(2, [], section(old)), manifest(3, [], section(new))
    none = manifest(3, [])
    for operation in (CreateIndex((ours,), (old,)), CreateIndex((), (old,)), Rewrite((), reuse_index=ours)):
        check_reuse_index(operation, lambda: read, same)
        check_reuse_index(operation, lambda: none, none)
        for before, after in ((read, changed), (read, none), (None, same)):
            with pytest.raises(CommitConflictError, match=operation.name) as caught:
                check_reuse_index(operation, lambda before=before: before, after)
            assert caught.value.retryable
    check_reuse_index(CreateIndex((index("a", (0,), [0]),)), lambda: None, changed)
    check_reuse_index(Rewrite(()), lambda: None, changed)
