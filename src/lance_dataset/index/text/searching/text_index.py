"""Searches in full-text indices: the rows of a version whose documents have some words, with their scores."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.text.layout import METADATA_FILE, InvertedLayout
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.open_partition import OpenPartition
from lance_dataset.index.text.searching.query_tokens import QueryAnalyzer
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.words import Similar
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.indices.coverage import has_reliable_coverage
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.row_addresses import by_fragment, fragments_of, offsets_of
from lancecodec.errors import CodecError
from lancecodec.search.postings import Phrase, search

__all__ = ["FoundTexts", "Fuzziness", "Occurrences", "PhraseWords", "TextIndex", "WantedTexts", "text_index"]

_KIND = "inverted"
#: Words whose weights are remembered.
_KNOWN_WORDS = 1 << 14

#: Bits of the documents of a partition that may be found, given the addresses of the rows of all.
Chooser = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class FoundTexts:
    """Rows with their scores.

    Attributes
    ----------
    addresses : uint64[n]
        Addresses of the rows.
    scores : float32[n]
        Scores.
    """

    addresses: NDArray[np.uint64]
    scores: NDArray[np.float32]

    def ordered(self, best: int | None = None) -> FoundTexts:
        """Return the best rows, or all for None, by descending score, then in the order of the table."""
        found, left = self, len(self.scores) - (len(self.scores) if best is None else best)
        if best and left > 0:
            least = np.partition(self.scores, left)[left]
            found = self._kept(self.scores >= least)
        order = np.lexsort((found.addresses, -found.scores))[:best]
        return FoundTexts(found.addresses[order], found.scores[order])

    def by_address(self) -> FoundTexts:
        """Return the rows in the order of their addresses."""
        if (self.addresses[1:] > self.addresses[:-1]).all():
            return self
        order = np.argsort(self.addresses, kind="stable")
        return FoundTexts(self.addresses[order], self.scores[order])

    def places(self, others: FoundTexts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of the rows that others have, too, here and there; both are in the order of addresses."""
        if len(self.addresses) > len(others.addresses):
            there, here = others.places(self)
            return here, there
        if not len(self.addresses):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found = np.searchsorted(others.addresses, self.addresses)
        found = np.minimum(found, len(others.addresses) - 1)
        here = np.flatnonzero(others.addresses[found] == self.addresses)
        return here, found[here]

    def without(self, places: NDArray[np.int64]) -> FoundTexts:
        """Return the rows but those at some places."""
        kept = np.ones(len(self.addresses), bool)
        kept[places] = False
        return self._kept(kept)

    def _kept(self, kept: NDArray[np.bool_]) -> FoundTexts:
        return FoundTexts(self.addresses[kept], self.scores[kept])

    @staticmethod
    def concat(parts: Sequence[FoundTexts]) -> FoundTexts:
        """Return the rows of several parts."""
        if len(parts) == 1:
            return parts[0]
        return FoundTexts(
            np.concatenate([np.empty(0, np.uint64), *(part.addresses for part in parts)]),
            np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)]),
        )


@dataclass(frozen=True)
class WantedTexts:
    """Rows that a search may return.

    Attributes
    ----------
    best
        Number of rows, those with the largest scores; None for all.
    chooser
        Function that says which rows may be found, by their addresses; None for all live rows.
    by_address
        True for the order of addresses instead of that of scores.
    """

    best: int | None = None
    chooser: Chooser | None = None
    by_address: bool = False


@dataclass(frozen=True)
class Fuzziness:
    """Distance from the words of a query that words may have.

    Attributes
    ----------
    distance
        Number of characters that are inserted, deleted or replaced, at most.
    prefix
        Number of first characters that must be equal.
    most
        Number of words for all those of the query together, at most; the first words of the query come first.
    """

    distance: int
    prefix: int
    most: int


