"""Explanations of scores: what each word of a query contributes to the score of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.text.scoring import K1
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.searched_partition import SearchedPartition
from lance_dataset.index.text.searching.text_index import TextIndex
from lance_dataset.index.text.searching.wanted import Fuzziness
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.combined_fields import combined_terms
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.text_queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    matches_of,
    queries_of,
)

__all__ = ["EXPLANATION", "explanations"]

#: Column that explanations add to a search.
EXPLANATION = pa.field(
    "_explanation",
    pa.list_(
        pa.struct(
            [
                pa.field("column", pa.string()),
                pa.field("term", pa.string()),
                *(pa.field(name, pa.float32()) for name in ("idf", "boost", "frequency", "length", "norm", "score")),
            ]
        )
    ),
)


@dataclass(frozen=True)
class _Term:
    """Contribution of a word: ``boost * idf * 2.2 * frequency / (frequency + norm)``."""

    column: str
    term: str
    idf: float
    boost: float
    frequency: float
    length: float
    norm: float
    score: float

    def times(self, factor: float) -> _Term:
        """Return the contribution with another factor."""
        return replace(self, boost=self.boost * factor, score=self.score * factor)


@dataclass
class _Row:
    """Score of a row for a part of a query."""

    score: float
    terms: list[_Term] = field(default_factory=list)

    def plus(self, other: _Row, factor: float = 1) -> _Row:
        """Return the sum of both."""
        return _Row(self.score + factor * other.score, self.terms + [term.times(factor) for term in other.terms])


#: Scores of documents by the addresses of their rows, and their places in lists, 0 for whole rows.
_Rows = dict[tuple[int, int], _Row]


def explanations(
    search: TextSearch, scope: SearchScope, addresses: NDArray[np.uint64], elements: pa.ListArray | None = None
) -> pa.Array:
    """Return the contributions of the words of a query to the scores of rows, as a value of `EXPLANATION` for each.

    They add up to the score. This searches again, without a limit.

    Parameters
    ----------
    search
        The query and its columns.
    scope
        Rows that may be found.
    addresses : uint64[n]
        Addresses of the rows.
    elements
        Places of the elements of lists that were found; None if rows are documents.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    """
    found = _Explainer(search.columns, scope, addresses).rows(search.query)
    places = [[0]] * len(addresses) if elements is None else elements.to_pylist()
    keys = zip(addresses.tolist(), places, strict=True)
    rows = [None if place is None else found.get((address, place[0])) for address, place in keys]
    return pa.array([None if row is None else [asdict(term) for term in row.terms] for row in rows], EXPLANATION.type)


class _Explainer:
    """Scores of some rows for the parts of a query."""

    def __init__(self, columns: Mapping[str, TextColumn], scope: SearchScope, addresses: NDArray[np.uint64]) -> None:
        self._columns = columns
        self._scope = scope
        self._wanted = np.sort(addresses)

    def rows(self, query: FullTextQuery) -> _Rows:
        """Return the rows that match a query, with its words."""
        if isinstance(query, MatchQuery | PhraseQuery):
            return self._leaf(query)
        if isinstance(query, MultiMatchQuery):
            best: _Rows = {}
            for part in matches_of(query):
                for address, row in self._leaf(part).items():
                    if address not in best or row.score > best[address].score:
                        best[address] = row
            return best
        if isinstance(query, CombinedFieldsQuery):
            return self._combined(query)
        if isinstance(query, BoostQuery):
            positive, negative = self.rows(query.positive), self.rows(query.negative)
            nothing = _Row(0)
            return {
                address: row.plus(negative.get(address, nothing), -query.negative_boost)
                for address, row in positive.items()
            }
        if isinstance(query, BooleanQuery):
            return self._boolean(query)
        raise UnsupportedError(f"{type(query).__name__} is not supported by this release")

    def _boolean(self, query: BooleanQuery) -> _Rows:
        must, should = ([self.rows(part) for part in queries_of(query, occur)] for occur in (Occur.MUST, Occur.SHOULD))
        kept = set.intersection(*map(set, must)) if must else {address for part in should for address in part}
        for part in queries_of(query, Occur.MUST_NOT):
            kept -= self.rows(part).keys()
        found: _Rows = {}
        for address in kept:
            row = _Row(0)
            for rows in (*must, *should):
                row = row.plus(rows[address]) if address in rows else row
            found[address] = row
        return found

    def _chosen(self, found: FoundTexts) -> _Rows:
        """Return the rows to explain among those found."""
        mine = found.take(np.flatnonzero(np.isin(found.addresses, self._wanted)))
        elements = [0] * len(mine.scores) if mine.elements is None else mine.elements.tolist()
        documents = zip(mine.addresses.tolist(), elements, strict=True)
        return {key: _Row(score) for key, score in zip(documents, mine.scores.tolist(), strict=True)}

    def _leaf(self, query: MatchQuery | PhraseQuery) -> _Rows:
        column = self._columns[query.column]
        if isinstance(query, PhraseQuery):
            rows, boost = self._chosen(column.phrase(query, self._scope, None, by_address=True)), 1.0
        else:
            rows, boost = self._chosen(column.match(query, self._scope, None, by_address=True)), query.boost
        words = [word for word, _ in column.analyzer.tokens(query.query)]
        index = column.searched_index(words, self._scope)
        if index is not None:
            for searched, mine in _searched_words(query, column, index, words):
                self._add_indexed(rows, (column.name, index), searched, mine, boost)
        left = column.uncovered(self._scope)
        if left and words:
            self._add_scanned(rows, column, words, boost, left)
        return rows

    def _add_indexed(
        self,
        rows: _Rows,
        source: tuple[str, TextIndex],
        searched: SearchedPartition,
        words: Mapping[str, int],
        boost: float,
    ) -> None:
        part, (column, index) = searched.partition, source
        wanted = np.array([address for address, _ in rows], np.uint64)
        for word, repeats in words.items():
            number = part.number(word)
            if number is None:
                continue
            docs, often = part.decoded(number)
            mine = searched.live[docs] & np.isin(searched.addresses[docs], wanted)
            docs, often = docs[mine], often[mine]
            limit = index.weight(word)
            for doc, count in zip(docs.tolist(), often.tolist(), strict=True):
                row = rows.get((int(searched.addresses[doc]), 0 if part.elements is None else int(part.elements[doc])))
                if row is not None:
                    length, norm = int(part.lengths[doc]), part.norms[doc]
                    row.terms.append(_term(column, word, limit, repeats * boost, count, length, norm))

    def _add_scanned(
        self, rows: _Rows, column: TextColumn, words: Sequence[str], boost: float, positions: tuple[int, ...]
    ) -> None:
        different = list(dict.fromkeys(words))
        texts = column.read(different, self._scope, positions)
        corpus, frequencies = column.statistics(different, texts)
        if not corpus.documents:
            return
        limits, norms = corpus.limits(frequencies), corpus.norms(texts.lengths)
        elements = [0] * len(texts.rows) if texts.elements is None else texts.elements.tolist()
        for place, key in enumerate(zip(texts.rows.tolist(), elements, strict=True)):
            for number, word in enumerate(different) if key in rows else ():
                count = int(texts.counts[place, number])
                if count:
                    factor, length = words.count(word) * boost, int(texts.lengths[place])
                    term = _term(column.name, word, limits[number], factor, count, length, norms[place])
                    rows[key].terms.append(term)

    def _combined(self, query: CombinedFieldsQuery) -> _Rows:
        terms = combined_terms(query, self._columns, self._scope)
        if terms is None:
            return {}
        rows = self._chosen(terms.total(every=query.operator is FullTextOperator.AND))
        name = ", ".join(query.columns)
        for place, address in enumerate(terms.rows.tolist()):
            for number, word in enumerate(terms.words) if (address, 0) in rows else ():
                count = float(terms.counts[place, number])
                if count:
                    length, norm = float(terms.lengths[place]), terms.norms[place]
                    rows[address, 0].terms.append(_term(name, word, terms.limits[number], 1, count, length, norm))
        return rows


def _searched_words(
    query: MatchQuery | PhraseQuery, column: TextColumn, index: TextIndex, words: Sequence[str]
) -> Iterator[tuple[SearchedPartition, Mapping[str, int]]]:
    """Yield each partition with the words that are searched for in it, and how many times each counts."""
    if isinstance(query, MatchQuery) and query.fuzziness:
        plain = [word for word, _ in column.analyzer.tokens(query.query, unfiltered=True)]
        fuzziness = Fuzziness(query.fuzziness, query.prefix_length, query.max_expansions)
        for searched, groups in index.similar_words(plain, fuzziness):
            yield searched, Counter(word for group in groups for word in group)
    else:
        for searched in index.partitions:
            yield searched, Counter(words)


def _term(
    column: str, word: str, limit: np.float32, boost: float, frequency: float, length: float, norm: np.float32
) -> _Term:
    often = np.float32(frequency)
    score = np.float32(limit * np.float32(boost)) * (often / (often + norm))
    return _Term(column, word, float(limit / (K1 + 1)), boost, frequency, length, float(norm), float(score))
