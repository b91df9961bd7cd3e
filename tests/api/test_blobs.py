"""Tests of blob columns of datasets: scans, files, ranges, with the reference on the same datasets."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.reference.outcomes import check_call

import lance_dataset
from lance_dataset.errors import FieldNotFoundError, InvalidInputError, UnsupportedError
from lance_dataset.io.resolve import resolve
from lance_dataset.table.manifest import encode_manifest, read_manifest
from lance_dataset.table.versions import locate_version

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
VALUES = [b"hello", None, b"", b"x" * 100, b"yy", None, bytes(range(256)) * 40, b"z"]


def build_table(rows: int = 24) -> pa.Table:
    values = pa.array((VALUES * rows)[:rows], pa.large_binary())
    inner = pa.array((VALUES[3:] * rows)[:rows], pa.large_binary())
    mask = pa.array([row % 5 == 1 for row in range(rows)])
    numbers = pa.array(range(rows))
    struct = pa.StructArray.from_arrays([inner, numbers], fields=[BLOB, pa.field("y", pa.int64())], mask=mask)
    plain = pa.array([b"p%d" % row for row in range(rows)], pa.large_binary())
    schema = pa.schema([("i", pa.int64()), BLOB, ("s", struct.type), ("p", pa.large_binary())])
    return pa.table([numbers, values, struct, plain], schema=schema)


@pytest.fixture(scope="module", params=["lance", "lance_dataset"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return three fragments with deleted rows, written by either library, opened by both."""
    path = tmp_path_factory.mktemp("blobs") / "data.lance"
    module = lance if request.param == "lance" else lance_dataset
    written = module.write_dataset(build_table(), path, data_storage_version="2.1", max_rows_per_file=10)
    written.delete("i in (0, 7, 12)")
    return lance_dataset.dataset(path), lance.dataset(path)


# -- scans -------------------------------------------------------------------------------------------------------

SCANS: dict[str, Any] = {
    "default": {},
    "descriptions": {"blob_handling": "blobs_descriptions"},
    "all descriptions": {"blob_handling": "all_descriptions"},
    "binary": {"blob_handling": "all_binary"},
    "columns": {"columns": ["b", "i"], "blob_handling": "all_binary"},
    "nested": {"columns": ["s.b"]},
    "nested binary": {"columns": ["s.b"], "blob_handling": "all_binary"},
    "not null": {"filter": "b IS NOT NULL"},
    "null": {"filter": "b IS NULL", "blob_handling": "all_binary"},
    "nested null": {"filter": "s.b IS NULL", "columns": ["i", "s"]},
    "other filter": {"filter": "i > 15", "blob_handling": "all_binary"},
    "few rows": {"filter": "i = 21", "blob_handling": "all_binary"},
    "limit": {"limit": 3, "offset": 8},
    "renamed": {"columns": {"x": "b"}},
    "renamed binary": {"columns": {"x": "b"}, "blob_handling": "all_binary"},
    "ids": {"with_row_id": True, "with_row_address": True},
    "ordered": {"order_by": ["p"], "blob_handling": "all_binary"},
    "unknown": {"blob_handling": "zzz"},
}


@pytest.mark.parametrize("name", SCANS)
def test_scan(both: tuple[Any, Any], name: str) -> None:
    options = SCANS[name]
    check_call(lambda library, dataset: dataset.to_table(**options), both)
    check_call(lambda library, dataset: pa.Table.from_batches(dataset.to_batches(batch_size=3, **options)), both)


def test_schemas(both: tuple[Any, Any]) -> None:
    mine, theirs = both
    assert mine.schema.equals(theirs.schema, check_metadata=True)
    for handling in (None, "all_binary"):
        scanners = [dataset.scanner(blob_handling=handling) for dataset in both]
        assert scanners[0].projected_schema.equals(scanners[1].projected_schema, check_metadata=True)
        assert scanners[0].dataset_schema.equals(scanners[1].dataset_schema, check_metadata=True)
    defaults = lance_dataset.dataset(mine.uri, default_scan_options={"blob_handling": "all_binary"})
    assert defaults.to_table()["b"].to_pylist() == mine.to_table(blob_handling="all_binary")["b"].to_pylist()


