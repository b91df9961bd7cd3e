"""Tests of verdicts for pairs of operations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.conflicts.cases import ARROW, cases, masked, new_fragment, with_new_column
from support.conflicts.verdicts import expected

from lance_dataset.errors import CommitConflictError
from lance_dataset.table.conflicts import Verdict, check_columns_kept, check_conflict, find_verdict, touched_fragments
from lance_dataset.table.conflicts.matrix import CONDITIONS, MATRIX
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.manifest import Manifest
from lance_dataset.table.operations import (
    Append,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Operation,
    Rewrite,
    RewriteGroup,
    Unknown,
    Update,
    UpdateMode,
)
from lance_dataset.table.roaring import encode_bitmap
from lance_dataset.table.transaction import Transaction
from lance_dataset.types.schema import Field, Schema

BASE = Manifest(1, Schema.from_arrow(ARROW), tuple(replace(new_fragment(), id=number) for number in range(4)))
CASES = cases(BASE)
EXPECTED = expected()
LETTERS = {".": Verdict.COMPATIBLE, "d": Verdict.REBASE, "R": Verdict.RETRYABLE, "X": Verdict.INCOMPATIBLE}


def test_every_pair_has_an_expectation() -> None:
    assert {name for name, _ in EXPECTED} == CASES.keys() - {"unknown"}
    assert {name for _, name in EXPECTED} == CASES.keys()
    kinds = {operation.name for operation in CASES.values()} - {"Unknown"}
    assert kinds == MATRIX.keys()
    assert all(row.keys() == kinds for row in MATRIX.values())
    used = {entry for row in MATRIX.values() for cell in row.values() for entry in cell}
    assert used - set(Verdict) == set(CONDITIONS.values())


@pytest.mark.parametrize("ours", [name for name in CASES if name != "unknown"])
def test_pairs(ours: str) -> None:
    for theirs, operation in CASES.items():
        verdict = LETTERS[EXPECTED[ours, theirs]]
        assert find_verdict(CASES[ours], operation) is verdict, theirs
        pair = (Transaction(1, CASES[ours]), Transaction(1, operation), 7)
        if verdict <= Verdict.REBASE:
            common = touched_fragments(CASES[ours]) & touched_fragments(operation)
            assert check_conflict(*pair) == (common if verdict is Verdict.REBASE else frozenset())
            continue
        with pytest.raises(CommitConflictError, match=f"{CASES[ours].name} .*{operation.name} at version 7") as caught:
            check_conflict(*pair)
        assert caught.value.retryable is (verdict is Verdict.RETRYABLE)
        assert ("retry" in str(caught.value)) or "Retrying does not help" in str(caught.value)


def test_nobody_knows_what_an_unknown_operation_did() -> None:
    assert all(find_verdict(operation, Unknown()) is Verdict.INCOMPATIBLE for operation in CASES.values())


# -- rows that are known --------------------------------------------------------------------------------------------

F0, F1 = BASE.fragments[:2]
ROWS = {0: np.array([5], np.uint32)}
UPDATE_ROWS = Update((), (masked(F0),), (new_fragment(),))
UPDATE_COLUMNS = Update((), (with_new_column(F0, 1),), (), (1,), mode=UpdateMode.REWRITE_COLUMNS)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Delete((masked(F0),)), Delete((masked(F0),)), "d"),
        (Delete((masked(F0),)), UPDATE_ROWS, "d"),
        (UPDATE_ROWS, Delete((masked(F0),)), "d"),
        (UPDATE_ROWS, UPDATE_ROWS, "d"),
        (Delete((masked(F0),)), Delete((masked(F1),)), "."),
        (Delete((masked(F0),)), Delete((), (0,)), "R"),
        (Delete((), (0,)), Delete((masked(F0),)), "R"),
        (Delete((), (0,)), Delete((), (0,)), "R"),
        (Delete((masked(F0),)), UPDATE_COLUMNS, "R"),
        (UPDATE_COLUMNS, Delete((masked(F0),)), "R"),
        (Delete((masked(F0), masked(F1))), Delete((masked(F0),), (1,)), "R"),
        (UPDATE_ROWS, CASES["overlay a of 0"], "."),
        (replace(UPDATE_ROWS, removed_fragment_ids=(0,), updated_fragments=()), CASES["overlay a of 0"], "R"),
        (UPDATE_ROWS, CASES["insert keys 1 2"], "."),
    ],
)
def test_known_rows(ours: Operation, theirs: Operation, verdict: str) -> None:
    assert find_verdict(ours, theirs, ROWS) is LETTERS[verdict]


def test_overlays_of_the_rows_that_move() -> None:
    for row, verdict in ((1, "R"), (2, "R"), (3, ".")):
        rows = {0: np.array([row], np.uint32)}
        assert find_verdict(UPDATE_ROWS, CASES["overlay a of 0"], rows) is LETTERS[verdict]


def test_rewrites_with_a_reuse_index() -> None:
    reuse = IndexMetadata("00000000-0000-0000-0000-000000000099", "__lance_frag_reuse")
    both = Rewrite((RewriteGroup((F0, F1), (new_fragment(),)),), reuse_index=reuse)

    def covering(*ids: int) -> CreateIndex:
        bitmap = encode_bitmap(list(ids))
        return CreateIndex((IndexMetadata("00000000-0000-0000-0000-000000000098", "i", (1,), 1, bitmap),))

    assert find_verdict(both, covering(0, 1)) is Verdict.COMPATIBLE
    assert find_verdict(both, covering(2)) is Verdict.COMPATIBLE
    assert find_verdict(both, covering(1, 2)) is Verdict.RETRYABLE
    assert find_verdict(replace(both, reuse_index=None), covering(0, 1)) is Verdict.RETRYABLE
    assert find_verdict(both, CASES["reuse index trimmed"]) is Verdict.RETRYABLE
    assert find_verdict(both, CASES["reuse index dropped"]) is Verdict.RETRYABLE


def test_rewrites_into_another_storage_version() -> None:
    ours = Rewrite((RewriteGroup((F0,), (new_fragment(),)),), storage_version="2.2")
    for theirs, verdict in (
        ("append", "R"),
        ("insert", "R"),
        ("rewrite 1", "R"),
        ("delete in 1", "."),
        ("bases x", "."),
    ):
        assert find_verdict(ours, CASES[theirs]) is LETTERS[verdict], theirs
    assert find_verdict(ours, Update((), (masked(F1),))) is Verdict.COMPATIBLE


# -- columns ---------------------------------------------------------------------------------------------------------


def changed(schema: Schema, **types: str) -> Schema:
    """Return the schema with another type for some columns, as after a repair or reuse of ids."""
    return replace(
        schema,
        fields=tuple(replace(each, logical_type=types.get(each.name, each.logical_type)) for each in schema.fields),
    )


def cast(schema: Schema, name: str) -> Schema:
    """Return the schema after a change of a column's type, which changes its id."""
    fields = tuple(replace(each, id=9, logical_type="int32") if each.name == name else each for each in schema.fields)
    return replace(schema, fields=fields)


