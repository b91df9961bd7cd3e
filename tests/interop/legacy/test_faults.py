"""Tests of legacy files that this package reads correctly, and the reference wrongly or not at all."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.files.legacy_model import as_legacy, encode_legacy
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset._proto import table_pb2
from lance_dataset.io.resolve import resolve
from lance_dataset.table.fragment import DataFile, Fragment
from lance_dataset.table.manifest import Manifest, encode_manifest, read_manifest
from lance_dataset.types.schema import Schema


def written_by_reference(table: pa.Table, path: Path, **options: object) -> lance_dataset.LanceDataset:
    lance.write_dataset(table, str(path), data_storage_version="legacy", **options)
    return lance_dataset.dataset(path)


def kept(table: pa.Table) -> pa.Table:
    return pa.table([as_legacy(table[field.name], field) for field in table.schema], schema=table.schema)


@pytest.mark.parametrize(
    "item",
    [pa.field("item", pa.int32(), nullable=False), pa.field("element", pa.int32()), pa.field("e", pa.string(), False)],
    ids=["required", "other name", "both"],
)
def test_lists_of_other_items(tmp_path: Path, item: pa.Field) -> None:
    """Lists with required or renamed items can be read; the reference writes them and cannot read them."""
    values = [["", "a"], [], None, ["b"]] if pa.types.is_string(item.type) else [[1, 2], [], None, [3]]
    table = pa.table({"id": range(4), "l": pa.array(values, pa.list_(item))})
    dataset = written_by_reference(table, tmp_path / "t", max_rows_per_group=3)
    assert_same(dataset.to_table(), kept(table))
    assert_same(dataset.take([3, 0]), kept(table).take([3, 0]))
    with pytest.raises(BaseException, match=r".+"):  # a panic of the reference is not an Exception
        lance.dataset(str(tmp_path / "t")).to_table()


def test_rows_of_fixed_lists_of_bools(tmp_path: Path) -> None:
    """Rows of fixed-size lists of bools can be taken; the take of the reference panics."""
    values = [[i % 2 == 0, i % 3 == 0, True] for i in range(2500)]
    table = pa.table({"v": pa.array(values, pa.list_(pa.bool_(), 3))})
    dataset = written_by_reference(table, tmp_path / "t")
    assert_same(dataset.to_table(), table)
    rows = np.random.default_rng(0).integers(0, 2500, 60)
    assert_same(dataset.take(rows), table.take(rows))


def test_values_without_bytes_and_structs_without_fields(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": range(5),
            "none": pa.array([b""] * 5, pa.binary(0)),
            "empty": pa.array([{}] * 5, pa.struct([])),
        }
    )
    dataset = written_by_reference(table, tmp_path / "t", max_rows_per_group=2)
    assert_same(dataset.to_table(), table)
    assert_same(dataset.take([4, 1]), table.take([4, 1]))
    assert_same(dataset.to_table(columns=["empty"]), table.select(["empty"]))


def uneven(path: Path, sizes: list[int]) -> pa.Table:
    """Make a dataset whose batches have these sizes, which the format allows and no writer should make."""
    table = pa.table({"i": pa.array(range(sum(sizes)), pa.int64()), "s": [f"row {i}" for i in range(sum(sizes))]})
    schema = Schema.from_arrow(table.schema)
    ends = np.cumsum([0, *sizes]).tolist()
    batches = [table.slice(start, stop - start).combine_chunks() for start, stop in pairwise(ends)]
    content = encode_legacy(
        schema, [pa.RecordBatch.from_struct_array(batch.to_struct_array().combine_chunks()) for batch in batches]
    )
    store, root = resolve(str(path))
    output = store.open_output(f"{root}/data/f.lance")
    output.write(content)
    output.close()
    fragment = Fragment(0, (DataFile("f.lance", (0, 1), (), 0, 2),), physical_rows=table.num_rows)
    manifest = Manifest(1, schema, (fragment,), "0.1", max_fragment_id=0)
    store.put(f"{root}/_versions/1.manifest", encode_manifest(manifest))
    return table


def test_row_ids_of_uneven_batches(tmp_path: Path) -> None:
    """Row ids are right if batches differ in length.

    The reference takes all batches for as long as the first one, and so deletes wrong rows.
    """
    table = uneven(tmp_path / "t", [3, 15, 5])
    dataset = lance_dataset.dataset(tmp_path / "t")
    found = dataset.to_table(filter="i in (5, 18, 19)", with_row_id=True)
    assert found["_rowid"].to_pylist() == found["i"].to_pylist() == [5, 18, 19]
    theirs = lance.dataset(str(tmp_path / "t")).to_table(filter="i in (5, 18, 19)", with_row_id=True)
    assert theirs["_rowid"].to_pylist() != [5, 18, 19]
    dataset.delete("i in (5, 19)")
    left = [i for i in range(23) if i not in (5, 19)]
    assert lance_dataset.dataset(tmp_path / "t").to_table() == table.take(left)
    assert lance.dataset(str(tmp_path / "t")).to_table() == table.take(left)


def test_blob_column(tmp_path: Path) -> None:
    """Blobs can be read from a legacy file.

    The reference writes a blob column like any binary one there, and cannot read it by default.
    """
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [b"abc", None, b"", b"defgh"]
    table = pa.table(
        [pa.array(range(4)), pa.array(values, pa.large_binary())], schema=pa.schema([pa.field("i", pa.int64()), blob])
    )
    dataset = written_by_reference(table, tmp_path / "t")
    blobs = dataset.take_blobs("b", indices=[0, 3])
    assert [blob.readall() for blob in blobs] == [b"abc", b"defgh"]
    described = dataset.to_table()["b"].to_pylist()
    assert [value and value["size"] for value in described] == [3, None, None, 5]
    assert dataset.scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == [b"abc", None, None, b"defgh"]


def test_empty_values_of_0_4(tmp_path: Path) -> None:
    """A commit to a table of release 0.4 makes empty dictionary values null, with a warning.

    That release distinguished empty values from nulls. The commit makes the table one of later releases.
    """
    fixture = Path(__file__).parents[2] / "fixtures" / "datasets" / "pylance-0.4.21-default" / "dict.lance"
    shutil.copytree(fixture, tmp_path / "t")
    before = lance_dataset.dataset(tmp_path / "t").to_table()["dict"].to_pylist()
    assert "" in before
    with pytest.warns(UserWarning, match=r"column 'dict'.*release 0\.4.*compact_files"):
        lance_dataset.dataset(tmp_path / "t").delete("id = 0")
    after = lance_dataset.dataset(tmp_path / "t").to_table()["dict"].to_pylist()
    assert after == [value or None for value in before[1:]]


def test_files_of_both_kinds_without_a_version(tmp_path: Path) -> None:
    """A table with 2.0 and legacy files can be read, but not appended to.

    Release 0.15 appended legacy files to tables of 2.0, and dropped the version from the manifest.
    """
    table = pa.table({"a": [1, 2, 3]})
    path = tmp_path / "t"
    lance_dataset.write_dataset(table, path, data_storage_version="2.0", enable_v2_manifest_paths=False)
    lance_dataset.write_dataset(table, tmp_path / "other", data_storage_version="legacy")
    store, root = resolve(str(path))
    [old] = read_manifest(store, f"{root}/_versions/1.manifest").fragments
    [new] = lance_dataset.dataset(tmp_path / "other").snapshot.manifest.fragments
    shutil.copy(tmp_path / "other" / "data" / new.files[0].path, path / "data")
    mixed = Manifest(2, Schema.from_arrow(table.schema), (old, replace(new, id=1)), "2.0", max_fragment_id=1)
    message = table_pb2.Manifest.FromString(encode_manifest(mixed)[4:-16])
    message.ClearField("data_format")
    content = message.SerializeToString()
    store.put(
        f"{root}/_versions/2.manifest",
        struct.pack("<I", len(content)) + content + struct.pack("<qHH4s", 0, 0, 1, b"LANC"),
    )
    dataset = lance_dataset.dataset(path)
    assert dataset.to_table()["a"].to_pylist() == [1, 2, 3, 1, 2, 3]
    with pytest.raises(lance_dataset.errors.LanceError, match=r"0\.1"):
        lance_dataset.write_dataset(table, path, mode="append")
    dataset.optimize.compact_files(data_storage_version="2.2")
    assert lance.dataset(str(path)).to_table()["a"].to_pylist() == [1, 2, 3, 1, 2, 3]
