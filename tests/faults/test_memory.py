"""Tests of peak memory in a separate process: bounded for writes of any size, little more than the table for scans."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("memory_driver.py")
MB = 1_000_000
BATCHES = 50  # of 4 MB
KINDS = ("narrow", "wide", "text", "lists", "nested")


def measure(*given: object, **environment: str) -> tuple[int, int]:
    """Return (peak, size of the result) in bytes."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), *map(str, given)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    peak, size = map(int, done.stdout.split())
    return peak, size


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_write_and_scan(tmp_path: Path, kind: str) -> None:
    uri = tmp_path / "large.lance"
    peak, _ = measure("write", uri, kind, BATCHES)
    assert peak <= 340 * MB  # 190 of them are the process itself; all data would be 200 more
    for mmap in ("1", "0"):
        peak, size = measure("scan", uri, LANCE_MMAP=mmap)
        # levels of nested columns are decoded beside the values
        assert peak <= (1.6 if kind == "nested" else 1.3) * size + 20 * MB, f"mmap {mmap}"
    # without a mapping only data in use is in memory: a page of each column, and a few windows ahead
    peak, size = measure("batches", uri, LANCE_MMAP="0")
    assert peak <= {"wide": 2.1, "nested": 2.3, "lists": 1.5}.get(kind, 1.3) * size


@pytest.mark.slow
def test_filtered_scans_are_bounded(tmp_path: Path) -> None:
    """A filtered scan keeps no window after its use; the scheduler decides how many are in use at once."""
    uri = tmp_path / "large.lance"
    measure("write", uri, "text", BATCHES)
    for threads in ("1", "4"):
        environment = {"LANCE_MMAP": "0", "LANCE_CPU_THREADS": threads}
        peak, size = measure("filter", uri, "t IS NOT NULL", **environment)
        assert size >= 190 * MB
        assert peak < size
        _, size = measure("filter", uri, "t IS NULL", **environment)
        assert size == 0


@pytest.mark.slow
def test_one_giant_row(tmp_path: Path) -> None:
    """Writing one giant row adds the compressed value, and the page into which it is zipped with its length."""
    uri = tmp_path / "giant.lance"
    peak, _ = measure("giant", uri, 200 * MB)
    assert peak <= 3.3 * 200 * MB
    peak, size = measure("scan", uri, LANCE_MMAP="0")
    assert size >= 200 * MB
    # stored, decompressed, and the array
    assert peak <= 3.2 * size
