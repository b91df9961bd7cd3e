"""Kind of the file system that a file lies on, as far as memory mapping depends on it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache

__all__ = ["is_network_file"]

_FUSE = 0x65735546
#: Types that `statfs` of Linux reports for network, cluster and shared file systems, and for FUSE. A page fault there
#: can fail (the server is gone, another machine truncated the file), which kills the process instead of raising an
#: error.
_NETWORK_MAGIC = frozenset(
    {
        _FUSE,  # also virtiofs
        0x01021997,  # 9p
        0x5346414F,  # afs
        0x6B414653,  # afs of the kernel
        0x19830326,  # beegfs
        0x00C36400,  # ceph
        0xFF534D42,  # cifs
        0xFE534D42,  # smb2
        0x517B,  # smb
        0x73757245,  # coda
        0x01161970,  # gfs2
        0x47504653,  # gpfs
        0x0BD00BD0,  # lustre
        0x564C,  # ncpfs
        0x6969,  # nfs
        0x7461636F,  # ocfs2
        0x20030528,  # orangefs
        0xAAD7AAEA,  # panfs
        0x786F4256,  # vboxsf
        0xBACBACBC,  # vmhgfs
    }
)
#: Names of such file systems in the mount table, for those without a number of their own.
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
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
        "wekafs",
    }
)
#: FUSE on a disk of this machine, such as NTFS.
_LOCAL_FUSE = "fuseblk"
_MOUNT_TABLE = "/proc/self/mountinfo"
#: More than any structure `statfs`; the type is its first number.
_STATFS_WORDS = 64


def is_network_file(descriptor: int, device: int) -> bool:
    """Return whether an open file lies on a network file system, or on one that uses FUSE.

    The answer is False if the system does not tell: only Linux does.

    Parameters
    ----------
    descriptor
        The file.
    device
        Its device number (``st_dev``).
    """
    return _is_network(device, _file_system_type(descriptor))


@cache
def _is_network(device: int, magic: int) -> bool:
    """Return whether a file system is one. Numbers of devices are used again, so the type is part of the question."""
    if magic in _NETWORK_MAGIC and magic != _FUSE:
        return True
    name = _types_by_device().get(device, "")
    return name != _LOCAL_FUSE if magic == _FUSE else is_network_type(name)


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


def _file_system_typer() -> Callable[[int], int]:
    """Return a function that gives the type of the file system of an open file; 0 if it is not known."""
    if not sys.platform.startswith("linux"):
        return lambda _descriptor: 0
    try:
        # it answers from memory, so the interpreter lock is kept
        call = ctypes.PyDLL(None).fstatfs
    except (OSError, AttributeError):
        return lambda _descriptor: 0
    call.argtypes = (ctypes.c_int, ctypes.c_void_p)
    words = ctypes.c_ulong * _STATFS_WORDS

    def find(descriptor: int) -> int:
        status = words()
        return 0 if call(descriptor, status) else int(status[0]) & 0xFFFFFFFF

    return find


_file_system_type = _file_system_typer()
