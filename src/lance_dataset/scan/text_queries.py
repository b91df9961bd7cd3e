"""Queries of full-text searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import Enum

import numpy as np

from lance_dataset.errors import InvalidInputError, OutOfRangeError, WrongTypeError
from lance_dataset.late_dataclass import dataclass

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "CombinedFieldsQuery",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "MatchQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
    "PlainText",
    "check_text_query",
    "matches_of",
    "queries_of",
]

_MOST = (1 << 32) - 1
_LARGEST_BOOST = 1 << 20
#: Largest number of 32 bits: scores have no more.
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


class FullTextOperator(Enum):
    """Number of words of a query that a row needs: all of them, or any."""

    AND = "AND"
    OR = "OR"


class FullTextQueryType(Enum):
    """Kinds of queries."""

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    COMBINED_FIELDS = "combined_fields"
    BOOLEAN = "boolean"


class Occur(Enum):
    """Part of a query in a `BooleanQuery`: it may match, it must, or it must not."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery(ABC):
    """Base class of the queries of full-text searches."""

    @abstractmethod
    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""

    def __and__(self, other: FullTextQuery) -> BooleanQuery:
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> BooleanQuery:
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


@dataclass
class MatchQuery(FullTextQuery):
    """Rows whose text has words of a query.

    Parameters
    ----------
    query
        The words. They are divided and changed like the texts of the column.
    column
        Name of the column.
    boost
        Factor of the scores.
    fuzziness
        Number of characters by which words of the index may differ from those of the query. The words of the query are
        then not changed to lower case, stems and so on. None is 0.
    max_expansions
        Number of such words, at most, in each partition of the index.
    operator
        Whether rows need all words, or any of them.
    prefix_length
        Number of first characters that must not differ.
    document_granularity
        Documents of the index: rows, or the elements of lists. None for those that it has.
    """

    query: str
    column: str
    boost: float = field(default=1.0, kw_only=True)
    fuzziness: int | None = field(default=0, kw_only=True)
    max_expansions: int = field(default=50, kw_only=True)
    operator: FullTextOperator = field(default=FullTextOperator.OR, kw_only=True)
    prefix_length: int = field(default=0, kw_only=True)
    document_granularity: object = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_text("query", self.query)
        _check_text("column", self.column)
        self.boost = _number("boost", self.boost)
        self.fuzziness = 0 if self.fuzziness is None else _count("fuzziness", self.fuzziness)
        self.max_expansions = _count("max_expansions", self.max_expansions)
        self.prefix_length = _count("prefix_length", self.prefix_length)
        _check_kind("operator", self.operator, FullTextOperator)
        _check_granularity(self.document_granularity)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.MATCH


@dataclass
class PhraseQuery(FullTextQuery):
    """Rows whose text has the words of a query in their order. The index needs positions.

    Parameters
    ----------
    query
        The words.
    column
        Name of the column.
    slop
        How many places later than in the query a word may follow the one before.
    document_granularity
        As for `MatchQuery`.
    """

    query: str
    column: str
    slop: int = field(default=0, kw_only=True)
    document_granularity: object = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_text("query", self.query)
        _check_text("column", self.column)
        self.slop = _count("slop", self.slop)
        _check_granularity(self.document_granularity)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.MATCH_PHRASE


@dataclass
class MultiMatchQuery(FullTextQuery):
    """Rows with words of a query in any of several columns. The best column determines the score.

    Parameters
    ----------
    query
        The words.
    columns
        Names of the columns.
    boosts
        Factors of the scores of the columns; None for 1.
    operator
        Whether a column needs all words, or any of them.
    """

    query: str
    columns: list[str]
    boosts: list[float] | None = field(default=None, kw_only=True)
    operator: FullTextOperator = field(default=FullTextOperator.OR, kw_only=True)

    def __post_init__(self) -> None:
        _check_columns(self, "MultiMatchQuery")
        if self.boosts is not None:
            self.boosts = [_number("a boost", boost) for boost in self.boosts]

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.MULTI_MATCH


@dataclass
class CombinedFieldsQuery(FullTextQuery):
    """Rows with words of a query in several columns, which are treated as one text.

    Parameters
    ----------
    query
        The words.
    columns
        Names of the columns.
    boosts
        How many times each column counts, at least 1; None for once.
    operator
        Whether rows need all words, or any of them.
    """

    query: str
    columns: list[str]
    boosts: list[float] | None = field(default=None, kw_only=True)
    operator: FullTextOperator = field(default=FullTextOperator.OR, kw_only=True)

    def __post_init__(self) -> None:
        _check_columns(self, "CombinedFieldsQuery")
        for number, column in enumerate(self.columns):
            if column in self.columns[:number]:
                raise InvalidInputError(f"CombinedFieldsQuery columns must be unique, but {column!r} is duplicated")
        for column, boost in zip(self.columns, self.boosts or (), strict=False):
            if not 1 <= _number("boost", boost) <= _LARGEST_BOOST:
                raise InvalidInputError(
                    f"combined_fields boost for column {column!r} must be a finite value in [1, {_LARGEST_BOOST}], "
                    f"got {boost}"
                )

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.COMBINED_FIELDS


