"""Tests of single files, compared with the reference in both directions."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lance_dataset.errors import (
    CorruptFileError,
    FieldNotFoundError,
    InvalidInputError,
    MissingFileError,
    RowIndexError,
    SchemaError,
    UnsupportedError,
)
from lance_dataset.file import LanceFileReader, LanceFileWriter, stable_version

ROWS = 230


def _numbers(arrow_type: pa.DataType) -> list:
    if pa.types.is_boolean(arrow_type):
        return [i % 3 == 0 for i in range(ROWS)]
    if pa.types.is_floating(arrow_type):
        return [np.float16(i / 4) if arrow_type == pa.float16() else i / 4 for i in range(ROWS)]
    return [i % 120 for i in range(ROWS)]


def _texts(count: int) -> list[str]:
    return [f"é{i % count}" * (i % 4) for i in range(ROWS)]


FLAT: dict[str, tuple[pa.DataType, list]] = {
    str(arrow_type): (arrow_type, _numbers(arrow_type))
    for arrow_type in [
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
        pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "+08:00"),
        pa.timestamp("ns", "Europe/Berlin"), pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns"),
    ]
}  # fmt: skip
FLAT |= {
    "date64": (pa.date64(), [dt.date(2020, 1, 1) + dt.timedelta(i) for i in range(ROWS)]),
    "decimal128": (pa.decimal128(20, 3), [decimal.Decimal(i) / 8 for i in range(0, 8 * ROWS, 8)]),
    "decimal256": (pa.decimal256(60, 3), [decimal.Decimal(i) for i in range(ROWS)]),
    "string": (pa.string(), _texts(1000)),
    "string of few": (pa.string(), _texts(3)),
    "large_string": (pa.large_string(), _texts(1000)),
    "binary": (pa.binary(), [text.encode() for text in _texts(1000)]),
    "large_binary": (pa.large_binary(), [text.encode() for text in _texts(1000)]),
    "fixed_size_binary": (pa.binary(3), [bytes([i, 1, 2]) for i in range(ROWS)]),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), _texts(20)),
    "dictionary of int": (pa.dictionary(pa.uint8(), pa.int64()), [i % 7 for i in range(ROWS)]),
    "fixed list": (pa.list_(pa.float32(), 4), [[i, 1, 2, 3] for i in range(ROWS)]),
    "fixed list of fixed list": (pa.list_(pa.list_(pa.int8(), 2), 2), [[[1, 2], [3, i % 100]] for i in range(ROWS)]),
}
NESTED: dict[str, tuple[pa.DataType, list]] = {
    "list": (pa.list_(pa.int32()), [list(range(i % 4)) for i in range(ROWS)]),
    "large list": (pa.large_list(pa.string()), [["x" * k for k in range(i % 4)] for i in range(ROWS)]),
    "list of list": (pa.list_(pa.list_(pa.int8())), [[[1], [], list(range(i % 3))][: i % 4] for i in range(ROWS)]),
    "list with nulls": (pa.list_(pa.int32()), [[1, None, i] for i in range(ROWS)]),
    "list of struct": (
        pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])),
        [[{"a": i, "b": "q"}] * (i % 3) for i in range(ROWS)],
    ),
    "list of fixed list": (pa.list_(pa.list_(pa.float64(), 2)), [[[i, 2]] * (i % 3) for i in range(ROWS)]),
}
STRUCTS: dict[str, tuple[pa.DataType, list]] = {
    "struct": (
        pa.struct([("a", pa.int32()), ("l", pa.list_(pa.int8())), ("s", pa.struct([("t", pa.string())]))]),
        [{"a": None if i % 5 == 0 else i, "l": [1] * (i % 3), "s": {"t": f"x{i}"}} for i in range(ROWS)],
    ),
}


def _with_nulls(values: list, nulls: str) -> list:
    if nulls == "none":
        return values
    return [None if nulls == "all" or i % 3 == 1 else value for i, value in enumerate(values)]


def _cases() -> list:
    cases = [
        pytest.param(*case, nulls, id=f"{name}-{nulls}")
        for name, case in (FLAT | NESTED).items()
        for nulls in ("none", "some", "all")
    ]
    cases += [pytest.param(*case, "none", id=name) for name, case in STRUCTS.items()]
    return [*cases, pytest.param(pa.null(), [None] * ROWS, "all", id="null")]


def _write(writer: type, path: Path, table: pa.Table, **options: object) -> None:
    with writer(str(path), table.schema, version="2.0", **options) as out:
        for batch in table.to_batches():
            out.write_batch(batch)


def _cut(table: pa.Table) -> pa.Table:
    """Return the same rows in several sliced batches."""
    return pa.concat_tables([table.slice(0, 70), table.slice(70, 1), table.slice(71)])


def _same(found: pa.Table, expected: pa.Table) -> bool:
    """Return True if types and values are equal, whatever the arrangement of dictionaries."""
    return found.schema.equals(expected.schema) and _decoded(found).equals(_decoded(expected))


def _decoded(table: pa.Table) -> pa.Table:
    def decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
        return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column

    columns = [decode(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


@pytest.mark.parametrize(("arrow_type", "values", "nulls"), _cases())
def test_every_type_both_ways(tmp_path: Path, arrow_type: pa.DataType, values: list, nulls: str) -> None:
    table = pa.table({"id": pa.array(range(ROWS)), "v": pa.array(_with_nulls(values, nulls), arrow_type)})
    for options in ({}, {"data_cache_bytes": 300}, {"max_page_bytes": 200}):
        ours, theirs = tmp_path / "ours.lance", tmp_path / "theirs.lance"
        _write(LanceFileWriter, ours, _cut(table), **options)
        # The reference's writer fails on slices of structs.
        _write(lance.file.LanceFileWriter, theirs, table, **options)
        reference = lance.file.LanceFileReader(str(ours)).read_all(batch_size=50).to_table()
        assert _same(reference, table), f"the reference reads our file differently ({options})"
        for path in (ours, theirs):
            reader = LanceFileReader(path)
            assert reader.num_rows() == ROWS
            read = reader.read_all().to_table()
            read.validate(full=True)
            assert _same(read, table), f"{path.name} ({options})"
            assert _same(pa.Table.from_batches(reader.read_all(batch_size=37).to_batches()), table)
            assert _same(reader.read_range(60, 30).to_table(), table.slice(60, 30))
            rows = [0, 3, 69, 70, 71, 150, ROWS - 1]
            assert _same(reader.take_rows(rows).to_table(), table.take(rows))


def test_take_in_any_order(tmp_path: Path) -> None:
    table = pa.table({"a": range(100), "s": [f"x{i}" for i in range(100)]})
    _write(LanceFileWriter, tmp_path / "f.lance", table)
    reader = LanceFileReader(tmp_path / "f.lance")
    rows = np.array([5, 5, 99, 0], np.uint64)
    assert reader.take_rows(rows).to_table().equals(table.take(rows))
    assert [batch.num_rows for batch in reader.take_rows(rows, batch_size=3).to_batches()] == [3, 1]
    assert reader.take_rows([]).to_table().equals(table.slice(0, 0))


def _empty_schema() -> pa.Schema:
    return pa.schema(
        [("a", pa.int32()), ("s", pa.struct([("x", pa.string())])), ("l", pa.list_(pa.int8()))], metadata={"k": "v"}
    )


@pytest.mark.parametrize("batches", [0, 2])
def test_no_rows(tmp_path: Path, batches: int) -> None:
    table = _empty_schema().empty_table()
    for writer, reader in [
        (LanceFileWriter, lance.file.LanceFileReader),
        (lance.file.LanceFileWriter, LanceFileReader),
        (LanceFileWriter, LanceFileReader),
    ]:
        path = tmp_path / f"{writer.__module__}-{reader.__module__}.lance"
        with writer(str(path), table.schema, version="2.0") as out:
            for _ in range(batches):
                out.write_batch(pa.RecordBatch.from_pylist([], schema=table.schema))
        read = reader(str(path)).read_all().to_table()
        assert read.num_rows == 0
        assert read.schema.equals(table.schema, check_metadata=True)


@pytest.fixture
def nested_file(tmp_path: Path) -> tuple[Path, pa.Table]:
    rows = [{"x": i, "y": f"q{i}"} for i in range(10)]
    table = pa.table({"a": range(10), "s": rows, "l": [[1, 2]] * 10}).replace_schema_metadata({"m": "n"})
    path = tmp_path / "nested.lance"
    with LanceFileWriter(path, version="2.0") as out:
        assert out.add_global_buffer(b"early") == 1
        out.write_batch(table)
        assert out.add_global_buffer(b"late") == 2
        out.add_schema_metadata("k", "v")
    return path, table


@pytest.mark.parametrize(
    "columns", [["a"], ["l", "a"], ["s"], ["s.y", "a"], ["s.y", "s.x"], ["a", "a"], ["s.y", "s"], ["l.item"]]
)
def test_projection_as_the_reference(nested_file: tuple[Path, pa.Table], columns: list[str]) -> None:
    path, _ = nested_file
    expected = lance.file.LanceFileReader(str(path), columns=columns).read_all().to_table()
    found = LanceFileReader(path, columns=columns).read_all().to_table()
    assert found.equals(expected, check_metadata=True)


def test_metadata_as_the_reference(nested_file: tuple[Path, pa.Table], tmp_path: Path) -> None:
    path, table = nested_file
    _write(lance.file.LanceFileWriter, tmp_path / "theirs.lance", table)
    for file in (path, tmp_path / "theirs.lance"):
        ours, theirs = LanceFileReader(file), lance.file.LanceFileReader(str(file))
        found, expected = ours.metadata(), theirs.metadata()
        for name in (
            "num_rows", "major_version", "minor_version", "num_data_bytes", "num_column_metadata_bytes",
            "num_global_buffer_bytes",
        ):  # fmt: skip
            assert getattr(found, name) == getattr(expected, name), name
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert _places(found.global_buffers) == _places(expected.global_buffers)
        assert len(found.columns) == len(expected.columns)
        for mine, other in zip(found.columns, expected.columns, strict=True):
            assert [_places(page.buffers) for page in mine.pages] == [_places(page.buffers) for page in other.pages]
            assert all(page.encoding for page in mine.pages)
        counts = [(column.num_pages, column.size_bytes) for column in ours.file_statistics().columns]
        assert counts == [(column.num_pages, column.size_bytes) for column in theirs.file_statistics().columns]


def _places(buffers: list) -> list[tuple[int, int]]:
    return [(buffer.position, buffer.size) for buffer in buffers]


def test_global_buffers(nested_file: tuple[Path, pa.Table]) -> None:
    path, _ = nested_file
    ours, theirs = LanceFileReader(path), lance.file.LanceFileReader(str(path))
    assert ours.read_global_buffer(1) == theirs.read_global_buffer(1) == b"early"
    assert ours.read_global_buffer(2) == theirs.read_global_buffer(2) == b"late"
    assert ours.read_global_buffer(0) == theirs.read_global_buffer(0)
    with pytest.raises(ValueError, match="only 3 global buffers"):
        ours.read_global_buffer(3)
    with pytest.raises(OverflowError):
        ours.read_global_buffer(-1)


def test_pages_are_cut(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(range(10_000), pa.int64())})
    _write(LanceFileWriter, tmp_path / "f.lance", table, max_page_bytes=8000)
    assert len(LanceFileReader(tmp_path / "f.lance").metadata().columns[0].pages) >= 10


class _Bfloat16(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.binary(2), "test.bfloat16")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"meta"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _Bfloat16:
        assert serialized == b"meta"
        return cls()


@pytest.fixture
def registered() -> object:
    pa.register_extension_type(_Bfloat16())
    yield
    pa.unregister_extension_type("test.bfloat16")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("nested", ["flat", "struct", "list"])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: (pa.uuid(), [b"0" * 16, None, b"1" * 16]), id="uuid"),
        pytest.param(lambda: (pa.bool8(), [1, 0, None]), id="bool8"),
        pytest.param(lambda: (_Bfloat16(), [b"ab", None, b"cd"]), id="user defined"),
        pytest.param(
            lambda: (
                pa.fixed_shape_tensor(pa.float32(), [2, 2], dim_names=["H", "W"]),
                [[1, 2, 3, 4], None, [5, 6, 7, 8]],
            ),
            id="tensor",
        ),
    ],
)
def test_extension_types(tmp_path: Path, make: Callable[[], tuple], nested: str) -> None:
    extension, values = make()
    array = pa.ExtensionArray.from_storage(extension, pa.array(values, extension.storage_type))
    if nested == "struct":
        array = pa.StructArray.from_arrays([array], fields=[pa.field("x", extension)])
    elif nested == "list":
        array = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3]), array)
    table = pa.table({"v": array, "i": [1, 2, 3]})
    path = tmp_path / "f.lance"
    _write(LanceFileWriter, path, table)
    for read in (LanceFileReader(path), lance.file.LanceFileReader(str(path))):
        found = read.read_all().to_table()
        assert found.schema.equals(table.schema)
        found.validate(full=True)
        assert found.equals(table)
    assert LanceFileReader(path).take_rows([2, 0]).to_table().equals(table.take([2, 0]))


def test_lance_bfloat16_metadata_survives(tmp_path: Path) -> None:
    metadata = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
    item = pa.field("item", pa.binary(2), metadata=metadata)
    schema = pa.schema([pa.field("v", pa.binary(2), metadata=metadata), pa.field("l", pa.list_(item, 2))])
    table = pa.table([pa.array([b"ab", None]), pa.array([[b"ab", b"cd"], None])], schema=schema)
    _write(LanceFileWriter, tmp_path / "ours.lance", table)
    _write(lance.file.LanceFileWriter, tmp_path / "theirs.lance", table)
    for name in ("ours.lance", "theirs.lance"):
        found = LanceFileReader(tmp_path / name).read_all().to_table()
        expected = lance.file.LanceFileReader(str(tmp_path / name)).read_all().to_table()
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.equals(expected)


def test_views_become_plain(tmp_path: Path) -> None:
    texts = pa.array(["a", None, "b" * 40], pa.string_view())
    table = pa.table({"s": texts, "l": pa.array([[b"x"], None, []], pa.list_(pa.binary_view()))})
    with LanceFileWriter(tmp_path / "f.lance") as out:
        out.write_batch(table)
    found = lance.file.LanceFileReader(str(tmp_path / "f.lance")).read_all().to_table()
    assert found.schema == pa.schema([("s", pa.string()), ("l", pa.list_(pa.binary()))])
    assert found.to_pylist() == table.to_pylist()


# -- errors ----------------------------------------------------------------------------------------------------------


def test_exception_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"

    def fail() -> None:
        with LanceFileWriter(path, data_cache_bytes=10) as out:
            out.write_batch(pa.record_batch({"a": list(range(1000))}))
            raise RuntimeError("x")

    with pytest.raises(RuntimeError, match="x"):
        fail()
    assert not path.exists()


def test_existing_file_is_replaced_but_not_by_a_bad_schema(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    _write(LanceFileWriter, path, pa.table({"a": [1]}))
    with pytest.raises(UnsupportedError, match="map"):
        LanceFileWriter(path, pa.schema([("m", pa.map_(pa.string(), pa.int32()))]), version="2.1")
    assert LanceFileReader(path).num_rows() == 1
    _write(LanceFileWriter, path, pa.table({"a": [1, 2]}))
    assert LanceFileReader(path).num_rows() == 2


def test_writer_counts_and_closes_once(tmp_path: Path) -> None:
    out = LanceFileWriter(tmp_path / "f.lance")
    out.write_batch(pa.table({"a": [1, 2]}))
    assert out.close() == 2
    assert out.close() is None
    with pytest.raises(InvalidInputError, match="closed"):
        out.write_batch(pa.table({"a": [1]}))


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    with LanceFileWriter(tmp_path / "f.lance", pa.schema([("a", pa.int64()), ("b", pa.string())])) as out:
        out.write_batch(pa.record_batch({"b": ["x"], "a": [1]}))
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (pa.record_batch({"a": [1]}), "no column 'b'"),
        (pa.record_batch({"a": [1], "b": ["x"], "c": [1]}), "'c'"),
        (pa.record_batch({"a": ["1"], "b": ["x"]}), "column 'a': the data has type string, but the schema has int64"),
        (pa.record_batch({"a": pa.array([1, None]), "b": ["x", "y"]}), "column 'a' is declared not nullable"),
    ],
)
def test_batches_that_do_not_fit(tmp_path: Path, batch: pa.RecordBatch, message: str) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])

    def write() -> None:
        with LanceFileWriter(tmp_path / "f.lance", schema) as out:
            out.write_batch(batch)

    with pytest.raises(SchemaError, match=message):
        write()
    assert not (tmp_path / "f.lance").exists()


def test_writer_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no schema"):
        LanceFileWriter(tmp_path / "f.lance").close()
    with pytest.raises(ValueError, match=r"version: 9\.9"):
        LanceFileWriter(tmp_path / "f.lance", version="9.9")
    with pytest.raises(TypeError, match="dict"):
        LanceFileWriter(tmp_path / "f.lance").write_batch({"a": [1]})
    with pytest.raises(UnsupportedError, match="null structs"):
        with LanceFileWriter(tmp_path / "f.lance", version="2.0") as out:
            out.write_batch(pa.table({"s": [{"x": 1}, None]}))
    out = LanceFileWriter(tmp_path / "f.lance", data_cache_bytes=1, version="2.0")
    with pytest.raises(UnsupportedError, match="null structs"):
        out.write_batch(pa.table({"a": [1, 2], "s": [{"x": 1}, None]}))
    assert out.close() is None
    assert not (tmp_path / "f.lance").exists()


def test_reader_errors(nested_file: tuple[Path, pa.Table], tmp_path: Path) -> None:
    path, _ = nested_file
    with pytest.raises(MissingFileError):
        LanceFileReader(tmp_path / "none.lance")
    (tmp_path / "bad.lance").write_bytes(b"x" * 100)
    with pytest.raises(CorruptFileError, match="Lance file, or truncated"):
        LanceFileReader(tmp_path / "bad.lance")
    with pytest.raises(FieldNotFoundError, match="'q'"):
        LanceFileReader(path, columns=["q"])
    with pytest.raises(InvalidInputError, match="at least one column"):
        LanceFileReader(path, columns=[])
    reader = LanceFileReader(path)
    with pytest.raises(ValueError, match="rows 8 to 13 of a file with 10 rows"):
        reader.read_range(8, 5)
    with pytest.raises(OverflowError):
        reader.read_range(-1, 5)
    with pytest.raises(ValueError, match="row 30"):
        reader.take_rows([3, 30])
    with pytest.raises(RowIndexError):
        reader.take_rows([-1])
    with pytest.raises(InvalidInputError, match="integers"):
        reader.take_rows([1.5])
    with pytest.raises(InvalidInputError, match="batch_size"):
        reader.read_all(batch_size=0)


def test_truncated_everywhere(nested_file: tuple[Path, pa.Table], tmp_path: Path) -> None:
    data = nested_file[0].read_bytes()
    for size in range(0, len(data), 7):
        (tmp_path / "cut.lance").write_bytes(data[:size])
        with pytest.raises((CorruptFileError, UnsupportedError)):
            LanceFileReader(tmp_path / "cut.lance").read_all().to_table()


def test_uris_and_version(nested_file: tuple[Path, pa.Table]) -> None:
    path, table = nested_file
    assert LanceFileReader(f"file://{path}").read_all().to_table().equals(table)
    assert LanceFileReader(str(path)).num_rows() == 10
    assert stable_version() == "2.2"
