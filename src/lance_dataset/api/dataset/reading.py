"""Scans of a dataset, and access to rows by number or id."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.api.scannable import ScannableDataset
from lance_dataset.api.scanner.builder import FragmentHandle, ScannerBuilder
from lance_dataset.api.scanner.progress import ProgressOption
from lance_dataset.api.scanner.scanner import BlobMode, LanceScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.arguments import check_count, given
from lance_dataset.errors import InvalidInputError
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Columns
from lance_dataset.read.take import RowNumbers, row_numbers, take_row_ids, take_rows
from lance_dataset.read.take import row_ids as checked_row_ids
from lance_dataset.scan.options import BlobHandling, ColumnOrdering, Condition, check_arrow_options
from lance_dataset.scan.queries import MinHashQuery

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Reading"]

Predicate: TypeAlias = "str | pc.Expression"


class Reading(Shown, ScannableDataset):
    """Scans of a dataset, and access to rows by number or id."""

    def scanner(
        self,
        columns: Columns = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: MinHashQuery | Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[FragmentHandle] | None = None,
        index_segments: Sequence[str] | None = None,
        full_text_query: object = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        on_index_error: Literal["raise", "scan"] | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], object] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        memory_limit: int | None = None,
        **arrow_options: Any,
    ) -> LanceScanner:
        """Make a scanner over this version.

        Parameters
        ----------
        columns
            Column names in the order of the output, or a mapping from output names to SQL expressions; None for all.
            Nested names are dotted, and system columns such as ``_rowid`` are allowed.
        filter
            SQL text or a pyarrow expression. Rows for which it is false or null are dropped. A search may have another
            search as its filter, see `ScannerBuilder.filter`.
        limit, offset
            Maximum number of rows to return, and number of rows to skip, after filter and ordering.
        batch_size
            Maximum number of rows in a batch, 8192 by default.
        nearest
            Search for the rows whose vectors are nearest to others, as a dictionary of the parameters of
            `ScannerBuilder.nearest` (``{"column": "v", "q": [...], "k": 10}``); or for the texts that are most similar
            to another one, as a `lance_dataset.query.MinHashQuery`, for which the column needs a MINHASHLSH index.
        full_text_query
            Search for words: a text, a dictionary of a text and its columns (``{"query": "...", "columns": [...]}``),
            or a query of `lance_dataset.query`. See `ScannerBuilder.full_text_search`.
        prefilter
            True to filter the rows before a search, instead of those that it finds.
        fast_search
            True to leave out rows without an index.
        disable_scoring_autoprojection
            True to return `_distance` or `_score` of a search only if it is among the columns.
        fragments
            Fragments to read, in that order; None for all.
        with_row_id, with_row_address
            Append ``_rowid``, ``_rowaddr``.
        order_by
            Column names (ascending, nulls last) or `ColumnOrdering` objects.
        include_deleted_rows
            Return deleted rows too, with a null ``_rowid``.
        strict_batch_size
            Return exactly `batch_size` rows in every batch but the last.
        batch_size_bytes
            Approximate maximum size of a batch in bytes. The smaller one of this and `batch_size` applies.
        scan_in_order
            False to return rows in the order in which they are read.
        late_materialization
            Columns to read only for rows that the filter keeps: all (True), none (False), or a list of names. None to
            choose the cheaper way. The result is the same.
        batch_readahead, fragment_readahead
            Maximum number of windows of rows, and of fragments, to read ahead. None for as many as keep the processors,
            or the connections to another machine, busy.
        io_buffer_size
            Maximum number of bytes of rows to read ahead, 128 MiB by default. A limit of memory may allow fewer.
        memory_limit
            Bytes of memory that the scan may use, at least 16 MiB. A table that is larger raises MemoryLimitError,
            streams have smaller batches. The default is that of `lance_dataset.limited_memory`, or the environment
            variable ``LANCE_MEMORY_LIMIT``, or none.
        use_stats
            False to read rows even if the statistics of files exclude them.
        use_scalar_index
            False to compute the filter without indices.
        fast_search
            True to leave out fragments that the indices which answer the filter do not cover.
        on_index_error
            What happens if the files of an index are damaged or missing: ``raise`` the error (the default), or
            ``scan`` without the index and log a warning. A search for vectors must then name its metric, unless the
            damage is within a partition.
        blob_handling
            Form of blob columns. ``blobs_descriptions`` (the default) and ``all_descriptions`` return a struct with
            the place of the value: kind, position, size, file number and URI, or in older files position and size.
            ``all_binary`` returns the values. Filters see descriptions.
        **arrow_options
            Other options of pyarrow datasets (``use_threads``, ``memory_pool`` ...). They are accepted, so that other
            libraries can pass them, and ignored.

        Raises
        ------
        FieldNotFoundError
            A column does not exist. The message suggests the nearest name.
        FilterError
            The filter is malformed. The message points at the position.
        UnsupportedError
            An option needs an index.
        """
        options = {
            "filter": filter,
            "limit": limit,
            "offset": offset,
            "nearest": nearest,
            "batch_size": batch_size,
            "batch_size_bytes": batch_size_bytes,
            "batch_readahead": batch_readahead,
            "fragment_readahead": fragment_readahead,
            "scan_in_order": scan_in_order,
            "fragments": fragments,
            "index_segments": index_segments,
            "full_text_query": full_text_query,
            "prefilter": prefilter,
            "with_row_id": with_row_id,
            "with_row_address": with_row_address,
            "use_stats": use_stats,
            "fast_search": fast_search,
            "io_buffer_size": io_buffer_size,
            "late_materialization": late_materialization,
            "blob_handling": blob_handling,
            "use_scalar_index": use_scalar_index,
            "on_index_error": on_index_error,
            "include_deleted_rows": include_deleted_rows,
            "scan_stats_callback": scan_stats_callback,
            "strict_batch_size": strict_batch_size,
            "order_by": order_by,
            "disable_scoring_autoprojection": disable_scoring_autoprojection,
            "row_addr_allowlist": row_addr_allowlist,
            "row_addr_blocklist": row_addr_blocklist,
            "memory_limit": memory_limit,
        }
        check_arrow_options(arrow_options)
        builder = ScannerBuilder(self).apply_defaults(
            {name: value for name, value in options.items() if value is not None}
        )
        return (builder.columns(columns) if columns is not None else builder).to_scanner()

    def measure_recall(
        self,
        column: str,
        queries: object = None,
        k: int = 10,
        **parameters: Any,
    ) -> float:
        """Measure which share of the nearest rows a search of a vector index finds.

        All vectors are compared with the queries, so this reads the whole column.

        Parameters
        ----------
        column
            Column of vectors.
        queries
            Vectors to search for, an array of one or two dimensions; None for some rows of the table, each of which
            does not count among its own nearest rows.
        k
            Number of rows to find for each query.
        **parameters
            Other parameters of `ScannerBuilder.nearest`, such as ``nprobes=10, refine_factor=5`` or ``recall=0.95``.

        Returns
        -------
        float
            Mean over the queries, from 0 to 1; 1 if there is nothing to find.

        Raises
        ------
        FieldNotFoundError, InvalidInputError, TypeError
            See `ScannerBuilder.nearest`.
        UnsupportedError
            The column holds lists of vectors.
        """
        from lance_dataset.api.scanner.recall import measured_recall

        return measured_recall(self.snapshot, column, queries, k, parameters)

    def to_table(
        self,
        columns: Columns = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: MinHashQuery | Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[FragmentHandle] | None = None,
        index_segments: Sequence[str] | None = None,
        full_text_query: object = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        on_index_error: Literal["raise", "scan"] | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], object] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        memory_limit: int | None = None,
        progress: ProgressOption = None,
        **arrow_options: Any,
    ) -> pa.Table:
        """Scan into a table.

        Parameters
        ----------
        columns, filter, limit, offset, ...
            As for `scanner`.
        progress
            As for `LanceScanner.to_table`.
        """
        options = given(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            nearest=nearest,
            batch_size=batch_size,
            batch_size_bytes=batch_size_bytes,
            batch_readahead=batch_readahead,
            fragment_readahead=fragment_readahead,
            scan_in_order=scan_in_order,
            fragments=fragments,
            index_segments=index_segments,
            full_text_query=full_text_query,
            prefilter=prefilter,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            use_stats=use_stats,
            fast_search=fast_search,
            io_buffer_size=io_buffer_size,
            late_materialization=late_materialization,
            blob_handling=blob_handling,
            use_scalar_index=use_scalar_index,
            on_index_error=on_index_error,
            include_deleted_rows=include_deleted_rows,
            scan_stats_callback=scan_stats_callback,
            strict_batch_size=strict_batch_size,
            order_by=order_by,
            disable_scoring_autoprojection=disable_scoring_autoprojection,
            row_addr_allowlist=row_addr_allowlist,
            row_addr_blocklist=row_addr_blocklist,
            memory_limit=memory_limit,
        )
        if nearest is not None and progress is None and not arrow_options:
            from lance_dataset.api.scanner.repeated_search import found_table

            return found_table(self.snapshot, options, lambda: self.scanner(**options))
        return self.scanner(**options, **arrow_options).to_table(progress=progress)

    def to_batches(
        self,
        columns: Columns = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: MinHashQuery | Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[FragmentHandle] | None = None,
        index_segments: Sequence[str] | None = None,
        full_text_query: object = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        on_index_error: Literal["raise", "scan"] | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], object] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        memory_limit: int | None = None,
        progress: ProgressOption = None,
        **arrow_options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Scan into a stream of record batches, in bounded memory.

        Parameters
        ----------
        columns, filter, limit, offset, ...
            As for `scanner`.
        progress
            As for `LanceScanner.to_table`.
        """
        return self.scanner(
            **given(
                columns=columns,
                filter=filter,
                limit=limit,
                offset=offset,
                nearest=nearest,
                batch_size=batch_size,
                batch_size_bytes=batch_size_bytes,
                batch_readahead=batch_readahead,
                fragment_readahead=fragment_readahead,
                scan_in_order=scan_in_order,
                fragments=fragments,
                index_segments=index_segments,
                full_text_query=full_text_query,
                prefilter=prefilter,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                use_stats=use_stats,
                fast_search=fast_search,
                io_buffer_size=io_buffer_size,
                late_materialization=late_materialization,
                blob_handling=blob_handling,
                use_scalar_index=use_scalar_index,
                on_index_error=on_index_error,
                include_deleted_rows=include_deleted_rows,
                scan_stats_callback=scan_stats_callback,
                strict_batch_size=strict_batch_size,
                order_by=order_by,
                disable_scoring_autoprojection=disable_scoring_autoprojection,
                row_addr_allowlist=row_addr_allowlist,
                row_addr_blocklist=row_addr_blocklist,
                memory_limit=memory_limit,
            ),
            **arrow_options,
        ).to_batches(progress=progress)

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Condition | None = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: MinHashQuery | Mapping[str, object] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[FragmentHandle] | None = None,
        index_segments: Sequence[str] | None = None,
        full_text_query: object = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        on_index_error: Literal["raise", "scan"] | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], object] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[ColumnOrdering | str] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        memory_limit: int | None = None,
        blob_mode: BlobMode = "lazy",
        progress: ProgressOption = None,
        **kwargs: Any,
    ) -> pd.DataFrame:
        """Scan into a DataFrame.

        Parameters
        ----------
        columns, filter, limit, offset, ...
            As for `scanner`.
        blob_mode, progress
            As for `LanceScanner.to_pandas`.
        **kwargs
            Options of `pyarrow.Table.to_pandas`.
        """
        return self.scanner(
            **given(
                columns=columns,
                filter=filter,
                limit=limit,
                offset=offset,
                nearest=nearest,
                batch_size=batch_size,
                batch_size_bytes=batch_size_bytes,
                batch_readahead=batch_readahead,
                fragment_readahead=fragment_readahead,
                scan_in_order=scan_in_order,
                fragments=fragments,
                index_segments=index_segments,
                full_text_query=full_text_query,
                prefilter=prefilter,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                use_stats=use_stats,
                fast_search=fast_search,
                io_buffer_size=io_buffer_size,
                late_materialization=late_materialization,
                blob_handling=blob_handling,
                use_scalar_index=use_scalar_index,
                on_index_error=on_index_error,
                include_deleted_rows=include_deleted_rows,
                scan_stats_callback=scan_stats_callback,
                strict_batch_size=strict_batch_size,
                order_by=order_by,
                disable_scoring_autoprojection=disable_scoring_autoprojection,
                row_addr_allowlist=row_addr_allowlist,
                row_addr_blocklist=row_addr_blocklist,
                memory_limit=memory_limit,
            ),
        ).to_pandas(blob_mode=blob_mode, progress=progress, **kwargs)

    def count_rows(self, filter: Condition | None = None, *, progress: ProgressOption = None, **kwargs: Any) -> int:
        """Count the rows, or the rows that a filter keeps.

        Parameters
        ----------
        filter
            As for `scanner`.
        progress
            As for `LanceScanner.to_table`. Without a filter the manifest has the number, and nothing is reported.
        **kwargs
            Other options of `scanner`.
        """
        if filter is None:
            known = self.snapshot.manifest.num_rows
            return self.snapshot.reader.num_rows if known is None else known
        return self.scanner(columns=[], filter=filter, **kwargs).count_rows(progress=progress)

    def take(self, indices: RowNumbers, columns: Columns = None, **kwargs: Any) -> pa.Table:
        """Take rows by number, in the order given; repeats are kept.

        Parameters
        ----------
        indices
            Row numbers from 0 to ``count_rows() - 1``.
        columns
            As for `scanner`, but a dotted name returns the struct around the field.

        Raises
        ------
        RowIndexError
            A row number is outside the dataset.
        """
        snapshot = self._snapshot
        projection = snapshot.projection(columns)
        found = take_rows(snapshot.reader, row_numbers(indices), projection, snapshot.scanned_schema)
        return projection.for_user(found)

    def _take_rows(
        self,
        row_ids: RowNumbers,
        columns: Columns = None,
        *,
        ignore_deletions: bool = False,
        **kwargs: Any,
    ) -> pa.Table:
        """Take rows by id (`_rowid`), in the order given; repeats are kept and deleted rows are left out.

        Parameters
        ----------
        row_ids
            Stable row ids if the dataset has them; unknown ids are left out, too. Otherwise row addresses.
        columns
            As for `take`.
        ignore_deletions
            True if the rows are known to exist. Deletion files are then read only for ids that occur in several
            fragments, and a deleted row may be returned.
        **kwargs
            Accepted for compatibility.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        RowIndexError
            A number is negative, or an address is outside the dataset.
        TypeError
            An id is not an integer.
        """
        snapshot = self._snapshot
        projection, ids = snapshot.projection(columns), checked_row_ids(row_ids)
        found = take_row_ids(
            snapshot.reader, ids, projection, snapshot.scanned_schema, ignore_deletions=ignore_deletions
        )
        return projection.for_user(found)

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Take the rows with numbers ``[start, end)``."""
        check_count("start", start)
        if end < start:
            raise InvalidInputError(f"end ({end}) must be >= start ({start})")
        return self.scanner(columns=columns, offset=start, limit=end - start).to_table()

    def sample(self, num_rows: int, columns: Columns = None, randomize_order: bool = True, **kwargs: Any) -> pa.Table:
        """Take rows at random without repeats, in storage order if `randomize_order` is False.

        Raises
        ------
        InvalidInputError
            `num_rows` is larger than the number of rows.
        """
        total = self.count_rows()
        check_count("num_rows", num_rows)
        if num_rows > total:
            raise InvalidInputError(f"cannot sample {num_rows} rows of a dataset of {total} rows")
        chosen = random.sample(range(total), num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns)
