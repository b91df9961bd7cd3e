"""Public operations, transactions and schemas with field ids."""

from __future__ import annotations

import pickle
from dataclasses import fields
from pathlib import Path

import lance
import lance.schema
import pyarrow as pa
import pytest

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.fragment_metadata import DataFile, FragmentMetadata
from lance_dataset.io.local import LocalStore
from lance_dataset.lance_schema import LanceSchema
from lance_dataset.operations import (
    LanceOperation,
    Transaction,
    from_table_transaction,
    to_table_operation,
    to_table_transaction,
)
from lance_dataset.schema import Schema
from lance_dataset.table import transaction as table
from lance_dataset.table.manifest import read_manifest

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int32(), metadata={"k": "v"}),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float32()))]), nullable=False),
        pa.field("u", pa.uuid()),
    ],
    metadata={"m": "n"},
)


def _fragment() -> FragmentMetadata:
    return FragmentMetadata(0, [DataFile("a.lance", [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], 2, 0, 100)], 10)


def _operations() -> list[LanceOperation.BaseOperation]:
    return [
        LanceOperation.Append([_fragment()]),
        LanceOperation.Overwrite(LanceSchema.from_pyarrow(SCHEMA), [_fragment()]),
        LanceOperation.Delete([_fragment()], [3, 4], "a < 3"),
        LanceOperation.Restore(7),
    ]


@pytest.mark.parametrize("operation", _operations(), ids=lambda operation: type(operation).__name__)
def test_round_trip_through_the_format(operation: LanceOperation.BaseOperation) -> None:
    transaction = Transaction(5, operation, transaction_properties={"a": "b"})
    stored = to_table_transaction(transaction).encode()
    assert from_table_transaction(table.Transaction.decode(stored, "here")) == transaction
    assert pickle.loads(pickle.dumps(transaction)) == transaction
    assert repr(operation).startswith(f"LanceOperation.{type(operation).__name__}(")


