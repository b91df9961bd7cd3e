"""Making directories and directory entries survive a power failure."""

from __future__ import annotations

import errno
import os
import sys

__all__ = ["forget_folders", "make_folders", "settle_folder", "sync_folder"]

#: `fsync` of a directory fails with one of these where a file system cannot do it; others are failures of the disk.
_CANNOT_SYNC = frozenset(
    {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EISDIR, errno.EPERM, errno.EACCES}
)
#: Folders whose way from the top is known to be on the disk, and which folders they were: device and inode.
_settled: dict[str, tuple[int, int]] = {}


def make_folders(folder: str) -> None:
    """Create a folder and its missing parents; they last after `settle_folder`."""
    missing = []
    parent = folder
    while not os.path.isdir(parent or "/"):
        missing.append(parent)
        parent = os.path.dirname(parent)
    os.makedirs(folder, exist_ok=True)
    for created in missing:
        _settled.pop(created, None)


def sync_folder(folder: str) -> None:
    """Bring the entries of a folder to the disk, where the system can do that.

    Raises
    ------
    OSError
        The disk failed.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems refuse to sync a directory; their entries are written through.
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def settle_folder(folder: str) -> None:
    """Bring the entries of a folder to the disk, and the way to it: the entries of all folders above.

    That a folder exists does not say that it will after a power failure: whoever made it, another process perhaps, may
    have been killed before it synced the folder above. This process syncs the folders above once.

    Parameters
    ----------
    folder
        Absolute path.
    """
    sync_folder(folder)
    if sys.platform == "win32":
        return
    passed = {}
    while True:
        status = os.stat(folder or "/")
        found = (status.st_dev, status.st_ino)
        if _settled.get(folder) == found:
            break
        passed[folder] = found
        parent = os.path.dirname(folder)
        if parent == folder or os.stat(parent or "/").st_dev != status.st_dev:
            break
        _sync_above(parent)
        folder = parent
    _settled.update(passed)


def _sync_above(folder: str) -> None:
    """Sync a folder that may be one that only others are allowed to list."""
    try:
        sync_folder(folder)
    except PermissionError:
        return


def forget_folders(folder: str) -> None:
    """Note that a folder and what is below it are gone: folders of these names made later are others."""
    below = folder + "/"
    for known in [known for known in _settled if known == folder or known.startswith(below)]:
        _settled.pop(known, None)
