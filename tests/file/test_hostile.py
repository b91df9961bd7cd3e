"""Tests of valid containers with forged content: each is refused without large allocations, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.files.file_parts import FileParts, problem
from support.files.hostile_files import (
    DICTIONARY,
    HUGE,
    LISTS,
    NUMBERS,
    STRUCTS,
    TEXT,
    VECTORS,
    WORDS,
    Edit,
    read_everything,
    reads,
    refused,
    refused_after,
    write,
)

from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import CorruptFileError, UnsupportedError

pytestmark = pytest.mark.usefixtures("little_memory")
NULLABLE = pa.table({"a": pa.array([1, None, 3], pa.int64())})


# -- container ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_columns": 2**32 - 1}, "column table"),
        ({"num_globals": 2**32 - 1}, "global buffer table"),
        ({"num_globals": 0}, "no descriptor"),
        ({"gbo": 2**64 - 1}, "global buffer table"),
        ({"cmo": 2**63}, "column table"),
        ({"column_start": 2**64 - 1}, "column metadata"),
    ],
)
def test_footer_that_points_elsewhere(tmp_path: Path, changes: dict[str, int], said: str) -> None:
    refused_after(tmp_path, NUMBERS, lambda parts: parts.footer.update(changes), said)


@pytest.mark.parametrize("version", [(2, 4), (3, 0), (0, 4), (2**16 - 1, 2**16 - 1)])
def test_unknown_version(tmp_path: Path, version: tuple[int, int]) -> None:
    parts = write(tmp_path, NUMBERS)
    parts.version = version
    refused(tmp_path, parts, f"{version[0]}.{version[1]}", "unknown", error=UnsupportedError)


@pytest.mark.parametrize("version", [(0, 0), (0, 1), (0, 2)])
def test_container_of_another_version(tmp_path: Path, version: tuple[int, int]) -> None:
    """A file whose footer states another version is refused.

    The footer of a legacy file has a position where this one has counts.
    """
    parts = write(tmp_path, NUMBERS)
    parts.version = version
    refused(tmp_path, parts, "metadata")


@pytest.mark.parametrize("version", [(2, 2), (2, 3)])  # 2.0 encodings do occur in files that state 2.1
def test_pages_of_another_version(tmp_path: Path, version: tuple[int, int]) -> None:
    parts = write(tmp_path, NUMBERS)
    parts.version = version
    refused(tmp_path, parts, "does not belong")


def test_wrong_magic(tmp_path: Path) -> None:
    parts = write(tmp_path, NUMBERS)
    parts.magic = b"PAR1"
    refused(tmp_path, parts, "PAR1", "not a Lance file")


def test_every_truncation(tmp_path: Path) -> None:
    content = write(tmp_path, TEXT).assemble()
    path = tmp_path / "bad.lance"
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(CorruptFileError, match=r"bad\.lance.*truncated"):
            read_everything(path)


@pytest.mark.parametrize("entry", [(2**64 - 1, 2), (0, 2**64 - 1), (2**63, 2**63)])
def test_table_entries_outside_the_file(tmp_path: Path, entry: tuple[int, int]) -> None:
    refused_after(tmp_path, NUMBERS, lambda parts: parts.column_ranges.update({0: entry}), "column metadata 0")
    refused_after(tmp_path, NUMBERS, lambda parts: parts.global_ranges.update({0: entry}), "global buffer 0")


def test_columns_that_share_metadata(tmp_path: Path) -> None:
    """Columns that share metadata are refused: n columns over metadata of n pages would decode to n * n pages."""
    parts = write(tmp_path, pa.table({name: pa.array([1, 2]) for name in "abc"}))
    size = sum(len(column.SerializeToString()) for column in parts.columns)
    start = len(parts.data) + len(parts.descriptor.SerializeToString())
    parts.column_ranges = dict.fromkeys(range(3), (start, size))
    refused(tmp_path, parts, "overlap")


def test_pages_that_share_buffers(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(np.arange(1000))})
    parts = write(tmp_path, table)
    for _ in range(100):
        parts.columns[0].pages.add().CopyFrom(parts.columns[0].pages[0])
    parts.descriptor.length *= 101
    refused(tmp_path, parts, "more bytes than")


def test_wrong_row_count(tmp_path: Path) -> None:
    for length in (0, 2, 4, *HUGE):
        parts = write(tmp_path, NUMBERS)
        parts.descriptor.length = length
        refused(tmp_path, parts, "3 values instead of" if length < 2**33 else "claims", str(length)) if length else None


def test_no_schema(tmp_path: Path) -> None:
    refused_after(tmp_path, NUMBERS, lambda parts: parts.descriptor.ClearField("schema"), "no schema")


def test_fewer_columns_than_fields(tmp_path: Path) -> None:
    refused_after(tmp_path, STRUCTS, lambda parts: parts.columns.pop(), "needs 2 columns", "has 1")


def test_garbage_in_metadata(tmp_path: Path) -> None:
    for index in range(40):
        parts = write(tmp_path, NUMBERS)
        stored = bytearray(parts.assemble())
        start = len(parts.data)
        stored[start + index] ^= 0xFF
        path = tmp_path / "bad.lance"
        path.write_bytes(bytes(stored))
        said = problem(lambda path=path: read_everything(path))
        assert said is None or "bad.lance" in said


# -- schema ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "logical_type",
    [
        "",
        "integer",
        "fixed_size_list:int32",
        "fixed_size_list:int32:-2",
        "fixed_size_list:int32:99999999999",
        "fixed_size_list:struct:2",
        "fixed_size_list:list:2",
        "fixed_size_binary:-1",
        "fixed_size_binary:4294967296",
        "fixed_size_binary:" + "9" * 6000,
        "fixed_size_list:" * 10_000 + "int8" + ":1" * 10_000,
        "fixed_size_list:" * 8 + "int64" + ":2147483647" * 8,
        "decimal:128:0:0",
        "decimal:128:39:0",
        "decimal:128:99999999999999999999:0",
        "decimal:256:10:9999999999999",
        "dict:string:string:false",
        "dict:int8:float:false",
        "dict:struct:int8:false",
        "timestamp:us:",
        "timestamp:weeks:-",
        "list",
        "map",
        "large_list.struct",
        "string",
        "int32",
        "bool",
    ],
)
def test_wrong_logical_type(tmp_path: Path, logical_type: str) -> None:
    def edit(parts: FileParts) -> None:
        parts.descriptor.schema.fields[0].logical_type = logical_type

    refused_after(tmp_path, NUMBERS, edit)


def test_schema_nested_too_deep(tmp_path: Path) -> None:
    parts = write(tmp_path, NUMBERS)
    fields = parts.descriptor.schema.fields
    for level in range(10_000):
        field = fields.add(name="item", id=level + 1, parent_id=level, logical_type="int64", nullable=True)
        fields[level].logical_type = "list"
        fields[level].nullable = field.nullable
    refused(tmp_path, parts, "128 levels deep")


def _second_field(**values: Any) -> Edit:
    def edit(parts: FileParts) -> None:
        parts.descriptor.schema.fields.add(**{"name": "b", "logical_type": "int64", "id": 1, "parent_id": -1, **values})
        parts.columns.append(parts.columns[0])

    return edit


def test_field_ids_and_parents(tmp_path: Path) -> None:
    refused_after(tmp_path, NUMBERS, _second_field(id=0), "field id 0 occurs twice")
    refused_after(tmp_path, NUMBERS, _second_field(parent_id=7), "names parent 7")
    refused_after(tmp_path, NUMBERS, _second_field(parent_id=1), "names parent 1")  # its own parent
    refused_after(tmp_path, NUMBERS, _second_field(parent_id=-2), "names parent -2")

    def cycle(parts: FileParts) -> None:
        parts.descriptor.schema.fields[0].parent_id = 1
        _second_field(parent_id=0)(parts)

    refused_after(tmp_path, NUMBERS, cycle, "names parent 1")


def test_negative_field_id_is_no_field(tmp_path: Path) -> None:
    """A field with a negative id, as of a blob descriptor, is not part of the schema."""
    parts = write(tmp_path, NUMBERS)
    _second_field(id=-1)(parts)
    path = tmp_path / "odd.lance"
    path.write_bytes(parts.assemble())
    assert read_everything(path).equals(NUMBERS)


def test_not_nullable_null_type(tmp_path: Path) -> None:
    def edit(parts: FileParts) -> None:
        parts.descriptor.schema.fields[0].nullable = False

    refused_after(tmp_path, pa.table({"a": pa.nulls(3)}), edit, "not nullable")


def test_null_in_a_column_declared_not_nullable(tmp_path: Path) -> None:
    def edit(parts: FileParts) -> None:
        for field in parts.descriptor.schema.fields:
            field.nullable = False

    for table in (NULLABLE, TEXT, LISTS, DICTIONARY, WORDS):
        refused_after(tmp_path, table, edit, "not nullable", "column 0")


class Fussy(pa.ExtensionType):
    """An extension type whose parameters cannot be read."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.fussy")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Fussy:
        raise KeyError("freq")


