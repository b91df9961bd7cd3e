"""Runs processes that begin at the same moment, each with a log of JSON lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

__all__ = ["begin_together", "run_together"]


def run_together(script: str, given: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """Run a script in several processes.

    Parameters
    ----------
    script
        Path of a Python file that calls `begin_together`.
    given
        What each process gets.

    Returns
    -------
    list of dict
        The entries of all logs.
    float
        Seconds from the start to the end of the last process.
    """
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder, f"{number}.log") for number in range(len(given))]
        processes = [_start(script, {**each, "log": str(log)}) for each, log in zip(given, logs, strict=True)]
        for process in processes:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", process.communicate()[1].decode()[-3000:]
        begin = time.time()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"%f\n" % begin)
            process.stdin.flush()
        errors = [process.communicate()[1].decode() for process in processes]
        seconds = time.time() - begin
        for process, each, error in zip(processes, given, errors, strict=True):
            assert process.returncode == 0, f"{each}: {error[-3000:]}"
        return [json.loads(line) for log in logs for line in log.read_text().splitlines()], seconds


def _start(script: str, given: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, script, json.dumps(given)], stdin=pipe, stdout=pipe, stderr=pipe)


def begin_together(work: Callable[[Mapping[str, Any], float, IO[str]], None]) -> None:
    """Run the work of a process that `run_together` started.

    Parameters
    ----------
    work
        Called with what the process got, the moment at which all begin, and its log.
    """
    # There are many processes on few cores, so further threads would only take turns.
    os.environ.setdefault("LANCE_IO_THREADS", "2")
    os.environ.setdefault("LANCE_CPU_THREADS", "2")
    given = json.loads(sys.argv[1])
    if given["library"] == "ours":
        import lance_dataset  # noqa: F401 - so that no one waits for imports later
    else:
        import lance  # noqa: F401
    with open(given["log"], "w") as log:
        print("ready", flush=True)
        work(given, float(sys.stdin.readline()), log)