@dataclass
class BoostQuery(FullTextQuery):
    """Rows that match a query; those that match another one, too, have lower scores.

    Parameters
    ----------
    positive
        The query.
    negative
        The other one.
    negative_boost
        Share of the score of the other query that is subtracted.
    """

    positive: FullTextQuery
    negative: FullTextQuery
    negative_boost: float = field(default=0.5, kw_only=True)

    def __post_init__(self) -> None:
        _check_kind("positive", self.positive, FullTextQuery)
        _check_kind("negative", self.negative, FullTextQuery)
        self.negative_boost = _number("negative_boost", self.negative_boost)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.BOOST


@dataclass
class BooleanQuery(FullTextQuery):
    """Rows that match all queries that must match, none that must not, and one of the others if none must.

    Parameters
    ----------
    queries
        Pairs of `Occur` and a query.
    """

    queries: list[tuple[Occur, FullTextQuery]]

    def __post_init__(self) -> None:
        self.queries = [(occur, query) for occur, query in self.queries]
        for occur, query in self.queries:
            _check_kind("the first of a pair", occur, Occur)
            _check_kind("the second of a pair", query, FullTextQuery)

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        return FullTextQueryType.BOOLEAN


def matches_of(query: MultiMatchQuery) -> list[MatchQuery]:
    """Return the query of each column."""
    boosts = [1.0] * len(query.columns) if query.boosts is None else query.boosts
    return [
        MatchQuery(query.query, column, boost=boost, operator=query.operator)
        for column, boost in zip(query.columns, boosts, strict=True)
    ]


def queries_of(query: BooleanQuery, *kinds: Occur) -> list[FullTextQuery]:
    """Return the parts of a query that must match, may match, or must not match."""
    return [each for occur, each in query.queries if occur in kinds]


@dataclass(frozen=True)
class PlainText:
    """Text to search for.

    Attributes
    ----------
    text
        The text.
    columns
        Columns to search; None for all that have an index.
    """

    text: str
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, query: object, columns: object = None) -> FullTextQuery | PlainText:
        """Return the query that a user gives as text, or as an object.

        Raises
        ------
        TypeError
            The query or the columns have the wrong type.
        InvalidInputError
            Columns are given twice.
        """
        if columns is not None and (isinstance(columns, str) or not isinstance(columns, Sequence)):
            raise TypeError(f"columns must be a list of names, not {columns!r}")
        if isinstance(query, FullTextQuery):
            if columns:
                raise InvalidInputError(f"the columns {columns!r} are part of the {type(query).__name__}")
            return query
        _check_text("query", query)
        for column in columns or ():
            _check_text("a column", column)
        return cls(str(query), None if columns is None else tuple(columns))


def check_text_query(query: FullTextQuery) -> None:
    """Check what only a search needs: that boosts are finite in 32 bits, and that a boolean query can match something.

    Raises
    ------
    InvalidInputError
        A part of the query is never valid.
    """
    for part in _parts(query):
        name, boost = ("negative_boost", part.negative_boost) if isinstance(part, BoostQuery) else ("boost", 0.0)
        if isinstance(part, MatchQuery):
            boost = part.boost
        if not 0 <= boost <= _LARGEST_FLOAT:
            raise InvalidInputError(f"{type(part).__name__} {name} must be finite and non-negative, got {boost}")
        if isinstance(part, BooleanQuery) and not queries_of(part, Occur.MUST, Occur.SHOULD):
            raise InvalidInputError("boolean query must have at least one should/must query")


def _parts(query: FullTextQuery) -> Iterator[FullTextQuery]:
    """Yield a query and all queries inside."""
    yield query
    inner: Sequence[FullTextQuery] = ()
    if isinstance(query, BoostQuery):
        inner = query.positive, query.negative
    elif isinstance(query, BooleanQuery):
        inner = [each for _, each in query.queries]
    elif isinstance(query, MultiMatchQuery):
        inner = matches_of(query)
    for each in inner:
        yield from _parts(each)


# -- checks ------------------------------------------------------------------------------------------------------


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {type(value).__name__}")


def _check_columns(query: MultiMatchQuery | CombinedFieldsQuery, name: str) -> None:
    _check_text("query", query.query)
    _check_kind("operator", query.operator, FullTextOperator)
    columns: object = query.columns
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a list of names, not {type(columns).__name__}")
    for column in columns:
        _check_text("a column", column)
    if not query.columns:
        raise InvalidInputError(f"Cannot create {name} with no columns")
    if query.boosts is not None and len(query.boosts) != len(query.columns):
        raise InvalidInputError("The number of boosts must match the number of queries")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    return float(value)


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise WrongTypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if not 0 <= value <= _MOST:
        raise OutOfRangeError(f"{name} must be between 0 and {_MOST}, not {value}")
    return int(value)


def _check_kind(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {value!r}")


def _check_granularity(value: object) -> None:
    if value is not None and not isinstance(value, Enum):
        raise TypeError(f"document_granularity must be a DocumentGranularity, not {value!r}")
