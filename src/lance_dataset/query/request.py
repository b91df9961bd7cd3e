"""What a scan is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_dataset.query.expr import Filter
from lance_dataset.query.projection import Projection
from lance_dataset.query.prune import RowRanges
from lance_dataset.schema import Schema

__all__ = ["DEFAULT_BATCH_SIZE", "Ordering", "ScanRequest"]

DEFAULT_BATCH_SIZE = 8192


@dataclass(frozen=True)
class Ordering:
    """One sort key."""

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
        By fragment id, the physical rows outside of which the filter keeps none; None where that is not known. Then
        `fragments` are those in it.
    use_statistics
        Whether rows that statistics exclude may be left unread; what is returned is the same either way.
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
