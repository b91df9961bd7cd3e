"""Shadow mode of filtered scans: what each window selects is compared with the filter over all decoded values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import LanceError
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.scan.request import ScanRequest
from lance_dataset.scan.selection import Selection
from lance_dataset.scan.strategy import ScanStrategy
from lance_dataset.scan.windows import Window

__all__ = ["check_selection"]

_SHOWN_ROWS = 5


def check_selection(window: Window, request: ScanRequest, plan: ScanStrategy, found: Selection) -> None:
    """Raise an error unless a scan found the rows of a window for which its filter is true.

    Parameters
    ----------
    window
        The rows that were searched, with those that statistics excluded.
    request, plan
        The scan.
    found
        What was found.

    Raises
    ------
    LanceError
        There are other rows.
    """
    from lance_dataset.expr.tree import is_volatile
    from lance_dataset.scan.filtering import select_plainly

    if request.filter is None or (request.filter.tree is not None and is_volatile(request.filter.tree)):
        return
    try:
        expected = dict(_rows(select_plainly(window, request, plan)))
    except (pa.ArrowException, ArithmeticError, ValueError):
        return  # the filter has no value for some rows, and other conditions may have dropped them before
    for fragment, rows in _rows(found):
        _check_rows(fragment, request, expected.pop(fragment, np.empty(0, np.int64)), rows)
    for fragment, rows in expected.items():
        _check_rows(fragment, request, rows, np.empty(0, np.int64))


def _rows(selection: Selection) -> Iterator[tuple[FragmentReader, NDArray[np.int64]]]:
    return ((part.fragment, rows) for part, rows in selection.rows())


def _check_rows(
    fragment: FragmentReader, request: ScanRequest, expected: NDArray[np.int64], found: NDArray[np.int64]
) -> None:
    if np.array_equal(expected, found):
        return
    for rows, what in ((np.setdiff1d(expected, found), "misses"), (np.setdiff1d(found, expected), "adds")):
        if len(rows):
            shown = ", ".join(map(str, rows[:_SHOWN_ROWS].tolist())) + (", ..." if len(rows) > _SHOWN_ROWS else "")
            raise LanceError(
                f"a scan with the filter {str(request.filter)!r} {what} {len(rows)} rows of fragment "
                f"{fragment.fragment.id}, at the offsets {shown}; this is an error of this package, please report it "
                f"with the file"
            )
