"""A partition of a new full-text index: documents are collected in memory, inverted, and written to three files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.files import WRITTEN_VERSION, NewIndexFolder
from lance_dataset.index.text.analysis.batches import TextBuffers
from lance_dataset.index.text.documents import ROW_ID, TOKENS, TOTAL
from lance_dataset.index.text.layout import PartitionFiles
from lance_dataset.index.text.listed_positions import listed_positions
from lance_dataset.index.text.posting_blocks import Postings
from lance_dataset.index.text.posting_rows import (
    IMPACTS,
    LENGTH,
    LISTED_POSITIONS,
    MAX_SCORE,
    POSITION_OFFSETS,
    POSITIONS,
    POSTING,
    ListEncoder,
)
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.token_sets import FST_BYTES, NEXT_ID, TOTAL_LENGTH
from lance_dataset.index.text.training.documents import Documents
from lance_dataset.index.text.training.inversion import Inversion
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.index.text.training.token_store import TokenStore
from lance_dataset.threads.pools import cpu_count
from lance_dataset.threads.streams import stream
from lance_dataset.types.schema import Schema
from lancecodec.search.automata import write_fst
from lancecodec.search.tokens import TokenTable

__all__ = ["NewPartition"]

#: Column of the place of an element in the list of its row.
_ELEMENT: Final = "_doc_index_0"
_DOCUMENT_ROWS: Final = 1 << 17
#: Bytes of posting lists that are collected before they are written.
_CACHE_BYTES: Final = 4 << 20
#: Memory of a token besides what is held: a share of the posting lists that are made together. And of a document.
_TOKEN_BYTES: Final = 3
_DOCUMENT_BYTES: Final = 8 + 4 + 4 + 8
#: Limits of 32-bit numbers, with room for one more piece.
_MOST_TOKENS: Final = 1 << 31
_MOST_WORDS: Final = 1 << 28

_BLOCKS = pa.list_(pa.field("item", pa.large_binary()))
_TYPES: Final = {
    POSTING: _BLOCKS,
    MAX_SCORE: pa.float32(),
    LENGTH: pa.uint32(),
    IMPACTS: _BLOCKS,
    LISTED_POSITIONS: pa.list_(pa.field("item", _BLOCKS)),
    POSITIONS: pa.large_binary(),
    POSITION_OFFSETS: pa.list_(pa.field("item", pa.uint32())),
}
_TOKEN_SCHEMA: Final = pa.schema(
    [
        pa.field(FST_BYTES, pa.large_binary(), nullable=False),
        pa.field(NEXT_ID, pa.uint32(), nullable=False),
        pa.field(TOTAL_LENGTH, pa.uint64(), nullable=False),
    ]
)


class NewPartition:
    """Documents of a partition.

    Parameters
    ----------
    parameters
        Parameters of the index.
    """

    def __init__(self, parameters: InvertedParameters) -> None:
        self._parameters = parameters
        self._tokens = TokenStore(positions=parameters.with_position)
        self._rows: list[NDArray[np.uint64]] = []
        self._elements: list[NDArray[np.uint32]] = []

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all documents."""
        return self._tokens.num_tokens

    def nbytes(self) -> int:
        """Return the bytes of memory that writing the partition takes, about."""
        store = self._tokens
        return store.nbytes + store.num_tokens * _TOKEN_BYTES + store.num_documents * _DOCUMENT_BYTES

    def is_full(self, words: int) -> bool:
        """Return True if numbers of 32 bits would not suffice for much more; `words` is that of distinct tokens."""
        return max(self._tokens.num_tokens, self._tokens.num_documents) >= _MOST_TOKENS or words >= _MOST_WORDS

    def add(self, documents: Documents) -> None:
        """Add documents after the others."""
        self._tokens.add(documents.tokens)
        self._rows.append(documents.rows)
        if documents.elements is not None:
            self._elements.append(documents.elements)

    def write(self, target: NewIndexFolder, files: PartitionFiles, table: TokenTable) -> None:
        """Write the files of the partition, which has a token at least.

        Parameters
        ----------
        target
            Folder of the index.
        files
            Names of the files.
        table
            Distinct tokens of the documents.
        """
        parts = self._tokens.parts()
        lengths = np.concatenate([part.lengths for part in parts])
        self._write_documents(target, files.documents, lengths)
        ranks = _write_tokens(target, files.tokens, table)
        inversion = Inversion(parts, ranks, positions=self._parameters.with_position)
        names = [POSTING, MAX_SCORE, LENGTH, IMPACTS, *self._position_names()]
        schema = pa.schema([pa.field(name, _TYPES[name], nullable=False) for name in names])
        rows = self._postings(inversion, lengths, schema, files.postings)
        metadata = self._parameters.posting_metadata()
        target.write(
            files.postings, Schema.from_arrow(schema), WRITTEN_VERSION, rows, metadata, cache_bytes=_CACHE_BYTES
        )

    def _position_names(self) -> list[str]:
        if not self._parameters.with_position:
            return []
        return [LISTED_POSITIONS] if self._parameters.format_version == 1 else [POSITIONS, POSITION_OFFSETS]

    def _write_documents(self, target: NewIndexFolder, name: str, lengths: NDArray[np.uint32]) -> None:
        columns: list[NDArray[Any]] = [np.concatenate(self._rows), lengths]
        self._rows.clear()
        fields = [pa.field(ROW_ID, pa.uint64(), nullable=False), pa.field(TOKENS, pa.uint32(), nullable=False)]
        if self._parameters.by_element:
            columns.append(np.concatenate(self._elements))
            fields.append(pa.field(_ELEMENT, pa.uint32(), nullable=False))
        schema = pa.schema(fields)
        batches = (
            pa.RecordBatch.from_arrays(
                [pa.array(column[start : start + _DOCUMENT_ROWS]) for column in columns], schema=schema
            )
            for start in range(0, len(lengths), _DOCUMENT_ROWS)
        )
        metadata = {TOTAL: str(self.num_tokens)}
        target.write(name, Schema.from_arrow(schema), WRITTEN_VERSION, batches, metadata)

    def _postings(
        self, inversion: Inversion, lengths: NDArray[np.uint32], schema: pa.Schema, where: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of posting lists, which threads make."""
        encoder = ListEncoder(lengths, Corpus(len(lengths), self.num_tokens), self._parameters.blocks)

        def rows(words: tuple[int, int]) -> pa.RecordBatch:
            each = inversion.lists(*words)
            made = encoder.scored(each.lengths, each.documents, each.frequencies)
            if each.steps is not None and self._parameters.format_version == 1:
                postings = Postings(each.lengths, each.documents.astype(np.int64), each.frequencies.astype(np.int64))
                made[LISTED_POSITIONS] = listed_positions(each.steps.astype(np.int64), postings)
            elif each.steps is not None:
                made |= encoder.positions(each.lengths, each.frequencies, each.steps, where)
            columns = [made[name].cast(schema.field(name).type) for name in schema.names]
            return pa.RecordBatch.from_arrays(columns, schema=schema)

        yield from stream(rows, inversion.ranges(), ahead=cpu_count(), join=True)


def _write_tokens(target: NewIndexFolder, name: str, table: TokenTable) -> NDArray[np.uint32]:
    """Write the dictionary, in which words are numbered in their order; return the number of each code."""
    offsets, data = table.tokens()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    tokens = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) // 8 - 1, buffers)
    order = pc.sort_indices(tokens)
    ranks = np.empty(len(tokens), np.uint32)
    ranks[order.to_numpy()] = np.arange(len(tokens), dtype=np.uint32)
    keys = TextBuffers.of(tokens.take(order))
    fst = write_fst(keys.data, keys.offsets.data, np.arange(len(tokens), dtype=np.uint64).data)
    columns = [
        pa.array([fst], pa.large_binary()),
        pa.array([len(tokens)], pa.uint32()),
        pa.array([len(data)], pa.uint64()),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=_TOKEN_SCHEMA)
    target.write(name, Schema.from_arrow(_TOKEN_SCHEMA), WRITTEN_VERSION, [batch])
    return ranks
