"""Tests of next manifests without files: cases that no other program can confirm, and refused operations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lance_dataset._proto import system_indices_pb2, table_pb2
from lance_dataset.errors import CommitConflictError, InvalidInputError, UnsupportedError
from lance_dataset.table.apply import first_manifest, next_manifest
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, Spilled
from lance_dataset.table.index_metadata import IndexDetails, IndexMetadata
from lance_dataset.table.indices.coverage import MEMORY_INDEX, REUSE_INDEX, coverage, parse_indices
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_versions import RowVersions
from lance_dataset.table.manifest import BasePath, Manifest, WriterVersion
from lance_dataset.table.operations import (
    Append,
    Clone,
    CompactedSsTable,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Unknown,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMemWalState,
    UpdateMode,
)
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.types.schema import Field, Schema

SCHEMA = Schema((Field("a", 0, "int64"), Field("s", 1, "struct", children=(Field("x", 2, "int64"),))))
SIGNED = WriterVersion("lance", "14.0.2")
UUIDS = [f"{number:08d}-2222-4333-8444-555555555555" for number in range(9)]


def fragment(rows: int = 3, fragment_id: int = 0, fields: tuple[int, ...] = (0, 2), name: str = "f") -> Fragment:
    file = DataFile(f"{name}{fragment_id}.lance", fields, tuple(range(len(fields))), 2, 2, 99)
    return Fragment(fragment_id, (file,), physical_rows=rows)


def table(*rows: int, stable: bool = False) -> Manifest:
    made = first_manifest(Overwrite(SCHEMA, tuple(map(fragment, rows))), storage_version=None, stable_row_ids=stable)
    return replace(made, writer_version=SIGNED)


def index(number: int, covers: list[int] | None, fields: tuple[int, ...] = (0,), kind: str = "BTree") -> IndexMetadata:
    details = IndexDetails(f"/lance.table.{kind}IndexDetails", b"")
    bitmap = b"" if covers is None else encode_bitmap(np.array(covers, np.uint32))
    return IndexMetadata(UUIDS[number], f"i{number}", fields, 1, bitmap, details, 0)


def indexed(manifest: Manifest, *indices: IndexMetadata) -> Manifest:
    section = table_pb2.IndexSection(indices=[each.to_proto() for each in indices])
    return replace(manifest, index_section=section.SerializeToString())


def covered(manifest: Manifest) -> dict[str, list[int] | None]:
    found = {each.name: coverage(each) for each in parse_indices(manifest.index_section)}
    return {name: None if ids is None else sorted(ids) for name, ids in found.items()}


def with_ids(given: Fragment, *ids: int) -> Fragment:
    return replace(given, row_ids=RowIds.from_values(ids).encode())


def versions(lineage: object, rows: int) -> list[int]:
    assert isinstance(lineage, bytes)
    return RowVersions.decode(lineage, rows, "test").to_numpy().tolist()


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", [Clone(True, 1, "/x"), DataOverlay(()), Unknown()], ids=lambda operation: operation.name
)
def test_operations_that_are_never_applied(operation: Operation) -> None:
    with pytest.raises(UnsupportedError, match=operation.name):
        next_manifest(table(3), operation)


def replacement(fields: tuple[int, ...] = (0,), fragment_id: int = 0, name: str = "new") -> tuple[int, DataFile]:
    return fragment_id, DataFile(name, fields, tuple(range(len(fields))), 2, 2, 9)


def offsets(*values: int) -> bytes:
    return encode_bitmap(np.array(values, np.uint32))


def deleted(number: int) -> Fragment:
    file = DeletionFile(DeletionFileType.ARROW_ARRAY, 1, number, 1)
    return replace(fragment(), deletion_file=file)


REFUSED: list[tuple[Operation, str]] = [
    (Append((fragment(0),)), "no rows"),
    (Append((fragment(3, 1),)), r"ids \[1\] would be used twice"),
    (Merge((fragment(),), SCHEMA), r"fragments \[1\] of version 1 are missing"),
    (Merge((fragment(), fragment(3, 1), fragment(3, 1)), SCHEMA), "used twice"),
    (Rewrite((RewriteGroup((fragment(3, 7),), ()),)), r"fragments \[7\] are not part"),
    (Append((fragment(-4),)), "cannot have -4 rows"),
    (Append((fragment(2**33),)), "cannot have 8589934592 rows"),
    (Append((replace(fragment(), physical_rows="3"),)), "cannot have '3' rows"),  # type: ignore[arg-type]
    (Append((replace(fragment(), files=()),)), "no data file"),
    (Append((fragment(3, 1 << 32),)), "cannot have the id 4294967296"),
    (Append((fragment(3, -1),)), "cannot have the id -1"),
    (Delete((deleted(0), deleted(1)), (), ""), "fragment 0 is updated twice"),
    (Update(updated_fragments=(deleted(0), deleted(1))), "fragment 0 is updated twice"),
    (Merge((fragment(2), fragment(3, 1)), SCHEMA), "fragment 0 with 2 rows instead of 3"),
    (
        Rewrite((RewriteGroup((fragment(),), (fragment(),)), RewriteGroup((fragment(),), (fragment(),)))),
        r"fragments \[0\] are replaced more than once",
    ),
    (Rewrite((), (RewrittenIndex(UUIDS[0], UUIDS[1]),)), "rewritten indices"),
    (DataReplacement((replacement(fragment_id=7),)), "fragment 7 is not part"),
    (DataReplacement((replacement((9,)),)), r"fields \[9\]"),
    (DataReplacement((replacement(), replacement((2,), 1))), "same fields"),
    (DataReplacement((replacement(), replacement(name="other"))), "replaced twice"),
    (DataReplacement(((0, fragment().files[0]),)), "no changes"),
    (Update(updated_offsets={0: offsets(1)}, mode=UpdateMode.REWRITE_COLUMNS), r"fragments \[0\]"),
    (
        Update(updated_fragments=(fragment(),), updated_offsets={0: offsets(3)}, mode=UpdateMode.REWRITE_COLUMNS),
        "not below 3",
    ),
    (
        Update(updated_fragments=(fragment(),), updated_offsets={0: b"x"}, mode=UpdateMode.REWRITE_COLUMNS),
        "roaring",
    ),
    (UpdateConfig(field_metadata={7: UpdateMap({})}), "Field with id 7 does not exist"),
    (UpdateBases((BasePath(0, "/x"), BasePath(0, "/x/"))), "same path"),
    (UpdateBases((BasePath(0, "/x", "n"), BasePath(0, "/y", "n"))), "same name"),
    (UpdateBases((BasePath(3, "/x"), BasePath(3, "/y"))), "same id"),
    (CreateIndex((index(0, [0], (5,)),)), r"fields \[5\]"),
    (CreateIndex((index(0, [0]), index(0, [1]))), "same id"),
    (UpdateMemWalState((CompactedSsTable(UUIDS[0], 1),)), "no MemWAL"),
    (Update(compacted_sstables=(CompactedSsTable(UUIDS[0], 1),)), "no MemWAL"),
    (ReserveFragments(1 << 32), "32 bits"),
    (Restore(1), "was not read"),
    (Overwrite(SCHEMA, initial_bases=(BasePath(1, "/x"),)), "when a dataset is created"),
]


@pytest.mark.parametrize(("operation", "message"), REFUSED)
def test_refused(operation: Operation, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        next_manifest(table(3, 3), operation)


def test_refused_with_stable_row_ids() -> None:
    base = table(3, 3, stable=True)
    with pytest.raises(InvalidInputError, match="appended fragment has row ids"):
        next_manifest(base, Append((with_ids(fragment(), 0, 1, 2),)))
    with pytest.raises(InvalidInputError, match="row id 6, but only ids below 6"):
        next_manifest(base, Update(new_fragments=(with_ids(fragment(), 0, 6),)))
    with pytest.raises(InvalidInputError, match="only 3 are expected"):
        next_manifest(base, Update(new_fragments=(with_ids(fragment(), 0, 1, 2, 3),)))
    with pytest.raises(InvalidInputError, match="does not state how many"):
        next_manifest(base, Append((replace(fragment(), physical_rows=None),)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="lists a fragment twice"):
        next_manifest(base, Merge((*base.fragments, base.fragments[0]), SCHEMA))
    for new in (fragment(), with_ids(fragment(), 0, 1)):
        with pytest.raises(InvalidInputError, match="row ids for 3 rows"):
            next_manifest(base, Rewrite((RewriteGroup((base.fragments[0],), (new,)),)))
    other = replace(base, reader_flags=0, writer_flags=0, version=1)
    with pytest.raises(InvalidInputError, match="would lose them"):
        next_manifest(base, Restore(1), other)


def test_no_row_is_there_twice() -> None:
    base = table(3, 3, stable=True)
    first, second = base.fragments
    for twice in (
        Update(removed_fragment_ids=(0,), new_fragments=(with_ids(fragment(2), 0, 0),)),
        Update(removed_fragment_ids=(0,), new_fragments=(with_ids(fragment(1), 0), with_ids(fragment(1), 0))),
        Update(updated_fragments=(first,), new_fragments=(with_ids(fragment(1), 0),)),
        Rewrite((RewriteGroup((first,), (with_ids(fragment(), 0, 1, 1),)),)),
    ):
        with pytest.raises(InvalidInputError, match=r"row id [01] belongs to two rows"):
            next_manifest(base, twice)
    for ids in ((3, 4, 5), (0, 1, 3), (0, 1, 5)):
        with pytest.raises(InvalidInputError, match="not all of them"):
            next_manifest(base, Rewrite((RewriteGroup((first,), (with_ids(fragment(), *ids),)),)))
    both = Rewrite((RewriteGroup((first, second), (with_ids(fragment(4), 1, 5, 2, 3),)),))
    assert [each.physical_rows for each in next_manifest(base, both).fragments] == [4]
    moved = Update(updated_fragments=(replace(deleted(0), row_ids=first.row_ids),))
    moved = replace(moved, new_fragments=(with_ids(fragment(1), 0),))
    assert [each.num_rows for each in next_manifest(base, moved).fragments] == [2, 3, 1]


# -- row lineage -------------------------------------------------------------------------------------------------------


def test_moved_rows_keep_the_version_that_created_them() -> None:
    base = table(3, stable=True)
    base = replace(next_manifest(base, Append((fragment(),))), writer_version=SIGNED)
    base = replace(next_manifest(base, Append((fragment(2),))), writer_version=SIGNED)
    # Rows 7 and 1 are found where the update says, row 4 elsewhere; one is new.
    moved = with_ids(fragment(4), 7, 1, 4)
    made = next_manifest(base, Update(removed_fragment_ids=(0, 2), new_fragments=(moved,)))
    (kept, new) = made.fragments
    assert (kept.id, new.id, made.next_row_id) == (1, 3, 9)
    assert versions(new.created_at_versions, 4) == [3, 1, 2, 4]
    assert versions(new.last_updated_at_versions, 4) == [4, 4, 4, 4]
    assert RowIds.decode(new.row_ids, 4, "test").to_numpy().tolist() == [7, 1, 4, 8]  # type: ignore[arg-type]


def test_rewritten_rows_keep_both_versions() -> None:
    base = replace(next_manifest(table(2, stable=True), Append((fragment(2),))), writer_version=SIGNED)
    columns = Update(updated_fragments=(base.fragments[0],), updated_offsets={0: offsets(1)})
    base = replace(next_manifest(base, replace(columns, mode=UpdateMode.REWRITE_COLUMNS)), writer_version=SIGNED)
    group = RewriteGroup(tuple(base.fragments), (with_ids(fragment(3), 3, 0, 1),))
    (only,) = next_manifest(base, Rewrite((group,))).fragments
    assert versions(only.created_at_versions, 3) == [2, 1, 1]
    assert versions(only.last_updated_at_versions, 3) == [2, 1, 3]


def test_of_two_rows_with_an_id_the_one_that_moved_last_tells() -> None:
    base = table(3, stable=True)
    masked = replace(deleted(0), row_ids=base.fragments[0].row_ids)
    moved = Update(updated_fragments=(masked,), new_fragments=(with_ids(fragment(1), 0),))
    base = replace(next_manifest(base, moved), writer_version=SIGNED)
    group = RewriteGroup(tuple(base.fragments), (with_ids(fragment(3), 1, 2, 0),))
    (only,) = next_manifest(base, Rewrite((group,))).fragments
    assert versions(only.created_at_versions, 3) == [1, 1, 1]
    assert versions(only.last_updated_at_versions, 3) == [1, 1, 2]


def test_lineage_in_hidden_columns_is_not_guessed() -> None:
    base = table(3, stable=True)
    hidden = replace(base.fragments[0], row_ids=Spilled.COLUMN)
    base = replace(base, fragments=(hidden,))
    with pytest.raises(UnsupportedError, match="hidden column"):
        next_manifest(base, Update(removed_fragment_ids=(0,), new_fragments=(with_ids(fragment(), 0, 1, 2),)))


def test_tables_without_stable_row_ids_have_no_lineage() -> None:
    given = with_ids(fragment(), 0, 1, 2)
    for operation in (Append((given,)), Merge((given,), SCHEMA), Overwrite(SCHEMA, (given,))):
        assert all(each.row_ids is None for each in next_manifest(table(3), operation).fragments)


# -- fragments and files -----------------------------------------------------------------------------------------------


def test_fragments_without_rows_go() -> None:
    gone = replace(fragment(), deletion_file=DeletionFile(DeletionFileType.BITMAP, 1, 1, 3))
    for operation in (Delete((gone,)), Update(updated_fragments=(gone,))):
        assert [each.id for each in next_manifest(table(3, 3), operation).fragments] == [1]


def test_files_in_place_of_others() -> None:
    base = table(3)
    after = next_manifest(base, DataReplacement((replacement((2, 0)),)))
    assert [file.path for file in after.fragments[0].files] == ["new"]  # nothing is left of the other
    (fragment_after,) = next_manifest(base, DataReplacement((replacement((2,)),))).fragments
    assert [file.fields for file in fragment_after.files] == [(0, -2), (2,)]
    same = next_manifest(base, DataReplacement((replacement((0, 2)),)))
    assert [file.path for file in same.fragments[0].files] == ["new"]
    older = (0, DataFile("older", (0, 2), (0, 1), 2, 1, 9))
    assert next_manifest(base, DataReplacement((older,))).reader_flags == Feature.MIXED_FILE_VERSIONS


def test_clustering_is_dropped() -> None:
    base = table(3, 3)
    base = replace(base, fragments=[replace(each, clustering_id=4) for each in base.fragments])
    after = next_manifest(base, UpdateConfig(config=UpdateMap({"a": "b"})))
    assert [each.clustering_id for each in after.fragments] == [None, None]
    assert after.writer_flags == Feature.TABLE_CONFIG
    assert next_manifest(after, UpdateConfig(config=UpdateMap({"a": None}))).writer_flags == 0


def test_field_ids_that_are_never_reused_stay_marked() -> None:
    base = replace(table(3), max_allocated_field_id=7, writer_flags=int(Feature.NON_REUSABLE_FIELD_IDS))
    wider = Schema((*SCHEMA.fields, Field("b", 9, "int64")))
    assert next_manifest(base, Merge(tuple(base.fragments), wider)).max_allocated_field_id == 9
    assert next_manifest(base, Project(Schema(SCHEMA.fields[:1]))).max_allocated_field_id == 7


def test_base_paths_get_ids() -> None:
    base = replace(table(3), base_paths=(BasePath(0, "/a"),))
    after = next_manifest(base, UpdateBases((BasePath(0, "/b"), BasePath(5, "/c"), BasePath(0, "/d", "d"))))
    assert [(each.id, each.path) for each in after.base_paths] == [(0, "/a"), (1, "/b"), (5, "/c"), (2, "/d")]
    assert after.reader_flags == after.writer_flags == Feature.BASE_PATHS


# -- indices -----------------------------------------------------------------------------------------------------------


def test_columns_with_new_values_leave_indices() -> None:
    parents = indexed(table(3, 3), index(0, [0, 1]), index(1, [0, 1], (1,)), index(2, [0, 1], (2,)))
    change = Update(updated_fragments=(fragment(3, 1),), fields_modified=(2,))
    assert covered(next_manifest(parents, change)) == {"i0": [0, 1], "i1": [0], "i2": [0]}
    change = Update(updated_fragments=(fragment(3, 1),), fields_modified=(1,))
    assert covered(next_manifest(parents, change)) == {"i0": [0, 1], "i1": [0], "i2": [0]}
    moved = (replace(parents.fragments[0], files=fragment(name="g").files), parents.fragments[1])
    assert covered(next_manifest(parents, Merge(moved, SCHEMA))) == {"i0": [1], "i1": [1], "i2": [1]}
    for base in (indexed(table(3, 3), index(0, None)), replace(parents, writer_version=None)):
        with pytest.raises(UnsupportedError, match="index 'i0' does not reliably state"):
            next_manifest(base, replace(change, fields_modified=(0,)))


def test_moved_rows_stay_in_indices_of_row_ids() -> None:
    base = indexed(
        table(3, 3, stable=True),
        *(index(0, [0, 1], kind="Bitmap"), index(1, [0, 1], (2,), "Bitmap"), index(2, [1], kind="Bitmap")),
        *(index(3, [0, 1], kind="ZoneMap"), index(4, [0, 1], kind="Unheard"), index(5, None, kind="Bitmap")),
        replace(index(6, [0, 1]), index_version=1),
        replace(index(7, [0, 1]), details=None),
    )
    new = with_ids(fragment(2), 0, 1)
    masked = replace(base.fragments[0], deletion_file=deleted(0).deletion_file)
    change = Update(updated_fragments=(masked,), new_fragments=(new,), fields_for_preserving_bitmap=(1,))
    only = {"i0": [0, 1, 2], "i1": [0, 1], "i2": [1], "i3": [0, 1], "i4": [0, 1], "i5": None, "i6": [0, 1]}
    assert covered(next_manifest(base, change)) == only | {"i7": [0, 1, 2]}
    before = covered(base)
    for other in (
        replace(change, fields_for_preserving_bitmap=()),  # then it is unknown which rows changed
        replace(change, new_fragments=(with_ids(fragment(2), 0),)),  # one row is new
        replace(change, mode=UpdateMode.REWRITE_COLUMNS),
    ):
        assert covered(next_manifest(base, other)) == before


def test_groups_that_an_index_covers_in_part() -> None:
    new = fragment(9)
    base = indexed(table(3, 3, 3), index(0, [0, 1]))
    rewrite = Rewrite((RewriteGroup(tuple(base.fragments), (new,)),), (RewrittenIndex(UUIDS[0], UUIDS[1]),))
    with pytest.raises(InvalidInputError, match=r"'i0' covers the fragments \[0, 1\] of the rewritten group"):
        next_manifest(base, rewrite)
    whole = replace(rewrite, groups=(RewriteGroup(tuple(base.fragments[:2]), (new,)),))
    after = next_manifest(base, whole)
    assert covered(after) == {"i0": [3]}
    assert [each.uuid.uuid for each in parse_indices(after.index_section)] == [index(1, []).to_proto().uuid.uuid]
    # An index that was not rewritten covers removed fragments; the new fragment is scanned.
    assert covered(next_manifest(base, replace(rewrite, rewritten_indices=()))) == {"i0": [0, 1]}


def test_indices_follow_the_reuse_index() -> None:
    details = system_indices_pb2.FragmentReuseIndexDetails()
    group = details.inline.versions.add(dataset_version=1).groups.add()
    group.old_fragments.add(id=0)
    group.old_fragments.add(id=1)
    group.new_fragments.add(id=2)
    reuse = IndexDetails("/lance.table.FragmentReuseIndexDetails", details.SerializeToString())
    system = replace(index(8, [2], ()), name=REUSE_INDEX, details=reuse)
    base = indexed(table(3, 3, 3), index(0, [0, 1]), index(1, [0]), system)
    after = next_manifest(base, Append((fragment(),)))
    assert covered(after) == {"i0": [2], "i1": [0], REUSE_INDEX: [2]}
    change = Update(updated_fragments=(fragment(3, 2),), fields_modified=(0,))
    assert covered(next_manifest(base, change))["i0"] == []


def test_the_log_claims_nothing_of_changed_indices() -> None:
    details = system_indices_pb2.MemWalIndexDetails()
    for name in ("i0", "i1"):
        details.index_catchup.add(index_name=name)
    log = IndexDetails("/lance.table.MemWalIndexDetails", details.SerializeToString())
    base = indexed(table(3), index(0, [0]), index(1, [0]), replace(index(8, None, ()), name=MEMORY_INDEX, details=log))

    def claims(manifest: Manifest) -> list[str]:
        (found,) = [each for each in parse_indices(manifest.index_section) if each.name == MEMORY_INDEX]
        stored = system_indices_pb2.MemWalIndexDetails.FromString(found.index_details.value)
        return [each.index_name for each in stored.index_catchup]

    assert claims(next_manifest(base, Append((fragment(),)))) == ["i0", "i1"]
    assert claims(next_manifest(base, CreateIndex((), (index(1, [0]),)))) == ["i0"]
    taken = UpdateMemWalState((CompactedSsTable(UUIDS[0], 2),))
    after = replace(next_manifest(base, taken), writer_version=SIGNED)
    with pytest.raises(CommitConflictError, match="Stale SSTable compaction") as caught:
        next_manifest(after, taken)
    assert not caught.value.retryable
