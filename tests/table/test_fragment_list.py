"""Tests of fragment lists kept as bytes, compared with lists of objects."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.files.tagged_records import Fixed, Record, encoded, field

from lance_dataset.errors import CorruptFileError, InvalidInputError, LanceError
from lance_dataset.table.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, Spilled
from lance_dataset.table.fragment_list import FragmentList, edited

files = st.builds(
    DataFile,
    st.text(min_size=1, max_size=40),
    st.lists(st.integers(-5, 2**31 - 1), max_size=4).map(tuple),
    st.lists(st.integers(-1, 300), max_size=4).map(tuple),
    st.just(2),
    st.integers(0, 3),
    st.integers(0, 2**40),
    st.none() | st.integers(0, 9),
)
deletions = st.builds(
    DeletionFile,
    st.sampled_from(DeletionFileType),
    st.integers(0, 2**63),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**40),
    st.none() | st.integers(0, 9),
)
lineage = st.none() | st.binary(max_size=5) | st.just(Spilled.COLUMN)
fragments = st.builds(
    Fragment,
    id=st.integers(0, 2**32 - 1),
    files=st.lists(files, max_size=3).map(tuple),
    deletion_file=st.none() | deletions,
    physical_rows=st.integers(0, 2**40),
    row_ids=lineage,
    last_updated_at_versions=lineage,
    created_at_versions=lineage,
)
lists = st.lists(fragments, max_size=8, unique_by=lambda each: each.id)


def fresh(made: FragmentList) -> FragmentList:
    """Return the same list, decoded from its bytes."""
    return FragmentList(made.data, "here")


@given(lists)
def test_columns(given_: list[Fragment]) -> None:
    made = fresh(FragmentList.of(given_))
    columns = made.columns
    all_files = [(position, file) for position, each in enumerate(given_) for file in each.files]
    assert columns.ids.tolist() == [each.id for each in given_]
    assert columns.num_rows.tolist() == [-1 if each.num_rows is None else each.num_rows for each in given_]
    assert columns.has_deletions.tolist() == [each.deletion_file is not None for each in given_]
    assert columns.has_row_ids.tolist() == [each.row_ids is not None for each in given_]
    assert columns.num_files.tolist() == [len(each.files) for each in given_]
    assert columns.file_owners.tolist() == [position for position, _ in all_files]
    assert columns.file_sizes.tolist() == [file.file_size_bytes for _, file in all_files]
    assert columns.file_max_field_ids.tolist() == [max(file.fields, default=-1) for _, file in all_files]
    assert columns.file_fields.tolist() == [len(file.fields) for _, file in all_files]
    assert columns.file_column_indices.tolist() == [len(file.column_indices) for _, file in all_files]
    assert columns.storage_versions == {file.storage_version for _, file in all_files}
    spilled = [Spilled.COLUMN in (x.row_ids, x.created_at_versions, x.last_updated_at_versions) for x in given_]
    assert columns.has_spilled_lineage.tolist() == spilled
    assert made.file_paths() == [file.path.encode() for _, file in all_files]


@given(lists, st.data())
def test_as_a_sequence(given_: list[Fragment], data: st.DataObject) -> None:
    made = fresh(FragmentList.of(given_))
    assert len(made) == len(given_)
    assert made[1:] == tuple(given_[1:])
    assert made == given_
    assert fresh(made) == FragmentList.of(given_)
    if given_:
        position = data.draw(st.integers(-len(given_), len(given_) - 1))
        assert made[position] == given_[position]
        assert made.find(given_[position].id) == given_[position]
        assert made != [*given_[:-1], replace(given_[-1], physical_rows=given_[-1].physical_rows + 1)]
    with pytest.raises(IndexError):
        made[len(given_)]


@given(lists, st.data())
def test_edited(given_: list[Fragment], data: st.DataObject) -> None:
    """Successive edits of decoded and of constructed lists give the same as lists of objects."""
    made, model = FragmentList.of(given_), list(given_)
    for _ in range(3):
        if data.draw(st.booleans()):
            made = fresh(made)
        ids = [each.id for each in model]
        some_ids = st.sets(st.sampled_from(ids)) if ids else st.just(set())
        removed = data.draw(some_ids) | data.draw(st.sets(st.integers(0, 5)))
        updated = {i: replace(data.draw(fragments), id=i) for i in data.draw(some_ids) | {2**33}}
        taken = {*ids}
        added = [each for each in data.draw(lists) if each.id not in taken]
        made = edited(made, removed=removed, updated=updated, added=added)
        model = [updated.get(each.id, each) for each in model if each.id not in removed] + added
        assert made == model
        assert fresh(made) == model
        assert made.ids.tolist() == [each.id for each in model]
    assert list(made.ordered()) == sorted(model, key=lambda each: each.id)
    assert list(fresh(made).ordered()) == sorted(model, key=lambda each: each.id)


@given(lists, st.data())
def test_picked(given_: list[Fragment], data: st.DataObject) -> None:
    made = FragmentList.of(given_)
    if data.draw(st.booleans()):
        made = fresh(made)
    positions = data.draw(st.lists(st.integers(0, max(len(given_) - 1, 0)), max_size=9, unique=True)) if given_ else []
    picked = made.picked(np.array(positions, np.int64))
    assert picked == [given_[position] for position in positions]


def test_fragments_are_checked_when_looked_at() -> None:
    seen: list[int] = []
    made = fresh(FragmentList.of(Fragment(i, ()) for i in range(5))).checked_by(lambda each: seen.append(each.id))
    assert made.columns.ids.tolist() == [0, 1, 2, 3, 4]
    assert seen == []
    assert made[3].id == made[3].id == 3
    assert seen == [3]
    kept = edited(made, removed={3}, updated={0: Fragment(0, ())}, added=[Fragment(9, ())])
    assert [each.id for each in kept] == [0, 1, 2, 4, 9]
    assert seen == [3, 1, 2, 4]


@pytest.mark.parametrize("data", [b"\x12\x05", b"\x12\x02\x08", b"\x12\x04\x12\x09ab", b"\xff"])
def test_damaged(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="here"):
        _ = list(FragmentList(data, "here")) and FragmentList(data, "here").columns


# -- what other writers, or hostile ones, may store --------------------------------------------------------------

odd_numbers = st.integers(0, 9) | st.sampled_from([2**31, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1, -1])
odd_values = odd_numbers | st.sampled_from([Fixed(b"12345678"), Fixed(b"abcd"), b""])
many_numbers = st.lists(odd_numbers, max_size=4).map(tuple)
odd_files = st.lists(
    st.tuples(st.integers(1, 8), odd_values | many_numbers) | st.tuples(st.just(1), st.sampled_from([b"a", b"b/c"])),
    max_size=8,
)
odd_deletions = st.lists(st.tuples(st.integers(1, 7), odd_values | many_numbers), max_size=6)
odd_fragments = st.lists(
    st.tuples(st.integers(1, 17), odd_values)
    | st.tuples(st.just(2), odd_files)
    | st.tuples(st.just(3), odd_deletions)
    | st.tuples(st.sampled_from([5, 7, 9, 12, 13, 14]), st.just(b"")),
    max_size=10,
)


def as_int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


@given(st.lists(odd_fragments, max_size=3))
def test_columns_say_what_objects_say(rows: list[Record]) -> None:
    """Repeated messages, too long numbers and fields of wrong kinds are read like protobuf does."""
    made = FragmentList(encoded([(2, row) for row in rows]), "here")
    try:
        objects = list(made)
    except LanceError:
        assume(False)
    columns = made.columns
    of_deletions = [each.deletion_file for each in objects]
    assert columns.ids.tolist() == [as_int64(each.id) for each in objects]
    assert columns.physical_rows.tolist() == [as_int64(each.physical_rows) for each in objects]
    assert columns.has_deletions.tolist() == [file is not None for file in of_deletions]
    assert columns.num_deleted_rows.tolist() == [
        as_int64(file.num_deleted_rows) if file else 0 for file in of_deletions
    ]
    assert columns.deletion_types.tolist() == [int(file.file_type) if file else 0 for file in of_deletions]
    bases = [file.base_id if file is not None else None for file in of_deletions]
    assert columns.deletion_base_ids.tolist() == [-1 if base is None else base for base in bases]
    assert columns.has_row_ids.tolist() == [each.row_ids is not None for each in objects]
    assert columns.has_overlays.tolist() == [bool(each.overlays) for each in objects]
    has_clustering = [each.clustering_id is not None for each in objects]
    assert columns.has_clustering.tolist() == has_clustering
    all_files = [(position, file) for position, each in enumerate(objects) for file in each.files]
    assert columns.num_files.tolist() == [len(each.files) for each in objects]
    assert columns.file_owners.tolist() == [position for position, _ in all_files]
    numbers = [(file.file_major_version, file.file_minor_version) for _, file in all_files]
    assert [(code >> 32 & 0xFFFFFFFF, code & 0xFFFFFFFF) for code in columns.file_versions.tolist()] == numbers
    assert columns.file_sizes.tolist() == [as_int64(file.file_size_bytes) for _, file in all_files]
    assert columns.file_base_ids.tolist() == [-1 if file.base_id is None else file.base_id for _, file in all_files]
    assert columns.file_max_field_ids.tolist() == [max(file.fields, default=-1) for _, file in all_files]
    assert columns.file_fields.tolist() == [len(file.fields) for _, file in all_files]
    assert columns.file_column_indices.tolist() == [len(file.column_indices) for _, file in all_files]
    assert made.file_paths() == [file.path.encode() for _, file in all_files]


few_ids = st.lists(st.tuples(st.integers(-3, 4), st.integers(-1, 2)), max_size=4)


@given(st.lists(st.lists(few_ids, max_size=3), max_size=6), st.booleans())
def test_shared_fields(rows: list[list[list[tuple[int, int]]]], with_columns: bool) -> None:
    """Fragments in which several files have one field are found."""
    expected = []
    objects = []
    for position, row in enumerate(rows):
        held = [
            {number for number, column in file if number >= 0 and (column >= 0 or not with_columns)} for file in row
        ]
        if sum(map(len, held)) > len(set().union(*held)):
            expected.append(position)
        columns = [tuple(column for _, column in file) if with_columns else () for file in row]
        ids = [tuple(number for number, _ in file) for file in row]
        files_ = (DataFile("a", *pair, 2, 0) for pair in zip(ids, columns, strict=True))
        objects.append(Fragment(position, tuple(files_)))
    assert fresh(FragmentList.of(objects)).with_shared_fields().tolist() == expected


def test_ids_that_no_fragment_can_have() -> None:
    made = FragmentList.of([Fragment(1, ())])
    assert made.edited({2**63, 2**70, -1}, {2**70: Fragment(3, ())}, ()) == [Fragment(1, ())]
    assert made.edited({2**70, 1}, {}, ()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        Fragment(2**64, ()),
        Fragment(-1, ()),
        Fragment(3, (), physical_rows=2**64),
        Fragment(3, (DataFile("a", (2**40,), (0,), 2, 0),)),
        Fragment(3, (DataFile("a\ud800", (0,), (0,), 2, 0),)),
        Fragment(3, (), DeletionFile(DeletionFileType.BITMAP, 1, 2, base_id=-4)),
        Fragment(3, (), overlays=(b"\xff",)),
    ],
    ids=lambda each: repr(each)[:60],
)
def test_what_cannot_be_stored(wrong: Fragment) -> None:
    with pytest.raises(InvalidInputError, match=f"fragment {wrong.id}"):
        FragmentList.of([wrong])
    with pytest.raises(InvalidInputError, match=f"fragment {wrong.id}"):
        edited((), added=[wrong])


def _refused(fragment: Fragment, number: int) -> None:
    if fragment.id == number:
        raise CorruptFileError(f"fragment {number}")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_copies_are_checked_too(copied: object) -> None:
    made = fresh(FragmentList.of(Fragment(i, ()) for i in range(5))).checked_by(partial(_refused, number=3))
    _ = made.columns, made[1], made.find(2)
    again = copied(made)  # type: ignore[operator]
    assert again[:3] == made[:3]
    assert again.ids.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(CorruptFileError):
        again[3]


def test_pickled_without_what_can_be_found_out_again() -> None:
    made = FragmentList.of(Fragment(i, ()) for i in range(100))
    _ = made.columns, made.find(7)
    assert len(pickle.dumps(made)) < len(made.data) + 500


def test_a_check_may_look_at_other_fragments() -> None:
    made = fresh(FragmentList.of(Fragment(i, ()) for i in range(5)))
    _ = made[0]
    checked = made.checked_by(lambda each: made[(each.id + 1) % 5] and None)
    assert list(checked) == list(made)


def test_looked_at_by_several_threads() -> None:
    made = fresh(FragmentList.of(Fragment(i, ()) for i in range(3000)))
    errors: list[BaseException] = []

    def change() -> None:
        try:
            for position in range(0, 3000, 60):
                edited(made, removed={position}, updated={position + 1: Fragment(position + 1, ())})
                made.checked_by(lambda each: None)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        changing = threading.Thread(target=change)
        changing.start()
        _ = list(made)
        changing.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_paths_of_files_that_repeat_or_lack_theirs() -> None:
    files_ = [(2, [(1, b"first"), (1, b"second")]), (2, [(4, 2)]), (2, [(1, b"third")])]
    made = FragmentList(field(2, [(1, 7), *files_]), "here")
    assert made.file_paths() == [b"second", b"", b"third"]
