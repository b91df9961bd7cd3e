"""Disks that are full, fail or are slow: calls of `os` that need room or wait for the disk, in this process."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FailingDisk"]

_WRITES = ("write", "writev")
_SYNCS = ("fsync", "fdatasync")
_NAMES = ("link", "rename", "replace", "mkdir")


@dataclass
class FailingDisk:
    """Calls are counted, and some of them fail.

    Attributes
    ----------
    at
        Number of the first call that fails, starting at 0; None if none does.
    error
        Number of its error.
    lasting
        True if all later calls fail too, like those of a disk that is full.
    slow
        Seconds that each call takes.
    calls
        Names of the calls so far.
    """

    at: int | None = None
    error: int = errno.ENOSPC
    lasting: bool = True
    slow: float = 0.0
    calls: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Use this disk during the context."""
        real = {name: getattr(os, name) for name in ("open", *_WRITES, *_SYNCS, *_NAMES) if hasattr(os, name)}
        lock = threading.Lock()
        made: set[int] = set()

        def failed(name: str) -> bool:
            time.sleep(self.slow)
            with lock:
                number = len(self.calls)
                self.calls.append(name)
            return self.at is not None and (number >= self.at if self.lasting else number == self.at)

        def failure(path: Any = None) -> OSError:
            return OSError(self.error, os.strerror(self.error), path)

        def opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            if flags & os.O_CREAT and failed("open"):
                raise failure(path)
            descriptor = real["open"](path, flags, *args, **kwargs)
            (made.add if flags & os.O_CREAT else made.discard)(descriptor)
            return descriptor

        def wrapped(name: str) -> Callable[..., Any]:
            def call(first: Any, *args: Any, **kwargs: Any) -> Any:
                if name in _WRITES and first not in made:
                    return real[name](first, *args, **kwargs)
                if failed(name):
                    if name in _WRITES:  # half of it is on the disk
                        parts = args[0] if name == "writev" else [args[0]]
                        whole = b"".join(bytes(memoryview(part).cast("B")) for part in parts)
                        real["write"](first, whole[: len(whole) // 2])
                    raise failure()
                return real[name](first, *args, **kwargs)

            return call

        try:
            os.open = opened
            for name in real.keys() - {"open"}:
                setattr(os, name, wrapped(name))
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)
