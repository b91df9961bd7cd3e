"""Types that `import` gives to columns of text, JSON and directories."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.processes import cli_runs

import lance_dataset as lance
from lance_dataset.cli.sources.text_types import TypeFinder, convert


def imported(folder: Path, text: str, *options: str, name: str = "a.csv") -> pa.Table:
    source, target = folder / name, folder / "out.lance"
    source.write_text(text, encoding="utf-8")
    cli_runs.run("import", source, target, "--mode", "overwrite", *options)
    return lance.dataset(str(target)).to_table()


KINDS = [
    (["1", "-5", "0", ""], pa.int64()),
    (["9223372036854775807"], pa.int64()),
    (["1", "2.5", "", "1e3"], pa.float64()),
    (["1.50", "nan", "-inf"], pa.float64()),
    (["1e400", "1.5"], pa.string()),
    (["01234", "12345"], pa.string()),
    (["1", "007"], pa.string()),
    (["0x10"], pa.string()),
    (["-0"], pa.float64()),
    (["+49301234", "030"], pa.string()),
    (["18446744073709551615"], pa.string()),
    (["9007199254740993", "0.5"], pa.string()),
    (["true", "False"], pa.bool_()),
    (["true", "1"], pa.string()),
    (["2024-01-31", ""], pa.date32()),
    (["2024-01-31", "2024-01-31 10:00"], pa.timestamp("s")),
    (["2024-01-31T10:00:00.5"], pa.timestamp("us")),
    (["2024-01-31T10:00:00.123456789"], pa.timestamp("ns")),
    (["2024-01-31T10:00:00Z"], pa.timestamp("s", "UTC")),
    (["2024-13-31"], pa.string()),
    (["10:30", "23:59:59"], pa.time32("s")),
    (["01", "12"], pa.string()),
    (["00"], pa.string()),
    (["24:00"], pa.string()),
    ([" 1", "2 "], pa.int64()),
    ([" 007"], pa.string()),
    ([" 1.5", "2"], pa.float64()),
    (["1", "NA"], pa.string()),
    (["x"], pa.string()),
    (["\r"], pa.string()),
    (["1", " "], pa.string()),
    ([""], pa.null()),
]


@pytest.mark.parametrize(("values", "kind"), KINDS, ids=[f"{values[0]}-{kind}" for values, kind in KINDS])
def test_kinds(values: list[str], kind: pa.DataType) -> None:
    finder = TypeFinder()
    finder.add(pa.array(values))
    assert finder.kind == kind
    one_by_one = TypeFinder()
    for value in values:
        one_by_one.add(pa.array([value]))
    assert one_by_one.kind == kind


@given(st.lists(st.one_of(st.integers(-(2**70), 2**70).map(str), st.floats().map(repr), st.text(max_size=5))))
def test_converted_values_print_as_numbers_that_are_equal(values: list[str]) -> None:
    """Converting a column of text changes no value."""
    finder = TypeFinder()
    array = pa.array(values, pa.string())
    finder.add(array)
    found = convert(array, finder.kind)
    for text, value in zip(values, found.to_pylist(), strict=True):
        if pa.types.is_string(finder.kind):
            assert value == text
        elif isinstance(value, float):
            assert value == float(text) or value != value
        elif value is not None:
            assert str(value) == text
        else:
            assert not text


def test_leading_zeros_far_below_stay(tmp_path: Path) -> None:
    numbers = [str(n) for n in range(1_000_000, 1_900_000)]
    table = imported(tmp_path, "\n".join(["zip", *numbers, "01234", ""]))
    assert table["zip"].to_pylist()[-2:] == ["1899999", "01234"]
    assert table.schema.field("zip").type == pa.string()


def test_na_is_a_value_everywhere_unless_told(tmp_path: Path) -> None:
    text = "n,s\n1,NA\nNA,x\n3,\n"
    assert imported(tmp_path, text).to_pydict() == {"n": ["1", "NA", "3"], "s": ["NA", "x", None]}
    assert imported(tmp_path, text, "--null-values", "NA").to_pydict() == {"n": [1, None, 3], "s": [None, "x", None]}


def test_quoted_empty_text_is_not_null(tmp_path: Path) -> None:
    assert imported(tmp_path, 'a,b\n"",""\nx,1\n').to_pydict() == {"a": ["", "x"], "b": [None, 1]}


def test_told_types(tmp_path: Path) -> None:
    table = imported(
        tmp_path,
        "a,b,c,d,e\n1,2.50,10:00, 7 ,1\n",
        "--types",
        "a=string,b=decimal(5,2),c=time64[us],d=int16,e=bool",
    )
    types = [pa.string(), pa.decimal128(5, 2), pa.time64("us"), pa.int16(), pa.bool_()]
    assert table.schema.types == types
    assert str(table.to_pylist()[0]["b"]) == "2.50"
    assert table.to_pylist()[0]["e"] is True


def test_types_of_all_files_count(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,1\n")
    (tmp_path / "2.csv").write_text("b,a\nx,0.5\n")
    cli_runs.run("import", tmp_path / "*.csv", tmp_path / "out.lance")
    assert lance.dataset(str(tmp_path / "out.lance")).to_table().to_pydict() == {"a": [1.0, 0.5], "b": ["1", "x"]}


def test_appends_take_the_types_of_the_dataset(tmp_path: Path) -> None:
    target = str(tmp_path / "out.lance")
    lance.write_dataset(pa.table({"zip": ["x"], "n": pa.array([1], pa.int16()), "d": [dt.date(2024, 1, 1)]}), target)
    (tmp_path / "a.csv").write_text("zip,n,d\n12345,7,2024-02-01\n")
    cli_runs.run("import", tmp_path / "a.csv", target, "--mode", "append")
    (tmp_path / "a.ndjson").write_text('{"zip": "1", "n": 8}\n')
    cli_runs.run("import", tmp_path / "a.ndjson", target, "--mode", "append")
    rows = lance.dataset(target).to_table()
    assert rows["zip"].to_pylist() == ["x", "12345", "1"]
    assert rows["n"].to_pylist() == [1, 7, 8]
    (tmp_path / "b.csv").write_text("zip,n,d\n1,99999,2024-02-01\n")
    refused = cli_runs.run("import", tmp_path / "b.csv", target, "--mode", "append", status=1)
    assert "b.csv: row 1: column 'n': '99999' is not a value of type int16" in refused.stderr


def test_newlines_in_quotes(tmp_path: Path) -> None:
    assert imported(tmp_path, 'a,b\n"x\ny",1\n"z""",2\n').to_pydict() == {"a": ["x\ny", 'z"'], "b": [1, 2]}


