"""Directories and directory entries that survive a power failure."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import partial

from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.streams import stream

__all__ = ["forget_folders", "make_folders", "settle_folder", "sync_folder"]

#: Errors of `fsync` on a directory if the file system cannot do it. Other errors are failures of the disk.
_CANNOT_SYNC = frozenset(
    {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EISDIR, errno.EPERM, errno.EACCES}
)
#: Folders whose path from the root is known to be on the disk, with their device and inode.
_settled: dict[str, tuple[int, int]] = {}


def make_folders(folder: str) -> None:
    """Create a folder and its missing parents; `settle_folder` makes them durable."""
    missing = []
    parent = folder
    while not os.path.isdir(parent or "/"):
        missing.append(parent)
        parent = os.path.dirname(parent)
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
    for created in missing:
        _settled.pop(created, None)


def sync_folder(folder: str) -> None:
    """Sync the entries of a folder to the disk, if the system can do that.

    Raises
    ------
    OSError
        The disk fails.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some network file systems cannot sync a directory; they write its entries through
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def settle_folder(folder: str) -> None:
    """Sync the entries of a folder to the disk, and those of all folders above it.

    A folder that exists now may be gone after a power failure: the process that made it may have been killed before it
    synced the parent. This process syncs the folders above once.

    Parameters
    ----------
    folder
        Absolute path.
    """
    if sys.platform == "win32":
        return
    passed: dict[str, tuple[int, int]] = {}
    syncs = [partial(sync_folder, folder)]
    while True:
        status = os.stat(folder or "/")
        found = (status.st_dev, status.st_ino)
        if _settled.get(folder) == found:
            break
        passed[folder] = found
        parent = os.path.dirname(folder)
        if parent == folder or os.stat(parent or "/").st_dev != status.st_dev:
            break
        syncs.append(partial(_sync_above, parent))
        folder = parent
    try:
        # at the same time, so that the file system can commit them together
        for _ in stream(_called, syncs, ahead=len(syncs), pool=storage_pool, join=True):
            pass
    except RuntimeError:  # no thread can be started: the interpreter ends, or there are too many
        for sync in syncs:
            sync()
    _settled.update(passed)


def _called(sync: Callable[[], None]) -> None:
    sync()


def _sync_above(folder: str) -> None:
    """Sync a folder; do nothing if this user must not list it."""
    try:
        sync_folder(folder)
    except PermissionError:
        return


def forget_folders(folder: str) -> None:
    """Note that a folder and everything below it are gone: later folders of these names are new."""
    below = folder + "/"
    # a copy, which is made at once: other threads add folders meanwhile
    for known in [known for known in list(_settled) if known == folder or known.startswith(below)]:
        _settled.pop(known, None)
