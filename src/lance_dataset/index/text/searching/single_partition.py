"""Full-text indices of releases before 1.0, open for searching: one partition, with a row for each posting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.metadata_json import parse_json
from lance_dataset.index.text.documents import ROW_ID
from lance_dataset.index.text.posting_blocks import BlockFormat
from lance_dataset.index.text.posting_rows import POSITION_OFFSETS, POSITIONS, POSTING, ListEncoder
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.partition import Documents, Partition
from lance_dataset.index.text.searching.posting_arrays import binary_lists, block_positions
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.words import Words, open_words
from lance_dataset.properties import cached_property
from lancecodec.search.postings import VARINT, Positions, Term

__all__ = ["SINGLE_FILES", "SinglePartition"]

_TOKENS, _DOCUMENTS, _POSTINGS = "tokens.lance", "docs.lance", "invert.lance"
#: Names of the files of such an index.
SINGLE_FILES = frozenset((_TOKENS, _DOCUMENTS, _POSTINGS))
_FREQUENCY, _POSITION, _OFFSETS = "_frequency", "_position", "offsets"
_BLOCKS = BlockFormat(128, False)
#: Frequencies are floats, which are exact up to here.
_MOST_FREQUENT = 1 << 24


class SinglePartition(Partition):
    """Full-text index without a list of partitions.

    Parameters
    ----------
    folder
        The index.
    cache
        Posting lists in use, shared by all partitions of an index.

    Raises
    ------
    CorruptFileError
        The files contradict the format.
    """

    def __init__(self, folder: IndexFolder, cache: TermCache) -> None:
        postings = folder.open(_POSTINGS)
        super().__init__(postings, _read_documents(folder.open(_DOCUMENTS)), cache)
        self._folder = folder
        self._positioned = any(field.name == _POSITION for field in postings.schema.fields)

    @property
    def has_positions(self) -> bool:
        """True if positions of tokens are kept."""
        return self._positioned

    @property
    def num_words(self) -> int:
        """Number of words."""
        return len(self._offsets) - 1

    def measure(self, corpus: Corpus) -> None:
        """Set the documents that scores are relative to, before the first search."""
        self._norms = corpus.norms(self.lengths.astype(np.int64))
        self._encoder = ListEncoder(self.lengths.astype(np.int64), corpus, _BLOCKS)

    @cached_property
    def _dictionary(self) -> Words:
        return open_words(self._folder.open(_TOKENS), self.num_words, fst=False)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        """First row of each word, and the end of the last one."""
        table = self._postings
        try:
            stored = parse_json(table.metadata[_OFFSETS])
        except (KeyError, ValueError, RecursionError) as error:
            raise table.corrupt(f"does not say where the words begin: {error}") from error
        if not isinstance(stored, list) or any(type(each) is not int or not 0 <= each < 1 << 62 for each in stored):
            raise table.corrupt(f"its {_OFFSETS} are not a list of numbers")
        found = np.array([*stored, table.num_rows], np.int64)
        if found[0] or (np.diff(found) < 0).any():
            raise table.corrupt(f"its {_OFFSETS} are not ascending from 0 to {table.num_rows}")
        return found

    @cached_property
    def _frequencies(self) -> NDArray[np.uint32]:
        return self._checked_frequencies(np.diff(self._offsets).astype(np.uint32))

    def _read_terms(self, numbers: Sequence[int]) -> list[Term]:
        return [self._read_term(number) for number in numbers]

    def _read_term(self, number: int) -> Term:
        documents, frequencies = self._read_postings(number)
        lengths = np.array([len(documents)], np.int64)
        made = self._encoder.scored(lengths, documents, frequencies, impacts=False)
        offsets, data = binary_lists(made[POSTING], POSTING)[0]
        term = Term(data, offsets.data, len(documents), self.count, _BLOCKS.size, _BLOCKS.fixed_tail)
        term.bound_by_documents(self._norms)
        return term

    def _read_postings(self, number: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the documents of a word and its frequencies in them."""
        start, stop = self._offsets[number : number + 2].tolist()
        rows, often = self._postings.read(start, stop, [ROW_ID, _FREQUENCY]).columns
        if rows.type != pa.uint64() or often.type != pa.float32() or rows.null_count or often.null_count:
            raise self.corrupt(f"{ROW_ID} and {_FREQUENCY} have the types {rows.type} and {often.type}, or hold nulls")
        ids, counts = rows.to_numpy(), often.to_numpy()
        places = np.minimum(np.searchsorted(self.ids, ids), max(self.count - 1, 0))
        if (self.ids[places] != ids).any() or (np.diff(places) <= 0).any():
            raise self.corrupt(f"the rows of the word {number} are not ascending, or are not among the documents")
        if not ((counts >= 1) & (counts <= _MOST_FREQUENT)).all():
            raise self.corrupt(f"a frequency of the word {number} is not a number from 1 to {_MOST_FREQUENT}")
        return places.astype(np.uint32), counts.astype(np.uint32)

    def _read_positions(self, numbers: Sequence[int]) -> list[Positions]:
        return [self._read_places(number) for number in numbers]

    def _read_places(self, number: int) -> Positions:
        _, frequencies = self._read_postings(number)
        start, stop = self._offsets[number : number + 2].tolist()
        lists = self._postings.read(start, stop, [_POSITION]).column(0)
        if not pa.types.is_list(lists.type) or lists.type.value_type != pa.int32() or lists.null_count:
            raise self.corrupt(f"{_POSITION} has the type {lists.type}, or holds nulls")
        values = lists.flatten()
        counts = np.diff(lists.offsets.to_numpy())
        if values.null_count or (counts != frequencies).any():
            raise self.corrupt(f"the word {number} has other numbers of positions than occurrences")
        places = values.to_numpy().astype(np.int64)
        firsts = (np.cumsum(counts) - counts).astype(np.int64)
        steps = np.diff(places, prepend=0)
        steps[firsts] = places[firsts]
        if (steps < 0).any():
            raise self.corrupt(f"the positions of the word {number} are not ascending")
        made = self._encoder.positions(
            np.array([len(counts)], np.int64), frequencies, steps.astype(np.uint32), self._postings.where, packed=False
        )
        return block_positions(made[POSITIONS], made[POSITION_OFFSETS], VARINT)


def _read_documents(table: IndexTable) -> Documents:
    """Return the documents in the order of their rows."""
    found = Documents.read(table)
    order = np.argsort(found.ids, kind="stable")
    ids = found.ids[order]
    if (ids[1:] == ids[:-1]).any():
        raise table.corrupt("has a row twice")
    return Documents(ids, found.lengths[order])
