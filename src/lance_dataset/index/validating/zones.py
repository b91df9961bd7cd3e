"""Check of zone maps and Bloom-filter indices: what the zones let their rows have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.files import IndexFolder, IndexTable
from lance_dataset.index.scalar.bloom_filters import BLOOM_FILTERS, FILTERS, HAS_NULL, ITEMS, hashed
from lance_dataset.index.scalar.extremes import without_nulls
from lance_dataset.index.scalar.value_order import KeyedOrder, order_of
from lance_dataset.index.scalar.zone_maps import MAX, MIN, NANS, NULLS, ROWS_PER_ZONE, ZONE_MAP
from lance_dataset.index.scalar.zone_search import described
from lance_dataset.index.scalar.zone_writing import rows_per_zone
from lance_dataset.index.scalar.zones import NULL_ROWS, ZONE_COLUMNS, Zones, null_parts
from lance_dataset.index.trainer import is_ordered
from lance_dataset.index.validating.keyed_rows import NULL, KeyedRows, shown
from lance_dataset.index.validating.row_sets import rows_of_keys
from lance_dataset.table.row_sets import ROW_SETS
from lancecodec.search import bloom

__all__ = ["BloomFilterContent", "NullRowsContent", "ZoneMapContent", "ZonedContent"]

_Chosen = NDArray[np.bool_]
_Ints = NDArray[np.int64]
RowsIn = Callable[[int], int]

#: Bytes of filters that are compared together; one may be larger.
_TOGETHER: Final = 16 << 20
_BLOCK: Final = 32


class ZonedContent(Protocol):
    """File of one segment of an index that says for each zone which values its rows may have.

    Attributes
    ----------
    table
        The file.
    zones
        The zones, each with a row of the file.
    """

    table: IndexTable
    zones: Zones

    def admits(self, values: pa.Array, zones: _Ints) -> _Chosen:
        """Return for each value whether a zone lets its rows have it.

        Parameters
        ----------
        values
            Values of the column.
        zones : int64[n]
            Number of a zone for each value.
        """

    def zone_text(self, zone: int) -> str:
        """Return what a zone says, as text."""


class ZoneMapContent:
    """Zones of a segment of a zone map.

    Parameters
    ----------
    folder
        Folder of its file.

    Attributes
    ----------
    kind : DataType
        Type of the bounds.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """

    def __init__(self, folder: IndexFolder) -> None:
        self.table = table = folder.open(ZONE_MAP)
        table.check_columns((MIN, MAX, NULLS, *ZONE_COLUMNS))
        rows_per_zone(table, ROWS_PER_ZONE)
        batch = table.read()
        self.zones = Zones.read(table, batch)
        self.kind = table.column_type(MAX)
        if table.column_type(MIN) != self.kind:
            raise table.corrupt(f"has bounds of {table.column_type(MIN)} and {self.kind}")
        self._nulls = described(table, batch, NULLS, pa.uint32()).to_numpy().astype(np.int64)
        self._nans = np.zeros(batch.num_rows, np.int64)
        if NANS in batch.schema.names:
            self._nans = described(table, batch, NANS, pa.uint32()).to_numpy().astype(np.int64)
        self._lows, self._highs = (batch.column(batch.schema.get_field_index(each)) for each in (MIN, MAX))
        crowded = np.flatnonzero(self._nulls + self._nans > self.zones.num_rows)
        if len(crowded):
            zone = int(crowded[0])
            raise table.corrupt(f"zone {zone} has {self.zones.num_rows[zone]} rows, but {self.zone_text(zone)}")
        no_high, no_low = (np.asarray(each.is_null(), bool) for each in (self._highs, self._lows))
        self._open = no_high & (self.zones.num_rows > self._nulls + self._nans)  # not known for values of some types
        if not is_ordered(self.kind):  # the reference builds zone maps of all types
            self._open[:] = True
        self._empty = no_high & ~self._open
        self._unbounded = no_low & ~no_high
        self._check_order(~no_low & ~no_high)

    def _check_order(self, bounded: _Chosen) -> None:
        if not is_ordered(self.kind):
            return
        chosen = np.flatnonzero(bounded)
        lows, highs = (each.take(pa.array(chosen)) for each in (self._lows, self._highs))
        falls = np.flatnonzero(~_is_at_most(lows, highs))
        if len(falls):
            zone = int(chosen[falls[0]])
            raise self.table.corrupt(f"zone {zone} has {self.zone_text(zone)}: its least value is above its greatest")

    def admits(self, values: pa.Array, zones: _Ints) -> _Chosen:
        """Return for each value whether a zone lets its rows have it."""
        found = self._open[zones]
        nulls = np.asarray(values.is_null(), bool)
        found[nulls] = self._nulls[zones[nulls]] > 0
        if not is_ordered(self.kind):
            return found
        others = ~nulls & ~found & ~self._empty[zones]
        if pa.types.is_floating(values.type):
            nans = ~nulls & np.isnan(without_nulls(values).to_numpy())
            has_nans = (self._nans > 0) | _is_nan(self._highs) | _is_nan(self._lows)
            found[nans] = has_nans[zones[nans]]
            others &= ~nans
        places = np.flatnonzero(others)
        owners = pa.array(zones[places])
        inside = values.take(pa.array(places))
        lows, highs = self._lows.take(owners), self._highs.take(owners)
        above = self._unbounded[zones[places]] | _is_at_most(lows, inside)
        found[places] = above & _is_at_most(inside, highs)
        return found

    def zone_text(self, zone: int) -> str:
        """Return what a zone says, as text."""
        counts = f"{self._nulls[zone]} nulls" + (f" and {self._nans[zone]} NaNs" if self._nans[zone] else "")
        return f"values from {shown(self._lows[zone])} to {shown(self._highs[zone])}, {counts}"


def _is_nan(values: pa.Array) -> _Chosen:
    return np.isnan(without_nulls(values).to_numpy()) & np.asarray(values.is_valid(), bool)


def _is_at_most(ones: pa.Array, others: pa.Array) -> _Chosen:
    """Return for each pair of values whether the first one is not above the second one.

    Nulls are arbitrary values. Zeros are equal, and NaN is a bound of everything.
    """
    order = order_of(ones.type)
    if pa.types.is_floating(ones.type):
        low, high = without_nulls(ones).to_numpy(), without_nulls(others).to_numpy()
        found: _Chosen = (low <= high) | np.isnan(low) | np.isnan(high)
        return found
    if isinstance(order, KeyedOrder):
        return np.less_equal(order.keys(without_nulls(ones)), order.keys(without_nulls(others)))
    return np.asarray(pc.fill_null(pc.less_equal(ones, others), False), bool)


class BloomFilterContent:
    """Zones of a segment of a Bloom-filter index.

    Parameters
    ----------
    folder
        Folder of its file.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    """

    def __init__(self, folder: IndexFolder) -> None:
        self.table = table = folder.open(BLOOM_FILTERS)
        table.check_columns((*ZONE_COLUMNS, HAS_NULL, FILTERS))
        rows_per_zone(table, ITEMS)
        if table.column_type(FILTERS) not in (pa.binary(), pa.large_binary()):
            raise table.corrupt(f"has filters of the type {table.column_type(FILTERS)}")
        batch = table.read(columns=(*ZONE_COLUMNS, HAS_NULL))
        self.zones = Zones.read(table, batch)
        self._has_null = np.asarray(described(table, batch, HAS_NULL, pa.bool_()), bool)
        self._check_sizes()

    def _check_sizes(self) -> None:
        start = 0
        for batch in self.table.batches([FILTERS]):
            sizes = np.asarray(pc.fill_null(pc.binary_length(batch.column(0)), 0), np.int64)
            wrong = np.flatnonzero((sizes == 0) | (sizes % _BLOCK != 0))
            if len(wrong):
                place = int(wrong[0])
                raise self.table.corrupt(f"zone {start + place} has a filter of {sizes[place]} bytes")
            start += len(sizes)

    def admits(self, values: pa.Array, zones: _Ints) -> _Chosen:
        """Return for each value whether the filter of a zone has it."""
        nulls = np.asarray(values.is_null(), bool)
        found = np.ones(len(values), bool)
        found[nulls] = self._has_null[zones[nulls]]
        places = np.flatnonzero(~nulls)
        order = places[np.argsort(zones[places], kind="stable")]
        hashes, owners = hashed(values.take(pa.array(order))), zones[order]
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
        stops = np.append(starts[1:], len(owners))
        row = 0
        while row < len(starts):
            filters, size = self._filters(owners[starts[row:]])
            chosen = slice(row, row + len(filters))
            self._compare(filters, size, hashes, starts[chosen], stops[chosen], found, order)
            row += len(filters)
        return found

    def _filters(self, zones: _Ints) -> tuple[NDArray[np.uint8], int]:
        """Return the filters of the first zones, as many as have one size and fit in memory, and the size."""
        count = max(1, min(len(zones), _TOGETHER * self.table.num_rows // max(self.table.num_bytes, 1)))
        near = np.flatnonzero(zones < zones[0] + count)[:count]
        stored = self.table.read(int(zones[0]), int(zones[near[-1]]) + 1, [FILTERS]).column(0)
        stored = stored.take(pa.array(zones[near] - zones[0]))
        sizes = np.asarray(pc.binary_length(stored), np.int64)
        same = int(np.argmin(np.append(sizes == sizes[0], False)))
        content = b"".join(each.as_buffer() for each in stored[:same])
        return np.frombuffer(content, np.uint8).reshape(same, -1), int(sizes[0])

    @staticmethod
    def _compare(
        filters: NDArray[np.uint8],
        size: int,
        hashes: NDArray[np.uint64],
        starts: _Ints,
        stops: _Ints,
        found: _Chosen,
        order: _Ints,
    ) -> None:
        """Note the values that filters do not have: a filter of the values alone has no other bits than they have."""
        first = int(starts[0])
        part = np.ascontiguousarray(hashes[first : int(stops[-1])])
        own = np.zeros((len(filters), size), np.uint8)
        bloom.insert(part.data, stops - first, size, own.data)
        for zone in np.flatnonzero((own & ~filters).any(axis=1)).tolist():
            places = np.array([0, size], np.int64)
            for place in range(int(starts[zone]), int(stops[zone])):
                has = np.empty(1, np.uint8)
                bloom.probe(filters[zone].tobytes(), places.data, True, hashes[place : place + 1].data, has.data)
                found[order[place]] = has[0] != 0

    def zone_text(self, zone: int) -> str:
        """Return what a zone says, as text."""
        return f"a filter without it, and {'some nulls' if self._has_null[zone] else 'no nulls'}"


class NullRowsContent:
    """Rows that the file of an index of zones says are null.

    Parameters
    ----------
    table
        The file.
    rows_in
        Returns the number of rows, deleted ones included, of a fragment.
    """

    is_exact = True

    def __init__(self, table: IndexTable, rows_in: RowsIn) -> None:
        self._table = table
        self._rows_in = rows_in

    @staticmethod
    def is_in(table: IndexTable) -> bool:
        """Return True if a file has null rows; releases up to 4.0.0 did not store them."""
        return null_parts(table) is not None

    def entries(self) -> Iterator[KeyedRows]:
        """Yield all entries."""
        sets = pa.array([self._table.global_buffer(NULL_ROWS)], pa.large_binary())
        where = f"{self._table.where}, {NULL_ROWS}"
        return rows_of_keys(pa.nulls(1), np.array([NULL]), sets, ROW_SETS, self._rows_in, where)

    def expected(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield the entries that values should have."""
        rows = np.flatnonzero(np.asarray(values.is_null(), bool)).astype(np.uint64)
        yield KeyedRows(pa.nulls(1), np.array([NULL]), rows, np.zeros(len(rows), np.int64))

    def required(self, values: pa.Array) -> Iterator[KeyedRows]:
        """Yield all entries that values should have."""
        return self.expected(values)
