"""Training of B-tree indices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_dataset.index.files import WRITTEN_VERSION, NewIndexFolder
from lance_dataset.index.scalar.btree import PAGE_DATA, PageBounds, write_lookup
from lance_dataset.index.scalar.sorting import VALUES, entry_schema, sorted_entries
from lance_dataset.types.schema import Schema

__all__ = ["train"]


def train(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, target: NewIndexFolder, page_rows: int, memory_limit: int
) -> None:
    """Write a B-tree index.

    Parameters
    ----------
    entries
        Values and rows, see `entry_schema`.
    kind
        Type of the values.
    target
        Folder of its files.
    page_rows
        Values in a page.
    memory_limit
        Maximum number of bytes to sort with, approximately.
    """
    bounds = PageBounds(kind, page_rows)

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in sorted_entries(entries, kind, memory_limit):
            bounds.add(batch.column(VALUES))
            yield batch

    target.write(PAGE_DATA, Schema.from_arrow(entry_schema(kind)), WRITTEN_VERSION, noted())
    write_lookup(target, bounds, kind, page_rows)
