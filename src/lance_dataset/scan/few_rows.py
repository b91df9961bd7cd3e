"""Scans of few rows that are known before: the rows are taken one by one, without windows and threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import ScanRequest
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["FEW_ROWS", "few_of_scan", "may_take"]

#: Rows up to which taking them costs less than planning a scan.
FEW_ROWS = 1 << 11


def may_take(reader: TableReader, request: ScanRequest) -> bool:
    """Return True if rows that are taken can be the result of a scan."""
    if request.order_by or request.row_range is not None or request.metrics is not None:
        return False
    if reader.limit.max_bytes is not None:
        return False
    return request.fragments is None or len(set(request.fragments)) == len(request.fragments)


def few_of_scan(reader: TableReader, request: ScanRequest, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the rows of a scan after offset and limit, in its order, given those of its fragments that it keeps.

    `addresses` are ascending.
    """
    columns = reader.manifest.fragment_list.columns
    if request.fragments is not None or not columns.is_ascending:
        order = columns.ids if request.fragments is None else columns.ids[list(request.fragments)]
        ranks = {int(each): rank for rank, each in enumerate(order.tolist())}
        places = np.array([ranks[each] for each in fragments_of(addresses).tolist()], np.int64)
        addresses = addresses[np.argsort(places, kind="stable")]
    stop = None if request.limit is None else request.offset + request.limit
    return addresses[request.offset : stop]
