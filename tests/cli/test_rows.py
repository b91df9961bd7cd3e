"""Tests of how rows are shown, exported and queried."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from support.processes.cli_runs import run, run_json

import lance_dataset as lance

TYPES = pa.table(
    {
        "number": pa.array([1, None, -300], pa.int16()),
        "real": [0.5, float("nan"), None],
        "truth": [True, None, False],
        "text": ["x", "two\nlines\x1b[31m", "y" * 200],
        "nanoseconds": pa.array([1, None, 1_700_000_000_123_456_789], pa.timestamp("ns")),
        "zoned": pa.array([0, None, 1], pa.timestamp("us", "Europe/Berlin")),
        "time": pa.array([1, None, 2], pa.time64("ns")),
        "duration": pa.array([1, None, 2], pa.duration("ns")),
        "amount": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.00")], pa.decimal128(5, 2)),
        "list": pa.array([[1], [], None], pa.list_(pa.timestamp("ns"))),
        "struct": pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "z"}]),
        "code": pa.array(["u", "v", "u"]).dictionary_encode(),
        "half": pa.array([np.float16(1.5), None, np.float16(2)], pa.float16()),
        "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "raw": [b"\x00", None, b"abc"],
        "none": pa.nulls(3),
    }
)


@pytest.fixture
def types(tmp_path: Path) -> Path:
    path = tmp_path / "types.lance"
    lance.write_dataset(TYPES, str(path))
    return path


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """Return a dataset of three versions, of which the second has a tag and a branch."""
    path = tmp_path / "numbers.lance"
    dataset = lance.write_dataset(pa.table({"n": range(100), "s": [f"s{n}" for n in range(100)]}), str(path))
    dataset.insert(pa.table({"n": [100], "s": ["s100"]}))
    dataset.tags.create("good", 2)
    dataset.create_branch("trial", 2)
    dataset.delete("n < 50")
    return path


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(types: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("head", types).stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert f"of {len(TYPES.schema)} columns" in " ".join(lines)
    assert lines[2].split()[0] == "1"


def test_every_type_in_full(types: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = run("head", types).stdout.splitlines()
    assert len(lines) == 5
    assert lines[0].split() == TYPES.schema.names
    assert lines[2].split()[:4] == ["1", "0.5", "true", "x"]
    assert r"two\nlines\x1b[31m" in lines[3]
    assert "2023-11-14 22:13:20.123456789" in lines[4]
    assert "y" * 77 + "..." in lines[4]


def test_records_are_whole(types: Path) -> None:
    text = run("head", types, "--record").stdout
    assert text.count("-- ") == 3
    assert "y" * 200 in text
    assert "-- 2" in text
    assert run("take", types, 2, "--record", "--columns", "text").stdout == f"-- 0\ntext  {'y' * 200}\n"


def test_json_of_every_type(types: Path) -> None:
    rows: list[dict[str, Any]] = run_json("head", types)
    assert [row["number"] for row in rows] == [1, None, -300]
    assert rows[2]["nanoseconds"] == "2023-11-14 22:13:20.123456789"
    assert rows[0]["amount"] == "1.50"
    assert rows[1]["real"] is None
    assert rows[2]["raw"] == "YWJj"
    assert rows[2]["code"] == "u"
    assert run_json("head", types, "-n", 0) == []


def test_filter_and_versions_by_name(numbers: Path) -> None:
    assert [row["n"] for row in run_json("head", numbers, "--filter", "n % 2 = 1", "-n", 2)] == [51, 53]
    for version, rows in ((1, 100), ("good", 101), ("trial:", 101), ("trial:2", 101), (3, 51)):
        for command in (["count"], ["info"], ["head", "-n", 200], ["schema"], ["sql"]):
            query = ["select count(*) as rows from dataset"] if command == ["sql"] else []
            found = run_json(command[0], numbers, *query, *command[1:], "--version", version)
            if command in (["count"], ["info"]):
                assert found["rows"] == rows
            elif command == ["sql"]:
                assert found == [{"rows": rows}]
            elif command[0] == "head":
                assert len(found) == rows


def test_versions_tell_what_made_them(numbers: Path) -> None:
    found = run_json("versions", numbers)
    assert [(each["version"], each["operation"], each["rows"]) for each in found] == [
        (1, "Overwrite", 100),
        (2, "Append", 101),
        (3, "Delete", 51),
    ]
    assert all(dt.datetime.fromisoformat(each["timestamp"]).tzinfo is not None for each in found)
    assert "+0" in run("versions", numbers).stdout or "-0" in run("versions", numbers).stdout


def test_restore(numbers: Path) -> None:
    assert run_json("restore", numbers, "good")["version"] == 4
    assert run("count", numbers).stdout == "101\n"
    assert "not found" in run("restore", numbers, "nothing", status=1).stderr


# -- export ------------------------------------------------------------------------------------------------------------


def test_export_to_every_format(numbers: Path, tmp_path: Path) -> None:
    expected = lance.dataset(str(numbers)).to_table()
    for name in ("a.parquet", "a.csv", "a.ndjson", "a.jsonl", "a.arrow"):
        assert run_json("export", numbers, tmp_path / name) == {"file": str(tmp_path / name), "rows": 51}
        run("import", tmp_path / name, tmp_path / "back.lance", "--mode", "overwrite")
        assert lance.dataset(str(tmp_path / "back.lance")).to_table().equals(expected)
    assert pq.read_table(tmp_path / "a.parquet").equals(expected)


def test_export_of_some_rows(numbers: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    run("export", numbers, target, "--filter", "n = 7", "--columns", "s", "--version", "1")
    assert target.read_text() == '"s"\n"s7"\n'
    assert "exists already" in run("export", numbers, target, status=1).stderr
    run("export", numbers, target, "--overwrite", "--filter", "n > 1000")
    assert target.read_text() == '"n","s"\n'
    run("export", numbers, tmp_path / "a.xlsx", status=2)


def test_a_failed_export_leaves_nothing(types: Path, tmp_path: Path) -> None:
    refused = run("export", types, tmp_path / "a.csv", status=1)
    assert "list" in refused.stderr
    assert "NDJSON" in refused.stderr
    run("export", types, tmp_path / "no folder" / "a.parquet", status=1)
    run("export", types, tmp_path / "a.csv", "--filter", "nothing = 1", "--columns", "number", status=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["types.lance"]


def test_export_of_every_type(types: Path, tmp_path: Path) -> None:
    run("export", types, tmp_path / "a.arrow")
    with pa.ipc.open_file(tmp_path / "a.arrow") as reader:
        found, expected = reader.read_all(), lance.dataset(str(types)).to_table()
    assert found.schema.equals(expected.schema)
    assert found.drop_columns("real").equals(expected.drop_columns("real"))
    run("export", types, tmp_path / "a.ndjson")
    rows = [json.loads(line) for line in (tmp_path / "a.ndjson").read_text().splitlines()]
    assert [row["struct"] for row in rows] == TYPES["struct"].to_pylist()


# -- sql ---------------------------------------------------------------------------------------------------------------


def test_sql(numbers: Path) -> None:
    query = "select n % 2 as odd, count(*) as rows from dataset group by odd order by odd"
    assert run_json("sql", numbers, query) == [{"odd": 0, "rows": 26}, {"odd": 1, "rows": 25}]
    assert run("sql", numbers, query, "--record").stdout.splitlines()[:2] == ["-- 0", "odd   0"]
    assert "nothing" in run("sql", numbers, "select nothing from dataset", status=1).stderr


# -- starting ----------------------------------------------------------------------------------------------------------


def test_the_package_imports_nothing_before_it_is_used() -> None:
    script = "import sys, lance_dataset; assert 'pyarrow' not in sys.modules; lance_dataset.dataset; import pyarrow"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_package_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(lance)) is lance
    assert pickle.loads(cloudpickle.dumps(lambda: lance.LanceDataset))() is lance.LanceDataset


def test_the_module_and_the_function_of_one_name() -> None:
    script = (
        "import lance_dataset.dataset, lance_dataset\n"
        "from lance_dataset.dataset import LanceDataset\n"
        "assert lance_dataset.LanceDataset is LanceDataset\n"
        "assert callable(lance_dataset.dataset) and callable(lance_dataset.write_dataset)\n"
        "assert 'optimize' in dir(lance_dataset) and lance_dataset.optimize.Compaction\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_command_does_not_import_pandas(numbers: Path) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['lance-dataset', 'head', {str(numbers)!r}]\n"
        "from lance_dataset.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as error:\n"
        "    assert not error.code, error.code\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_mistakes_in_arguments_are_json(numbers: Path) -> None:
    for arguments, message in ((["count", "--json"], "DATASET"), (["count", str(numbers), "--json", "--no"], "--no")):
        done = subprocess.run(
            [sys.executable, "-m", "lance_dataset.cli", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert message in json.loads(done.stderr)["error"]["message"]
    done = subprocess.run(
        [sys.executable, "-m", "lance_dataset.cli", "count", str(numbers), "--json", "--filter", "x = 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["type"] == "FieldNotFoundError"
