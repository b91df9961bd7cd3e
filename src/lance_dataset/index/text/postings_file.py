"""Posting lists of a partition of a full-text index, rewritten without the documents whose rows are gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import LanceError, UnsupportedError
from lance_dataset.index.files import IndexTable, NewIndexFolder
from lance_dataset.index.text.byte_ranges import Ints, starts_of
from lance_dataset.index.text.documents import Survivors
from lance_dataset.index.text.layout import InvertedLayout
from lance_dataset.index.text.positions import decode_steps
from lance_dataset.index.text.posting_blocks import EncodedBlocks, Postings, decode_blocks
from lance_dataset.index.text.posting_rows import (
    IMPACTS,
    LENGTH,
    LISTED_POSITIONS,
    MAX_SCORE,
    POSITION_OFFSETS,
    POSITIONS,
    POSTING,
    ListEncoder,
    sums_of,
)

__all__ = ["drop_documents"]

_KNOWN = {POSTING, MAX_SCORE, LENGTH, IMPACTS, LISTED_POSITIONS, POSITIONS, POSITION_OFFSETS}
_REQUIRED = (POSTING, MAX_SCORE, LENGTH)
#: Maximum number of postings rewritten together, unless a single word has more.
_POSTINGS = 1 << 20


def drop_documents(
    table: IndexTable, target: NewIndexFolder, name: str, layout: InvertedLayout, survivors: Survivors
) -> Ints:
    """Write the posting lists of a partition for the documents that remain.

    Words that occur in none of them are dropped. The other words are renumbered in their order.

    Parameters
    ----------
    table
        The posting lists.
    target, name
        Folder and name of the new file.
    layout
        Layout of the blocks.
    survivors
        The documents that remain.

    Returns
    -------
    int64[words]
        New number of each word by its old one; -1 if it was dropped.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    UnsupportedError
        The file has unknown columns.
    """
    columns = {field.name for field in table.schema.fields}
    if not columns <= _KNOWN:
        unknown = ", ".join(sorted(columns - _KNOWN))
        raise UnsupportedError(f"{table.where}: this release does not know the column {unknown} of posting lists")
    table.check_columns(_REQUIRED)
    kept: list[NDArray[np.bool_]] = []
    encoder = ListEncoder(survivors.lengths, survivors.corpus, layout.blocks)
    rewriting = _Rewriting(table, layout, survivors, kept, encoder)
    target.write(name, table.schema, table.written_version, rewriting.batches(), table.metadata)
    keeps = np.concatenate([np.empty(0, bool), *kept])
    return np.where(keeps, np.cumsum(keeps) - 1, -1)


@dataclass(frozen=True)
class _Rewriting:
    """Rewrites posting lists, many words at a time, and records the words that remain."""

    table: IndexTable
    layout: InvertedLayout
    survivors: Survivors
    kept: list[NDArray[np.bool_]]
    encoder: ListEncoder

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the new rows."""
        lengths = self.table.read(columns=[LENGTH]).column(0)
        if lengths.type != pa.uint32() or lengths.null_count:
            raise self.table.corrupt(f"{LENGTH} holds nulls or has the type {lengths.type}, not uint32")
        counts = lengths.to_numpy().astype(np.int64)
        if (counts < 1).any() or int(counts.max(initial=0)) > len(self.survivors.numbers):
            raise self.table.corrupt(
                f"a word occurs in no document, or in more than the {len(self.survivors.numbers)} documents"
            )
        ends = np.cumsum(counts)
        start = 0
        while start < len(counts):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _POSTINGS, side="right")))
            try:
                batch = self._rewritten(self.table.read(start, stop), counts[start:stop])
            except LanceError:
                raise
            except ValueError as error:
                raise self.table.corrupt(f"words {start} to {stop - 1}: {error}") from error
            if batch is not None:
                yield batch
            start = stop

    def _rewritten(self, rows: pa.RecordBatch, lengths: Ints) -> pa.RecordBatch | None:
        """Return the rows of the words that remain; None if no word remains."""
        blocks = _blocks(rows.column(POSTING))
        old = decode_blocks(blocks, lengths, self.layout.blocks, len(self.survivors.numbers))
        documents = self.survivors.numbers[old.documents]
        keep = documents >= 0
        words = np.repeat(np.arange(len(lengths)), lengths)
        left = np.bincount(words[keep], minlength=len(lengths))
        self.kept.append(left > 0)
        if not keep.any():
            return None
        new = Postings(left[left > 0], documents[keep], old.frequencies[keep])
        now, often = new.documents.astype(np.uint32), new.frequencies.astype(np.uint32)
        made = self.encoder.scored(new.lengths, now, often, impacts=IMPACTS in rows.schema.names)
        if LISTED_POSITIONS in rows.schema.names:
            made[LISTED_POSITIONS] = _kept_lists(rows.column(LISTED_POSITIONS), lengths, keep, new)
        if POSITIONS in rows.schema.names:
            made |= self._positions(rows, old, keep, new)
        columns = [made[field.name].cast(field.type) for field in rows.schema]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def _positions(
        self, rows: pa.RecordBatch, old: Postings, keep: NDArray[np.bool_], new: Postings
    ) -> dict[str, pa.Array]:
        """Return the positions of the occurrences that remain."""
        size = self.layout.blocks.size
        packed = self.layout.packed_positions
        blocks = _position_blocks(rows.column(POSITIONS), rows.column(POSITION_OFFSETS), old.block_counts(size))
        steps = decode_steps(blocks, sums_of(old.frequencies, old.block_sizes(size)), packed=packed)
        steps = steps[np.repeat(keep, old.frequencies)]
        often, distances = new.frequencies.astype(np.uint32), steps.astype(np.uint32)
        return self.encoder.positions(new.lengths, often, distances, self.table.where, packed=packed)


