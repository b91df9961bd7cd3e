"""Memory mappings of files, without a descriptor that stays open for each."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any

import pyarrow as pa

__all__ = ["Mapping", "map_file"]

_PAGE = mmap.PAGESIZE
_WILL_NEED = getattr(mmap, "MADV_WILLNEED", None)
_DONT_NEED = getattr(mmap, "MADV_DONTNEED", None)
_RANDOM = getattr(mmap, "MADV_RANDOM", None)
_NORMAL = getattr(mmap, "MADV_NORMAL", None)
#: For one call Linux loads no more than the read-ahead size of the device, and ignores the rest.
_WILL_NEED_STEP = 128 << 10
_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """Mapping of a file, which lives until nobody holds a buffer of it.

    Parameters
    ----------
    address, size
        Place of the bytes in memory.
    unmap
        Function that removes the mapping, called with both.
    tells_residency
        True if the system tells this process which parts of the file are in memory.
    """

    __slots__ = ("_address", "_size", "_unmap", "tells_residency")

    def __init__(self, address: int, size: int, unmap: Any, *, tells_residency: bool) -> None:
        self._address = address
        self._size = size
        #: True if `is_resident` is reliable.
        self.tells_residency = tells_residency
        self._unmap = unmap  # at the end of the process this module may be gone before its objects

    def __del__(self) -> None:
        self._unmap(self._address, self._size)

    def will_need(self, start: int, stop: int) -> None:
        """Have the system load bytes ``[start, stop)``, without waiting for them."""
        if _WILL_NEED is not None:
            stop = min(stop, self._size)
            for begin in range(start // _PAGE * _PAGE, stop, _WILL_NEED_STEP):
                _libc.madvise(self._address + begin, min(stop - begin, _WILL_NEED_STEP), _WILL_NEED)

    def drop(self, start: int, stop: int) -> None:
        """Release the memory pages inside ``[start, stop)`` of this process; they stay readable."""
        start, stop = -(-start // _PAGE) * _PAGE, stop // _PAGE * _PAGE
        if _DONT_NEED is not None and stop > start:
            _libc.madvise(self._address + start, stop - start, _DONT_NEED)

    def scatter(self, scattered: bool) -> None:
        """Set whether the system loads only the memory pages that are touched, or their surroundings too."""
        advice = _RANDOM if scattered else _NORMAL
        if advice is not None:
            _libc.madvise(self._address, self._size, advice)

    def is_resident(self, offset: int) -> bool:
        """Return whether a byte is in memory; True if the system does not tell (see `tells_residency`)."""
        state = ctypes.create_string_buffer(b"\1", 1)
        _mincore(self._address + offset // _PAGE * _PAGE, 1, state)
        return state.raw != b"\0"


def map_file(descriptor: int, size: int) -> tuple[pa.Buffer, Mapping | None]:
    """Map an open file, which may be closed afterwards.

    Parameters
    ----------
    descriptor
        Descriptor of the file.
    size
        Number of bytes to map, at least one.

    Returns
    -------
    buffer : pyarrow.Buffer
        The bytes; they stay mapped while the buffer or a slice of it exists.
    mapping : Mapping or None
        The mapping, None if the system has no advice calls.
    """
    if _libc is None:
        return pa.py_buffer(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)), None
    address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _FAILED or address is None:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot map {size} bytes: {os.strerror(code)}; the storage option mmap=false avoids that")
    mapping = Mapping(address, size, _libc.munmap, tells_residency=_tells_residency(descriptor))
    return pa.foreign_buffer(address, size, mapping), mapping


def _tells_residency(descriptor: int) -> bool:
    """Return whether this process may learn what is in memory: for files of others, Linux reports everything."""
    return os.geteuid() in (0, os.fstat(descriptor).st_uid)


def _load_libc() -> Any:
    """Return the C library, None on Windows, which lacks the functions."""
    if sys.platform == "win32":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    )  # fmt: skip
    library.mmap.restype = ctypes.c_void_p
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


def _load_mincore() -> Any:
    """Return `mincore`, called without releasing the GIL because it answers immediately."""
    if sys.platform == "win32":
        return None
    function = ctypes.PyDLL(None).mincore
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    return function


_libc = _load_libc()
_mincore = _load_mincore()
