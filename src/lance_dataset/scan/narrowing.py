"""Restriction of a scan to the rows that its filter names, directly or through indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import LanceError
from lance_dataset.log import LOGGER
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.request import ScanRequest

if TYPE_CHECKING:
    from lance_dataset.scan.indexed.answering import IndexAnswer

__all__ = ["narrowed", "narrowed_or_few"]


def narrowed(reader: TableReader, request: ScanRequest) -> ScanRequest:
    """Return the request restricted to the rows that its filter names, if that is less work.

    Raises
    ------
    CorruptFileError
        The files of an index contradict the format.
    """
    request = _named_rows(reader, request)
    answer = _answer(reader, request)
    return request if answer is None else answer.restricted(reader, request)


def narrowed_or_few(reader: TableReader, request: ScanRequest) -> ScanRequest | NDArray[np.uint64]:
    """Return the request restricted to the rows that its filter names, or their addresses if these are all and few.

    The addresses are those of live rows, after offset and limit, in the order of the scan.

    Raises
    ------
    CorruptFileError
        The files of an index contradict the format.
    """
    if request.filter is not None:
        from lance_dataset.scan.pruning.row_pruning import named_rows_or_few

        found = named_rows_or_few(reader, request)
        if not isinstance(found, ScanRequest):
            return found
        request = found
    answer = _answer(reader, request)
    if answer is None:
        return request
    from lance_dataset.scan.indexed.taking import few_rows

    few = few_rows(reader, request, answer)
    return answer.restricted(reader, request) if few is None else few


def _named_rows(reader: TableReader, request: ScanRequest) -> ScanRequest:
    if request.filter is None:
        return request
    from lance_dataset.scan.pruning.row_pruning import named_rows

    return named_rows(reader, request)


def _answer(reader: TableReader, request: ScanRequest) -> IndexAnswer | None:
    if request.indices is None or request.filter is None:
        return None
    # Imported here, so that `import lance_dataset` does not load what only tables with indices need.
    from lance_dataset.scan.indexed.answering import find_answer
    from lance_dataset.scan.indexed.checking import check_answer, is_checking

    if request.scans_on_index_error:
        try:
            return find_answer(reader, request)
        except (LanceError, OSError) as error:
            LOGGER.warning("an index cannot be read, so the filter %r is computed by a scan: %s", request.filter, error)
            return None
    if not is_checking():
        return find_answer(reader, request)
    answer = find_answer(reader, request, at_any_cost=True)
    if answer is not None:
        check_answer(reader, request, answer)
    return answer
