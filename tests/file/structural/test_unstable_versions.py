"""Tests of files written before their version was stable: "2.1" of pylance 0.16 to 0.32, and "2.3" of 4 to 13."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import any_pb2
from support.arrays.random_columns import Data, random_column
from support.files.file_parts import FileParts, take_apart_file
from support.pages.early_pages import PRE_NAME, make_early
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset._proto import encodings21_pre_pb2 as pre
from lance_dataset._proto import encodings21_sparse_pb2 as sparse_pb
from lance_dataset.errors import CorruptFileError, LanceError, UnsupportedError
from lance_dataset.file.standalone import LanceFileReader, LanceFileWriter
from lance_dataset.file.structural.layout import FullZipLayout, MiniBlockLayout
from lance_dataset.file.v2_1.pre.layout import parse_page_layout

pytestmark = pytest.mark.usefixtures("little_memory")

DATASETS = Path(__file__).parents[2] / "fixtures" / "datasets"
#: Releases whose "2.1" files have array encodings, and releases whose pages have another layout.
WITH_ARRAY_PAGES = [f"pylance-{release}-2.1" for release in ("0.16.0", "0.18.2")]
WITH_PRE_PAGES = ["pylance-0.20.0-2.1-small"]
WITH_PRE_PAGES += [f"pylance-{release}-2.1" for release in ("0.22.0", "0.25.2", "0.30.0", "0.32.1")]
#: A fixture with the sparse pages of pylance 10 to 13, which differ from those of 14.
SPARSE = "pylance-10.0.0-2.3"
RELEASES = [*WITH_ARRAY_PAGES, *WITH_PRE_PAGES, "pylance-4.0.0-2.3", "pylance-6.0.0-2.3", SPARSE]


def data_file(release: str) -> Path:
    (found,) = (DATASETS / release / "ds.lance" / "data").iterdir()
    return found


def first_version(release: str) -> pa.Table:
    """Return the rows before any was deleted."""
    return lance_dataset.dataset(DATASETS / release / "ds.lance", version=1).to_table()


# -- what releases wrote (full scans, batches and takes are in tests/interop) ------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_a_file_by_itself(release: str) -> None:
    wanted = first_version(release)
    reader = LanceFileReader(data_file(release))
    assert_same(reader.read_all().to_table(), wanted)
    rows = np.random.default_rng(4).integers(0, len(wanted), 30)
    assert_same(LanceFileReader(data_file(release)).take_rows(rows.tolist()).to_table(), wanted.take(rows))


@pytest.mark.parametrize("release", RELEASES)
def test_parts_of_structs_and_filters(release: str) -> None:
    wanted = first_version(release)
    dataset = lance_dataset.dataset(DATASETS / release / "ds.lance", version=1)
    names = [name for name in wanted.column_names if name in ("struct", "struct_null")]
    assert names
    for name in names:
        inner = dataset.to_table(columns={"y": f"{name}.`in`.y", "s": f"{name}.s"})
        whole = wanted[name].combine_chunks()
        assert inner["s"].to_pylist() == [row and row["s"] for row in whole.to_pylist()]
        assert inner["y"].to_pylist() == [row and row["in"] and row["in"]["y"] for row in whole.to_pylist()]
    kept = dataset.to_table(filter="id % 10 = 3 and string <> ''", columns=["id"])
    assert kept["id"].to_pylist() == [i for i in range(101) if i % 10 == 3 and i % 4]


@pytest.mark.parametrize("release", RELEASES)
def test_appending_in_the_stable_version(release: str, tmp_path: Path) -> None:
    """Rows appended in the stable version are written beside the old files."""
    shutil.copytree(DATASETS / release / "ds.lance", tmp_path / "t")
    old = lance_dataset.dataset(tmp_path / "t").to_table()
    more = old.slice(3, 20)
    lance_dataset.write_dataset(more, tmp_path / "t", mode="append", storage_options={"local_fsync": "false"})
    dataset = lance_dataset.dataset(tmp_path / "t")
    assert_same(dataset.to_table(), pa.concat_tables([old, more]))


def layouts(release: str) -> Iterator[Any]:
    for column in take_apart_file(data_file(release)).columns:
        for page in column.pages:
            wrapped = any_pb2.Any.FromString(page.encoding.direct.encoding)
            assert wrapped.type_url == f"/{PRE_NAME}"
            yield parse_page_layout(wrapped.value)


@pytest.mark.parametrize("release", WITH_PRE_PAGES)
def test_fixtures_hold_what_their_releases_have(release: str) -> None:
    """Each fixture has the layouts of its release, so that the tests cover every dialect."""
    found = list(layouts(release))
    early = release < "pylance-0.26"
    assert {page.has_layers for page in found} == {release > "pylance-0.21"}
    mini = [page for page in found if isinstance(page.layout, MiniBlockLayout)]
    assert {page.early_chunks for page in mini} == {early}
    assert any(page.layout.dictionary is not None for page in mini)
    assert any(page.layout.definition is not None for page in mini)
    assert any(page.layout.rep is not None for page in mini) == (release > "pylance-0.21")
    zipped = [page.layout for page in found if isinstance(page.layout, FullZipLayout)]
    assert any(layout.def_bits for layout in zipped)
    assert any(layout.rep_bits for layout in zipped) == (release > "pylance-0.21")


# -- early pages of any data -------------------------------------------------------------------------------------


def write(folder: Path, column: pa.Array, metadata: dict[str, str] | None = None, nullable: bool = True) -> Path:
    path = folder / "stable.lance"
    schema = pa.schema([pa.field("a", column.type, nullable, metadata=metadata)])
    with LanceFileWriter(path, schema, version="2.1") as writer:
        writer.write_batch(pa.table([column], schema=schema))
    return path


def check_early(folder: Path, column: pa.Array, metadata: dict[str, str] | None = None, **how: Any) -> None:
    path = write(folder, column, metadata)
    (folder / "early.lance").write_bytes(make_early(path, **how).assemble())
    wanted = pa.table({"a": column})
    reader = LanceFileReader(folder / "early.lance")
    assert_same(reader.read_all().to_table().replace_schema_metadata(None), wanted)
    batches = reader.read_all(batch_size=max(len(column) // 3, 1)).to_batches()
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == column.to_pylist()
    rows = np.random.default_rng(1).integers(0, len(column), 50).tolist()
    assert reader.take_rows(rows).to_table()["a"].to_pylist() == [column[row].as_py() for row in rows]


MINI = {"lance-encoding:structural-encoding": "miniblock", "lance-encoding:compression": "none"}
TEXTS = [f"a line of the log, number {i}, and some more words" for i in range(4000)]


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("name", ["int8", "int32", "uint64", "double", "bool", "string", "fixed", "decimal"])
def test_values_in_many_chunks(tmp_path: Path, name: str, nulls: float) -> None:
    kinds = {"fixed": pa.binary(7), "decimal": pa.decimal128(30, 2), "double": pa.float64(), "bool": pa.bool_()}
    kind = kinds[name] if name in kinds else pa.type_for_alias(name)
    column = random_column(kind, 9000, Data(nulls, 0.2, "any"), np.random.default_rng(3))
    check_early(tmp_path, column, MINI)
    check_early(tmp_path, column, MINI, with_layers=False)


def test_bit_packed_values(tmp_path: Path) -> None:
    column = pa.array([None if i % 11 == 0 else i % 500 for i in range(9000)], pa.int64())
    check_early(tmp_path, column, {"lance-encoding:structural-encoding": "miniblock"})


def test_symbol_tables(tmp_path: Path) -> None:
    metadata = {**MINI, "lance-encoding:compression": "fsst"}
    check_early(tmp_path, pa.array(TEXTS), metadata)
    check_early(tmp_path, pa.array([None if i % 7 == 0 else text for i, text in enumerate(TEXTS)]), metadata)


def test_lists_in_many_chunks(tmp_path: Path) -> None:
    rows = [None if i % 7 == 3 else [None if j % 5 == 0 else i * j for j in range(i % 9)] for i in range(3000)]
    check_early(tmp_path, pa.array(rows, pa.list_(pa.int32())), MINI)
    check_early(tmp_path, pa.array([[text] * (i % 3) for i, text in enumerate(TEXTS)]), MINI)


def test_packed_structs(tmp_path: Path) -> None:
    rows = [{"x": i, "y": i % 7} for i in range(3000)]
    kind = pa.struct([("x", pa.int32()), ("y", pa.int16())])
    check_early(tmp_path, pa.array(rows, kind), {**MINI, "lance-encoding:packed": "true"})


def test_dictionaries(tmp_path: Path) -> None:
    column = pa.array([None if i % 9 == 0 else ["red", "green", "", "blue"][i % 4] for i in range(3000)])
    check_early(tmp_path, column.dictionary_encode(), {})


# -- what is refused ---------------------------------------------------------------------------------------------


def refused(folder: Path, layout: pre.PageLayout | bytes, error: type[LanceError], *said: str) -> None:
    parts = make_early(write(folder, pa.array([1, 2, 3], pa.int32()), MINI))
    message = pre.PageLayout.FromString(layout) if isinstance(layout, bytes) else layout
    parts.set_encoding(0, message, name=PRE_NAME)
    (folder / "bad.lance").write_bytes(parts.assemble())
    with pytest.raises(error) as caught:
        LanceFileReader(folder / "bad.lance").read_all().to_table()
    assert "bad.lance, column 0" in str(caught.value)
    for word in said:
        assert word in str(caught.value), str(caught.value)


def early(**changes: Any) -> pre.PageLayout:
    values = changes.pop("values", pre.ArrayEncoding(flat=pre.Flat(bits_per_value=32)))
    layout = pre.EarlyMiniBlockLayout(value_compression=values, layers=[1], num_items=3)
    layout.MergeFrom(pre.EarlyMiniBlockLayout(**changes))
    return pre.PageLayout(mini_block_layout=layout.SerializeToString())


def late(values: pre.ArrayEncoding) -> pre.PageLayout:
    layout = pre.LateMiniBlockLayout(value_compression=values, layers=[1], num_items=3, num_buffers=1)
    return pre.PageLayout(mini_block_layout=layout.SerializeToString())


_ONES = pre.ArrayEncoding(constant=pre.Constant(value=b"\1\0", num_values=3))
_SPLIT = b"\xaa\x01\x00"  # member 21, which no release wrote
UNKNOWN: dict[str, pre.PageLayout] = {
    "levels that are all 1": early(def_compression=_ONES),
    "constant values": early(values=_ONES),
    "bit packing out of line": late(pre.ArrayEncoding(member15=b"")),
    "a block": late(pre.ArrayEncoding(member18=b"")),
    "a member without a name": late(pre.ArrayEncoding.FromString(_SPLIT)),
    "no layout": pre.PageLayout(),
    "packed levels": early(def_compression=pre.ArrayEncoding(inline_bitpacking={"uncompressed_bits_per_value": 16})),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_refused_by_the_name_of_its_writers(tmp_path: Path, name: str) -> None:
    refused(tmp_path, UNKNOWN[name], UnsupportedError, "pylance 0.19 to 0.32")


def test_lists_of_wide_values_of_0_21(tmp_path: Path) -> None:
    values = pre.ArrayEncoding(flat=pre.Flat(bits_per_value=32))
    zipped = pre.EarlyFullZipLayout(bits_rep=1, value_compression=values, layers=[1, 2])
    kind = pa.list_(pa.int32())
    parts = make_early(write(tmp_path, pa.array([[1], [2], [3]], kind), MINI))
    page = parts.columns[0].pages[0]
    del page.buffer_offsets[1:], page.buffer_sizes[1:]
    parts.set_encoding(0, pre.PageLayout(full_zip_layout=zipped.SerializeToString()), name=PRE_NAME)
    (tmp_path / "bad.lance").write_bytes(parts.assemble())
    with pytest.raises(UnsupportedError, match=r"0\.21"):
        LanceFileReader(tmp_path / "bad.lance").read_all().to_table()


def _deep() -> pre.ArrayEncoding:
    inner = pre.ArrayEncoding(flat=pre.Flat(bits_per_value=32))
    for _ in range(40):
        inner = pre.ArrayEncoding(general=pre.General(inner=inner, compression={"scheme": "zstd"}))
    return inner


def _fixed_size(dimension: int, bits: int) -> pre.PageLayout:
    items = pre.ArrayEncoding(flat=pre.Flat(bits_per_value=bits))
    values = pre.ArrayEncoding(fixed_size_list=pre.FixedSizeList(dimension=dimension, items=items))
    zipped = pre.EarlyFullZipLayout(value_compression=values)
    return pre.PageLayout(full_zip_layout=zipped.SerializeToString())


LYING: dict[str, pre.PageLayout] = {
    "another width": early(values=pre.ArrayEncoding(flat=pre.Flat(bits_per_value=64))),
    "no width": early(values=pre.ArrayEncoding(flat=pre.Flat())),
    "more items": early(num_items=4),
    "endless items": early(num_items=2**63),
    "other layers": early(layers=[3]),
    "an unknown layer": pre.PageLayout(all_null_layout={"layers": [9]}),
    "an index": early(repetition_index_depth=1),
    "levels of lists": early(rep_compression=pre.ArrayEncoding(flat=pre.Flat(bits_per_value=16))),
    "no values": early(values=pre.ArrayEncoding()),
    "a dictionary": early(dictionary=pre.ArrayEncoding(member17=b"")),
    "depth": late(_deep()),
    "a list of nothing": _fixed_size(0, 32),
    "a list of odd items": _fixed_size(3, 32),
    "a list of wide items": _fixed_size(2**31 - 1, 2**40),
}


@pytest.mark.parametrize("name", LYING)
def test_lying_layouts(tmp_path: Path, name: str) -> None:
    refused(tmp_path, LYING[name], LanceError)


Edit = Callable[[bytearray], Any]
HEADERS: dict[str, Edit] = {
    "long values": lambda chunk: struct.pack_into("<H", chunk, 4, 0xFFFF),
    "long levels": lambda chunk: struct.pack_into("<H", chunk, 2, 0xFFFF),
    "short levels": lambda chunk: struct.pack_into("<H", chunk, 2, 2),
    "other levels": lambda chunk: struct.pack_into("<H", chunk, 0, 6),
    "a level too high": lambda chunk: struct.pack_into("<H", chunk, 6, 7),
}


@pytest.mark.parametrize("name", HEADERS)
def test_lying_chunks(tmp_path: Path, name: str) -> None:
    parts = make_early(write(tmp_path, pa.array([1, None, 3], pa.int32()), MINI))
    page = parts.columns[0].pages[0]
    position, size = page.buffer_offsets[1], page.buffer_sizes[1]
    chunk = bytearray(parts.data[position : position + size])
    HEADERS[name](chunk)
    parts.replace_buffer(0, 1, bytes(chunk))
    (tmp_path / "bad.lance").write_bytes(parts.assemble())
    with pytest.raises(CorruptFileError, match=r"bad\.lance, column 0"):
        LanceFileReader(tmp_path / "bad.lance").read_all().to_table()
    with pytest.raises(CorruptFileError, match=r"bad\.lance, column 0"):
        LanceFileReader(tmp_path / "bad.lance").take_rows([0]).to_table()


# -- damage ------------------------------------------------------------------------------------------------------


def _damage(parts: FileParts, rng: np.random.Generator) -> None:
    """Change some bytes of a layout, of chunk words, of the head of a buffer, or anywhere."""
    column = int(rng.integers(len(parts.columns)))
    pages = parts.columns[column].pages
    if not pages:
        return
    page = pages[int(rng.integers(len(pages)))]
    if rng.integers(3) == 0 or not page.buffer_sizes:
        stored = bytearray(page.encoding.direct.encoding)
        stored[int(rng.integers(len(stored)))] = int(rng.integers(256))
        page.encoding.direct.encoding = bytes(stored)
        return
    buffer = int(rng.integers(len(page.buffer_sizes)))
    position, size = page.buffer_offsets[buffer], page.buffer_sizes[buffer]
    if size:
        data = bytearray(parts.data)
        data[position + int(rng.integers(min(size, 64)))] = [0, 1, 0x7F, 0xFF, int(rng.integers(256))][
            int(rng.integers(5))
        ]
        parts.data = bytes(data)


@pytest.mark.parametrize("release", [*WITH_PRE_PAGES, SPARSE])
def test_damaged_files_are_refused_or_read(release: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(len(release))
    path = tmp_path / "bad.lance"
    for _ in range(60):
        parts = take_apart_file(data_file(release))
        for _ in range(3):
            _damage(parts, rng)
        path.write_bytes(parts.assemble())
        for take in (False, True):
            try:
                reader = LanceFileReader(path)
                table = (reader.take_rows([0, 100, 5]) if take else reader.read_all()).to_table()
            except LanceError as error:
                assert "bad.lance" in str(error), error  # noqa: PT017
            else:
                # no reader checks that decimals fit their precision
                names = [field.name for field in table.schema if not pa.types.is_decimal(field.type)]
                table.select(names).validate(full=True)


# -- what is said of them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES[:-1])
@pytest.mark.parametrize("deep", [False, True])
def test_encodings_are_explained(release: str, deep: bool) -> None:
    dataset = lance_dataset.dataset(DATASETS / release / "ds.lance", version=1)
    by_column = {page.column: page for page in dataset.explain_encodings(deep=deep)}
    assert by_column["id"].rows == 101
    assert by_column["string_few"].dictionary_entries in (2, 3)
    assert not deep or by_column["int32_null"].nulls == 20
    if release in WITH_PRE_PAGES:
        assert (by_column["string"].value_bytes or 0) > 101 * 4
        assert by_column["int32_null"].level_bytes == 2 * 101


def test_earlier_sparse_pages_are_not_explained() -> None:
    dataset = lance_dataset.dataset(DATASETS / SPARSE / "ds.lance", version=1)
    assert [page.column for page in dataset.explain_encodings(["id"])] == ["id"]
    with pytest.raises(UnsupportedError, match="pylance 10 to 13"):
        dataset.explain_encodings(["list_sparse"])


# -- sparse pages ------------------------------------------------------------------------------------------------


def sparse(parts: FileParts, column: str) -> tuple[int, sparse_pb.PageLayout]:
    """Return column index and layout of a sparse column of the fixture."""
    fields = [field for field in parts.descriptor.schema.fields if field.name == column]
    index = sum(1 for field in parts.descriptor.schema.fields if field.id < fields[0].id and not _nested(parts, field))
    wrapped = any_pb2.Any.FromString(parts.columns[index].pages[0].encoding.direct.encoding)
    return index, sparse_pb.PageLayout.FromString(wrapped.value)


def _nested(parts: FileParts, field: Any) -> bool:
    """Return True if a field owns no column."""
    return any(child.parent_id == field.id for child in parts.descriptor.schema.fields)


def _list(layout: sparse_pb.PageLayout) -> sparse_pb.ListLayer:
    return layout.sparse_layout.structural_layers[0].list


def _leaf(layout: sparse_pb.PageLayout) -> sparse_pb.ValidityLayer:
    return layout.sparse_layout.structural_layers[-1].validity


SPARSE_EDITS: dict[str, Callable[[sparse_pb.PageLayout], Any]] = {
    "slots": lambda layout: setattr(_leaf(layout), "num_slots", 5),
    "items": lambda layout: setattr(_list(layout), "num_child_slots", 5),
    "endless items": lambda layout: setattr(_list(layout), "num_child_slots", 2**63),
    "values": lambda layout: setattr(layout.sparse_layout, "num_visible_items", 5),
    "buffers": lambda layout: setattr(layout.sparse_layout, "num_buffers", 3),
    "small chunks": lambda layout: setattr(layout.sparse_layout, "has_large_chunk", False),
    "no layers": lambda layout: layout.sparse_layout.ClearField("structural_layers"),
    "fewer layers": lambda layout: layout.sparse_layout.structural_layers.pop(),
    "an empty layer": lambda layout: layout.sparse_layout.structural_layers[0].ClearField("list"),
    "no values": lambda layout: layout.sparse_layout.ClearField("value_compression"),
    "no meaning": lambda layout: setattr(_leaf(layout).validity, "meaning", 0),
    "more positions": lambda layout: setattr(_list(layout).non_empty_positions, "num_positions", 102),
    "endless positions": lambda layout: setattr(_list(layout).non_empty_positions, "num_positions", 2**64 - 1),
    "no positions": lambda layout: _list(layout).ClearField("non_empty_positions"),
    "no counts": lambda layout: _list(layout).ClearField("counts"),
    "another range": lambda layout: setattr(_list(layout).non_empty_positions.range, "count", 7),
    "all positions": lambda layout: _list(layout).non_empty_positions.all.SetInParent(),
    "counts of 0": lambda layout: setattr(_list(layout).counts.constant, "count", 0),
}


@pytest.mark.parametrize("name", SPARSE_EDITS)
def test_lying_sparse_layouts(tmp_path: Path, name: str) -> None:
    parts = take_apart_file(data_file(SPARSE))
    index, layout = sparse(parts, "list_sparse")
    SPARSE_EDITS[name](layout)
    parts.set_encoding(index, layout, name="lance.encodings21.PageLayout")
    (tmp_path / "bad.lance").write_bytes(parts.assemble())
    for take in (False, True):
        reader = LanceFileReader(tmp_path / "bad.lance", columns=["list_sparse"])
        with pytest.raises(CorruptFileError, match=rf"bad\.lance, column {index}"):
            (reader.take_rows([3, 60]) if take else reader.read_all()).to_table()


@pytest.mark.parametrize("entry", [(0, 0), (2**32 - 1, 101), (2**28, 101), (0, 2**31), (0, 3)])
def test_lying_chunk_entries(tmp_path: Path, entry: tuple[int, int]) -> None:
    parts = take_apart_file(data_file(SPARSE))
    index, _ = sparse(parts, "int32_null_sparse")
    parts.replace_buffer(index, 0, struct.pack("<II", *entry))
    (tmp_path / "bad.lance").write_bytes(parts.assemble())
    reader = LanceFileReader(tmp_path / "bad.lance", columns=["int32_null_sparse"])
    with pytest.raises(CorruptFileError, match=rf"bad\.lance, column {index}"):
        reader.read_all().to_table()
