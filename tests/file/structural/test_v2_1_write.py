"""Tests of files of 2.1 and 2.2 that this package writes, read by the reference and by this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.arrays.nested_arrays import nested_array, nested_tables
from support.arrays.random_arrays import FLAT_TYPES, NULLS, whole
from support.pages.lance_page import Page, read_pages
from support.tables.column_tables import assert_both_read, column, write

import lance_dataset
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file import LanceFileReader

VERSIONS = ("2.1", "2.2")
INT = pa.int32()
STRUCT = pa.struct([pa.field("a", INT), pa.field("b", pa.string())])


def round_trip(path: Path, table: pa.Table, version: str, **options: int) -> list[Page]:
    write(path, table, version, **options)
    assert_both_read(path, whole(table))
    return read_pages(path, 0)


LEAVES: dict[str, pa.DataType] = {
    **{name: kind for name, kind in FLAT_TYPES.items() if name != "fixed_binary_0"},
    "null": pa.null(),
    "vector": pa.list_(pa.float32(), 128),
    "vector of few": pa.list_(pa.int16(), 3),
    "vector of one": pa.list_(pa.int8(), 1),
    "vector of bool": pa.list_(pa.bool_(), 5),
    "vector of vectors": pa.list_(pa.list_(pa.int16(), 2), 3),
    "wide binary": pa.binary(300),
    "dictionary": pa.dictionary(pa.int16(), pa.string()),
    "dictionary of large": pa.dictionary(pa.uint8(), pa.large_string()),
}
NESTED: dict[str, pa.DataType] = {
    "list": pa.list_(INT),
    "list of strings": pa.list_(pa.string()),
    "list of bool": pa.list_(pa.bool_()),
    "list of null": pa.list_(pa.null()),
    "list of vectors": pa.list_(pa.list_(pa.float32(), 4)),
    "list of dictionaries": pa.list_(pa.dictionary(pa.int32(), pa.string())),
    "large list": pa.large_list(pa.float64()),
    "list of lists": pa.list_(pa.list_(INT)),
    "list of lists of lists": pa.list_(pa.large_list(pa.list_(pa.string()))),
    "struct": STRUCT,
    "struct of null": pa.struct([pa.field("n", pa.null())]),
    "struct of structs": pa.struct([pa.field("s", STRUCT), pa.field("c", pa.bool_())]),
    "struct of lists": pa.struct([pa.field("l", pa.list_(INT)), pa.field("m", pa.list_(pa.string()))]),
    "list of structs": pa.list_(STRUCT),
    "list of structs of lists": pa.list_(pa.struct([pa.field("q", pa.list_(INT)), pa.field("r", INT)])),
    "struct of lists of structs": pa.struct([pa.field("l", pa.list_(STRUCT))]),
}
ONLY_2_2: dict[str, pa.DataType] = {
    "map": pa.map_(pa.string(), INT),
    "map of lists": pa.map_(INT, pa.list_(pa.string())),
    "list of maps": pa.list_(pa.map_(pa.string(), STRUCT)),
    "fixed-size list of structs": pa.list_(STRUCT, 2),
    "struct of fixed-size lists of structs": pa.struct([pa.field("f", pa.list_(STRUCT, 3))]),
    "fixed-size list of fixed-size lists": pa.list_(pa.struct([pa.field("f", pa.list_(STRUCT, 3))]), 2),
}
CASES = [
    *((name, kind, version) for name, kind in {**LEAVES, **NESTED}.items() for version in VERSIONS),
    *((name, kind, "2.2") for name, kind in {**ONLY_2_2, "fixed_binary_0": pa.binary(0)}.items()),
]


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize(("kind", "version"), [case[1:] for case in CASES], ids=[f"{c[0]}-{c[2]}" for c in CASES])
def test_round_trip(kind: pa.DataType, version: str, nulls: str, tmp_path: Path) -> None:
    for rows in (1, 5, 3000):
        array = nested_array(kind, rows + 7, NULLS[nulls], np.random.default_rng(rows))
        chunks = [array.slice(3, rows // 3), array.slice(3 + rows // 3, rows - rows // 3)]
        round_trip(tmp_path / f"{rows}.lance", column(pa.chunked_array(chunks, kind)), version)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_tables(version: str, tmp_path: Path, data: st.DataObject) -> None:
    table = data.draw(nested_tables(version))
    small = data.draw(st.booleans())
    options = {"max_page_bytes": 1000} if small else {}
    path = write(tmp_path / "x.lance", table, version, **options)
    assert_both_read(path, whole(table))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [INT, pa.list_(INT), pa.list_(pa.string()), STRUCT], ids=str)
def test_many_pages(kind: pa.DataType, version: str, tmp_path: Path) -> None:
    array = nested_array(kind, 20_000, 0.1, np.random.default_rng(0))
    pages = round_trip(tmp_path / "x.lance", column(array), version, max_page_bytes=8192)
    assert len(pages) > 5
    assert sum(page.length for page in pages) == len(array)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_rows(version: str, tmp_path: Path) -> None:
    table = column(pa.array([], pa.list_(STRUCT)))
    path = write(tmp_path / "x.lance", table, version)
    assert read_pages(path, 0) == read_pages(path, 1) == []
    assert_both_read(path, table)


ABOVE_LISTS: dict[str, pa.DataType] = {
    "S(L)": pa.struct([pa.field("f", pa.list_(INT))]),
    "S(L(wide))": pa.struct([pa.field("f", pa.list_(pa.binary(300)))]),
    "S(S(L))": pa.struct([pa.field("f", pa.struct([pa.field("f", pa.list_(INT))]))]),
    "L(S(L))": pa.list_(pa.struct([pa.field("f", pa.list_(INT))])),
    "F(S)": pa.list_(STRUCT, 2),
    "S(F(S))": pa.struct([pa.field("f", pa.list_(STRUCT, 2))]),
    "S(L(S(L)))": pa.struct([pa.field("f", pa.list_(pa.struct([pa.field("f", pa.list_(INT))])))]),
}


@pytest.mark.parametrize(
    ("name", "version"),
    [(name, version) for name in ABOVE_LISTS for version in VERSIONS if version != "2.1" or "F" not in name],
)
def test_structs_above_lists_whose_nulls_differ_from_page_to_page(name: str, version: str, tmp_path: Path) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chunks = [nested_array(ABOVE_LISTS[name], 3, rng.choice([0.0, 0.3, 0.6]), rng) for _ in range(4)]
        pages = round_trip(tmp_path / "x.lance", column(pa.chunked_array(chunks)), version, data_cache_bytes=1)
        assert len(pages) > 3


# -- layouts ---------------------------------------------------------------------------------------------------------


def random_words(count: int) -> pa.Array:
    return pa.array(np.random.default_rng(0).integers(0, 2**63, count))


@pytest.mark.parametrize("version", VERSIONS)
def test_incompressible_values_are_one_plain_buffer(version: str, tmp_path: Path) -> None:
    values = random_words(5000)
    [page] = round_trip(tmp_path / "x.lance", column(values), version)
    layout = page.layout["full_zip_layout"]
    assert layout["bits_per_value"] == 64
    assert page.buffers == [values.buffers()[1].to_pybytes()[:40000]]


@pytest.mark.parametrize("version", VERSIONS)
def test_layout_as_asked(version: str, tmp_path: Path) -> None:
    for asked, expected in (("miniblock", "mini_block_layout"), ("FullZip", "full_zip_layout")):
        for array in (random_words(3000), pa.array([str(number) for number in range(3000)])):
            table = column(array, structural_encoding=asked)
            [page] = round_trip(tmp_path / f"{asked}{array.type}.lance", table, version)
            assert list(page.layout) == [expected]


CONSTANTS: dict[str, tuple[pa.Array, int, int]] = {
    "integer": (pa.array([7] * 3000, pa.int16()), 2, 0),
    "boolean": (pa.array([True] * 3000), 1, 0),
    "decimal256": (pa.array([5] * 3000, pa.decimal256(60, 0)), 32, 0),
    "fixed binary": (pa.array([b"a" * 40] * 3000, pa.binary(40)), 0, 1),
    "string": (pa.array(["hello"] * 3000), 0, 1),
    "large string": (pa.array([""] * 3000, pa.large_string()), 0, 1),
    "list": (pa.array([[7, 7]] * 3, pa.list_(INT)), 4, 2),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_one_value(name: str, tmp_path: Path) -> None:
    array, inline, buffers = CONSTANTS[name]
    [page] = round_trip(tmp_path / "x.lance", column(array), "2.2")
    layout = page.layout["constant_layout"]
    assert len(layout.get("inline_value", b"")) == inline
    assert len(page.buffers) == buffers
    [old] = round_trip(tmp_path / "old.lance", column(array), "2.1")
    assert "inline_value" not in old.layout.get("constant_layout", {})


def test_one_value_and_nulls_is_never_larger_than_chunks(tmp_path: Path) -> None:
    array = pa.array(np.full(20_000, 5), mask=np.random.default_rng(0).random(20_000) < 0.5)
    [page] = round_trip(tmp_path / "x.lance", column(array), "2.2")
    assert sum(map(len, page.buffers)) < 6000


@pytest.mark.parametrize("version", VERSIONS)
def test_nulls_only(version: str, tmp_path: Path) -> None:
    [page] = round_trip(tmp_path / "x.lance", column(pa.nulls(1000, INT)), version)
    assert page.layout == {"constant_layout": {"layers": [3]}}
    assert page.buffers == []
    [page] = round_trip(tmp_path / "y.lance", column(pa.array([[], None, [None]] * 500, pa.list_(INT))), version)
    assert page.layout["constant_layout"]["layers"] == [3, 6]
    assert len(page.buffers) == 2
    assert ("rep_compression" in page.layout["constant_layout"]) == (version == "2.2")


def test_level_codecs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**31, 50_000)
    mixed = column(pa.array(values, mask=rng.random(50_000) < 0.5))
    [page] = round_trip(tmp_path / "a.lance", mixed, "2.2")
    assert page.layout["mini_block_layout"]["def_compression"]["out_of_line_bitpacking"]
    runs = column(pa.array(values, mask=np.arange(50_000) < 25_000))
    [page] = round_trip(tmp_path / "b.lance", runs, "2.2")
    assert page.layout["mini_block_layout"]["def_compression"]["rle"]
    [page] = round_trip(tmp_path / "c.lance", runs, "2.1")
    assert page.layout["mini_block_layout"]["def_compression"]["out_of_line_bitpacking"]


@pytest.mark.parametrize("version", VERSIONS)
def test_more_levels_than_a_chunk_holds(version: str, tmp_path: Path) -> None:
    empties = [[number] if number % 1000 == 0 else [] for number in range(300_000)]
    pages = round_trip(tmp_path / "x.lance", column(pa.array(empties, pa.list_(INT))), version)
    assert len(pages) > 1
    rows = [[[1]] + [[]] * 100_000 + [[2]], [[3]], None]
    pages = round_trip(tmp_path / "y.lance", column(pa.array(rows, pa.list_(pa.list_(INT)))), version)
    assert "full_zip_layout" in pages[0].layout
    rows = [[1], list(range(200_000)), [2, None]]
    round_trip(tmp_path / "z.lance", column(pa.array(rows, pa.list_(INT))), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs(version: str, tmp_path: Path) -> None:
    values = [b"hello", None, b"", b"x" * 100, b"yy"] * 300
    for number, array in enumerate((values, [None] * 4, [b""] * 4)):
        path = write(tmp_path / f"{number}.lance", column(pa.array(array, pa.large_binary()), blob="true"), version)
        [page] = read_pages(path, 0)
        assert "blob_layout" in page.layout
        assert lance.file.LanceFileReader(str(path)).read_all().to_table()["x"].to_pylist() == array


@pytest.mark.parametrize("version", VERSIONS)
def test_dictionary_with_nulls_among_its_entries(version: str, tmp_path: Path) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 2] * 50, pa.int8()), pa.array(["a", None, "b"]))
    path = write(tmp_path / "x.lance", column(array), version)
    for reader in (lance.file.LanceFileReader(str(path)), LanceFileReader(str(path))):
        assert reader.read_all().to_table()["x"].to_pylist() == ["a", None, "b", None, "b"] * 50


@pytest.mark.parametrize("version", VERSIONS)
def test_dictionaries_whose_union_is_too_large_are_pages_of_their_own(version: str, tmp_path: Path) -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array([f"{part}{n}" for n in range(100)]))
        for part in "abc"
    ]
    table = pa.table({"x": pa.chunked_array(chunks)})
    path = write(tmp_path / "x.lance", table, version)
    assert len(read_pages(path, 0)) == 3
    for reader in (lance.file.LanceFileReader(str(path)), LanceFileReader(str(path))):
        for part in range(3):  # together more than one array can hold
            read = reader.read_range(100 * part, 100).to_table()["x"].to_pylist()
            assert read == [f"{'abc'[part]}{n}" for n in range(100)]


def test_hidden_text_is_not_stored(tmp_path: Path) -> None:
    hidden = pa.array(["secret" * 1000, "b"] * 50)
    valid = pa.py_buffer(np.packbits([False, True] * 50, bitorder="little").tobytes())
    strings = pa.Array.from_buffers(pa.string(), 100, [valid, *hidden.buffers()[1:]])
    [page] = round_trip(tmp_path / "x.lance", column(strings), "2.1")
    assert sum(map(len, page.buffers)) < 3000
    structs = pa.Array.from_buffers(pa.struct([pa.field("s", pa.string())]), 100, [valid], children=[hidden])
    [page] = round_trip(tmp_path / "y.lance", column(structs), "2.1")
    assert sum(map(len, page.buffers)) < 3000


# -- refusals --------------------------------------------------------------------------------------------------------

PACKED = {"lance-encoding:packed": "true"}
BLOB = {"lance-encoding:blob": "true"}
LISTED = pa.struct([pa.field("l", pa.list_(INT))])
REFUSED: list[tuple[str, pa.Field, str]] = [
    ("2.1", pa.field("x", pa.map_(pa.string(), INT)), "maps"),
    ("2.1", pa.field("x", pa.list_(STRUCT, 2)), "fixed-size lists of structs"),
    ("2.2", pa.field("x", pa.list_(LISTED, 2)), "together with lists"),
    ("2.2", pa.field("x", pa.list_(pa.list_(STRUCT, 2))), "together with lists"),
    ("2.1", pa.field("x", pa.binary(0)), "width 0"),
    ("2.2", pa.field("x", pa.list_(pa.string(), 2)), "fixed-size lists of string"),
    ("2.2", pa.field("x", pa.list_(pa.int8(), 0)), "no items"),
    ("2.2", pa.field("x", pa.list_(pa.struct([]))), "without a child inside lists"),
    ("2.2", pa.field("x", INT, metadata={"lance-encoding:structural-encoding": "sparse"}), "sparse"),
    (
        "2.2",
        pa.field("x", pa.list_(pa.field("b", pa.large_binary(), metadata=BLOB))),
        "blobs",
    ),
    ("2.2", pa.field("x", pa.string(), metadata=BLOB), "blobs"),
    ("2.1", pa.field("x", STRUCT, metadata=PACKED), "packed structs with a child of type string"),
    ("2.2", pa.field("x", LISTED, metadata=PACKED), "packed structs with a child of type list"),
    ("2.2", pa.field("x", pa.struct([pa.field("b", pa.bool_())]), metadata=PACKED), "type bool"),
]


@pytest.mark.parametrize(("version", "field", "words"), REFUSED, ids=[f"{c[0]} {c[2]}" for c in REFUSED])
def test_refused_schemas(version: str, field: pa.Field, words: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=words) as caught:
        write(tmp_path / "x.lance", pa.schema([field]).empty_table(), version)
    assert "column 'x" in str(caught.value)
    assert version in str(caught.value)


def test_unknown_options(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="structural-encoding"):
        write(tmp_path / "x.lance", column(pa.array([1]), structural_encoding="other"), "2.2")


REQUIRED: dict[str, Callable[[], pa.Table]] = {
    "leaf": lambda: column(pa.array([1, None], INT), nullable=False),
    "list": lambda: column(pa.array([[1], None], pa.list_(INT)), nullable=False),
    "items": lambda: column(pa.array([[1], [None]], pa.list_(pa.field("item", INT, nullable=False)))),
    "struct child": lambda: column(
        pa.StructArray.from_arrays([pa.array([1, None], INT)], fields=[pa.field("a", INT, nullable=False)])
    ),
}


@pytest.mark.parametrize("name", REQUIRED)
def test_nulls_where_there_must_be_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="not nullable"):
        write(tmp_path / "x.lance", REQUIRED[name](), "2.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_required_fields_below_nulls(version: str, tmp_path: Path) -> None:
    inner = pa.field("a", INT, nullable=False)
    valid = pa.py_buffer(b"\x05")
    structs = pa.Array.from_buffers(pa.struct([inner]), 3, [valid], children=[pa.array([1, 2, 3], INT)])
    path = write(tmp_path / "x.lance", column(structs), version)
    for reader in (lance.file.LanceFileReader(str(path)), LanceFileReader(str(path))):
        assert reader.read_all().to_table()["x"].to_pylist() == [{"a": 1}, None, {"a": 3}]


@pytest.mark.parametrize("version", VERSIONS)
def test_text_that_is_none(version: str, tmp_path: Path) -> None:
    broken = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    tables = [
        column(broken),
        column(pa.StructArray.from_arrays([broken], ["s"])),
        column(pa.DictionaryArray.from_arrays(pa.array([0, 1]), broken)),
    ]
    for number, table in enumerate(tables):
        with pytest.raises(SchemaError, match="'x'"):
            write(tmp_path / f"{number}.lance", table, version)


def test_null_structs_without_children(tmp_path: Path) -> None:
    for number, array in enumerate(([{}, None], [{"e": {}}, None])):
        kind = pa.struct([]) if number == 0 else pa.struct([pa.field("e", pa.struct([]))])
        with pytest.raises(UnsupportedError, match="without a child"):
            write(tmp_path / f"{number}.lance", column(pa.array(array, kind)), "2.2")


def test_leaves_follow_the_structural_encoding_of_their_column(tmp_path: Path) -> None:
    metadata = {"lance-encoding:structural-encoding": "fullzip"}
    schema = pa.schema([pa.field("l", pa.list_(pa.int32()), metadata=metadata)])
    table = pa.table({"l": [[1, 2], None, [3]] * 100}, schema=schema)
    dataset = lance_dataset.write_dataset(table, tmp_path / "d")
    assert [page.layout for page in dataset.explain_encodings()] == ["full-zip"]
    assert lance.dataset(str(tmp_path / "d")).to_table().equals(table)
