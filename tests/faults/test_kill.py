"""Tests of kill -9 at random moments of writes and commits: the last committed version can always be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 200 if os.environ.get("LANCE_STRESS", "") not in ("", "0") else 60
DRIVER = Path(__file__).with_name("kill_driver.py")


@pytest.mark.slow
def test_kill_at_random_moments(tmp_path: Path) -> None:
    uri = tmp_path / "killed.lance"
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(uri), str(KILLS)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    committed, reported = map(int, done.stdout.split())
    assert committed > KILLS // 4
    assert reported > KILLS // 10
