"""Tests of manifests of releases that omitted fields or wrote them wrongly, made by hand rule by rule."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.releases.old_manifests import TWO, decoded, message, stored, with_dictionary
from support.tables.bare_tables import SCHEMA, fragment

from lance_dataset._proto import file_pb2, table_pb2, transaction_pb2
from lance_dataset.changes.write.fragment_files import WriteOptions, write_fragment_files
from lance_dataset.errors import (
    CorruptFileError,
    InvalidInputError,
    LanceError,
    MissingFileError,
    UnsupportedError,
)
from lance_dataset.io.memory import MemoryStore
from lance_dataset.table.apply import first_manifest, next_manifest
from lance_dataset.table.commit.loop import commit_transaction
from lance_dataset.table.flags import Feature
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest, WriterVersion, decode_manifest, encode_manifest, read_manifest
from lance_dataset.table.old_tables.completion import FragmentCompletion
from lance_dataset.table.operations import (
    Append,
    Delete,
    Overwrite,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
)
from lance_dataset.table.publish import WRITER_VERSION
from lance_dataset.table.transaction import Transaction
from lance_dataset.table.versions import latest_version, locate_version
from lance_dataset.types.schema import Field, Schema

FIXTURES = Path(__file__).parents[2] / "fixtures" / "table"
Change = Callable[[table_pb2.Manifest], object]


# -- what a manifest does not say ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fragments", "flags", "expected"),
    [
        ([], 0, "0.1"),
        ([], 4, "2.0"),
        ([stored((0, 0))], 0, "0.1"),
        ([stored((0, 1)), stored((0, 2), fragment_id=1)], 0, "0.1"),
        ([stored((0, 3))], 0, "2.0"),
        ([stored((0, 3)), stored((2, 0), fragment_id=1)], 4, "2.0"),
        ([stored((2, 2))], 0, "2.2"),
    ],
)
def test_storage_version_of_the_files(fragments: list[table_pb2.DataFragment], flags: int, expected: str) -> None:
    made = message(*fragments)
    made.writer_feature_flags = flags
    assert decoded(made).storage_version == expected


@pytest.mark.parametrize("other", [(2, 0), (2, 2)])
def test_files_must_agree_where_nothing_is_stated(other: tuple[int, int]) -> None:
    with pytest.raises(CorruptFileError, match="does not state a storage version"):
        decoded(message(stored((2, 1)), stored(other, fragment_id=1)))


def test_unsigned_counts_are_not_believed() -> None:
    made = stored((0, 0), rows=90)
    made.deletion_file.num_deleted_rows = 10
    signed = decoded(message(made))
    assert signed.num_rows == 80
    manifest = decoded(message(made, signed=False))
    assert manifest.num_rows is None
    assert manifest.fragments[0].physical_rows == 0
    assert manifest.fragments[0].num_deletions is None


def test_highest_fragment_id_of_the_list() -> None:
    manifest = decoded(message(stored((0, 0), fragment_id=4), stored((0, 0), fragment_id=2)))
    assert manifest.max_fragment_id is None
    after = next_manifest(manifest, Append((fragment(minor=0),)))
    assert [each.id for each in after.fragments] == [2, 4, 5]
    assert after.max_fragment_id == 5


def test_a_version_from_nothing_but_a_schema() -> None:
    """The smallest manifest can be read: no flags, fragments, time, writer, format or transaction."""
    manifest = decoded(message(signed=False))
    assert (manifest.storage_version, manifest.num_rows, manifest.timestamp_nanos) == ("0.1", 0, 0)
    after = next_manifest(manifest, Append((fragment(7, minor=0),)))
    assert (after.version, after.num_rows, after.storage_version) == (2, 7, "0.1")


# -- legacy files beside later ones ----------------------------------------------------------------------------------


def test_wrong_format_is_seen_and_repaired() -> None:
    """A table of 2.0 files that release 0.16 declared as 0.1 is recognized and repaired."""
    manifest = decoded(message(stored((0, 3)), stored((2, 0), fragment_id=1), data_format="0.1"))
    assert manifest.storage_version == "2.0"
    after = next_manifest(manifest, Append((replace(fragment(), files=(DataFile("x", (0,), (0,), 2, 0, 9),)),)))
    again = table_pb2.Manifest.FromString(encode_manifest(after)[4:-16])
    assert again.data_format.version == "2.0"
    assert after.reader_flags == 0


def mixture() -> Manifest:
    return decoded(message(stored((0, 2)), stored((2, 0), fragment_id=1), data_format="0.1"))


def test_mixture_is_readable() -> None:
    manifest = mixture()
    assert manifest.storage_version == "0.1"
    assert [file.storage_version for each in manifest.fragments for file in each.files] == ["0.1", "2.0"]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_mixture_in_a_later_table(version: str) -> None:
    made = message(stored((0, 2)), stored((2, 0), fragment_id=1), data_format=version)
    made.reader_feature_flags = made.writer_feature_flags = int(Feature.MIXED_FILE_VERSIONS)
    with pytest.raises(CorruptFileError, match=r"storage version 0\.1"):
        decoded(made)


def test_mixture_in_one_fragment() -> None:
    for versions in (((0, 2), (2, 0)), ((2, 0), (0, 0))):
        with pytest.raises(CorruptFileError, match=r"fragment 0: has files of storage version 0\.1 beside later ones"):
            decoded(message(stored(*versions), data_format="0.1"))


def test_changes_of_a_mixture() -> None:
    manifest = mixture()
    legacy, later = manifest.fragments
    for operation in (Append((fragment(minor=0),)), Append((fragment(),)), Delete((legacy,)), Delete((later,))):
        with pytest.raises((UnsupportedError, InvalidInputError), match=r"0\.1"):
            next_manifest(manifest, operation)
    assert next_manifest(manifest, Delete((), (0,))).storage_version == "2.0"
    assert next_manifest(manifest, Delete((), (1,))).storage_version == "0.1"
    for minor, version in ((0, "0.1"), (2, "2.2")):
        assert next_manifest(manifest, Overwrite(SCHEMA, (fragment(minor=minor),))).storage_version == version
    with pytest.raises(UnsupportedError, match="mixed by mistake"):
        next_manifest(manifest, Restore(1), restored=mixture())


# -- indices ---------------------------------------------------------------------------------------------------------


def indexed(writer: WriterVersion | None, *fields: Sequence[int]) -> Manifest:
    section = table_pb2.IndexSection()
    for ids in fields:
        index = section.indices.add(fields=ids, fragment_bitmap=b"\x3a\x30\0\0\0\0\0\0", name="i")
        index.uuid.uuid = bytes(16)
    made = first_manifest(Overwrite(SCHEMA, (fragment(),)), storage_version=None, stable_row_ids=False)
    return replace(made, index_section=section.SerializeToString(), writer_version=writer)


def bitmaps(manifest: Manifest) -> list[bytes]:
    assert manifest.index_section is not None
    return [index.fragment_bitmap for index in table_pb2.IndexSection.FromString(manifest.index_section).indices]


@pytest.mark.parametrize(
    ("writer", "kept"),
    [
        (None, False),
        (WriterVersion("lance", "0.8.14"), False),
        (WriterVersion("lance", "0.8.15"), True),
        (WriterVersion("lance", "0.10.0-beta.1"), True),
        (WriterVersion("other", "0.1.0"), True),
        (WRITER_VERSION, True),
    ],
)
def test_unreliable_coverage_is_not_signed_for(writer: WriterVersion | None, kept: bool) -> None:
    """A commit does not sign a manifest with unreliable index coverage: the reference would then trust the coverage."""
    manifest = indexed(writer, [0])
    plain = first_manifest(Overwrite(SCHEMA, (fragment(),)), storage_version=None, stable_row_ids=False)
    plain = replace(plain, writer_version=WRITER_VERSION)
    appended = next_manifest(manifest, Append((fragment(),)))
    for after in (
        appended,
        next_manifest(plain, Restore(1), restored=manifest),
        touched(appended if not kept else manifest),
    ):
        assert bitmaps(after) == bitmaps(manifest)
        assert (after.writer_version is None) is kept
        if after.writer_version is not None:
            assert (after.writer_version.library, after.writer_version.version) == ("lance", "0.8.14")
    assert next_manifest(manifest, Overwrite(SCHEMA, (fragment(),))).writer_version is None
    assert touched(plain).writer_version is None


def test_rewriting_what_an_index_covers() -> None:
    (only,) = indexed(WRITER_VERSION, [0]).fragments
    rewrite = Rewrite((RewriteGroup((only,), (fragment(),)),))
    elsewhere = indexed(WRITER_VERSION, [0])
    assert [each.id for each in next_manifest(elsewhere, rewrite).fragments] == [1]  # it covers nothing
    for writer in (None, WriterVersion("lance", "0.8.14")):
        with pytest.raises(UnsupportedError, match="index 'i'"):
            next_manifest(indexed(writer, [0]), rewrite)
    section = table_pb2.IndexSection.FromString(elsewhere.index_section or b"")
    section.indices[0].fragment_bitmap = b""
    with pytest.raises(UnsupportedError, match="index 'i'"):
        next_manifest(replace(elsewhere, index_section=section.SerializeToString()), rewrite)
    # An index that states its coverage no longer covers the rows: readers scan the fragment where they are now.
    section.indices[0].fragment_bitmap = bytes.fromhex("3a300000010000000000000010000000") + b"\0\0"
    after = next_manifest(replace(elsewhere, index_section=section.SerializeToString()), rewrite)
    assert after.index_section == section.SerializeToString()
    assert [each.id for each in after.fragments] == [1]


def test_empty_index_lists() -> None:
    made = message(stored((0, 0)), signed=False)
    made.index_section = 0
    manifest = decoded(made, struct.pack("<I", 0))
    assert manifest.index_section == b""
    after = next_manifest(manifest, Append((fragment(minor=0),)))
    assert after.index_section is None
    assert not table_pb2.Manifest.FromString(encode_manifest(after)[4:-16]).HasField("index_section")


# -- fields in several files -----------------------------------------------------------------------------------------


def columns(*ids: int) -> Schema:
    return Schema(tuple(Field(f"c{field_id}", field_id, "int64") for field_id in ids))


def files(*fields: Sequence[int], legacy: bool) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(f"{fields}-{position}", tuple(ids), () if legacy else tuple(range(len(ids))), *pair, 9)
        for position, ids in enumerate(fields)
        for pair in [(0, 2) if legacy else (2, 0)]
    )


def with_files(schema: Schema, *fragments: tuple[DataFile, ...]) -> Manifest:
    made = tuple(Fragment(position, each, physical_rows=4) for position, each in enumerate(fragments))
    storage_version = made[0].files[0].storage_version
    return Manifest(1, schema, made, storage_version, writer_version=WRITER_VERSION, max_fragment_id=len(made) - 1)


def touched(manifest: Manifest) -> Manifest:
    return next_manifest(manifest, Delete())


@pytest.mark.parametrize("legacy", [True, False])
def test_repeated_fields_get_new_ids(legacy: bool) -> None:
    """Repeated fields get new ids, as in `corrupt_schema` of release 0.10.5: the last file has the values."""
    manifest = with_files(columns(0, 2, 3), files([0], [1, 2], [3], [2, 3], legacy=legacy))
    after = touched(manifest)
    assert [node.id for node in after.schema.fields] == [0, 4, 5]
    assert after.schema.names == ["c0", "c2", "c3"]
    (only,) = after.fragments
    assert [file.fields for file in only.files] == [(0,), (4, 5)]
    assert only.files[1].path == manifest.fragments[0].files[3].path
    assert touched(after).schema == after.schema


def test_repeated_in_one_fragment_only() -> None:
    manifest = with_files(columns(0, 1), files([0, 1], legacy=False), files([0, 1], [1], legacy=False))
    after = touched(manifest)
    assert [node.id for node in after.schema.fields] == [0, 2]
    assert [[file.fields for file in each.files] for each in after.fragments] == [[(0, 2)], [(0, 1), (2,)]]


def test_legacy_files_that_would_lose_their_pages() -> None:
    """Repeated fields of a legacy file keep their ids, because its page table counts from the first field id."""
    manifest = with_files(columns(0, 1, 2), files([0, 1], [1, 2], legacy=True))
    after = touched(manifest)
    assert (after.schema, after.fragments) == (manifest.schema, manifest.fragments)
    moved = touched(with_files(columns(0, 1, 2), files([0, 1], [1, 2], legacy=False)))
    assert [file.fields for file in moved.fragments[0].files] == [(0, 1), (3, 2)]


def test_a_struct_may_be_in_two_files() -> None:
    struct_field = Field("s", 0, "struct", children=(Field("x", 1, "int64"), Field("y", 2, "int64")))
    manifest = with_files(Schema((struct_field,)), files([0, 1], [0, 2], legacy=False))
    assert touched(manifest).fragments == manifest.fragments
    both = touched(with_files(Schema((struct_field,)), files([0, 1, 2], [0, 2], legacy=False)))
    assert [file.fields for file in both.fragments[0].files] == [(0, 1, 2), (0, 3)]
    all_of_it = touched(with_files(Schema((struct_field,)), files([0, 1, 2], [0, 1, 2], legacy=False)))
    assert [file.fields for file in all_of_it.fragments[0].files] == [(3, 4, 5)]
    assert all_of_it.schema.fields[0].id == 3


def test_unused_and_hidden_fields_do_not_repeat() -> None:
    manifest = with_files(columns(0), files([0, -2, 7], [-2, 7, -3], legacy=False))
    assert touched(manifest).fragments == manifest.fragments


def test_indices_on_repeated_fields_go() -> None:
    section = table_pb2.IndexSection()
    for ids in ([1], [0]):
        section.indices.add(fields=ids).uuid.uuid = bytes(16)
    manifest = with_files(columns(0, 1), files([0, 1], [1], legacy=False))
    after = touched(replace(manifest, index_section=section.SerializeToString()))
    assert after.index_section is not None
    assert [list(index.fields) for index in table_pb2.IndexSection.FromString(after.index_section).indices] == [[0]]


# -- counts and sizes ------------------------------------------------------------------------------------------------


def old_table(
    store: MemoryStore, root: str, version: str, change: Callable[[Fragment], Fragment], *rows: int
) -> Manifest:
    """Write version 1 of a table with real files, in a manifest with few details of them."""
    fragments = []
    for count in rows:
        batch = pa.record_batch({"a": pa.array(range(count), pa.int64())})
        written, _ = write_fragment_files(store, root, SCHEMA, [batch], WriteOptions(version))
        fragments += written
    made = first_manifest(Overwrite(SCHEMA, tuple(fragments)), storage_version=version, stable_row_ids=False)
    made = replace(made, fragments=tuple(map(change, made.fragments)), writer_version=WriterVersion("lance", "0.9.0"))
    store.put(f"{root}/_versions/1.manifest", encode_manifest(made))
    return read_manifest(store, f"{root}/_versions/1.manifest")


def bare(each: Fragment) -> Fragment:
    return replace(each, physical_rows=0, files=tuple(replace(file, file_size_bytes=0) for file in each.files))


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_counts_and_sizes_are_filled_in(version: str) -> None:
    store, root = MemoryStore(), "/t"
    manifest = old_table(store, root, version, bare, 10, 4)
    assert manifest.num_rows is None
    after = commit_transaction(store, root, Transaction(1, Delete()))
    assert after.num_rows == 14
    assert [each.physical_rows for each in after.fragments] == [10, 4]
    for each in after.fragments:
        assert each.files[0].file_size_bytes == len(store.read(f"{root}/data/{each.files[0].path}"))
    assert read_manifest(store, locate_version(store, root, 2)) == after


def test_known_counts_are_not_looked_up() -> None:
    store, root = MemoryStore(), "/t"
    manifest = old_table(store, root, "2.0", lambda each: each, 10)
    store.delete_tree(f"{root}/data")
    assert next_manifest(manifest, Delete(), complete=FragmentCompletion(store, root)).num_rows == 10


def test_files_that_are_not_there() -> None:
    """Opening does not need the files; a commit that has to read them raises an error if they are missing."""
    store, root = MemoryStore(), "/t"
    manifest = old_table(store, root, "2.0", bare, 10)
    store.delete_tree(f"{root}/data")
    with pytest.raises(MissingFileError):
        commit_transaction(store, root, Transaction(1, Delete()), read_manifest=manifest)
    assert latest_version(store, root).version == 1
    assert commit_transaction(store, root, Transaction(1, Overwrite(SCHEMA, (fragment(),)))).num_rows == 10


def test_empty_and_fully_deleted_fragments_go() -> None:
    from lance_dataset.table.deletions import write_deletions

    store, root = MemoryStore(), "/t"
    manifest = old_table(store, root, "2.0", bare, 3, 4)
    gone = replace(write_deletions(store, root, 0, 1, [0, 1, 2]), num_deleted_rows=0)
    some = replace(write_deletions(store, root, 1, 1, [2]), num_deleted_rows=0)
    first, second = manifest.fragments
    old = replace(
        manifest, fragments=(replace(first, deletion_file=gone), replace(second, deletion_file=some)), reader_flags=1
    )
    after = next_manifest(old, Delete(), complete=FragmentCompletion(store, root))
    assert [(each.id, each.physical_rows, each.num_deletions) for each in after.fragments] == [(1, 4, 1)]
    assert after.max_fragment_id == 1


def test_a_fragment_without_files_or_rows() -> None:
    store = MemoryStore()
    manifest = decoded(message(table_pb2.DataFragment(id=3)))
    with pytest.raises(CorruptFileError, match="fragment 3"):
        next_manifest(manifest, Delete(), complete=FragmentCompletion(store, "/t"))


# -- rewriting -------------------------------------------------------------------------------------------------------


def test_rewrite_and_reserve() -> None:
    base = first_manifest(
        Overwrite(SCHEMA, (fragment(3), fragment(4), fragment(5))), storage_version=None, stable_row_ids=False
    )
    first, second, third = base.fragments
    reserved = next_manifest(base, ReserveFragments(2))
    assert (reserved.max_fragment_id, reserved.fragments) == (4, base.fragments)
    rewrite = Rewrite((RewriteGroup((first, third), (fragment(8, fragment_id=4),)),))
    after = next_manifest(reserved, rewrite)
    assert [(each.id, each.physical_rows) for each in after.fragments] == [(1, 4), (4, 8)]
    assert next_manifest(base, Rewrite((RewriteGroup((second,), (fragment(2), fragment(2))),))).max_fragment_id == 4
    with pytest.raises(InvalidInputError, match="not part of version"):
        next_manifest(after, rewrite)
    with pytest.raises(InvalidInputError, match="used twice"):
        next_manifest(base, Rewrite((RewriteGroup((second,), (fragment(4, fragment_id=2),)),)))
    stable = replace(base, fragments=tuple(replace(each, row_ids=b"") for each in base.fragments), reader_flags=2)
    with pytest.raises(InvalidInputError, match="row ids"):
        next_manifest(stable, rewrite)
    with pytest.raises(InvalidInputError, match=r"0\.1"):
        next_manifest(base, Rewrite((RewriteGroup((first, second, third), (fragment(12, minor=0),)),)))


def test_rewrites_of_the_oldest_releases() -> None:
    """Rewrites of the oldest releases, with one pair of fragment lists, are read."""
    made = transaction_pb2.Transaction(read_version=3, uuid="x")
    made.rewrite.old_fragments.append(stored((0, 0)))
    made.rewrite.new_fragments.append(stored((0, 0), fragment_id=5))
    operation = Transaction.decode(made.SerializeToString(), "t").operation
    assert isinstance(operation, Rewrite)
    assert operation.old_ids == {0}
    assert [each.id for group in operation.groups for each in group.new_fragments] == [5]
    encoded = Transaction(3, operation).encode()
    assert Transaction.decode(encoded, "t").operation == operation


# -- hostile manifests -----------------------------------------------------------------------------------------------


def test_negative_ids_of_legacy_files_are_ignored() -> None:
    made = message(stored((0, 2)))
    made.fragments[0].files[0].fields[:] = [0, -2, 3, -1, 9]
    assert decoded(made).fragments[0].files[0].fields == (0, -2, 3, -1, 9)
    for wrong in ([0, 0], [3, 1]):
        made.fragments[0].files[0].fields[:] = wrong
        with pytest.raises(CorruptFileError, match="not ascending"):
            list(decoded(made).fragments)


def _samples() -> list[bytes]:
    names = [
        "pylance-0.4.21-default/dict.lance/_versions/1.manifest",
        "pylance-0.5.10-default/ds.lance/_versions/4.manifest",
        "pylance-0.7.5-default/dict.lance/_versions/2.manifest",
        "pylance-0.15.0-v2/ds.lance/_versions/4.manifest",
    ]
    return [*((FIXTURES / name).read_bytes() for name in names), encode_manifest(mixture()), with_dictionary(TWO, 2, 2)]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_manifests_only_raise_our_errors(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(_samples())))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        manifest = decode_manifest(bytes(content), "m")
        operation = data.draw(st.sampled_from([Append((fragment(minor=0),)), Delete((), (0,)), Restore(1)]))
        after = next_manifest(manifest, operation, restored=manifest)
        decode_manifest(encode_manifest(replace(after, writer_version=WRITER_VERSION)), "m")
    except LanceError:
        pass


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_files_only_raise_our_errors(data: st.DataObject) -> None:
    """Random versions, field ids and columns are read and committed, or raise errors of this package."""
    ids = st.lists(st.integers(-6, 6), max_size=4)
    pairs = st.sampled_from([(0, 0), (0, 2), (0, 3), (2, 0), (2, 2), (7, 7)])
    made = message(data_format=data.draw(st.sampled_from([None, "0.1", "2.0", "2.2"])), signed=data.draw(st.booleans()))
    made.fields.append(file_pb2.Field(name="b", id=1, parent_id=-1, logical_type="string"))
    for fragment_id in range(data.draw(st.integers(0, 3))):
        each = made.fragments.add(id=fragment_id, physical_rows=data.draw(st.integers(0, 3)))
        for number in range(data.draw(st.integers(0, 3))):
            file = each.files.add(path=f"{fragment_id}-{number}", fields=data.draw(ids), file_size_bytes=1)
            file.file_major_version, file.file_minor_version = data.draw(pairs)
            if data.draw(st.booleans()):
                file.column_indices.extend(range(len(file.fields)))
    try:
        manifest = decoded(made)
        after = next_manifest(manifest, Delete())
        again = decode_manifest(encode_manifest(replace(after, writer_version=WRITER_VERSION)), "m")
    except LanceError:
        return
    assert (again.schema, again.fragments, again.storage_version) == (
        after.schema,
        after.fragments,
        after.storage_version,
    )
