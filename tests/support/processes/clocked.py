"""Processes whose clocks are wrong. Files get their dates from the right clock, as on a server."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import libfaketime

__all__ = ["Clocked", "all_clocked"]


class Clocked:
    """Process of a library with a clock of its own.

    Parameters
    ----------
    library
        Module to use, ``lance_dataset`` or ``lance``.
    ahead
        How far its clock is ahead.
    """

    def __init__(self, library: str, ahead: dt.timedelta) -> None:
        self.library = library
        self.ahead = ahead
        [preload] = Path(libfaketime.__file__).parent.rglob("libfaketime.so.1")
        environment = {
            **os.environ,
            "LD_PRELOAD": str(preload),
            "FAKETIME": f"{int(ahead.total_seconds()):+d}",
            "NO_FAKE_STAT": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__, library],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __repr__(self) -> str:
        return f"{self.library} {self.ahead}"

    def run(self, code: str, **names: Any) -> Any:
        """Evaluate an expression with names, and return the result, by JSON; raise RuntimeError for any error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([code, names]), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{self!r}: {answer['error']}")
        return answer["result"]

    def __enter__(self) -> Clocked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


@contextmanager
def all_clocked(*each: tuple[str, dt.timedelta]) -> Iterator[list[Clocked]]:
    """Start several processes, and end them."""
    processes = [Clocked(library, ahead) for library, ahead in each]
    try:
        yield processes
    finally:
        for process in processes:
            process.__exit__(None, None, None)


def _serve(library: str) -> None:
    names: dict[str, Any] = {}
    exec(f"import datetime as dt, time, pyarrow as pa, {library} as lance", names)
    for line in sys.stdin:
        code, given = json.loads(line)
        try:
            answer = {"result": eval(code, {**names, **given})}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
