"""N-gram indices: the rows whose text has a token of three characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable, NewIndexFolder
from lance_dataset.index.scalar.moved_sets import moved_sets
from lance_dataset.table.index_metadata import IndexMetadata
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.row_sets import TREEMAPS
from lancecodec.search import ngrams

__all__ = ["POSTINGS", "ROWS", "SCHEMA", "TOKENS", "open_postings", "remap", "tokens_in"]

#: Name of the file, which has one row for each token, in ascending order.
POSTINGS: Final = "ngram_postings.lance"
#: Column of token numbers; 0 stands for null texts.
TOKENS: Final = "tokens"
#: Column of row sets.
ROWS: Final = "posting_list"
SCHEMA: Final = pa.schema(
    [
        pa.field(TOKENS, pa.uint32()),
        pa.field(ROWS, pa.binary(), nullable=False, metadata={"lance-encoding:compression": "none"}),
    ]
)


def open_postings(folder: IndexFolder) -> IndexTable:
    """Open the file of an index.

    Raises
    ------
    CorruptFileError
        It has other columns.
    """
    table = folder.open(POSTINGS)
    if table.column_type(TOKENS) != pa.uint32():
        raise table.corrupt(f"has tokens of type {table.column_type(TOKENS)}, not uint32")
    kind = table.column_type(ROWS)
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise table.corrupt(f"has rows of type {kind}, not binary")
    return table


def tokens_in(table: IndexTable, tokens: pa.Array) -> NDArray[np.uint32]:
    """Return tokens of a file.

    Raises
    ------
    CorruptFileError
        One is null, or too large.
    """
    if tokens.null_count:
        raise table.corrupt("has a token that is null")
    found: NDArray[np.uint32] = tokens.to_numpy()
    if len(found) and int(found.max()) >= ngrams.FOLDED:
        raise table.corrupt(f"has the token {int(found.max())}; there are {ngrams.FOLDED}")
    return found


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
