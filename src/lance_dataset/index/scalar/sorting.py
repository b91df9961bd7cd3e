"""Sorting the entries of an index: in memory or, above a limit, in sorted runs on disk that are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_dataset.file.buffers import concat_arrays
from lance_dataset.index.scalar.keyed_runs import KeyedRuns
from lance_dataset.index.scalar.value_order import KeyedOrder, order_of
from lance_dataset.read.spool import Spool

__all__ = ["ROWS", "VALUES", "entry_schema", "sorted_entries"]

#: Names of the columns of entries: the indexed value, and the id or address of its row.
VALUES, ROWS = "values", "ids"

#: Memory that sorting takes, as a multiple of the bytes of the entries.
_SORT_FACTOR = 5
#: Bytes of values in one array: 32-bit offsets do not reach further.
_MAX_RUN_BYTES = 1 << 30
#: Entries in a batch.
_BATCH_ROWS = 1 << 17
#: Bytes of a run that are read together when runs are merged.
_BLOCK_BYTES = 1 << 20


def entry_schema(kind: pa.DataType) -> pa.Schema:
    """Return the columns of the entries of an index of values of a type."""
    return pa.schema([pa.field(VALUES, kind), pa.field(ROWS, pa.uint64(), nullable=False)])


def sorted_entries(entries: Iterable[pa.RecordBatch], kind: pa.DataType, memory_limit: int) -> Iterator[pa.RecordBatch]:
    """Yield entries in the order of their values, nulls first.

    The algorithm is external merge sort (Knuth, The Art of Computer Programming, volume 3, section 5.4). Equal values
    keep their order if all entries fit in memory.

    Parameters
    ----------
    entries
        Batches of `entry_schema`.
    kind
        Type of the values.
    memory_limit
        Maximum number of bytes to sort with, approximately. Above it, sorted runs go to temporary files.

    Raises
    ------
    StorageError
        A temporary file cannot be written.
    """
    schema = entry_schema(kind)
    most = max(min(memory_limit // _SORT_FACTOR, _MAX_RUN_BYTES), 1)
    order = order_of(kind)
    held = KeyedRuns(schema, order) if isinstance(order, KeyedOrder) else _Held(schema)
    with ExitStack() as files:
        runs: list[Spool] = []
        size = 0
        for batch in entries:
            if size and size + batch.nbytes > most:
                runs.append(files.enter_context(_spilled(held.drain(), schema)))
                size = 0
            held.add(batch)
            size += batch.nbytes
        if not runs:
            yield from held.drain()
            return
        runs.append(files.enter_context(_spilled(held.drain(), schema)))
        yield from _merged([_Run(run) for run in runs], schema)


class _Held:
    """Collects entries, and sorts all of them at once; see `KeyedRuns`.

    Parameters
    ----------
    schema
        Columns of the entries.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add entries."""
        self._batches.append(batch)

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield all entries in order, nulls first, after which there are none."""
        batches, self._batches = self._batches, []
        found = _sorted(batches, self._schema)
        batches.clear()
        yield from _slices(found, _BATCH_ROWS)


def _sorted(held: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return the entries of all batches in order, nulls first."""
    columns = [
        concat_arrays([batch.column(number) for batch in held], schema.field(number).type) for number in range(2)
    ]
    values, rows = columns
    if not values.null_count:
        ordered, places = order_of(values.type).sort(values)
        return pa.RecordBatch.from_arrays([ordered, rows.take(pa.array(places))], schema=schema)
    nulls = values.is_null()
    ordered, places = order_of(values.type).sort(values.drop_null())
    first = rows.filter(nulls)
    others = rows.filter(pc.invert(nulls)).take(pa.array(places))
    values = pa.concat_arrays([pa.nulls(len(first), values.type), ordered])
    return pa.RecordBatch.from_arrays([values, pa.concat_arrays([first, others])], schema=schema)


def _slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _spilled(entries: Iterable[pa.RecordBatch], schema: pa.Schema) -> Spool:
    """Write a sorted run to a temporary file."""
    spool = Spool(schema, 0)
    try:
        for batch in entries:
            for part in _slices(batch, max(_BLOCK_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)):
                spool.add(part)
        spool.seal()
    except BaseException:
        spool.close()
        raise
    return spool


class _Run:
    """Sorted run that is read block by block.

    Attributes
    ----------
    block
        Entries that are read but not merged; None at the end.
    bounds
        Its values, as their order compares them.
    """

    def __init__(self, spool: Spool) -> None:
        self._blocks = spool.batches()
        self._order = order_of(spool.schema.field(VALUES).type)
        self.block: pa.RecordBatch | None = None
        self.bounds: Any = None
        self._next()

    def _next(self) -> None:
        self.block = next((block for block in self._blocks if block.num_rows), None)
        self._look()

    def _look(self) -> None:
        if self.block is not None and not self.block.column(VALUES).null_count:
            self.bounds = self._order.bounds(self.block.column(VALUES))

    def take_nulls(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries of nulls, which come first."""
        while self.block is not None and (count := self.block.column(VALUES).null_count):
            yield self.block.slice(0, count)
            self._drop(count)

    def take(self, bound: Any) -> pa.RecordBatch:
        """Return the entries of the block whose values are at most `bound`."""
        assert self.block is not None
        block, count = self.block, self._order.below(self.bounds, bound, or_equal=True)
        self._drop(count)
        return block.slice(0, count)

    def _drop(self, count: int) -> None:
        assert self.block is not None
        if count == self.block.num_rows:
            self._next()
        elif count:
            self.block = self.block.slice(count)
            if self.bounds is None:
                self._look()
            else:
                self.bounds = self.bounds[count:]


def _merged(runs: list[_Run], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs. In each step, the run whose block ends first is merged to the end of that block."""
    for run in runs:
        yield from run.take_nulls()
    while left := [run for run in runs if run.block is not None]:
        bound = min(run.bounds[-1] for run in left)
        yield _sorted([run.take(bound) for run in left], schema)
