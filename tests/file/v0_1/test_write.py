"""Tests of legacy (0.1) files that this package writes: equal to the reference byte for byte, if there is no choice."""

from __future__ import annotations

import decimal
import struct
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.arrays.random_arrays import FLAT_TYPES, random_array
from support.files.legacy_files import framed, metadata, write
from support.files.legacy_model import as_legacy

import lance_dataset
from lance_dataset._proto import table_pb2
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file.v0_1.write import plain_groups
from lance_dataset.file.writer import DataFileWriter, LegacyWrite, open_writer
from lance_dataset.io.local_output import LocalOutput
from lance_dataset.types.schema import Field, Schema

_NAN, _INF = float("nan"), float("inf")


def reference(table: pa.Table, path: Path, **options: Any) -> bytes:
    """Return the content of the one data file that the reference writes."""
    lance.write_dataset(table, path, data_storage_version="legacy", **options)
    (file,) = (path / "data").iterdir()
    return file.read_bytes()


def parts(content: bytes) -> tuple[bytes, Any, Any]:
    """Return the bytes before the embedded manifest, the manifest without its writer, and the metadata."""
    described = metadata(content)
    manifest = framed(content, described.manifest_position, table_pb2.Manifest)
    assert manifest.HasField("writer_version")
    manifest.ClearField("writer_version")
    return content[: described.manifest_position], manifest, described


def check_equal(table: pa.Table, folder: Path, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = write(table, folder / "ours.lance", **options)
    theirs = reference(table, folder / "theirs", **options)
    for left, right in zip(parts(ours), parts(theirs), strict=True):
        assert left == right


def subfolder(folder: Path) -> Path:
    below = folder / "below"
    below.mkdir()
    return below


# -- the reference writes the same ----------------------------------------------------------------------------------


def with_zeros(array: pa.Array) -> pa.Array:
    """Return the array with zeros below its nulls, as the reference writes them."""
    if pa.types.is_null(array.type) or array.null_count == 0:
        return array
    return pa.array(array.to_pylist(), array.type) if array.type != pa.float16() else array.fill_null(0)


_SAME = {
    name: kind
    for name, kind in FLAT_TYPES.items()
    if name not in ("fixed_binary_0", "decimal128", "decimal256") and not name.endswith("_ns")
}


@pytest.mark.parametrize("name", _SAME)
def test_flat_columns(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    some = with_zeros(random_array(_SAME[name], 2100, 0.2, rng))
    full = random_array(_SAME[name], 2100, 0.0, rng)
    fields = [
        pa.field("some", _SAME[name]),
        pa.field("full", _SAME[name], nullable=False),
        pa.field("all", _SAME[name]),
    ]
    table = pa.table([some, full, pa.nulls(2100, _SAME[name])], schema=pa.schema(fields, metadata={"made": "here"}))
    check_equal(table, tmp_path)
    check_equal(table.slice(77, 1000), subfolder(tmp_path), max_rows_per_group=101)


_NUMBERS = [None if i % 7 == 0 else list(range(i % 5)) for i in range(1500)]
_TEXTS = [None if row is None else [str(item) if item else None for item in row] for row in _NUMBERS]
_NESTED = {
    "list": pa.array(_NUMBERS, pa.list_(pa.int16())),
    "list_of_bool": pa.array([None if row is None else [item > 2 for item in row] for row in _NUMBERS]),
    "list_of_string": pa.array(_TEXTS),
    "list_of_nothing": pa.array([[], []], pa.list_(pa.string())),
    "large_list": pa.array(_TEXTS, pa.large_list(pa.large_binary())),
    "list_of_list": pa.array([[row, [], None] for row in _NUMBERS]),
    "list_of_struct": pa.array([None if row is None else [{"a": i, "b": [str(i)]} for i in row] for row in _NUMBERS]),
    "struct": pa.array([{"a": i, "b": {"c": str(i), "d": [i], "e": i % 2 == 0}} for i in range(1500)]),
    "fixed_list": pa.array([[i, i + 0.5] for i in range(1500)], pa.list_(pa.float32(), 2)),
    "fixed_list_of_bool": pa.array([[i % 2 == 0, i % 3 == 0, True] for i in range(1500)], pa.list_(pa.bool_(), 3)),
    "fixed_list_of_fixed_list": pa.array([[[i, 1]] * 3 for i in range(1500)], pa.list_(pa.list_(pa.int16(), 2), 3)),
    "fixed_list_of_decimal": pa.array([[decimal.Decimal(i)] for i in range(9)], pa.list_(pa.decimal128(5, 1), 1)),
    "dictionary": pa.array(["a", "b", "c", "b"] * 400).dictionary_encode(),
    "dictionary_of_integers": pa.array([5, 6, 5] * 400).dictionary_encode(),
    "dictionary_of_large_string": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.uint8()), pa.array(["x", "y", "unused"], pa.large_string())
    ),
    "struct_of_dictionary": pa.StructArray.from_arrays([pa.array(["a", "b"] * 700).dictionary_encode()], ["d"]),
    "null": pa.nulls(1500),
}