def without(schema: Schema, name: str) -> Schema:
    return replace(schema, fields=tuple(each for each in schema.fields if each.name != name))


WRITERS: list[Operation] = [
    Append((new_fragment(1),)),
    Rewrite((RewriteGroup((F0,), (new_fragment(1),)),)),
    Update((), (masked(F0),), (new_fragment(1),)),
    UPDATE_COLUMNS,
    DataReplacement(((0, new_fragment(1).files[0]),)),
    CASES["overlay a of 0"],
]


@pytest.mark.parametrize("operation", WRITERS, ids=lambda operation: operation.name)
def test_new_files_have_the_columns_of_the_table(operation: Operation) -> None:
    schema = BASE.schema
    assert isinstance(operation, Append | Rewrite | Update | DataReplacement | DataOverlay)
    for latest in (schema, without(schema, "a"), without(schema, "b"), changed(schema, b="binary"), cast(schema, "b")):
        check_columns_kept(operation, schema, latest, 3)
    wider = replace(schema, fields=(*schema.fields, Field("c", 3, "int64", nullable=True)))
    check_columns_kept(operation, schema, wider, 3)
    for latest in (changed(schema, a="string"), cast(schema, "a"), without(wider, "a")):
        with pytest.raises(CommitConflictError, match=rf"version 3.*{operation.name}.*'a'") as caught:
            check_columns_kept(operation, schema, latest, 3)
        assert caught.value.retryable


def test_deletes_write_no_columns() -> None:
    check_columns_kept(Delete((masked(F0),)), BASE.schema, changed(BASE.schema, a="string"), 3)
    assert isinstance(F0, Fragment)