def test_parts_of_descriptions(both: tuple[Any, Any]) -> None:
    mine, _ = both
    whole = mine.to_table(columns=["b"])["b"].to_pylist()
    assert mine.to_table(columns=["b.size"])["b.size"].to_pylist() == [row and row["size"] for row in whole]
    assert mine.to_table(columns=["b.size", "b.position"]).num_columns == 2
    large = mine.to_table(filter="b.size > 100", columns=["b"])["b"].to_pylist()
    assert large == [row for row in whole if row and row["size"] > 100]
    nested = [row and row["b"] for row in mine.to_table()["s"].to_pylist()]
    assert mine.count_rows("s.b.size = 100") == len([row for row in nested if row and row["size"] == 100]) > 0


def test_take(both: tuple[Any, Any]) -> None:
    mine, theirs = both
    rows = [20, 0, 3, 3, 11]
    for columns in (None, ["b"], ["s.b"], {"x": "b"}):
        assert mine.take(rows, columns=columns).to_pylist() == theirs.take(rows, columns=columns).to_pylist()


def test_fragments(both: tuple[Any, Any]) -> None:
    fragments = [dataset.get_fragments()[1] for dataset in both]
    assert fragments[0].to_table().to_pylist() == fragments[1].to_table().to_pylist()
    assert fragments[0].take([0, 4]).to_pylist() == fragments[1].take([0, 4]).to_pylist()  # values, as in the reference
    binary = [fragment.to_table(blob_handling="all_binary").to_pylist() for fragment in fragments]
    assert binary[0] == binary[1]


def test_delete_by_null(tmp_path: Path) -> None:
    dataset = lance_dataset.write_dataset(build_table(), tmp_path / "a.lance", data_storage_version="2.1")
    assert dataset.delete("b IS NULL") == {"num_deleted_rows": 6}
    assert dataset.get_fragments()[0].delete("b.size = 0").num_deletions == 9


# -- DataFrames --------------------------------------------------------------------------------------------------