@pytest.fixture
def registered() -> Iterator[None]:
    pa.register_extension_type(Fussy())
    yield
    pa.unregister_extension_type("tests.fussy")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", ["arrow.uuid", "arrow.fixed_shape_tensor", "arrow.opaque", "tests.fussy"])
def test_extension_type_over_wrong_storage(tmp_path: Path, name: str) -> None:
    def edit(parts: FileParts) -> None:
        metadata = parts.descriptor.schema.fields[0].metadata
        metadata["ARROW:extension:name"] = name.encode()
        metadata["ARROW:extension:metadata"] = b"\xff{"

    refused_after(tmp_path, NUMBERS, edit, "extension", where="")


# -- odd, but allowed --------------------------------------------------------------------------------------------


def test_wrappers_around_everything(tmp_path: Path) -> None:
    for table in (NUMBERS, NULLABLE, TEXT, WORDS, VECTORS, DICTIONARY, LISTS):
        parts = write(tmp_path, table)
        wrapped = pb.ArrayEncoding()
        wrapped.nullable.no_nulls.values.CopyFrom(parts.encoding(0))
        parts.set_encoding(0, wrapped)
        reads(tmp_path, parts, table)


def test_validity_around_values_with_validity(tmp_path: Path) -> None:
    """If a validity wraps values that have a validity, both apply, for all kinds of values."""
    for table in (NULLABLE, TEXT, VECTORS, WORDS, DICTIONARY, pa.table({"n": pa.nulls(3)})):
        parts = write(tmp_path, table)
        position, size = parts.add_buffer(b"\xfe" + b"\xff" * 30)  # the first value is null
        page = parts.columns[0].pages[0]
        page.buffer_offsets.append(position)
        page.buffer_sizes.append(size)
        wrapped = pb.ArrayEncoding()
        some = wrapped.nullable.some_nulls
        some.validity.flat.bits_per_value = 1
        some.validity.flat.buffer.buffer_index = len(page.buffer_offsets) - 1
        some.values.CopyFrom(parts.encoding(0))
        parts.set_encoding(0, wrapped)
        rows = table.to_pylist()
        reads(tmp_path, parts, pa.Table.from_pylist([dict.fromkeys(rows[0]), *rows[1:]]))


