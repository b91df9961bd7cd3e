"""`ScannerBuilder`: collects the options of a scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from lance_dataset.scanner.options import ColumnOrdering, Columns, checked_option
from lance_dataset.scanner.requests import address_sets, resolve_request
from lance_dataset.scanner.running import LanceScanner
from lance_dataset.scanner.statistics import ScanStatistics

if TYPE_CHECKING:
    from lance_dataset.dataset import LanceDataset
    from lance_dataset.fragment import LanceFragment

__all__ = ["ScannerBuilder"]


class ScannerBuilder:
    """Collects the options of a scan; every method returns the builder itself.

    Parameters
    ----------
    ds
        The dataset.
    defaults
        Options to start from; the default scan options of the dataset if None.
    """

    def __init__(self, ds: LanceDataset, defaults: Mapping[str, Any] | None = None) -> None:
        self._dataset = ds
        self._options: dict[str, Any] = {}
        self.apply_defaults(ds._default_scan_options if defaults is None else defaults)

    def apply_defaults(self, default_opts: Mapping[str, Any] | None) -> ScannerBuilder:
        """Take over options given as a mapping of `LanceDataset.scanner` keywords."""
        for name, value in (default_opts or {}).items():
            checked = checked_option(name, value)
            if value is not None:
                self._options[name] = checked
        return self

    def _set(self, name: str, value: Any) -> ScannerBuilder:
        """Set an option, or forget what was set if the value is None."""
        checked = checked_option(name, value)
        if checked is None:
            self._options.pop(name, None)
        else:
            self._options[name] = checked
        return self

    def columns(self, cols: Columns = None) -> ScannerBuilder:
        """Names, or output name -> SQL expression; None for all columns."""
        return self._set("columns", cols)

    def filter(self, filter: str | pc.Expression | Mapping[str, Any] | None) -> ScannerBuilder:
        """SQL text, a pyarrow expression, or either as ``expr_filter`` of a dictionary."""
        return self._set("filter", filter)

    def limit(self, n: int | None = None) -> ScannerBuilder:
        """Most rows to return."""
        return self._set("limit", n)

    def offset(self, n: int | None = None) -> ScannerBuilder:
        """Rows to skip."""
        return self._set("offset", n)

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        """Most rows of a batch."""
        return self._set("batch_size", batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        """Approximate size of a batch."""
        return self._set("batch_size_bytes", batch_size_bytes)

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        """Whether every batch but the last has exactly the batch size."""
        return self._set("strict_batch_size", strict_batch_size)

    def order_by(self, orderings: Sequence[ColumnOrdering | str] | None) -> ScannerBuilder:
        """Sort keys."""
        return self._set("order_by", orderings)

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        """Append `_rowid`."""
        return self._set("with_row_id", with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        """Append `_rowaddr`."""
        return self._set("with_row_address", with_row_address)

    def with_fragments(self, fragments: Sequence[LanceFragment] | None) -> ScannerBuilder:
        """Restrict the scan to fragments, in the order given."""
        return self._set("fragments", fragments)

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        """Return deleted rows too, their `_rowid` null."""
        return self._set("include_deleted_rows", flag)

    def row_addr_prefilter(self, allowlist: bytes | None = None, blocklist: bytes | None = None) -> ScannerBuilder:
        """Return only rows whose addresses are allowed and not blocked: sets that `serialize_row_addrs` makes."""
        return self._set("row_addr_allowlist", allowlist)._set("row_addr_blocklist", blocklist)

    def scan_stats_callback(self, callback: Callable[[ScanStatistics], object]) -> ScannerBuilder:
        """Call a function with `ScanStatistics` after every run that reads all rows of the scan."""
        return self._set("scan_stats_callback", callback)

    def row_range(self, start: int, stop: int) -> ScannerBuilder:
        """Restrict the scan to physical row offsets ``[start, stop)`` of each fragment."""
        return self._set("row_range", (start, stop))

    def blob_handling(self, blob_handling: str | None) -> ScannerBuilder:
        """How blob columns are returned: ``blobs_descriptions`` (or ``all_descriptions``), or ``all_binary``."""
        return self._set("blob_handling", blob_handling)

    # What follows steers how a scan runs, not what it returns.

    def batch_readahead(self, nbatches: int | None = None) -> ScannerBuilder:
        """Most windows of rows that are read before they are asked for."""
        return self._set("batch_readahead", nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> ScannerBuilder:
        """Most fragments that are read before they are asked for."""
        return self._set("fragment_readahead", nfragments)

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        """Most bytes of rows that wait to be asked for, 128 MiB unless it is less."""
        return self._set("io_buffer_size", io_buffer_size)

    def late_materialization(self, late_materialization: bool | list[str]) -> ScannerBuilder:
        """Which columns to read only for rows that the filter keeps: all, none, or those of some names."""
        return self._set("late_materialization", late_materialization)

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        """Whether rows come in storage order; otherwise they come as they are read."""
        return self._set("scan_in_order", scan_in_order)

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        """Let filters use indices; this release has none, so nothing changes."""
        return self._set("use_scalar_index", use_scalar_index)

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        """Let filters skip what the statistics of files exclude, as they do unless told otherwise."""
        return self._set("use_stats", use_stats)

    # Searches need indices, which this release does not have: it refuses them.

    def nearest(self, column: str, q: object, k: int | None = None, **options: object) -> ScannerBuilder:
        """Vector search; not in this release."""
        return self._set("nearest", {"column": column, "q": q, "k": k, **options})

    def full_text_search(self, query: object, columns: object = None) -> ScannerBuilder:
        """Full-text search; not in this release."""
        return self._set("full_text_query", query)

    def minhash_search(self, query: object) -> ScannerBuilder:
        """Similarity search; not in this release."""
        return self._set("minhash_search", query)

    def with_index_segments(self, index_segments: object) -> ScannerBuilder:
        """Restrict a vector search to segments of its index; not in this release."""
        return self._set("index_segments", index_segments)

    def substrait_aggregate(self, aggregate: bytes) -> ScannerBuilder:
        """Aggregate as a Substrait plan says; not in this release."""
        return self._set("substrait_aggregate", aggregate)

    def prefilter(self, prefilter: bool) -> ScannerBuilder:
        """Filter before a search; without a search nothing changes."""
        return self._set("prefilter", prefilter)

    def fast_search(self, flag: bool) -> ScannerBuilder:
        """Search indexed rows only; nothing changes without indices, and datasets that have some are refused."""
        return self._set("fast_search", flag)

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Do not append scores of a search; without a search nothing changes."""
        return self._set("disable_scoring_autoprojection", disable)

    def to_scanner(self) -> LanceScanner:
        """The scanner.

        Raises
        ------
        FieldNotFoundError, FilterError, InvalidInputError, UnsupportedError
            An option does not fit the dataset.
        """
        dataset = self._dataset
        reader, all_columns = dataset._reader, partial(dataset._take_projection, None)
        request = resolve_request(reader, dataset._scanned_schema, self._options, all_columns)
        allowed, blocked = address_sets(self._options)
        callback = self._options.get("scan_stats_callback")
        return LanceScanner(reader, request, allowed=allowed, blocked=blocked, stats_callback=callback)
