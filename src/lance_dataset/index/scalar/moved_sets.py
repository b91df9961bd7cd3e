"""Sets of rows in indices, with the addresses that the rows have now."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyroaring

from lance_dataset.errors import CorruptFileError
from lance_dataset.table.indices.moved_rows import Relocation
from lance_dataset.table.roaring import decode_bitmap, encode_without_runs
from lance_dataset.table.row_sets import (
    SetForm,
    SetPart,
    SetsLayout,
    bounds_of_sets,
    decode_sets,
    encode_sets,
    layout_of_sets,
)

__all__ = ["moved_sets"]

#: Bytes of sets taken at once; arrays of values are four times as large as those of a bitmap, and there are several.
_SLICE_BYTES = 4 << 20
#: Rows of one set taken at once.
_SLICE_ROWS = 1 << 20
_HIGH = np.uint64(32)


def moved_sets(sets: pa.Array, form: SetForm, moved: Relocation, where: str) -> pa.Array:
    """Serialized sets of rows, with the addresses after a move; rows that are gone are left out.

    Parameters
    ----------
    sets : Array of binary or large_binary
        One value for each set.
    form
        Form of the sets.
    moved
        Where rows are.
    where
        Name of the file, for error messages.

    Returns
    -------
    Array of the same type and length

    Raises
    ------
    CorruptFileError
        A value is no set.
    """
    if not (pa.types.is_binary(sets.type) or pa.types.is_large_binary(sets.type)):
        raise CorruptFileError(f"{where}: has a {form.name} of the type {sets.type}")
    wide = sets.cast(pa.large_binary())
    parts = [_moved_slice(part, form, moved, where) for part in _slices(wide)]
    return pa.concat_arrays([pa.array([], pa.large_binary()), *parts]).cast(sets.type)


def _slices(sets: pa.LargeBinaryArray) -> Iterator[pa.LargeBinaryArray]:
    """The sets, so many bytes at a time."""
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
            raise CorruptFileError(f"{where}: a {form.name} has a row of a fragment that was not there yet")
    written = encode_sets(owners, values, len(sets), form)
    dense = np.flatnonzero(layout.dense).tolist()
    if not dense:
        return written
    content = written.to_pylist()
    for number in dense:
        content[number] = _moved_set(layout, number, moved, where)
    return pa.array(content, pa.large_binary())


def _moved_set(layout: SetsLayout, number: int, moved: Relocation, where: str) -> bytes:
    """One set, fragment by fragment."""
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
        raise CorruptFileError(f"{where}: a {form.name} has a row of a fragment that was not there yet")
    parts.update({key: bitmap.serialize() for key, bitmap in made.items()})
    output = [struct.pack("<I" if form.count_bytes == 4 else "<Q", len(parts))]
    for key, content in sorted(parts.items()):
        output += [struct.pack("<I", key), struct.pack("<I", len(content)) if form.sized else b"", content]
    return b"".join(output)


def _moved_part(part: SetPart, rows: int, moved: Relocation, where: str) -> Iterator[tuple[int, pyroaring.BitMap]]:
    """Bitmaps of the rows of a rewritten fragment, by the fragments they are in now."""
    found = np.arange(rows, dtype=np.uint32) if part.bitmap is None else decode_bitmap(part.bitmap, rows, where)
    for start in range(0, len(found), _SLICE_ROWS):
        lower = found[start : start + _SLICE_ROWS].astype(np.uint64)
        values, gone = moved.locate(lower | np.uint64(part.key << 32))
        values = np.sort(values[~gone])
        keys = values >> _HIGH
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(values)], strict=False):
            yield int(keys[low]), pyroaring.BitMap.deserialize(encode_without_runs(values[low:high].astype(np.uint32)))
