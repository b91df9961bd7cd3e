"""Tests of key filters of concurrent inserts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_dataset.io.local import LocalStore
from lance_dataset.table.conflicts.key_filter import build_key_filter, may_share_keys
from lance_dataset.table.operations import KeyFilter, Update
from lance_dataset.table.transaction import read_transaction
from lance_dataset.table.versions import read_latest

KEY = {b"lance-schema:unenforced-primary-key": b"true"}


def filter_of_the_reference(path: Path, columns: dict[str, pa.Array], inserted: int) -> KeyFilter:
    """Return the filter that the reference writes for a merge that inserts all but the first rows of a table."""
    fields = [pa.field(name, column.type, nullable=False, metadata=KEY) for name, column in columns.items()]
    rows = len(next(iter(columns.values())))
    schema = pa.schema([*fields, pa.field("value", pa.int64())])
    table = pa.table([*columns.values(), pa.array(range(rows), pa.int64())], schema=schema)
    dataset = lance.write_dataset(table.slice(0, rows - inserted), path)
    dataset.merge_insert(list(columns)).when_matched_update_all().when_not_matched_insert_all().execute(table)
    store = LocalStore()
    manifest = read_latest(store, str(path))
    assert manifest is not None
    transaction = read_transaction(store, str(path), manifest)
    assert transaction is not None
    assert isinstance(transaction.operation, Update)
    found = transaction.operation.inserted_rows
    assert found is not None
    return found


COLUMNS = {
    "int64": pa.array([1, 2, -7, 5, 2**40, -(2**63), 2**63 - 1], pa.int64()),
    "int32": pa.array([1, 2, -7, 5, -(2**31), 2**31 - 1], pa.int32()),
    "uint64": pa.array([1, 2, 7, 2**64 - 1, 0], pa.uint64()),
    "uint32": pa.array([1, 2, 7, 2**32 - 1, 0], pa.uint32()),
    "string": pa.array(["a", "b", "", "ä", "a string longer than a stripe of thirty-two bytes"], pa.string()),
    "large_string": pa.array(["a", "b", "", "ä"], pa.large_string()),
    "binary": pa.array([b"a", b"b", b"", b"\xff\0"], pa.binary()),
    "large_binary": pa.array([b"a", b"b", b"\xff\0"], pa.large_binary()),
}


@pytest.mark.parametrize("name", list(COLUMNS))
def test_filters_are_those_of_the_reference(tmp_path: Path, name: str) -> None:
    column = COLUMNS[name]
    theirs = filter_of_the_reference(tmp_path / "t", {"key": column}, len(column) - 2)
    assert theirs == build_key_filter(theirs.field_ids, [column.slice(2)])


def test_keys_of_several_columns(tmp_path: Path) -> None:
    columns = {"number": COLUMNS["int32"].slice(0, 4), "text": COLUMNS["string"].slice(0, 4)}
    theirs = filter_of_the_reference(tmp_path / "t", columns, 2)
    assert theirs.field_ids == (0, 1)
    assert theirs == build_key_filter((0, 1), [column.slice(2) for column in columns.values()])


def test_a_thousand_keys(tmp_path: Path) -> None:
    keys = pa.array(range(0, 3_000_000, 1000), pa.int64())
    theirs = filter_of_the_reference(tmp_path / "t", {"key": keys}, 2999)
    ours = build_key_filter((0,), [pa.chunked_array([keys.slice(1, 500), keys.slice(501)])])
    assert ours == theirs


def test_very_many_keys_fill_it() -> None:
    keys = pa.array(range(600_000), pa.int64())
    assert build_key_filter((0,), [keys]).bitmap == b"\xff" * 32_768


def test_nulls_equal_nothing() -> None:
    whole = build_key_filter((0, 1), [pa.array([1, None, 3], pa.int64()), pa.array(["a", "b", None])])
    assert whole == build_key_filter((0, 1), [pa.array([1], pa.int64()), pa.array(["a"])])
    assert not any(build_key_filter((0,), [pa.array([None], pa.int64())]).bitmap)


def bloom(*keys: int) -> KeyFilter:
    return build_key_filter((0,), [pa.array(keys, pa.int64())])


def test_comparison() -> None:
    assert may_share_keys(bloom(1, 2), bloom(2, 3))
    assert not may_share_keys(bloom(1, 2), bloom(3, 4))
    assert not may_share_keys(bloom(), bloom(3))
    exact = KeyFilter((0,), frozenset({1, 2}))
    assert may_share_keys(exact, replace(exact, key_hashes=frozenset({2, 3})))
    assert not may_share_keys(exact, replace(exact, key_hashes=frozenset({3})))
    for other in (
        exact,
        replace(bloom(3), field_ids=(1,)),
        replace(bloom(3), num_bits=7),
        replace(bloom(3), number_of_items=7),
        replace(bloom(3), probability=0.5),
        replace(bloom(3), bitmap=bytes(32)),
    ):
        assert may_share_keys(bloom(1), other)
        assert may_share_keys(other, bloom(1))


@pytest.mark.parametrize("keys", [pa.array([1.5]), pa.array([True]), pa.array([1], pa.int8()), pa.array([[1]])])
def test_keys_that_cannot_be_hashed_may_be_any(keys: pa.Array) -> None:
    unknown = build_key_filter((0,), [keys])
    assert may_share_keys(unknown, bloom())  # the filter of the reference is empty then
    assert may_share_keys(bloom(5), unknown)
