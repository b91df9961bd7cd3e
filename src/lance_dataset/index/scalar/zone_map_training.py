"""Training of zone maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidIndexError
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder
from lance_dataset.index.scalar.extremes import extremes, without_nulls
from lance_dataset.index.scalar.sorting import ROWS, VALUES
from lance_dataset.index.scalar.zone_maps import MAX, MIN, NANS, NULLS, ROWS_PER_ZONE, ZONE_MAP
from lance_dataset.index.scalar.zone_writing import (
    ZONE_FIELDS,
    NullRows,
    Pieces,
    ZoneCutter,
    has_null_rows,
    old_zones,
    rows_per_zone,
    zone_arrays,
    zone_rows,
)
from lance_dataset.index.scalar.zones import DEFAULT_ZONE_ROWS, NULL_ROWS
from lance_dataset.index.trainer import ORDERED, OldSegment, Parameter, Trainer, Training, is_ordered
from lance_dataset.types.schema import Schema

__all__ = ["TRAINER"]

_Counts = NDArray[np.int64]

#: Parameter for whether the reference may store the zones of new rows in data files, and widest type without that.
_SEEDS = "use_seeds"
_NARROW_BITS = 64
#: Approximate bytes of zones that are written together.
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class _Part:
    """Zones, of which the first and the last one may go on.

    Attributes
    ----------
    lows, highs
        Least and greatest values, without NaNs; null if there are none.
    nulls, nans : int64[n]
        Numbers of nulls and NaNs.
    firsts, lasts : uint64[n]
        Addresses of their first and last rows.
    """

    lows: pa.Array
    highs: pa.Array
    nulls: _Counts
    nans: _Counts
    firsts: NDArray[np.uint64]
    lasts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.nulls)

    @staticmethod
    def joined(parts: Sequence[_Part]) -> _Part:
        """Return the zones of several parts."""
        lows, highs = (
            pa.concat_arrays(arrays) for arrays in zip(*((each.lows, each.highs) for each in parts), strict=True)
        )
        numbers = zip(*((each.nulls, each.nans, each.firsts, each.lasts) for each in parts), strict=True)
        return _Part(lows, highs, *map(np.concatenate, numbers))

    def slice(self, start: int, stop: int | None) -> _Part:
        """Return some of the zones."""
        chosen = slice(start, stop)
        return _Part(
            *(self.lows[chosen], self.highs[chosen], self.nulls[chosen], self.nans[chosen]),
            *(self.firsts[chosen], self.lasts[chosen]),
        )

    def continued(self, other: _Part) -> _Part:
        """Return one zone that has the rows of two, of which this is the first."""
        start = np.zeros(1, np.int64)
        return _Part(
            extremes(pa.concat_arrays([self.lows, other.lows]), start)[0],
            extremes(pa.concat_arrays([self.highs, other.highs]), start)[1],
            self.nulls + other.nulls,
            self.nans + other.nans,
            self.firsts,
            other.lasts,
        )

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the rows of the file."""
        highs = self.highs
        if self.nans.any():
            kind = highs.type.to_pandas_dtype()
            known = np.where(self.nans > 0, kind(np.nan), without_nulls(highs).to_numpy()).astype(kind)
            highs = pa.array(known, highs.type, mask=np.asarray(highs.is_null(), bool) & (self.nans == 0))
        counts = (pa.array(each.astype(np.uint32)) for each in (self.nulls, self.nans))
        return pa.RecordBatch.from_arrays(
            [self.lows, highs, *counts, *zone_arrays(self.firsts, self.lasts)], schema=schema
        )


class _Zones:
    """Zones of a stream of entries."""

    def __init__(self, rows: int, nulls: NullRows) -> None:
        self._cutter = ZoneCutter(rows)
        self._nulls = nulls
        self._open: _Part | None = None

    def parts(self, entries: Iterable[pa.RecordBatch]) -> Iterator[_Part]:
        """Yield zones that are complete."""
        for batch in entries:
            if not batch.num_rows:
                continue
            self._nulls.add(batch)
            pieces = self._cutter.cut(batch.column(ROWS).to_numpy())
            part = _described(batch.column(VALUES), pieces)
            if self._open is not None and pieces.continues:
                self._open = self._open.continued(part.slice(0, 1))
                part = part.slice(1, None)
            if not len(part):
                continue
            if self._open is not None:
                yield self._open
            yield part.slice(0, -1)
            self._open = part.slice(-1, None)
        if self._open is not None:
            yield self._open


