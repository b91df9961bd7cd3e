"""Copying a local file of any size into place all at once."""

from __future__ import annotations

import io
import os
import uuid
from contextlib import suppress

from lance_dataset.io.durable import make_folders, settle_folder

__all__ = ["publish_copy"]

_STEP = 8 << 20


def publish_copy(descriptor: int, path: str, *, durable: bool) -> None:
    """Copy an open file under a temporary name and move it to `path`, replacing what is there.

    Parameters
    ----------
    descriptor
        The file to copy, at its start; it is closed.
    path
        The new file; its folders are created.
    durable
        Whether the copy and its name are on the disk when this returns.
    """
    folder = os.path.dirname(path)
    temporary = f"{folder}/.tmp_{uuid.uuid4().hex}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(descriptor, "rb", buffering=0) as source:
        make_folders(folder)
        try:
            target = os.open(temporary, flags, 0o666)
            try:
                _copy(source, target)
                if durable:
                    os.fsync(target)
            finally:
                os.close(target)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    if durable:
        settle_folder(folder)


def _copy(source: io.FileIO, target: int) -> None:
    while content := source.read(_STEP):
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(target, rest) :]
