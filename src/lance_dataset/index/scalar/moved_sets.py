"""Row sets of indices, rewritten with the new addresses of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.roaring import bitmap_parts, encode_without_runs
from lance_dataset.table.row_sets import (
    SetForm,
    SetPart,
    SetsLayout,
    bounds_of_sets,
    decode_sets,
    encode_parts,
    encode_sets,
    layout_of_sets,
)

__all__ = ["moved_sets"]

#: Bytes of sets processed together; arrays of values are four times as large as bitmaps, and there are several.
_SLICE_BYTES = 4 << 20
#: Rows of one set processed together.
_SLICE_ROWS = 1 << 20
_SLICE_CONTAINERS = _SLICE_ROWS >> 16
_HIGH = np.uint64(32)


def moved_sets(sets: pa.Array, form: SetForm, moved: Relocation, where: str) -> pa.Array:
    """Rewrite serialized row sets with the addresses after a move; rows that are gone are left out.

    Parameters
    ----------
    sets : Array of binary or large_binary
        One value for each set.
    form
        Form of the sets.
    moved
        New addresses of the rows.
    where
        Name of the file, for error messages.

    Returns
    -------
    Array of the same type and length

    Raises
    ------
    CorruptFileError
        A value is not a serialized set.
    """
    if not (pa.types.is_binary(sets.type) or pa.types.is_large_binary(sets.type)):
        raise CorruptFileError(f"{where}: has a {form.name} of type {sets.type}")
    wide = sets.cast(pa.large_binary())
    parts = [_moved_slice(part, form, moved, where) for part in _slices(wide)]
    return pa.concat_arrays([pa.array([], pa.large_binary()), *parts]).cast(sets.type)


def _slices(sets: pa.LargeBinaryArray) -> Iterator[pa.LargeBinaryArray]:
    """Yield the sets in slices of a limited number of bytes."""
    bounds = bounds_of_sets(sets)
    start = 0
    while start < len(sets):
        stop = int(np.searchsorted(bounds, bounds[start] + _SLICE_BYTES, side="right")) - 1
        stop = min(max(stop, start + 1), len(sets))
        yield sets.slice(start, stop - start)
        start = stop


def _moved_slice(sets: pa.LargeBinaryArray, form: SetForm, moved: Relocation, where: str) -> pa.LargeBinaryArray:
    layout = layout_of_sets(sets, form, where)
    owners, values = decode_sets(layout, ~layout.dense, where)
    values, gone = moved.locate(values)
    owners, values = owners[~gone], values[~gone]
    same = owners[1:] == owners[:-1]
    if (same & (values[1:] <= values[:-1])).any():
        order = np.lexsort((values, owners))
        owners, values = owners[order], values[order]
        if ((owners[1:] == owners[:-1]) & (values[1:] == values[:-1])).any():
            raise CorruptFileError(f"{where}: a {form.name} has a row of a fragment that did not exist yet")
    written = encode_sets(owners, values, len(sets), form)
    dense = np.flatnonzero(layout.dense).tolist()
    if not dense:
        return written
    content = written.to_pylist()
    for number in dense:
        content[number] = _moved_set(layout, number, moved, where)
    return pa.array(content, pa.large_binary())


def _moved_set(layout: SetsLayout, number: int, moved: Relocation, where: str) -> bytes:
    """Rewrite one set, fragment by fragment."""
    form = layout.form
    parts: dict[int, bytes] = {}
    made: dict[int, pyroaring.BitMap] = {}
    for part in layout.parts(number):
        rows = moved.physical_rows(part.key)
        if rows is None:
            parts[part.key] = part.bitmap or b""
            continue
        for key, bitmap in _moved_part(part, rows, moved, where):
            made[key] = made[key] | bitmap if key in made else bitmap
    if not made.keys().isdisjoint(parts):
        raise CorruptFileError(f"{where}: a {form.name} has a row of a fragment that did not exist yet")
    parts.update({key: bitmap.serialize() for key, bitmap in made.items()})
    return encode_parts(parts, form)


def _moved_part(part: SetPart, rows: int, moved: Relocation, where: str) -> Iterator[tuple[int, pyroaring.BitMap]]:
    """Yield bitmaps of the rows of a rewritten fragment, one for each fragment that they are in now."""
    for lower in _lower_halves(part, rows, where):
        values, gone = moved.locate(lower.astype(np.uint64) | np.uint64(part.key << 32))
        values = np.sort(values[~gone])
        keys = values >> _HIGH
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=False):
            yield int(keys[low]), pyroaring.BitMap.deserialize(encode_without_runs(values[low:high].astype(np.uint32)))


def _lower_halves(part: SetPart, rows: int, where: str) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the rows of a fragment in a set, in portions of limited size."""
    if part.bitmap is None:
        for start in range(0, rows, _SLICE_ROWS):
            yield np.arange(start, min(start + _SLICE_ROWS, rows), dtype=np.uint32)
        return
    parts = bitmap_parts(part.bitmap, rows, where)
    while several := list(islice(parts, _SLICE_CONTAINERS)):
        yield np.concatenate(several)