@pytest.mark.parametrize("name", _NESTED)
@pytest.mark.parametrize("group", [1024, 100])
def test_nested_columns(name: str, group: int, tmp_path: Path) -> None:
    rows = len(_NESTED[name])
    table = pa.table(
        {"first": pa.array(range(rows), pa.int32()), "c": _NESTED[name], "last": pa.nulls(rows, pa.bool_())}
    )
    check_equal(table, tmp_path, max_rows_per_group=group)


def test_struct_without_fields(tmp_path: Path) -> None:
    check_equal(pa.table({"e": pa.array([{}, {}], pa.struct([])), "a": [1, 2]}), tmp_path)
    check_equal(pa.table({"a": [1, 2], "e": pa.array([{}, {}], pa.struct([]))}), subfolder(tmp_path))


_BOUNDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "zeros": ([0.0, 0.0], pa.float64()),
    "negative_zeros": ([-0.0, -0.0], pa.float32()),
    "nan_beside_value": ([_NAN, 1.0], pa.float64()),
    "nan_only": ([_NAN, None, _NAN], pa.float32()),
    "infinity": ([_INF], pa.float64()),
    "both_infinities": ([-_INF, _INF, None], pa.float64()),
    "no_float": ([None], pa.float64()),
    "no_int8": ([None, None], pa.int8()),
    "no_uint64": ([None], pa.uint64()),
    "no_date64": ([None], pa.date64()),
    "no_decimal": ([None], pa.decimal128(5, 1)),
    "decimals": ([decimal.Decimal(value) for value in (10**30, -(10**30), 3)], pa.decimal128(38, 0)),
    "negative_decimals": ([decimal.Decimal(value) for value in (-1, -(2**64), -(2**64) - 1)], pa.decimal128(38, 0)),
    "true": ([True, None, True], pa.bool_()),
    "false": ([False, False], pa.bool_()),
    "both": ([True, False], pa.bool_()),
    "no_bool": ([None], pa.bool_()),
    "no_string": ([None], pa.string()),
    "binary_above": ([b"x" * 64 + b"z", b"b"], pa.binary()),
    "binary_short_maximum": ([b"x" * 65, b"y"], pa.large_binary()),
    "cut_order": (["a" * 63 + "zk", "a" * 63 + "é"], pa.string()),
    "cut_order_of_many": (["é" * 33, "é" * 32, "a", "é" * 31 + "z" * 9], pa.large_string()),
}


@pytest.mark.parametrize("name", _BOUNDS)
def test_statistics_of(name: str, tmp_path: Path) -> None:
    values, kind = _BOUNDS[name]
    check_equal(pa.table({"c": pa.array(values, kind)}), tmp_path)


_WIDE: dict[str, pa.Array] = {
    "int8": pa.array([3, -7, 100, -128, 5, 6, 7], pa.int8()),
    "uint64": pa.array([3, 1 << 63, 100, 0, 5, 6, 7], pa.uint64()),
    "nulls": pa.array([None, 4, None, None, None, 9, -1], pa.int32()),
    "float": pa.array([_NAN, -0.0, 3.5, None, _NAN, _INF, -1.0], pa.float32()),
    "double": pa.array([0.0, 0.0, -_INF, 1.0, _NAN, _NAN, 2.0], pa.float64()),
    "date": pa.array([1, None, 3, -9, 5, 6, 7], pa.date32()),
    "time": pa.array([1, None, 3, -9, 5, 6, 7], pa.timestamp("us")),
}


