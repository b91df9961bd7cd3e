"""Highlights: snippets of the texts of rows, with the words of a query and their places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.text.analysis.batches import TokenSpan
from lance_dataset.index.text.searching.passages import Passage, PassageReader
from lance_dataset.index.text.searching.wanted import Fuzziness, PhraseWords
from lance_dataset.read.projection import Projection
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.full_text.column import TextColumn
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.highlight import Highlight
from lance_dataset.scan.full_text.snippets import Hit, Snippet, byte_offsets, marked, snippets
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

__all__ = ["HIGHLIGHTS", "highlights"]

_PLACE = [pa.field(name, pa.int64()) for name in ("start", "end", "byte_start", "byte_end")]
_SNIPPET = pa.struct(
    [
        pa.field("column", pa.string()),
        pa.field("path", pa.string()),
        pa.field("snippet", pa.string()),
        *_PLACE,
        pa.field("terms", pa.list_(pa.struct([pa.field("term", pa.string()), *_PLACE]))),
    ]
)
#: Column that highlights add to a search.
HIGHLIGHTS = pa.field("_highlights", pa.list_(_SNIPPET))


class _Marker(Protocol):
    """Choice of the tokens to mark."""

    @property
    def words(self) -> Collection[str]:
        """Return all tokens that may be marked."""
        ...

    def places(self, tokens: Sequence[TokenSpan]) -> Iterable[int]:
        """Return the places of the tokens of a document to mark."""
        ...


@dataclass(frozen=True)
class _Words:
    words: frozenset[str]

    def places(self, tokens: Sequence[TokenSpan]) -> Iterator[int]:
        """Yield the places of the words."""
        return (place for place, each in enumerate(tokens) if each.token in self.words)


@dataclass(frozen=True)
class _Phrase:
    phrase: PhraseWords

    @property
    def words(self) -> Collection[str]:
        """Return the words of the phrase."""
        return [word for word, _ in self.phrase.words]

    def places(self, tokens: Sequence[TokenSpan]) -> Iterator[int]:
        """Yield the places of words in their order."""
        words, slop = self.phrase.words, self.phrase.slop
        found: dict[str, list[int]] = {word: [] for word, _ in words}
        for place, each in enumerate(tokens):
            if each.token in found:
                found[each.token].append(place)
        # Starts of the phrase by each word; those from which the words before, and then those after, can be reached.
        starts = [np.array([tokens[place].position - at for place in found[word]], np.int64) for word, at in words]
        kept = [np.ones(len(each), bool) for each in starts]
        for number in range(1, len(words)):
            before = np.sort(starts[number - 1][kept[number - 1]])
            kept[number] &= _has_between(before, starts[number] - slop, starts[number])
        for number in range(len(words) - 2, -1, -1):
            after = np.sort(starts[number + 1][kept[number + 1]])
            kept[number] &= _has_between(after, starts[number], starts[number] + slop)
        for (word, _), mine in zip(words, kept, strict=True):
            yield from (found[word][place] for place in np.flatnonzero(mine).tolist())


def _has_between(values: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each pair of limits whether one of some ascending values is between them."""
    found: NDArray[np.bool_] = np.searchsorted(values, low, "left") < np.searchsorted(values, high, "right")
    return found


def highlights(
    reader: TableReader,
    schema: Schema,
    search: TextSearch,
    wanted: Highlight,
    addresses: NDArray[np.uint64],
    elements: pa.ListArray | None = None,
) -> pa.Array:
    """Return the snippets of rows, as a value of `HIGHLIGHTS` for each.

    The words of parts of a query that must not match, or that lower the score, are not marked. Those of a phrase are
    marked only where they follow each other.

    Parameters
    ----------
    reader, schema
        The version, and the schema of scans.
    search
        The query and its columns.
    wanted
        Form of the snippets.
    addresses : uint64[n]
        Addresses of the rows.
    elements
        Places of the elements of lists that were found, which alone are shown; None if rows are documents.

    Raises
    ------
    InvalidInputError
        A column is not one of the query.
    CorruptFileError
        A file contradicts the format.
    """
    columns = list(search.columns if wanted.columns is None else wanted.columns)
    for name in columns:
        if name not in search.columns:
            raise InvalidInputError(f"highlight: {name!r} is not among the columns of the query, {[*search.columns]}")
    found: list[list[dict[str, Any]]] = [[] for _ in addresses]
    markers = _markers(search.query, search.columns)
    for name in columns if len(addresses) else ():
        column = search.columns[name]
        projection = Projection((column.output,), pa.schema([column.output.arrow]))
        values = take_addresses(reader, addresses, projection, schema).column(0)
        parameters = column.parameters
        if isinstance(search.query, CombinedFieldsQuery) and column.index is None:
            parameters = next(each.parameters for each in search.columns.values() if each.index is not None)
        mine = markers.get(name, [])
        words = {word for marker in mine for word in marker.words}
        passages = PassageReader(parameters, column.output.arrow.type, words, f"column {name!r}")
        for row, document in enumerate(passages.read(values)):
            if elements is not None and elements[row].is_valid:
                place = elements[row].as_py()
                document = [passage for passage in document if passage.path == f"[{place[0]}]"]
            found[row].extend(_shown(name, document, mine, wanted))
    return pa.array(found, HIGHLIGHTS.type)


