"""Tests of writing 2.0 with all its options: pages are not larger than the reference's, and both read the same."""

from __future__ import annotations

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
from support.files.file_parts import FileParts, take_apart_file

import lance_dataset
from lance_dataset import file
from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import SchemaError, UnsupportedError
from lance_dataset.file.container import FileMetadata
from lance_dataset.io.resolve import resolve

examples = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))

PACKED = {"lance-encoding:packed": "true"}
BLOB = {"lance-encoding:blob": "true"}
WORDS = [f"the word of row {row * 7919 % 5003}" if row % 7 else None for row in range(5000)]
FEW = [f"word {row % 20}" if row % 3 else None for row in range(2000)]


def compression(scheme: str, level: str | None = None) -> dict[str, str]:
    metadata = {"lance-encoding:compression": scheme}
    return metadata if level is None else {**metadata, "lance-encoding:compression-level": level}


def write(module: Any, path: Path, field: pa.Field, *arrays: pa.Array, **options: Any) -> Path:
    schema = pa.schema([field])
    with module.LanceFileWriter(str(path), schema, version="2.0", **options) as writer:
        for array in arrays:
            writer.write_batch(pa.record_batch([array], schema=schema))
    return path


def read(module: Any, path: Path) -> list[Any]:
    table = module.LanceFileReader(str(path)).read_all().to_table()
    table.validate(full=True)
    return table.column(0).to_pylist()


def page_bytes(path: Path) -> int:
    """Return the bytes of all page buffers and of their descriptions, as the reference would describe them today."""
    parts = take_apart_file(path)
    return sum(
        sum(page.buffer_sizes) + as_today(parts.encoding(column, number)).ByteSize()
        for column, stored in enumerate(parts.columns)
        for number, page in enumerate(stored.pages)
    )


