"""Columns of a legacy file that are read together: values of a fixed size, and indices into dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.plain_pages import PlainPages
from lance_dataset.file.v0_1.container import LegacyFile
from lance_dataset.file.v0_1.layout import bits_per_row
from lance_dataset.types.schema import Field
from lancecodec import batch_columns, plain_columns

__all__ = ["LegacyPlainColumns", "open_plain_columns"]

_MOST_BITS = 512


def open_plain_columns(
    file: LegacyFile, fields: Sequence[Field], numbers: Sequence[int], num_rows: int
) -> LegacyPlainColumns | None:
    """Find the plain columns of some fields without children.

    Parameters
    ----------
    file
        The file.
    fields, numbers
        The fields, and the numbers by which the file knows them.
    num_rows
        Number of rows that the file must have.

    Returns
    -------
    LegacyPlainColumns or None
        None if the file is not mapped, or has too many rows or batches for columns to be small.
    """
    mapped = file.source.mapped
    if mapped is None or not 0 < num_rows == file.num_rows <= plain_columns.MOST_ROWS:
        return None
    if file.num_batches > batch_columns.MOST_BATCHES:
        return None
    kinds = [_stored(field) for field in fields]
    table = file.pages
    found = batch_columns.BatchColumns(
        mapped,
        file.batch_offsets,
        table.position,
        [number - table.base for number in numbers],
        [bits for _, bits in kinds],
        [_entries(field) for field in fields],
    )
    return LegacyPlainColumns(PlainPages(file.source, mapped, found, [kind for kind, _ in kinds]), fields)


class LegacyPlainColumns:
    """Plain columns of a legacy file.

    Parameters
    ----------
    pages
        The stored values: indices in place of the values of dictionaries.
    fields
        The fields.

    Attributes
    ----------
    num_plain, copies_values
        See `PlainColumns`.
    """

    def __init__(self, pages: PlainPages, fields: Sequence[Field]) -> None:
        self._pages = pages
        self.num_plain, self.copies_values = pages.num_plain, pages.copies_values
        self._dictionaries = [
            (number, field.dictionary_values) for number, field in enumerate(fields) if _entries(field) > 0
        ]

    def read(self, start: int, stop: int) -> list[pa.Array | None]:
        """Return the rows ``[start, stop)`` of each column, None for those that are not plain."""
        return self._resolved(self._pages.read(start, stop))

    def take(self, rows: NDArray[np.int64]) -> list[pa.Array | None]:
        """Return the values of each column at ascending rows, None for columns that are not plain."""
        return self._resolved(self._pages.take(rows))

    def _resolved(self, arrays: list[pa.Array | None]) -> list[pa.Array | None]:
        for number, values in self._dictionaries:
            indices = arrays[number]
            if indices is not None:  # and all of them have a value
                arrays[number] = pa.DictionaryArray.from_arrays(indices, values, safe=False)
        return arrays


def _stored(field: Field) -> tuple[pa.DataType, int]:
    """Return the type and bits of the stored values of a field; 0 bits if they have no fixed size."""
    kind = field.storage_type
    if field.children or (pa.types.is_dictionary(kind) and not _entries(field)):
        return kind, 0
    return _fixed(kind)


@lru_cache(maxsize=256)
def _fixed(kind: pa.DataType) -> tuple[pa.DataType, int]:
    if pa.types.is_dictionary(kind):
        kind = kind.index_type
    if pa.types.is_nested(kind):
        return kind, 0
    try:
        bits = bits_per_row(kind)
    except ValueError:
        return kind, 0
    return kind, bits if bits <= _MOST_BITS else 0


def _entries(field: Field) -> int:
    """Return the number of values of the dictionary of a field, 0 if it has none."""
    values = field.dictionary_values
    return 0 if values is None else len(values)
