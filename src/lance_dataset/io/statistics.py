"""Counts of the reads and writes through a store, and of their bytes."""

from __future__ import annotations

import weakref
from typing import ClassVar

from lance_dataset.late_dataclass import dataclass

__all__ = ["IOCounter", "IOStats", "bytes_read_counter", "iops_counter", "process_statistics"]


@dataclass(frozen=True)
class IOStats:
    """Reads and writes of a dataset since some moment.

    For cloud stores and files that are not mapped, each request counts once: near ranges are fetched in one request,
    with the bytes between them. For memory-mapped files (and memory) each range counts when a reader asks for it. Which
    of its memory pages the system loads then is not known. A reader that keeps a buffer of such a file does not ask for
    it again; random access keeps the buffers of pages it has used. Listings and existence checks do not count.

    Attributes
    ----------
    read_iops
        Number of reads.
    read_bytes
        Bytes read.
    write_iops
        Number of writes.
    written_bytes
        Bytes written.
    """

    read_iops: int = 0
    read_bytes: int = 0
    write_iops: int = 0
    written_bytes: int = 0


class _Ended:
    """Reads and writes of counters that ended or started again from zero."""

    def __init__(self) -> None:
        self.read_iops = 0
        self.read_bytes = 0
        self.write_iops = 0
        self.written_bytes = 0

    def add(self, counter: IOCounter | IOStats) -> None:
        self.read_iops += counter.read_iops
        self.read_bytes += counter.read_bytes
        self.write_iops += counter.write_iops
        self.written_bytes += counter.written_bytes


class IOCounter:
    """Counter of everything that is opened through a store; inputs and outputs add to it.

    Besides the numbers of `IOStats` it has ``joined_reads``: the number of ranges that did not become reads of their
    own, because they were fetched together with others.

    The numbers are plain integers and are increased without a call in between, so threads need no lock. A copy in
    another process starts from zero.
    """

    __slots__ = (
        *("__weakref__", "is_networked", "joined_reads", "opened"),
        *("read_bytes", "read_iops", "write_iops", "written_bytes"),
    )

    # Of the class, since modules may be empty when the last counters of a process end.
    counters: ClassVar[dict[int, weakref.ref[IOCounter]]] = {}
    ended: ClassVar[_Ended] = _Ended()

    def __init__(self) -> None:
        self.read_iops = 0
        self.read_bytes = 0
        self.joined_reads = 0
        self.write_iops = 0
        self.written_bytes = 0
        #: Device, number, size and time of change of each local file that was opened for reading, by its path.
        self.opened: dict[str, tuple[int, int, int, int]] = {}
        #: True if one of them is on a network file system.
        self.is_networked = False
        self.counters[id(self)] = weakref.ref(self)  # at last: other threads add up those that they find

    def __del__(self) -> None:
        self.counters.pop(id(self), None)
        self.ended.add(self)

    def restart(self) -> None:
        """Count from zero."""
        self.incremental()
        self.joined_reads = 0

    def __reduce__(self) -> tuple[type[IOCounter], tuple[()]]:
        return IOCounter, ()

    def add_read(self, size: int) -> None:
        """Count a read of `size` bytes."""
        self.read_iops += 1
        self.read_bytes += size

    def add_write(self, size: int) -> None:
        """Count a write of `size` bytes."""
        self.write_iops += 1
        self.written_bytes += size

    def snapshot(self) -> IOStats:
        """Return the counts since the store was opened, or since the last `incremental`."""
        return IOStats(self.read_iops, self.read_bytes, self.write_iops, self.written_bytes)

    def incremental(self) -> IOStats:
        """Return the counts like `snapshot`, and start again from zero."""
        ended = self.ended
        counted = self.read_iops, self.read_bytes, self.write_iops, self.written_bytes
        # Without a call in between, so that no other thread counts a read that is then forgotten.
        self.read_iops = self.read_bytes = self.write_iops = self.written_bytes = 0
        found = IOStats(*counted)
        ended.add(found)
        return found


def bytes_read_counter() -> int:
    """Return the number of bytes that this process has read through all stores, counted as in `IOStats`."""
    return IOCounter.ended.read_bytes + sum(counter.read_bytes for counter in _living())


def iops_counter() -> int:
    """Return the number of reads of this process through all stores, counted as in `IOStats`."""
    return IOCounter.ended.read_iops + sum(counter.read_iops for counter in _living())


def process_statistics() -> IOStats:
    """Return the reads and writes of this process through all stores."""
    found: list[_Ended | IOCounter] = [IOCounter.ended, *_living()]
    return IOStats(
        sum(each.read_iops for each in found),
        sum(each.read_bytes for each in found),
        sum(each.write_iops for each in found),
        sum(each.written_bytes for each in found),
    )


def _living() -> list[IOCounter]:
    found = [reference() for reference in list(IOCounter.counters.values())]
    return [counter for counter in found if counter is not None]
