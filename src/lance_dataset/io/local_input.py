"""Reads of local files: memory mapped, or with positioned reads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from lance_dataset.errors import CorruptFileError, InvalidInputError
from lance_dataset.io.blocks import KnownBlocks
from lance_dataset.io.descriptors import DescriptorPool, PooledFile
from lance_dataset.io.held import HeldParts
from lance_dataset.io.mapping import Mapping, map_file
from lance_dataset.io.ranges import MergedRange, merge_ranges, split_merged
from lance_dataset.io.statistics import IOCounter
from lance_dataset.threads.pools import read_pool
from lancecodec.blocks import FileBlocks

__all__ = ["MappedInput", "PlainInput"]

#: Files up to this size are read into memory: that is as fast as mapping them, and there may be many.
_SMALL_FILE = 32 << 10
#: Smaller gaps between ranges of a mapped file are loaded too: skipping them would take the system as long.
_LOADED_GAP = 16 << 10
#: Number of places that are checked to find out whether ranges are in memory.
_SAMPLES = 8
#: Of a single range up to this size only the ends are checked.
_LARGE = 256 << 10
#: When this many requests in a row (of any files) were in memory, only one of as many such ranges is checked.
_LUCKY = 16
#: So many places are then checked of larger requests.
_FEW_SAMPLES = 2
#: Ranges with smaller gaps are read, or announced to the kernel, together.
_MAX_GAP = 64 << 10
_MAX_REQUEST = 8 << 20
_PARALLEL_READS = 16
#: If this many reads take longer than this many seconds each, the others use threads.
_PROBES = 4
_SLOW = 200e-6


class MappedInput:
    """File in memory: mapped, or read on opening if it is small; every buffer is a view.

    Parameters
    ----------
    path
        Path for error messages.
    descriptor
        Descriptor of the open file; may be closed afterwards.
    size
        Size of the file. Exactly these bytes are mapped.
    counter
        Counter of the reads.
    """

    __slots__ = ("_buffer", "_counter", "_mapping", "path", "size")

    #: Number of requests in a row that were in memory.
    _found = 0

    def __init__(self, path: str, descriptor: int, size: int, counter: IOCounter | None = None) -> None:
        #: Path of the file.
        self.path = path
        #: Size in bytes.
        self.size = size
        self._counter = IOCounter() if counter is None else counter
        self._mapping: Mapping | None = None
        self._buffer: pa.Buffer | None
        if size <= _SMALL_FILE and hasattr(os, "preadv"):
            self._buffer = _read_at(path, descriptor, 0, size)
        else:
            self._buffer, self._mapping = map_file(descriptor, size)

    @property
    def mapped(self) -> pa.Buffer:
        """Buffer of the whole file, without a copy."""
        if self._buffer is None:
            raise InvalidInputError(f"{self.path} is closed; open it again to read")
        return self._buffer

    @property
    def is_remote(self) -> bool:
        """False: the system reads ahead what is not in memory."""
        return False

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return a view of `length` bytes at `offset`."""
        if offset < 0 or length < 0 or offset + length > self.size:
            _check_range(self.path, self.size, offset, length)
        counter, buffer = self._counter, self._buffer
        counter.read_iops += 1
        counter.read_bytes += length
        return (self.mapped if buffer is None else buffer).slice(offset, length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return one view per range; the kernel loads them together rather than page by page."""
        buffers = [self.read(offset, length) for offset, length in ranges]
        self.will_need(ranges)
        return buffers

    def scatter(self, scattered: bool) -> None:
        """See `InputFile.scatter`. Do nothing if the system does not say what is in memory."""
        mapping = self._mapping
        if mapping is not None and mapping.tells_residency:
            mapping.scatter(scattered)

    def will_need(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Have the system load ranges that are not in memory; see `InputFile.will_need`."""
        mapping = self._mapping
        if mapping is None or not ranges or not mapping.tells_residency:
            return False
        MappedInput._found += 1
        is_likely = MappedInput._found > _LUCKY and MappedInput._found % _LUCKY != 0
        samples = _FEW_SAMPLES if is_likely else _SAMPLES
        if len(ranges) == 1:
            offset, length = ranges[0]
            if length <= _LARGE and is_likely:
                return False
            places = [offset, offset + length - 1] if length else []
            if length > _LARGE:
                places += [offset + length * number // samples for number in range(1, samples)]
        else:
            places = [offset for offset, length in ranges[:: max(len(ranges) // samples, 1)] if length]
        if all(map(mapping.is_resident, places)):
            return False
        MappedInput._found = 0
        for merged in merge_ranges(ranges, _LOADED_GAP, self.size):
            if merged.length:
                mapping.will_need(merged.offset, merged.offset + merged.length)
        return True

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """None: reads make no requests."""

    def holds(self, offset: int, length: int) -> bool:
        """Return False: nothing is fetched."""
        return False

    def blocks(self) -> None:
        """None: all bytes are in memory."""

    def discard(self, offset: int, length: int) -> None:
        """Release whole memory pages of the mapping, so that they do not count as memory of this process."""
        mapping = self._mapping
        if mapping is not None:
            mapping.drop(offset, offset + length)

    def close(self) -> None:
        """Release the mapping; buffers already returned keep it alive."""
        self._buffer = None
        self._mapping = None


class PlainInput:
    """File read with positioned reads; it owns its descriptor, which may be closed between reads if files are many.

    Parameters
    ----------
    path
        Path for error messages.
    descriptor
        Descriptor of the open file, closed by `close`.
    size
        Size of the file.
    counter
        Counter of the reads.
    remote
        True if the file lies on a network file system.
    """

    def __init__(
        self, path: str, descriptor: int, size: int, counter: IOCounter | None = None, *, remote: bool = False
    ) -> None:
        self._path = path
        self._file = PooledFile(_pool, path, descriptor)
        self._size = size
        self._counter = IOCounter() if counter is None else counter
        self._remote = remote
        self._blocks = KnownBlocks()
        self._held = HeldParts()

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
        """None: the file is never mapped."""
        return None

    @property
    def is_remote(self) -> bool:
        """True if the file lies on a network file system."""
        return self._remote

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return `length` bytes at `offset` in a new buffer, or in that of held bytes."""
        _check_range(self._path, self._size, offset, length)
        held = self._held.find(offset, length)
        if held is not None:
            return held
        descriptor = self._file.acquire()
        try:
            self._counter.add_read(length)
            return _read_at(self._path, descriptor, offset, length)
        finally:
            self._file.release()

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return one buffer per range; near ranges are read together, far ones in parallel."""
        for offset, length in ranges:
            _check_range(self._path, self._size, offset, length)
        held = [found for each in ranges if (found := self._held.find(*each)) is not None]
        if len(held) == len(ranges):
            return held
        requests = merge_ranges(ranges, _MAX_GAP, _MAX_REQUEST)
        self._counter.joined_reads += len(ranges) - len(requests)
        return split_merged(ranges, requests, self._fetch_all(requests))

    def _fetch_all(self, requests: Sequence[MergedRange]) -> list[pa.Buffer]:
        """Let the kernel read ahead; if the first reads are slow nevertheless, use threads for the others.

        Threads cost more than they save if the data is already in memory.
        """
        if len(requests) > 1 and hasattr(os, "posix_fadvise"):
            descriptor = self._file.acquire()
            try:
                for request in requests:
                    os.posix_fadvise(descriptor, request.offset, request.length, os.POSIX_FADV_WILLNEED)
            finally:
                self._file.release()
        started = time.perf_counter()
        answers = self._fetch(requests[:_PROBES])
        rest = requests[_PROBES:]
        if not rest or time.perf_counter() - started < _PROBES * _SLOW:
            return answers + self._fetch(rest)
        others: list[pa.Buffer] = [answers[0]] * len(rest)
        stripes = [slice(start, None, _PARALLEL_READS) for start in range(min(len(rest), _PARALLEL_READS))]
        fetched = read_pool().map(self._fetch, [rest[stripe] for stripe in stripes])
        for stripe, buffers in zip(stripes, fetched, strict=True):
            others[stripe] = buffers
        return answers + others

    def _fetch(self, requests: Sequence[MergedRange]) -> list[pa.Buffer]:
        return [self.read(request.offset, request.length) for request in requests]

    def scatter(self, scattered: bool) -> None:
        """Do nothing: only what is requested is read."""

    def will_need(self, ranges: Sequence[tuple[int, int]]) -> bool:
        """Do nothing: ranges are requested when they are read."""
        return False

    def hold(self, ranges: Sequence[tuple[int, int]]) -> Callable[[], None] | None:
        """See `InputFile.hold`."""
        if not self._remote:
            return None
        missing = self._held.missing(ranges, _MAX_GAP, _MAX_REQUEST)
        buffers = self.read_ranges(missing)
        return self._held.hold([(place[0], buffer) for place, buffer in zip(missing, buffers, strict=True)])

    def holds(self, offset: int, length: int) -> bool:
        """See `InputFile.holds`."""
        return self._held.has(offset, length)

    def blocks(self) -> FileBlocks | None:
        """See `InputFile.blocks`. Ranges of a file on another machine are requested together, with threads."""
        if self._remote:
            return self._blocks.get(self)
        return self._blocks.get(self, self._file.acquire, self._give_back)

    def _give_back(self, reads: int, size: int) -> None:
        """End the use of a descriptor for some reads."""
        self._file.release()
        self._counter.read_iops += reads
        self._counter.read_bytes += size

    def discard(self, offset: int, length: int) -> None:
        """Do nothing: blocks are dropped when there are too many."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __del__(self) -> None:
        self._file.close()


def _read_at(path: str, descriptor: int, offset: int, length: int) -> pa.Buffer:
    """Return `length` bytes at `offset` of an open file in a new buffer."""
    buffer = pa.allocate_buffer(length)
    done = os.preadv(descriptor, [buffer], offset) if length else 0
    while done < length:  # the system reads no more than 2 GiB per call
        count = os.preadv(descriptor, [memoryview(buffer).cast("B")[done:]], offset + done)
        if count == 0:
            raise CorruptFileError(f"{path}: ends at byte {offset + done}; it shrank after it was opened")
        done += count
    return buffer


def _check_range(path: str, size: int, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length > size:
        raise CorruptFileError(f"{path}: bytes {offset} to {offset + length} lie outside the {size} bytes it has")


_pool = DescriptorPool()