STRICT = [("1\nx\n", 2), ("x\n1\n", 2), ("1\n2\n2024-01-01\n", 3), ("true\n1\n", 2)]


@pytest.mark.parametrize(("text", "row"), STRICT)
def test_strict(tmp_path: Path, text: str, row: int) -> None:
    (tmp_path / "a.csv").write_text("a\n" + text)
    refused = cli_runs.run("import", tmp_path / "a.csv", tmp_path / "out.lance", "--strict", status=1)
    assert f"a.csv: row {row}: column 'a'" in refused.stderr
    cli_runs.run("import", tmp_path / "a.csv", tmp_path / "out.lance", "--strict", "--types", "a=string")


def test_strict_accepts_columns_of_one_look(tmp_path: Path) -> None:
    table = imported(tmp_path, "a,b,c,d\n1,01,x,\n2.5,2,y,\n", "--strict")
    assert table.schema.types[:3] == [pa.float64(), pa.string(), pa.string()]


def test_strict_refuses_files_of_different_types(tmp_path: Path) -> None:
    for number, kind in enumerate((pa.int32(), pa.int64())):
        pq.write_table(pa.table({"a": pa.array([1], kind)}), tmp_path / f"{number}.parquet")
    refused = cli_runs.run("import", tmp_path / "*.parquet", tmp_path / "out.lance", "--strict", status=1)
    assert "column 'a' is int32" in refused.stderr
    cli_runs.run("import", tmp_path / "*.parquet", tmp_path / "out.lance")


