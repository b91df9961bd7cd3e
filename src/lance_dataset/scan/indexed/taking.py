"""Scans of few rows that indices found: the rows are taken one by one, without windows and threads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.read.take import take_addresses
from lance_dataset.scan.costs import ColumnCosts
from lance_dataset.scan.few_rows import FEW_ROWS, few_of_scan, may_take
from lance_dataset.scan.indexed.answering import IndexAnswer
from lance_dataset.scan.projections import scan_projection
from lance_dataset.scan.request import ScanRequest
from lance_dataset.table.address_ranges import AddressRanges
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["few_rows"]

#: Rows up to which taking them costs less than planning a scan, if they are scattered: in ranges that have fewer than
#: `_RANGE_ROWS` rows on average.
_SCATTERED_ROWS = 1 << 17
#: Bytes of the columns of a filter that are taken together, and rows up to which they are not estimated.
_MOST_BYTES = 32 << 20
_UNMEASURED_ROWS = 256
_RANGE_ROWS = 4


def few_rows(reader: TableReader, request: ScanRequest, answer: IndexAnswer) -> NDArray[np.uint64] | None:
    """Return the addresses of the rows of a scan if indices found all of them, and they are few; otherwise None.

    They are those of live rows that the filter keeps, after offset and limit, in the order of the scan.
    """
    if not may_take(reader, request) or not _are_few(answer.addresses):
        return None
    columns = reader.manifest.fragment_list.columns
    addresses = answer.addresses.addresses()
    if request.fragments is None:
        if len(answer.covered) < len(columns.ids) and not request.only_indexed:
            return None
    else:
        chosen = columns.ids[list(request.fragments)]
        if not request.only_indexed and not answer.covered.issuperset(chosen.tolist()):
            return None
        addresses = addresses[np.isin(fragments_of(addresses), chosen)]
    if request.only_indexed:
        addresses = addresses[np.isin(fragments_of(addresses), np.array(sorted(answer.covered), np.uint64))]
    if columns.num_deletion_files:
        addresses = addresses[reader.is_live(addresses)]
    if not answer.is_exact:
        kept = _kept(reader, request, addresses)
        if kept is None:
            return None
        addresses = kept
    return few_of_scan(reader, request, addresses)


def _are_few(addresses: AddressRanges) -> bool:
    rows = addresses.num_rows
    return rows <= FEW_ROWS or (rows <= _SCATTERED_ROWS and rows < _RANGE_ROWS * len(addresses.starts))


def _kept(reader: TableReader, request: ScanRequest, addresses: NDArray[np.uint64]) -> NDArray[np.uint64] | None:
    """Return the addresses of the rows that the filter keeps; None if it reads more than plain columns."""
    filter = request.filter
    if filter is None or any(name not in request.schema.names for name in filter.columns):
        return None
    fields = [request.schema.top_level(name) for name in filter.columns]
    if len(addresses) > _UNMEASURED_ROWS:
        costs = ColumnCosts.of(reader, request)
        if len(addresses) * sum(costs.cost(field).decoded for field in fields) > _MOST_BYTES:
            return None
    if any(isinstance(field.to_arrow().type, pa.BaseExtensionType) for field in fields):
        return None
    projection = scan_projection(reader, list(filter.columns), False, False)
    taken = take_addresses(reader, addresses, projection, request.schema)
    return addresses[filter.mask(taken).to_numpy(zero_copy_only=False)]
