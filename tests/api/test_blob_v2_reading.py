"""Tests of reading blob columns of version 2 that the reference writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import Blob, blob_array, blob_field

import lance_dataset
from lance_dataset.errors import CorruptFileError, InvalidInputError, MissingFileError, UnsafePathError

VALUES: list[Any] = [b"hello", None, b"", b"x" * 70000, b"y" * 100000, b"z" * 300_000, b"last"]


def build_table(outside: Path) -> pa.Table:
    whole = outside.as_uri()
    values = [*VALUES, Blob.from_uri(whole), Blob.from_uri(whole, 10, 20)]
    field = blob_field("b", dedicated_size_threshold=200_000)
    inner = blob_array([b"in", None, b"", b"q" * 70000, *[b"%d" % row for row in range(5)]])
    numbers = pa.array(range(len(values)))
    struct = pa.StructArray.from_arrays(
        [inner, numbers], fields=[blob_field("q"), pa.field("n", pa.int64())], mask=pa.array([False] * 8 + [True])
    )
    fields = [pa.field("i", pa.int64()), field, pa.field("s", struct.type)]
    return pa.Table.from_arrays([numbers, blob_array(values), struct], schema=pa.schema(fields))


@pytest.fixture(scope="module", params=["2.2", "2.3"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of two fragments with a deleted row."""
    folder = tmp_path_factory.mktemp("blobs")
    (folder / "outside.bin").write_bytes(bytes(range(256)) * 4)
    table = build_table(folder / "outside.bin")
    written = lance.write_dataset(
        table,
        folder / "t",
        data_storage_version=request.param,
        max_rows_per_file=6,
        allow_external_blob_outside_bases=True,
    )
    written.delete("i = 4")
    return folder / "t"


SCANS: dict[str, Any] = {
    "default": {},
    "descriptions": {"blob_handling": "blobs_descriptions"},
    "all descriptions": {"blob_handling": "all_descriptions"},
    "binary": {"blob_handling": "all_binary"},
    "nested": {"columns": ["s.q", "i"]},
    "nested binary": {"columns": ["s.q"], "blob_handling": "all_binary"},
    "size": {"columns": ["b.size"]},
    "parts": {"columns": ["b.kind", "b.blob_uri"]},
    "renamed": {"columns": {"x": "b.size"}},
    "filter on size": {"filter": "b.size > 20"},
    "not null": {"filter": "b IS NOT NULL", "blob_handling": "all_binary"},
    "limit": {"limit": 3, "offset": 4, "blob_handling": "all_binary"},
}


@pytest.mark.parametrize("options", SCANS.values(), ids=SCANS.keys())
def test_scan(path: Path, options: dict[str, Any]) -> None:
    found = lance_dataset.dataset(path).to_table(**options)
    expected = lance.dataset(path).to_table(**options)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.to_pylist() == expected.to_pylist()


def test_schema_and_take(path: Path) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.take([6, 0, 1, 6]).to_pylist() == theirs.take([6, 0, 1, 6]).to_pylist()
    assert ours.head(3).to_pylist() == theirs.head(3).to_pylist()


@pytest.mark.parametrize("column", ["b", "s.q"])
def test_files(path: Path, column: str) -> None:
    ours, theirs = lance_dataset.dataset(path), lance.dataset(path)
    rows = [7, 0, 1, 2, 3, 4, 5, 6, 0]
    found, expected = (each.take_blobs(column, indices=rows) for each in (ours, theirs))
    assert [blob and (blob.size(), blob.read()) for blob in found] == [
        blob and (blob.size(), blob.read()) for blob in expected
    ]
    assert ours.read_blobs(column, indices=rows) == theirs.read_blobs(column, indices=rows)
    requests = [(0, 1, 1), (1, 3, 5), (3, 0, 2)]
    for each in (ours, theirs):
        result = each.read_blob_ranges(column, requests, selector="indices")
        assert result == ours.read_blob_ranges(column, requests, selector="indices")


def test_file_seeks(path: Path) -> None:
    file = lance_dataset.dataset(path).take_blobs("b", indices=[7])[0]
    assert file is not None
    assert file.size() == 20
    file.seek(15)
    assert file.read(100) == bytes(range(25, 30))
    assert file.read_range(1, 2) == bytes([11, 12])


def test_pandas(path: Path) -> None:
    frame = lance_dataset.dataset(path).to_pandas(columns=["b"])
    assert frame["b"][0].read() == b"hello"
    values = lance_dataset.dataset(path).to_pandas(columns=["b"], blob_mode="bytes")["b"]
    assert [value for value in values if value] == [value for value in [*VALUES[:4], *VALUES[5:]] if value] + [
        bytes(range(256)) * 4,
        bytes(range(10, 30)),
    ]


