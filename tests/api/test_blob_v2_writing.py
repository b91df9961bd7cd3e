"""Tests of writing blob columns of version 2, which the reference reads."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset import Blob, BlobColumn, blob_array, blob_field
from lance_dataset.errors import (
    InvalidInputError,
    MissingFileError,
    OutOfRangeError,
    SchemaError,
    StorageError,
    UnsupportedError,
)

SMALL = {"inline_size_threshold": 10, "dedicated_size_threshold": 100, "pack_file_size_threshold": 150}


def check(path: Path, column: str, expected: list[Any]) -> None:
    """Compare values as both libraries read them, by scans and by row."""
    for module in (lance, lance_dataset):
        dataset = module.dataset(path)
        assert dataset.to_table(columns=[column], blob_handling="all_binary")[column].to_pylist() == expected
        found = dataset.take_blobs(column, indices=range(len(expected)))
        assert [None if blob is None else blob.read() for blob in found] == expected
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
    assert ours.schema.equals(theirs.schema, check_metadata=True)


@pytest.mark.parametrize("version", ["2.2", "2.3"])
def test_round_trip(tmp_path: Path, version: str) -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(0, 140, 500).tolist()
    values = [None if size % 7 == 3 else generator.bytes(size) for size in sizes]
    schema = pa.schema([blob_field("b", **SMALL), pa.field("i", pa.int64()), blob_field("c", **SMALL)])
    table = pa.Table.from_arrays([blob_array(values), pa.array(range(500)), blob_array(values[::-1])], schema=schema)
    batches = table.to_batches(max_chunksize=64)
    lance_dataset.write_dataset(
        batches, tmp_path, schema, data_storage_version=version, max_rows_per_file=300, max_page_bytes=500
    )
    check(tmp_path, "b", values)
    check(tmp_path, "c", values[::-1])
    assert max(file.stat().st_size for file in tmp_path.glob("data/*/*.blob")) <= 150
    kinds = lance_dataset.dataset(tmp_path).to_table(columns=["b.kind", "b.size"])
    for kind, size in zip(*(column.to_pylist() for column in kinds.columns), strict=True):
        assert kind == (None if size is None else 0 if size <= 10 else 2 if size > 100 else 1)


def test_equal_to_the_reference(tmp_path: Path) -> None:
    """Descriptors are those that the reference writes, apart from positions of empty values."""
    values = [b"hello", None, b"x" * 65535, b"x" * 65536, b"x" * 65537, b"y" * 100000, b"z" * (4 << 20), b"q" * 4194305]
    table = pa.Table.from_arrays([blob_array(values)], schema=pa.schema([blob_field("b")]))
    for module in (lance, lance_dataset):
        module.write_dataset(table, tmp_path / module.__name__)
    ours, theirs = (lance_dataset.dataset(tmp_path / each.__name__) for each in (lance_dataset, lance))
    assert ours.to_table().to_pylist() == theirs.to_table().to_pylist()
    sizes = [
        sorted((file.name, file.stat().st_size) for file in (tmp_path / each.__name__).glob("data/*/*.blob"))
        for each in (lance, lance_dataset)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", ["struct", "list", "large_list"])
def test_nesting(tmp_path: Path, kind: str) -> None:
    values = [b"a", None, b"", b"b" * 50, b"c" * 200, b"d"]
    inner = blob_array(values)
    field = blob_field("item", **SMALL)
    if kind == "struct":
        array = pa.StructArray.from_arrays([inner], fields=[field], mask=pa.array([False] * 5 + [True]))
    else:
        make = pa.ListArray if kind == "list" else pa.LargeListArray
        make_type = pa.list_ if kind == "list" else pa.large_list
        array = make.from_arrays([0, 2, 2, 3, 3, 6, 6], inner, type=make_type(field))
    table = pa.Table.from_arrays([array], schema=pa.schema([("x", array.type)]))
    # slices share the items of the whole array
    batches = [table.to_batches()[0].slice(start, 2) for start in (0, 2, 4)]
    lance_dataset.write_dataset(batches, tmp_path, table.schema)
    found = lance_dataset.dataset(tmp_path).to_table(blob_handling="all_binary")["x"].to_pylist()
    assert found == lance.dataset(tmp_path).to_table(blob_handling="all_binary")["x"].to_pylist()
    if kind == "struct":
        assert found == [{"item": value} for value in values[:5]] + [None]
    else:
        assert found == [values[:2], [], values[2:3], [], values[3:], []]
    assert len(list(tmp_path.glob("data/*/*.blob"))) == 2


def test_empty_and_null_only(tmp_path: Path) -> None:
    schema = pa.schema([blob_field("b")])
    lance_dataset.write_dataset(pa.Table.from_arrays([blob_array([])], schema=schema), tmp_path)
    assert lance.dataset(tmp_path).count_rows() == 0
    for values in ([None, None], [b"", b""]):
        table = pa.Table.from_arrays([blob_array(values)], schema=schema)
        lance_dataset.write_dataset(table, tmp_path, mode="append")
    check(tmp_path, "b", [None, None, b"", b""])


# -- external objects --------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "o.bin").write_bytes(bytes(range(200)))
    return tmp_path / "place" / "o.bin"


def external(outside: Path) -> pa.Table:
    values = [Blob.from_uri(outside.as_uri()), Blob.from_uri(outside.as_uri(), 5, 7), b"own", None]
    return pa.Table.from_arrays([blob_array(values)], schema=pa.schema([blob_field("b", **SMALL)]))


EXPECTED = [bytes(range(200)), bytes(range(5, 12)), b"own", None]


def test_references(tmp_path: Path, outside: Path) -> None:
    with pytest.raises(InvalidInputError, match="outside registered external bases"):
        lance_dataset.write_dataset(external(outside), tmp_path / "t")
    assert not (tmp_path / "t").exists()
    lance_dataset.write_dataset(external(outside), tmp_path / "t", allow_external_blob_outside_bases=True)
    check(tmp_path / "t", "b", EXPECTED)
    rows = lance_dataset.dataset(tmp_path / "t").to_table()["b"].to_pylist()
    assert [row and (row["kind"], row["blob_id"]) for row in rows] == [(3, 0), (3, 0), (0, 0), None]


def test_references_below_a_base(tmp_path: Path, outside: Path) -> None:
    base = lance_dataset.DatasetBasePath(str(outside.parent), "place", is_dataset_root=False)
    lance_dataset.write_dataset(external(outside), tmp_path / "t", initial_bases=[base])
    check(tmp_path / "t", "b", EXPECTED)
    row = lance_dataset.dataset(tmp_path / "t").to_table()["b"][0].as_py()
    assert (row["kind"], row["blob_id"], row["blob_uri"]) == (3, 1, "o.bin")


def test_ingest(tmp_path: Path, outside: Path) -> None:
    lance_dataset.write_dataset(external(outside), tmp_path / "t", external_blob_mode="ingest")
    outside.unlink()
    check(tmp_path / "t", "b", EXPECTED)
    kinds = lance_dataset.dataset(tmp_path / "t").to_table(columns=["b.kind"])["b.kind"].to_pylist()
    assert kinds == [2, 0, 0, None]
    with pytest.raises(MissingFileError, match=r"o\.bin"):
        lance_dataset.write_dataset(external(outside), tmp_path / "u", external_blob_mode="ingest")
    with pytest.raises(InvalidInputError, match="Invalid external blob mode"):
        lance_dataset.write_dataset(external(outside), tmp_path / "u", external_blob_mode="copy")  # type: ignore[arg-type]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "exactly one of `data` and `uri`"),
    "both": ({"data": b"a", "uri": "file:///x"}, "exactly one of `data` and `uri`"),
    "half a range": ({"uri": "file:///x", "position": 1}, "both `position` and `size`, or neither"),
    "empty range": ({"uri": "file:///x", "position": 1, "size": 0}, "must be greater than zero"),
    "range of bytes": ({"data": b"a", "position": 1, "size": 1}, "but `uri` is null"),
    "no scheme": ({"uri": "x.bin"}, "not a valid absolute URI"),
}


@pytest.mark.parametrize(("row", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_rows(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    field = blob_field("b")
    array = pa.ExtensionArray.from_storage(field.type, pa.array([{"data": b"x"}, row], field.type.storage_type))
    table = pa.Table.from_arrays([array], schema=pa.schema([field]))
    for module, kind in ((lance, OSError), (lance_dataset, InvalidInputError)):
        with pytest.raises(kind, match=message):
            module.write_dataset(table, tmp_path, allow_external_blob_outside_bases=True)
    assert not list(tmp_path.glob("data/*"))


# -- schemas ------------------------------------------------------------------------------------------------------


def test_marked_columns_become_blobs_of_version_2(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", "k": "v"})
    inner = pa.field("s", pa.struct([field, pa.field("n", pa.int32())]))
    values = [b"a", None, b"", b"b" * 70000]
    structs = [{"b": value, "n": 1} for value in values[:3]] + [None]
    table = pa.table([values, structs], schema=pa.schema([field, inner]))
    for module in (lance, lance_dataset):
        module.write_dataset(table.slice(1), tmp_path / module.__name__)
        lance_dataset.write_dataset(table, tmp_path / module.__name__, mode="append")
        check(tmp_path / module.__name__, "b", [*values[1:], *values])
    ours, theirs = (lance.dataset(tmp_path / name).schema for name in ("lance", "lance_dataset"))
    assert ours.equals(theirs, check_metadata=True)
    plain = pa.table({"b": pa.array([b"x"], pa.large_binary())})
    with pytest.raises(SchemaError, match="should have type struct but type was large_binary"):
        lance_dataset.write_dataset(plain, tmp_path / "lance", mode="append")


def test_old_table_keeps_its_version(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([[b"a"]], schema=pa.schema([field]))
    lance_dataset.write_dataset(table, tmp_path, data_storage_version="2.1")
    lance_dataset.write_dataset(table, tmp_path, mode="append")
    with pytest.raises(UnsupportedError, match=r'use data_storage_version="2\.1"'):
        lance_dataset.write_dataset(table, tmp_path, mode="append", data_storage_version="2.2")
    assert lance.dataset(tmp_path).to_table(blob_handling="all_binary")["b"].to_pylist() == [b"a", b"a"]


def test_appends(tmp_path: Path, outside: Path) -> None:
    lance.write_dataset(external(outside), tmp_path / "t", allow_external_blob_outside_bases=True)
    path = tmp_path / "t"
    other = pa.Table.from_arrays([blob_array([b"e"])], schema=pa.schema([blob_field("b")]))
    lance_dataset.write_dataset(other, path, mode="append")
    changed = other.cast(pa.schema([blob_field("b", inline_size_threshold=11)]))
    with pytest.raises(SchemaError, match="inline-size-threshold=11, but the dataset has 10"):
        lance_dataset.write_dataset(changed, path, mode="append")
    check(path, "b", [*EXPECTED, b"e"])
    for version in ("2.0", "2.1"):
        with pytest.raises(InvalidInputError, match=r"Blob v2 requires file version >= 2\.2"):
            lance_dataset.write_dataset(other, tmp_path / version, data_storage_version=version)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_descriptors_are_not_values(tmp_path: Path, version: str) -> None:
    """Descriptors, as a scan returns them, cannot be written: they refer to files of the scanned table."""
    table = pa.Table.from_arrays([blob_array([b"a"])], schema=pa.schema([blob_field("b")]))
    scanned = lance_dataset.write_dataset(table, tmp_path / "a").to_table()
    for module, kind in ((lance, OSError), (lance_dataset, InvalidInputError)):
        with pytest.raises(kind, match="has descriptor layout"):
            module.write_dataset(scanned, tmp_path / "b", data_storage_version=version)


def test_pack_threshold_of_a_write(tmp_path: Path) -> None:
    values = [b"1" * 70, b"2" * 70, b"3" * 70]
    table = pa.Table.from_arrays([blob_array(values)], schema=pa.schema([blob_field("b", **SMALL)]))
    lance_dataset.write_dataset(table, tmp_path, blob_pack_file_size_threshold=100)
    assert len(list(tmp_path.glob("data/*/*.blob"))) == 3
    check(tmp_path, "b", values)


def test_written_fragments(tmp_path: Path) -> None:
    values = [b"1" * 70, b"2"]
    table = pa.Table.from_arrays([blob_array(values)], schema=pa.schema([blob_field("b", **SMALL)]))
    fragments = lance_dataset.write_fragments(table, tmp_path)
    operation = lance_dataset.LanceOperation.Overwrite(table.schema, fragments)
    lance_dataset.LanceDataset.commit(tmp_path, operation)
    check(tmp_path, "b", values)


def test_failed_write_leaves_nothing(tmp_path: Path, outside: Path) -> None:
    good = external(outside)

    def batches() -> Any:
        yield from good.to_batches()
        raise StorageError("no more")

    with pytest.raises(StorageError):
        lance_dataset.write_dataset(batches(), tmp_path / "t", good.schema, external_blob_mode="ingest")
    assert not list(tmp_path.glob("t/**/*.*"))


def test_memory_of_large_values(tmp_path: Path) -> None:
    """Values are neither copied nor held: ten of 8 MB need far less than their size."""
    data = bytes(8 << 20)

    def batches() -> Any:
        for _ in range(10):
            yield pa.record_batch([blob_array([data])], schema=schema)

    schema = pa.schema([blob_field("b")])
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    lance_dataset.write_dataset(batches(), tmp_path, schema)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20
    assert pa.total_allocated_bytes() - before < 20 << 20
    assert lance.dataset(tmp_path).take_blobs("b", indices=[9])[0].size() == len(data)


# -- values of Python ---------------------------------------------------------------------------------------------


def test_arrays() -> None:
    values = [b"a", bytearray(b"b"), memoryview(b"c"), "s3://x/y", Blob.empty(), Blob.from_uri("u", 1, 2), None]
    ours, theirs = (
        blob_array(values),
        lance.blob_array([*values[:4], lance.Blob.empty(), lance.Blob.from_uri("u", 1, 2), None]),
    )
    assert ours.storage.equals(theirs.storage)
    assert lance_dataset.BlobArray.from_pylist(values).storage.equals(ours.storage)
    assert blob_array([lance.Blob.from_bytes(b"x")]).to_pylist() == blob_array([b"x"]).to_pylist()
    with pytest.raises(TypeError, match="BlobArray values must be"):
        blob_array([1])
    with pytest.raises(InvalidInputError, match="cannot be empty"):
        blob_array([""])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data": b"1", "uri": "a"},
        {"data": b"1", "position": 1, "size": 1},
        {"uri": "a", "position": 1},
        {"uri": "a", "position": 1, "size": 0},
        {"uri": ""},
    ],
)
def test_wrong_blobs(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as theirs:
        lance.Blob(**options)
    with pytest.raises(InvalidInputError) as ours:
        Blob(**options)
    assert str(ours.value) == str(theirs.value)


def test_fields() -> None:
    for options in ({}, {"nullable": False}, SMALL):
        ours, theirs = blob_field("b", **options), lance.blob_field("b", **options)  # type: ignore[arg-type]
        assert (ours.metadata, ours.nullable) == (theirs.metadata, theirs.nullable)
        assert ours.type.storage_type == theirs.type.storage_type
    for name, value, kind in (
        ("inline_size_threshold", -1, InvalidInputError),
        ("inline_size_threshold", True, TypeError),
        ("dedicated_size_threshold", 0, InvalidInputError),
        ("pack_file_size_threshold", 2**64, OutOfRangeError),
    ):
        with pytest.raises(kind, match=name):
            blob_field("b", **{name: value})  # type: ignore[arg-type]


def test_columns_as_files() -> None:
    files = list(BlobColumn(pa.chunked_array([[b"abc", None], [b"x"]])))
    assert [None if file is None else file.read() for file in files] == [b"abc", None, b"x"]
    with pytest.raises(InvalidInputError, match="Expected a binary array, got string"):
        BlobColumn(pa.array(["a"]))
