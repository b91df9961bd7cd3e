"""Partitions of a full-text index, open for searching: documents, words, and the posting lists in use."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.index.files import IndexTable
from lance_dataset.index.text.documents import ROW_ID, TOKENS, TOTAL
from lance_dataset.index.text.scoring import Corpus, Floats
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.words import Similar, Words
from lance_dataset.properties import cached_property
from lancecodec.errors import CodecError
from lancecodec.search.postings import Positions, Term

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Documents", "Partition"]

_Each = TypeVar("_Each", Term, Positions)

#: Column of the place of an element in the list of its row.
_ELEMENT = "_doc_index_0"
#: Words whose numbers are remembered.
_KNOWN_WORDS = 1 << 14


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents of a partition.

    Attributes
    ----------
    ids : uint64[n]
        Row id of each document.
    lengths : uint32[n]
        Number of tokens of each document.
    elements : uint32[n]
        Place of each document in the list of its row; None if rows are documents.
    """

    ids: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    elements: NDArray[np.uint32] | None = None

    @classmethod
    def read(cls, table: IndexTable) -> Documents:
        """Read a table of documents.

        Raises
        ------
        CorruptFileError
            The file contradicts the format.
        """
        by_element = any(field.name == _ELEMENT for field in table.schema.fields)
        ids, lengths, *elements = table.read(columns=[ROW_ID, TOKENS] + [_ELEMENT] * by_element).columns
        for name, values, kind in (
            (ROW_ID, ids, pa.uint64()),
            (TOKENS, lengths, pa.uint32()),
            *((_ELEMENT, each, pa.uint32()) for each in elements),
        ):
            if values.type != kind or values.null_count:
                raise table.corrupt(f"{name} has the type {values.type}, not {kind}, or holds nulls")
        found = cls(ids.to_numpy(), lengths.to_numpy(), elements[0].to_numpy() if elements else None)
        if TOTAL in table.metadata and table.number(TOTAL, 0) != int(found.lengths.sum(dtype=np.uint64)):
            raise table.corrupt(f"{TOTAL} is {table.metadata[TOTAL]}, but its documents have another number of tokens")
        return found


class Partition(ABC):
    """Partition of a full-text index.

    Parameters
    ----------
    postings
        File of its posting lists.
    documents
        Its documents.
    cache
        Posting lists in use, shared by all partitions of an index.
    """

    def __init__(self, postings: IndexTable, documents: Documents, cache: TermCache) -> None:
        self._postings = postings
        self._cache = cache
        #: Row id of each document, its number of tokens, and its place in the row.
        self.ids, self.lengths, self.elements = documents.ids, documents.lengths, documents.elements
        self._numbers: dict[str, int | None] = {}
        self._norms: Floats = np.empty(0, np.float32)

    @property
    def count(self) -> int:
        """Number of documents."""
        return len(self.ids)

    @cached_property
    def num_tokens(self) -> int:
        """Number of tokens of all documents."""
        return int(self.lengths.sum(dtype=np.uint64))

    @property
    def norms(self) -> Floats:
        """Norm of each document."""
        return self._norms

    @property
    @abstractmethod
    def has_positions(self) -> bool:
        """True if positions of tokens are kept."""

    @abstractmethod
    def measure(self, corpus: Corpus) -> None:
        """Set the documents that scores are relative to, before the first search."""

    def measured(self, corpus: Corpus, cache: TermCache) -> Self:
        """Return the same documents, whose files are open, with scores that are relative to others.

        Parameters
        ----------
        corpus
            Documents that scores are relative to.
        cache
            Another place for posting lists in use, as their bounds are those of the scores.
        """
        made = copy.copy(self)
        made._cache = cache
        made.measure(corpus)
        return made

    def corrupt(self, what: str) -> CorruptFileError:
        """Return an error that names the file of the posting lists."""
        return self._postings.corrupt(what)

    # -- words ---------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def num_words(self) -> int:
        """Number of words."""

    @property
    @abstractmethod
    def _dictionary(self) -> Words:
        """Dictionary."""

    @property
    @abstractmethod
    def _frequencies(self) -> NDArray[np.uint32]:
        """Number of documents of each word."""

    def number(self, word: str) -> int | None:
        """Return the number of a word, None if no document has it."""
        known = self._numbers
        number = known.get(word, -1)
        if number == -1:  # another thread may forget all words at any time
            number = self._looked_up(word)
            if len(known) >= _KNOWN_WORDS:
                known.clear()
            known[word] = number
        return number

    def _looked_up(self, word: str) -> int | None:
        words = self._dictionary
        try:
            number = words.number(word.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise self.corrupt(f"its dictionary is malformed: {error}") from error
        if number is not None and number >= self.num_words:
            raise self.corrupt(f"a word has the number {number} of {self.num_words}")
        return number

    def similar(self, pattern: Similar, most: int) -> list[str]:
        """Return the first words that are similar to another one."""
        words = self._dictionary
        try:
            found = words.similar(pattern, most)
        except ValueError as error:
            raise self.corrupt(f"its dictionary is malformed: {error}") from error
        return [word.decode("utf-8", "replace") for word, _ in found]

    def frequency(self, number: int) -> int:
        """Return the number of documents of a word."""
        return int(self._frequencies[number])

    def _checked_frequencies(self, found: NDArray[np.uint32]) -> NDArray[np.uint32]:
        if len(found) and (int(found.min()) < 1 or int(found.max()) > self.count):
            raise self.corrupt(f"a word occurs in no document, or in more than the {self.count} documents")
        return found

    # -- posting lists -------------------------------------------------------------------------------------------

    def terms(self, numbers: Sequence[int]) -> list[Term]:
        """Return the posting lists of words."""
        cache = self._cache
        found = {number: cache.get((self, number)) for number in numbers}
        missing = [number for number, term in found.items() if term is None]
        if missing:
            for number, term in zip(missing, self._read("postings", missing, self._read_terms), strict=True):
                cache.put((self, number), term)
                found[number] = term
        return [found[number] for number in numbers]

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
                known = self._read("positions", [number], self._read_positions)[0]
                cache.put((self, -1 - number), known)
            found.append(known)
        return found

    def _read(self, what: str, numbers: Sequence[int], read: Callable[[Sequence[int]], list[_Each]]) -> list[_Each]:
        try:
            return read(numbers)
        except LanceError:
            raise
        except ValueError as error:
            raise self.corrupt(f"{what} of the words {list(numbers)}: {error}") from error

    @abstractmethod
    def _read_terms(self, numbers: Sequence[int]) -> list[Term]: ...

    @abstractmethod
    def _read_positions(self, numbers: Sequence[int]) -> list[Positions]: ...
