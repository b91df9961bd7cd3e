"""Evaluation of full-text queries: the rows that match, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, UnsupportedError
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.combined_fields import combined_fields
from lance_dataset.scan.full_text.scope import TextScope
from lance_dataset.scan.text_queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    matches_of,
    queries_of,
)
from lance_dataset.types.schema import Schema

__all__ = ["TextSearch", "columns_of", "leaves_of"]

Scores = NDArray[np.float32]

_MIXED = "FTS queries cannot mix Row and ListElement document granularities"


@dataclass(frozen=True)
class TextSearch:
    """A query with the columns that it searches.

    Attributes
    ----------
    query
        The query.
    columns
        Its columns by name.
    """

    query: FullTextQuery
    columns: dict[str, TextColumn]

    @classmethod
    def of(cls, reader: TableReader, schema: Schema, query: FullTextQuery, *, by_row: bool = False) -> TextSearch:
        """Find the columns of a query.

        Parameters
        ----------
        reader
            The version.
        schema
            Its schema.
        query
            The query.
        by_row
            True if documents are rows in all columns for which the query does not say what they are.

        Raises
        ------
        FieldNotFoundError, InvalidInputError
            See `TextColumn.of`.
        UnsupportedError
            The documents of columns differ, or several are searched for elements of lists.
        """
        wanted, other = granularities(query), "row" if by_row else None
        columns = {name: TextColumn.of(reader, schema, name, wanted.get(name, other)) for name in columns_of(query)}
        search = cls(query, columns)
        if search.by_element:
            _check_elements(query, columns)
        return search

    @property
    def by_element(self) -> bool:
        """True if the elements of lists are documents."""
        return any(column.by_element for column in self.columns.values())

    def find(self, scope: TextScope, best: int | None) -> FoundTexts:
        """Return the rows that match, by descending score.

        Parameters
        ----------
        scope
            Rows that may be found.
        best
            Number of rows; None for all.

        Raises
        ------
        CorruptFileError
            The files of an index contradict the format.
        InvalidInputError
            A phrase is searched for in an index without positions, or boosts are too large for scores of 32 bits.
        """
        return self._find(self.query, scope, best)

    def _find(self, query: FullTextQuery, scope: TextScope, best: int | None) -> FoundTexts:
        if isinstance(query, MatchQuery):
            return self.columns[query.column].match(query, scope, best)
        if isinstance(query, PhraseQuery):
            return self.columns[query.column].phrase(query, scope, best)
        if isinstance(query, MultiMatchQuery):
            # A row among the best ones is among the best ones of the column that determines its score.
            parts = [self._find(part, scope, best).by_address() for part in matches_of(query)]
            return _joined(parts, np.maximum).ordered(best)
        found = self._rows(query, scope)
        if not np.isfinite(found.scores).all():
            raise InvalidInputError(f"{type(query).__name__} produces a score that is not finite; use smaller boosts")
        return found.ordered(best)

    def _rows(self, query: FullTextQuery, scope: TextScope) -> FoundTexts:
        """Return all rows that match, in the order of their addresses, in which they are combined."""
        if isinstance(query, MatchQuery):
            return self.columns[query.column].match(query, scope, None, by_address=True)
        if isinstance(query, PhraseQuery):
            return self.columns[query.column].phrase(query, scope, None, by_address=True)
        if isinstance(query, MultiMatchQuery):
            return _joined([self._rows(part, scope) for part in matches_of(query)], np.maximum)
        if isinstance(query, CombinedFieldsQuery):
            return combined_fields(query, self.columns, scope)
        if isinstance(query, BoostQuery):
            positive, negative = self._rows(query.positive, scope), self._rows(query.negative, scope)
            factor = -np.float32(query.negative_boost)
            with np.errstate(over="ignore"):
                lowered = negative.with_scores(negative.scores * factor)
            return _raised(positive, lowered)
        if isinstance(query, BooleanQuery):
            return self._boolean(query, scope)
        raise UnsupportedError(f"{type(query).__name__} is not supported by this release")

    def _boolean(self, query: BooleanQuery, scope: TextScope) -> FoundTexts:
        parts = {occur: [self._rows(each, scope) for each in queries_of(query, occur)] for occur in Occur}
        should = _joined(parts[Occur.SHOULD], np.add)
        found = should
        if parts[Occur.MUST]:
            found = _raised(reduce(_both, parts[Occur.MUST]), should)
        for part in parts[Occur.MUST_NOT]:
            found = found.without(found.places(part)[0])
        return found


def columns_of(query: FullTextQuery) -> list[str]:
    """Return the names of the columns that a query searches."""
    if isinstance(query, MatchQuery | PhraseQuery):
        return [query.column]
    if isinstance(query, CombinedFieldsQuery):
        return list(dict.fromkeys(query.columns))
    if isinstance(query, BoostQuery):
        inner: Sequence[FullTextQuery] = (query.positive, query.negative)
    elif isinstance(query, BooleanQuery):
        inner = [each for _, each in query.queries]
    elif isinstance(query, MultiMatchQuery):
        inner = matches_of(query)
    else:
        raise UnsupportedError(f"{type(query).__name__} is not supported by this release")
    return list(dict.fromkeys(name for each in inner for name in columns_of(each)))


def granularities(query: FullTextQuery) -> dict[str, str]:
    """Return what documents are in each column, as far as a query says so.

    Raises
    ------
    InvalidInputError
        Its parts contradict each other.
    """
    found: dict[str, str] = {}
    for leaf in leaves_of(query):
        wanted = getattr(leaf, "document_granularity", None)
        for name in columns_of(leaf):
            if wanted is not None and found.setdefault(name, wanted.value) != wanted.value:
                raise InvalidInputError(_MIXED)
    return found


def leaves_of(query: FullTextQuery) -> Iterator[FullTextQuery]:
    """Yield the parts of a query that search columns."""
    if isinstance(query, BoostQuery):
        yield from leaves_of(query.positive)
        yield from leaves_of(query.negative)
    elif isinstance(query, BooleanQuery):
        for _, part in query.queries:
            yield from leaves_of(part)
    else:
        yield query


def _check_elements(query: FullTextQuery, columns: Mapping[str, TextColumn]) -> None:
    """Raise an error unless a query can search elements of lists."""
    for leaf in leaves_of(query):
        if isinstance(leaf, MultiMatchQuery):
            raise UnsupportedError("MultiMatch does not support ListElement document granularity")
        if isinstance(leaf, CombinedFieldsQuery):
            raise UnsupportedError(
                "combined_fields (BM25F) scores whole rows and needs a Row document granularity FTS index on every "
                "target column"
            )
    if not all(column.by_element for column in columns.values()):
        raise InvalidInputError(_MIXED)
    if len(columns) > 1:
        raise InvalidInputError("all leaves in a ListElement FTS query must use the same final field")


def _joined(parts: Sequence[FoundTexts], combine: Callable[[Scores, Scores], Scores]) -> FoundTexts:
    """Return the rows of any part; the scores of rows that are in several are combined."""
    if not parts:
        return FoundTexts.concat([])
    found = parts[0]
    for part in parts[1:]:
        mine, theirs = found.places(part)
        scores = found.scores.copy()
        scores[mine] = combine(scores[mine], part.scores[theirs])
        found = FoundTexts.concat([found.with_scores(scores), part.without(theirs)]).by_address()
    return found


def _both(first: FoundTexts, second: FoundTexts) -> FoundTexts:
    """Return the rows that are in both, with the sum of the scores."""
    mine, theirs = first.places(second)
    return first.take(mine).with_scores(first.scores[mine] + second.scores[theirs])


def _raised(found: FoundTexts, others: FoundTexts) -> FoundTexts:
    """Return rows with their scores, and those that others have for them, added up."""
    mine, theirs = found.places(others)
    scores = found.scores.copy()
    scores[mine] += others.scores[theirs]
    return found.with_scores(scores)
