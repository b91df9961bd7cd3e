"""Public operations, transactions and schemas with field ids."""

from __future__ import annotations

import dataclasses
import datetime
import pickle
from dataclasses import fields
from pathlib import Path

import lance
import lance.schema
import pyarrow as pa
import pyroaring
import pytest

from lance_dataset._proto import table_pb2
from lance_dataset.api.dataset.settings import DatasetBasePath
from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.io.local import LocalStore
from lance_dataset.records.conversion import (
    from_table_operation,
    from_table_transaction,
    to_table_operation,
    to_table_transaction,
)
from lance_dataset.records.fragment import DataFile, FragmentMetadata
from lance_dataset.records.index import Index, IndexFile
from lance_dataset.records.operations import LanceOperation, Transaction
from lance_dataset.records.schema import LanceSchema
from lance_dataset.table import index_metadata as index_metadata
from lance_dataset.table import operations
from lance_dataset.table import transaction as table
from lance_dataset.table.manifest import read_manifest
from lance_dataset.types.schema import Schema

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


def _index(name: str = "i") -> Index:
    index = Index("11111111-2222-4333-8444-555555555555", name, [0], 3, {0, 2}, 1)
    index.created_at = datetime.datetime(2024, 5, 1, 12, 0, 0, 7000, datetime.timezone.utc)
    index.files = [IndexFile("a.lance", 7)]
    index.index_details = ("/lance.table.BTreeIndexDetails", b"")
    return index


