"""Training of Bloom-filter indices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidIndexError, InvalidInputError
from lance_dataset.index.files import WRITTEN_VERSION, IndexFolder
from lance_dataset.index.scalar.bloom_filters import (
    BLOOM_FILTERS,
    FILTERS,
    HAS_NULL,
    ITEMS,
    PROBABILITY,
    hashed,
    is_hashable,
)
from lance_dataset.index.scalar.sorting import ROWS, VALUES
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
from lance_dataset.index.trainer import OldSegment, Parameter, Trainer, Training
from lance_dataset.types.schema import Schema
from lancecodec.search import bloom

__all__ = ["TRAINER", "filter_size"]

_Bytes = NDArray[np.uint8]

#: Names of the parameters.
_NUMBER, _CHANCE = "number_of_items", "probability"
_DEFAULT_CHANCE = 0.00057
#: Bytes of filters that are filled together; one may be larger.
_FILLED_BYTES = 8 << 20
#: Logarithms of the smallest and the largest size of a filter, and bytes of a block.
_SMALLEST, _LARGEST, _BLOCK = 5, 27, 32
#: Values in a block from which on every bit of it is set, nearly.
_FULL_BLOCK = 2048

_SCHEMA = pa.schema(
    [
        *ZONE_FIELDS,
        pa.field(HAS_NULL, pa.bool_(), nullable=False),
        pa.field(FILTERS, pa.binary(), nullable=False),
    ]
)


def filter_size(items: int, probability: float) -> int:
    """Return the size of a filter: the smallest power of two that is large enough, from 32 bytes to 128 MiB.

    Parameters
    ----------
    items
        Number of different values in it.
    probability
        How likely it may be that it seems to have another value.
    """
    for bits in range(_SMALLEST, _LARGEST):
        if _false_positives(items * _BLOCK / (1 << bits)) <= probability:
            return 1 << bits
    return 1 << _LARGEST


def _false_positives(load: float) -> float:
    """Return how likely a filter seems to have a value that it does not have (Putze and others, section 3).

    Parameters
    ----------
    load
        Average number of values in a block. The numbers of values are distributed as Poisson's law says; each value
        sets one of the 32 bits in each of 8 words.
    """
    if load >= _FULL_BLOCK:
        return 1.0
    counts = np.arange(int(load + 12 * math.sqrt(load)) + 40)
    logarithms = np.append(0, np.cumsum(np.log(counts[1:])))
    shares = np.exp(counts * math.log(load) - load - logarithms)
    return float((shares * (1 - (31 / 32) ** counts) ** 8).sum())


class _Filters:
    """Filters of a stream of entries."""

    def __init__(self, rows: int, size: int, nulls: NullRows) -> None:
        self._cutter = ZoneCutter(rows)
        self._size = size
        self._nulls = nulls
        self._first = self._last = np.uint64(0)
        self._has_null = False
        #: Filter of the last zone, which may go on.
        self._open: _Bytes | None = None

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add entries; yield the zones that are complete."""
        self._nulls.add(batch)
        values = batch.column(VALUES)
        pieces = self._cutter.cut(batch.column(ROWS).to_numpy())
        ends = np.append(pieces.starts[1:], len(values))
        nulls, stops = np.zeros(len(ends), bool), ends
        if values.null_count:
            is_null = np.asarray(values.is_null(), bool)
            nulls = np.logical_or.reduceat(is_null, pieces.starts)
            stops = np.cumsum(~is_null)[ends - 1]
        if not pieces.continues:
            yield from self.finish()
        yield from self._filled(pieces, nulls, stops, hashed(values.drop_null()))

    def _filled(
        self, pieces: Pieces, nulls: NDArray[np.bool_], stops: NDArray[np.int64], hashes: NDArray[np.uint64]
    ) -> Iterator[pa.RecordBatch]:
        """Add the hashes up to each stop to the filter of its piece."""
        most, done = max(_FILLED_BYTES // self._size, 2), 0
        for start in range(0, len(stops), most):
            chosen = slice(start, start + most)
            ends, firsts, lasts, has_null = stops[chosen], pieces.firsts[chosen], pieces.lasts[chosen], nulls[chosen]
            filters = np.zeros((len(ends), self._size), np.uint8)
            if start:
                yield from self.finish()
            elif self._open is not None:
                filters[0] = self._open
                firsts = np.append(self._first, firsts[1:])
                has_null = np.append(has_null[0] | self._has_null, has_null[1:])
            bloom.insert(hashes[done : ends[-1]].data, ends - done, self._size, filters.data)
            done = int(ends[-1])
            if len(filters) > 1:
                yield self._batch(firsts[:-1], lasts[:-1], has_null[:-1], filters[:-1])
            self._first, self._last, self._has_null = firsts[-1], lasts[-1], bool(has_null[-1])
            self._open = filters[-1]

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the last zone."""
        if self._open is not None:
            filters, self._open = self._open[None], None
            firsts, lasts = np.array([self._first]), np.array([self._last])
            yield self._batch(firsts, lasts, np.array([self._has_null]), filters)

    def _batch(
        self, firsts: NDArray[np.uint64], lasts: NDArray[np.uint64], nulls: NDArray[np.bool_], filters: _Bytes
    ) -> pa.RecordBatch:
        ends = np.arange(len(filters) + 1, dtype=np.int32) * np.int32(self._size)
        data = pa.Array.from_buffers(pa.binary(), len(filters), [None, pa.py_buffer(ends), pa.py_buffer(filters)])
        return pa.RecordBatch.from_arrays([*zone_arrays(firsts, lasts), pa.array(nulls), data], schema=_SCHEMA)


def _write(work: Training) -> bytes:
    return _extend((), work)


def _extend(old: Sequence[OldSegment], work: Training) -> bytes:
    nulls, buffers = NullRows(), dict[str, bytes]()
    items, probability = work.parameters[_NUMBER], work.parameters[_CHANCE]

    def filters() -> Iterator[pa.RecordBatch]:
        yield from old_zones(old, BLOOM_FILTERS, _SCHEMA)
        made = _Filters(items, filter_size(items, probability), nulls)
        for batch in work.entries:
            if batch.num_rows:
                yield from made.add(batch)
        yield from made.finish()
        for each in old:
            nulls.add_old(each, BLOOM_FILTERS)
        buffers[NULL_ROWS] = nulls.encode()

    metadata = {ITEMS: str(items), PROBABILITY: _decimal(probability)}
    work.target.write(BLOOM_FILTERS, Schema.from_arrow(_SCHEMA), WRITTEN_VERSION, filters(), metadata, buffers)
    return b""


def _decimal(number: float) -> str:
    """Return a number without an exponent."""
    return f"{Decimal(repr(number)):f}"


def _chance(value: Any) -> float:
    """Return a probability, as a check of the parameter.

    Raises
    ------
    InvalidInputError
        It is out of range.
    InvalidIndexError
        It is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidIndexError("must be a number")
    if not 0 <= value < 1:
        raise InvalidInputError("must be at least 0 and below 1")
    return float(value)


def _parameters(folder: IndexFolder) -> Mapping[str, Any]:
    table = folder.open(BLOOM_FILTERS)
    text = table.metadata.get(PROBABILITY, str(_DEFAULT_CHANCE))
    try:
        chance = _chance(float(text))
    except ValueError:
        raise table.corrupt(f"{PROBABILITY} is {text[:40]!r}, not a probability") from None
    return {_NUMBER: rows_per_zone(table, ITEMS), _CHANCE: chance}


TRAINER: Final = Trainer(
    "BLOOMFILTER",
    "/lance.index.pb.BloomFilterIndexDetails",
    is_hashable,
    "int, float of 32 or 64 bits, str, large_str, binary, large_binary, date, time or timestamp",
    _write,
    {_NUMBER: Parameter(DEFAULT_ZONE_ROWS, zone_rows), _CHANCE: Parameter(_DEFAULT_CHANCE, _chance)},
    uses_addresses=True,
    read_parameters=_parameters,
    extend=_extend,
    can_extend=has_null_rows(BLOOM_FILTERS),
    misfit=InvalidInputError,
)
