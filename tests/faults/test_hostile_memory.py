"""Tests of the memory that small files can take: forged ones are refused before, honest ones that expand are read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.files.memory_bombs import FORGED, HONEST

from lance_dataset.limits import BASE_MEMORY, MEMORY_PER_BYTE

DRIVER = Path(__file__).with_name("hostile_memory_driver.py")
WAYS = ("all", "first", "take", "backwards")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def measure(cases: list[tuple[Path, str]]) -> list[dict[str, Any]]:
    """Read files in a process of their own; return error, bytes of the result, and peak of the memory for each."""
    given = "".join(f"{path}\t{way}\n" for path, way in cases)
    # large blocks return to the system when they are freed, so that the peak is that of memory in use
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_MMAP_THRESHOLD_": "131072"}
    done = subprocess.run(
        [sys.executable, str(DRIVER)], input=given, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def beyond(found: dict[str, Any], path: Path, results: int) -> int:
    """Return the bytes of memory beyond those that are allowed for a file, and for some times the result."""
    return int(found["peak"] - results * found["size"] - BASE_MEMORY - MEMORY_PER_BYTE * path.stat().st_size)


def test_forged_files_are_refused_in_little_memory(tmp_path: Path) -> None:
    paths = {}
    for number, (name, (make, _)) in enumerate(FORGED.items()):
        paths[name] = tmp_path / f"{number}.lance"
        paths[name].write_bytes(make(tmp_path))
    cases = [(name, way) for name in FORGED for way in WAYS]
    for (name, way), found in zip(cases, measure([(paths[name], way) for name, way in cases]), strict=True):
        assert found["error"].startswith(FORGED[name][1]), (name, way, found)
        assert paths[name].name in found["error"]
        assert beyond(found, paths[name], 0) < 0, (name, way, found)


def test_honest_files_are_read(tmp_path: Path) -> None:
    paths = {}
    for number, (name, (make, _)) in enumerate(HONEST.items()):
        paths[name] = tmp_path / f"{number}.lance"
        paths[name].write_bytes(make(tmp_path))
    cases = [(name, way) for name, (_, ways) in HONEST.items() for way in ways]
    for (name, way), found in zip(cases, measure([(paths[name], way) for name, way in cases]), strict=True):
        assert not found["error"], (name, way, found)
        # results that do not come in batches are joined from parts; rows that are taken backwards are then reordered
        results = {"first": 1, "batches": 2, "all": 2, "take": 2, "backwards": 3}[way]
        assert beyond(found, paths[name], results) < 0, (name, way, found)
