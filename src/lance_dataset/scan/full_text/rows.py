"""Rows that a full-text search returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_dataset.errors import InvalidInputError
from lance_dataset.index.text.searching.text_index import FoundTexts, text_index
from lance_dataset.index.text.training.documents import is_list, is_text
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.scope import SearchScope
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.scored_rows import UNLIMITED_ROWS, ScoredRequest, ScoredRows, arranged
from lance_dataset.scan.text_queries import FullTextQuery, MatchQuery, MultiMatchQuery, PhraseQuery, PlainText
from lance_dataset.types.schema import Schema

__all__ = ["SCORE", "TextRequest", "resolved_query", "text_rows"]

#: Column that a search adds.
SCORE = pa.field("_score", pa.float32())


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
        order = np.argsort(found.addresses, kind="stable")
        found = FoundTexts(found.addresses[order], found.scores[order])
    scores = pa.RecordBatch.from_arrays([pa.array(found.scores)], schema=pa.schema([SCORE]))
    return arranged(reader, ScoredRows(found.addresses, scores), request.wanted)


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
    columns = list(query.columns or _indexed_columns(reader, schema))
    if not columns:
        raise InvalidInputError(
            "Cannot perform full text search unless an INVERTED index has been created on at least one column"
        )
    return MatchQuery(query.text, columns[0]) if len(columns) == 1 else MultiMatchQuery(query.text, columns)


def _indexed_columns(reader: TableReader, schema: Schema) -> list[str]:
    """Return the names of the columns that have a full-text index with rows as documents."""
    names = dict(schema.paths_by_id())
    found = []
    for field_id, name in names.items():
        field = schema.by_id[field_id]
        kind = field.to_arrow().type
        searchable = field.logical_type == "json" or is_text(kind) or is_list(kind)
        index = text_index(reader, field_id) if searchable else None
        if index is not None and not index.parameters.by_element:
            found.append(name)
    return found