def _described(values: pa.Array, pieces: Pieces) -> _Part:
    """Return the pieces of a batch as zones."""
    values, nans = _without_nans(values, pieces.starts)
    nulls = np.zeros(len(pieces.starts), np.int64)
    if values.null_count:
        nulls = np.add.reduceat(np.asarray(values.is_null(), np.int64), pieces.starts) - nans
    return _Part(*extremes(values, pieces.starts), nulls, nans, pieces.firsts, pieces.lasts)


def _batches(parts: Iterable[_Part], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file, many together."""
    held: list[_Part] = []
    size = 0
    for part in parts:
        held.append(part)
        size += part.lows.nbytes + part.highs.nbytes + len(part)
        if size > _BATCH_BYTES:
            yield _Part.joined(held).batch(schema)
            held, size = [], 0
    if held:
        yield _Part.joined(held).batch(schema)


def _without_nans(values: pa.Array, starts: _Counts) -> tuple[pa.Array, _Counts]:
    """Return values with nulls for NaNs, and the number of NaNs of each part."""
    none = np.zeros(len(starts), np.int64)
    if not pa.types.is_floating(values.type):
        return values, none
    numbers = without_nulls(values).to_numpy()
    nans = np.isnan(numbers)
    if not nans.any():
        return values, none
    nulls = np.asarray(values.is_null(), bool)
    nans &= ~nulls
    return pa.array(numbers, values.type, mask=nulls | nans), np.add.reduceat(nans.astype(np.int64), starts)


def _schema(kind: pa.DataType) -> pa.Schema:
    counts = [pa.field(each, pa.uint32(), nullable=False) for each in (NULLS, NANS)]
    return pa.schema([pa.field(MIN, kind), pa.field(MAX, kind), *counts, *ZONE_FIELDS])


def _write(work: Training) -> bytes:
    return _extend((), work)


def _extend(old: Sequence[OldSegment], work: Training) -> bytes:
    schema, nulls, buffers = _schema(work.kind), NullRows(), dict[str, bytes]()
    rows = work.parameters[ROWS_PER_ZONE]

    def zones() -> Iterator[pa.RecordBatch]:
        yield from old_zones(old, ZONE_MAP, schema)
        yield from _batches(_Zones(rows, nulls).parts(work.entries), schema)
        for each in old:
            nulls.add_old(each, ZONE_MAP)
        buffers[NULL_ROWS] = nulls.encode()

    columns = Schema.from_arrow(schema)
    work.target.write(ZONE_MAP, columns, WRITTEN_VERSION, zones(), {ROWS_PER_ZONE: str(rows)}, buffers)
    seeds = work.parameters[_SEEDS]
    return _details(rows, _is_wide(work.kind) if seeds is None else seeds)


def _is_wide(kind: pa.DataType) -> bool:
    """Return True for types that the reference stores the zones of in data files by default."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in texts) or kind.bit_width > _NARROW_BITS


def _details(rows: int, seeds: bool) -> bytes:
    """Return the message of the number of rows in a zone (field 1), seeds (2), and that null rows are known (3)."""
    number = bytearray()
    while rows > 0x7F:
        number.append(rows & 0x7F | 0x80)
        rows >>= 7
    return bytes([0x08, *number, rows, 0x10, seeds, 0x18, 1])


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidIndexError("must be True or False")
    return value


def _parameters(folder: IndexFolder) -> Mapping[str, Any]:
    return {ROWS_PER_ZONE: rows_per_zone(folder.open(ZONE_MAP), ROWS_PER_ZONE)}


TRAINER: Final = Trainer(
    "ZONEMAP",
    "/lance.table.ZoneMapIndexDetails",
    is_ordered,
    ORDERED,
    _write,
    {ROWS_PER_ZONE: Parameter(DEFAULT_ZONE_ROWS, zone_rows), _SEEDS: Parameter(None, _flag)},
    uses_addresses=True,
    read_parameters=_parameters,
    extend=_extend,
    can_extend=has_null_rows(ZONE_MAP),
)