@pytest.mark.parametrize("make", [pa.ListArray, pa.LargeListArray])
def test_lists(tmp_path: Path, make: Any) -> None:
    """The reference reads blobs inside lists by full scans only."""
    lists = make.from_arrays([0, 2, 2, 3, 3, 5], blob_array([b"1", None, b"", b"4" * 70000, b"5"]))
    lance.write_dataset(pa.table([lists], names=["l"]), tmp_path)
    for form in (None, "all_binary"):
        expected = lance.dataset(tmp_path).to_table(blob_handling=form)
        found = lance_dataset.dataset(tmp_path).to_table(blob_handling=form)
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.to_pylist() == expected.to_pylist()
    files = lance_dataset.dataset(tmp_path).to_pandas()["l"]
    assert [[blob and blob.read() for blob in row] for row in files] == found["l"].to_pylist()
    values = lance_dataset.dataset(tmp_path).to_table(filter="true", blob_handling="all_binary", limit=2, offset=3)
    assert values["l"].to_pylist() == [[], [b"4" * 70000, b"5"]]


def test_old_files_below_a_new_schema(tmp_path: Path) -> None:
    """An append in version 2.2 converts the column; descriptions of older files become descriptors."""
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", "k": "v"})])
    for version in ("2.0", "2.1", "2.2"):
        table = pa.table([[version.encode(), None, b""]], schema=schema)
        lance.write_dataset(table, tmp_path, data_storage_version=version, mode="append")
    ours, theirs = lance_dataset.dataset(tmp_path), lance.dataset(tmp_path)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table().slice(3).to_pylist() == theirs.to_table().slice(3).to_pylist()
    assert ours.to_table()["b"].null_count == 3
    values = ours.to_table(blob_handling="all_binary")
    assert values.schema.equals(theirs.to_table(blob_handling="all_binary").schema, check_metadata=True)
    assert values["b"].to_pylist() == [b"2.0", None, b"", b"2.1", None, b"", b"2.2", None, b""]
    blobs = ours.take_blobs("b", indices=range(9))
    assert [None if blob is None else blob.read() for blob in blobs] == values["b"].to_pylist()


# -- files that are missing or damaged ---------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "outside.bin").write_bytes(b"0123456789" * 4)
    table = build_table(tmp_path / "outside.bin")
    lance.write_dataset(table, tmp_path / "t", allow_external_blob_outside_bases=True)
    return tmp_path / "t"


def side_file(path: Path, number: int) -> Path:
    (found,) = path.glob(f"data/*/{format(number, '032b')[::-1]}.blob")
    return found


def test_missing_side_file(small: Path) -> None:
    side_file(small, 1).unlink()
    dataset = lance_dataset.dataset(small)
    assert dataset.to_table().num_rows == 9
    file = dataset.take_blobs("b", indices=[3])[0]
    assert file is not None
    for read in (
        file.read,
        lambda: dataset.read_blobs("b", indices=[3]),
        lambda: dataset.to_table(blob_handling="all_binary"),
    ):
        with pytest.raises(MissingFileError, match=r"1000.*\.blob does not exist: it holds values of a blob column"):
            read()


def test_short_side_file(small: Path) -> None:
    os.truncate(side_file(small, 2), 10)
    dataset = lance_dataset.dataset(small)
    file = dataset.take_blobs("b", indices=[5])[0]
    assert file is not None
    for read in (
        file.read,
        lambda: file.read_range(20, 5),
        lambda: dataset.read_blobs("b", indices=[5]),
        lambda: dataset.to_table(blob_handling="all_binary"),
    ):
        with pytest.raises(CorruptFileError, match="a blob has 300000 bytes at 0, but the file has 10"):
            read()


def test_missing_external_object(small: Path) -> None:
    (small.parent / "outside.bin").unlink()
    dataset = lance_dataset.dataset(small)
    with pytest.raises(MissingFileError, match="refers to it as the value of a blob column"):
        dataset.take_blobs("b", indices=[7])
    with pytest.raises(MissingFileError, match=r"outside\.bin"):
        dataset.to_table(blob_handling="all_binary")


def test_untrusted_external_object(small: Path) -> None:
    dataset = lance_dataset.dataset(small, trusted_bases=[])
    assert dataset.read_blobs("b", indices=[0])[0][1] == b"hello"
    with pytest.raises(UnsafePathError, match=r"outside\.bin"):
        dataset.read_blobs("b", indices=[7])


def test_column_without_blobs(small: Path) -> None:
    with pytest.raises(InvalidInputError, match="not a blob column"):
        lance_dataset.dataset(small).take_blobs("i", indices=[0])
