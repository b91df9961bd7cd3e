"""Options of a scan, resolved against a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from lance_dataset.late_dataclass import dataclass
from lance_dataset.read.projection import Projection
from lance_dataset.scan.metrics import ScanMetrics
from lance_dataset.scan.row_ranges import RowRanges
from lance_dataset.types.schema import Field, Schema

if TYPE_CHECKING:
    from lance_dataset.expr.compiled import Filter
    from lance_dataset.index.open_segments import TableIndices

__all__ = ["DEFAULT_BATCH_SIZE", "Ordering", "ScanRequest"]

DEFAULT_BATCH_SIZE = 8192


@dataclass(frozen=True)
class Ordering:
    """One sort key.

    Attributes
    ----------
    column
        A column, or a field inside structs as a dotted name.
    ascending
        Sort the smallest values first.
    nulls_first
        Sort nulls before all values instead of after them, in either direction.
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
        Maximum number of rows in a batch.
    strict_batch_size
        If true, every batch but the last has exactly `batch_size` rows.
    fragments
        Positions of the fragments to read, in order; None for all.
    row_range
        Physical row offsets ``[start, stop)`` inside each fragment; None for all.
    order_by
        Sort keys; empty for storage order.
    include_deleted
        If true, deleted rows are returned too, with a null `_rowid`.
    rows
        The only physical rows to examine, by fragment id; fragments that are missing have none. None for all.
    use_statistics
        If true, rows that statistics exclude may be left unread; the result is the same either way.
    in_order
        If true, rows come in storage order; otherwise windows come in the order in which they finish.
    late
        Columns besides those of the filter that are read only for rows that it keeps: all (True), none (False), those
        of these names, or whatever is cheaper window by window (None). The result is the same.
    io_buffer_size
        Maximum number of bytes of decoded rows that wait to be consumed, None for the default.
    memory_limit
        Bytes of memory that the scan may use, and that its result may have; None for no limit.
    batch_readahead, fragment_readahead
        Maximum number of windows and of fragments read ahead of the consumer; None for as many as keep threads busy.
    metrics
        Counters of the steps of the scan; None to count nothing.
    indices
        Indices that may answer the filter; None to use none. The result is the same.
    only_indexed
        True to leave out the fragments that the indices which answer the filter do not cover.
    scans_on_index_error
        True to scan if the files of an index are damaged or missing, False to raise the error.
    used_indices
        Descriptions of the lookups in indices that `rows` is the result of.
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
    memory_limit: int | None = None
    batch_readahead: int | None = None
    fragment_readahead: int | None = None
    metrics: ScanMetrics | None = field(default=None, compare=False)
    indices: TableIndices | None = field(default=None, compare=False, repr=False)
    only_indexed: bool = False
    scans_on_index_error: bool = False
    used_indices: tuple[str, ...] = ()

    @property
    def stored_fields(self) -> list[Field]:
        """Stored columns that the scan may read."""
        names = [] if self.filter is None else list(self.filter.columns)
        found: dict[tuple[int, ...], Field] = {}
        for output in self.projection.columns:
            if output.field is not None:
                found[tuple(node.id for node in output.field.walk())] = output.field
            elif output.expression is not None:
                names.extend(output.expression.columns)
        for name in dict.fromkeys(names):
            if name in self.schema.names:
                stored = self.schema.top_level(name)
                found[tuple(node.id for node in stored.walk())] = stored
        return list(found.values())
