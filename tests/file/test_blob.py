"""Tests of blob columns of 2.1 and 2.2 files, with the reference as the other reader and writer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_dataset import file
from lance_dataset.errors import CorruptFileError, LanceError, UnsupportedError
from lance_dataset.file.blob_fields import described, undescribed
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.reader import DataFileReader
from lance_dataset.file.structural.layout import BlobLayout, Layer, MiniBlockLayout
from lance_dataset.file.structural.read.blob import DESCRIPTION_BRANCH, BlobPage
from lance_dataset.file.structural.read.miniblock import MiniBlockPage
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.v2_1.messages import parse_page_layout
from lance_dataset.io.resolve import resolve

VERSIONS = ["2.1", "2.2"]
BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
VALUES = [b"hello", None, b"", b"x" * 100, b"yy", None, bytes(range(256)), b"\0"]


def blobs(values: list[bytes | None]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def in_struct(values: pa.Array, mask: list[bool]) -> pa.StructArray:
    return pa.StructArray.from_arrays([values], fields=[BLOB], mask=pa.array(mask, pa.bool_()))


CASES: dict[str, pa.Array] = {
    "mixed": blobs(VALUES),
    "all valid": blobs([b"a", b"", b"bc"] * 200),
    "all null": blobs([None] * 5),
    "all empty": blobs([b""] * 5),
    "one": blobs([b"only"]),
    "none": blobs([]),
    "many": blobs([b"%d" % number if number % 3 else None for number in range(1000)]),
    "large": blobs([b"a" * 50_000, None, b"", b"b" * 64_000, b"c"]),
    "sliced": blobs(VALUES * 3).slice(5, 14),
    "in a struct": in_struct(blobs(VALUES), [False, False, True, True, False, False, False, True]),
    "in a null struct": in_struct(blobs([b"a", None]), [True, True]),
    "in a valid struct": in_struct(blobs(VALUES), [False] * 8),
    "in a sliced struct": in_struct(blobs(VALUES), [number % 2 == 0 for number in range(8)]).slice(3, 4),
}


def field_of(array: pa.Array) -> pa.Field:
    return BLOB if pa.types.is_large_binary(array.type) else pa.field("s", array.type)


def write(module: Any, path: Path, array: pa.Array, version: str) -> Path:
    schema = pa.schema([field_of(array)])
    with module.LanceFileWriter(str(path), schema, version=version) as writer:
        writer.write_batch(pa.record_batch([array], schema=schema))
    return path


def read(module: Any, path: Path) -> list[Any]:
    column = module.LanceFileReader(str(path)).read_all().to_table().column(0)
    column.validate(full=True)
    return column.to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_written_and_read_by_either(tmp_path: Path, name: str, version: str) -> None:
    array = CASES[name]
    mine = write(file, tmp_path / "mine.lance", array, version)
    theirs = write(lance.file, tmp_path / "theirs.lance", array, version)
    assert read(file, mine) == array.to_pylist()
    assert read(file, theirs) == array.to_pylist()
    if len(array):  # the reference fails to read zero rows
        assert read(lance.file, mine) == array.to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mapped", [True, False])
def test_take_and_ranges(tmp_path: Path, version: str, mapped: bool) -> None:
    array = CASES["many"]
    for module in (file, lance.file):
        path = write(module, tmp_path / f"{module.__name__}.lance", array, version)
        reader = file.LanceFileReader(path, None if mapped else {"mmap": "false"})
        rows = [999, 0, 1, 1, 998, 256, 255, 3]
        assert reader.take_rows(rows).to_table().column(0).to_pylist() == [array[row].as_py() for row in rows]
        assert reader.take_rows([1]).to_table().column(0).to_pylist() == [b"1"]
        assert reader.take_rows([]).to_table().num_rows == 0
        found = reader.read_range(250, 20).to_table().column(0).to_pylist()
        assert found == array.slice(250, 20).to_pylist()


def layouts(path: Path) -> list[Any]:
    store, location = resolve(path, None)
    metadata = FileMetadata(store.open_input(location))
    return [(page.length, parse_page_layout(page.encoding)) for page in metadata.column(0).pages]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mixed", "all valid", "all null", "all empty", "large", "many", "in a struct"])
def test_same_file_as_the_reference(tmp_path: Path, name: str, version: str) -> None:
    array = CASES[name]
    mine = write(file, tmp_path / "mine.lance", array, version)
    theirs = write(lance.file, tmp_path / "theirs.lance", array, version)
    assert layouts(mine) == layouts(theirs)
    pages = [lance.file.LanceFileReader(str(path)).metadata().columns[0].pages for path in (mine, theirs)]
    ends = []
    for own in pages:
        assert len(own) == 1
        ends.append(max(buffer.position + buffer.size for buffer in own[0].buffers))
    assert mine.read_bytes()[: ends[0]] == theirs.read_bytes()[: ends[1]]


def open_described(path: Path) -> pa.Array:
    store, location = resolve(path, None)
    reader = DataFileReader(store.open_input(location))
    return reader.column(described(reader.schema.fields[0])).read(0, reader.num_rows)


def test_descriptions(tmp_path: Path) -> None:
    path = write(lance.file, tmp_path / "a.lance", CASES["mixed"], "2.1")
    found = open_described(path)
    found.validate(full=True)
    content = path.read_bytes()
    for description, value in zip(found.to_pylist(), VALUES, strict=True):
        if value is None:
            assert description is None
        else:
            position, size = description["position"], description["size"]
            assert content[position : position + size] == value
            assert position % 64 == 0
    # position and size can be null by themselves, as in the result of the reference
    assert found.field("size").null_count == VALUES.count(None)


def test_descriptions_in_a_struct(tmp_path: Path) -> None:
    path = write(file, tmp_path / "a.lance", CASES["in a struct"], "2.1")
    sizes = [row if row is None else row["b"] and row["b"]["size"] for row in open_described(path).to_pylist()]
    values = [row and row["b"] for row in CASES["in a struct"].to_pylist()]
    assert sizes == [None if value is None else len(value) for value in values]


def test_described_and_back(tmp_path: Path) -> None:
    path = write(file, tmp_path / "a.lance", CASES["in a struct"], "2.1")
    store, location = resolve(path, None)
    field = DataFileReader(store.open_input(location)).schema.fields[0]
    assert described(field) != field
    assert described(described(field)) == described(field)
    assert undescribed(described(field)) == field


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.none() | st.binary(max_size=200), min_size=1, max_size=600),
    version=st.sampled_from(VERSIONS),
    pages=st.integers(1, 3),
)
def test_round_trip(tmp_path: Path, values: list[bytes | None], version: str, pages: int) -> None:
    array = blobs(values)
    schema = pa.schema([BLOB])
    with file.LanceFileWriter(tmp_path / "a.lance", schema, version=version, data_cache_bytes=1) as writer:
        for _ in range(pages):
            writer.write_batch(pa.record_batch([array], schema=schema))
    assert read(file, tmp_path / "a.lance") == values * pages
    assert read(lance.file, tmp_path / "a.lance") == values * pages


# -- 2.0 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mixed", "all valid", "all null", "all empty", "one", "many", "in a valid struct"])
@pytest.mark.parametrize("mapped", [True, False])
def test_files_of_2_0(tmp_path: Path, name: str, mapped: bool) -> None:
    array = CASES[name]
    path = write(lance.file, tmp_path / "a.lance", array, "2.0")
    assert read(file, path) == array.to_pylist()
    reader = file.LanceFileReader(path, None if mapped else {"mmap": "false"})
    rows = [len(array) - 1, 0, 0, len(array) // 2]
    assert reader.take_rows(rows).to_table().column(0).to_pylist() == [array[row].as_py() for row in rows]
    assert reader.take_rows([]).to_table().num_rows == 0
    mine = write(file, tmp_path / "b.lance", array, "2.0")
    assert read(file, mine) == array.to_pylist()
    assert read(lance.file, mine) == array.to_pylist()


def test_several_pages_of_2_0(tmp_path: Path) -> None:
    schema, array = pa.schema([BLOB]), CASES["many"]
    with lance.file.LanceFileWriter(
        str(tmp_path / "a.lance"), schema, version="2.0", max_page_bytes=1000, data_cache_bytes=1
    ) as writer:
        for _ in range(3):
            writer.write_batch(pa.record_batch([array], schema=schema))
    reader = file.LanceFileReader(tmp_path / "a.lance")
    assert reader.read_range(900, 1500).to_table()["b"].to_pylist() == (array.to_pylist() * 3)[900:2400]
    rows = [2999, 1000, 999, 2000, 0, 1000]
    assert reader.take_rows(rows).to_table()["b"].to_pylist() == [array[row % 1000].as_py() for row in rows]


# -- what is refused ---------------------------------------------------------------------------------------------


def bad_schema(field: pa.Field, version: str) -> None:
    with file.LanceFileWriter("memory://never", pa.schema([field]), version=version):
        raise AssertionError("the schema was accepted")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.int64(), pa.list_(pa.large_binary())])
def test_other_types_are_refused(kind: pa.DataType, version: str) -> None:
    with pytest.raises(UnsupportedError, match=r"'b'.*blobs"):
        bad_schema(BLOB.with_type(kind), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_of_blobs_are_refused(tmp_path: Path, version: str) -> None:
    field = pa.field("l", pa.list_(BLOB))
    with pytest.raises(UnsupportedError, match="inside lists"):
        bad_schema(field, version)
    array = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), blobs([b"a", b"b"]), type=field.type)
    path = write(lance.file, tmp_path / "a.lance", array, version)
    with pytest.raises(UnsupportedError, match="inside a list"):
        file.LanceFileReader(path).read_all().to_table()


def page_of(tmp_path: Path, rows: list[tuple[int, int]], layers: tuple[Layer, ...], kind: pa.DataType) -> BlobPage:
    """Return a page with these rows of descriptions, which follows 64 bytes of values."""
    chunks = b"\0\0" + (len(rows) * 16).to_bytes(2, "little") + b"\xfe" * 4 + np.array(rows, np.uint64).tobytes()
    words = ((len(chunks) // 8 - 1) << 4).to_bytes(2, "little")
    (tmp_path / "page").write_bytes(b"v" * 64 + chunks + words)
    store, location = resolve(tmp_path / "page", None)
    template = write(lance.file, tmp_path / "template.lance", blobs([b"a"]), "2.1")
    ((_, layout),) = layouts(template)
    assert isinstance(layout, BlobLayout)
    assert isinstance(layout.inner, MiniBlockLayout)
    inner = replace(layout.inner, num_items=len(rows))
    buffers = ((64 + len(chunks), 2), (64, len(chunks)))
    page = Page(store.open_input(location), "page", 0, len(rows), BlobLayout(inner, layers), buffers)
    descriptions = MiniBlockPage(page, inner, DESCRIPTION_BRANCH.leaf.storage_type, 1)
    return BlobPage(page, BlobLayout(inner, layers), descriptions, kind)


NULLABLE = (Layer.NULLABLE_ITEM,)
VALID = (Layer.ALL_VALID_ITEM,)


def test_hand_made_page(tmp_path: Path) -> None:
    leaf = page_of(tmp_path, [(3, 2), (0, 0), (0x10000, 0), (0, 64)], NULLABLE, pa.large_binary()).read(0, 4)
    assert leaf.values.to_pylist() == [b"vv", b"", b"", b"v" * 64]
    assert np.frombuffer(leaf.definition, np.uint16).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", [pa.large_binary(), DESCRIPTION_BRANCH.leaf.storage_type])
@pytest.mark.parametrize(
    ("row", "layers", "message"),
    [
        ((1 << 40, 5), NULLABLE, "file has"),
        ((0, 1 << 40), NULLABLE, "file has"),
        ((2**64 - 1, 2**64 - 1), NULLABLE, "file has"),
        ((2**64 - 8, 16), NULLABLE, "file has"),
        ((1, 0), NULLABLE, "definition level"),
        ((0x10001, 0), NULLABLE, "definition level"),
        ((0x20000, 0), NULLABLE, "definition level"),
        ((2**63, 0), NULLABLE, "definition level"),
        ((0x10000, 0), VALID, "definition level"),
    ],
)
def test_impossible_descriptions(
    tmp_path: Path, row: tuple[int, int], layers: tuple[Layer, ...], message: str, kind: pa.DataType
) -> None:
    page = page_of(tmp_path, [(0, 1), row], layers, kind)
    with pytest.raises(CorruptFileError, match=message):
        page.read(0, 2)
    with pytest.raises(CorruptFileError, match=message):
        page.take(np.array([1]))


def test_values_that_share_their_bytes(tmp_path: Path) -> None:
    page = page_of(tmp_path, [(10, 20), (0, 64), (5, 10)], VALID, pa.large_binary())
    assert page.read(0, 3).values.to_pylist() == [b"v" * 20, b"v" * 64, b"v" * 10]
    many = page_of(tmp_path, [(0, 4000)] * 250, VALID, pa.large_binary())
    with pytest.raises(CorruptFileError, match="250 values claim 1000000 bytes of a file of"):
        many.read(0, 250)
    assert len(many.take(np.zeros(250, np.int64)).values) == 250  # repeated requests do not count


def test_pages_of_blobs_in_other_columns(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="page of blobs in a column of type string"):
        page_of(tmp_path, [(0, 1)], VALID, pa.string())


def test_descriptions_of_an_ordinary_column(tmp_path: Path) -> None:
    schema = pa.schema([BLOB.remove_metadata()])
    with file.LanceFileWriter(tmp_path / "a.lance", schema, version="2.1") as writer:
        writer.write_batch(pa.record_batch([blobs([b"a"])], schema=schema))
    store, location = resolve(tmp_path / "a.lance", None)
    reader = DataFileReader(store.open_input(location))
    field = replace(reader.schema.fields[0], metadata={"lance-encoding:blob": b"true"})
    assert reader.column(field).read(0, 1).to_pylist() == [b"a"]
    with pytest.raises(UnsupportedError, match="all_binary"):
        reader.column(described(field)).read(0, 1)


@pytest.mark.parametrize("version", ["2.0", *VERSIONS])
@pytest.mark.parametrize("name", ["mixed", "in a struct"])
def test_damaged_files(tmp_path: Path, name: str, version: str) -> None:
    array = CASES["in a valid struct" if version == "2.0" and name == "in a struct" else name]
    path = write(lance.file, tmp_path / "a.lance", array, version)
    content = path.read_bytes()
    rng = np.random.default_rng(7)
    # half of the damage changes the descriptions, which follow the last value
    for round_ in range(300):
        damaged = bytearray(content)
        low = content.rindex(b"yy") if round_ % 2 else 0
        for at in rng.integers(low, len(content), rng.integers(1, 4)):
            damaged[at] = rng.choice([0, 1, 255, damaged[at] ^ 1 << rng.integers(8)])
        path.write_bytes(damaged)
        try:
            reader = file.LanceFileReader(path)
            reader.read_all().to_table().validate(full=True)
            reader.take_rows([2, 0]).to_table().validate(full=True)
            open_described(path).validate(full=True)
        except LanceError:
            continue


def test_impossible_pages_of_2_0(tmp_path: Path) -> None:
    path = write(lance.file, tmp_path / "a.lance", blobs([b"hello", None]), "2.0")
    content = path.read_bytes()
    description = np.array([0, 5], np.uint64).tobytes()
    assert content.count(description) == 1
    for row in ((0, 1 << 40), (1 << 63, 5), (2**64 - 1, 2**64 - 1)):
        path.write_bytes(content.replace(description, np.array(row, np.uint64).tobytes()))
        with pytest.raises(CorruptFileError, match="the file has"):
            file.LanceFileReader(path).read_all().to_table()
        with pytest.raises(CorruptFileError, match="the file has"):
            open_described(path)