@dataclass(frozen=True)
class PhraseWords:
    """Words in an order.

    Attributes
    ----------
    words
        The words, each with its place.
    slop
        How many places later than in the phrase a word may follow the one before.
    """

    words: tuple[tuple[str, int], ...]
    slop: int


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Rows with the numbers of some words in them.

    Attributes
    ----------
    addresses : uint64[n]
        Addresses of the rows.
    counts : int64[n, words]
        Occurrences of the words.
    """

    addresses: NDArray[np.uint64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Searched:
    """A partition with the addresses of its rows."""

    partition: OpenPartition
    addresses: NDArray[np.uint64]
    live: NDArray[np.bool_]

    @cached_property
    def bits(self) -> NDArray[np.uint8] | None:
        """Bits of the documents that may be found; None for all."""
        return None if self.live.all() else np.packbits(self.live, bitorder="little")

    @cached_property
    def _sorted_live(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Addresses of the documents that may be found, ascending, and their exact lengths."""
        addresses, lengths = self.addresses[self.live], self.partition.lengths[self.live].astype(np.int64)
        order = np.argsort(addresses, kind="stable")
        return addresses[order], lengths[order]

    def lengths_at(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the lengths of the documents of rows, 0 for rows without one."""
        known, lengths = self._sorted_live
        if not len(known):
            return np.zeros(len(addresses), np.int64)
        places = np.minimum(np.searchsorted(known, addresses), len(known) - 1)
        return np.where(known[places] == addresses, lengths[places], 0)

    def occurrences(self, words: Sequence[str], chooser: Chooser | None) -> Occurrences:
        """Return the rows that have any of some words."""
        part = self.partition
        numbers = [part.number(word) for word in words]
        lists = [(np.empty(0, np.uint32),) * 2 if number is None else part.decoded(number) for number in numbers]
        docs = np.unique(np.concatenate([np.empty(0, np.uint32), *(docs for docs, _ in lists)]))
        counts = np.zeros((len(docs), len(words)), np.int64)
        for word, (mine, often) in enumerate(lists):
            counts[np.searchsorted(docs, mine), word] = often
        kept = self.live[docs]
        if chooser is not None:
            kept &= chooser(self.addresses[docs])
        return Occurrences(self.addresses[docs[kept]], counts[kept])

    def chosen(self, chooser: Chooser | None) -> NDArray[np.uint8] | None:
        """Return the bits of the documents that may be found; None for all."""
        if chooser is None:
            return self.bits
        return np.packbits(self.live & chooser(self.addresses), bitorder="little")


class TextIndex:
    """One full-text index of a version, with all of its segments.

    Attributes
    ----------
    name
        Its name.
    segments
        Segments that cover fragments of the version.
    parameters
        Its parameters.
    analyzer
        Analysis of queries.
    """

    def __init__(self, segments: Sequence[Segment], moved: Relocation | None) -> None:
        self.name = segments[0].name
        self.segments = tuple(segment for segment in segments if segment.fragment_ids)
        self._moved = moved
        first = segments[0]
        details = first.metadata.details
        self.parameters = InvertedParameters.of_index(b"" if details is None else details.value, first.folder)
        column = first.reader.manifest.schema.by_id[first.metadata.fields[0]]
        self.analyzer = QueryAnalyzer(self.parameters.analysis, is_json=column.logical_type == "json")
        self._cache = TermCache()
        self._weights: dict[str, np.float32] = {}

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments that it covers."""
        return frozenset().union(*(segment.fragment_ids for segment in self.segments))

    @cached_property
    def _partitions(self) -> tuple[_Searched, ...]:
        """Partitions of all segments."""
        found = [(segment, layout, part) for segment in self.segments for layout, part in self._opened(segment)]
        corpus = Corpus(sum(part.count for *_, part in found), sum(part.num_tokens for *_, part in found))
        searched = []
        for segment, layout, part in found:
            if not part.count:
                continue
            part.measure(corpus)
            addresses, live = self._places(segment, part.ids)
            live &= ~np.isin(fragments_of(addresses), layout.ignored_fragments.astype(np.uint64))
            searched.append(_Searched(part, addresses, live))
        if self.segments and self.segments[0].reader.manifest.uses_stable_row_ids:
            _hide_repeated(searched)
        return tuple(searched)

    def _opened(self, segment: Segment) -> list[tuple[InvertedLayout, OpenPartition]]:
        folder = segment.folder
        if METADATA_FILE not in folder.names():
            raise UnsupportedError(
                f"{folder.uri('')}: this release does not search full-text indices of releases before 1.0; "
                "create the index again"
            )
        layout = InvertedLayout.read(folder)
        return [(layout, OpenPartition(folder, layout, files, self._cache)) for files in layout.partitions]

    def _places(self, segment: Segment, ids: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the addresses of rows, and whether they are live and in fragments that the segment covers."""
        reader = segment.reader
        if reader.manifest.uses_stable_row_ids:
            addresses, known = reader.addresses_of_ids(ids)
        elif self._moved is not None:
            addresses, gone = self._moved.locate(ids)
            known = ~gone
        else:
            addresses, known = ids, np.ones(len(ids), bool)
        known = known & np.isin(fragments_of(addresses), np.array(sorted(segment.fragment_ids), np.uint64))
        inside = addresses[known]
        for fragment_id, mine in by_fragment(inside):
            fragment = reader.fragment(fragment_id)
            last = int(offsets_of(inside[mine]).max())
            if fragment is None or last >= fragment.physical_rows:
                where = segment.folder.uri("")
                raise CorruptFileError(f"{where}: refers to row {last} of fragment {fragment_id}, which has fewer rows")
        known[known] = reader.is_live(inside)
        return addresses, known

    # -- statistics ----------------------------------------------------------------------------------------------

    @cached_property
    def corpus(self) -> Corpus:
        """Documents that scores are relative to; deleted ones are among them."""
        parts = [searched.partition for searched in self._partitions]
        return Corpus(sum(part.count for part in parts), sum(part.num_tokens for part in parts))

    def frequency(self, word: str) -> int:
        """Return the number of documents that have a word; deleted ones are among them."""
        found = 0
        for searched in self._partitions:
            number = searched.partition.number(word)
            if number is not None:
                found += searched.partition.frequency(number)
        return found

    def lengths_at(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the exact lengths of the documents of rows, 0 for rows without one, int64[n]."""
        found = np.zeros(len(addresses), np.int64)
        for searched in self._partitions:
            found += searched.lengths_at(addresses)
        return found

    def _weight(self, word: str) -> np.float32:
        """Return the highest score of a document for a word."""
        known = self._weights.get(word)
        if known is None:
            if len(self._weights) >= _KNOWN_WORDS:
                self._weights.clear()
            known = self._weights[word] = self.corpus.limits(np.array([self.frequency(word)], np.int64))[0]
        return known

    @property
    def has_positions(self) -> bool:
        """True if all partitions have the positions of tokens."""
        return all(searched.partition.has_positions for searched in self._partitions)

    # -- searches ------------------------------------------------------------------------------------------------

    def match(self, words: Sequence[str], wanted: WantedTexts, *, every: bool, boost: float = 1.0) -> FoundTexts:
        """Return rows with any of some words, or with all of them, by descending score.

        Parameters
        ----------
        words
            The words; one that is repeated counts more.
        wanted
            Which rows.
        every
            True for rows with all of the words.
        boost
            Factor of the scores.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        best = _Best(wanted)
        different = len(dict.fromkeys(words))
        for searched in self._partitions:
            numbers, weights = self._numbers(searched, words, boost)
            if numbers and not (every and len(numbers) < different):
                best.add(searched, numbers, weights, every=every)
        return best.found()

    def similar(
        self, words: Sequence[str], fuzziness: Fuzziness, wanted: WantedTexts, *, every: bool, boost: float = 1.0
    ) -> FoundTexts:
        """Return rows with words that are similar to any of some words, or to all of them, by descending score.

        Parameters
        ----------
        words
            The words.
        fuzziness
            How similar.
        wanted, every, boost
            As for `match`.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        best = _Best(wanted)
        for searched in self._partitions:
            part = searched.partition
            groups, left = [], fuzziness.most
            for word in words:
                groups.append(part.similar(Similar(word, fuzziness.distance, fuzziness.prefix), left))
                left -= len(groups[-1])
            if not every:
                groups = [[word for group in groups for word in group]]
            if not all(groups):
                continue
            best.add_groups(searched, [self._numbers(searched, group, boost) for group in groups])
        return best.found()

    def occurrences(self, words: Sequence[str], wanted: WantedTexts) -> Occurrences:
        """Return the rows with any of some different words, in no order, and how often they have each of them.

        Parameters
        ----------
        words
            The words.
        wanted
            Which rows; their number is not limited.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        parts = [searched.occurrences(words, wanted.chooser) for searched in self._partitions]
        return Occurrences(
            np.concatenate([np.empty(0, np.uint64), *(part.addresses for part in parts)]),
            np.concatenate([np.empty((0, len(words)), np.int64), *(part.counts for part in parts)]),
        )

    def _numbers(
        self, searched: _Searched, words: Sequence[str], boost: float
    ) -> tuple[list[int], NDArray[np.float32]]:
        """Return the numbers and the weights of words of a partition."""
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        numbers = [(searched.partition.number(word), word) for word in counts]
        known = [(number, word) for number, word in numbers if number is not None]
        weights = np.array([self._weight(word) * counts[word] * boost for _, word in known], np.float32)
        return [number for number, _ in known], weights

    def phrase(self, phrase: PhraseWords, wanted: WantedTexts) -> FoundTexts:
        """Return rows with words in an order, by descending score.

        Parameters
        ----------
        phrase
            The words.
        wanted
            Which rows.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        counts: dict[str, int] = {}
        for word, _ in phrase.words:
            counts[word] = counts.get(word, 0) + 1
        order = list(counts)
        terms = np.array([order.index(word) for word, _ in phrase.words], np.int32)
        places = np.array([place for _, place in phrase.words], np.int32)
        best = _Best(wanted)
        for searched in self._partitions if order else ():
            found = [searched.partition.number(word) for word in order]
            numbers = [number for number in found if number is not None]
            if len(numbers) < len(order):
                continue
            weights = np.array([self._weight(word) * counts[word] for word in order], np.float32)
            best.add(searched, numbers, weights, every=True, phrase=Phrase(terms, places, phrase.slop))
        return best.found()


class _Best:
    """The best rows of several partitions, or all."""

    def __init__(self, wanted: WantedTexts) -> None:
        self._wanted = wanted
        self._parts: list[FoundTexts] = []

    def _worst(self) -> float:
        """Return the score that more rows must exceed."""
        best = self._wanted.best
        if best is None or not self._parts:
            return -1.0
        scores = np.concatenate([part.scores for part in self._parts])
        return -1.0 if len(scores) < best else float(np.partition(scores, len(scores) - best)[len(scores) - best])

    def add(
        self,
        searched: _Searched,
        numbers: Sequence[int],
        weights: NDArray[np.float32],
        *,
        every: bool,
        phrase: Phrase | None = None,
    ) -> None:
        """Search a partition for words, given by number."""
        if self._wanted.best == 0:
            return
        docs, scores = self._search(searched, numbers, weights, every, self._wanted.best, phrase)
        self._parts.append(FoundTexts(searched.addresses[docs], scores))

    def _search(
        self,
        searched: _Searched,
        numbers: Sequence[int],
        weights: NDArray[np.float32],
        every: bool,
        best: int | None,
        phrase: Phrase | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        part = searched.partition
        terms = part.terms(numbers)
        lengths = [term.length for term in terms]
        most = min(lengths) if every or phrase is not None else min(sum(lengths), part.count)
        best = 0 if best is None or best >= most else best
        docs, scores = np.empty(best or most, np.uint32), np.empty(best or most, np.float32)
        chosen = searched.chosen(self._wanted.chooser)
        bits = None if chosen is None else chosen.data
        places = None if phrase is None else part.positions(numbers)
        try:
            count = search(terms, weights, part.norms, bits, every, best, self._worst(), docs, scores, phrase, places)
        except CodecError as error:
            raise part.corrupt(f"postings of the words {list(numbers)}: {error}") from error
        return docs[:count], scores[:count]

    def add_groups(self, searched: _Searched, groups: Sequence[tuple[list[int], NDArray[np.float32]]]) -> None:
        """Search a partition for documents with a word of each group."""
        if len(groups) == 1:
            self.add(searched, *groups[0], every=False)
            return
        docs, scores = self._search(searched, *groups[0], False, None)
        for numbers, weights in groups[1:]:
            others, more = self._search(searched, numbers, weights, False, None)
            docs, mine, theirs = np.intersect1d(docs, others, assume_unique=True, return_indices=True)
            scores = scores[mine] + more[theirs]
        self._parts.append(FoundTexts(searched.addresses[docs], scores))

    def found(self) -> FoundTexts:
        """Return the rows in the order that is wanted."""
        found = FoundTexts.concat(self._parts)
        return found.by_address() if self._wanted.by_address else found.ordered(self._wanted.best)


def _hide_repeated(searched: Sequence[_Searched]) -> None:
    """Hide documents of rows that have a later one: of two documents under a row id, the first is of an old value."""
    seen = np.empty(0, np.uint64)
    for each in reversed(searched):
        each.live[:] &= ~np.isin(each.addresses, seen)
        seen = np.concatenate([seen, each.addresses[each.live]])


class _TextIndices:
    """Full-text indices of a version, by the ids of their columns. Its reader keeps them; a pickle leaves them out."""

    def __init__(self) -> None:
        self.by_field: dict[int, TextIndex | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _TextIndices, ()


def text_index(reader: TableReader, field_id: int) -> TextIndex | None:
    """Return the first full-text index of a column of a version, None without one. It is kept as long as the reader.

    Raises
    ------
    CorruptFileError
        The list of indices, or the metadata of the index, cannot be read.
    """
    manifest = reader.manifest
    if not manifest.index_section or not has_reliable_coverage(manifest):
        return None
    known = reader.companions.setdefault(_TextIndices, _TextIndices())
    assert isinstance(known, _TextIndices)
    if field_id not in known.by_field:
        segments = [each for each in index_segments(weakref.proxy(reader)) if each.kind == _KIND]
        mine = [each for each in segments if tuple(each.metadata.fields) == (field_id,)]
        named = [each for each in mine if each.name == mine[0].name]
        reuse = find_reuse_index(manifest)
        moved = None if reuse is None else relocation(reuse, reader.locator)
        known.by_field[field_id] = TextIndex(named, moved) if named else None
    return known.by_field[field_id]
