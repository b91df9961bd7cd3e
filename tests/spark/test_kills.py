"""Tests of kill -9: of the driver with a streaming query, and of executors, at random moments; ``LANCE_STRESS=1``.

``LANCE_KILLS`` is the number of kills of each kind.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.spark import kill_program

import lance_dataset

THOROUGH = os.environ.get("LANCE_STRESS", "") not in ("", "0")
KILLS = int(os.environ.get("LANCE_KILLS", "10"))
PROGRAM = Path(kill_program.__file__)


def started(*arguments: str, **options) -> subprocess.Popen[str]:
    paths = [str(Path(lance_dataset.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments], stdout=subprocess.PIPE, text=True, env=environment, **options
    )


def output(*arguments: str):
    """Run a program to its end; return what its last line says."""
    with started(*arguments) as program:
        lines = program.communicate()[0].splitlines()
    assert program.returncode == 0
    return json.loads(lines[-1])


def check(folder: Path) -> int:
    """Check that jobs are there wholly or not at all, none of them twice; return the number of jobs."""
    table, copy = (kill_program.jobs_of(str(folder / name)) for name in ("table.lance", "copy.lance"))
    assert set(table.values()) <= {kill_program.ROWS}
    assert list(table) == list(range(len(table)))
    assert set(copy.values()) <= {kill_program.ROWS}
    assert set(copy) <= set(table)
    return len(table)


def whole(jobs: int) -> list[list[int]]:
    return [[job, kill_program.ROWS] for job in range(jobs)]


if THOROUGH:

    def test_killed_drivers(tmp_path):
        chance = random.Random(11)
        for _ in range(KILLS):
            with started("until_killed", str(tmp_path), start_new_session=True) as program:
                assert program.stdout is not None
                assert program.stdout.readline() == "started\n"
                time.sleep(chance.uniform(0, 3))
                os.killpg(program.pid, signal.SIGKILL)
            check(tmp_path)
        table, copy = output("finish", str(tmp_path))
        assert table == copy == whole(check(tmp_path))
        print(f"{KILLS} kills, {len(table)} jobs")

    def test_killed_executors(tmp_path):
        died, table, copy = output("executors", str(tmp_path), str(KILLS))
        assert died > 0
        assert table == copy == whole(KILLS + 1)
        print(f"{died} executors died")
        check(tmp_path)
