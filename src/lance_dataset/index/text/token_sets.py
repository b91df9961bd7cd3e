"""Dictionary of a partition of a full-text index: the words, and the numbers of their posting lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import MemoryLimitError
from lance_dataset.index.files import IndexTable, NewIndexFolder
from lance_dataset.index.text.byte_ranges import Ints
from lance_dataset.index.text.fst_reader import read_fst
from lance_dataset.index.text.fst_writer import write_fst

__all__ = ["renumber_tokens"]

TOKEN, TOKEN_ID = "_token", "_token_id"
FST_BYTES, NEXT_ID, TOTAL_LENGTH = "_token_fst_bytes", "_token_next_id", "_token_total_length"


def renumber_tokens(table: IndexTable, target: NewIndexFolder, name: str, numbers: Ints, *, fst: bool) -> None:
    """Write a dictionary without the dropped words, with new numbers for the others.

    Parameters
    ----------
    table
        The dictionary.
    target, name
        Folder and name of the new file.
    numbers : int64[words]
        New number of each word by its old one; -1 for words that are dropped.
    fst
        True if the dictionary is a finite state transducer, False if it is a table of tokens.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """
    batches = _renumbered_fst(table, numbers) if fst else _renumbered_table(table, numbers)
    target.write(name, table.schema, table.written_version, batches, table.metadata)


def _renumbered_fst(table: IndexTable, numbers: Ints) -> Iterator[pa.RecordBatch]:
    table.check_columns([FST_BYTES, NEXT_ID, TOTAL_LENGTH])
    if table.num_rows != 1:
        raise table.corrupt(f"has {table.num_rows} rows instead of one")
    row = table.read()
    data = row.column(FST_BYTES)[0].as_py()
    if not isinstance(data, bytes):
        raise table.corrupt(f"{FST_BYTES} is not binary")
    new = numbers.tolist()
    seen = bytearray(len(new))
    kept: list[tuple[bytes, int]] = []
    try:
        for token, number in read_fst(data, len(new), table.where):
            if number >= len(new) or seen[number]:
                raise ValueError(f"a word has the number {number} of {len(new)}, or a used one")
            seen[number] = 1
            if new[number] >= 0:
                kept.append((token, new[number]))
        made = {
            FST_BYTES: write_fst(kept),
            NEXT_ID: len(kept),
            TOTAL_LENGTH: sum(len(token) for token, _ in kept),
        }
    except MemoryLimitError:
        raise
    except ValueError as error:
        raise table.corrupt(str(error)) from error
    _check_all(table, np.frombuffer(seen, bool))
    columns = [
        pa.array([made[field.name]], field.type) if field.name in made else row.column(field.name)
        for field in row.schema
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=row.schema)


def _renumbered_table(table: IndexTable, numbers: Ints) -> Iterator[pa.RecordBatch]:
    if table.column_type(TOKEN_ID) != pa.uint32():
        raise table.corrupt(f"{TOKEN_ID} has type {table.column_type(TOKEN_ID)}, not uint32")
    seen = np.zeros(len(numbers), bool)
    for batch in table.batches():
        if any(column.null_count for column in batch.columns):
            raise table.corrupt("holds a null")
        old = batch.column(TOKEN_ID).to_numpy().astype(np.int64)
        if len(old) and (int(old.max()) >= len(numbers) or seen[old].any()):
            raise table.corrupt(f"a word has the number {int(old.max())} of {len(numbers)}, or a used one")
        seen[old] = True
        new = numbers[old]
        place = batch.schema.get_field_index(TOKEN_ID)
        ids = pa.array(np.maximum(new, 0), pa.uint32())
        batch = batch.set_column(place, batch.schema.field(place), ids).filter(pa.array(new >= 0))
        if batch.num_rows:
            yield batch
    _check_all(table, seen)


def _check_all(table: IndexTable, seen: NDArray[np.bool_]) -> None:
    if not seen.all():
        raise table.corrupt(f"has {int(seen.sum())} words, but there are {len(seen)} posting lists")
