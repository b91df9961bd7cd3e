"""Tests with damaged datasets: those that ever failed, and a few random ones. ``make soak`` runs many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_FUZZER = Path(__file__).parent / "datasets" / "__main__.py"


@pytest.mark.parametrize("options", [["--replay"], ["--fixtures", "--trials", "12", "--seed", "test"]])
def test_damaged_datasets(tmp_path: Path, options: list[str]) -> None:
    command = [sys.executable, "-W", "ignore", str(_FUZZER), "--folder", str(tmp_path), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
