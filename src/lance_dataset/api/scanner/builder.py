"""Builder of scanners: `ScannerBuilder`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import pyarrow as pa

from lance_dataset.api.scanner.scanner import LanceScanner
from lance_dataset.api.scanner.statistics import ScanStatistics
from lance_dataset.errors import UnsupportedError
from lance_dataset.read.shown import Shown
from lance_dataset.read.snapshot import Snapshot
from lance_dataset.scan.nearest_query import ApproxMode, Metric, NearestQuery
from lance_dataset.scan.options import (
    OPTIONS,
    BlobHandling,
    ColumnOrdering,
    Columns,
    Condition,
    SearchFilter,
    checked_option,
)
from lance_dataset.scan.queries import MinHashQuery
from lance_dataset.scan.resolving import address_sets, resolve_request

__all__ = ["FragmentHandle", "ScannerBuilder", "dataset_schema", "make_scanner"]


class FragmentHandle(Protocol):
    """Handle on a fragment, as scans take it. `FragmentMetadata` is taken too, whose id is named `id`."""

    @property
    def fragment_id(self) -> int:
        """Id of the fragment."""
        ...


class ScannerBuilder:
    """Builder of a scanner. Every method but `to_scanner` sets an option and returns the builder.

    Parameters
    ----------
    ds
        The dataset.
    defaults
        Initial options; None for the default scan options of the dataset.
    """

    def __init__(self, ds: Shown, defaults: Mapping[str, object] | None = None) -> None:
        self._shown = ds
        self._options: dict[str, Any] = {}
        self.apply_defaults(ds.snapshot.location.scan_options if defaults is None else defaults)

    def apply_defaults(self, default_opts: Mapping[str, object] | None) -> ScannerBuilder:
        """Set options from a mapping of `LanceDataset.scanner` keywords."""
        for name, value in (default_opts or {}).items():
            if value is None and name in OPTIONS:
                continue
            checked = checked_option(name, _fragment_ids(value) if name == "fragments" else value)
            if value is not None:
                self._options[name] = checked
        return self

    def _set(self, name: str, value: Any) -> ScannerBuilder:
        """Set an option, or reset it if the value is None."""
        checked = checked_option(name, value)
        if checked is None:
            self._options.pop(name, None)
        else:
            self._options[name] = checked
        return self

    def columns(self, cols: Columns = None) -> ScannerBuilder:
        """Set the columns: names, or a mapping from output names to SQL expressions; None for all columns."""
        return self._set("columns", cols)

    def filter(self, filter: Condition | None) -> ScannerBuilder:
        """Set the filter.

        Parameters
        ----------
        filter
            SQL text or a pyarrow expression. For a search by vector also a query of `lance_dataset.query`, and for a
            full-text search also a `VectorSearchQuery`: with `prefilter`, the rows which that finds are searched, and
            without, the rows found are kept if they match the query, or are nearest to the vector, in the order of
            their distances. Or a dictionary of both, ``{"expr_filter": ..., "search_filter": ...}``.
        """
        return self._set("filter", filter)

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """Set the maximum number of rows to return."""
        return self._set("limit", n)

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """Set the number of rows to skip."""
        return self._set("offset", n)

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """Set the maximum number of rows in a batch."""
        return self._set("batch_size", batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """Set the approximate maximum size of a batch in bytes."""
        return self._set("batch_size_bytes", batch_size_bytes)

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """Return exactly the batch size of rows in every batch but the last."""
        return self._set("strict_batch_size", strict_batch_size)

    def order_by(self, orderings: Sequence[ColumnOrdering | str] | None) -> ScannerBuilder:
        """Set the sort keys."""
        return self._set("order_by", orderings)

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Append `_rowid`."""
        return self._set("with_row_id", with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Append `_rowaddr`."""
        return self._set("with_row_address", with_row_address)

    def with_fragments(self, fragments: Iterable[FragmentHandle] | None) -> ScannerBuilder:
        """Restrict the scan to fragments, in the order given."""
        return self._set("fragments", _fragment_ids(fragments))

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """Return deleted rows too, with a null `_rowid`."""
        return self._set("include_deleted_rows", flag)

    def row_addr_prefilter(self, allowlist: bytes | None = None, blocklist: bytes | None = None) -> ScannerBuilder:
        """Return only rows whose addresses are allowed and not blocked. `serialize_row_addrs` makes the sets."""
        return self._set("row_addr_allowlist", allowlist)._set("row_addr_blocklist", blocklist)

    def scan_stats_callback(self, callback: Callable[[ScanStatistics], object]) -> ScannerBuilder:
        """Call a function with `ScanStatistics` after every run that reads all rows of the scan."""
        return self._set("scan_stats_callback", callback)

    def row_range(self, start: int, stop: int) -> ScannerBuilder:
        """Restrict the scan to physical row offsets ``[start, stop)`` of each fragment."""
        return self._set("row_range", (start, stop))

    def blob_handling(self, blob_handling: BlobHandling | None) -> ScannerBuilder:
        """Set the form of blob columns: ``blobs_descriptions`` (or ``all_descriptions``), or ``all_binary``."""
        return self._set("blob_handling", blob_handling)

    # The following options change how a scan runs, not its result.

    def batch_readahead(self, nbatches: int | None = None) -> ScannerBuilder:
        """Set the maximum number of windows of rows to read ahead."""
        return self._set("batch_readahead", nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> ScannerBuilder:
        """Set the maximum number of fragments to read ahead."""
        return self._set("fragment_readahead", nfragments)

    def memory_limit(self, memory_limit: int) -> ScannerBuilder:
        """Limit the memory that the scan may use, in bytes (at least 16 MiB)."""
        return self._set("memory_limit", memory_limit)

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        """Set the maximum number of bytes of rows to read ahead, 128 MiB by default."""
        return self._set("io_buffer_size", io_buffer_size)

    def late_materialization(self, late_materialization: bool | list[str]) -> ScannerBuilder:
        """Set the columns to read only for rows that the filter keeps: all (True), none (False), or some names."""
        return self._set("late_materialization", late_materialization)

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Return rows in storage order (True), or in the order in which they are read (False)."""
        return self._set("scan_in_order", scan_in_order)

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Let filters use indices where that is cheaper than reading the columns (True), or never (False)."""
        return self._set("use_scalar_index", use_scalar_index)

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Skip rows that the statistics of files exclude (the default)."""
        return self._set("use_stats", use_stats)

    # Searches.

    def nearest(
        self,
        column: str,
        q: object,
        k: int | None = None,
        metric: Metric | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        use_index: bool = True,
        ef: int | None = None,
        query_parallelism: int | None = None,
        approx_mode: ApproxMode = "normal",
        distance_range: tuple[float | None, float | None] | None = None,
        search_effort: float | None = None,
        recall: float | None = None,
    ) -> ScannerBuilder:
        """Return only the rows whose vectors are nearest to others, in the order of their distances.

        The result has a column `_distance`. Rows with equal distances are in the order of their ids. Rows whose vector
        is null, or whose distance is not a number, are never found. A filter is applied to the rows found, unless
        `prefilter` is set. A vector index of the column with this metric is searched; without any, all vectors are
        compared.

        Parameters
        ----------
        column
            Column of fixed-size lists of numbers, or of lists of such vectors. The distance of a list to several
            vectors is the sum over these of the distances to the nearest vector of the list.
        q
            The other vector as an array or list of numbers. An array of two dimensions is a batch of queries: the
            result has the nearest rows of each, with its number in the column `query_index`.
        k
            Number of rows to find, 10 by default.
        metric
            ``l2`` (the squared Euclidean distance; also ``euclidean``), ``cosine``, ``dot`` or, for uint8 vectors,
            ``hamming``. By default, the metric of the index of the column, otherwise ``hamming`` for uint8 and ``l2``.
        use_index
            False for ignoring indices; all vectors are compared then.
        distance_range
            Limits of the distances: from the first to below the second; either may be None.
        nprobes
            Number of partitions of the index to search.
        minimum_nprobes, maximum_nprobes
            Numbers of partitions to search at first, and at most if these have too few rows.
        refine_factor
            Candidates to compare exactly for each row to find; None to trust the distances of the index.
        search_effort
            Effort from 0 to 1 instead of a number of partitions.
        recall
            Share of the nearest rows to find, instead of all of these. The cheapest parameters that reach it are
            chosen, by measurements with rows of the table, which the first such search makes.
        approx_mode
            How exactly distances of RaBitQ codes are estimated.
        ef, query_parallelism
            Checked, but without effect.

        Raises
        ------
        InvalidInputError, TypeError
            A value is never valid.
        """
        parameters = {
            "column": column,
            "q": q,
            "k": k,
            "metric": metric,
            "nprobes": nprobes,
            "minimum_nprobes": minimum_nprobes,
            "maximum_nprobes": maximum_nprobes,
            "refine_factor": refine_factor,
            "use_index": use_index,
            "ef": ef,
            "query_parallelism": query_parallelism,
            "approx_mode": approx_mode,
            "distance_range": distance_range,
            "search_effort": search_effort,
            "recall": recall,
        }
        return self._set("nearest", parameters)

    def full_text_search(self, query: object, columns: Sequence[str] | None = None) -> ScannerBuilder:
        """Return only the rows whose texts match a query, in the order of their scores.

        The result has a column `_score`, the score of the BM25 formula. A filter is applied to the rows found, unless
        `prefilter` is set. Fragments that the index does not cover, and columns without an index, are read.

        Parameters
        ----------
        query
            Text, or a query of `lance_dataset.query`.
        columns
            Columns to search for a text; None for all that have an INVERTED index. The best one determines the score.

        Raises
        ------
        InvalidInputError, TypeError
            A value is never valid.
        """
        return self._set("full_text_query", query if columns is None else {"query": query, "columns": columns})

    def minhash_search(self, query: MinHashQuery) -> ScannerBuilder:
        """Search for texts that are similar to another one. The column needs a MinHash index."""
        if not isinstance(query, MinHashQuery):
            raise TypeError(f"minhash_search expects a MinHashQuery, got {type(query).__name__}")
        return self._set("minhash_search", query)

    def with_index_segments(self, index_segments: Sequence[str]) -> ScannerBuilder:
        """Restrict a vector search to segments of its index, by their ids; other rows are not searched."""
        return self._set("index_segments", index_segments)

    def substrait_aggregate(self, aggregate: bytes) -> ScannerBuilder:
        """Aggregate by a Substrait plan. Not supported by this release."""
        return self._set("substrait_aggregate", aggregate)

    def prefilter(self, prefilter: bool) -> ScannerBuilder:
        """Filter before a search, not the rows found. This has no effect without a search."""
        return self._set("prefilter", prefilter)

    def fast_search(self, flag: bool) -> ScannerBuilder:
        """Leave out fragments that the index of a search, or those which answer the filter, do not cover."""
        return self._set("fast_search", flag)

    def on_index_error(self, action: Literal["raise", "scan"]) -> ScannerBuilder:
        """Set what happens if the files of an index are damaged: ``raise`` the error, or ``scan`` without the index."""
        return self._set("on_index_error", action)

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Leave out the scores of a search. This has no effect without a search."""
        return self._set("disable_scoring_autoprojection", disable)

    def to_scanner(self) -> LanceScanner:
        """Make the scanner.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError
            An option does not fit the dataset.
        """
        return _scanner(self._shown.snapshot, self._options)


def dataset_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the Arrow schema of a version. With default scan options, return the schema of a scan."""
    if snapshot.location.scan_options:
        return make_scanner(snapshot, {}).projected_schema
    return snapshot.manifest.schema.arrow


def make_scanner(snapshot: Snapshot, options: Mapping[str, Any], *, with_defaults: bool = True) -> LanceScanner:
    """Make a scanner over a snapshot.

    Parameters
    ----------
    snapshot
        Version to scan.
    options
        Keywords of `LanceDataset.scanner`. None means that an option is not given.
    with_defaults
        True to start from the default scan options of the dataset.

    Raises
    ------
    FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError, TypeError
        An option does not exist, or does not fit the version.
    """
    given = {**snapshot.location.scan_options} if with_defaults else {}
    given.update((name, value) for name, value in options.items() if value is not None)
    if "fragments" in given:
        given["fragments"] = _fragment_ids(given["fragments"])
    checked = {name: checked_option(name, value) for name, value in given.items()}
    return _scanner(snapshot, {name: value for name, value in checked.items() if value is not None})


def _fragment_ids(fragments: object) -> list[int] | None:
    """Return the ids of handles, which scans take instead; None for None."""
    if fragments is None:
        return None
    if isinstance(fragments, str) or not isinstance(fragments, Iterable):
        raise TypeError(f"fragments must be a list of LanceFragment, not {type(fragments).__name__}")
    ids: list[int] = []
    for fragment in fragments:
        fragment_id = getattr(fragment, "fragment_id", getattr(fragment, "id", None))
        if not isinstance(fragment_id, int):
            raise TypeError(f"fragments must be a list of LanceFragment, got {fragment!r}")
        ids.append(fragment_id)
    return ids


def _scanner(snapshot: Snapshot, options: Mapping[str, Any]) -> LanceScanner:
    text, condition = options.get("full_text_query"), options.get("filter")
    if options.get("index_segments") is not None and not isinstance(options.get("nearest"), NearestQuery):
        raise UnsupportedError("index_segments is only supported for vector search")
    if isinstance(condition, SearchFilter):
        from lance_dataset.api.scanner.filtered_search import filtered_search_scanner

        return filtered_search_scanner(snapshot, options, condition)
    if text is not None:
        from lance_dataset.api.scanner.text_scanner import full_text_scanner

        return full_text_scanner(snapshot, options, text)
    query = options.get("minhash_search", options.get("nearest"))
    if isinstance(query, NearestQuery):
        from lance_dataset.api.scanner.nearest_scanner import nearest_scanner

        return nearest_scanner(snapshot, options, query)
    if query is not None:
        from lance_dataset.api.scanner.minhash_scanner import minhash_scanner

        return minhash_scanner(snapshot, options, query)
    request = resolve_request(snapshot, options)
    allowed, blocked = address_sets(options)
    callback = options.get("scan_stats_callback")
    return LanceScanner(snapshot.reader, request, allowed=allowed, blocked=blocked, stats_callback=callback)