def contents(value: Any) -> Any:
    if hasattr(value, "readall"):
        return value.readall()
    return {name: contents(item) for name, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("mode", ["lazy", "bytes", "descriptions"])
@pytest.mark.parametrize("columns", [None, ["b"], ["i", "s"], {"x": "b"}])
def test_pandas(both: tuple[Any, Any], mode: str, columns: Any) -> None:
    frames = [dataset.to_pandas(columns=columns, blob_mode=mode, filter="i != 3") for dataset in both]
    assert list(frames[0].columns) == list(frames[1].columns)
    for name in frames[0].columns:
        pairs = [[contents(value) for value in frame[name]] for frame in frames]
        assert pairs[0] == pairs[1]


def test_pandas_default_is_files(both: tuple[Any, Any]) -> None:
    mine, _ = both
    frame = mine.to_pandas(with_row_address=True, limit=3)
    assert list(frame.columns) == ["i", "b", "s", "p", "_rowaddr"]
    assert [type(value).__name__ for value in frame["b"]] == ["NoneType", "BlobFile", "BlobFile"]
    with pytest.raises(InvalidInputError, match="blob_mode must be one of"):
        mine.to_pandas(blob_mode="no")
    with pytest.raises(UnsupportedError, match="deleted rows"):
        mine.to_pandas(include_deleted_rows=True, with_row_id=True)


# -- files -------------------------------------------------------------------------------------------------------

ROWS: dict[str, dict[str, Any]] = {
    "indices": {"indices": [3, 0, 3, 20, 1]},
    "array": {"indices": pa.array([5, 2])},
    "numpy": {"indices": np.array([5, 2])},
    "ids": {"ids": [(1 << 32) + 3, 1, 4]},
    "addresses": {"addresses": [(2 << 32) + 3, 1, 4]},
    "none of them": {"indices": []},
    "no selector": {},
    "two selectors": {"indices": [0], "ids": [0]},
    "row out of range": {"indices": [99]},
    "id out of range": {"ids": [99]},
    "fragment out of range": {"addresses": [9 << 32]},
    "negative": {"indices": [-1]},
    "deleted address": {"addresses": [0]},
    "deleted id": {"ids": [0, 1]},
}


@pytest.mark.parametrize("column", ["b", "s.b", "i", "s", "nowhere"])
@pytest.mark.parametrize("rows", ROWS)
def test_blobs_of_rows(both: tuple[Any, Any], rows: str, column: str) -> None:
    def files(library: Any, dataset: Any) -> Any:
        return [blob and (blob.size(), blob.readall()) for blob in dataset.take_blobs(column, **ROWS[rows])]

    check_call(files, both)
    check_call(lambda library, dataset: dataset.read_blobs(column, **ROWS[rows]), both)


RANGES = {
    "parts": ([(1, 0, 2), (2, 99, 1), (0, 0, 0), (2, 0, 100)], "indices"),
    "null": ([(0, 5, 5)], "indices"),
    "past the end": ([(2, 99, 2)], "indices"),
    "empty at the end": ([(2, 100, 0)], "indices"),
    "ids": ([(3, 1, 2), (4, 0, 1)], "ids"),
    "addresses": ([((1 << 32) + 1, 1, 2)], "addresses"),
    "nothing": ([], "ids"),
    "negative": ([(2, -1, 2)], "indices"),
    "selector": ([(2, 1, 2)], "rows"),
}


@pytest.mark.parametrize("name", RANGES)
def test_blob_ranges(both: tuple[Any, Any], name: str) -> None:
    requests, selector = RANGES[name]
    check_call(lambda library, dataset: dataset.read_blob_ranges("b", requests, selector=selector), both)


def test_stable_row_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    lance.write_dataset(
        build_table(), path, data_storage_version="2.1", max_rows_per_file=10, enable_stable_row_ids=True
    ).delete("i in (0, 15)")
    both = lance_dataset.dataset(path), lance.dataset(path)
    for ids in ([20, 3, 3], [11], [15], [99], []):
        check_call(lambda library, dataset, ids=ids: dataset.read_blobs("b", ids=ids), both)


def test_several_stores(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    lance_dataset.write_dataset(build_table(), path, data_storage_version="2.1")
    plain = lance_dataset.dataset(path, storage_options={"mmap": "false"})
    (blob,) = plain.take_blobs("b", indices=[6], buffer_size=64)
    assert blob is not None
    assert [blob.read(3), blob.read(50), blob.read(50)] == [VALUES[6][:3], VALUES[6][3:53], VALUES[6][53:103]]
    assert blob.readall() == VALUES[6][103:]
    assert plain.to_table(blob_handling="all_binary")["b"].to_pylist() == build_table()["b"].to_pylist()


ACTIONS: dict[str, Any] = {
    "read": lambda blob: [blob.read(3), blob.tell(), blob.read(), blob.read(), blob.tell()],
    "read all": lambda blob: [blob.seek(95), blob.readall()],
    "negative size": lambda blob: [blob.seek(98), blob.read(-5)],
    "size None": lambda blob: [blob.seek(98), blob.read(None)],
    "seek from the end": lambda blob: [blob.seek(-2, 2), blob.read()],
    "seek from here": lambda blob: [blob.seek(10), blob.seek(5, 1), blob.tell()],
    "seek past the end": lambda blob: [blob.seek(1000), blob.tell(), blob.read(5)],
    "seek before the start": lambda blob: blob.seek(-5),
    "bad whence": lambda blob: blob.seek(0, 9),
    "range": lambda blob: [blob.read_range(98, 2), blob.tell()],
    "empty range": lambda blob: blob.read_range(100, 0),
    "range past the end": lambda blob: blob.read_range(98, 3),
    "negative range": lambda blob: blob.read_range(-1, 3),
    "ranges": lambda blob: [blob.read_ranges([(0, 2), (5, 1), (7, 0)]), blob.read_ranges([])],
    "into": lambda blob: [blob.readinto(target := bytearray(4)), target, blob.tell()],
    "into bytes": lambda blob: blob.readinto(b"abcd"),
    "read1": lambda blob: blob.read1(3),
    "flags": lambda blob: [blob.readable(), blob.seekable(), blob.writable(), blob.closed],
    "lines": lambda blob: [blob.readline(), blob.readlines()],
    "write": lambda blob: blob.write(b"x"),
    "file number": lambda blob: blob.fileno(),
    "closed": lambda blob: [blob.close(), blob.closed, blob.close(), blob.size()],
    "read closed": lambda blob: [blob.close(), blob.read()],
    "tell closed": lambda blob: [blob.close(), blob.tell()],
    "seek closed": lambda blob: [blob.close(), blob.seek(0)],
    "range closed": lambda blob: [blob.close(), blob.read_range(0, 1)],
    "with": lambda blob: [blob.__enter__().read(2), blob.__exit__(None, None, None), blob.closed],
    "text": lambda blob: io.TextIOWrapper(blob).read(),
    "shown": repr,
}


@pytest.mark.parametrize("name", ACTIONS)
def test_file(both: tuple[Any, Any], name: str) -> None:
    check_call(lambda library, dataset: ACTIONS[name](dataset.take_blobs("b", indices=[2])[0]), both)


def test_wrong_sizes(both: tuple[Any, Any]) -> None:
    mine, _ = both
    with pytest.raises(InvalidInputError, match="buffer_size"):
        mine.take_blobs("b", indices=[1], buffer_size=-1)
    with pytest.raises(InvalidInputError, match="io_buffer_size"):
        mine.read_blobs("b", indices=[1], io_buffer_size=0)
    with pytest.raises(FieldNotFoundError, match="did you mean 's'"):
        mine.take_blobs("S", indices=[0])


def test_datasets_of_2_0(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    table = build_table().select(["i", "b"])
    lance.write_dataset(table, path, data_storage_version="2.0", max_rows_per_file=10).delete("i in (0, 7, 12)")
    both = lance_dataset.dataset(path), lance.dataset(path)
    for options in ({}, {"blob_handling": "all_binary"}, {"filter": "b IS NULL"}, {"filter": "i > 9", "limit": 5}):
        check_call(lambda library, dataset, options=options: dataset.to_table(**options), both)
    check_call(lambda library, dataset: dataset.read_blobs("b", indices=[20, 0, 1, 5, 5]), both)
    check_call(lambda library, dataset: dataset.take([20, 0, 1, 5, 5]), both)
    check_call(lambda library, dataset: dataset.get_fragments()[0].take([0, 1]), both)
    check_call(lambda library, dataset: dataset.to_pandas(blob_mode="bytes")["b"].tolist(), both)
    frames = [dataset.to_pandas() for dataset in both]
    assert frames[0]["b"].map(contents).tolist() == frames[1]["b"].map(contents).tolist()


# -- writing -----------------------------------------------------------------------------------------------------


def test_append_by_either(tmp_path: Path) -> None:
    path, table = tmp_path / "a.lance", build_table()
    lance_dataset.write_dataset(table, path, data_storage_version="2.1")
    lance.write_dataset(table, path, mode="append")
    lance_dataset.write_dataset(table, path, mode="append")
    for module in (lance, lance_dataset):
        found = module.dataset(path).to_table(blob_handling="all_binary")
        assert found.to_pylist() == table.to_pylist() * 3


@pytest.mark.parametrize("fragment_id", [2**31 - 1, 2**31, 2**32 - 1])
def test_large_fragment_ids(tmp_path: Path, fragment_id: int) -> None:
    """Addresses have no sign."""
    path = tmp_path / "t"
    schema = pa.schema([BLOB])
    lance_dataset.write_dataset(pa.table([[b"one", None]], schema=schema), path, data_storage_version="2.1")
    store, root = resolve(str(path))
    name = locate_version(store, root, 1)
    manifest = read_manifest(store, name)
    moved = replace(manifest.fragments[0], id=fragment_id)
    store.put(name, encode_manifest(replace(manifest, fragments=(moved,), max_fragment_id=fragment_id)))
    dataset, address = lance_dataset.dataset(path), fragment_id << 32
    for rows in ({"addresses": [address, address + 1]}, {"ids": [address, address + 1]}, {"indices": [0, 1]}):
        assert dataset.read_blobs("b", **rows) == [(address, b"one"), (address + 1, None)]
        (found, nothing) = dataset.take_blobs("b", **rows)
        assert found.read() == b"one"
        assert nothing is None
    with pytest.raises(InvalidInputError, match="out of range"):
        dataset.take_blobs("b", addresses=[address + 2])


def test_versions_without_blobs(tmp_path: Path) -> None:
    """Columns of version 1 inside lists cannot become columns of version 2."""
    lists = pa.table({"l": pa.array([[b"a"]], pa.list_(BLOB.with_name("item")))})
    with pytest.raises(UnsupportedError, match=r'blobs inside lists|data_storage_version="2.1"'):
        lance_dataset.write_dataset(lists, tmp_path / "a.lance", data_storage_version="2.2")
    assert not (tmp_path / "a.lance" / "_versions").exists()
