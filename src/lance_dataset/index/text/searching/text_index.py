"""Searches in full-text indices: the rows of a version whose documents have some words, with their scores."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.index.segments import Segment, index_segments
from lance_dataset.index.text.layout import METADATA_FILE, InvertedLayout
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.best_texts import BestTexts
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.open_partition import OpenPartition
from lance_dataset.index.text.searching.partition import Partition
from lance_dataset.index.text.searching.query_tokens import QueryAnalyzer
from lance_dataset.index.text.searching.searched_partition import SearchedPartition
from lance_dataset.index.text.searching.single_partition import SINGLE_FILES, SinglePartition
from lance_dataset.index.text.searching.term_cache import TermCache
from lance_dataset.index.text.searching.wanted import Fuzziness, Occurrences, PhraseWords, WantedTexts
from lance_dataset.index.text.searching.words import Similar
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.properties import cached_property
from lance_dataset.read.table_reader import TableReader
from lance_dataset.table.indices.coverage import has_reliable_coverage
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.indices.reuse import find_reuse_index, relocation
from lance_dataset.table.row_addresses import by_fragment, fragments_of, offsets_of
from lancecodec.search.postings import Phrase

__all__ = [
    "TextIndex",
    "text_indices",
]

_KIND = "inverted"
#: Words whose weights are remembered.
_KNOWN_WORDS = 1 << 14


class TextIndex:
    """One full-text index of a version, with all of its segments.

    Attributes
    ----------
    name
        Its name.
    segments
        Its segments; scores are relative to the documents of those whose fragments are gone, too.
    parameters
        Its parameters.
    analyzer
        Analysis of queries.
    """

    def __init__(self, segments: Sequence[Segment], moved: Relocation | None) -> None:
        self.name = segments[0].name
        self.segments, self._moved = tuple(segments), moved
        first = segments[0]
        details = first.metadata.details
        self.parameters = InvertedParameters.of_index(b"" if details is None else details.value, first.folder)
        column = first.reader.manifest.schema.by_id[first.metadata.fields[0]]
        self.analyzer = QueryAnalyzer(self.parameters.analysis, is_json=column.logical_type == "json")
        self._cache = TermCache()
        self._weights: dict[str, np.float32] = {}
        self._added, self._added_frequencies = Corpus(0, 0), dict[str, int]()
        self._extended: TextIndex | None = None

    def with_added(self, corpus: Corpus, frequencies: Mapping[str, int]) -> TextIndex:
        """Return the index with scores that are relative to other documents, too, which it does not find.

        Parameters
        ----------
        corpus
            The other documents.
        frequencies
            How many of them have each word of the query.
        """
        known = self._extended
        if known is None or known._added != corpus:
            known = self._extended = self._measured(corpus)
        found = copy.copy(known)
        found._weights, found._added_frequencies = {}, dict(frequencies)
        return found

    def _measured(self, added: Corpus) -> TextIndex:
        """Return the index, whose files are open, with scores that are relative to other documents, too."""
        own, made = self.corpus, copy.copy(self)
        corpus = Corpus(own.documents + added.documents, own.tokens + added.tokens)
        made._added, made._extended, made._cache = added, None, TermCache()
        made.__dict__["corpus"] = corpus
        made.__dict__["partitions"] = tuple(each.measured(corpus, made._cache) for each in self.partitions)
        return made

    def prewarm(self) -> None:
        """Open the files of all partitions now instead of for the first query."""
        self.partitions  # noqa: B018

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Fragments that it covers."""
        return frozenset().union(*(segment.fragment_ids for segment in self.segments))

    @cached_property
    def partitions(self) -> tuple[SearchedPartition, ...]:
        """Partitions of all segments."""
        found = [(segment, gone, part) for segment in self.segments for gone, part in self._opened(segment)]
        added = self._added
        corpus = Corpus(
            sum(part.count for *_, part in found) + added.documents,
            sum(part.num_tokens for *_, part in found) + added.tokens,
        )
        searched = []
        for segment, gone, part in found:
            if not part.count:
                continue
            if (part.elements is not None) != self.parameters.by_element:
                kind = "rows, but elements of lists" if self.parameters.by_element else "elements of lists, but rows"
                raise part.corrupt(f"its documents are {kind} are those of the index")
            part.measure(corpus)
            addresses, live = self._places(segment, part.ids)
            live &= ~np.isin(fragments_of(addresses), gone)
            searched.append(SearchedPartition(part, addresses, live))
        if self.segments and self.segments[0].reader.manifest.uses_stable_row_ids:
            _hide_repeated(searched)
        return tuple(searched)

    def _opened(self, segment: Segment) -> list[tuple[NDArray[np.uint64], Partition]]:
        """Return the partitions of a segment, with the fragments that must not be found in them."""
        folder = segment.folder
        if METADATA_FILE not in folder.names():
            return [(np.empty(0, np.uint64), SinglePartition(folder, self._cache))]
        layout = InvertedLayout.read(folder)
        gone = layout.ignored_fragments.astype(np.uint64)
        return [(gone, OpenPartition(folder, layout, files, self._cache)) for files in layout.partitions]

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
        parts = [searched.partition for searched in self.partitions]
        documents, tokens = sum(part.count for part in parts), sum(part.num_tokens for part in parts)
        return Corpus(documents + self._added.documents, tokens + self._added.tokens)

    def frequency(self, word: str) -> int:
        """Return the number of documents that have a word; deleted ones are among them."""
        found = self._added_frequencies.get(word, 0)
        for searched in self.partitions:
            number = searched.partition.number(word)
            if number is not None:
                found += searched.partition.frequency(number)
        return found

    def lengths_at(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the exact lengths of the documents of rows, 0 for rows without one, int64[n]."""
        found = np.zeros(len(addresses), np.int64)
        for searched in self.partitions:
            found += searched.lengths_at(addresses)
        return found

    def weight(self, word: str) -> np.float32:
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
        return all(searched.partition.has_positions for searched in self.partitions)

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
        best = BestTexts(wanted)
        different = len(dict.fromkeys(words))
        for searched in self.partitions:
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
        best = BestTexts(wanted)
        for searched, groups in self.similar_words(words, fuzziness):
            if not every:
                groups = [[word for group in groups for word in group]]
            if not all(groups):
                continue
            best.add_groups(searched, [self._numbers(searched, group, boost) for group in groups])
        return best.found()

    def similar_words(
        self, words: Sequence[str], fuzziness: Fuzziness
    ) -> Iterator[tuple[SearchedPartition, list[list[str]]]]:
        """Yield each partition with its words that are similar to some words, for each of these."""
        for searched in self.partitions:
            groups, left = [], fuzziness.most
            for word in words:
                pattern = Similar(word, fuzziness.distance, fuzziness.prefix)
                groups.append(searched.partition.similar(pattern, left))
                left -= len(groups[-1])
            yield searched, groups

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
        parts = [searched.occurrences(words, wanted.chooser) for searched in self.partitions]
        return Occurrences(
            np.concatenate([np.empty(0, np.uint64), *(part.addresses for part in parts)]),
            np.concatenate([np.empty((0, len(words)), np.int64), *(part.counts for part in parts)]),
        )

    def _numbers(
        self, searched: SearchedPartition, words: Sequence[str], boost: float
    ) -> tuple[list[int], NDArray[np.float32]]:
        """Return the numbers and the weights of words of a partition."""
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        numbers = [(searched.partition.number(word), word) for word in counts]
        known = [(number, word) for number, word in numbers if number is not None]
        weights = np.array([self.weight(word) * counts[word] * boost for _, word in known], np.float32)
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
        best = BestTexts(wanted)
        for searched in self.partitions if order else ():
            found = [searched.partition.number(word) for word in order]
            numbers = [number for number in found if number is not None]
            if len(numbers) < len(order):
                continue
            weights = np.array([self.weight(word) * counts[word] for word in order], np.float32)
            best.add(searched, numbers, weights, every=True, phrase=Phrase(terms, places, phrase.slop))
        return best.found()


def _hide_repeated(searched: Sequence[SearchedPartition]) -> None:
    """Hide documents of rows that have a later one: of two documents under a row id, the first is of an old value."""
    seen = np.empty(0, np.uint64)
    for each in reversed(searched):
        each.live[:] &= ~np.isin(each.addresses, seen)
        seen = np.concatenate([seen, each.addresses[each.live]])


def _is_text(segment: Segment) -> bool:
    """Return True for segments of full-text indices; early releases, and some programs, do not record the kind."""
    if segment.kind is not None:
        return segment.kind == _KIND
    names = segment.folder.names()
    return METADATA_FILE in names or SINGLE_FILES.issubset(names)


class _TextIndices:
    """Full-text indices of a version, by the ids of their columns. Its reader keeps them; a pickle leaves them out."""

    def __init__(self) -> None:
        self.by_field: dict[int, tuple[TextIndex, ...]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _TextIndices, ()


def text_indices(reader: TableReader, field_id: int) -> tuple[TextIndex, ...]:
    """Return the full-text indices of a column of a version. They are kept as long as the reader.

    Raises
    ------
    CorruptFileError
        The list of indices, or the metadata of an index, cannot be read.
    """
    manifest = reader.manifest
    if not manifest.index_section or not has_reliable_coverage(manifest):
        return ()
    known = reader.companions.setdefault(_TextIndices, _TextIndices())
    assert isinstance(known, _TextIndices)
    if field_id not in known.by_field:
        segments = [each for each in index_segments(weakref.proxy(reader)) if _is_text(each)]
        named: dict[str, list[Segment]] = {}
        for each in segments:
            if tuple(each.metadata.fields) == (field_id,):
                named.setdefault(each.name, []).append(each)
        reuse = find_reuse_index(manifest)
        moved = None if reuse is None else relocation(reuse, reader.locator)
        known.by_field[field_id] = tuple(TextIndex(group, moved) for group in named.values())
    return known.by_field[field_id]
