"""Tests of the command `maintain`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.processes.cli_runs import run, run_json

import lance_dataset as lance
from lance_dataset.table.lease import Lease, read_lease


def ids(start: int, stop: int) -> pa.Table:
    return pa.table({"id": np.arange(start, stop)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lance.write_dataset(ids(0, 200), tmp_path / "x.lance", max_rows_per_file=10)
    return tmp_path / "x.lance"


def test_once(path: Path) -> None:
    text = run("maintain", path, "--dry-run").stdout
    assert "version 1, nothing was changed" in text
    assert "compact: due, 20 fragments can be joined, 16 suffice" in text
    facts = run_json("maintain", path, "--dry-run")
    assert [step["outcome"] for step in facts["steps"]] == ["due", "nothing to do", "nothing to do"]
    assert lance.dataset(path).version == 1
    assert "compact: done" in run("maintain", path).stdout
    assert [step["outcome"] for step in run_json("maintain", path)["steps"]] == ["nothing to do"] * 3


def test_branches(path: Path) -> None:
    lance.dataset(path).create_branch("b")
    assert run_json("maintain", path, "--branch", "b")["branch"] == "b"
    assert lance.dataset(path).version == 1


def test_leases_of_others(path: Path) -> None:
    dataset = lance.dataset(path)
    with Lease.take(dataset.snapshot.store, dataset.snapshot.root, 60):
        assert "is at work" in run("maintain", path, "--wait", "10ms").stdout
    assert lance.dataset(path).version == 1


def test_steps_that_failed_are_the_status(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_dataset.errors import UnsupportedError

    def refuse(*_: object) -> None:
        raise UnsupportedError("not this one")

    monkeypatch.setattr("lance_dataset.changes.maintaining.running.due_compaction", refuse)
    assert "compact: refused, not this one" in run("maintain", path, status=1).stdout


@pytest.mark.parametrize("option", ["--every", "--wait"])
@pytest.mark.parametrize("value", ["3", "1000000000000y", "soon"])
def test_wrong_durations(path: Path, option: str, value: str) -> None:
    assert option in run("maintain", path, option, value, status=2).stderr


def test_a_loop_stops_clean(path: Path) -> None:
    command = [sys.executable, "-m", "lance_dataset.cli", "maintain", str(path), "--every", "100ms", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        rounds = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert [each["steps"][0]["outcome"] for each in rounds] == ["done", "nothing to do"]
    assert (process.returncode, errors) in [(0, b"stopped\n"), (130, b"interrupted\n")]
    dataset = lance.dataset(path)
    state = read_lease(dataset.snapshot.store, dataset.snapshot.root)
    assert state is not None
    assert state.released


def test_a_loop_goes_on_after_errors(path: Path) -> None:
    command = [sys.executable, "-m", "lance_dataset.cli", "maintain", str(path), "--every", "50ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while not process.stdout.readline().startswith("clean up"):
            pass
        aside = path.with_suffix(".aside")
        path.rename(aside)
        while "error: " not in process.stderr.readline():
            pass
        if path.exists():
            path.rename(path.with_suffix(".made"))
        aside.rename(path)
        lines = iter(process.stdout.readline, "")
        assert any("x.lance" in line for line in lines)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode in (0, 130)
