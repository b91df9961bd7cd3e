"""N-gram indices: the rows whose text has a token of three characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from lance_dataset.index.files import IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.scalar.moved_sets import moved_sets
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.row_sets import TREEMAPS

__all__ = ["POSTINGS", "ROWS", "TOKENS", "remap"]

#: Name of the file, which has one row for each token, in ascending order.
POSTINGS: Final = "ngram_postings.lance"
#: Column of token numbers; 0 stands for null texts.
TOKENS: Final = "tokens"
#: Column of row sets.
ROWS: Final = "posting_list"


def remap(source: IndexFolder, target: NewIndexFolder, moved: Relocation, index: IndexMetadata) -> None:
    """Write the index with the new addresses of its rows; tokens without rows stay."""
    table = source.open(POSTINGS)
    table.check_columns((TOKENS, ROWS))
    target.write(POSTINGS, table.schema, table.written_version, _moved(table, moved))


def _moved(table: IndexTable, moved: Relocation) -> Iterator[pa.RecordBatch]:
    for batch in table.batches():
        position = batch.schema.get_field_index(ROWS)
        rows = moved_sets(batch.column(position), TREEMAPS, moved, table.where)
        yield batch.set_column(position, batch.schema.field(position), rows)
