"""Columns of a file that are one small page each, read together.

A table of thousands of columns has thousands of such pages. One compiled pass finds them, and another one decodes them.
Columns of any other form, and damaged ones, are left to their own readers, which report what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate, bit_width
from lance_dataset.file.container import FileMetadata
from lance_dataset.io.base import InputFile
from lance_dataset.threads.streams import map_parallel
from lance_dataset.types.schema import Field
from lancecodec import plain_columns
from lancecodec.batch_columns import BatchColumns

__all__ = ["DictionaryPlan", "PagePlan", "PlainPages", "find_plain_columns"]

_Pair: TypeAlias = "tuple[int, int]"
#: Codec and number of the entries of a dictionary, and how they are decoded first, if they must be.
DictionaryPlan: TypeAlias = "tuple[int, int, Callable[[pa.Buffer, int, int], pa.Buffer | None] | None]"
#: How a page is decoded; see `lancecodec.plain_columns.PlainColumns`.
PagePlan: TypeAlias = "tuple[int, int, int, int, bool, float, _Pair | None, DictionaryPlan | None]"

#: Most bytes of columns that share a buffer: one that is kept alone keeps no more than this. Larger ones share none.
_SHARED_BYTES = 1 << 20
#: Bytes from which on values are decoded by several threads.
_PARALLEL_BYTES = 16 << 20
#: Bytes around a value that the system loads for it, at least.
_LOADED_BYTES = 4 << 10


def find_plain_columns(
    metadata: FileMetadata,
    fields: Sequence[Field],
    indices: Sequence[int],
    num_rows: int,
    plan: Callable[[pa.DataType, bool, bytes, bytes], PagePlan | None],
) -> PlainPages | None:
    """Find the plain columns of some fields without children.

    Parameters
    ----------
    metadata
        The file.
    fields, indices
        The fields, and the columns of the file that hold them.
    num_rows
        Number of rows that the columns must have.
    plan
        Function of an Arrow type, whether values may be null, and the serialized ``Any`` messages of the encodings of a
        column and of its only page. It returns None for a page that is not plain, or is broken.

    Returns
    -------
    PlainPages or None
        None if the file is not mapped, or has too many rows for columns to be small.
    """
    mapped = metadata.source.mapped
    if mapped is None or not 0 < num_rows <= plain_columns.MOST_ROWS:
        return None
    types = [field.storage_type for field in fields]
    kinds: list[Hashable] = [(field.logical_type, field.nullable) for field in fields]
    named = dict(zip(kinds, zip(types, (field.nullable for field in fields), strict=True), strict=True))

    def plan_of(kind: Hashable, column: bytes, page: bytes) -> PagePlan | None:
        return plan(*named[kind], column, page)

    found = plain_columns.PlainColumns(mapped, metadata.column_table, list(indices), kinds, num_rows, plan_of)
    return PlainPages(metadata.source, mapped, found, types)


class PlainPages:
    """Plain columns of a file.

    Parameters
    ----------
    source, mapped
        The file and its bytes.
    columns
        The places of the values.
    types
        Arrow type of each column.

    Attributes
    ----------
    num_plain, copies_values
        See `PlainColumns`.
    """

    def __init__(
        self,
        source: InputFile,
        mapped: pa.Buffer,
        columns: plain_columns.PlainColumns | BatchColumns,
        types: list[pa.DataType],
    ) -> None:
        self._source = source
        self._mapped = mapped
        self._columns = columns
        self._types = types
        self._in_place = places = columns.in_place()
        self.num_plain = len(places) - places.count(None)
        self.copies_values = -1 not in places

    def read(self, start: int, stop: int) -> list[pa.Array | None]:
        """Return the rows ``[start, stop)`` of each column, None for those that are not plain.

        Values of whole bytes side by side are used in place.
        """
        count = stop - start
        decode = partial(self._columns.read, start=start, stop=stop)
        arrays = self._decoded(count, decode, taken=False)
        for number, (position, kind) in enumerate(zip(self._in_place, self._types, strict=True)):
            if position is not None and position >= 0:
                width = bit_width(kind) // 8
                values = self._mapped.slice(position + start * width, count * width)
                arrays[number] = pa.Array.from_buffers(kind, count, [None, values], 0)
        return arrays

    def take(self, rows: NDArray[np.int64]) -> list[pa.Array | None]:
        """Return the values of each column at ascending rows, None for columns that are not plain."""
        few = len(rows) * self.num_plain * _LOADED_BYTES < self._columns.extent()[2]
        return self._decoded(len(rows), partial(self._columns.take, rows=rows), taken=True, announced=not few)

    def _decoded(
        self, count: int, decode: Callable[..., list[int]], *, taken: bool, announced: bool = True
    ) -> list[pa.Array | None]:
        """Return the columns that `decode` writes to an output, None for others."""
        if count == 0:
            return [None] * len(self._types)
        if announced:
            self._announce()
        places = self._columns.places(count, taken)
        outputs: list[tuple[int, int, pa.Buffer]] = [
            (first, last, allocate(places[last] - places[first])) for first, last in _shared(places)
        ]
        work = [partial(decode, first, last, out=out) for first, last, out in outputs]
        decoded = map_parallel(lambda call: call(), work, parallel=places[-1] > _PARALLEL_BYTES)
        arrays: list[pa.Array | None] = [None] * len(self._types)
        build = pa.Array.from_buffers
        bitmap = (count + 7) // 8
        for (first, _, out), nulls in zip(outputs, decoded, strict=True):
            base = places[first]
            for number, missing in enumerate(nulls, first):
                place, end = places[number] - base, places[number + 1] - base
                if place == end or missing < 0:
                    continue
                values, validity = out.slice(place, end - place), None
                if missing:
                    validity = out.slice(end - _padded(bitmap), bitmap)
                arrays[number] = build(self._types[number], count, [validity, values], missing)
        return arrays

    def _announce(self) -> None:
        """Have the pages loaded together, unless much lies between them."""
        low, high, size = self._columns.extent()
        if high - low <= 2 * size:
            self._source.read_ranges([(low, high - low)])


def _padded(size: int) -> int:
    """Return a size with the bytes up to the next multiple of 64, where the next part of an output begins."""
    return -(-size // 64) * 64


def _shared(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of columns whose values share a buffer."""
    first, last = 0, len(places) - 1
    for number in range(1, len(places)):
        if number == last or places[number + 1] - places[first] > _SHARED_BYTES:
            yield first, number
            first = number
