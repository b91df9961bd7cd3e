"""Check of the files with values of blob columns of version 2."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.blob_arrays import converted
from lance_dataset.file.blob_fields import described
from lance_dataset.file.options import is_blob_v2
from lance_dataset.read.blob_places import BlobKind, BlobPlaces, Descriptors
from lance_dataset.read.fragment_reader import FragmentReader
from lance_dataset.types.schema import Field, Schema

__all__ = ["check_blob_files"]

_ROWS = 1 << 16


def check_blob_files(reader: FragmentReader, schema: Schema) -> None:
    """Check that the values of live rows that are stored in the table lie in files that exist and are long enough.

    Values are not read. External objects are not looked for.

    Raises
    ------
    CorruptFileError
        A value lies outside of its file, or its descriptor is not one that a writer makes.
    MissingFileError
        A file is missing.
    """
    for top in schema.fields:
        if any(is_blob_v2(node) for node in top.walk()):
            _check_column(reader, top)


def _check_column(reader: FragmentReader, top: Field) -> None:
    have = described(top)
    column = reader.column(have)
    ends: dict[tuple[int, int], int] = {}

    def noted(array: pa.Array, node: Field, wanted: Field) -> pa.Array:
        places = reader.blob_places(node.id)
        if places is not None:
            _note(Descriptors.of(array), places, node.id, ends)
        return pa.nulls(len(array), wanted.storage_type)

    for start in range(0, reader.physical_rows, _ROWS):
        stop = min(start + _ROWS, reader.physical_rows)
        live = reader.live_rows(start, stop)
        converted(column.read(start, stop) if live is None else column.take(live), have, top, noted)
    for (field_id, number), end in ends.items():
        places = reader.blob_places(field_id)
        assert places is not None  # it was when the end was noted
        # opens the file and compares the end with its size
        _ = places.range_of(BlobKind.PACKED, 0, end, number, "").source


def _note(found: Descriptors, places: BlobPlaces, field_id: int, ends: dict[tuple[int, int], int]) -> None:
    """Check inline values; note the last byte that is used of each file beside the data file."""
    unknown = found.valid & (found.kinds > max(BlobKind))
    if unknown.any():
        raise CorruptFileError(f"a blob has the unknown kind {int(found.kinds[np.argmax(unknown)])}")
    stored = found.valid & (found.sizes > 0) & (found.kinds <= BlobKind.DEDICATED)
    ends_of = found.positions[stored].astype(object) + found.sizes[stored].astype(object)
    kinds, numbers = found.kinds[stored], found.blob_ids[stored]
    inline = kinds == BlobKind.INLINE
    if inline.any():
        _ = places.range_of(BlobKind.INLINE, 0, max(ends_of[inline]), 0, "").source
    for number in np.unique(numbers[~inline]).tolist():
        last: NDArray[np.object_] = ends_of[~inline & (numbers == number)]
        ends[field_id, number] = max(ends.get((field_id, number), 0), *last.tolist())
