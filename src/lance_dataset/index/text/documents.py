"""Documents of a partition of a full-text index: their rows and their numbers of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexTable, NewIndexFolder
from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.table.indices.moved_rows import Relocation

__all__ = ["Survivors", "move_documents"]

ROW_ID, TOKENS = "_rowid", "_num_tokens"
TOTAL = "total_tokens"
_TYPES = {ROW_ID: pa.uint64(), TOKENS: pa.uint32()}


@dataclass(frozen=True)
class Survivors:
    """Documents that remain when others are dropped.

    Attributes
    ----------
    numbers : int64[documents]
        New number of each document by its old one; -1 if it was dropped.
    lengths : int64[survivors]
        Number of tokens of each remaining document.
    """

    numbers: Ints
    lengths: Ints

    @property
    def complete(self) -> bool:
        """True if no document was dropped."""
        return len(self.numbers) == len(self.lengths)

    @property
    def corpus(self) -> Corpus:
        """Remaining documents, as the basis of scores."""
        return Corpus(len(self.lengths), int(self.lengths.sum()))


def move_documents(
    table: IndexTable, target: NewIndexFolder, name: str, moved: Relocation, ignored: NDArray[np.uint32]
) -> Survivors:
    """Write the documents of a partition with the new addresses of their rows, without those whose rows are gone.

    Parameters
    ----------
    table
        The documents.
    target, name
        Folder and name of the new file.
    moved
        New addresses of the rows.
    ignored : uint32[n]
        Ids of fragments whose documents must not be found. These documents stay as they are, or searches would find
        them.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """
    for column, kind in _TYPES.items():
        if table.column_type(column) != kind:
            raise table.corrupt(f"{column} has the type {table.column_type(column)}, not {kind}")
    hidden = ignored.astype(np.uint64)
    kept: list[NDArray[np.bool_]] = []
    lengths: list[Ints] = []
    metadata = dict(table.metadata)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table.batches():
            if any(column.null_count for column in batch.columns):
                raise table.corrupt("holds a null")
            addresses = batch.column(ROW_ID).to_numpy()
            now, gone = moved.locate(addresses)
            if len(hidden):
                stays = np.isin(addresses >> np.uint64(32), hidden)
                now, gone = np.where(stays, addresses, now), gone & ~stays
            batch = batch.set_column(
                batch.schema.get_field_index(ROW_ID), batch.schema.field(ROW_ID), pa.array(now, pa.uint64())
            )
            if gone.any():
                batch = batch.filter(pa.array(~gone))
            kept.append(~gone)
            lengths.append(batch.column(TOKENS).to_numpy().astype(np.int64))
            if batch.num_rows:
                yield batch
        if TOTAL in metadata:
            metadata[TOTAL] = str(sum(int(part.sum()) for part in lengths))

    target.write(name, table.schema, table.written_version, batches(), metadata)
    survives = np.concatenate([np.empty(0, bool), *kept])
    numbers = np.where(survives, np.cumsum(survives) - 1, -1)
    return Survivors(numbers, np.concatenate([np.empty(0, np.int64), *lengths]))
