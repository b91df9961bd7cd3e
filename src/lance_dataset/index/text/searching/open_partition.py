"""Partitions of a full-text index, open for searching: documents, dictionary, and the posting lists in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.text.layout import InvertedLayout, PartitionFiles
from lance_dataset.index.text.scoring import Corpus, Floats, decode_lengths, length_codes
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.words import Similar, Words, open_words
from lancecodec.errors import CodecError
from lancecodec.search.postings import CODES, LISTED, PACKED, VARINT, Positions, Term

__all__ = ["OpenPartition"]

_ROW_ID, _TOKENS, _TOTAL = "_rowid", "_num_tokens", "total_tokens"
_POSTING, _LENGTH, _IMPACTS = "_posting", "_length", "_impacts"
_LISTED_POSITIONS, _POSITIONS, _POSITION_OFFSETS = "_position", "_compressed_position", "_position_block_offset"
#: Documents of posting lists whose bounds are computed, up to which that pays: those of skip data are less tight.
_MEASURED = 1 << 20
#: Words whose numbers are remembered.
_KNOWN_WORDS = 1 << 14


@dataclass(frozen=True)
class _Documents:
    ids: NDArray[np.uint64]
    lengths: NDArray[np.uint32]


class OpenPartition:
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
        self._folder = folder
        self._layout = layout
        self._files = files
        self._cache = cache
        self._postings = folder.open(files.postings)
        self._columns = {field.name for field in self._postings.schema.fields}
        documents = _read_documents(folder.open(files.documents))
        #: Row id of each document, and its number of tokens.
        self.ids, self.lengths = documents.ids, documents.lengths
        self._numbers: dict[str, int | None] = {}
        self._norms = self._code_norms = np.empty(0, np.float32)

    @property
    def count(self) -> int:
        """Number of documents."""
        return len(self.ids)

    @cached_property
    def num_tokens(self) -> int:
        """Number of tokens of all documents."""
        return int(self.lengths.sum(dtype=np.uint64))

    @property
    def has_positions(self) -> bool:
        """True if positions of tokens are kept."""
        return not self._columns.isdisjoint((_LISTED_POSITIONS, _POSITIONS))

    @property
    def norms(self) -> Floats:
        """Norm of each document."""
        return self._norms

    def measure(self, corpus: Corpus) -> None:
        """Set the documents that scores are relative to, before the first search."""
        lengths = self.lengths.astype(np.int64)
        if self._layout.blocks.size == 256:
            lengths = decode_lengths(length_codes(lengths))
        self._norms = corpus.norms(lengths)
        self._code_norms = corpus.norms(decode_lengths(np.arange(CODES)))

    # -- words ---------------------------------------------------------------------------------------------------

    @cached_property
    def _words(self) -> Words:
        table = self._folder.open(self._files.tokens)
        return open_words(table, self._postings.num_rows, fst=self._layout.fst)

    @cached_property
    def _frequencies(self) -> NDArray[np.uint32]:
        """Number of documents of each word."""
        table = self._postings
        table.check_columns((_POSTING, _LENGTH))
        lengths = table.read(columns=[_LENGTH]).column(0)
        if lengths.type != pa.uint32() or lengths.null_count:
            raise table.corrupt(f"{_LENGTH} holds nulls or has the type {lengths.type}, not uint32")
        found: NDArray[np.uint32] = lengths.to_numpy()
        if len(found) and (int(found.min()) < 1 or int(found.max()) > self.count):
            raise table.corrupt(f"a word occurs in no document, or in more than the {self.count} documents")
        return found

    def number(self, word: str) -> int | None:
        """Return the number of a word, None if no document has it."""
        known = self._numbers
        if word not in known:
            if len(known) >= _KNOWN_WORDS:
                known.clear()
            known[word] = self._looked_up(word)
        return known[word]

    def _looked_up(self, word: str) -> int | None:
        words = self._words
        try:
            number = words.number(word.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise self._postings.corrupt(f"its dictionary is malformed: {error}") from error
        if number is not None and number >= self._postings.num_rows:
            raise self._postings.corrupt(f"a word has the number {number} of {self._postings.num_rows}")
        return number

    def similar(self, pattern: Similar, most: int) -> list[str]:
        """Return the first words that are similar to another one."""
        words = self._words
        try:
            found = words.similar(pattern, most)
        except ValueError as error:
            raise self._postings.corrupt(f"its dictionary is malformed: {error}") from error
        return [word.decode("utf-8", "replace") for word, _ in found]

    def frequency(self, number: int) -> int:
        """Return the number of documents of a word."""
        return int(self._frequencies[number])

    def corrupt(self, what: str) -> CorruptFileError:
        """Return an error that names the file of the posting lists."""
        return self._postings.corrupt(what)

    # -- posting lists -------------------------------------------------------------------------------------------

    def terms(self, numbers: Sequence[int]) -> list[Term]:
        """Return the posting lists of words."""
        cache = self._cache
        found = {number: cache.get((self, number)) for number in numbers}
        missing = [number for number, term in found.items() if term is None]
        if missing:
            for number, term in zip(missing, self._read_terms(missing), strict=True):
                cache.put((self, number), term)
                found[number] = term
        return [found[number] for number in numbers]

    def _read_terms(self, numbers: Sequence[int]) -> list[Term]:
        rows = np.array(numbers, np.int64)
        table, blocks = self._postings, self._layout.blocks
        try:
            lists = _binary_lists(table.take(rows, _POSTING), _POSTING)
            skips = _binary_lists(table.take(rows, _IMPACTS), _IMPACTS) if _IMPACTS in self._columns else None
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
        except LanceError:
            raise
        except ValueError as error:
            raise table.corrupt(f"postings of the words {list(numbers)}: {error}") from error

    def decoded(self, number: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the documents of a word, and how often they have it."""
        term = self.terms([number])[0]
        docs, counts = np.empty(term.length, np.uint32), np.empty(term.length, np.uint32)
        try:
            term.decode(docs, counts)
        except CodecError as error:
            raise self.corrupt(f"postings of the word {number}: {error}") from error
        return docs, counts

    def positions(self, numbers: Sequence[int]) -> list[Positions]:
        """Return the positions of words in their documents."""
        cache = self._cache
        found = []
        for number in numbers:
            known = cache.get((self, -1 - number))
            if known is None:
                known = self._read_positions(number)
                cache.put((self, -1 - number), known)
            found.append(known)
        return found

    def _read_positions(self, number: int) -> Positions:
        rows, table = np.array([number], np.int64), self._postings
        try:
            if _POSITIONS not in self._columns:
                return _listed_positions(table.take(rows, _LISTED_POSITIONS))
            offsets, data = _binaries(table.take(rows, _POSITIONS), _POSITIONS)
            starts = table.take(rows, _POSITION_OFFSETS)
            if not pa.types.is_list(starts.type) or starts.type.value_type != pa.uint32() or starts.null_count:
                raise CodecError(f"{_POSITION_OFFSETS} holds nulls or is not a list of uint32")
            within = starts.flatten()
            if within.null_count:
                raise CodecError(f"{_POSITION_OFFSETS} holds nulls")
            begins = within.to_numpy().astype(np.int64) + offsets[0]
            if len(begins) and begins[0] != offsets[0]:
                raise CodecError("the first block of positions is not at the start")
            kind = PACKED if self._layout.packed_positions else VARINT
            return Positions(data, np.append(begins, offsets[1]).data, None, kind)
        except LanceError:
            raise
        except ValueError as error:
            raise table.corrupt(f"positions of the word {number}: {error}") from error


