"""What is read and written through a store: how often, and how many bytes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IOCounter", "IOStats"]


@dataclass(frozen=True)
class IOStats:
    """Reads and writes of a dataset since some moment.

    Of cloud stores and files that are not mapped, requests count as they are made: near ranges are fetched together,
    with what lies between them. Of memory-mapped files (and of memory) a range counts when a reader asks for it; which
    of its memory pages the system then loads is not known. A reader that keeps a buffer of such a file, as random
    access does with the buffers of pages it has looked at, does not ask for it again. Listings and questions whether
    something exists do not count.

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
    """Counts for all that is opened through a store; the inputs and outputs add to it themselves.

    Besides what `IOStats` has there is ``joined_reads``: ranges that were asked for and did not become reads of their
    own, as they were fetched together with others.

    The numbers are plain integers, added to without a call in between, so that threads need no lock. A copy in another
    process starts from nothing.
    """

    __slots__ = ("joined_reads", "read_bytes", "read_iops", "write_iops", "written_bytes")

    def __init__(self) -> None:
        self.read_iops = 0
        self.read_bytes = 0
        self.joined_reads = 0
        self.write_iops = 0
        self.written_bytes = 0

    def __reduce__(self) -> tuple[type[IOCounter], tuple[()]]:
        return IOCounter, ()

    def add_read(self, size: int) -> None:
        """Count a read of so many bytes."""
        self.read_iops += 1
        self.read_bytes += size

    def add_write(self, size: int) -> None:
        """Count a write of so many bytes."""
        self.write_iops += 1
        self.written_bytes += size

    def snapshot(self) -> IOStats:
        """The counts since the store was opened, or since the last `incremental`."""
        return IOStats(self.read_iops, self.read_bytes, self.write_iops, self.written_bytes)

    def incremental(self) -> IOStats:
        """The same, and counting starts again from nothing."""
        counted = self.read_iops, self.read_bytes, self.write_iops, self.written_bytes
        self.read_iops = self.read_bytes = self.write_iops = self.written_bytes = 0
        return IOStats(*counted)
