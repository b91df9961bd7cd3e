"""Servers as child processes of the tests: free ports, a log, a wait for the first answer, a stop in any case."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

__all__ = ["free_ports", "running"]

_START_SECONDS = 60.0


def free_ports(count: int) -> list[int]:
    """Return different ports of this machine that nobody uses."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def running(
    name: str, command: Sequence[str], folder: Path, probe: Callable[[], object], **more: Any
) -> Iterator[None]:
    """Run a server for the duration of the context.

    Parameters
    ----------
    name
        Name for messages.
    command
        Program and arguments.
    folder
        Working folder, which also gets the log.
    probe
        Function that raises unless the server answers.
    more
        Further arguments of `subprocess.Popen`.
    """
    if setpriv := shutil.which("setpriv"):  # on Linux, the system stops it if this process is killed
        command = [setpriv, "--pdeathsig", "KILL", "--", *command]
    log = folder / "server.log"
    with open(log, "wb") as output:
        # It runs in a separate session, so that an interrupted test run does not stop it before the tests end.
        session = sys.platform != "win32"
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=session, cwd=folder, **more
        )
    try:
        _wait(name, process, log, probe)
        yield
    finally:
        # Its data is no longer needed, and an orderly stop can take ten seconds.
        process.kill()
        process.wait(10)


def _wait(name: str, process: subprocess.Popen[bytes], log: Path, probe: Callable[[], object]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            probe()
            return
        except Exception as error:
            if process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            said = log.read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"{name} did not start: {error}\n{said[-4000:]}") from error
