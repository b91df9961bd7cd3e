"""Partitions of full-text indices since 1.0, open for searching."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder
from lance_dataset.index.text.layout import InvertedLayout, PartitionFiles
from lance_dataset.index.text.posting_rows import (
    IMPACTS,
    LENGTH,
    LISTED_POSITIONS,
    POSITION_OFFSETS,
    POSITIONS,
    POSTING,
)
from lance_dataset.index.text.scoring import Corpus, decode_lengths, length_codes
from lance_dataset.index.text.searching.partition import Documents, Partition
from lance_dataset.index.text.searching.posting_arrays import binary_lists, block_positions, listed_positions
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.words import Words, open_words
from lance_dataset.properties import cached_property
from lancecodec.search.postings import CODES, PACKED, VARINT, Positions, Term

__all__ = ["OpenPartition"]

#: Documents of posting lists whose bounds are computed, up to which that pays: those of skip data are less tight.
_MEASURED = 1 << 20


class OpenPartition(Partition):
    """Partition of a full-text index.

    Parameters
    ----------
    folder, layout, files
        The index and the names of the files.
    cache
        Posting lists in use, shared by all partitions of an index.

    Raises
    ------
    CorruptFileError
        The files contradict the format.
    """

    def __init__(self, folder: IndexFolder, layout: InvertedLayout, files: PartitionFiles, cache: TermCache) -> None:
        super().__init__(folder.open(files.postings), Documents.read(folder.open(files.documents)), cache)
        self._folder = folder
        self._layout = layout
        self._files = files
        self._columns = {field.name for field in self._postings.schema.fields}
        self._code_norms = np.empty(0, np.float32)

    @property
    def has_positions(self) -> bool:
        """True if positions of tokens are kept."""
        return not self._columns.isdisjoint((LISTED_POSITIONS, POSITIONS))

    @property
    def num_words(self) -> int:
        """Number of words."""
        return self._postings.num_rows

    def measure(self, corpus: Corpus) -> None:
        """Set the documents that scores are relative to, before the first search."""
        lengths = self.lengths.astype(np.int64)
        if self._layout.blocks.size == 256:
            lengths = decode_lengths(length_codes(lengths))
        self._norms = corpus.norms(lengths)
        self._code_norms = corpus.norms(decode_lengths(np.arange(CODES)))

    @cached_property
    def _dictionary(self) -> Words:
        table = self._folder.open(self._files.tokens)
        return open_words(table, self.num_words, fst=self._layout.fst)

    @cached_property
    def _frequencies(self) -> NDArray[np.uint32]:
        table = self._postings
        table.check_columns((POSTING, LENGTH))
        lengths = table.read(columns=[LENGTH]).column(0)
        if lengths.type != pa.uint32() or lengths.null_count:
            raise table.corrupt(f"{LENGTH} holds nulls or has the type {lengths.type}, not uint32")
        return self._checked_frequencies(lengths.to_numpy())

    def _read_terms(self, numbers: Sequence[int]) -> list[Term]:
        rows = np.array(numbers, np.int64)
        table, blocks = self._postings, self._layout.blocks
        lists = binary_lists(table.take(rows, POSTING), POSTING)
        skips = binary_lists(table.take(rows, IMPACTS), IMPACTS) if IMPACTS in self._columns else None
        terms = []
        for place, number in enumerate(numbers):
            offsets, data = lists[place]
            length = self.frequency(number)
            term = Term(data, offsets.data, length, self.count, blocks.size, blocks.fixed_tail)
            if skips is not None and length > _MEASURED:
                offsets, data = skips[place]
                term.bound_by_impacts(data, offsets.data, self._code_norms)
            else:
                term.bound_by_documents(self._norms)
            terms.append(term)
        return terms

    def _read_positions(self, numbers: Sequence[int]) -> list[Positions]:
        table, kind = self._postings, PACKED if self._layout.packed_positions else VARINT
        found = []
        for number in numbers:
            row = np.array([number], np.int64)
            if POSITIONS in self._columns:
                found.append(block_positions(table.take(row, POSITIONS), table.take(row, POSITION_OFFSETS), kind))
            else:
                found.append(listed_positions(table.take(row, LISTED_POSITIONS)))
        return found
