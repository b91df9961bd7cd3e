"""Kind of the file system that a file lies on, as far as memory mapping depends on it."""

from __future__ import annotations

import os
from functools import cache

__all__ = ["is_network_device"]

#: A page fault on these can fail (server gone, file replaced), which kills the process instead of raising an error.
_NETWORK_TYPES = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "drvfs",
        "fuse",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "vmhgfs",
        "wekafs",
    }
)
_MOUNT_TABLE = "/proc/self/mountinfo"


@cache
def is_network_device(device: int) -> bool:
    """Return whether the file system with this device number (``st_dev``) is a network file system or uses FUSE.

    The answer is False if the system has no mount table, or the table does not list the device.
    """
    return is_network_type(_types_by_device().get(device, ""))


def is_network_type(fs_type: str) -> bool:
    """Return whether a file system type name is that of a network or FUSE file system."""
    return fs_type in _NETWORK_TYPES or fs_type.startswith("fuse.")


def _types_by_device() -> dict[int, str]:
    try:
        with open(_MOUNT_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            lines = table.readlines()
    except OSError:
        return {}
    types = {}
    for line in lines:
        # "36 35 98:0 /root /mount options... - type source options": optional fields end at the dash.
        head, _, tail = line.partition(" - ")
        columns = head.split()
        if len(columns) > 2 and tail:
            major, _, minor = columns[2].partition(":")
            types[os.makedev(int(major), int(minor))] = tail.split()[0]
    return types
