"""Test of the soak of a MemWAL: it runs for a moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/soak_mem_wal.py"


def test_a_moment(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--minutes", "0.02", "--folder", str(tmp_path), "--age", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("nothing grew\n")
