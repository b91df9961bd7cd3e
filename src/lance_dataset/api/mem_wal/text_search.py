"""Full-text searches over a table and its shards: `LsmTextSearchPlanner`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_dataset.api.mem_wal.plans import ExecutionPlan
from lance_dataset.api.mem_wal.scanner import key_of
from lance_dataset.api.mem_wal.shards import ShardSnapshot, tables_of
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.lsm_scan import LsmQuery
from lance_dataset.memwal.sources import open_sources
from lance_dataset.memwal.text_search import lsm_text_search, text_search_of, text_search_schema, text_search_steps
from lance_dataset.memwal.text_sources import LsmTextSources
from lance_dataset.scan.full_text.rows import SCORE
from lance_dataset.scan.text_queries import FullTextQuery, MatchQuery, PlainText

if TYPE_CHECKING:
    from lance_dataset.read.shown import Shown

__all__ = ["LsmTextSearchPlanner"]


class LsmTextSearchPlanner:
    """Planner of full-text searches over a table and SSTables of its shards.

    The table and SSTables are searched by their full-text indices; texts that no index covers are read. A row that has
    a newer version is not found. All scores are relative to the same texts, those of the visible rows; as in other
    searches, rows count, too, that are hidden or deleted, but are still in an index.

    Parameters
    ----------
    dataset
        The table. SSTables that this version contains are left out.
    shard_snapshots
        SSTables, see `LanceDataset.mem_wal_snapshots`.
    column
        Column of the texts.
    pk_columns
        Columns of the key; None for the primary key.
    filter
        SQL text for the rows that may be found; None for all.

    Raises
    ------
    InvalidInputError
        The table has no primary key, or the column holds no text.
    FieldNotFoundError, FilterError
        The column does not exist, or the filter does not fit.
    MissingFileError
        An SSTable does not exist.
    """

    def __init__(
        self,
        dataset: Shown,
        shard_snapshots: list[ShardSnapshot],
        column: str,
        pk_columns: list[str] | None = None,
        filter: str | None = None,
    ) -> None:
        base = dataset.snapshot
        if not isinstance(column, str):
            raise TypeError(f"column must be a name, not {column!r}")
        key = key_of(base, pk_columns)
        text_search_of(base, MatchQuery("", column))
        # All SSTables count for the scores, not only those that can have rows for which the filter is true.
        self._searched = LsmTextSources(open_sources(base, key, tables_of(shard_snapshots)), filter)
        self._column, self._filter = column, filter

    def plan_search(self, query: str | FullTextQuery, k: int = 10, columns: list[str] | None = None) -> ExecutionPlan:
        """Plan the search of the rows whose texts match a query best.

        Parameters
        ----------
        query
            Text for the column of the planner, or a query of `lance_dataset.query`, which names its columns.
        k
            Number of rows to find.
        columns
            Columns to return, besides those of the key and ``_score``; None for all.

        Raises
        ------
        TypeError
            `query` is of another type.
        InvalidInputError
            `k` is not positive, or the query is never valid.
        FieldNotFoundError
            A column does not exist.
        UnsupportedError
            The query looks for similar words, for words of several columns as one text, or for elements of lists.
        """
        plain = PlainText.of(query)
        resolved = PlainText(plain.text, (self._column,)) if isinstance(plain, PlainText) else plain
        most = checked_integer("k", k)
        if most < 1:
            raise InvalidInputError(f"k must be at least 1, not {k}")
        searched = self._searched
        search = text_search_of(searched.sources.base, resolved)
        chosen = None if columns is None else tuple(name for name in columns if name != SCORE.name)
        wanted = LsmQuery(chosen, self._filter, most)
        return ExecutionPlan(
            text_search_schema(searched.sources, wanted),
            lambda: text_search_steps(searched, search, most),
            lambda: iter(lsm_text_search(searched, search, wanted).combine_chunks().to_batches()),
        )
