"""Takes from many plain columns together: opening each of them takes longer than a few takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.plain_columns import PlainColumns
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.read.projection import OutputColumn
from lance_dataset.types.schema import Field

__all__ = ["MANY_COLUMNS", "find_wide", "take_wide"]

#: Columns from which on rows are taken from them together.
MANY_COLUMNS = 32


def find_wide(fragment: FragmentReader, outputs: Sequence[OutputColumn]) -> PlainColumns | None:
    """Return the columns of a projection to be taken together, None if they are too few."""
    wanted = _wanted(outputs)
    found = fragment.plain_columns(list(wanted.values())) if len(wanted) >= MANY_COLUMNS else None
    return None if found is None or found.num_plain < MANY_COLUMNS else found


def take_wide(
    fragment: FragmentReader, outputs: Sequence[OutputColumn], rows: NDArray[np.int64]
) -> dict[int, pa.Array]:
    """Take rows by physical offset, in any order, from the columns of a projection that can be read together.

    Returns
    -------
    dict
        By number of the output column; the others are to be taken one by one.
    """
    if len(outputs) < MANY_COLUMNS or len(rows) == 0:
        return {}
    columns = find_wide(fragment, outputs)
    # rows that do not exist are reported by the readers of single columns
    if columns is None or int(rows.min()) < 0 or int(rows.max()) >= fragment.physical_rows:
        return {}
    if bool((rows[1:] >= rows[:-1]).all()):
        taken = columns.take(np.ascontiguousarray(rows))
        return {number: array for number, array in zip(_wanted(outputs), taken, strict=True) if array is not None}
    order = np.argsort(rows, kind="stable")
    taken = columns.take(rows[order])
    numbers = [number for number, array in zip(_wanted(outputs), taken, strict=True) if array is not None]
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    sorted_ = pa.RecordBatch.from_arrays([array for array in taken if array is not None], [str(at) for at in numbers])
    return dict(zip(numbers, sorted_.take(pa.array(back)).columns, strict=True))


def _wanted(outputs: Sequence[OutputColumn]) -> dict[int, Field]:
    return {
        number: output.field
        for number, output in enumerate(outputs)
        if output.field is not None and not output.path and not output.field.children
    }
