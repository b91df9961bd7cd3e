"""Counter of the reads of a scan from the stores of a table."""

from __future__ import annotations

from lance_dataset.read.table_reader import TableReader

__all__ = ["ReadCounter"]


class ReadCounter:
    """Counter of reads of data files since it was created. It includes other reads through the same dataset handle."""

    def __init__(self, reader: TableReader) -> None:
        files = (file for fragment in reader.one_per_base() for file in fragment.fragment.files)
        stores = (reader.locator.data_file(file)[0] for file in files)
        self._stores = {id(store.statistics): store for store in stores}.values()  # each once
        self._before = self._now()

    def since(self) -> tuple[int, int, int]:
        """Return the number of reads, their bytes, and the number of requests before adjacent ones were joined."""
        # the counts of a store may have been reset in between
        reads, size, joined = (max(now - before, 0) for now, before in zip(self._now(), self._before, strict=True))
        return reads, size, reads + joined

    def _now(self) -> tuple[int, int, int]:
        counts = [store.statistics for store in self._stores]
        return (
            sum(count.read_iops for count in counts),
            sum(count.read_bytes for count in counts),
            sum(count.joined_reads for count in counts),
        )