@pytest.mark.parametrize("group", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("name", _WIDE)
def test_columns_that_are_written_together(name: str, group: int, tmp_path: Path) -> None:
    values = _WIDE[name]
    columns = {f"c{number}": pa.concat_arrays([values[number % 7 :], values[: number % 7]]) for number in range(20)}
    check_equal(pa.table(columns), tmp_path, max_rows_per_group=group)


def test_columns_of_many_types_that_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of columns, which are parted if a batch is large, and other columns between them."""
    columns = {
        f"{name}{number}": pa.concat_arrays([values[number % 7 :], values[: number % 7]])
        for number in range(20)
        for name, values in {**_WIDE, "text": pa.array(list("abcdefg"))}.items()
    }
    table = pa.table(columns).select([*sorted(columns)])
    kept = {name: as_legacy(table[name], table.schema.field(name)) for name in table.column_names}
    expected = repr(pa.table(kept).to_pydict())  # NaN equals itself
    for size in (8 << 20, 60):
        monkeypatch.setattr(plain_groups, "_GROUP_BYTES", size)
        for group in (3, 100):
            path = tmp_path / f"{size} {group}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nulls are lost
                ours = lance_dataset.write_dataset(
                    table, path, data_storage_version="legacy", max_rows_per_group=group, max_rows_per_file=5
                )
            found = lance.dataset(str(path)).to_table()
            assert repr(found.to_pydict()) == expected
            assert repr(ours.to_table().to_pydict()) == expected
            for where in ("int83 > 50", "nulls5 = 9", "text2 = 'c'", "date4 = date '1970-01-04'"):
                assert ours.count_rows(where) == lance.dataset(str(path)).count_rows(where)


def test_a_null_that_a_wide_table_must_not_have(tmp_path: Path) -> None:
    fields = [pa.field(f"c{number}", pa.int32(), nullable=number != 5) for number in range(20)]
    table = pa.table([pa.array([1, None])] * 20, schema=pa.schema(fields))
    with pytest.raises(SchemaError, match=r"'c5' is declared not nullable.*1 null"):
        lance_dataset.write_dataset(table, tmp_path / "t", data_storage_version="legacy")


# -- golden values of the format ------------------------------------------------------------------------------------


_A, _SMILE, _NEXT_SMILE = "a", "\U0001f600", "\U0001f601"
_TEXT_BOUNDS: list[tuple[list[str] | list[bytes], Any, Any]] = [
    (["z", _A * 65], _A * 64, "{"),
    (["q" * 64, _A * 10], _A * 10, "q" * 64),
    (["b" + "é" * 40], "b" + "é" * 31, "b" + "é" * 30 + "ê"),
    ([_A * 63 + "é"], _A * 63, _A * 62 + "b"),
    ([_SMILE * 20], _SMILE * 16, _SMILE * 15 + _NEXT_SMILE),
    ([_A * 62 + "\u07ffb"], _A * 62 + "\u07ff", _A * 61 + "b\u07ff"),
    ([_A * 61 + "\ud7ffb"], _A * 61 + "\ud7ff", _A * 61 + "\ue7ff"),
    ([_A * 63 + "\x7fb"], _A * 63 + "\x7f", _A * 62 + "b\x7f"),
    (["\x7f" * 65], "\x7f" * 64, None),
    (["\U0010ffff" * 17, _A], _A, None),
    ([b"\x61" + b"\xff" * 64], b"\x61" + b"\xff" * 63, b"\x62" + bytes(63)),
    ([b"\xff" * 65], b"\xff" * 64, None),
]


def statistics_column(content: bytes, index: int, count: int) -> list[bytes]:
    """Return the values of a string column of the statistics."""
    table = metadata(content).statistics.page_table_position
    position, length = struct.unpack_from("<qq", content, table + 16 * index)
    assert length == count
    offsets = struct.unpack_from(f"<{count + 1}q", content, position)
    return [content[start:stop] for start, stop in pairwise(offsets)]


@pytest.mark.parametrize("case", range(len(_TEXT_BOUNDS)))
def test_bounds_are_cut_at_64_bytes(case: int, tmp_path: Path) -> None:
    values, minimum, maximum = _TEXT_BOUNDS[case]
    content = write(pa.table({"c": values}), tmp_path / "file.lance")
    (low,), (high,) = statistics_column(content, 2, 1), statistics_column(content, 3, 1)
    as_bytes = [bound.encode() if isinstance(bound, str) else bound or b"" for bound in (minimum, maximum)]
    assert [low, high] == as_bytes
    check_equal(pa.table({"c": values}), subfolder(tmp_path))


def test_a_file_with_statistics(tmp_path: Path) -> None:
    """A file with statistics equals the reference's, except for the name of the writer."""
    values = [1, None, 3, 4, None, 6, 7, None, 9, 10]
    with pytest.warns(UserWarning, match=r"'c' holds nulls.*zeros"):
        content = write(pa.table({"c": pa.array(values, pa.int32())}), tmp_path / "file.lance")
    expected = struct.pack("<10i", *(value or 0 for value in values)) + struct.pack("<2q", 0, 10)
    expected += struct.pack("<qii", 3, 1, 10) + struct.pack("<8q", 0, 0, 0x38, 1, 0x40, 1, 0x44, 1)
    assert content[:0x88] == expected
    described = metadata(content)
    assert described.manifest_position == 0x88
    assert (list(described.batch_offsets), described.page_table_position) == ([0, 10], 40)
    assert described.statistics.ByteSize() == 109
    assert list(described.statistics.fields) == [0, 1, 2, 3]
    assert described.statistics.page_table_position == 0x48


def test_a_file_of_all_kinds(tmp_path: Path) -> None:
    """A file equals one that release 0.7.5 wrote, except for the statistics, which came later."""
    indices = pa.array([1, 0, 1], pa.int8())
    table = pa.table(
        {
            "b": pa.array([True, None, True]),
            "s": ["ab", "", None],
            "l": pa.array([[1, 2], None, [3]], pa.list_(pa.int16())),
            "d": pa.DictionaryArray.from_arrays(indices, pa.array(["x", "yz"])),
        }
    )
    with pytest.warns(UserWarning, match="legacy") as caught:
        content = write(table, tmp_path / "file.lance")
    lost = sorted(str(warning.message) for warning in caught)
    assert [text.partition(", which")[0].partition(",")[0] for text in lost] == [
        "column 'b' holds nulls",
        "column 'l' holds nulls",
        "column 's' holds empty values",
    ]
    pages = b"\x05ab" + struct.pack("<4q", 1, 3, 3, 3) + struct.pack("<4i", 0, 2, 2, 3) + struct.pack("<3h", 1, 2, 3)
    cells = struct.pack("<10q", 0, 3, 3, 3, 35, 4, 51, 3, 57, 3)
    assert content[:140] == pages + b"\x01\x00\x01" + cells
    manifest = framed(content, metadata(content).manifest_position, table_pb2.Manifest)
    place = manifest.fields[-1].dictionary
    assert (place.length, content[place.offset - 3 : place.offset]) == (2, b"xyz")
    start = place.offset - 3
    assert struct.unpack_from("<3q", content, place.offset) == (start, start + 1, start + 3)
    assert [field.logical_type for field in manifest.fields] == [
        "bool", "string", "list", "int16", "dict:string:int8:false",
    ]  # fmt: skip
    assert [field.encoding for field in manifest.fields] == [1, 2, 1, 1, 3]


# -- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [[2500], [1] * 30, [1024, 1024, 452], [3, 1021, 1, 2000, 77], [100] * 41])
@pytest.mark.parametrize("cache", [None, 1])
def test_batches_have_the_same_number_of_rows(pieces: list[int], cache: int | None, tmp_path: Path) -> None:
    rows = sum(pieces)
    array = pa.array([str(number) for number in range(rows)])
    ends = np.cumsum([0, *pieces]).tolist()
    chunks = [array.slice(start, stop - start) for start, stop in pairwise(ends)]
    lists = [
        pa.array([[text] * (len(text) % 3) for text in chunk.to_pylist()], pa.list_(pa.string())) for chunk in chunks
    ]
    table = pa.table({"s": pa.chunked_array(chunks), "l": pa.chunked_array(lists, pa.list_(pa.string()))})
    content = write(table, tmp_path / "file.lance", data_cache_bytes=cache)
    assert list(metadata(content).batch_offsets) == [*range(0, rows, 1024), rows]
    assert content == write(table.combine_chunks(), tmp_path / "other.lance")


def test_rows_are_not_held_back_for_long(tmp_path: Path) -> None:
    schema = Schema.from_arrow(pa.schema([pa.field("c", pa.int64())]))
    writer = open_writer(LocalOutput(str(tmp_path / "f.lance"), durable=False), schema, "0.1")
    batch = pa.record_batch({"c": np.arange(3000)})
    for number in range(1, 1001):
        writer.write_batch(batch)
        assert writer.bytes_pending < 9 << 20
        assert writer.bytes_pending + writer.bytes_written == number * 24_000
    assert writer.finish().num_rows == 3_000_000


def test_page_table_starts_at_the_smallest_id_and_ends_at_the_last_page(tmp_path: Path) -> None:
    fields = (
        Field("s", 5, "struct", children=(Field("a", 6, "int8"), Field("e", 7, "struct"))),
        Field("b", 9, "int16"),
        Field("z", 12, "struct"),
    )
    schema = Schema(fields)
    rows = [{"s": {"a": 1, "e": {}}, "b": 2, "z": {}}]
    writer = open_writer(LocalOutput(str(tmp_path / "f.lance"), durable=False), schema, "legacy")
    writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema.storage_arrow))
    summary = writer.finish()
    content = (tmp_path / "f.lance").read_bytes()
    table = metadata(content).page_table_position
    assert summary.fields == (5, 6, 7, 9, 12)
    assert struct.unpack_from("<10q", content, table) == (0, 0, 0, 1, 0, 0, 0, 0, 1, 1)
    statistics = metadata(content).statistics
    assert [field.name for field in statistics.schema if field.parent_id == -1] == ["6", "9"]
    first = struct.unpack_from("<qq", content, statistics.page_table_position + 16)[0]
    assert first == table + 5 * 16  # no value of z, which has no page


