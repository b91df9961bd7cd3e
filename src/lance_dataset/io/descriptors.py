"""Descriptors of files read by position, shared out because a process may have only so many files open."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict

from lance_dataset.errors import CorruptFileError, InvalidInputError, MissingFileError

__all__ = ["DescriptorPool", "PooledFile"]

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Maximum number of files that stay open while nobody reads them, and their share of the limit of the process.
_MOST_IDLE = 1024
_PART = 4


class DescriptorPool:
    """Pool that keeps the most recently used descriptors open, and closes others while nobody reads from them.

    Parameters
    ----------
    most_idle
        Maximum number of files that stay open while nobody reads them; None for a share of the limit of the process.
    """

    def __init__(self, most_idle: int | None = None) -> None:
        self._most_idle = _idle_limit() if most_idle is None else most_idle
        self._idle: OrderedDict[PooledFile, None] = OrderedDict()
        self._close = os.close  # at the end of the process modules may be gone before their objects
        self._renew_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        # reentrant: the garbage collector may close a file in the middle of anything
        self._lock = threading.RLock()


class PooledFile:
    """Open file whose descriptor may be closed and opened again between two reads.

    Parameters
    ----------
    pool
        Pool that opens and closes it.
    path
        Path to open it again.
    descriptor
        Descriptor of the open file, owned by this object from now on.
    """

    __slots__ = ("_closed", "_descriptor", "_identity", "_path", "_pool", "_users")

    def __init__(self, pool: DescriptorPool, path: str, descriptor: int) -> None:
        self._pool = pool
        self._path = path
        self._descriptor = descriptor
        self._identity = _identity(descriptor)
        self._closed = False
        self._users = 1
        self.release()

    def acquire(self) -> int:
        """Return a descriptor that stays open until `release`, which must be called once for each call.

        Raises
        ------
        InvalidInputError
            The file was closed.
        MissingFileError
            The file had to be opened again, but does not exist any more.
        CorruptFileError
            The file had to be opened again, but was replaced by another one.
        """
        pool = self._pool
        with pool._lock:
            if self._closed:
                raise InvalidInputError(f"{self._path} is closed; open it again to read")
            if self._descriptor < 0:
                self._descriptor = self._open_again()
            pool._idle.pop(self, None)
            self._users += 1
            return self._descriptor

    def release(self) -> None:
        """End a use of the descriptor."""
        pool = self._pool
        with pool._lock:
            self._users -= 1
            if self._users:
                return
            if self._closed:
                self._drop()
                return
            pool._idle[self] = None
            while len(pool._idle) > pool._most_idle:
                pool._idle.popitem(last=False)[0]._drop()

    def close(self) -> None:
        """Close the file as soon as nobody reads from it."""
        pool = self._pool
        with pool._lock:
            self._closed = True
            pool._idle.pop(self, None)
            if not self._users:
                self._drop()

    def _drop(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._pool._close(descriptor)

    def _open_again(self) -> int:
        try:
            descriptor = os.open(self._path, _FLAGS)
        except FileNotFoundError as error:
            raise MissingFileError(
                f"{self._path} does not exist any more; it was removed after it was opened"
            ) from error
        if _identity(descriptor) != self._identity:
            os.close(descriptor)
            raise CorruptFileError(f"{self._path}: was replaced by another file after it was opened")
        return descriptor


def _identity(descriptor: int) -> tuple[int, int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size


def _idle_limit() -> int:
    if sys.platform == "win32":
        return _MOST_IDLE // _PART
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_IDLE if allowed == resource.RLIM_INFINITY else max(min(allowed // _PART, _MOST_IDLE), 1)
