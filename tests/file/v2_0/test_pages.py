"""Tests of pages of 2.0 made by hand: every encoding, read in every way, by the reference too if it can."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest
from support.pages import array_page as ap
from support.pages.array_page import TreeColumn, TreePage, write_columns
from support.pages.array_page_cases import CASES, FLAT32, INTS

from lance_dataset import file
from lance_dataset._proto import encodings_pb2 as pb
from lance_dataset.errors import CorruptFileError, UnsupportedError


def values(batches: pa.Table) -> list[object]:
    batches.validate(full=True)
    column = batches.column(0)
    if pa.types.is_duration(column.type):
        column = column.cast(pa.int64())
    return column.to_pylist()


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_read(tmp_path: Path, name: str, mapped: bool) -> None:
    case = CASES[name]
    reader = file.LanceFileReader(case.write(tmp_path / "a.lance"), None if mapped else {"mmap": "false"})
    expected, count = case.expected, len(case.expected)
    assert values(reader.read_all(batch_size=max(count, 1)).to_table()) == expected
    for start in range(count):
        for size in range(count - start + 1):
            assert values(reader.read_range(start, size).to_table()) == expected[start : start + size]
    rows = [*range(count)[::-1], 0, count - 1, 0] if count else []
    assert values(reader.take_rows(rows).to_table()) == [expected[row] for row in rows]
    for row in range(count):
        assert values(reader.take_rows([row]).to_table()) == expected[row : row + 1]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.reference and case.expected])
def test_the_reference_reads_the_same(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    reader = lance.file.LanceFileReader(str(case.write(tmp_path / "a.lance")))
    assert values(reader.read_all().to_table()) == case.expected
    assert values(reader.take_rows(list(range(1, len(case.expected)))).to_table()) == case.expected[1:]


@pytest.mark.parametrize("name", CASES)
def test_explained(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    reader = file.LanceFileReader(case.write(tmp_path / "a.lance"))
    for deep in (False, True):
        report = reader.explain_encodings(deep=deep)
        assert len(report) >= sum(len(column.pages) for column in case.columns[:1])
        assert str(report)


def test_children_of_packed_rows_alone(tmp_path: Path) -> None:
    for name in ("golden: packed struct", "nested: packed lists", "nested: packed without asking"):
        case = CASES[name]
        path = case.write(tmp_path / "a.lance")
        for child in ("a", "b"):
            found = file.LanceFileReader(path, columns=[f"a.{child}"]).read_all().to_table()["a"]
            assert found.to_pylist() == [{child: row[child]} for row in case.expected]  # type: ignore[index]


def test_columns_after_those_that_take_another_number(tmp_path: Path) -> None:
    last = TreeColumn([TreePage(FLAT32, [INTS], 3)])
    for name in ("nested: packed without asking", "nested: asked to be packed", "text: as lists", "golden: lists"):
        case = CASES[name]
        count = len(case.expected)
        schema = pa.schema([case.field, pa.field("z", pa.int32())])
        tail = TreeColumn([TreePage(FLAT32, [INTS], count)]) if count != 3 else last
        write_columns(tmp_path / "a.lance", schema, [*case.columns, tail], count)
        found = file.LanceFileReader(tmp_path / "a.lance").read_all().to_table()
        assert found.to_pydict() == {"a": case.expected, "z": [1, 2, 3][:count]}


@pytest.mark.parametrize(
    "kind", ["constant", "inline_bitpacking", "out_of_line_bitpacking", "variable", "block", "rle"]
)
def test_drafts_are_refused(tmp_path: Path, kind: str) -> None:
    encoding = pb.ArrayEncoding()
    getattr(encoding, kind).SetInParent()
    ap.write_page(tmp_path / "a.lance", pa.field("a", pa.int32()), encoding, [INTS], 3)
    with pytest.raises(UnsupportedError, match=f"{kind}.*no release wrote it"):
        file.LanceFileReader(tmp_path / "a.lance").read_all().to_table()


def test_null_structs_are_not_dropped(tmp_path: Path) -> None:
    columns = [
        TreeColumn([TreePage(ap.some_nulls(ap.flat(1), ap.struct_header()), [b"\5"], 3)]),
        TreeColumn([TreePage(ap.flat(8), [b"\1\2\3"], 3)]),
    ]
    write_columns(tmp_path / "a.lance", pa.schema([pa.field("a", pa.struct([("x", pa.int8())]))]), columns, 3)
    with pytest.raises(CorruptFileError, match="header of a struct"):
        file.LanceFileReader(tmp_path / "a.lance").read_all().to_table()
