"""Writes of new local files of any size, durable and without a long wait for the disk at the end."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from lance_dataset.errors import AlreadyExistsError, InvalidInputError
from lance_dataset.io.anchored import open_file, remove_file
from lance_dataset.io.base import Waiter
from lance_dataset.io.durable import settle_folder
from lance_dataset.io.statistics import IOCounter

__all__ = ["LocalOutput", "write_together"]

#: Parts up to this size are copied and gathered; larger ones are passed to the system as they are.
_SMALL = 64 << 10
_GATHER = 1 << 20
#: The kernel starts writing to the disk whenever this many bytes are new.
_WRITEBACK_STEP = 4 << 20
#: Files that are open at the same time when many are written.
_OPEN_FILES = 128


class LocalOutput:
    """New file, created when it is opened, complete and durable after `close`.

    Parameters
    ----------
    path
        Path of the file; its folders are created.
    root
        Root of the table, below which no links are followed; None for any path.
    durable
        True if `close` waits until file and folders are on the disk.
    counter
        Counter of the writes.

    Raises
    ------
    AlreadyExistsError
        The file exists.
    """

    def __init__(self, path: str, root: str | None = None, *, durable: bool, counter: IOCounter | None = None) -> None:
        self._counter = IOCounter() if counter is None else counter
        self._path = path
        self._root = root
        self._durable = durable
        #: Small parts that are not written yet, in the first bytes of memory that is used again and again.
        self._gathered: memoryview | None = None
        self._pending_size = 0
        self._written = 0
        self._started = 0
        self._descriptor = self._create()

    def _create(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            return open_file(self._path, self._root, flags)
        except FileExistsError as error:
            raise AlreadyExistsError(f"{self._path} exists already") from error

    def write(self, data: bytes | memoryview | pa.Buffer) -> None:
        """Append bytes."""
        self.write_many((data,))

    def write_many(self, parts: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        """Append several buffers; large ones are not copied."""
        if self._descriptor < 0:
            raise InvalidInputError(f"{self._path} is closed; it cannot be written any more")
        for part in parts:
            view = part if type(part) is bytes else memoryview(part).cast("B")
            size = len(view)
            end = self._pending_size + size
            if size > _SMALL or end > _GATHER:
                self._flush(view)
                continue
            if self._gathered is None:
                self._gathered = np.empty(_GATHER, np.uint8).data  # pages that are not used take no time
            self._gathered[self._pending_size : end] = view
            self._pending_size = end

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._written + self._pending_size

    def close(self) -> None:
        """Finish the file; remove it on failure."""
        if self._descriptor < 0:
            return
        self.close_unsettled()
        try:
            if self._durable:
                settle_folder(os.path.dirname(self._path))
        except BaseException:
            self.remove()
            raise

    def close_unsettled(self) -> None:
        """Finish the file like `close`, but not its entry in the folder."""
        try:
            self._flush()
            self._gathered = None
            if self._durable:
                _sync_data(self._descriptor)
        except BaseException as error:
            if isinstance(error, OSError):
                error.filename = error.filename or self._path
            self.abort()
            raise
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.close(descriptor)
        except BaseException:
            self.remove()
            raise

    def write_whole(self, data: bytes) -> None:
        """Write the content of a new file, without copying it."""
        self._flush(data)

    def remove(self) -> None:
        """Remove the file, open or closed."""
        self.abort()
        with suppress(OSError):
            remove_file(self._path, self._root)

    def abort(self) -> None:
        """Drop the file."""
        descriptor, self._descriptor = self._descriptor, -1
        self._gathered = None
        self._pending_size = 0
        if descriptor < 0:
            return
        with suppress(OSError):
            os.close(descriptor)
        with suppress(OSError):
            remove_file(self._path, self._root)

    def _flush(self, last: bytes | memoryview = b"") -> None:
        """Write the gathered parts, and another one behind them."""
        parts: list[bytes | memoryview] = [last] if len(last) else []
        if self._gathered is not None and self._pending_size:
            parts.insert(0, self._gathered[: self._pending_size])
        self._pending_size = 0
        try:
            self._write_vector(parts)
        except OSError as error:
            error.filename = error.filename or self._path
            raise
        if self._durable and _start_writeback is not None and self._written - self._started >= _WRITEBACK_STEP:
            _start_writeback(self._descriptor, self._started, self._written - self._started)
            self._started = self._written

    def _write_vector(self, parts: list[bytes | memoryview]) -> None:
        """Write all parts; one system call may write fewer."""
        while parts:
            count = _write_some(self._descriptor, parts)
            self._counter.add_write(count)
            self._written += count
            position = 0
            while position < len(parts) and count >= len(parts[position]):
                count -= len(parts[position])
                position += 1
            parts = parts[position:]
            if count:
                parts[0] = memoryview(parts[0])[count:]


def write_together(
    files: Iterable[tuple[str, bytes]], root: str | None, *, durable: bool, counter: IOCounter, wait: Waiter | None
) -> None:
    """Write new files; if one cannot be written, none of them remains.

    Many files are on their way to the disk before the first is waited for, so that the file system can commit them
    together, and the entries of a folder are synced once.

    Parameters
    ----------
    files
        Paths and contents. The contents are asked for one after the other.
    root, durable, counter
        See `LocalOutput`.
    wait
        See `ObjectStore.put_new`.

    Raises
    ------
    AlreadyExistsError
        A file exists.
    """
    made: list[LocalOutput] = []
    closed, folders = 0, dict[str, None]()
    try:
        for path, data in files:
            made.append(LocalOutput(path, root, durable=durable, counter=counter))
            made[-1].write_whole(data)
            folders[os.path.dirname(path)] = None
            if len(made) - closed == _OPEN_FILES:
                closed = _closed(made, closed, wait if durable else None)
        _closed(made, closed, wait if durable else None)
        for folder in folders if durable else ():
            settle_folder(folder)
    except BaseException:
        for output in made:
            output.remove()
        raise


def _closed(outputs: Sequence[LocalOutput], start: int, wait: Waiter | None) -> int:
    """Close the outputs from the given one on; return how many are closed now."""
    calls = [output.close_unsettled for output in outputs[start:]]
    if wait is None:
        for call in calls:
            call()
    else:
        wait(calls)
    return len(outputs)


def _write_some(descriptor: int, parts: list[bytes | memoryview]) -> int:
    if hasattr(os, "writev"):
        return os.writev(descriptor, parts)
    return os.write(descriptor, parts[0])


def _sync_data(descriptor: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def _writeback_starter() -> Callable[[int, int, int], None] | None:
    """Return a function that makes the kernel start writing a part of a file, without waiting; None except on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    sync_file_range_write = 2

    def start(descriptor: int, offset: int, length: int) -> None:
        # a failure only means that the final sync has more to do
        call(descriptor, offset, length, sync_file_range_write)

    return start


_start_writeback = _writeback_starter()
