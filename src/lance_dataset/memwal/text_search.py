"""Full-text searches over memtables, SSTables and the table, in which the newest row of each key wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import UnsupportedError
from lance_dataset.memwal.lsm_scan import GENERATION, ROW_ADDRESS, LsmQuery, lsm_schema, scanned_columns
from lance_dataset.memwal.sources import LsmSources
from lance_dataset.memwal.text_sources import LsmTexts, LsmTextSources
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.full_text.evaluating import TextSearch
from lance_dataset.scan.full_text.rows import SCORE, resolved_query
from lance_dataset.scan.full_text.shared import TextSource, check_shared, find_in_sources
from lance_dataset.scan.text_queries import FullTextQuery, PlainText, check_text_query
from lance_dataset.types.schema import Field

__all__ = ["lsm_text_search", "text_search_of", "text_search_schema", "text_search_steps"]


def text_search_of(base: Snapshot, query: FullTextQuery | PlainText) -> TextSearch:
    """Return the query of a search in a table and its shards, with the columns of the table.

    Raises
    ------
    FieldNotFoundError
        A column does not exist.
    InvalidInputError
        A column holds no text, or the query is never valid.
    UnsupportedError
        Scores of the query cannot be compared between sources, or elements of lists are documents.
    """
    schema, reader = base.scanned_schema, base.reader
    resolved = resolved_query(reader, schema, query)
    check_text_query(resolved)
    check_shared(resolved)
    is_plain = isinstance(query, PlainText) and not query.columns
    search = TextSearch.of(reader, schema, resolved, by_row=is_plain)
    if search.by_element:
        raise UnsupportedError(
            "a search for elements of lists is not supported for shards; merge them first, or search for rows"
        )
    return search


def text_search_schema(sources: LsmSources, query: LsmQuery) -> pa.Schema:
    """Return the schema of the rows of a search. Raises like `scanned_columns`."""
    return lsm_schema(sources, query).append(SCORE)


def lsm_text_search(searched: LsmTextSources, search: TextSearch, query: LsmQuery) -> pa.Table:
    """Return the rows that a search finds, by descending score; among equal scores, those of newer sources first.

    A row that a newer one hides is not found, also if the newer one does not match. All scores are relative to the
    same texts: those of the visible rows. Hidden and deleted rows that an index still has count, too.

    Parameters
    ----------
    searched
        Where to search, with the filter.
    search
        The query, of `text_search_of`.
    query
        Columns, and number of rows to return. Its filter is that of `searched`.

    Raises
    ------
    FieldNotFoundError
        A column does not exist.
    CorruptFileError, MissingFileError
        A source cannot be read.
    InvalidInputError
        A phrase is searched for in an index without positions, or boosts are too large for scores of 32 bits.
    """
    sources = searched.sources
    schema = text_search_schema(sources, query)
    texts = searched.of_columns(search.columns)
    best = None if query.limit is None else query.limit + query.offset
    found = find_in_sources(search.query, [TextSource(each, each.columns) for each in texts], best)
    hits = _Hits(
        np.repeat(np.arange(len(texts)), [len(each.addresses) for each in found]),
        np.concatenate([each.addresses for each in found]),
        np.concatenate([each.scores for each in found]),
    ).best(query.offset, query.limit)
    return hits.rows(texts, scanned_columns(sources, query.columns), schema)


@dataclass(frozen=True, eq=False)
class _Hits:
    """Rows that were found.

    Attributes
    ----------
    owners : int64[n]
        Places of their sources.
    addresses : uint64[n]
        Addresses in the sources.
    scores : float32[n]
        Scores.
    """

    owners: NDArray[np.int64]
    addresses: NDArray[np.uint64]
    scores: NDArray[np.float32]

    def best(self, offset: int, limit: int | None) -> _Hits:
        """Return the rows by descending score, after some of them, and as many as are wanted."""
        # The table is the first source, but the oldest one.
        ages = np.where(self.owners == 0, np.iinfo(np.int64).max, self.owners)
        order = np.lexsort((self.addresses, ages, -self.scores))[offset:]
        order = order if limit is None else order[:limit]
        return _Hits(self.owners[order], self.addresses[order], self.scores[order])

    def rows(self, texts: Sequence[LsmTexts], wanted: list[Field], schema: pa.Schema) -> pa.Table:
        """Return columns of the rows, in the order of the rows."""
        places: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        parts = [schema.empty_table()]
        for owner, text in enumerate(texts):
            mine = np.flatnonzero(self.owners == owner)
            if len(mine):
                places.append(mine)
                columns = dict(
                    zip((field.name for field in wanted), text.take(self.addresses[mine], wanted), strict=True)
                )
                columns[SCORE.name] = pa.array(self.scores[mine])
                columns[GENERATION] = pa.repeat(pa.scalar(text.generation, pa.uint64()), len(mine))
                columns[ROW_ADDRESS] = (
                    pa.array(self.addresses[mine]) if text.is_table else pa.nulls(len(mine), pa.uint64())
                )
                parts.append(pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema))
        return pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(places))))


def text_search_steps(searched: LsmTextSources, search: TextSearch, most: int) -> list[tuple[int, str]]:
    """Return the steps of a search, the last one first, each with its depth."""
    lines = [(0, f"LsmTextSearch: k={most}, query={search.query!r}")]
    version = searched.sources.base.version
    for text in searched.of_columns(search.columns):
        what = f"Table: version={version}" if text.is_table else f"Shard: generation={text.generation}"
        for name, column in text.columns.items():
            left = len(text.uncovered(frozenset() if column.index is None else column.index.fragment_ids))
            ways = [] if column.index is None else [f"index {column.index.name!r}"]
            if left:
                ways.append(f"the texts of {left} fragments are read" if text.is_table else "the texts are read")
            lines.append((1, f"{what}, column={name}: {'; '.join(ways) or 'nothing to search'}"))
    return lines
