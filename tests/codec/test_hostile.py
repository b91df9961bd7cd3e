"""Random hostile calls, in a process of their own because a failure may be a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fuzz_codec.py"


@pytest.mark.parametrize("seed", [0, 1_000_000])
def test_only_ordinary_exceptions(seed: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONMALLOC": "debug"}
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), "--seed", str(seed), "--calls", "14000"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
