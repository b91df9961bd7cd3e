"""Rows of serialized row sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.table.roaring import bitmap_parts
from lance_dataset.table.row_addresses import addresses_in
from lance_dataset.table.row_sets import SetForm, bounds_of_sets, decode_sets, layout_of_sets
from lancecodec.errors import CodecError
from lancecodec.search.row_sets import RowSets

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
    wide = sets.cast(pa.large_binary())
    found = _decoded(wide, form, where)
    return _examined(wide, form, rows_in, where) if found is None else found


def _decoded(sets: pa.LargeBinaryArray, form: SetForm, where: str) -> list[_Rows] | None:
    """Decode sets in one call; return None if a set has runs, has all rows of a fragment, or is damaged."""
    if sets.null_count:
        return None
    content = sets.buffers()[2] if len(sets) else None
    try:
        known = RowSets(b"" if content is None else content, bounds_of_sets(sets), form.count_bytes, form.sized)
        stops = np.empty(len(sets), np.int64)
        counts = np.empty(known.describe(stops, np.empty(0, np.int64)), np.int64)
        known.describe(stops, counts)
        ends = np.append(0, np.cumsum(counts))
        rows = np.empty(int(ends[-1]), np.uint64)
        known.decode(0, len(counts), rows)
    except CodecError:
        return None
    cuts = ends[np.append(0, stops)].tolist()
    return [rows[start:stop] for start, stop in pairwise(cuts)]


def _examined(sets: pa.LargeBinaryArray, form: SetForm, rows_in: Callable[[int], int], where: str) -> list[_Rows]:
    layout = layout_of_sets(sets, form, where)
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
