"""Results of searches: the best rows, after filters and sorting, with their columns and scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.expr.compiled import Filter
from lance_dataset.read.projection import OutputColumn, project
from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.address_sets import RowAddressSet
from lance_dataset.scan.request import Ordering
from lance_dataset.scan.scored_output import ScoredOutput, named_apart, stored_columns
from lance_dataset.scan.sort_keys import sort_indices, sortable
from lance_dataset.table.row_addresses import by_fragment, offsets_of

__all__ = ["UNLIMITED_ROWS", "ScoredRequest", "ScoredRows", "arranged", "best_rows", "taken_table"]

#: Rows that are filtered together, at least.
_FILTERED_ROWS = 1 << 10

#: Limit of a search without one.
UNLIMITED_ROWS = 1 << 62


@dataclass(frozen=True)
class ScoredRows:
    """Rows that a search found, the best first.

    Attributes
    ----------
    addresses : uint64[n]
        Addresses of live rows.
    found
        What was found for them; the last column is the score.
    """

    addresses: NDArray[np.uint64]
    found: pa.RecordBatch

    def take(self, places: NDArray[np.int64]) -> ScoredRows:
        """Return rows by their positions."""
        return ScoredRows(self.addresses[places], self.found.take(pa.array(places)))


@dataclass(frozen=True)
class ScoredRequest:
    """Request for the output of a search.

    Attributes
    ----------
    output
        Output columns.
    prefilter
        Condition of the rows to search in; None for all.
    postfilter
        Condition of the rows that are found, which may read the score; None for all.
    limit, offset
        Numbers of rows to return, and to skip. As many are searched for, before the postfilter.
    order_by
        Sort keys for the rows found; empty for the order of the scores.
    fragments
        Positions of the fragments to search in; None for all.
    allowed, blocked
        Rows to search in, and rows to leave out; None for no restriction.
    only_indexed
        True to leave out rows without an index.
    batch_size
        Maximum number of rows in a batch.
    """

    output: ScoredOutput
    prefilter: Filter | None = None
    postfilter: Filter | None = None
    limit: int = 10
    offset: int = 0
    order_by: tuple[Ordering, ...] = ()
    fragments: Collection[int] | None = None
    allowed: RowAddressSet | None = None
    blocked: RowAddressSet | None = None
    only_indexed: bool = False
    batch_size: int = 8192


def best_rows(reader: TableReader, found: ScoredRows, request: ScoredRequest) -> ScoredRows:
    """Return the rows of the result of a search, in its order.

    Parameters
    ----------
    reader
        The version.
    found
        All rows that the search found.
    request
        What to do with them.
    """
    return arranged(reader, _best(reader, found, request), request)


def arranged(reader: TableReader, best: ScoredRows, request: ScoredRequest) -> ScoredRows:
    """Return the rows that fulfil the postfilter, in the order of the sort keys, after offset and limit.

    Parameters
    ----------
    reader
        The version.
    best
        The rows that the search returns.
    request
        What to do with them.
    """
    if request.postfilter is not None:
        best = best.take(_kept(reader, best, request.postfilter, request.output))
    if request.order_by:
        best = best.take(_order(reader, best, request))
    if request.offset == 0 and request.limit >= len(best.addresses):
        return best
    return best.take(np.arange(len(best.addresses))[request.offset :][: request.limit])


def taken_table(reader: TableReader, rows: ScoredRows, request: ScoredRequest) -> pa.Table:
    """Return the output columns of rows."""
    output = request.output
    taken = take_addresses(reader, rows.addresses, output.named_apart, output.stored)
    return pa.Table.from_batches([output.assemble(taken.columns, rows.found)])


def _best(reader: TableReader, found: ScoredRows, request: ScoredRequest) -> ScoredRows:
    """Return the best rows that fulfil the prefilter, as many as are wanted."""
    for rows, is_allowed in ((request.allowed, True), (request.blocked, False)):
        if rows is not None:
            found = found.take(np.flatnonzero(_among(rows, found.addresses) == is_allowed))
    wanted = request.offset + request.limit
    if request.prefilter is None or wanted == 0:
        return found.take(np.arange(min(wanted, len(found.addresses))))
    places: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    step, count = max(_FILTERED_ROWS, 2 * wanted), 0
    for start in range(0, len(found.addresses), step):
        some = found.take(np.arange(start, min(start + step, len(found.addresses))))
        places.append(start + _kept(reader, some, request.prefilter, request.output))
        count += len(places[-1])
        if count >= wanted:
            break
    return found.take(np.concatenate(places)[:wanted])


def _among(rows: RowAddressSet, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each address whether it is in a set."""
    found = np.zeros(len(addresses), bool)
    for fragment_id, mine in by_fragment(addresses):
        if fragment_id in rows.fragments:
            offsets = rows.fragments[fragment_id]
            found[mine] = True if offsets is None else np.isin(offsets_of(addresses[mine]), offsets)
    return found


def _kept(reader: TableReader, rows: ScoredRows, filter: Filter, output: ScoredOutput) -> NDArray[np.int64]:
    """Return the positions of the rows that fulfil a condition."""
    if not len(rows.addresses):
        return np.empty(0, np.int64)
    taken = _taken(reader, rows, stored_columns(output.stored, output.found, [filter]), output)
    known = pa.RecordBatch.from_arrays(
        [*taken.columns, *rows.found.columns], names=[*taken.schema.names, *rows.found.schema.names]
    )
    return np.flatnonzero(np.asarray(filter.mask(known)))


def _order(reader: TableReader, rows: ScoredRows, request: ScoredRequest) -> NDArray[np.int64]:
    """Return the positions of the rows in the order of the sort keys."""
    if not len(rows.addresses):
        return np.empty(0, np.int64)
    columns = [project(request.output.stored, [key.column]).columns[0] for key in request.order_by]
    taken = _taken(reader, rows, columns, request.output)
    return sort_indices([sortable(column) for column in taken.columns], request.order_by)


def _taken(
    reader: TableReader, rows: ScoredRows, columns: Sequence[OutputColumn], output: ScoredOutput
) -> pa.RecordBatch:
    """Return columns of rows, under names of their own."""
    names = [column.arrow.name for column in columns]
    projection = output.named_apart if columns is output.projection.columns else named_apart(columns)
    taken = take_addresses(reader, rows.addresses, projection, output.stored)
    return pa.RecordBatch.from_arrays(taken.columns, names=names) if columns else taken