def as_today(encoding: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Return the encoding of strings without the no-nulls mark of their bytes, which releases before 0.18 require."""
    inner = encoding.dictionary.items if encoding.HasField("dictionary") else encoding
    if inner.HasField("binary") and inner.binary.bytes.HasField("nullable"):
        inner.binary.bytes.CopyFrom(inner.binary.bytes.nullable.no_nulls.values)
    return encoding


def both(tmp_path: Path, field: pa.Field, *arrays: pa.Array) -> tuple[FileParts, FileParts]:
    """Return the file of each library, after checking that both read the same and that ours is not larger."""
    expected = [value for array in arrays for value in array.to_pylist()]
    mine = write(file, tmp_path / "mine.lance", field, *arrays)
    theirs = write(lance.file, tmp_path / "theirs.lance", field, *arrays)
    for path in (mine, theirs):
        assert read(file, path) == expected
        assert read(lance.file, path) == expected
        rows = [len(expected) - 1, 0, len(expected) // 2]
        found = file.LanceFileReader(path).take_rows(rows).to_table().column(0).to_pylist()
        assert found == [expected[row] for row in rows]
    assert page_bytes(mine) <= page_bytes(theirs)
    return take_apart_file(mine), take_apart_file(theirs)


def kind_of(parts: FileParts, column: int = 0) -> str:
    return parts.encoding(column).WhichOneof("array_encoding")


# -- strings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 20, 50, 99, 100, 101, 250])
@pytest.mark.parametrize("rows", [99, 100, 300, 5000])
@pytest.mark.parametrize("nulls", [False, True])
def test_few_distinct_strings(tmp_path: Path, count: int, rows: int, nulls: bool) -> None:
    values = [
        None if count == 0 or (nulls and row % 5 == 0) else f"value {row % count}" * (row % 2 + 1)
        for row in range(rows)
    ]
    mine, theirs = both(tmp_path, pa.field("a", pa.string()), pa.array(values, pa.string()))
    if 1 <= count <= 20 and rows >= 100:
        assert kind_of(mine) == kind_of(theirs) == "dictionary"
        assert mine.columns[0].pages[0].buffer_sizes == theirs.columns[0].pages[0].buffer_sizes
    elif rows < 100 and count:
        assert kind_of(mine) == kind_of(theirs) == "binary"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("scheme", ["zstd", "lz4", "none", "fsst"])
@pytest.mark.parametrize("values", ["words", "few", "nulls", "tiny", "empty"])
def test_compressed_strings(tmp_path: Path, kind: pa.DataType, scheme: str, values: str) -> None:
    given = {"words": WORDS, "few": FEW, "nulls": [None] * 7, "tiny": ["a", "", None], "empty": [""] * 3}[values]
    field = pa.field("a", kind, metadata=compression(scheme))
    array = pa.array(given, pa.string()).cast(kind)
    if scheme == "fsst" and (kind in (pa.large_string(), pa.large_binary()) or values in ("nulls", "empty")):
        # the reference panics
        if kind in (pa.large_string(), pa.large_binary()):
            with pytest.raises(UnsupportedError, match=r"'a'.*fsst.*large.*zstd"):
                write(file, tmp_path / "a.lance", field, array)
        else:
            path = write(file, tmp_path / "a.lance", field, array)
            assert read(file, path) == read(lance.file, path) == array.to_pylist()
        return
    mine, theirs = both(tmp_path, field, array)
    if values == "words":
        expected = {"zstd": "binary", "lz4": "binary", "none": "binary", "fsst": "fsst"}[scheme]
        assert kind_of(mine) == kind_of(theirs) == expected
        ours = as_today(mine.encoding(0)).binary.bytes.flat.compression.scheme
        assert ours == (scheme if scheme in ("zstd", "lz4") else "")
    if values == "few" and kind == pa.string():
        assert kind_of(mine) == kind_of(theirs) == "dictionary"


def test_levels(tmp_path: Path) -> None:
    array = pa.array(WORDS)
    sizes = {}
    for level in ("-5", "1", "19", "100"):
        mine, _ = both(tmp_path, pa.field("a", pa.string(), metadata=compression("zstd", level)), array)
        assert mine.encoding(0).binary.bytes.flat.compression.level == int(level)
        sizes[level] = mine.columns[0].pages[0].buffer_sizes[1]
    assert sizes["-5"] > sizes["1"] > sizes["19"] >= sizes["100"]


def test_options_that_do_not_exist_are_ignored_with_a_warning(tmp_path: Path) -> None:
    array = pa.array(WORDS)
    with pytest.warns(UserWarning, match="'a'.*'snappy'.*ignored"):
        mine, theirs = both(tmp_path, pa.field("a", pa.string(), metadata=compression("snappy")), array)
    assert mine.columns[0].pages[0].buffer_sizes == theirs.columns[0].pages[0].buffer_sizes
    with pytest.warns(UserWarning, match="'a'.*compression-level.*'x'"):
        both(tmp_path, pa.field("a", pa.string(), metadata=compression("zstd", "x")), array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both(tmp_path, pa.field("a", pa.int32(), metadata=compression("snappy")), pa.array([1, 2], pa.int32()))


def test_options_of_children(tmp_path: Path) -> None:
    item = pa.field("item", pa.string(), metadata=compression("zstd"))
    child = pa.field("x", pa.string(), metadata=compression("lz4"))
    lists = pa.array([[word] for word in WORDS], pa.list_(item))
    mine, _ = both(tmp_path, pa.field("a", lists.type), lists)
    assert mine.encoding(1).binary.bytes.flat.compression.scheme == "zstd"
    structs = pa.array([{"x": word} for word in WORDS], pa.struct([child]))
    mine, _ = both(tmp_path, pa.field("a", structs.type), structs)
    assert mine.encoding(1).binary.bytes.flat.compression.scheme == "lz4"
    plain = pa.array([[word] for word in WORDS])
    mine, _ = both(tmp_path, pa.field("a", plain.type, metadata=compression("zstd")), plain)
    assert mine.encoding(1).binary.bytes.flat.compression.scheme == ""


@pytest.mark.parametrize("scheme", ["zstd", "lz4", "fsst"])
def test_compressed_text_is_checked(tmp_path: Path, scheme: str) -> None:
    content = b"\xff" * 5000
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 5000], np.int32)), pa.py_buffer(content)]
    )
    with pytest.raises(SchemaError, match=r"'a'.*UTF-8"):
        write(file, tmp_path / "a.lance", pa.field("a", pa.string(), metadata=compression(scheme)), broken)


@examples
@given(
    values=st.lists(st.none() | st.text(max_size=12) | st.sampled_from(WORDS), max_size=300),
    scheme=st.sampled_from(["zstd", "lz4", "fsst", "none"]),
    start=st.integers(0, 3),
    repeat=st.sampled_from([1, 1, 40]),
)
def test_any_strings(tmp_path: Path, values: list[str | None], scheme: str, start: int, repeat: int) -> None:
    array = pa.array(values * repeat, pa.string()).slice(start)
    field = pa.field("a", pa.string(), metadata=compression(scheme))
    path = write(file, tmp_path / "a.lance", field, array)
    assert read(file, path) == array.to_pylist()
    if len(array):
        assert read(lance.file, path) == array.to_pylist()


# -- pages without a choice -------------------------------------------------------------------------------------------

SAME_PAGES: dict[str, pa.Array] = {
    "int32": pa.array([1, None, 3], pa.int32()),
    "booleans": pa.array([True, None, False] * 5),
    "all null": pa.nulls(3, pa.float64()),
    "vectors": pa.array([[1, 2], None, [3, None]], pa.list_(pa.float32(), 2)),
    "boolean lists": pa.array([[True, False, True], [False] * 3, [True] * 3], pa.list_(pa.bool_(), 3)),
    "lists": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    "strings": pa.array(["x", None, "yz"]),
    "string dictionary": pa.array(["a", None, "bb", "bb", "a"] * 20),
    "dictionary": pa.array(["a", None, "bb", "a"]).dictionary_encode(),
    "structs": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}]),
}


@pytest.mark.parametrize("name", SAME_PAGES)
def test_pages_as_the_reference_makes_them(tmp_path: Path, name: str) -> None:
    array = SAME_PAGES[name]
    mine, theirs = both(tmp_path, pa.field("a", array.type), array)
    for column, (ours, other) in enumerate(zip(mine.columns, theirs.columns, strict=True)):
        [one], [two] = ours.pages, other.pages
        assert as_today(mine.encoding(column)) == theirs.encoding(column)
        contents = [
            [parts.data[at : at + size] for at, size in zip(page.buffer_offsets, page.buffer_sizes, strict=True)]
            for parts, page in ((mine, one), (theirs, two))
        ]
        if name not in ("int32", "booleans", "vectors"):  # whose nulls have any bytes
            assert contents[0] == contents[1]


# -- packed structs --------------------------------------------------------------------------------------------------

CHILDREN = {
    "numbers": pa.struct([("a", pa.int8()), ("b", pa.int32()), ("c", pa.float16())]),
    "one": pa.struct([("a", pa.int64())]),
    "lists": pa.struct(
        [("a", pa.int8()), ("b", pa.list_(pa.float32(), 3)), ("c", pa.list_(pa.list_(pa.int8(), 2), 2))]
    ),
    "others": pa.struct([("a", pa.decimal128(5, 1)), ("b", pa.timestamp("us", "UTC")), ("c", pa.binary(3))]),
}


def sample(kind: pa.DataType, row: int) -> Any:
    if pa.types.is_fixed_size_list(kind):
        return [sample(kind.value_type, row + place) for place in range(kind.list_size)]
    if pa.types.is_fixed_size_binary(kind):
        return bytes([row % 256] * kind.byte_width)
    return row % 100


def packed_array(name: str, count: int) -> pa.Array:
    kind = CHILDREN[name]
    rows = range(count)
    columns = [pa.array([sample(child.type, row) for row in rows], child.type) for child in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind))


@pytest.mark.parametrize("key", ["packed", "lance-encoding:packed"])
@pytest.mark.parametrize("name", CHILDREN)
def test_packed_structs(tmp_path: Path, name: str, key: str) -> None:
    array = packed_array(name, 1000)
    field = pa.field("s", array.type, metadata={key: "true"})
    mine, theirs = both(tmp_path, field, array.slice(3, 900), array.slice(990))
    assert kind_of(mine) == "packed_struct"
    assert mine.encoding(0) == theirs.encoding(0)
    [ours, other] = [parts.columns[0].pages[0] for parts in (mine, theirs)]
    content = [
        parts.data[page.buffer_offsets[0] :][: page.buffer_sizes[0]] for parts, page in ((mine, ours), (theirs, other))
    ]
    assert content[0] == content[1]
    names = [child.name for child in array.type]
    for path in (tmp_path / "mine.lance", tmp_path / "theirs.lance"):
        for chosen in (names[:1], names[-1:], names[::-1]):
            reader = file.LanceFileReader(path, columns=[f"s.{child}" for child in chosen])
            found = reader.take_rows([899, 0, 905]).to_table()["s"].to_pylist()
            assert found[0] == {child: array[902].as_py()[child] for child in names if child in chosen}


def test_packed_inside_others(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int8())])
    rows = [{"a": 1}, {"a": 2}]
    lists = pa.list_(pa.field("item", inner, metadata={"packed": "true"}))
    both(tmp_path, pa.field("l", lists), pa.array([rows, None, [], rows[:1]], lists))
    outer = pa.struct([pa.field("p", inner, metadata=PACKED), pa.field("q", pa.string())])
    both(tmp_path, pa.field("s", outer), pa.array([{"p": rows[0], "q": "x"}, {"p": rows[1], "q": None}], outer))


@pytest.mark.parametrize("value", ["false", "0", "FALSE"])
def test_not_packed(tmp_path: Path, value: str) -> None:
    """A false value of `lance-encoding:packed` prevents packing; the reference packs, and cannot read the result."""
    array = packed_array("one", 5)
    field = pa.field("s", array.type, metadata={"lance-encoding:packed": value})
    mine = write(file, tmp_path / "mine.lance", field, array)
    assert kind_of(take_apart_file(mine)) == "struct"
    theirs = write(lance.file, tmp_path / "theirs.lance", field, array)
    assert read(file, mine) == read(file, theirs) == array.to_pylist()


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.bool_(),
        pa.null(),
        pa.struct([("x", pa.int8())]),
        pa.list_(pa.int8()),
        pa.list_(pa.bool_(), 8),
        pa.dictionary(pa.int8(), pa.int8()),
        pa.binary(0),
    ],
    ids=str,
)
def test_children_that_are_not_packed(tmp_path: Path, kind: pa.DataType) -> None:
    struct = pa.struct([("a", pa.int8()), ("b", kind)])
    with pytest.raises(UnsupportedError, match=r"'s'.*packed structs of file version 2\.0"):
        write(file, tmp_path / "a.lance", pa.field("s", struct, metadata=PACKED))


def test_nulls_are_not_packed(tmp_path: Path) -> None:
    kind = CHILDREN["lists"]
    valid = packed_array("lists", 1).to_pylist()[0]
    for broken in (None, {**valid, "a": None}, {**valid, "b": None}, {**valid, "c": [[1, None], [3, 4]]}):
        array = pa.array([valid, broken], kind)
        with pytest.raises(UnsupportedError, match=r"'s.*null.*2\.1"):
            write(file, tmp_path / "a.lance", pa.field("s", kind, metadata=PACKED), array)
    with pytest.raises(UnsupportedError, match=r"'s'.*needs a child"):
        write(file, tmp_path / "a.lance", pa.field("s", pa.struct([]), metadata=PACKED))


# -- blobs -----------------------------------------------------------------------------------------------------------

BLOB_FIELD = pa.field("b", pa.large_binary(), metadata=BLOB)
BLOBS = [b"hello", None, b"", b"x" * 100, b"y" * 70_000, None, bytes(range(256)), b"\0"]


def blobs(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.large_binary())


@pytest.mark.parametrize(
    "arrays",
    [
        [blobs(BLOBS)],
        [blobs(BLOBS).slice(2, 3), blobs(BLOBS * 2).slice(1)],
        [blobs([None] * 5)],
        [blobs([b""] * 5)],
        [blobs([b"%d" % row if row % 3 else None for row in range(5000)])],
    ],
)
def test_blobs(tmp_path: Path, arrays: list[pa.Array]) -> None:
    mine, theirs = both(tmp_path, BLOB_FIELD, *arrays)
    assert mine.columns[0].encoding == theirs.columns[0].encoding
    assert [page.length for page in mine.columns[0].pages] == [page.length for page in theirs.columns[0].pages]
    assert mine.encoding(0) == theirs.encoding(0)
    stored = mine.columns[0].pages[0]
    # values first, then the page: both place every value alike
    assert (
        mine.data[: sum(stored.buffer_sizes) + stored.buffer_offsets[0]]
        == theirs.data[: sum(stored.buffer_sizes) + stored.buffer_offsets[0]]
    )


def test_golden_blobs(tmp_path: Path) -> None:
    mine, _ = both(tmp_path, BLOB_FIELD, blobs([b"hello", None, b""]))
    assert mine.data[:64] == b"hello" + b"\x48" * 59
    assert np.frombuffer(mine.data[64:112], np.uint64).tolist() == [0, 5, 1, 0, 0, 0]


def test_blobs_inside_others(tmp_path: Path) -> None:
    item = pa.field("item", pa.large_binary(), metadata=BLOB)
    both(tmp_path, pa.field("l", pa.list_(item)), pa.array([[b"x", None], None, [], [b"y" * 500]], pa.list_(item)))
    struct = pa.struct([pa.field("x", pa.large_binary(), metadata=BLOB), pa.field("y", pa.int8())])
    both(tmp_path, pa.field("s", struct), pa.array([{"x": b"hello", "y": 1}, {"x": None, "y": None}], struct))


def test_pages_of_blobs_do_not_depend_on_their_size(tmp_path: Path) -> None:
    """The pages of blobs do not depend on the size of the blobs: values are written at once, descriptions by page."""
    batches = [blobs([bytes([row]) * 200_000]) for row in range(10)]
    path = write(file, tmp_path / "a.lance", BLOB_FIELD, *batches, data_cache_bytes=1000)
    [stored] = take_apart_file(path).columns[0].pages
    assert stored.length == 10
    assert read(lance.file, path) == read(file, path) == [bytes([row]) * 200_000 for row in range(10)]


def test_large_values_are_not_copied(tmp_path: Path) -> None:
    value = np.full(64 << 20, 7, np.uint8).tobytes()
    array = blobs([value])
    before = pa.total_allocated_bytes()
    write(file, tmp_path / "a.lance", BLOB_FIELD, array)
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert (tmp_path / "a.lance").stat().st_size < len(value) + 4096


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_string(), pa.int32()], ids=str)
def test_blobs_of_other_types(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"'b'.*large_binary"):
        write(file, tmp_path / "a.lance", pa.field("b", kind, metadata=BLOB))


@examples
@given(st.lists(st.none() | st.binary(max_size=200), max_size=60), st.integers(0, 5), st.booleans())
def test_any_blobs(tmp_path: Path, values: list[bytes | None], start: int, reference: bool) -> None:
    array = blobs(values).slice(start)
    path = write(lance.file if reference and len(array) else file, tmp_path / "a.lance", BLOB_FIELD, array)
    assert read(file, path) == array.to_pylist()
    if len(array):
        assert read(lance.file, path) == array.to_pylist()
        rows = list(range(len(array)))[::-2]
        found = file.LanceFileReader(path).take_rows(rows).to_table()["b"].to_pylist()
        assert found == [array[row].as_py() for row in rows]


# -- datasets --------------------------------------------------------------------------------------------------------


def everything(count: int = 600) -> pa.Table:
    fields = [
        pa.field("id", pa.int64()),
        pa.field("zstd", pa.string(), metadata=compression("zstd")),
        pa.field("fsst", pa.string(), metadata=compression("fsst")),
        pa.field("few", pa.string()),
        pa.field("s", CHILDREN["lists"], metadata=PACKED),
        pa.field("b", pa.large_binary(), metadata=BLOB),
        pa.field("d", pa.dictionary(pa.int8(), pa.string())),
        pa.field("null", pa.string()),
    ]
    columns = [
        pa.array(range(count)),
        pa.array(WORDS[:count]),
        pa.array(WORDS[:count]),
        pa.array(FEW[:count]),
        packed_array("lists", count),
        blobs([b"%d" % row if row % 3 else None for row in range(count)]),
        pa.array(FEW[:count]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
        pa.nulls(count, pa.string()),
    ]
    return pa.table(columns, schema=pa.schema(fields))


def without_blobs(table: pa.Table) -> dict[str, list[Any]]:
    return table.drop_columns(["b"]).to_pydict()


@pytest.mark.parametrize("module", [lance, lance_dataset], ids=["theirs", "ours"])
def test_datasets(tmp_path: Path, module: Any) -> None:
    table = everything()
    module.write_dataset(table, str(tmp_path / "d"), data_storage_version="2.0", max_rows_per_file=250)
    theirs, ours = lance.dataset(str(tmp_path / "d")), lance_dataset.dataset(tmp_path / "d")
    names = [name for name in table.column_names if name != "b"]
    for dataset in (theirs, ours):
        assert without_blobs(dataset.to_table()) == without_blobs(table)
        rows = [599, 0, 250, 249]
        assert dataset.take(rows, columns=names).to_pydict() == without_blobs(table.take(rows))
        found = dataset.take_blobs("b", indices=[1, 2, 598])
        assert [value.read() for value in found] == [b"1", b"2", b"598"]
        # `id % 3 = 0` are nulls, which a scan returns as descriptions
        assert dataset.to_table(columns=["b"], limit=2)["b"].type == pa.struct(
            [("position", pa.uint64()), ("size", pa.uint64())]
        )
    assert ours.to_table(columns=["b"]) == theirs.to_table(columns=["b"])
    assert ours.to_table(columns=["s.c"], filter="id >= 598").num_rows == 2


def test_packed_children_of_datasets(tmp_path: Path) -> None:
    table = everything()
    for module in (lance, lance_dataset):
        module.write_dataset(table, str(tmp_path / module.__name__), data_storage_version="2.0")
        dataset = lance_dataset.dataset(tmp_path / module.__name__)
        assert dataset.to_table(columns=["s.b"])["s.b"].to_pylist() == [row["b"] for row in table["s"].to_pylist()]
        assert dataset.to_table(filter="s.a = 7", columns=["id"])["id"].to_pylist() == list(range(7, 600, 100))
        file_of = dataset.get_fragments()[0].data_files()[0]
        ours, other = file_of.fields, file_of.column_indices
        assert list(zip(ours, other, strict=True)) == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (8, 5), (9, 6), (10, 7)]


def test_column_indices_of_files(tmp_path: Path) -> None:
    array = packed_array("numbers", 3)
    table = pa.table(
        {"s": array, "t": packed_array("one", 3), "z": [1, 2, 3]},
        schema=pa.schema(
            [pa.field("s", array.type, metadata=PACKED), pa.field("t", CHILDREN["one"]), pa.field("z", pa.int64())]
        ),
    )
    with file.LanceFileWriter(tmp_path / "a.lance", table.schema, version="2.0") as writer:
        writer.write_batch(table.to_batches()[0])
    store, path = resolve(tmp_path / "a.lance", None)
    assert FileMetadata(store.open_input(path)).num_columns == 4
    for module in (file, lance.file):
        assert module.LanceFileReader(str(tmp_path / "a.lance")).read_all().to_table().to_pydict() == table.to_pydict()
