"""Search in several columns as one text (BM25F): occurrences and lengths are added up before they are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.text.scoring import Corpus
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.index.text.searching.text_index import TextIndex
from lance_dataset.index.text.searching.wanted import WantedTexts
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.scanned import ScannedTexts
from lance_dataset.scan.full_text.scope import TextScope
from lance_dataset.scan.text_queries import CombinedFieldsQuery, FullTextOperator

__all__ = ["CombinedTerms", "combined_fields", "combined_terms"]


@dataclass(frozen=True, eq=False)
class _Field:
    """Occurrences of words in one column."""

    weight: float
    addresses: NDArray[np.uint64]
    counts: NDArray[np.int64]
    corpus: Corpus
    frequencies: NDArray[np.int64]
    index: TextIndex | None
    texts: ScannedTexts

    @classmethod
    def of(cls, column: TextColumn, weight: float, words: Sequence[str], scope: TextScope, first: TextIndex) -> _Field:
        """Find words in a column, which is analyzed like the column of the first index."""
        left = column.uncovered(scope)
        texts = column.read(words, scope, left, parameters=first.parameters, every_row=True)
        corpus, frequencies = column.statistics(words, texts)
        has = texts.counts.any(axis=1)
        addresses, counts = texts.rows[has], texts.counts[has]
        if column.index is not None:
            wanted = WantedTexts(chooser=scope.chooser(column.index.fragment_ids))
            found = column.index.occurrences(words, wanted)
            addresses = np.concatenate([found.addresses, addresses])
            counts = np.concatenate([found.counts, counts])
        return cls(weight, addresses, counts, corpus, frequencies, column.index, texts)

    def lengths_at(self, rows: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the numbers of words of some rows, which ascend; 0 for rows without a text."""
        found = np.zeros(len(rows), np.int64) if self.index is None else self.index.lengths_at(rows)
        if len(rows):
            places = np.minimum(np.searchsorted(rows, self.texts.rows), len(rows) - 1)
            mine = rows[places] == self.texts.rows
            found[places[mine]] = self.texts.lengths[mine]
        return found


@dataclass(frozen=True, eq=False)
class CombinedTerms:
    """Words of a query in the rows that have any of them.

    Attributes
    ----------
    words
        The different words.
    rows : uint64[n]
        Addresses of the rows, ascending.
    counts : float32[n, words]
        Occurrences of the words, with the weights of the columns.
    lengths, norms : float32[n]
        Number of words of each row, with the weights of the columns; and what is added to the occurrences.
    limits : float32[words]
        Highest score of each word.
    """

    words: tuple[str, ...]
    rows: NDArray[np.uint64]
    counts: NDArray[np.float32]
    lengths: NDArray[np.float32]
    norms: NDArray[np.float32]
    limits: NDArray[np.float32]

    def scores(self, word: int) -> NDArray[np.float32]:
        """Return the score of each row for a word."""
        return self.limits[word] * (self.counts[:, word] / (self.counts[:, word] + self.norms))

    def total(self, *, every: bool) -> FoundTexts:
        """Return the rows with any of the words, or with all of them, and their scores."""
        scores = np.zeros(len(self.rows), np.float32)
        for word in range(len(self.words)):
            scores += self.scores(word)
        kept = (self.counts > 0).all(axis=1) if every else np.ones(len(self.rows), bool)
        return FoundTexts(self.rows[kept], scores[kept])


def combined_fields(query: CombinedFieldsQuery, columns: Mapping[str, TextColumn], scope: TextScope) -> FoundTexts:
    """Return the rows that match a query in several columns, in the order of their addresses.

    A word that the query repeats counts once.

    Parameters
    ----------
    query
        The query.
    columns
        Its columns by name.
    scope
        Rows that may be found.

    Raises
    ------
    InvalidInputError
        No column has an index, or their analyses differ.
    CorruptFileError
        The files of an index contradict the format.

    Notes
    -----
    BM25F after Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", 2004. The number of
    documents and the frequency of a word are the largest of all columns. Lengths are exact, also with blocks of 256.
    """
    terms = combined_terms(query, columns, scope)
    if terms is None:
        return FoundTexts.concat([])
    return terms.total(every=query.operator is FullTextOperator.AND)


def combined_terms(
    query: CombinedFieldsQuery, columns: Mapping[str, TextColumn], scope: TextScope
) -> CombinedTerms | None:
    """Return the words of a query in several columns, as `combined_fields` scores them; None without any."""
    first = _first_index(query, columns)
    words = list(dict.fromkeys(word for word, _ in first.analyzer.tokens(query.query)))
    if not words:
        return None
    boosts = query.boosts or [1.0] * len(query.columns)
    weights = dict(zip(query.columns, boosts, strict=True))
    fields = [_Field.of(columns[name], weight, words, scope, first) for name, weight in weights.items()]
    return _combined(fields, tuple(words))


def _first_index(query: CombinedFieldsQuery, columns: Mapping[str, TextColumn]) -> TextIndex:
    indexed = [columns[name] for name in query.columns if columns[name].index is not None]
    if not indexed or indexed[0].index is None:
        raise InvalidInputError(f"combined_fields requires an inverted index on at least one of {query.columns}")
    first = indexed[0].index
    for column in indexed[1:]:
        if column.index is not None and column.index.parameters.analysis != first.parameters.analysis:
            raise InvalidInputError(
                "combined_fields requires every target column to share the same tokenizer/index configuration; "
                f"column {column.name!r} differs from column {indexed[0].name!r}"
            )
    kinds = {columns[name].is_json for name in query.columns}
    if len(kinds) > 1:
        raise InvalidInputError("combined_fields cannot search columns of JSON documents together with columns of text")
    return first


def _combined(fields: Sequence[_Field], words: tuple[str, ...]) -> CombinedTerms | None:
    rows = np.unique(np.concatenate([field.addresses for field in fields]))
    often = np.zeros((len(rows), len(words)), np.float32)
    lengths = np.zeros(len(rows), np.float32)
    for field in fields:
        weight = np.float32(field.weight)
        often[np.searchsorted(rows, field.addresses)] += weight * field.counts.astype(np.float32)
        lengths += weight * field.lengths_at(rows).astype(np.float32)
    documents = max(field.corpus.documents for field in fields)
    if not documents:
        return None
    tokens = sum(field.weight * field.corpus.tokens for field in fields)
    corpus = Corpus(documents, tokens)
    limits = corpus.limits(np.max([field.frequencies for field in fields], axis=0))
    return CombinedTerms(words, rows, often, lengths, corpus.norms(lengths), limits)
