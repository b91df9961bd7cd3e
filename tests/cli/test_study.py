"""Tests of commands that study rows and sizes, and of those that follow versions."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset as lance


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "id": range(100),
            "half": [None if i % 4 == 0 else i / 2 for i in range(100)],
            "text": [f"word{i % 5} and more words that are long" for i in range(100)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.ones(200, "f4")), 2),
        }
    )
    made = lance.write_dataset(table, str(tmp_path / "x"))
    made.create_scalar_index("text", "INVERTED")
    made.delete("id >= 90")
    return tmp_path / "x"


def test_describe(dataset: Path) -> None:
    lines = run("describe", dataset).stdout.splitlines()
    assert lines[0].split() == ["column", "nulls", "distinct", "minimum", "maximum", "mean"]
    assert lines[2].split() == ["id", "0", "90", "0", "89", "44.5"]
    assert lines[3].split()[:2] == ["half", "23"]
    assert max(map(len, lines)) <= 80
    found = run_json("describe", dataset, "--columns", "half,text", "--filter", "id < 10")
    assert [each["rows"] for each in found] == [10, 10]
    assert found[1]["frequent"][0]["count"] == 2
    assert sum(each["count"] for each in found[0]["histogram"]) == 7
    assert "'nothing'" in run("describe", dataset, "--columns", "nothing", status=1).stderr


def test_sample(dataset: Path) -> None:
    found = run_json("sample", dataset, "-n", 20, "--columns", "id")
    ids = [row["id"] for row in found]
    assert len(set(ids)) == 20
    assert ids == sorted(ids)
    assert len(run_json("sample", dataset, "-n", 1000)) == 90


def test_search(dataset: Path) -> None:
    found = run_json("search", dataset, "word3", "--columns", "id", "-n", 5)
    assert [row["id"] % 5 for row in found] == [3] * 5
    assert run_json("search", dataset, "word3", "--in", "text", "--filter", "id < 4", "--columns", "id")[0]["id"] == 3
    assert "half" in run("search", dataset, "word3", "--in", "half", status=1).stderr


def test_du(dataset: Path) -> None:
    text = run("du", dataset).stdout
    assert "all data files" in text
    assert "index   text_idx" in text
    facts = run_json("du", dataset)
    assert facts["deleted_rows"] == 10
    assert [column["stored"] for column in facts["columns"]] == sorted(
        (column["stored"] for column in facts["columns"]), reverse=True
    )


def test_tail(dataset: Path) -> None:
    assert [line.split()[3] for line in run("tail", dataset).stdout.splitlines()] == [
        "Overwrite",
        "CreateIndex",
        "Delete",
    ]
    assert json.loads(run("tail", dataset, "-n", 1, "--json").stdout)["rows"] == 90
    made = lance.dataset(str(dataset))
    timer = threading.Timer(0.3, lambda: made.delete("id = 0"))
    timer.start()
    lines = run("tail", dataset, "-n", 0, "--follow", "--every", 0.05, "--until", 4).stdout.splitlines()
    timer.join()
    assert [line.split()[0] for line in lines] == ["4"]


@pytest.mark.parametrize("command", ["describe", "sample", "search", "du", "tail", "view"])
def test_help_has_an_example(command: str) -> None:
    assert f"lance-dataset {command} " in " ".join(run(command, "--help").stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_shells(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "LANCE_DATASET_COMPLETE" in run("--show-completion", shell).stdout.upper().replace("-", "_")