def _operations() -> list[LanceOperation.BaseOperation]:
    schema = LanceSchema.from_pyarrow(SCHEMA)
    change = LanceOperation.UpdateMap({"a": "b", "c": None}, replace=True)
    rewritten = LanceOperation.RewrittenIndex(_index().uuid, "22222222-2222-4333-8444-555555555555", "/x.Y", b"z", 1)
    return [
        LanceOperation.Append([_fragment()]),
        LanceOperation.Overwrite(schema, [_fragment()]),
        LanceOperation.Overwrite(schema, [], [DatasetBasePath("/x", "n", True, 3)]),
        LanceOperation.Delete([_fragment()], [3, 4], "a < 3"),
        LanceOperation.Restore(7),
        LanceOperation.Update(
            [1], [_fragment()], [_fragment()], [2], [3], "rewrite_columns", {0: pyroaring.BitMap([1]).serialize()}
        ),
        LanceOperation.Merge([_fragment()], schema, True),
        LanceOperation.Project(LanceSchema.from_pyarrow(SCHEMA.remove_metadata()), True),  # the format has none here
        LanceOperation.Rewrite([LanceOperation.RewriteGroup([_fragment()], [_fragment()])], [rewritten]),
        LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(1, DataFile("a", [0], [0], 2, 2))]),
        LanceOperation.UpdateConfig(change, change, change, {0: change}),
        LanceOperation.CreateIndex([_index()], [_index("j")]),
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
    assert isinstance(operation, operations.Overwrite)
    assert operation.schema == Schema.from_arrow(SCHEMA)
    assert [node.id for node in operation.schema.walk()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", [name for name in vars(LanceOperation) if name[0].isupper()])
def test_parameters_as_the_reference(name: str) -> None:
    if name in ("BaseOperation", "Other"):
        return
    expected = fields(getattr(lance.LanceOperation, name))
    found = fields(getattr(LanceOperation, name))
    found = [field for field in found if field.init]
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
    kinds = [type(operation).__name__ for operation in found]
    assert kinds == ["Overwrite", "Append", "Delete", "Restore", "Update"]


def test_what_records_leave_out_survives() -> None:
    """A filter of inserted keys decides about conflicts; it is no part of the reference's record."""
    operation = operations.Update(
        compacted_sstables=(operations.CompactedSsTable("11111111-2222-4333-8444-555555555555", 3),),
        inserted_rows=operations.KeyFilter((0,), frozenset({1, 2})),
    )
    record = from_table_operation(operation)
    assert record == LanceOperation.Update(update_mode="rewrite_rows")
    assert to_table_operation(pickle.loads(pickle.dumps(record))) == operation
    files = (index_metadata.IndexFile("a", 3),)
    rewritten = operations.RewrittenIndex(
        _index().uuid, _index().uuid, index_metadata.IndexDetails("/x.Y", b""), 1, files
    )
    rewrite = operations.Rewrite((), (rewritten,))
    assert to_table_operation(from_table_operation(rewrite)) == rewrite


def test_overlays_are_records_only() -> None:
    overlay = table_pb2.DataOverlayFile(data_file=table_pb2.DataFile(path="o", fields=[3, 4], column_indices=[0, 1]))
    overlay.shared_offset_bitmap = pyroaring.BitMap([2, 5]).serialize()
    record = from_table_operation(operations.DataOverlay(((7, (overlay.SerializeToString(),)),)))
    assert isinstance(record, LanceOperation.DataOverlay)
    (group,) = record.groups
    assert group.fragment_id == 7
    assert group.overlays[0].offsets == [[2, 5], [2, 5]]
    assert group.overlays[0].data_file.path == "o"


@pytest.mark.parametrize(
    "operation",
    [
        operations.ReserveFragments(1),
        operations.UpdateBases(()),
        operations.Unknown(),
        operations.UpdateMemWalState(()),
    ],
    ids=lambda operation: operation.name,
)
def test_operations_without_a_record(operation: operations.Operation) -> None:
    assert from_table_operation(operation) == LanceOperation.Other(operation.name)


def test_index_records() -> None:
    unknown = index_metadata.IndexMetadata(_index().uuid, "i", clustering_id=3, metadata={"a": "b"}, index_version=0)
    assert Index.from_table(unknown).fragment_ids is None
    assert Index.from_table(unknown).to_table() == unknown
    for wrong in ({"uuid": "x"}, {"fragment_ids": {-1}}, {"fragment_ids": {1 << 32}}):
        index = _index()
        for name, value in wrong.items():
            setattr(index, name, value)
        with pytest.raises(InvalidInputError):
            index.to_table()
    for name, value in (("dataset_version", -1), ("dataset_version", 1 << 64), ("index_version", 1 << 31)):
        with pytest.raises(InvalidInputError):
            dataclasses.replace(_index(), **{name: value}).to_table()
    for name, value in (
        *(("name", None), ("created_at", "x"), ("index_details", "x"), ("index_details", ("x", "y"))),
        *(("fields", ["a"]), ("fragment_ids", {"a"}), ("index_version", None)),
    ):
        with pytest.raises(TypeError):
            dataclasses.replace(_index(), **{name: value}).to_table()
    naive = _index()
    naive.created_at = datetime.datetime(2024, 5, 1)
    assert naive.to_table().created_at == int(naive.created_at.timestamp() * 1000)


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
        LanceOperation.Clone(True, None, 1, "x", None),
        LanceOperation.DataOverlay([]),
        LanceOperation.BaseOperation(),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_cannot_be_committed_says_so(operation: LanceOperation.BaseOperation) -> None:
    with pytest.raises(UnsupportedError, match=f"cannot commit the operation {type(operation).__name__}$"):
        to_table_operation(operation)


def test_other_errors() -> None:
    with pytest.raises(TypeError, match="LanceOperation"):
        to_table_operation("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="new_schema"):
        LanceOperation.Overwrite(3, [])  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"cannot commit the operation ReserveFragments$"):
        to_table_operation(LanceOperation.Other("ReserveFragments"))
    with pytest.raises(InvalidInputError, match="update_mode"):
        to_table_operation(LanceOperation.Update(update_mode="x"))
    with pytest.raises(InvalidInputError, match="must be text"):
        to_table_operation(LanceOperation.UpdateConfig(LanceOperation.UpdateMap({"a": 1})))  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="schema"):
        to_table_operation(LanceOperation.Project("x"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="version from 1"):
        to_table_operation(LanceOperation.Restore(0))
    with pytest.raises(InvalidInputError, match="fragment id"):
        to_table_operation(LanceOperation.Delete([], [-1], ""))
    file = _fragment().files[0]
    with pytest.raises(InvalidInputError, match="fragment id"):
        to_table_operation(LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(-1, file)]))


@pytest.mark.parametrize(
    "operation",
    [
        LanceOperation.Restore("1"),  # type: ignore[arg-type]
        LanceOperation.Rewrite(["x"], []),  # type: ignore[list-item]
        LanceOperation.Rewrite([], ["x"]),  # type: ignore[list-item]
        LanceOperation.DataReplacement(["x"]),  # type: ignore[list-item]
        LanceOperation.DataReplacement([LanceOperation.DataReplacementGroup(0, "x")]),  # type: ignore[arg-type]
        LanceOperation.CreateIndex(["x"], []),  # type: ignore[list-item]
        LanceOperation.UpdateConfig({"a": "b"}),  # type: ignore[arg-type]
        LanceOperation.UpdateConfig(LanceOperation.UpdateMap(None)),  # type: ignore[arg-type]
    ],
)
def test_values_of_another_type(operation: LanceOperation.BaseOperation) -> None:
    with pytest.raises(TypeError, match="must be "):
        to_table_operation(operation)


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
