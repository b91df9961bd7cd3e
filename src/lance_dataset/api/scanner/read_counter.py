"""Counter of the reads of a scan from the stores of a table."""

from __future__ import annotations

import numpy as np

from lance_dataset.io.base import ObjectStore
from lance_dataset.read.table_reader import TableReader

__all__ = ["ReadCounter"]


class ReadCounter:
    """Counter of reads of data files since it was created. It includes other reads through the same dataset handle."""

    def __init__(self, reader: TableReader) -> None:
        self._stores = _stores(reader)
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


def _stores(reader: TableReader) -> list[ObjectStore]:
    """Return the stores of the data files, one for each base path that has some."""
    columns = reader.manifest.fragment_list.columns
    if len(columns.file_base_ids) == 0:
        return []
    _, first = np.unique(columns.file_base_ids, return_index=True)
    found: dict[int, ObjectStore] = {}
    for number in first.tolist():
        owner = int(columns.file_owners[number])
        base_id = int(columns.file_base_ids[number])
        for file in reader.fragments[owner].fragment.files:
            if (-1 if file.base_id is None else file.base_id) == base_id:
                store, _ = reader.locator.data_file(file)
                found[id(store.statistics)] = store
                break
    return list(found.values())
