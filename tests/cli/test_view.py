"""Tests of the command that serves a page, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest
from support.processes.cli_runs import run

import lance_dataset as lance


def test_view_until_interrupted(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "x"))
    made.delete("a = 2")
    command = [sys.executable, "-m", "lance_dataset.cli", "view", made.uri, "--no-browser", "--version", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "is shown at" in process.stdout.readline()
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{url}api/table") as answer:
            assert json.load(answer)["rows"] == 2
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "x"))
    assert "cannot listen" in run("view", made.uri, "--host", "203.0.113.7", status=1).stderr
    assert "not found" in run("view", tmp_path / "nothing", status=1).stderr.lower()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'lance-dataset[viewer]'" in run("view", made.uri, status=1).stderr