# -- JSON --------------------------------------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"id": 1, "tags": ["a", "b"], "who": {"name": "Ö", "age": None}, "when": "2024-01-01"},
    {"id": 2.5, "tags": [], "who": None, "when": "2024-01-02T10:00:00"},
    {"id": None, "tags": None, "who": {"name": "x", "age": 7}, "new": True},
]


@pytest.mark.parametrize("layout", ["lines", "list", "pretty", "pretty list"])
def test_json(tmp_path: Path, layout: str) -> None:
    indent = 2 if "pretty" in layout else None
    if "list" in layout:
        text = json.dumps(ROWS, indent=indent)
    else:
        text = "\n".join(json.dumps(row, indent=indent) for row in ROWS)
    table = imported(tmp_path, text, name="a.json")
    expected = [{"id": None, "tags": None, "who": None, "when": None, "new": None} | row for row in ROWS]
    assert table.to_pylist() == expected
    assert table.schema.field("when").type == pa.string()


def test_json_of_many_blocks(tmp_path: Path) -> None:
    rows = [{"n": n, "text": "x" * 100} | ({"late": [n]} if n > 150_000 else {}) for n in range(160_000)]
    table = imported(tmp_path, "\n".join(map(json.dumps, rows)), name="a.ndjson")
    assert table["n"].to_pylist() == list(range(160_000))
    assert table["late"].to_pylist()[-1] == [159_999]
    assert table["late"].null_count == 150_001


def test_json_told_types(tmp_path: Path) -> None:
    text = '{"a": 18446744073709551615, "b": 1.5}\n{"a": 1, "b": 2}\n'
    table = imported(tmp_path, text, "--types", "a=uint64,b=decimal(5,2)", name="a.jsonl")
    assert table["a"].to_pylist() == [2**64 - 1, 1]
    assert table.schema.field("b").type == pa.decimal128(5, 2)


# -- directories -------------------------------------------------------------------------------------------------------


def test_directories_become_columns(tmp_path: Path) -> None:
    table = pa.table(
        {
            "year": [2023, 2023, 2024, None],
            "zip": ["01", "02", "01", "a b/c=d"],
            "day": [dt.date(2024, 1, n) for n in range(1, 5)],
            "v": np.arange(4) / 2,
        }
    )
    pads.write_dataset(
        table, tmp_path / "hive", format="parquet", partitioning=["year", "zip", "day"], partitioning_flavor="hive"
    )
    cli_runs.run("import", tmp_path / "hive", tmp_path / "out.lance")
    found = lance.dataset(str(tmp_path / "out.lance")).to_table()
    assert found.schema.names == ["v", "year", "zip", "day"]
    assert found.select(table.schema.names).sort_by("v").equals(table)
    cli_runs.run("import", tmp_path / "hive", tmp_path / "2.lance", "--types", "year=string", "--columns", "year,v")
    told = lance.dataset(str(tmp_path / "2.lance")).to_table()
    assert sorted(told["year"].drop_null().to_pylist()) == ["2023", "2023", "2024"]
    cli_runs.run("import", tmp_path / "hive", tmp_path / "3.lance", "--no-partitions")
    assert lance.dataset(str(tmp_path / "3.lance")).schema.names == ["v"]


def test_directories_of_csv_files_that_a_shell_lists(tmp_path: Path) -> None:
    for year in ("2023", "2024"):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "a.csv").write_text("n\n1\n")
    files = sorted(tmp_path.glob("year=*/*.csv"))
    cli_runs.run("import", *files, tmp_path / "out.lance")
    assert lance.dataset(str(tmp_path / "out.lance")).to_table().to_pydict() == {"n": [1, 1], "year": [2023, 2024]}


def test_pyarrow_writes_what_is_read_back(tmp_path: Path) -> None:
    """Null and empty text of a CSV file that Arrow wrote are told apart."""
    table = pa.table({"a": ["", None, "x"], "b": [1, None, 3], "c": [True, False, None]})
    pa.csv.write_csv(table, tmp_path / "a.csv")
    cli_runs.run("import", tmp_path / "a.csv", tmp_path / "out.lance")
    assert lance.dataset(str(tmp_path / "out.lance")).to_table().equals(table)
    assert pc.sum(table["b"]).as_py() == 4
