"""Tests that schemas of `Merge` and `Project` that give field ids another meaning are refused before a commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import LanceOperation
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.table.apply import first_manifest, next_manifest
from lance_dataset.table.apply.columns import with_replaced_columns
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import Merge, Operation, Overwrite, Project
from lance_dataset.types.schema import Field, Schema

A, B = Field("a", 0, "int64"), Field("b", 1, "int64")
X, Y = Field("x", 3, "int64"), Field("y", 4, "string")
S = Field("s", 2, "struct", children=(X, Y))
L = Field("l", 5, "list", children=(Field("item", 6, "int64"),))
SCHEMA = Schema((A, B, S, L))
STORED = (0, 1, 2, 3, 4, 5, 6)


def fragment(fragment_id: int = 0, *names: str, fields: tuple[int, ...] = STORED) -> Fragment:
    files = [DataFile(f"f{fragment_id}", STORED, tuple(range(len(STORED))), 2, 0, 99)]
    files += [DataFile(f"{name}{fragment_id}", fields, tuple(range(len(fields))), 2, 0, 99) for name in names]
    return Fragment(fragment_id, tuple(files), physical_rows=3)


def table(schema: Schema = SCHEMA, fragments: int = 2) -> Manifest:
    listed = tuple(fragment() for _ in range(fragments))
    return first_manifest(Overwrite(schema, listed), storage_version=None, stable_row_ids=False)


def schema(*fields: Field) -> Schema:
    return Schema(fields)


def struct(*children: Field) -> Field:
    return replace(S, children=children)


SAME_MEANING: dict[str, tuple[Schema, str]] = {
    "leaf becomes a struct": (
        schema(Field("s", 0, "struct", children=(Field("x", 1, "int64"),))),
        r"field id 0 .*'a' \(int64\).*'s' \(struct\)",
    ),
    "struct becomes a leaf": (schema(A, B, Field("s", 2, "int64")), r"field id 2 .*'s' \(struct\).*'s' \(int64\)"),
    "other width": (schema(replace(A, logical_type="int32"), B), r"field id 0 .*\(int64\).*\(int32\)"),
    "other type below": (schema(A, B, struct(X, replace(Y, logical_type="binary"))), r"field id 4 .*'s\.y' \(string\)"),
    "other list": (schema(A, B, S, replace(L, logical_type="large_list")), r"field id 5 .*\(list\).*\(large_list\)"),
    "child moved out": (schema(A, B, struct(X), Y), r"field id 4 .*'s\.y'.*'y'.*another parent"),
    "column moved in": (schema(A, struct(X, Y, B)), r"field id 1 .*'b'.*'s\.b'.*another parent"),
}


@pytest.mark.parametrize("kind", ["merge", "project"])
@pytest.mark.parametrize("case", SAME_MEANING)
def test_field_ids_keep_type_and_parent(kind: str, case: str) -> None:
    base = table()
    changed, message = SAME_MEANING[case]
    operation: Operation = Project(changed) if kind == "project" else Merge(tuple(base.fragments), changed)
    with pytest.raises(InvalidInputError, match=message):
        next_manifest(base, operation)


def test_names_in_a_merge_stay() -> None:
    base = table()
    for changed, old, new in ((schema(replace(A, name="z"), B, S), "a", "z"), (schema(replace(B, id=0)), "a", "b")):
        with pytest.raises(InvalidInputError, match=rf"Merge.*field id 0 .*'{old}'.*'{new}'.*lance_schema"):
            next_manifest(base, Merge(tuple(base.fragments), changed))


def test_a_projection_renames_but_not_to_other_fields() -> None:
    base = table()
    renamed = schema(replace(A, name="z"), B, struct(replace(X, name="xx"), replace(Y, name="a")))
    assert next_manifest(base, Project(renamed)).schema == renamed
    for changed, ids in (
        (schema(replace(B, id=0)), "0 .*'a'.*'b'.*field id 1"),
        (schema(replace(B, id=0), replace(A, id=1)), "0 .*'a'.*'b'.*field id 1"),
        (schema(A, struct(replace(X, name="y"))), r"3 .*'s\.x'.*'s\.y'.*field id 4"),
    ):
        with pytest.raises(InvalidInputError, match=f"field id {ids}.*lance_schema.*two commits"):
            next_manifest(base, Project(changed))


def test_a_projection_adds_only_columns_of_nulls() -> None:
    base = table()
    new = Field("n", 7, "int64")
    below = Field("m", 8, "struct", children=(Field("k", 9, "int64", nullable=False),))
    for added in (schema(A, new), schema(A, struct(X, Y, new)), schema(A, below)):
        assert next_manifest(base, Project(added)).schema == added
    required = replace(new, nullable=False)
    for added in (schema(A, required), schema(A, struct(X, required))):
        with pytest.raises(InvalidInputError, match=r"field id 7, .*n' \(int64\).*nullable"):
            next_manifest(base, Project(added))
    empty = table(fragments=0)
    assert next_manifest(empty, Project(schema(A, required))).schema == schema(A, required)
    dropped = next_manifest(base, Project(schema(A)))
    for added in (schema(A, replace(new, id=1)), SCHEMA):
        with pytest.raises(InvalidInputError, match=r"field id 1 .*dropped.*ids from 7 on"):
            next_manifest(dropped, Project(added))


def test_new_columns_of_a_merge_have_new_ids() -> None:
    dropped = next_manifest(table(), Project(schema(A, S, L)))
    reused = schema(A, S, L, Field("n", 1, "string"))
    with pytest.raises(InvalidInputError, match=r"field id 1 .*'n' \(string\).*dropped.*ids from 7 on"):
        next_manifest(dropped, Merge(tuple(dropped.fragments), reused))
    rewritten = tuple(replace(each, files=fragment(each.id, "g").files[1:]) for each in dropped.fragments)
    assert next_manifest(dropped, Merge(rewritten, reused)).schema == reused
    wider = schema(A, S, L, Field("n", 7, "string"))
    assert next_manifest(dropped, Merge(tuple(dropped.fragments), wider)).schema == wider


def test_a_type_may_change_where_all_files_do() -> None:
    base = table()
    changed = schema(replace(A, logical_type="int32"), B)
    rewritten = tuple(replace(each, files=fragment(each.id, "g").files[1:]) for each in base.fragments)
    assert next_manifest(base, Merge(rewritten, changed)).schema == changed
    with pytest.raises(InvalidInputError, match="field id 0"):
        next_manifest(base, Merge((rewritten[0], base.fragments[1]), changed))


def test_spellings_of_one_type_are_no_change() -> None:
    item = Field("item", 1, "struct", children=(Field("k", 2, "int64"),))
    base = table(schema(Field("l", 0, "list.struct", children=(item,))))
    plain = schema(Field("l", 0, "list", nullable=False, children=(item,)))
    assert next_manifest(base, Project(plain)).schema == plain


NUMBERS, NESTED = pa.field("a", pa.int64()), pa.field("s", pa.struct([("x", pa.int64())]))
TABLE = pa.table({"a": [1, 2], "b": [3, 4], "s": [{"x": 5}, {"x": 6}]})
PLAIN = {
    "project to the struct": (False, pa.schema([NESTED])),
    "project to the second": (False, pa.schema([TABLE.schema.field("b")])),
    "project to another type": (False, pa.schema([pa.field("a", pa.string())])),
    "merge in another order": (True, pa.schema([TABLE.schema.field("b"), pa.field("new", pa.int64()), NUMBERS])),
    "merge to another type": (True, pa.schema([pa.field("a", pa.int32()), *list(TABLE.schema)[1:]])),
}


@pytest.mark.parametrize("case", PLAIN)
def test_nothing_is_committed(tmp_path: Path, case: str) -> None:
    merged, wanted = PLAIN[case]
    uri = str(tmp_path / "t")
    dataset = lance_dataset.write_dataset(TABLE, uri)
    fragments = [each.metadata for each in dataset.get_fragments()]
    operation = LanceOperation.Merge(fragments, wanted) if merged else LanceOperation.Project(wanted)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="field id 0"):
        lance_dataset.LanceDataset.commit(uri, operation, read_version=1)
    after = lance.dataset(uri)
    assert after.version == 1
    assert after.to_table() == TABLE


def test_names_move_where_the_ids_are_sure() -> None:
    """Names may move if the ids are certain, as in `alter_columns`; types and places are still checked.

    No transaction states that the ids are certain.
    """
    base = table()
    swapped = schema(replace(B, id=0), replace(A, id=1), struct(replace(X, name="y"), replace(Y, name="x")), L)
    assert next_manifest(base, Project(swapped, moves_names=True)).schema == swapped
    rewritten = tuple(replace(each, files=fragment(each.id, "g", fields=(7,)).files) for each in base.fragments)
    cast = schema(replace(A, id=7, name="b", logical_type="int32"), replace(B, name="a"), S, L)
    assert next_manifest(base, Merge(rewritten, cast, moves_names=True)).schema == cast
    with pytest.raises(InvalidInputError, match="field id 1"):
        next_manifest(base, Merge(rewritten, cast))
    moved = schema(A, B, struct(X), Y)
    for operation in (Project(moved, moves_names=True), Merge(tuple(base.fragments), moved, moves_names=True)):
        with pytest.raises(InvalidInputError, match="another parent"):
            next_manifest(base, operation)
    assert Project(swapped, moves_names=True) == Project(swapped)


def test_the_first_column_of_a_legacy_file_stays() -> None:
    """The first column of a legacy file cannot be replaced on its own.

    Readers count the columns from it, so a tombstone in its place would change the meaning of all of them.
    """
    old = DataFile("old", (0, 1, 2), (), 0, 2, 99)
    for ids, kept in (((1,), (0, -2, 2)), ((2,), (0, 1, -2)), ((0, 1, 2), None)):
        new = DataFile("new", ids, (), 0, 2, 99)
        assert [file.fields for file in with_replaced_columns((old,), new)] == [*([kept] if kept else []), ids]
    with pytest.raises(UnsupportedError, match="first column"):
        with_replaced_columns((old,), DataFile("new", (0, 1), (), 0, 2, 99))
