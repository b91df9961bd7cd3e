"""Reading local files: memory mapped, or with plain positioned reads."""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Sequence

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.io.ranges import MergedRange, merge_ranges, split_merged
from lance_dataset.io.threads import SharedPool

__all__ = ["MappedInput", "PlainInput"]

_PAGE = mmap.PAGESIZE
#: Ranges closer than this are read, or asked to be read ahead, together.
_MAX_GAP = 64 << 10
_MAX_REQUEST = 8 << 20
_PARALLEL_READS = 16
#: When this many reads take longer than this many seconds each, the others are worth threads.
_PROBES = 4
_SLOW = 200e-6


class MappedInput:
    """A memory-mapped file; every buffer is a view of the mapping.

    Parameters
    ----------
    path
        For error messages.
    descriptor
        Open file; may be closed afterwards.
    size
        Size of the file. Exactly these bytes are mapped.
    """

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self._path = path
        self._size = size
        self._mapping: mmap.mmap | None = None
        buffer = pa.py_buffer(b"")
        if size:
            self._mapping = _map(descriptor, size)
            buffer = pa.py_buffer(self._mapping)
        self._buffer: pa.Buffer | None = buffer

    @property
    def path(self) -> str:
        """Path of the file."""
        return self._path

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self._size

    @property
    def mapped(self) -> pa.Buffer:
        """The whole file, zero-copy."""
        if self._buffer is None:
            raise InvalidInputError(f"{self._path} is closed; open it again to read")
        return self._buffer

    def read(self, offset: int, length: int) -> pa.Buffer:
        """A view of `length` bytes at `offset`."""
        _check_range(self._path, self._size, offset, length)
        return self.mapped.slice(offset, length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """One view per range; the kernel is asked to load them all at once rather than page by page."""
        buffers = [self.read(offset, length) for offset, length in ranges]
        mapping = self._mapping
        if mapping is not None and len(ranges) > 1 and hasattr(mmap, "MADV_WILLNEED"):
            for merged in merge_ranges(ranges, _MAX_GAP, self._size):
                start = merged.offset // _PAGE * _PAGE
                if merged.length:
                    mapping.madvise(mmap.MADV_WILLNEED, start, merged.offset + merged.length - start)
        return buffers

    def discard(self, offset: int, length: int) -> None:
        """Take whole memory pages out of the mapping again, so that they do not count as memory of this process."""
        mapping = self._mapping
        start, stop = -(-offset // _PAGE) * _PAGE, (offset + length) // _PAGE * _PAGE
        if mapping is not None and stop > start and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def close(self) -> None:
        """Let go of the mapping; it lives on under the buffers already returned."""
        self._buffer = None
        self._mapping = None


class PlainInput:
    """A file read with positioned reads; owns its descriptor.

    Parameters
    ----------
    path
        For error messages.
    descriptor
        Open file, closed by `close`.
    size
        Size of the file.
    """

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = size

    @property
    def path(self) -> str:
        """Path of the file."""
        return self._path

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self._size

    @property
    def mapped(self) -> None:
        """Never mapped."""
        return None

    def read(self, offset: int, length: int) -> pa.Buffer:
        """`length` bytes at `offset` in a new buffer."""
        _check_range(self._path, self._size, offset, length)
        if self._descriptor < 0:
            raise InvalidInputError(f"{self._path} is closed; open it again to read")
        buffer = pa.allocate_buffer(length)
        view = memoryview(buffer).cast("B")
        done = 0
        while done < length:
            count = os.preadv(self._descriptor, [view[done:]], offset + done)
            if count == 0:
                raise CorruptFileError(f"{self._path}: ends at byte {offset + done}; it shrank after it was opened")
            done += count
        return buffer

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """One buffer per range; near ranges are read together, far ones at the same time."""
        for offset, length in ranges:
            _check_range(self._path, self._size, offset, length)
        requests = merge_ranges(ranges, _MAX_GAP, _MAX_REQUEST)
        return split_merged(ranges, requests, self._fetch_all(requests))

    def _fetch_all(self, requests: Sequence[MergedRange]) -> list[pa.Buffer]:
        """Let the kernel read ahead; if the first answers are slow all the same, ask for the others in threads.

        Threads cost more than they save where the data is in memory already.
        """
        if len(requests) > 1 and hasattr(os, "posix_fadvise") and self._descriptor >= 0:
            for request in requests:
                os.posix_fadvise(self._descriptor, request.offset, request.length, os.POSIX_FADV_WILLNEED)
        started = time.perf_counter()
        answers = self._fetch(requests[:_PROBES])
        rest = requests[_PROBES:]
        if not rest or time.perf_counter() - started < _PROBES * _SLOW:
            return answers + self._fetch(rest)
        others: list[pa.Buffer] = [answers[0]] * len(rest)
        stripes = [slice(start, None, _PARALLEL_READS) for start in range(min(len(rest), _PARALLEL_READS))]
        fetched = _read_pool().map(self._fetch, [rest[stripe] for stripe in stripes])
        for stripe, buffers in zip(stripes, fetched, strict=True):
            others[stripe] = buffers
        return answers + others

    def _fetch(self, requests: Sequence[MergedRange]) -> list[pa.Buffer]:
        return [self.read(request.offset, request.length) for request in requests]

    def discard(self, offset: int, length: int) -> None:
        """Nothing to do: no bytes are held."""

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def _map(descriptor: int, size: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):
        # Without a duplicate of the descriptor, so that open files do not count against the limit of the process.
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ, trackfd=False)
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)


def _check_range(path: str, size: int, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length > size:
        raise CorruptFileError(f"{path}: bytes {offset} to {offset + length} lie outside the {size} bytes it has")


_read_pool = SharedPool("lance-read", lambda: _PARALLEL_READS)