def test_other_versions_have_no_batches(tmp_path: Path) -> None:
    schema = Schema.from_arrow(pa.schema([pa.field("c", pa.int64())]))
    writer = open_writer(LocalOutput(str(tmp_path / "f"), durable=False), schema, "2.1", max_rows_per_group=3)
    assert isinstance(writer, DataFileWriter)
    writer.abort()
    with pytest.raises(UnsupportedError, match=r"0\.1"):
        DataFileWriter(LocalOutput(str(tmp_path / "g"), durable=False), schema, "0.1")


# -- nulls ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:column .* legacy")
def test_nothing_shows_below_nulls(tmp_path: Path) -> None:
    """Values under nulls are not written, in any kind of page."""
    mask = pa.py_buffer(b"\x05")
    secret = {
        "int": pa.Array.from_buffers(pa.int32(), 3, [mask, pa.py_buffer(struct.pack("<3i", 1, 0x5EC7, 3))]),
        "bool": pa.Array.from_buffers(pa.bool_(), 3, [mask, pa.py_buffer(b"\x07")]),
        "decimal": pa.Array.from_buffers(pa.decimal128(9), 3, [mask, pa.py_buffer((b"\1" + bytes(15)) * 3)]),
        "fixed": pa.Array.from_buffers(pa.binary(3), 3, [mask, pa.py_buffer(b"aaaXXXbbb")]),
        "text": pa.Array.from_buffers(
            pa.string(), 3, [mask, pa.py_buffer(struct.pack("<4i", 0, 1, 4, 5)), pa.py_buffer(b"aXXXb")]
        ),
        "list": pa.Array.from_buffers(
            pa.list_(pa.int8()),
            3,
            [mask, pa.py_buffer(struct.pack("<4i", 0, 1, 3, 4))],
            children=[pa.array([1, 9, 9, 2], pa.int8())],
        ),
        "fixed_list": pa.Array.from_buffers(
            pa.list_(pa.int8(), 2), 3, [mask], children=[pa.array([1, 2, 9, 9, 3, None], pa.int8())]
        ),
        "bits": pa.Array.from_buffers(pa.list_(pa.bool_(), 3), 3, [mask], children=[pa.array([True] * 9)]),
    }
    secret["struct"] = pa.Array.from_buffers(
        pa.struct([(name, array.type) for name, array in secret.items()]),
        3,
        [mask],
        children=[pa.array([1, 0x5EC7, 3], pa.int32()), *list(secret.values())[1:]],
    )
    table = pa.table(secret)
    expected = pa.table([as_legacy(table[name], table.schema.field(name)) for name in secret], schema=table.schema)
    ours = write(table, tmp_path / "ours.lance")
    plain = write(expected, tmp_path / "plain.lance")
    end = metadata(ours).page_table_position
    assert end == metadata(plain).page_table_position
    assert ours[:end] == plain[:end]


