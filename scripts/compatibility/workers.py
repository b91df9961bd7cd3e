"""Processes that write and read datasets with one release, replaced when they die."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Worker"]

_SCRIPT = Path(__file__).with_name("worker.py")
#: Seconds after which a task counts as hanging.
_PATIENCE = 60


class Worker:
    """Process that runs tasks with one release, see `worker.py`."""

    def __init__(self, python: Path, module: str) -> None:
        self._command = [str(python), str(_SCRIPT), module]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def do(self, **task: Any) -> dict[str, Any]:
        """Return the result of a task. A crash or a hang is an `error`, and the next task gets a new process."""
        if self._process is None:
            environment = {**os.environ, "RUST_BACKTRACE": "0", "RUST_LOG": "off", "PYTHONWARNINGS": "ignore"}
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        self._process.stdin.flush()
        line = self._line()
        if line is None:
            self._end()
            return {"error": f"Hangs: no result within {_PATIENCE} seconds"}
        if not line.endswith(b"\n"):
            code = self._end()
            return {"error": f"Crash: the process ended with code {code}"}
        return dict(json.loads(line))

    def _line(self) -> bytes | None:
        """Return the next line of the process; None if it takes too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(_PATIENCE):
                return None
        return self._process.stdout.readline()

    def _end(self) -> int | None:
        if self._process is None:
            return None
        process, self._process = self._process, None
        process.stdin.close()  # type: ignore[union-attr]
        try:
            return process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