def _markers(query: FullTextQuery, columns: Mapping[str, TextColumn]) -> dict[str, list[_Marker]]:
    """Return what is marked in each column."""
    if isinstance(query, MatchQuery):
        return {query.column: [_Words(_words(query, columns[query.column]))]}
    if isinstance(query, PhraseQuery):
        words = tuple(columns[query.column].analyzer.tokens(query.query))
        return {query.column: [_Phrase(PhraseWords(words, query.slop))] if words else []}
    if isinstance(query, CombinedFieldsQuery):
        first = next((each for name in query.columns if (each := columns[name]).index is not None), None)
        known = frozenset(word for word, _ in first.analyzer.tokens(query.query)) if first else frozenset[str]()
        return {name: [_Words(known)] for name in query.columns}
    inner: Sequence[FullTextQuery] = ()
    if isinstance(query, MultiMatchQuery):
        inner = matches_of(query)
    elif isinstance(query, BoostQuery):
        inner = [query.positive]
    elif isinstance(query, BooleanQuery):
        inner = queries_of(query, Occur.MUST, Occur.SHOULD)
    found: dict[str, list[_Marker]] = {}
    for part in inner:
        for name, markers in _markers(part, columns).items():
            found.setdefault(name, []).extend(markers)
    return found


def _words(query: MatchQuery, column: TextColumn) -> frozenset[str]:
    """Return the words of a query, and those of the index that are similar if the query asks for them."""
    found = {word for word, _ in column.analyzer.tokens(query.query)}
    if query.fuzziness and column.index is not None:
        plain = [word for word, _ in column.analyzer.tokens(query.query, unfiltered=True)]
        fuzziness = Fuzziness(query.fuzziness, query.prefix_length, query.max_expansions)
        for _, groups in column.index.similar_words(plain, fuzziness):
            found.update(word for group in groups for word in group)
    return frozenset(found)


def _shown(
    column: str, document: Sequence[Passage], markers: Sequence[_Marker], wanted: Highlight
) -> Iterator[dict[str, Any]]:
    """Yield the best snippets of a document."""
    tokens = [token for passage in document for token in passage.tokens]
    places = {place for marker in markers for place in marker.places(tokens)}
    candidates: list[tuple[Passage, Snippet]] = []
    start = 0
    for passage in document:
        stop = start + len(passage.tokens)
        mine = (tokens[place] for place in range(start, stop) if place in places)
        # Some dictionaries make tokens of blanks.
        hits = {
            Hit(each.start, each.end, each.token) for each in mine if not passage.text[each.start : each.end].isspace()
        }
        start = stop
        best = snippets(passage.text, sorted(hits), wanted.length, wanted.snippets)
        candidates += ((passage, snippet) for snippet in best)
    order = sorted(range(len(candidates)), key=lambda place: candidates[place][1].rank, reverse=True)
    for place in sorted(order[: wanted.snippets]):
        yield _record(column, *candidates[place], wanted)


def _record(column: str, passage: Passage, snippet: Snippet, wanted: Highlight) -> dict[str, Any]:
    offsets = byte_offsets(passage.text)

    def place(start: int, end: int) -> dict[str, int]:
        return {"start": start, "end": end, "byte_start": int(offsets[start]), "byte_end": int(offsets[end])}

    return {
        "column": column,
        "path": passage.path,
        "snippet": marked(passage.text, snippet, wanted.before, wanted.after, escape=wanted.escape),
        **place(snippet.start, snippet.end),
        "terms": [{"term": hit.term, **place(hit.start, hit.end)} for hit in snippet.hits],
    }
