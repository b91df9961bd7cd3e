"""What a scan is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset.query.expr import Filter
from lance_dataset.query.metrics import ScanMetrics
from lance_dataset.query.projection import Projection
from lance_dataset.query.prune import RowRanges
from lance_dataset.schema import Schema

__all__ = ["DEFAULT_BATCH_SIZE", "Ordering", "ScanRequest"]

DEFAULT_BATCH_SIZE = 8192


@dataclass(frozen=True)
class Ordering:
    """One sort key.

    Attributes
    ----------
    column
        A column, or a field inside of structs with its names dotted.
    ascending
        Smallest first.
    nulls_first
        Nulls before all values instead of after them, whichever way the values go.
    """

    column: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True)
class ScanRequest:
    """A scan, resolved against the schema.

    Attributes
    ----------
    schema
        Schema of the dataset.
    projection
        Output columns.
    filter
        Rows to keep; None for all.
    limit, offset
        Applied after filter and ordering.
    batch_size
        Most rows of a batch.
    strict_batch_size
        Whether every batch but the last has exactly `batch_size` rows.
    fragments
        Positions of the fragments to read, in order; None for all.
    row_range
        Physical row offsets ``[start, stop)`` inside each fragment; None for all.
    order_by
        Sort keys; empty for storage order.
    include_deleted
        Whether deleted rows come too, with a null `_rowid`.
    rows
        By fragment id, the only physical rows that are looked at; fragments that are not in it have none. None for all.
    use_statistics
        Whether rows that statistics exclude may be left unread; what is returned is the same either way.
    in_order
        Whether rows come in storage order; else windows come as they are done.
    late
        Which columns besides those of the filter are read only for rows that it keeps: all (True), none (False), those
        of these names, or what is cheaper window by window (None). The result is the same.
    io_buffer_size
        Most bytes of decoded rows that wait to be consumed, None for the default.
    batch_readahead, fragment_readahead
        Most windows, and most fragments, that are read ahead of the consumer; None for as many as keep threads busy.
    metrics
        Counts what the steps of the scan do, None to count nothing.
    """

    schema: Schema
    projection: Projection
    filter: Filter | None = None
    limit: int | None = None
    offset: int = 0
    batch_size: int = DEFAULT_BATCH_SIZE
    strict_batch_size: bool = False
    fragments: tuple[int, ...] | None = None
    row_range: tuple[int, int] | None = None
    order_by: tuple[Ordering, ...] = field(default=())
    include_deleted: bool = False
    rows: Mapping[int, RowRanges] | None = None
    use_statistics: bool = True
    in_order: bool = True
    late: bool | tuple[str, ...] | None = None
    io_buffer_size: int | None = None
    batch_readahead: int | None = None
    fragment_readahead: int | None = None
    metrics: ScanMetrics | None = field(default=None, compare=False)
