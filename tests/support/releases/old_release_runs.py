"""Reads and changes of datasets by an old release of the reference, in its own environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from support.arrays.random_arrays import whole
from support.tables.equality import assert_same

__all__ = ["Run", "check", "read_dump", "runner", "write_ipc"]

_PROJECT = Path(__file__).parents[3]
_SCRIPT = _PROJECT / "tests" / "interop" / "releases" / "old_release.py"
#: Runs a command of `old_release.py`.
Run: TypeAlias = Callable[..., None]


def runner(release: str) -> Run:
    """Return a function that runs commands of `old_release.py` in an old release.

    The environment is `.venv-pylance-RELEASE` of the project, made by `scripts/old_releases.sh`, or the folder that the
    variable `PYLANCE_RELEASE` names, with underscores for the dots of the release.
    """
    home = os.environ.get(f"PYLANCE_{release.replace('.', '_')}", str(_PROJECT / f".venv-pylance-{release}"))
    python = Path(home, "bin", "python")
    if not python.exists():
        raise FileNotFoundError(f"pylance {release} is not installed in {home}; run scripts/old_releases.sh")

    def call(*arguments: object) -> None:
        command = [str(python), str(_SCRIPT), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-4000:]

    return call


def read_dump(path: str) -> pa.Table:
    """Read a table that an old release stored."""
    return pa.ipc.open_stream(path).read_all()


def write_ipc(table: pa.Table, path: Path) -> str:
    """Store rows for an old release, in batches of 50."""
    # Arrow IPC aligns to 8 bytes, but lance needs 16 for decimals; decompressed buffers are aligned.
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(whole(table), max_chunksize=50)
    return str(path)


def check(run: Run, path: Path, expected: pa.Table, tmp_path: Path, *, takes: bool = True) -> None:
    """Assert that the old release reads the same rows, in a scan and in a take."""
    run("dump", path, tmp_path / "dump")
    assert_same(read_dump(f"{tmp_path}/dump.rows"), expected)
    if expected.num_rows and takes:
        backwards = pa.array(range(expected.num_rows)[::-7])
        assert_same(read_dump(f"{tmp_path}/dump.taken"), whole(expected).take(backwards))
