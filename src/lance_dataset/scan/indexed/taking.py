"""Scans of few rows that indices found: the rows are taken one by one, without windows and threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.indexed.answering import IndexAnswer
from lance_dataset.scan.request import ScanRequest
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["few_rows"]

#: Rows up to which taking them costs less than planning a scan.
_FEW_ROWS = 1 << 11


def few_rows(reader: TableReader, request: ScanRequest, answer: IndexAnswer) -> NDArray[np.uint64] | None:
    """Return the addresses of the rows of a scan if indices found all of them, and they are few; otherwise None.

    They are those of live rows, after offset and limit, in the order of the scan.
    """
    if not answer.is_exact or request.order_by or request.row_range is not None or request.metrics is not None:
        return None
    if reader.limit.max_bytes is not None or answer.addresses.num_rows > _FEW_ROWS:
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
    if request.fragments is not None or not columns.is_ascending:
        addresses = _in_scan_order(reader, request, addresses)
    stop = None if request.limit is None else request.offset + request.limit
    return addresses[request.offset : stop]


def _in_scan_order(reader: TableReader, request: ScanRequest, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
    ids = reader.manifest.fragment_list.columns.ids
    order = ids if request.fragments is None else ids[list(request.fragments)]
    ranks = {int(each): rank for rank, each in enumerate(order.tolist())}
    places = np.array([ranks[each] for each in fragments_of(addresses).tolist()], np.int64)
    return addresses[np.argsort(places, kind="stable")]