def test_overwrite_numbers_fields_as_files_do() -> None:
    operation = to_table_operation(LanceOperation.Overwrite(SCHEMA, [_fragment()]))
    assert isinstance(operation, table.Overwrite)
    assert operation.schema == Schema.from_arrow(SCHEMA)
    assert [node.id for node in operation.schema.walk()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", [name for name in vars(LanceOperation) if name[0].isupper()])
def test_parameters_as_the_reference(name: str) -> None:
    if name in ("BaseOperation", "Other"):
        return
    expected = fields(getattr(lance.LanceOperation, name))
    found = fields(getattr(LanceOperation, name))
    assert [field.name for field in found] == [field.name for field in expected]
    assert [field.default for field in found] == [field.default for field in expected]


def test_reads_what_the_reference_did(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d", data_storage_version="2.0")
    dataset.insert(pa.table({"a": [3]}))
    dataset.delete("a = 1")
    dataset.restore()
    dataset.update({"a": "7"})
    store, root, found = LocalStore(), str(tmp_path / "d"), []
    manifests = sorted((tmp_path / "d" / "_versions").glob("*.manifest"), reverse=True)  # newer ones sort first
    for version in range(1, 6):
        manifest = read_manifest(store, str(manifests[version - 1]))
        transaction = from_table_transaction(table.read_transaction(store, root, manifest))
        expected = dataset.read_transaction(version)
        assert (transaction.read_version, transaction.uuid) == (expected.read_version, expected.uuid)
        found.append(transaction.operation)
        if not isinstance(transaction.operation, LanceOperation.Other):
            assert type(transaction.operation).__name__ == type(expected.operation).__name__
        for name in ("fragments", "updated_fragments"):
            for mine, other in zip(
                getattr(transaction.operation, name, []), getattr(expected.operation, name, []), strict=False
            ):
                assert mine.to_json() == other.to_json()
    assert [type(operation).__name__ for operation in found] == ["Overwrite", "Append", "Delete", "Restore", "Other"]
    assert found[-1] == LanceOperation.Other("Update")
    with pytest.raises(UnsupportedError, match="operation Update cannot be committed"):
        to_table_operation(found[-1])


@pytest.mark.parametrize("value", [1, None, [1], (part for part in [])])
def test_fragments_must_be_a_list_of_them(value: object) -> None:
    for make in (
        lambda: LanceOperation.Append(value),
        lambda: LanceOperation.Overwrite(SCHEMA, value),
        lambda: LanceOperation.Delete(value, [], ""),
    ):
        with pytest.raises(TypeError, match="fragments must be list"):
            make()


@pytest.mark.parametrize(
    "operation",
    [
        LanceOperation.Update(),
        LanceOperation.Merge([_fragment()], SCHEMA),
        LanceOperation.Project(LanceSchema.from_pyarrow(SCHEMA)),
        LanceOperation.Rewrite([LanceOperation.RewriteGroup([_fragment()], [_fragment()])], []),
        LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(1, DataFile("a", [0]))]),
        LanceOperation.UpdateConfig(LanceOperation.UpdateMap({"a": None})),
        LanceOperation.CreateIndex([], []),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_cannot_be_committed_says_so(operation: LanceOperation.BaseOperation) -> None:
    with pytest.raises(UnsupportedError, match=f"operation {type(operation).__name__} "):
        to_table_operation(operation)


def test_other_errors() -> None:
    with pytest.raises(TypeError, match="LanceOperation"):
        to_table_operation("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="new_schema"):
        LanceOperation.Overwrite(3, [])  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="initial_bases"):
        to_table_operation(LanceOperation.Overwrite(SCHEMA, [], ["x"]))
    with pytest.raises(InvalidInputError, match="version from 1"):
        to_table_operation(LanceOperation.Restore(0))
    with pytest.raises(InvalidInputError, match="fragment id"):
        to_table_operation(LanceOperation.Delete([], [-1], ""))


# -- schemas ---------------------------------------------------------------------------------------------------------


def _described(field: object) -> tuple:
    return (
        field.name(), field.id(), field.metadata, field.to_arrow(), field.is_unenforced_primary_key(),
        field.unenforced_primary_key_position(), field.is_unenforced_clustering_key(),
        field.unenforced_clustering_key_position(), [_described(child) for child in field.children()],
    )  # fmt: skip


KEYS = pa.schema(
    [
        pa.field("b", pa.int32(), False, metadata={"lance-schema:unenforced-primary-key:position": "2"}),
        pa.field("a", pa.int32(), False, metadata={"lance-schema:unenforced-primary-key:position": "1"}),
        pa.field("c", pa.int32(), metadata={"lance-schema:unenforced-clustering-key:position": "1"}),
    ]
)


@pytest.mark.parametrize("schema", [SCHEMA, KEYS, pa.schema([])])
def test_lance_schema_as_the_reference(schema: pa.Schema) -> None:
    ours, theirs = LanceSchema.from_pyarrow(schema), lance.schema.LanceSchema.from_pyarrow(schema)
    assert ours.to_pyarrow().equals(theirs.to_pyarrow(), check_metadata=True)
    assert [_described(field) for field in ours.fields()] == [_described(field) for field in theirs.fields()]
    for key in ("unenforced_primary_key", "unenforced_clustering_key"):
        assert [field.name() for field in getattr(ours, key)()] == [field.name() for field in getattr(theirs, key)()]
    for path in ("a", "s.x", "s.y", "s.y.item", "q", "s.q", "S.X"):
        for method in ("field", "field_case_insensitive"):
            mine, other = getattr(ours, method)(path), getattr(theirs, method)(path)
            assert (None if mine is None else mine.id()) == (None if other is None else other.id()), (path, method)


def test_lance_schema_is_a_value() -> None:
    schema = LanceSchema.from_pyarrow(SCHEMA)
    assert schema == LanceSchema.from_pyarrow(schema.to_pyarrow())
    assert schema != LanceSchema.from_pyarrow(KEYS)
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert schema.field("a") == schema.fields()[0]
    assert "'a'" in repr(schema)
    with pytest.raises(TypeError):
        hash(schema)
