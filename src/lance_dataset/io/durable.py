"""Making directories and directory entries survive a power failure."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["make_folders", "sync_folder", "sync_folders"]


def make_folders(folder: str) -> list[str]:
    """Create a folder and its missing parents.

    Returns
    -------
    list of str
        Folders that got a new entry and must be synced for the new folders to last.
    """
    missing = []
    parent = folder
    while not os.path.isdir(parent or "/"):
        missing.append(parent)
        parent = os.path.dirname(parent)
    if not missing:
        return []
    os.makedirs(folder, exist_ok=True)
    return [os.path.dirname(created) or "/" for created in reversed(missing)]


def sync_folder(folder: str) -> None:
    """Bring the entries of a folder to the disk, where the system can do that."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Some network file systems refuse to sync a directory; their entries are written through.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(folders: list[str]) -> None:
    """Sync several folders, in order."""
    for folder in folders:
        sync_folder(folder)
