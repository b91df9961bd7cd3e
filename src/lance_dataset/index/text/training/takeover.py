"""Partitions of old segments in a new one: copied, or rewritten without the documents whose rows are gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexTable, NewIndexFolder
from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.documents import ROW_ID, TOKENS, TOTAL, Survivors
from lance_dataset.index.text.layout import InvertedLayout, PartitionFiles
from lance_dataset.index.text.postings_file import drop_documents
from lance_dataset.index.text.token_sets import renumber_tokens
from lance_dataset.index.trainer import OldSegment

__all__ = ["take_over"]


def take_over(old: Sequence[OldSegment], target: NewIndexFolder) -> int:
    """Write the partitions of old segments, numbered from 0; return their number.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    UnsupportedError
        A segment has an unknown format.
    """
    count = 0
    for segment in old:
        layout = InvertedLayout.read(segment.folder)
        for files in layout.partitions:
            count += _taken(segment, layout, files, target, PartitionFiles(count))
    return count


def _taken(
    segment: OldSegment, layout: InvertedLayout, files: PartitionFiles, target: NewIndexFolder, new: PartitionFiles
) -> bool:
    """Write a partition; return False if nothing of it remains."""
    folder = segment.folder
    documents = folder.open(files.documents)
    rows, lengths = _documents(documents)
    kept = segment.is_covered(rows)
    left = lengths[kept]
    if not left.any():
        return False
    if kept.all():
        pairs = zip(_names(files), _names(new), strict=True)
        for source, name in pairs:
            target.copy(folder.open_input(source), name)
        return True
    survivors = Survivors(np.where(kept, np.cumsum(kept) - 1, -1), left)
    metadata = {**documents.metadata, TOTAL: str(int(left.sum()))}
    batches = _kept_rows(documents, kept)
    target.write(new.documents, documents.schema, documents.written_version, batches, metadata)
    numbers = drop_documents(folder.open(files.postings), target, new.postings, layout, survivors)
    renumber_tokens(folder.open(files.tokens), target, new.tokens, numbers, fst=layout.fst)
    return True


def _names(files: PartitionFiles) -> tuple[str, str, str]:
    return files.documents, files.postings, files.tokens


def _documents(table: IndexTable) -> tuple[NDArray[np.uint64], Ints]:
    """Return the rows and the lengths of documents."""
    for column, kind in ((ROW_ID, pa.uint64()), (TOKENS, pa.uint32())):
        if table.column_type(column) != kind:
            raise table.corrupt(f"{column} has the type {table.column_type(column)}, not {kind}")
    batch = table.read(columns=[ROW_ID, TOKENS])
    if any(column.null_count for column in batch.columns):
        raise table.corrupt("holds a null")
    return batch.column(0).to_numpy(), batch.column(1).to_numpy().astype(np.int64)


def _kept_rows(table: IndexTable, kept: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in table.batches():
        chosen = batch.filter(pa.array(kept[start : start + batch.num_rows]))
        start += batch.num_rows
        if chosen.num_rows:
            yield chosen