# -- Arrow arrays ----------------------------------------------------------------------------------------------------


def _blocks(lists: pa.Array) -> EncodedBlocks:
    """Return all binaries of lists, which must not hold nulls."""
    if not pa.types.is_list(lists.type) or lists.null_count:
        raise ValueError(f"{POSTING} holds nulls or is not a list")
    return _bytes_of(lists.flatten(), POSTING)


def _bytes_of(values: pa.Array, name: str) -> EncodedBlocks:
    if not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)) or values.null_count:
        raise ValueError(f"{name} holds nulls or is not binary")
    values = values.cast(pa.large_binary())
    _, offset_buffer, data = values.buffers()
    if not len(values):
        return EncodedBlocks(np.empty(0, np.uint8), np.zeros(1, np.int64))
    offsets = np.frombuffer(offset_buffer, np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return EncodedBlocks(content, offsets)


def _kept_lists(positions: pa.Array, lengths: Ints, keep: NDArray[np.bool_], new: Postings) -> pa.Array:
    """Return the positions that remain, stored as one list for each document."""
    if not pa.types.is_list(positions.type) or positions.null_count:
        raise ValueError(f"{LISTED_POSITIONS} holds nulls or is not a list")
    if (positions.value_lengths().to_numpy() != lengths).any():
        raise ValueError(f"{LISTED_POSITIONS} does not have a list for each document")
    values = positions.flatten().filter(pa.array(keep))
    return pa.ListArray.from_arrays(pa.array(starts_of(new.lengths), pa.int32()), values)


def _position_blocks(positions: pa.Array, offsets: pa.Array, counts: Ints) -> EncodedBlocks:
    """Return blocks of positions, whose starts are stored in a separate column."""
    whole = _bytes_of(positions, POSITIONS)
    if not pa.types.is_list(offsets.type) or offsets.null_count or offsets.type.value_type != pa.uint32():
        raise ValueError(f"{POSITION_OFFSETS} holds nulls or is not a list of uint32")
    if (offsets.value_lengths().to_numpy() != counts).any():
        raise ValueError(f"{POSITION_OFFSETS} does not have one for each block")
    within = offsets.flatten()
    if within.null_count:
        raise ValueError(f"{POSITION_OFFSETS} holds nulls")
    begins = within.to_numpy().astype(np.int64) + np.repeat(whole.starts[:-1], counts)
    starts = np.append(begins, whole.starts[-1:])
    firsts = starts_of(counts)[:-1]
    if (np.diff(starts) < 0).any() or (starts[firsts] != whole.starts[:-1]).any():
        raise ValueError(f"{POSITION_OFFSETS} are not ascending, or lie outside the positions")
    return EncodedBlocks(whole.data, starts)
