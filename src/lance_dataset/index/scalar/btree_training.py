"""Training of B-tree indices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder, NewIndexFolder
from lance_dataset.index.scalar.btree import (
    DEFAULT_PAGE_ROWS,
    PAGE_DATA,
    PageBounds,
    open_lookup,
    page_rows,
    write_lookup,
)
from lance_dataset.index.scalar.sorting import VALUES, entry_schema, sorted_entries
from lance_dataset.index.trainer import ORDERED, Parameter, Trainer, Training, is_ordered, positive
from lance_dataset.types.schema import Schema

__all__ = ["TRAINER", "train"]

#: Bytes of sorted entries that wait for their pages.
_CACHE_BYTES: Final = 8 << 20


def train(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, target: NewIndexFolder, rows: int, memory_limit: int
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
    rows
        Values in a page.
    memory_limit
        Maximum number of bytes to sort with, approximately.
    """
    bounds = PageBounds(kind, rows)

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in sorted_entries(entries, kind, memory_limit):
            bounds.add(batch.column(VALUES))
            yield batch

    target.write(PAGE_DATA, Schema.from_arrow(entry_schema(kind)), WRITTEN_VERSION, noted(), cache_bytes=_CACHE_BYTES)
    write_lookup(target, bounds, kind, rows)


def _write(work: Training) -> bytes:
    train(work.entries, work.kind, work.target, work.parameters["zone_size"], work.memory_limit)
    return b""


def _parameters(folder: IndexFolder) -> Mapping[str, Any]:
    return {"zone_size": page_rows(open_lookup(folder))}


TRAINER: Final = Trainer(
    "BTREE",
    "/lance.table.BTreeIndexDetails",
    is_ordered,
    ORDERED,
    _write,
    {"zone_size": Parameter(DEFAULT_PAGE_ROWS, positive)},
    stable_version=1,
    uses_addresses=True,
    read_parameters=_parameters,
)
