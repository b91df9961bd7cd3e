"""Rows of serialized row sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.table.roaring import bitmap_parts
from lance_dataset.table.row_addresses import addresses_in
from lance_dataset.table.row_sets import SetForm, decode_sets, layout_of_sets

__all__ = ["rows_of_sets"]

_Rows = NDArray[np.uint64]
#: Rows that a fragment can have.
_MOST = 1 << 32


def rows_of_sets(sets: pa.Array, form: SetForm, rows_in: Callable[[int], int], where: str) -> list[_Rows]:
    """Return the rows of each set, ascending.

    Parameters
    ----------
    sets : Array of binary or large_binary
        The sets.
    form
        Their form.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment whose rows are all in a set.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        A value is not a serialized set.
    """
    layout = layout_of_sets(sets.cast(pa.large_binary()), form, where)
    owners, values = decode_sets(layout, ~layout.dense, where)
    cuts = np.searchsorted(owners, np.arange(len(sets) + 1)).tolist()
    found = [values[start:stop] for start, stop in pairwise(cuts)]
    for number in np.flatnonzero(layout.dense).tolist():
        parts = [np.empty(0, np.uint64)]
        for part in layout.parts(number):
            if part.bitmap is None:
                parts.append(addresses_in(part.key, np.arange(rows_in(part.key))))
            else:
                parts += [addresses_in(part.key, lower) for lower in bitmap_parts(part.bitmap, _MOST, where)]
        found[number] = np.concatenate(parts)
    return found
