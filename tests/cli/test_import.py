"""Tests of `lance-dataset import`, with files that pyarrow wrote."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from support.processes import cli_runs

import lance_dataset as lance


def run(*arguments: object, status: int = 0) -> Result:
    return cli_runs.run("import", *arguments, status=status)


def read(path: Path) -> pa.Table:
    return lance.dataset(str(path)).to_table()


@pytest.fixture
def table() -> pa.Table:
    count = 10_000
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": [None if i % 10 == 3 else f"name {i}" for i in range(count)],
            "score": pa.array([i / 8 for i in range(count)], pa.float64()),
        }
    )


def write_gzip_csv(table: pa.Table, path: Path) -> None:
    plain = path.with_suffix(".plain")
    pa.csv.write_csv(table, plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))


def write_tsv(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t"))


def write_arrow_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


def write_arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


WRITERS: list[tuple[str, Callable[[pa.Table, Path], None]]] = [
    ("a.parquet", pq.write_table),
    ("a.csv", pa.csv.write_csv),
    ("a.csv.gz", write_gzip_csv),
    ("a.tsv", write_tsv),
    ("a.feather", pa.feather.write_feather),
    ("a.arrow", write_arrow_file),
    ("a.arrows", write_arrow_stream),
]


@pytest.mark.parametrize(("name", "write"), WRITERS, ids=[name for name, _ in WRITERS])
def test_every_format(tmp_path: Path, table: pa.Table, name: str, write: Callable[[pa.Table, Path], None]) -> None:
    table = table.set_column(1, "name", table["name"].fill_null("")) if "sv" in name else table  # CSV has no null text
    write(table, tmp_path / name)
    target = tmp_path / "out.lance"
    result = run(tmp_path / name, target, "--json")
    assert json.loads(result.stdout) == {"uri": str(target), "rows": 10_000, "version": 1}
    assert read(target).equals(table)


def test_directories_globs_and_names_together(tmp_path: Path, table: pa.Table) -> None:
    parts = [table.slice(start, 2_000) for start in range(0, 10_000, 2_000)]
    nested = tmp_path / "many" / "part"
    nested.mkdir(parents=True)
    pq.write_table(parts[0], tmp_path / "many" / "a.parquet")
    pq.write_table(parts[1], nested / "b.parquet")
    (tmp_path / "many" / "_SUCCESS").write_text("")
    (tmp_path / "many" / "notes.txt").write_text("not data")
    pq.write_table(parts[2], tmp_path / "glob1.pq")
    pq.write_table(parts[3], tmp_path / "glob2.pq")
    pq.write_table(parts[4], tmp_path / "last.parquet")
    target = tmp_path / "out.lance"
    result = run(tmp_path / "many", tmp_path / "glob*.pq", tmp_path / "last.parquet", target)
    assert result.stdout == f"10,000 rows written to {target}, version 1\n"
    assert read(target).equals(table)


def test_modes(tmp_path: Path, table: pa.Table) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "out.lance"
    pq.write_table(table, source)
    run(source, target)
    refused = run(source, target, status=1)
    assert refused.stderr.startswith("error: ")
    assert read(target).num_rows == 10_000
    run(source, target, "--mode", "append")
    assert read(target).equals(pa.concat_tables([table, table]))
    run(source, target, "--mode", "overwrite", "--columns", "score,id")
    assert read(target).equals(table.select(["score", "id"]))
    assert lance.dataset(str(target), version=2).count_rows() == 20_000


def test_data_storage_version(tmp_path: Path, table: pa.Table) -> None:
    pq.write_table(table, tmp_path / "a.parquet")
    run(tmp_path / "a.parquet", tmp_path / "out.lance", "--data-storage-version", "2.0")
    assert lance.dataset(str(tmp_path / "out.lance")).data_storage_version == "2.0"


def test_columns_and_widths_of_all_files_count(tmp_path: Path) -> None:
    first = pa.table({"x": pa.array([1, 2], pa.int32())})
    second = pa.table({"x": pa.array([2**40], pa.int64()), "y": ["new"]})
    pq.write_table(first, tmp_path / "1.parquet")
    pq.write_table(second, tmp_path / "2.parquet")
    refused = run(tmp_path / "*.parquet", tmp_path / "out.lance", status=1)
    assert "has no column 'y'" in refused.stderr
    assert "--union" in refused.stderr
    run(tmp_path / "*.parquet", tmp_path / "out.lance", "--union")
    expected = pa.table({"x": pa.array([1, 2, 2**40], pa.int64()), "y": pa.array([None, None, "new"], pa.string())})
    assert read(tmp_path / "out.lance").equals(expected)


def test_csv_delimiter_and_format(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("a;b\n1;x\n2;y\n")
    run(tmp_path / "data.txt", tmp_path / "out.lance", "--format", "csv", "--delimiter", ";")
    assert read(tmp_path / "out.lance").to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_stream_columns(tmp_path: Path, table: pa.Table) -> None:
    write_arrow_stream(table, tmp_path / "1.arrows")
    write_arrow_stream(table, tmp_path / "2.arrows")
    run(tmp_path / "1.arrows", tmp_path / "2.arrows", tmp_path / "out.lance", "--columns", "name")
    assert read(tmp_path / "out.lance").equals(pa.concat_tables([table, table]).select(["name"]))


def test_no_rows(tmp_path: Path, table: pa.Table) -> None:
    pq.write_table(table.slice(0, 0), tmp_path / "a.parquet")
    run(tmp_path / "a.parquet", tmp_path / "out.lance")
    found = read(tmp_path / "out.lance")
    assert found.num_rows == 0
    assert found.schema.equals(table.schema)


def refuse_missing(path: Path) -> tuple[list[str], str]:
    return [str(path / "missing.parquet")], "missing.parquet: no such file"


def refuse_empty_directory(path: Path) -> tuple[list[str], str]:
    (path / "empty").mkdir()
    return [str(path / "empty")], "no files to import"


def refuse_unknown_name(path: Path) -> tuple[list[str], str]:
    (path / "data.xyz").write_text("?")
    return [str(path / "data.xyz")], "--format"


def refuse_mixed(path: Path) -> tuple[list[str], str]:
    pq.write_table(pa.table({"a": [1]}), path / "a.parquet")
    (path / "b.csv").write_text("a\n1\n")
    return [str(path / "a.parquet"), str(path / "b.csv")], "several formats"


def refuse_incompatible(path: Path) -> tuple[list[str], str]:
    pq.write_table(pa.table({"a": [1]}), path / "a.parquet")
    pq.write_table(pa.table({"a": [[1]]}), path / "b.parquet")
    return [str(path / "a.parquet"), str(path / "b.parquet")], "cannot combine"


def refuse_broken_csv(path: Path) -> tuple[list[str], str]:
    rows = "".join(f"{i}\n" for i in range(400_000))
    (path / "a.csv").write_text(f"number\n{rows}not a number\n")
    return [str(path / "a.csv"), "--strict"], "a.csv: row 400001: column 'number': 'not a number'"


def refuse_ragged_csv(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("a,b\n1,2\n3\n")
    return [str(path / "a.csv")], "a.csv: row 2: expected 2 values, found 1"


def refuse_column_twice(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("a,a\n1,2\n")
    return [str(path / "a.csv")], "a.csv: the header has the column 'a' twice"


def refuse_told_type(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("a,b\n1,x\n2,y\nthree,z\n")
    return [str(path / "a.csv"), "--types", "a=int64"], "a.csv: row 3: column 'a': 'three' is not a value of type int64"


def refuse_unknown_type(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("a\n1\n")
    return [str(path / "a.csv"), "--types", "a=number"], "'number' is not a type"


def refuse_type_of_unknown_column(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("name\n1\n")
    return [str(path / "a.csv"), "--types", "nmae=string"], "did you mean 'name'"


def refuse_empty_csv(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("")
    return [str(path / "a.csv")], "a.csv: Empty CSV file"


def refuse_latin1_csv(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_bytes("name\nMüller\n".encode("latin-1"))
    return [str(path / "a.csv")], "a.csv"


def refuse_other_delimiter(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text("a;b\n1;2\n")
    return [str(path / "a.csv")], "--delimiter ';'"


def refuse_broken_gzip(path: Path) -> tuple[list[str], str]:
    (path / "a.csv.gz").write_bytes(b"not gzip")
    return [str(path / "a.csv.gz")], "a.csv.gz: "


def refuse_broken_json_gzip(path: Path) -> tuple[list[str], str]:
    (path / "a.json.gz").write_bytes(b"not gzip")
    return [str(path / "a.json.gz")], "a.json.gz: "


def refuse_long_row(path: Path) -> tuple[list[str], str]:
    (path / "a.csv").write_text('a,b\n1,"' + "x\n" * 9_000_000 + '"\n')
    return [str(path / "a.csv")], "a.csv: after row 0: a row has more than 8 MiB"


def refuse_empty_json(path: Path) -> tuple[list[str], str]:
    (path / "a.json").write_text("[]")
    return [str(path / "a.json")], "a.json: there are no rows"


def refuse_broken_json(path: Path) -> tuple[list[str], str]:
    (path / "a.ndjson").write_text('{"a": 1}\n{"a": \n')
    return [str(path / "a.ndjson")], "a.ndjson: row 2"


def refuse_json_of_two_types(path: Path) -> tuple[list[str], str]:
    (path / "a.ndjson").write_text('{"a": 1}\n{"a": "x"}\n')
    return [str(path / "a.ndjson")], "a.ndjson: row 2: Column(/a) changed from number to string"


def refuse_json_list_of_numbers(path: Path) -> tuple[list[str], str]:
    (path / "a.json").write_text('[{"a": 1}, 2]')
    return [str(path / "a.json")], "a.json: row 2: 2 is not an object"


def refuse_json_of_huge_integers(path: Path) -> tuple[list[str], str]:
    (path / "a.ndjson").write_text('{"a": 1}\n{"a": 18446744073709551615}\n')
    return [str(path / "a.ndjson")], "a.ndjson: row 2: column 'a': 18446744073709551615 does not fit"


def refuse_column_of_directory_and_file(path: Path) -> tuple[list[str], str]:
    (path / "year=2024").mkdir()
    pq.write_table(pa.table({"year": [2023]}), path / "year=2024" / "a.parquet")
    return [str(path / "year=2024")], "--no-partitions"


def refuse_missing_partition(path: Path) -> tuple[list[str], str]:
    (path / "year=2024").mkdir()
    pq.write_table(pa.table({"a": [1]}), path / "year=2024" / "a.parquet")
    pq.write_table(pa.table({"a": [1]}), path / "b.parquet")
    return [str(path / "b.parquet"), str(path / "year=2024")], "b.parquet is in no directory year=..."


def refuse_broken_parquet(path: Path) -> tuple[list[str], str]:
    (path / "a.parquet").write_bytes(b"PAR1 no, not really PAR1")
    return [str(path / "a.parquet")], "a.parquet"


def refuse_unknown_column(path: Path) -> tuple[list[str], str]:
    pq.write_table(pa.table({"name": ["x"]}), path / "a.parquet")
    return [str(path / "a.parquet"), "--columns", "nmae"], "did you mean 'name'"


def refuse_remote(_path: Path) -> tuple[list[str], str]:
    return ["s3://bucket/a.parquet"], "only local files"


REFUSALS = [
    refuse_missing,
    refuse_empty_directory,
    refuse_unknown_name,
    refuse_mixed,
    refuse_incompatible,
    refuse_broken_csv,
    refuse_ragged_csv,
    refuse_column_twice,
    refuse_told_type,
    refuse_unknown_type,
    refuse_type_of_unknown_column,
    refuse_empty_csv,
    refuse_latin1_csv,
    refuse_other_delimiter,
    refuse_broken_gzip,
    refuse_broken_json_gzip,
    refuse_long_row,
    refuse_empty_json,
    refuse_broken_json,
    refuse_json_of_two_types,
    refuse_json_list_of_numbers,
    refuse_json_of_huge_integers,
    refuse_column_of_directory_and_file,
    refuse_missing_partition,
    refuse_broken_parquet,
    refuse_unknown_column,
    refuse_remote,
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.__name__[7:] for refusal in REFUSALS])
def test_refusals(tmp_path: Path, refusal: Callable[[Path], tuple[list[str], str]]) -> None:
    arguments, mentioned = refusal(tmp_path)
    target = tmp_path / "out.lance"
    result = run(*arguments, target, status=1)
    assert result.stderr.startswith("error: ")
    assert mentioned in result.stderr
    assert not (target / "_versions").exists()


def test_one_path_is_a_usage_mistake(tmp_path: Path) -> None:
    run(tmp_path / "a.parquet", status=2)
    run(tmp_path / "a.parquet", tmp_path / "out.lance", "--format", "word", status=2)
