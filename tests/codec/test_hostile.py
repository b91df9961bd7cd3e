"""Tests of random hostile calls, in a separate process because a failure may be a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "fuzz_codec.py"
MODULES = sorted(path.stem for path in (ROOT / "tests" / "fuzz" / "codec_targets").glob("[a-z]*.py"))


@pytest.mark.parametrize("seed", [0, 1_000_000] if THOROUGH else [0])
@pytest.mark.parametrize("module", [module for module in MODULES if module != "chaos"])
def test_only_ordinary_exceptions(module: str, seed: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONMALLOC": "debug"}
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), "--only", f"{module}."]
    run = subprocess.run(
        [*command, "--seed", str(seed), "--calls", "2000"], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