def _read_documents(table: IndexTable) -> _Documents:
    rows = table.read(columns=[_ROW_ID, _TOKENS])
    ids, lengths = rows.columns
    if ids.type != pa.uint64() or lengths.type != pa.uint32() or ids.null_count or lengths.null_count:
        raise table.corrupt(f"{_ROW_ID} and {_TOKENS} have the types {ids.type} and {lengths.type}, or hold nulls")
    found = _Documents(ids.to_numpy(), lengths.to_numpy())
    if _TOTAL in table.metadata and table.number(_TOTAL, 0) != int(found.lengths.sum(dtype=np.uint64)):
        raise table.corrupt(f"{_TOTAL} is {table.metadata[_TOTAL]}, but its documents have another number of tokens")
    return found


# -- Arrow arrays ----------------------------------------------------------------------------------------------------


def _binaries(values: pa.Array, name: str) -> tuple[NDArray[np.int64], pa.Buffer | bytes]:
    """Return the offsets and the bytes of binaries."""
    if not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)) or values.null_count:
        raise CodecError(f"{name} holds nulls or is not binary")
    values = values.cast(pa.large_binary())
    _, offsets, data = values.buffers()
    if not len(values):
        return np.zeros(1, np.int64), b""
    found = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return found, b"" if data is None else data


def _list_offsets(lists: pa.Array, name: str) -> list[int]:
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise CodecError(f"{name} is not a list")
    found: list[int] = lists.offsets.to_pylist()
    return found


def _binary_lists(lists: pa.Array, name: str) -> list[tuple[NDArray[np.int64], pa.Buffer | bytes]]:
    """Return the offsets and the bytes of the binaries of each list."""
    if lists.null_count:
        raise CodecError(f"{name} holds nulls")
    ends = _list_offsets(lists, name)
    offsets, data = _binaries(lists.values, name)
    return [(offsets[low : high + 1], data) for low, high in pairwise(ends)]


def _listed_positions(lists: pa.Array) -> Positions:
    """Return positions that are stored as a list of binaries for each document."""
    if lists.null_count or len(lists) != 1:
        raise CodecError(f"{_LISTED_POSITIONS} holds nulls")
    documents = lists.flatten()
    if documents.null_count or not pa.types.is_list(documents.type):
        raise CodecError(f"{_LISTED_POSITIONS} holds nulls or is not a list of lists")
    owners = documents.offsets.to_numpy().astype(np.int64)
    starts, data = _binaries(documents.values.slice(owners[0], owners[-1] - owners[0]), _LISTED_POSITIONS)
    return Positions(data, starts.data, (owners - owners[0]).data, LISTED)
