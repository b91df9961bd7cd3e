"""Tests of commands that inspect a dataset."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset as lance


@pytest.fixture
def people() -> pa.Table:
    return pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "name": ["Ada", None, "Grace [red]x[/red]"],
            "score": pa.array([1.5, float("nan"), -2.0]),
            "when": pa.array([datetime(2024, 1, 2, 3, 4, 5), None, None], pa.timestamp("us")),
            "raw": pa.array([b"\x00\xff", None, b""], pa.binary()),
            "tags": pa.array([["a", "b"], [], None], pa.list_(pa.string())),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("name", pa.string()),
                ("score", pa.float64()),
                ("when", pa.timestamp("us")),
                ("raw", pa.binary()),
                ("tags", pa.list_(pa.string())),
            ]
        ),
    )


@pytest.fixture
def dataset(tmp_path: Path, people: pa.Table) -> Path:
    """Return a dataset of two versions: three rows, then six."""
    path = tmp_path / "people.lance"
    lance.write_dataset(people, str(path))
    lance.write_dataset(people, str(path), mode="append")
    return path


def test_count(dataset: Path) -> None:
    assert run("count", dataset).stdout == "6\n"
    assert run("count", dataset, "--version", 1).stdout == "3\n"
    assert run("count", dataset, "--filter", "id >= 2").stdout == "4\n"
    assert run_json("count", dataset, "--filter", "name = 'Ada'") == {"rows": 2}


def test_info(dataset: Path) -> None:
    facts = run_json("info", dataset)
    assert isinstance(facts, dict)
    opened = lance.dataset(str(dataset))
    data_bytes = sum(file.stat().st_size for file in (dataset / "data").iterdir())
    assert facts["data_bytes"] == data_bytes
    assert (facts["rows"], facts["deleted_rows"], facts["columns"]) == (6, 0, 6)
    assert (facts["version"], facts["latest_version"]) == (2, 2)
    assert (facts["fragments"], facts["data_files"]) == (2, 2)
    assert facts["data_storage_version"] == opened.data_storage_version
    old = run_json("info", dataset, "--version", 1)
    assert isinstance(old, dict)
    assert (old["version"], old["latest_version"], old["rows"], old["fragments"]) == (1, 2, 3, 1)
    text = run("info", dataset).stdout
    assert "latest version" in text
    assert "rows" in text


def test_info_of_blobs(tmp_path: Path) -> None:
    table = pa.table({"i": [1], "b": lance.blob_array([b"a"])})
    lance.write_dataset(table, tmp_path)
    facts = run_json("info", tmp_path)
    assert isinstance(facts, dict)
    assert facts["blob_columns"] == "b"


def test_schema(dataset: Path) -> None:
    lines = run("schema", dataset).stdout.splitlines()
    assert any(line.split() == ["id", "int64", "not", "null"] for line in lines)
    assert any(line.split()[:1] == ["tags"] and "list<" in line for line in lines)
    described = run_json("schema", dataset)
    assert isinstance(described, dict)
    fields = {field["name"]: field for field in described["fields"]}
    assert list(fields) == ["id", "name", "score", "when", "raw", "tags"]
    assert (fields["id"]["type"], fields["id"]["nullable"]) == ("int64", False)
    assert fields["tags"]["fields"][0]["type"] == "string"


def test_explain(dataset: Path) -> None:
    lines = run("explain", dataset).stdout.splitlines()
    assert lines[0].split()[:3] == ["column", "type", "pages"]
    assert [line.split()[0] for line in lines[2:7]] == ["id", "name", "score", "when", "raw"]
    assert lines[-2].split()[0] == "tags.item"
    pages = run("explain", dataset, "--pages", "--columns", "id").stdout.splitlines()
    assert pages[0].split()[:3] == ["fragment", "column", "page"]
    assert len(pages) == 2 + 2 + 1
    found = run_json("explain", dataset, "--deep", "--columns", "name")
    assert isinstance(found, list)
    assert [(page["fragment_id"], page["nulls"], page["rows"]) for page in found] == [(0, 1, 3), (1, 1, 3)]
    assert all(page["reason"] for page in found)
    assert len(run_json("explain", dataset, "--version", 1, "--columns", "name")) == 1  # type: ignore[arg-type]


def test_explain_takes_a_file_too(dataset: Path) -> None:
    file = next((dataset / "data").iterdir())
    assert "id" in run("explain", file).stdout
    assert len(run_json("explain", file, "--columns", "id")) == 1  # type: ignore[arg-type]
    assert "no versions" in run("explain", file, "--version", 1, status=2).output


def test_head(dataset: Path) -> None:
    rows = run_json("head", dataset, "-n", 3)
    assert rows == [
        {"id": 1, "name": "Ada", "score": 1.5, "when": "2024-01-02T03:04:05", "raw": "AP8=", "tags": ["a", "b"]},
        {"id": 2, "name": None, "score": None, "when": None, "raw": None, "tags": []},
        {"id": 3, "name": "Grace [red]x[/red]", "score": -2.0, "when": None, "raw": "", "tags": None},
    ]
    assert run_json("head", dataset, "--columns", "name, id", "-n", 1) == [{"name": "Ada", "id": 1}]
    assert len(run_json("head", dataset)) == 6  # type: ignore[arg-type]
    assert len(run_json("head", dataset, "--version", 1)) == 3  # type: ignore[arg-type]


def test_tables_for_people_show_every_column_and_no_markup(dataset: Path) -> None:
    text = run("head", dataset, "-n", 3).stdout
    header = text.strip().splitlines()[0]
    assert header.split() == ["id", "name", "score", "when", "raw", "tags"]
    assert "Grace [red]x[/red]" in text
    assert "null" in text


def test_take_keeps_the_order_asked_for(dataset: Path) -> None:
    assert run_json("take", dataset, 5, 0, 1, "--columns", "id") == [{"id": 3}, {"id": 1}, {"id": 2}]


def test_versions(dataset: Path) -> None:
    found = run_json("versions", dataset)
    assert isinstance(found, list)
    assert [entry["version"] for entry in found] == [1, 2]
    for entry in found:
        datetime.fromisoformat(entry["timestamp"])
    assert [line.split()[0] for line in run("versions", dataset).stdout.strip().splitlines()[-2:]] == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (("count", "{missing}"), "{missing}"),
        (("count", "{dataset}", "--version", "99"), "99"),
        (("count", "{dataset}", "--filter", "id >"), ""),
        (("count", "{dataset}", "--filter", "nme = 'x'"), "nme"),
        (("head", "{dataset}", "--columns", "nme"), "nme"),
        (("take", "{dataset}", "6"), "6"),
    ],
)
def test_mistakes_are_one_message_and_status_1(
    dataset: Path, tmp_path: Path, arguments: tuple[str, ...], mentioned: str
) -> None:
    names = {"dataset": str(dataset), "missing": str(tmp_path / "missing.lance")}
    result = run(*(argument.format(**names) for argument in arguments), status=1)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert mentioned.format(**names) in result.stderr
    assert "Traceback" not in result.stderr


def test_usage_mistakes_are_status_2(dataset: Path) -> None:
    run("count", status=2)
    run("take", dataset, "first", status=2)
    run("nonsense", dataset, status=2)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "lance_dataset.cli", *(str(argument) for argument in arguments)]


def test_the_installed_command_runs(dataset: Path) -> None:
    done = subprocess.run(command("count", dataset), capture_output=True, text=True, check=True)
    assert done.stdout == "6\n"
    assert done.stderr == ""
    help_text = subprocess.run(command("--help"), capture_output=True, text=True, check=True).stdout
    for name in ("import", "info", "schema", "head", "take", "count", "versions"):
        assert name in help_text
    version = subprocess.run(command("--version"), capture_output=True, text=True, check=True).stdout
    assert version.startswith("lance-dataset ")


def test_help_loads_no_heavy_module() -> None:
    script = (
        "import sys\n"
        "import lance_dataset\n"
        "before = set(sys.modules)\n"
        "from lance_dataset.cli.app import app\n"
        "try:\n"
        "    app(['--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {'pyarrow.dataset', 'pyarrow.csv', 'pyarrow.parquet', 'rich.progress', 'pandas', 'pyspark'}\n"
        "print('HEAVY', sorted((set(sys.modules) - before) & heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_interrupt_is_status_130_and_leaves_no_dataset(tmp_path: Path) -> None:
    """An interrupted import exits with status 130 and leaves no dataset.

    The source never ends, so the import is certain to be running when the signal comes.
    """
    source, target = tmp_path / "source.csv", tmp_path / "target.lance"
    script = (
        "import pyarrow as pa, sys, time\n"
        "from lance_dataset.cli.sources import opening\n"
        "def endless():\n"
        "    while True:\n"
        "        print('reading', flush=True)\n"
        "        time.sleep(0.05)\n"
        "        yield pa.RecordBatch.from_pydict({'x': [1]})\n"
        "stream = opening.SourceStream(pa.schema([('x', pa.int64())]), None, endless)\n"
        "opening.open_sources = lambda *arguments: stream\n"
        "from lance_dataset.cli import main\n"
        "main()\n"
    )
    source.write_text("x\n1\n")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "import", str(source), str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not (target / "_versions").exists()


def test_a_closed_pipe_is_no_traceback(dataset: Path) -> None:
    lance.write_dataset(pa.table({"id": range(100_000)}), str(dataset), mode="overwrite")
    process = subprocess.Popen(
        command("head", dataset, "-n", 100_000, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors
