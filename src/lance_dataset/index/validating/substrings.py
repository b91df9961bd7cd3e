"""Check of FM indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar.fm import (
    SEPARATOR,
    SPACE,
    ZERO,
    Partition,
    document_addresses,
    document_starts,
    open_partition,
    partition_names,
    position_samples,
    ranks_of_blocks,
    separator_documents,
)
from lance_dataset.index.validating.keyed_rows import KeyedRows, digests
from lancecodec.errors import CodecError
from lancecodec.search import suffixes

__all__ = ["FmContent"]

_Bytes = NDArray[np.uint8]
#: Characters of a text that users see.
_SHOWN: Final = 200


class FmContent:
    """Entries of a segment of an FM index: the text of each row that is not null.

    Parameters
    ----------
    folder
        Folder of its files.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    """

    is_exact = True

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._names = partition_names(folder)
        parts = (open_partition(folder.open(name)) for name in self._names)
        #: False if some file has spaces for bytes 0.
        self._keeps_zeros = all(part is None or part.keeps_zeros for part in parts)

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries. Each partition must be what its texts make it."""
        for name in self._names:
            table = self._folder.open(name)
            partition = open_partition(table)
            if partition is not None:
                yield self._entries_of(table, partition)

    def _entries_of(self, table: IndexTable, partition: Partition) -> KeyedRows:
        text = np.empty(partition.documents.size, np.uint8)
        try:
            partition.documents.text(text.data)
        except CodecError as error:
            raise table.corrupt(str(error)) from error
        ends = np.flatnonzero(text == SEPARATOR)
        rows = document_addresses(table)
        starts = np.append(0, ends + 1)[: len(ends)]
        if len(ends) != len(rows) or text[-2] != SEPARATOR or not np.array_equal(document_starts(table), starts):
            raise table.corrupt(f"its text does not have the {len(rows)} documents that it names, or where it says")
        _check_places(table, text, starts)
        _check_ranks(table)
        content = text[:-1][text[:-1] != SEPARATOR]
        if partition.keeps_zeros:
            content[content == ZERO] = 0
        offsets = np.append(0, ends - np.arange(len(ends)))
        texts = pa.Array.from_buffers(
            pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        )
        return self._keyed(texts, rows)

    def _keyed(self, texts: pa.Array, rows: NDArray[np.uint64]) -> KeyedRows:
        if not self._keeps_zeros:
            texts = _with_spaces(texts)
        return KeyedRows(texts, digests(texts), rows)

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that texts should have."""
        rows = np.flatnonzero(np.asarray(values.is_valid(), bool)).astype(np.uint64)
        known = values.drop_null()
        if pa.types.is_string(known.type) or pa.types.is_large_string(known.type):
            known = known.cast(pa.binary() if pa.types.is_string(known.type) else pa.large_binary())
        yield self._keyed(known.cast(pa.large_binary()), rows)

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield all entries that texts should have."""
        return self.expected(values)


def _with_spaces(texts: pa.Array) -> pa.Array:
    """Return texts with spaces for bytes that the reference cannot store."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, 8 * texts.offset)
    data = texts.buffers()[2]
    content = np.frombuffer(b"" if data is None else data, np.uint8)[offsets[0] : offsets[-1]].copy()
    content[(content == 0) | (content == SEPARATOR)] = SPACE
    bounds = pa.py_buffer(offsets - offsets[0])
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, bounds, pa.py_buffer(content)])


def _check_places(table: IndexTable, text: _Bytes, starts: NDArray[np.int64]) -> None:
    """Check the positions of suffixes that a file has against those of the suffixes of its text."""
    order = np.empty(len(text), np.int32)
    suffixes.suffix_array(text.data, order)
    rate, stored = position_samples(table)
    wrong = np.flatnonzero(order[::rate] != stored)
    if len(wrong):
        place = int(wrong[0])
        raise table.corrupt(
            f"{len(wrong)} positions of suffixes are wrong; that of number {rate * place} is {int(stored[place])}, not "
            f"{int(order[rate * place])}"
        )
    owners = separator_documents(table)
    if len(owners):
        ends = order[len(order) - len(starts) :]
        if not np.array_equal(owners, np.searchsorted(starts, ends, side="right") - 1):
            raise table.corrupt("the documents of its separators are not those of its text")


def _check_ranks(table: IndexTable) -> None:
    """Check the numbers of ones before each block of bits."""
    stored, counted = ranks_of_blocks(table)
    wrong = np.flatnonzero(stored != counted)
    if len(wrong):
        row = int(wrong[0])
        raise table.corrupt(
            f"row {row} says that {int(stored[row])} bits before it are set, but {int(counted[row])} are"
        )
