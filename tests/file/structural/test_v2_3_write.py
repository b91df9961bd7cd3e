"""Tests of files of 2.3 that this package writes, read by the reference and by this package."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.arrays.nested_arrays import nested_array, nested_tables
from support.arrays.random_arrays import FLAT_TYPES, NULLS, whole
from support.tables.column_tables import assert_both_read, column, write
from support.tables.equality import assert_same

import lance_dataset
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file import LanceFileWriter
from lance_dataset.file.container import FileMetadata
from lance_dataset.file.structural.encodings.bitpacking import OutOfLineBitpacking
from lance_dataset.file.structural.encodings.constant import Constant
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.sequences import Delta, Range
from lance_dataset.file.structural.layout import ConstantLayout, FullZipLayout, MiniBlockLayout
from lance_dataset.file.v2_3.layout import SparseLayout, SparseList, SparseValidity
from lance_dataset.file.v2_3.messages import parse_planar_layout
from lance_dataset.file.v2_3.sparse_layers import encode_sequence
from lance_dataset.file.versions import resolve_version
from lance_dataset.io.resolve import resolve

pytestmark = pytest.mark.filterwarnings("ignore:file version 2.3 is unstable:UserWarning")

INT = pa.int32()
STRUCT = pa.struct([pa.field("a", INT), pa.field("b", pa.string())])
NO_VALUES = ConstantLayout(layers=(3,))  # type: ignore[arg-type]


def open_metadata(path: Path) -> FileMetadata:
    store, inner = resolve(str(path))
    return FileMetadata(store.open_input(inner))


def layouts(path: Path, index: int = 0) -> list[Any]:
    return [parse_planar_layout(page.encoding) for page in open_metadata(path).column(index).pages]


def round_trip(path: Path, table: pa.Table, **options: Any) -> list[Any]:
    write(path, table, **options)
    assert_both_read(path, whole(table))
    return layouts(path)


KINDS: dict[str, pa.DataType] = {
    **{name: kind for name, kind in FLAT_TYPES.items() if name != "fixed_binary_0"},
    "null": pa.null(),
    "vector": pa.list_(pa.float32(), 128),
    "vector of few": pa.list_(pa.int16(), 3),
    "vector of one": pa.list_(pa.int8(), 1),
    "vector of bool": pa.list_(pa.bool_(), 5),
    "vector of vectors": pa.list_(pa.list_(pa.int16(), 2), 3),
    "wide binary": pa.binary(300),
    "dictionary": pa.dictionary(pa.int16(), pa.string()),
    "list": pa.list_(INT),
    "list of strings": pa.list_(pa.string()),
    "list of null": pa.list_(pa.null()),
    "list of vectors": pa.list_(pa.list_(pa.float32(), 4)),
    "list of lists": pa.list_(pa.list_(INT)),
    "list of lists of lists": pa.list_(pa.large_list(pa.list_(pa.string()))),
    "struct": STRUCT,
    "struct of null": pa.struct([pa.field("n", pa.null())]),
    "struct of lists": pa.struct([pa.field("l", pa.list_(INT)), pa.field("m", pa.list_(pa.string()))]),
    "list of structs": pa.list_(STRUCT),
    "list of structs of lists": pa.list_(pa.struct([pa.field("q", pa.list_(INT)), pa.field("r", INT)])),
    "map": pa.map_(pa.string(), INT),
    "list of maps": pa.list_(pa.map_(pa.string(), STRUCT)),
    "fixed-size list of structs": pa.list_(STRUCT, 2),
    "fixed-size list of fixed-size lists": pa.list_(pa.struct([pa.field("f", pa.list_(STRUCT, 3))]), 2),
}


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", KINDS)
def test_round_trip(name: str, nulls: str, tmp_path: Path) -> None:
    for rows in (1, 5, 1500):
        array = nested_array(KINDS[name], rows + 7, NULLS[nulls], np.random.default_rng(rows))
        chunks = [array.slice(3, rows // 3), array.slice(3 + rows // 3, rows - rows // 3)]
        round_trip(tmp_path / f"{rows}.lance", column(pa.chunked_array(chunks, KINDS[name])))


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", KINDS)
def test_sparse_as_asked(name: str, nulls: str, tmp_path: Path) -> None:
    field = _asking(pa.field("x", KINDS[name]))
    array = nested_array(field.type, 700, NULLS[nulls], np.random.default_rng(1))
    path = write(tmp_path / "x.lance", pa.table([array], schema=pa.schema([field])))
    assert_both_read(path, whole(pa.table({"x": array})))
    for index in range(open_metadata(path).num_columns):
        assert all(isinstance(layout, SparseLayout) for layout in layouts(path, index))


def _asking(field: pa.Field) -> pa.Field:
    """Return the field with sparse pages requested for every leaf."""
    kind = field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_asking(child) for child in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_asking(kind.key_field), _asking(kind.item_field)))
    if pa.types.is_fixed_size_list(kind) and pa.types.is_struct(kind.value_type):
        return field.with_type(pa.list_(_asking(kind.value_field), kind.list_size))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return field.with_type(make(_asking(kind.value_field)))
    return field.with_metadata({"lance-encoding:structural-encoding": "sparse"})


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_tables(tmp_path: Path, data: st.DataObject) -> None:
    table = data.draw(nested_tables("2.3"))
    schema = pa.schema([_asking(field) for field in table.schema]) if data.draw(st.booleans()) else table.schema
    options: dict[str, Any] = {"max_page_bytes": 1000} if data.draw(st.booleans()) else {}
    path = write(tmp_path / "x.lance", pa.table(table.columns, schema=schema), **options)
    assert_both_read(path, whole(table))


@pytest.mark.parametrize("kind", [INT, pa.list_(INT), pa.list_(pa.string()), STRUCT], ids=str)
def test_many_pages(kind: pa.DataType, tmp_path: Path) -> None:
    array = nested_array(kind, 10_000, 0.1, np.random.default_rng(0))
    assert len(round_trip(tmp_path / "x.lance", column(array), max_page_bytes=8192)) > 2


MIXED: dict[str, pa.DataType] = {
    "N": pa.int64(),
    "L": pa.list_(INT),
    "L(L)": pa.list_(pa.list_(pa.string())),
    "L(V)": pa.list_(pa.list_(pa.float32(), 4)),
    "S(L)": pa.struct([pa.field("f", pa.list_(INT))]),
    "S(L(wide))": pa.struct([pa.field("f", pa.list_(pa.binary(300)))]),
    "S(S(L))": pa.struct([pa.field("f", pa.struct([pa.field("f", pa.list_(INT))]))]),
    "L(S(L))": pa.list_(pa.struct([pa.field("f", pa.list_(INT))])),
    "F(S)": pa.list_(STRUCT, 2),
    "S(F(S))": pa.struct([pa.field("f", pa.list_(STRUCT, 2))]),
    "S(L(S(L)))": pa.struct([pa.field("f", pa.list_(pa.struct([pa.field("f", pa.list_(INT))])))]),
}


@pytest.mark.parametrize("name", MIXED)
def test_pages_that_differ(name: str, tmp_path: Path) -> None:
    """A column may have dense pages and, between them, sparse ones of no value or one value."""
    kind = MIXED[name]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        chunks = [nested_array(kind, 3, rng.choice([0.0, 0.3, 0.6, 1.0]), rng) for _ in range(5)]
        table = column(pa.chunked_array([*chunks, pa.nulls(3, kind)]))
        for cache in (1, 40):
            assert len(round_trip(tmp_path / "x.lance", table, data_cache_bytes=cache)) > 1


def test_no_rows(tmp_path: Path) -> None:
    table = column(pa.array([], pa.list_(STRUCT)))
    path = write(tmp_path / "x.lance", table)
    assert layouts(path, 0) == layouts(path, 1) == []
    assert_both_read(path, table)


# -- layouts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["int64", "string", "list", "list of strings", "struct", "map", "vector of few"])
def test_dense_pages_have_the_buffers_of_2_2(name: str, tmp_path: Path) -> None:
    array = nested_array(KINDS[name], 2000, 0.1, np.random.default_rng(0))
    new, old = write(tmp_path / "new.lance", column(array)), write(tmp_path / "old.lance", column(array), "2.2")
    for index in range(open_metadata(new).num_columns):
        pages = []
        for path in (new, old):
            [page] = open_metadata(path).column(index).pages
            content = path.read_bytes()
            pages.append([content[start : start + size] for start, size in page.buffers])
        assert pages[0] == pages[1]


def test_nulls_only(tmp_path: Path) -> None:
    [layout] = round_trip(tmp_path / "x.lance", column(pa.nulls(1000, INT)))
    assert layout.values == NO_VALUES
    [leaf] = layout.layers
    assert leaf.validity.lists_valid
    assert leaf.validity.positions.length == 0
    assert open_metadata(tmp_path / "x.lance").column(0).pages[0].buffers == ()


def test_no_visible_item(tmp_path: Path) -> None:
    [layout] = round_trip(tmp_path / "x.lance", column(pa.array([[], None, []] * 500, pa.list_(INT))))
    lists, leaf = layout.layers
    assert isinstance(lists, SparseList)
    assert (lists.positions.length, lists.num_child_slots, lists.validity.positions.length) == (0, 0, 500)
    assert lists.validity.positions.encoding == Range(64, 1, 3)
    assert isinstance(leaf, SparseValidity)
    assert layout.values == NO_VALUES


def test_nulls_in_every_layer(tmp_path: Path) -> None:
    """If all items are null, only the structure is stored, and it is read correctly."""
    kind = pa.list_(pa.struct([pa.field("q", pa.list_(pa.struct([pa.field("n", INT)])))]))
    rng = np.random.default_rng(0)

    def struct() -> dict[str, Any] | None:
        inner = [rng.choice(np.array([None, {"n": None}], object)) for _ in range(rng.integers(0, 3))]
        return rng.choice(np.array([None, {"q": None}, {"q": inner}], object))  # type: ignore[no-any-return]

    rows = [None if rng.random() < 0.2 else [struct() for _ in range(rng.integers(0, 4))] for _ in range(400)]
    [layout] = round_trip(tmp_path / "x.lance", column(pa.array(rows, kind)))
    assert layout.values == NO_VALUES
    assert len(layout.layers) == 5


def test_one_value(tmp_path: Path) -> None:
    [layout] = round_trip(tmp_path / "a.lance", column(pa.array([7] * 3000, pa.int16())))
    assert isinstance(layout, ConstantLayout)
    assert layout.inline_value == b"\7\0"
    mask = np.random.default_rng(0).random(3000) < 0.001
    [layout] = round_trip(tmp_path / "b.lance", column(pa.array(np.full(3000, 7), mask=mask)))
    assert isinstance(layout, SparseLayout)
    assert isinstance(layout.values, ConstantLayout)
    assert layout.values.inline_value == (7).to_bytes(8, "little")
    [layout] = round_trip(tmp_path / "c.lance", column(pa.array([[True] * 3, [], None] * 300, pa.list_(pa.bool_()))))
    assert isinstance(layout, SparseLayout)
    [layout] = round_trip(tmp_path / "d.lance", column(pa.array(["hello"] * 3000)))
    assert isinstance(layout, MiniBlockLayout)
    [layout] = round_trip(tmp_path / "e.lance", column(pa.array([b"a" * 40, None] * 300, pa.binary(40))))
    assert isinstance(layout, MiniBlockLayout)


def test_more_levels_than_a_chunk_holds(tmp_path: Path) -> None:
    empties = [[number] if number % 1000 == 0 else [] for number in range(200_000)]
    [layout] = round_trip(tmp_path / "x.lance", column(pa.array(empties, pa.list_(INT))))
    assert isinstance(layout, SparseLayout)


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((name, {"compression": scheme}) for name in ("int64", "double", "string") for scheme in ("lz4", "zstd", "none")),
    ("string", {"compression": "fsst"}),
    ("string", {"structural_encoding": "fullzip"}),
    ("string", {"structural_encoding": "fullzip", "compression": "zstd"}),
    ("int64", {"structural_encoding": "miniblock"}),
    ("int64", {"structural_encoding": "fullzip"}),
    ("vector", {"structural_encoding": "miniblock"}),
    ("double", {"bss": "on", "compression": "zstd"}),
    ("runs", {"rle_threshold": "0.9"}),
    ("string", {"dict_divisor": "2", "dict_values_compression": "zstd"}),
    ("wide binary", {"structural_encoding": "sparse"}),
    ("long string", {"structural_encoding": "sparse"}),
    ("long string", {}),
]


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_options(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3):
        mask = rng.random(2000) < share
        if name == "long string":
            array = pa.array([chr(97 + number % 26) * 40_000 for number in range(200)], mask=mask[:200])
        elif name == "string":
            array = pa.array([f"word {number}" for number in rng.integers(0, 300, 2000)], mask=mask)
        elif name == "runs":
            array = pa.array(np.repeat(rng.integers(0, 9, 200), 10), pa.int32(), mask=mask)
        else:
            array = nested_array(KINDS[name], 2000, share, rng)
        round_trip(tmp_path / "x.lance", column(array, **options))


PACKED: dict[str, Any] = {"packed": "true"}


@pytest.mark.parametrize("other", [pa.int16(), pa.string(), pa.list_(pa.float32(), 3)], ids=str)
def test_packed_structs(other: pa.DataType, tmp_path: Path) -> None:
    kind = pa.struct([pa.field("a", INT, False), pa.field("b", other, False)])
    array = nested_array(kind, 1000, 0.0, np.random.default_rng(0))
    [layout] = round_trip(tmp_path / "x.lance", column(array, nullable=False, **PACKED))
    assert isinstance(layout, MiniBlockLayout | FullZipLayout)
    round_trip(tmp_path / "y.lance", column(array, nullable=False, structural_encoding="sparse", **PACKED))


SEQUENCES: list[tuple[list[int], Any]] = [
    ([], Constant(None)),
    ([5], Constant((5).to_bytes(8, "little"))),
    ([3, 3, 3], Constant((3).to_bytes(8, "little"))),
    ([0, 1, 2], Range(64, 0, 1)),
    ([9, 7, 5], Flat(64)),
    ([1, 2, 4], Flat(64)),
    ([2**63 - 1, 0, 2**63 - 1], Flat(64)),
    ([*range(3000), 7], OutOfLineBitpacking(64, 12)),
    (list(np.arange(3000) ** 2), Delta(64, 0, OutOfLineBitpacking(64, 13))),
]


@pytest.mark.parametrize(("values", "encoding"), SEQUENCES, ids=lambda value: str(value)[:30])
def test_sequences(values: list[int], encoding: Any) -> None:
    stored, payload = encode_sequence(np.array(values, np.int64))
    assert stored.encoding == encoding
    found = stored.encoding.integers(payload, len(values), 64)
    assert np.frombuffer(found, np.uint64).tolist() == values


# -- asking for it, and refusals -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["2.3", "next"])
def test_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=r"file version 2\.3 is unstable"):
        assert resolve_version(name) == "2.3"


@pytest.mark.parametrize("name", [None, "2.0", "2.1", "2.2", "stable"])
def test_no_other_version_warns(name: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_version(name) != "2.3"


def test_the_warning_is_shown_once(tmp_path: Path) -> None:
    script = (
        "import pyarrow as pa, sys; from lance_dataset.file import LanceFileWriter\n"
        "table = pa.table({'a': [1]})\n"  # imports pandas, which makes Python forget the warnings that it has shown
        "for name in '23':\n"
        "    with LanceFileWriter(sys.argv[1] + name, version='2.3') as writer:\n"
        "        writer.write_batch(table)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "f")], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("unstable") == 1


def test_datasets(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "b": [["x"], [], None], "c": pa.nulls(3, STRUCT)})
    dataset = lance_dataset.write_dataset(table, tmp_path / "ds", data_storage_version="2.3")
    lance_dataset.write_dataset(table, tmp_path / "ds", mode="append")
    assert dataset.data_storage_version == "2.3"
    for module in (lance, lance_dataset):
        found = module.dataset(str(tmp_path / "ds"))
        assert_same(found.to_table(), pa.concat_tables([table, table]))
        assert_same(found.take([4, 0]), pa.concat_tables([table.slice(1, 1), table.slice(0, 1)]))
        assert found.to_table(filter="a = 3").num_rows == 2


def test_public_writer(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "b": [["x"], [], None]})
    with LanceFileWriter(str(tmp_path / "x.lance"), version="next") as writer:
        writer.write_batch(table)
    assert_both_read(tmp_path / "x.lance", table)
    assert open_metadata(tmp_path / "x.lance").version == "2.3"


REFUSED: list[tuple[pa.Field, str]] = [
    (pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"}), "blobs of version 1"),
    (pa.field("x", pa.list_(pa.list_(STRUCT, 2))), "together with lists"),
    (pa.field("x", pa.list_(pa.struct([pa.field("l", pa.list_(INT))]), 2)), "together with lists"),
    (pa.field("x", pa.list_(pa.string(), 2)), "fixed-size lists of string"),
    (pa.field("x", pa.list_(pa.binary(0))), "binary values of width 0"),
]


@pytest.mark.parametrize(("field", "words"), REFUSED, ids=str)
def test_refused(field: pa.Field, words: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=words) as caught:
        write(tmp_path / "x.lance", pa.schema([field]).empty_table())
    assert "column 'x" in str(caught.value)
    assert "2.3" in str(caught.value)


def test_unknown_options(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="structural-encoding"):
        write(tmp_path / "x.lance", column(pa.array([1]), structural_encoding="other"))


def test_nulls_where_there_must_be_none(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="not nullable"):
        write(tmp_path / "x.lance", column(pa.nulls(3, INT), nullable=False))


def test_structs_without_children(tmp_path: Path) -> None:
    round_trip(tmp_path / "x.lance", column(pa.array([{}, {}], pa.struct([]))))
    with pytest.raises(UnsupportedError, match="without a child"):
        write(tmp_path / "y.lance", column(pa.array([{}, None], pa.struct([]))))
