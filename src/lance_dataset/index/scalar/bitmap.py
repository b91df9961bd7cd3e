"""Bitmap and label-list indices: a set of rows for each value, or for each item of lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.index.files import IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.scalar.moved_sets import moved_sets
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.row_sets import EMPTY_ROW_SET, ROW_SETS

__all__ = ["KEYS", "LOOKUP", "NULL_LISTS", "SETS", "STATISTICS", "remap"]

#: Name of the file, which has one row for each distinct value.
LOOKUP: Final = "bitmap_page_lookup.lance"
#: Column of the values; null for null values, or lists with null items.
KEYS: Final = "keys"
#: Column of the sets of rows.
SETS: Final = "bitmaps"
#: Key of the global buffer with the rows whose lists are null; old releases did not write it.
NULL_LISTS: Final = "lance:label_list_nulls"

#: Key of the number of sets, as JSON.
STATISTICS: Final = "lance:index_stats"


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> None:
    """Write the index with the new addresses of its rows; values without rows are left out."""
    table = source.open(LOOKUP)
    table.check_columns((KEYS, SETS))
    metadata: dict[str, str] = {}
    buffers = {}
    null_lists = table.global_buffer(NULL_LISTS)
    if null_lists is not None:
        where = f"{table.where}, rows of null lists"
        buffers[NULL_LISTS] = moved_sets(pa.array([null_lists], pa.large_binary()), ROW_SETS, moved, where)[0].as_py()
    batches = _moved(table, moved, metadata)
    target.write(LOOKUP, table.schema, table.written_version, batches, metadata, buffers)


def _moved(table: IndexTable, moved: Relocation, metadata: dict[str, str]) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in table.batches():
        position = batch.schema.get_field_index(SETS)
        sets = moved_sets(batch.column(position), ROW_SETS, moved, table.where)
        columns = [sets if number == position else column for number, column in enumerate(batch.columns)]
        left = pa.RecordBatch.from_arrays(columns, schema=batch.schema).filter(
            pc.greater(pc.binary_length(sets), len(EMPTY_ROW_SET))
        )
        count += left.num_rows
        yield left
    metadata[STATISTICS] = json.dumps({"num_bitmaps": count}, separators=(",", ":"))
