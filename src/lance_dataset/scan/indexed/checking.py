"""Shadow mode: every answer of an index is compared with the scan without it."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.read.table_reader import TableReader
from lance_dataset.scan.engine import Scan
from lance_dataset.scan.indexed.answering import IndexAnswer
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.strategy import strategy
from lance_dataset.table.row_addresses import fragments_of

__all__ = ["check_answer", "is_checking"]

_VARIABLE = "LANCE_CHECK_INDICES"
_SHOWN_ROWS = 5


def is_checking() -> bool:
    """Return True if ``LANCE_CHECK_INDICES`` is 1: indices answer whatever they can, and are checked."""
    return os.environ.get(_VARIABLE) == "1"


def check_answer(reader: TableReader, request: ScanRequest, answer: IndexAnswer) -> None:
    """Raise an error unless a scan that indices answered selects the rows of the scan without them.

    Raises
    ------
    CorruptFileError
        It selects other rows.
    """
    expected, found = _addresses(reader, request), _addresses(reader, answer.restricted(reader, request))
    if request.only_indexed:
        covered = np.array(sorted(answer.covered), np.uint64)
        expected = expected[np.isin(fragments_of(expected), covered)]
    for rows, what in ((np.setdiff1d(expected, found), "misses"), (np.setdiff1d(found, expected), "adds")):
        if len(rows):
            shown = ", ".join(map(str, rows[:_SHOWN_ROWS].tolist())) + (", ..." if len(rows) > _SHOWN_ROWS else "")
            raise CorruptFileError(
                f"an index answers the filter {str(request.filter)!r} wrongly: it {what} {len(rows)} rows, those with "
                f"the addresses {shown} ({'; '.join(answer.texts())}); drop the index and create it again"
            )


def _addresses(reader: TableReader, request: ScanRequest) -> NDArray[np.uint64]:
    """Return the addresses of the rows that a request selects, ascending."""
    plain = replace(request, metrics=None)
    found = Scan(reader, plain, strategy(reader, plain)).each(lambda selection: list(selection.rows()))
    parts = [part.fragment.addresses(rows) for parts in found for part, rows in parts]
    return np.sort(np.concatenate([np.empty(0, np.uint64), *parts]))
