"""Rows that a full-text search returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.text.searching.found import FoundTexts
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.column import indexed_columns
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRequest, ScoredRows, arranged
from lance_dataset.scan.text_queries import FullTextQuery, MatchQuery, MultiMatchQuery, PhraseQuery, PlainText
from lance_dataset.types.schema import Schema

__all__ = ["DOCUMENT_INDEX", "SCORE", "TextRequest", "resolved_query", "text_rows"]

#: Column that a search adds.
SCORE = pa.field("_score", pa.float32())
#: Column that a search for elements of lists adds: their places in the lists.
DOCUMENT_INDEX = pa.field("_doc_index", pa.list_(pa.field("item", pa.uint32(), nullable=False)), nullable=False)


@dataclass(frozen=True)
class TextRequest:
    """A full-text search of one version.

    Attributes
    ----------
    search
        The query and its columns.
    candidates
        Scan of the rows that may be found, with the filter that comes first.
    wanted
        What to do with the rows found, and their output.
    """

    search: TextSearch
    candidates: ScanRequest
    wanted: ScoredRequest

    @property
    def best(self) -> int | None:
        """Number of rows to find, None for all."""
        wanted = self.wanted
        return None if wanted.limit >= UNLIMITED_ROWS else wanted.limit + wanted.offset


def text_rows(reader: TableReader, request: TextRequest) -> ScoredRows:
    """Run a search, then the filter, the order and the limit that come after it.

    Parameters
    ----------
    reader
        The version.
    request
        The search.

    Raises
    ------
    CorruptFileError
        A file contradicts the format.
    InvalidInputError
        A phrase is searched for in an index without positions.
    """
    best = request.best
    found = request.search.find(SearchScope(reader, request.candidates), best)
    if best is None and _is_read(request.search):
        found = found.by_address()
    return arranged(reader, ScoredRows(found.addresses, _values(found, request.search.by_element)), request.wanted)


def _values(found: FoundTexts, by_element: bool) -> pa.RecordBatch:
    """Return what was found for rows."""
    scores = pa.array(found.scores)
    if not by_element:
        return pa.RecordBatch.from_arrays([scores], schema=pa.schema([SCORE]))
    ends = pa.array(np.arange(len(found.scores) + 1, dtype=np.int32))
    places = np.empty(0, np.uint32) if found.elements is None else found.elements
    elements = pa.ListArray.from_arrays(ends, pa.array(places), type=DOCUMENT_INDEX.type)
    return pa.RecordBatch.from_arrays([elements, scores], schema=pa.schema([DOCUMENT_INDEX, SCORE]))


def _is_read(search: TextSearch) -> bool:
    """Return True for a query of one column without an index, whose rows have the order of the table."""
    query = search.query
    return isinstance(query, MatchQuery | PhraseQuery) and search.columns[query.column].index is None


def resolved_query(reader: TableReader, schema: Schema, query: FullTextQuery | PlainText) -> FullTextQuery:
    """Return the query of a text: a match in its columns, or in all columns with an index.

    Raises
    ------
    InvalidInputError
        There are no columns.
    """
    if isinstance(query, FullTextQuery):
        return query
    columns = list(query.columns or indexed_columns(reader, schema))
    if not columns:
        raise InvalidInputError(
            "Cannot perform full text search unless an INVERTED index has been created on at least one column"
        )
    return MatchQuery(query.text, columns[0]) if len(columns) == 1 else MultiMatchQuery(query.text, columns)
