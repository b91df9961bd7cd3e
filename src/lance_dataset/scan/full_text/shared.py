"""Full-text searches in several sources, whose scores are relative to the texts of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.query_tokens import QueryAnalyzer
from lance_dataset.index.text.searching.text_index import TextIndex
from lance_dataset.index.text.searching.wanted import Chooser, PhraseWords
from lance_dataset.index.text.training.parameters import InvertedParameters
from lance_dataset.properties import cached_property
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.evaluating import TextSearch, columns_of, leaves_of
from lance_dataset.scan.full_text.scanned import ScannedTexts
from lance_dataset.scan.full_text.scope import TextScope
from lance_dataset.scan.text_queries import FullTextQuery, MatchQuery, MultiMatchQuery, PhraseQuery

__all__ = ["SharedScope", "TextSource", "check_shared", "find_in_sources"]


class SharedScope(TextScope, Protocol):
    """Rows of one source of several. Its texts are those of all rows, also of those that may not be found."""

    def read_chooser(self, positions: tuple[int, ...]) -> Chooser | None:
        """Return the function that says which rows may be found, of those whose texts are read; None for all."""
        ...

    def read(
        self, column: TextColumn, words: Sequence[str], positions: tuple[int, ...], parameters: InvertedParameters
    ) -> ScannedTexts:
        """Find different words in the texts of parts that no index covers."""
        ...


@dataclass(frozen=True)
class TextSource:
    """One of several sources.

    Attributes
    ----------
    scope
        Its rows.
    columns
        The columns of a query by name, with the indices of the source.
    """

    scope: SharedScope
    columns: Mapping[str, TextColumn]


@dataclass(frozen=True)
class _Statistics:
    """Texts of a column in all sources.

    Attributes
    ----------
    corpus
        The texts.
    frequencies
        Number of texts with each word of the query.
    """

    corpus: Corpus
    frequencies: Mapping[str, int]


@dataclass(frozen=True)
class _SharedColumn(TextColumn):
    """A column in one of several sources.

    Attributes
    ----------
    leading
        The column of the source whose analysis is that of the query.
    total
        Texts of all sources.
    known
        Occurrences of the words of the query in the texts of this source that have no index.
    read_chooser
        Function that says which rows of these texts may be found; None for all.
    """

    leading: TextColumn = field(kw_only=True)
    total: _Statistics = field(kw_only=True)
    known: ScannedTexts = field(kw_only=True)
    read_chooser: Chooser | None = field(default=None, kw_only=True)

    @cached_property
    def parameters(self) -> InvertedParameters:
        """Parameters of the texts."""
        return self.leading.parameters

    @cached_property
    def analyzer(self) -> QueryAnalyzer:
        """Analysis of queries."""
        return self.leading.analyzer

    def searched_index(self, words: Sequence[str], scope: TextScope) -> TextIndex | None:
        """Return the index, with scores that count the texts of all sources."""
        index = self.index
        if index is None:
            return None
        own, total = index.corpus, self.total
        others = Corpus(total.corpus.documents - own.documents, total.corpus.tokens - own.tokens)
        if not others.documents:
            return index
        return index.with_added(others, {word: total.frequencies[word] - index.frequency(word) for word in set(words)})

    def read(
        self,
        words: Sequence[str],
        scope: TextScope,
        positions: tuple[int, ...],
        *,
        parameters: InvertedParameters | None = None,
        every_row: bool = False,
    ) -> ScannedTexts:
        """Return the occurrences of some words of the query, which are known."""
        order = list(self.total.frequencies)
        return self.known.of_words([order.index(word) for word in words])

    def statistics(self, words: Sequence[str], texts: ScannedTexts) -> tuple[Corpus, NDArray[np.int64]]:
        """Return the texts of all sources, and how many of them have words."""
        total = self.total
        return total.corpus, np.array([total.frequencies[word] for word in words], np.int64)

    def _scanned(
        self,
        words: Sequence[str],
        scope: TextScope,
        positions: tuple[int, ...],
        *,
        every: bool,
        boost: float = 1.0,
        phrase: PhraseWords | None = None,
    ) -> FoundTexts:
        found = super()._scanned(words, scope, positions, every=every, boost=boost, phrase=phrase)
        if self.read_chooser is None:
            return found
        return found.take(np.flatnonzero(self.read_chooser(found.addresses)))


def check_shared(query: FullTextQuery) -> None:
    """Raise UnsupportedError unless scores of a query can be compared between sources."""
    for leaf in leaves_of(query):
        if isinstance(leaf, MatchQuery) and leaf.fuzziness:
            raise UnsupportedError(
                "a search for similar words (fuzziness) takes them from the index of the table, which lacks those of "
                "shards; merge the shards first, or search for words as they are"
            )
        if not isinstance(leaf, MatchQuery | PhraseQuery | MultiMatchQuery):
            raise UnsupportedError(
                f"{type(leaf).__name__} is not supported for shards; merge them first, or use a MultiMatchQuery"
            )


def find_in_sources(query: FullTextQuery, sources: Sequence[TextSource], best: int | None) -> list[FoundTexts]:
    """Return the rows of each source that match a query, by descending score.

    Scores are relative to the documents of all indices, deleted ones included, and to all texts that are read.

    Parameters
    ----------
    query
        The query, which `check_shared` has accepted.
    sources
        The sources. The analysis of the first one is that of the query, and the indices of the others have the same.
    best
        Number of rows of each source; None for all.

    Raises
    ------
    CorruptFileError, InvalidInputError
        As for `TextSearch.find`.
    """
    words = _words_by_column(query, sources[0].columns)
    columns: list[dict[str, _SharedColumn]] = [{} for _ in sources]
    for name, mine in words.items():
        for known, column in zip(columns, _shared(name, mine, sources), strict=True):
            known[name] = column
    return [
        TextSearch(query, dict(known)).find(source.scope, best) for source, known in zip(sources, columns, strict=True)
    ]


def _words_by_column(query: FullTextQuery, columns: Mapping[str, TextColumn]) -> dict[str, list[str]]:
    """Return the different words that a query looks for in each column."""
    found: dict[str, list[str]] = {name: [] for name in columns}
    for leaf in leaves_of(query):
        if isinstance(leaf, MatchQuery | PhraseQuery | MultiMatchQuery):
            for name in columns_of(leaf):
                found[name] += [word for word, _ in columns[name].analyzer.tokens(leaf.query)]
    return {name: list(dict.fromkeys(words)) for name, words in found.items()}


def _shared(name: str, words: Sequence[str], sources: Sequence[TextSource]) -> list[_SharedColumn]:
    """Return a column of each source, which knows the texts of all."""
    leading = sources[0].columns[name]
    columns = [source.columns[name] for source in sources]
    texts, choosers = [], []
    for source, column in zip(sources, columns, strict=True):
        left = column.uncovered(source.scope)
        texts.append(source.scope.read(column, words, left, leading.parameters))
        choosers.append(source.scope.read_chooser(left) if left else None)
    total = _statistics(words, texts, [column.index for column in columns if column.index is not None])
    return [
        _SharedColumn(
            *(name, column.output, column.is_json, column.index, column.by_element),
            leading=leading,
            total=total,
            known=known,
            read_chooser=chooser,
        )
        for column, known, chooser in zip(columns, texts, choosers, strict=True)
    ]


def _statistics(words: Sequence[str], texts: Sequence[ScannedTexts], indices: Sequence[TextIndex]) -> _Statistics:
    """Return the texts that are read and those of indices, and how many of them have each word."""
    frequencies = np.zeros(len(words), np.int64)
    for each in texts:
        frequencies += each.frequencies()
    for index in indices:
        frequencies += np.array([index.frequency(word) for word in words], np.int64)
    corpora = [*(each.corpus for each in texts), *(index.corpus for index in indices)]
    corpus = Corpus(sum(known.documents for known in corpora), sum(known.tokens for known in corpora))
    return _Statistics(corpus, dict(zip(words, frequencies.tolist(), strict=True)))
