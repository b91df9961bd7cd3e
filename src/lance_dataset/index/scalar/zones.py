"""Zones of zone-map and Bloom-filter indices: a number of consecutive live rows of a fragment each.

The files of both kinds have one row for each zone. The range of rows of a zone includes rows between its first and last
one that were deleted when it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.index.files import IndexTable
from lance_dataset.properties import cached_property
from lance_dataset.table.address_ranges import NO_ADDRESSES, AddressRanges
from lance_dataset.table.roaring import bitmap_runs
from lance_dataset.table.row_addresses import addresses_in, first_addresses, fragments_of
from lance_dataset.table.row_sets import ROW_SETS, SetPart, layout_of_sets

__all__ = ["DEFAULT_ZONE_ROWS", "NULL_ROWS", "ZONE_COLUMNS", "Zones", "null_parts", "null_rows"]

_Addresses = NDArray[np.uint64]

#: Columns of the fragment, the offset of the first row, and the distance from there to behind the last row.
ZONE_COLUMNS: Final = ("fragment_id", "zone_start", "zone_length")
#: Key of the global buffer with the rows that are null; releases up to 4.0.0 did not write it.
NULL_ROWS: Final = "null_bitmap"
DEFAULT_ZONE_ROWS: Final = 8192
#: Rows that a fragment can have.
_MOST_ROWS = 1 << 32


@dataclass(frozen=True)
class Zones:
    """Zones of a file.

    Attributes
    ----------
    firsts, stops : uint64[n]
        Zone i has the addresses ``[firsts[i], stops[i])``.
    """

    firsts: _Addresses
    stops: _Addresses

    @staticmethod
    def read(table: IndexTable, batch: pa.RecordBatch) -> Zones:
        """Take the zones out of rows of a file.

        Raises
        ------
        CorruptFileError
            A zone is not a range of rows of a fragment.
        """
        owners, starts, lengths = (_numbers(table, batch, name) for name in ZONE_COLUMNS)
        most = np.uint64(_MOST_ROWS)
        if (owners >= most).any() or (starts >= most).any() or (lengths > most - starts.clip(0, most)).any():
            raise table.corrupt("has a zone that is not in a fragment")
        if not lengths.all():
            raise table.corrupt("has a zone without rows")
        firsts = first_addresses(owners) + starts
        return Zones(firsts, firsts + lengths)

    @property
    def num_rows(self) -> NDArray[np.int64]:
        """Number of rows of each zone."""
        return (self.stops - self.firsts).view(np.int64)

    def existing(self, rows_in: Callable[[int], int], table: IndexTable) -> NDArray[np.bool_]:
        """Return for each zone whether its fragment exists.

        Parameters
        ----------
        rows_in
            Returns the number of rows of a fragment; 0 if it does not exist.
        table
            The file, for error messages.

        Raises
        ------
        CorruptFileError
            A zone reaches beyond its fragment.
        """
        owners, places = np.unique(fragments_of(self.firsts), return_inverse=True)
        counts = np.array([rows_in(each) for each in owners.tolist()], np.uint64)[places]
        exists = counts > 0
        if (exists & (self.stops > first_addresses(owners)[places] + counts)).any():
            raise table.corrupt("has a zone beyond the rows of its fragment")
        return exists

    @cached_property
    def _are_in_order(self) -> bool:
        return bool((self.stops[:-1] <= self.firsts[1:]).all())

    def ranges(self, chosen: NDArray[np.bool_]) -> AddressRanges:
        """Return the rows of some zones."""
        firsts, stops = self.firsts[chosen], self.stops[chosen]
        if not self._are_in_order or not len(firsts):
            return AddressRanges.joined(firsts, stops)
        apart = firsts[1:] != stops[:-1]
        return AddressRanges(firsts[np.append(True, apart)], stops[np.append(apart, True)])


def _numbers(table: IndexTable, batch: pa.RecordBatch, name: str) -> _Addresses:
    column = batch.column(batch.schema.get_field_index(name))
    if column.type != pa.uint64() or column.null_count:
        raise table.corrupt(f"has a column {name} of {column.type} with {column.null_count} nulls, not of uint64")
    found: _Addresses = column.to_numpy(zero_copy_only=False)
    return found


def null_parts(table: IndexTable) -> list[SetPart] | None:
    """Return the bitmaps of the null rows by fragment; None if the file does not have them.

    Raises
    ------
    CorruptFileError
        The buffer does not exist, or is not a row set.
    """
    data = table.global_buffer(NULL_ROWS)
    if data is None:
        return None
    layout = layout_of_sets(pa.array([data], pa.large_binary()), ROW_SETS, f"{table.where}, {NULL_ROWS}")
    return list(layout.parts(0))


def null_rows(table: IndexTable, rows_in: Callable[[int], int]) -> AddressRanges | None:
    """Return the null rows of fragments that exist; None if the file does not have them.

    Parameters
    ----------
    table
        The file.
    rows_in
        Returns the number of rows of a fragment; 0 if it does not exist.

    Raises
    ------
    CorruptFileError
        The buffer does not exist, or is not a row set, or has rows beyond those of a fragment.
    """
    parts = null_parts(table)
    if parts is None:
        return None
    starts, lengths = [], []
    for part in parts:
        rows = rows_in(part.key)
        if not rows:
            continue
        runs = np.zeros(1, np.int64), np.array([rows])
        if part.bitmap is not None:
            runs = bitmap_runs(part.bitmap, rows, f"{table.where}, {NULL_ROWS}")
        starts.append(addresses_in(part.key, runs[0]))
        lengths.append(runs[1].view(np.uint64))
    if not starts:
        return NO_ADDRESSES
    firsts = np.concatenate(starts)
    return AddressRanges(firsts, firsts + np.concatenate(lengths))