def test_zero_width_values(tmp_path: Path) -> None:
    for table in (
        pa.table({"w": pa.array([b"", None, b""], pa.binary(0))}),
        pa.table({"v": pa.array([[], None, []], pa.list_(pa.int32(), 0))}),
        pa.table({"w": pa.array([b"", b"", b""], pa.binary(0))}),
    ):
        reads(tmp_path, write(tmp_path, table), table)


def test_column_of_pages_without_values(tmp_path: Path) -> None:
    parts = write(tmp_path, NUMBERS)
    empty = parts.columns[0].pages.add()
    empty.CopyFrom(parts.columns[0].pages[0])
    del empty.buffer_offsets[:], empty.buffer_sizes[:]
    empty.length = 0
    reads(tmp_path, parts, NUMBERS)


def test_empty_dictionary(tmp_path: Path) -> None:
    table = pa.table({"t": ["a", None] * 60})
    parts = write(tmp_path, table)

    def edit(encoding: pb.ArrayEncoding) -> None:
        encoding.dictionary.num_dictionary_items = 0
        encoding.dictionary.items.binary.null_adjustment = 0

    parts.edit(0, edit)
    parts.replace_buffer(0, 0, bytes(120))
    reads(tmp_path, parts, pa.table({"t": pa.nulls(120, pa.string())}))
