"""Restriction of a scan to the rows that its filter names, directly or through indices."""

from __future__ import annotations

from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.pruning.row_pruning import named_rows
from lance_dataset.scan.request import ScanRequest

__all__ = ["narrowed"]


def narrowed(reader: TableReader, request: ScanRequest) -> ScanRequest:
    """Return the request restricted to the rows that its filter names, if that is less work.

    Raises
    ------
    CorruptFileError
        The files of an index contradict the format.
    """
    request = named_rows(reader, request)
    if request.indices is None or request.filter is None:
        return request
    # Imported here, so that `import lance_dataset` does not load what only tables with indices need.
    from lance_dataset.scan.indexed.answering import answered
    from lance_dataset.scan.indexed.checking import check_answer, is_checking

    found = answered(reader, request, at_any_cost=is_checking())
    if found.used_indices and is_checking():
        check_answer(reader, request, found)
    return found