def test_what_is_lost_is_told_once(tmp_path: Path) -> None:
    schema = Schema.from_arrow(pa.schema([("a", pa.int8()), ("s", pa.struct([("t", pa.string())]))]))
    batch = pa.RecordBatch.from_pylist([{"a": None, "s": {"t": ""}}, {"a": 1, "s": None}], schema=schema.storage_arrow)
    shared = LegacyWrite(schema)

    def write_files() -> None:
        for number in range(2):
            output = LocalOutput(str(tmp_path / f"{number}.lance"), durable=False)
            writer = open_writer(output, schema, "legacy", legacy=shared, max_rows_per_group=1)
            for _ in range(3):
                writer.write_batch(batch)
            writer.finish()

    with pytest.warns(UserWarning, match="legacy") as caught:
        write_files()
    texts = sorted(str(warning.message) for warning in caught)
    assert len(texts) == 3
    assert texts[0].startswith("column 'a' holds nulls")
    assert "zeros" in texts[0]
    assert texts[1].startswith("column 's' holds nulls")
    assert texts[2].startswith("column 's.t' holds empty values")
    assert "as null" in texts[2]


@pytest.mark.filterwarnings("error")
def test_nothing_is_told_of_what_is_kept(tmp_path: Path) -> None:
    fields = [
        pa.field("text", pa.string()),
        pa.field("required", pa.string(), nullable=False),
        pa.field("null", pa.null()),
        pa.field("dictionary", pa.dictionary(pa.int8(), pa.string())),
        pa.field("list", pa.list_(pa.binary())),
    ]
    rows = [
        {"text": None, "required": "", "dictionary": None, "list": [None]},
        {"text": "a", "required": "b", "list": []},
    ]
    write(pa.Table.from_pylist(rows, schema=pa.schema(fields)), tmp_path / "file.lance")


