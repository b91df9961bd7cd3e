"""Counts of the reads and writes through a store, and of their bytes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IOCounter", "IOStats"]


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


class IOCounter:
    """Counter of everything that is opened through a store; inputs and outputs add to it.

    Besides the numbers of `IOStats` it has ``joined_reads``: the number of ranges that did not become reads of their
    own, because they were fetched together with others.

    The numbers are plain integers and are increased without a call in between, so threads need no lock. A copy in
    another process starts from zero.
    """

    __slots__ = ("is_networked", "joined_reads", "opened", "read_bytes", "read_iops", "write_iops", "written_bytes")

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
        counted = self.read_iops, self.read_bytes, self.write_iops, self.written_bytes
        self.read_iops = self.read_bytes = self.write_iops = self.written_bytes = 0
        return IOStats(*counted)
