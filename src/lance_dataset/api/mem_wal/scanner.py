"""Scanner over a table and its shards: `LsmScanner`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_dataset.api.mem_wal.shards import ShardSnapshot, tables_of
from lance_dataset.arguments import checked_integer
from lance_dataset.errors import InvalidInputError
from lance_dataset.memwal.keys import KeyColumns
from lance_dataset.memwal.lsm_scan import LsmQuery, lsm_batches, lsm_count, lsm_schema, lsm_table
from lance_dataset.memwal.sources import LsmSources, open_sources

if TYPE_CHECKING:
    from lance_dataset.read.shown import Shown
    from lance_dataset.read.snapshot import Snapshot
    from lance_dataset.scan.text_queries import FullTextQuery, PlainText

__all__ = ["LsmScanner", "key_of"]


def key_of(snapshot: Snapshot, columns: Iterable[str] | None = None) -> KeyColumns:
    """Return the key of a table, by which rows of shards are compared.

    Raises
    ------
    InvalidInputError
        The table has no key, or one of an unsupported type.
    """
    key = KeyColumns.of(snapshot.manifest.schema, None if columns is None else tuple(columns))
    if not key:
        raise InvalidInputError(
            "Dataset has no primary key, by which the newest row is found; declare one in the metadata of its fields"
        )
    return key


class LsmScanner:
    """Scanner over a table, SSTables of its shards, and the memtables of a writer; the newest row of a key wins.

    Make one with `ShardWriter.lsm_scanner` or `LsmScanner.from_snapshots`. Methods that set options return the scanner.
    """

    def __init__(self, open_all: Callable[[str | None], LsmSources], schema: pa.Schema) -> None:
        self._open_all = open_all
        self._schema = schema
        self._query = LsmQuery()
        self._text: FullTextQuery | PlainText | None = None

    @staticmethod
    def from_snapshots(dataset: Shown, shard_snapshots: list[ShardSnapshot]) -> LsmScanner:
        """Scan a table and SSTables. Rows of memtables, which are in other processes, are not seen.

        Parameters
        ----------
        dataset
            The table. SSTables that this version contains are left out.
        shard_snapshots
            SSTables, see `LanceDataset.mem_wal_snapshots`.

        Raises
        ------
        InvalidInputError
            The table has no primary key.
        """
        base, tables = dataset.snapshot, tables_of(shard_snapshots)
        key = key_of(base)
        return LsmScanner(
            lambda filter: open_sources(base, key, tables, filter=filter), base.manifest.schema.storage_arrow
        )

    def project(self, columns: list[str]) -> LsmScanner:
        """Return only some columns. Those of the primary key are added at the end if they are missing."""
        given: object = columns
        if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
            raise TypeError(f"columns must be a list of names, not {columns!r}")
        self._query = replace(self._query, columns=tuple(columns))
        return self

    def filter(self, expr: str) -> LsmScanner:
        """Return only rows for which SQL text is true. It applies to the newest row of each key."""
        from lance_dataset.expr.compiled import compile_filter

        if not isinstance(expr, str):
            raise TypeError(f"expr must be SQL text, not {type(expr).__name__}")
        compile_filter(expr, self._schema)
        self._query = replace(self._query, filter=expr)
        return self

    def limit(self, n: int | None = None, offset: int | None = None) -> LsmScanner:
        """Return at most `n` rows, after leaving out `offset` rows."""
        most = None if n is None else checked_integer("n", n)
        first = 0 if offset is None else checked_integer("offset", offset)
        self._query = replace(self._query, limit=most, offset=first)
        return self

    def with_row_address(self) -> LsmScanner:
        """Return the column ``_rowaddr``: the address of rows of the table, null for rows of shards."""
        self._query = replace(self._query, with_address=True)
        return self

    def with_memtable_gen(self) -> LsmScanner:
        """Return the column ``_memtable_gen``: the generation of rows of shards, 0 for rows of the table."""
        self._query = replace(self._query, with_generation=True)
        return self

    def full_text_search(self, query: str | FullTextQuery, columns: list[str] | None = None) -> LsmScanner:
        """Return only the rows whose texts match a query, in the order of their scores.

        The result has a column ``_score``. A filter applies before the limit. Texts of memtables are read. The texts
        that scores are relative to are those of `LsmTextSearchPlanner`.

        Parameters
        ----------
        query
            Text, or a query of `lance_dataset.query`.
        columns
            Columns to search for a text; None for all that have an INVERTED index. The best one determines the score.

        Raises
        ------
        TypeError
            The query or the columns have the wrong type.
        InvalidInputError
            Columns are given twice.
        """
        from lance_dataset.scan.text_queries import PlainText

        self._text = PlainText.of(query, columns)
        return self

    def to_reader(self) -> pa.RecordBatchReader:
        """Run the scan as a stream."""
        if self._text is not None:
            return self._found(self._text).to_reader()
        sources = self._open_all(self._query.filter)
        return pa.RecordBatchReader.from_batches(lsm_schema(sources, self._query), lsm_batches(sources, self._query))

    def to_batches(self) -> list[pa.RecordBatch]:
        """Run the scan and return its batches.

        Raises
        ------
        FieldNotFoundError, FilterError
            A column does not exist, or the filter does not fit.
        InvalidInputError, UnsupportedError
            A text is searched for in columns that hold none, or in a way that shards do not support.
        MissingFileError, CorruptFileError
            An SSTable does not exist or cannot be read.
        """
        if self._text is not None:
            return self._found(self._text).combine_chunks().to_batches()
        return list(lsm_batches(self._open_all(self._query.filter), self._query))

    def to_table(self) -> pa.Table:
        """Run the scan and return a table; errors are those of `to_batches`."""
        if self._text is not None:
            return self._found(self._text)
        return lsm_table(self._open_all(self._query.filter), self._query)

    def _found(self, text: FullTextQuery | PlainText) -> pa.Table:
        """Return the rows that a search for a text finds."""
        from lance_dataset.memwal.text_search import lsm_text_search, text_search_of
        from lance_dataset.memwal.text_sources import LsmTextSources

        # All SSTables count for the scores, not only those that can have rows for which the filter is true.
        sources = self._open_all(None)
        names = self._query.columns
        query = replace(
            self._query, columns=None if names is None else tuple(name for name in names if name != "_score")
        )
        return lsm_text_search(LsmTextSources(sources, query.filter), text_search_of(sources.base, text), query)

    def to_batch(self) -> pa.RecordBatch:
        """Run the scan and return one batch; errors are those of `to_batches`."""
        table = self.to_table().combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

    def count_rows(self) -> int:
        """Return the number of rows; errors are those of `to_batches`."""
        if self._text is not None:
            return self._found(self._text).num_rows
        return lsm_count(self._open_all(self._query.filter), self._query)