def test_lists_that_the_reference_cannot_read(tmp_path: Path) -> None:
    kind = pa.list_(pa.field("element", pa.int8()))
    with pytest.warns(UserWarning, match="'c' has lists whose items are not a nullable field named 'item'"):
        write(pa.table({"c": pa.array([[1]], kind)}), tmp_path / "file.lance")


# -- refusals -------------------------------------------------------------------------------------------------------


_REFUSED = {
    "map": (pa.map_(pa.string(), pa.int8()), "no maps"),
    "map_below": (pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int8()))])), "no maps"),
    "fixed_list_of_string": (pa.list_(pa.string(), 2), "fixed-size lists of string"),
    "fixed_list_of_list_of_binary": (pa.list_(pa.list_(pa.binary(), 1), 2), "fixed-size lists of binary"),
    "fixed_list_of_struct": (pa.list_(pa.struct([("a", pa.int8())]), 2), "fixed-size lists of structs"),
    "dictionary_of_float": (pa.dictionary(pa.int8(), pa.float64()), "not of double"),
    "fixed_binary_0": (pa.binary(0), "fixed size of 0"),
    "empty_struct": (pa.struct([]), "structs without fields"),
    "run_end": (pa.run_end_encoded(pa.int32(), pa.int64()), "run_end_encoded"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_types_that_are_refused(name: str, tmp_path: Path) -> None:
    kind, text = _REFUSED[name]
    output = LocalOutput(str(tmp_path / "f.lance"), durable=False)
    with pytest.raises(UnsupportedError, match=text) as caught:
        open_writer(output, Schema.from_arrow(pa.schema([("col", kind)])), "legacy")
    assert name == "empty_struct" or "col" in str(caught.value)
    output.abort()


def test_blobs_are_refused(tmp_path: Path) -> None:
    field = pa.field("col", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    output = LocalOutput(str(tmp_path / "f.lance"), durable=False)
    with pytest.raises(UnsupportedError, match="blob"):
        open_writer(output, Schema.from_arrow(pa.schema([field])), "legacy")
    output.abort()


_REQUIRED = pa.field("x", pa.int8(), nullable=False)
_NULLS_REFUSED: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "top": (pa.int8(), [1, None], "'col'"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", None], "'col'"),
    "struct": (pa.struct([_REQUIRED]), [{"x": 1}, {"x": None}], "'col.x'"),
    "list": (pa.list_(_REQUIRED), [[1], [None]], "'col.x'"),
    "list_of_struct": (pa.list_(pa.struct([_REQUIRED])), [[{"x": 1}], [{"x": None}]], "'col.item.x'"),
    "dictionary_below": (
        pa.struct([pa.field("x", pa.dictionary(pa.int8(), pa.string()), nullable=False)]), [{"x": None}], "'col.x'"
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:column .* legacy")
@pytest.mark.parametrize("name", _NULLS_REFUSED)
def test_nulls_where_there_must_be_none(name: str, tmp_path: Path) -> None:
    kind, values, path = _NULLS_REFUSED[name]
    field = pa.field("col", kind, nullable=name not in ("top", "dictionary"))
    table = pa.table([pa.array(values, kind)], schema=pa.schema([field]))
    with pytest.raises(SchemaError, match=f"{path} is declared not nullable"):
        write(table, tmp_path / "file.lance")
    assert not (tmp_path / "file.lance").exists()


@pytest.mark.filterwarnings("ignore:column .* legacy")
def test_required_fields_below_null_structs_are_zeros(tmp_path: Path) -> None:
    kind = pa.struct([_REQUIRED, pa.field("t", pa.string(), nullable=False)])
    array = pa.Array.from_buffers(
        kind,
        2,
        [pa.py_buffer(b"\x02")],
        children=[pa.Array.from_buffers(pa.int8(), 2, [None, pa.py_buffer(b"\x63\x05")]), pa.array(["secret", "s"])],
    )
    content = write(pa.table({"c": array}), tmp_path / "file.lance")
    assert content[:3] == b"\x00\x05s"
    statistics = metadata(content).statistics.page_table_position
    (counted, _), (low, _), (high, _) = (struct.unpack_from("<qq", content, statistics + 16 * i) for i in (1, 2, 3))
    assert content[counted : counted + 8] == bytes(8)
    assert (content[low], content[high]) == (0, 5)


def test_too_many_rows(tmp_path: Path) -> None:
    table = pa.table({"n": pa.nulls(2**31 - 1), "m": pa.nulls(2**31 - 1)})
    writer = open_writer(
        LocalOutput(str(tmp_path / "f.lance"), durable=False),
        Schema.from_arrow(table.schema),
        "0.1",
        max_rows_per_group=2**31,
    )
    (batch,) = table.to_batches()
    writer.write_batch(batch)
    with pytest.raises(InvalidInputError, match="at most 2147483647 rows"):
        writer.write_batch(batch.slice(0, 1))
    writer.abort()


def test_arrays_that_are_broken(tmp_path: Path) -> None:
    backwards = pa.py_buffer(struct.pack("<4i", 0, 3, 1, 4))
    cases = {
        "offsets descend": pa.Array.from_buffers(pa.binary(), 3, [None, backwards, pa.py_buffer(b"abcd")]),
        "descend": pa.Array.from_buffers(
            pa.list_(pa.int8()), 3, [None, backwards], children=[pa.array([1] * 4, pa.int8())]
        ),
        "UTF-8": pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(struct.pack("<2i", 0, 1)), pa.py_buffer(b"\xff")]
        ),
        "outside its dictionary": pa.DictionaryArray.from_arrays(pa.array([7], pa.int8()), ["a"], safe=False),
    }
    for text, array in cases.items():
        with pytest.raises(SchemaError, match=text):
            write(pa.table({"c": array}), tmp_path / "file.lance")


@pytest.mark.parametrize("option", [{"max_rows_per_group": 0}, {"data_cache_bytes": 0}])
def test_options_out_of_range(option: dict[str, int], tmp_path: Path) -> None:
    output = LocalOutput(str(tmp_path / "f.lance"), durable=False)
    with pytest.raises(InvalidInputError, match=next(iter(option))):
        open_writer(output, Schema.from_arrow(pa.schema([("c", pa.int8())])), "legacy", **option)
    output.abort()


# -- batches --------------------------------------------------------------------------------------------------------


def test_many_arrays_wait_for_one_batch(tmp_path: Path) -> None:
    """Many small arrays are collected into one batch.

    This must take time that grows with their number, not with its square.
    """
    table = pa.table({"i": np.arange(20_000), "s": np.arange(20_000).astype(str)})
    pieces = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=4))
    options = {"max_rows_per_group": 15_000, "data_cache_bytes": 1}
    lance_dataset.write_dataset(pieces, tmp_path / "t", data_storage_version="legacy", **options)
    assert lance.dataset(str(tmp_path / "t")).to_table() == table
