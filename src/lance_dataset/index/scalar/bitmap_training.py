"""Training of bitmap and label-list indices: the rows of each value, gathered from sorted entries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_dataset.index.files import WRITTEN_VERSION, NewIndexFolder
from lance_dataset.index.scalar.bitmap import KEYS, LOOKUP, NULL_LISTS, SETS, STATISTICS
from lance_dataset.index.scalar.row_set_building import GrowingRowSet
from lance_dataset.index.scalar.sorting import ROWS, VALUES, entry_schema, sorted_entries
from lance_dataset.index.scalar.value_order import order_of
from lance_dataset.index.trainer import ORDERED, Trainer, Training, is_ordered
from lance_dataset.table.row_sets import ROW_SETS, encode_sets
from lance_dataset.types.schema import Schema

__all__ = ["LABEL_LIST_TRAINER", "TRAINER", "train", "train_label_list"]

_Rows = NDArray[np.uint64]


def train(entries: Iterable[pa.RecordBatch], kind: pa.DataType, target: NewIndexFolder, memory_limit: int) -> None:
    """Write a bitmap index.

    Parameters
    ----------
    entries
        Values and rows, see `entry_schema`.
    kind
        Type of the values.
    target
        Folder of its file.
    memory_limit
        Maximum number of bytes to sort with, approximately.
    """
    _write(sorted_entries(entries, kind, memory_limit), kind, target, {})


def train_label_list(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, target: NewIndexFolder, memory_limit: int
) -> None:
    """Write a label-list index: the rows of each item of their lists, and the rows whose list is null.

    Parameters
    ----------
    entries
        Lists and rows.
    kind
        Type of the lists.
    target, memory_limit
        See `train`.
    """
    null_lists = GrowingRowSet()
    items = _items(entries, kind.value_type, null_lists)
    _write(sorted_entries(items, kind.value_type, memory_limit), kind.value_type, target, {NULL_LISTS: null_lists})


def _items(entries: Iterable[pa.RecordBatch], kind: pa.DataType, null_lists: GrowingRowSet) -> Iterator[pa.RecordBatch]:
    """Yield the items of lists, each with the row of its list."""
    schema = entry_schema(kind)
    for batch in entries:
        lists, rows = batch.column(VALUES), batch.column(ROWS)
        if lists.null_count:
            null_lists.add(rows.filter(lists.is_null()).to_numpy())
            rows, lists = rows.filter(lists.is_valid()), lists.drop_null()
        owners = pc.list_parent_indices(lists)
        yield pa.RecordBatch.from_arrays([pc.list_flatten(lists), rows.take(owners)], schema=schema)


class _Gathering:
    """Gathers the rows of equal values, which follow each other in the entries.

    Attributes
    ----------
    count
        Number of values so far.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._open: tuple[pa.Array, GrowingRowSet] | None = None
        self.count = 0

    def add(self, values: pa.Array, rows: _Rows) -> Iterator[pa.RecordBatch]:
        """Add entries without nulls, or of nothing but nulls; yield values whose rows are complete, with their sets."""
        differ = np.zeros(len(values) - 1, bool) if values.null_count else order_of(self._kind).changes(values)
        starts = np.append(0, np.flatnonzero(differ) + 1)
        if self._open is not None and self._continues(values):
            stop = int(starts[1]) if len(starts) > 1 else len(values)
            self._open[1].add(rows[:stop])
            starts = starts[1:]
            if not len(starts):
                return
        yield from self.finish()
        last = int(starts[-1])
        if len(starts) > 1:
            yield self._batch(values.take(pa.array(starts[:-1])), _sets(starts - starts[0], rows[starts[0] : last]))
        self._open = values.slice(last, 1), GrowingRowSet()
        self._open[1].add(rows[last:])

    def _continues(self, values: pa.Array) -> bool:
        """Return True if the first value is the open one."""
        assert self._open is not None
        known, first = self._open[0], values.slice(0, 1)
        if known.null_count or first.null_count:
            return bool(known.null_count and first.null_count)
        return not order_of(self._kind).changes(pa.concat_arrays([known, first]))[0]

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the open value."""
        if self._open is not None:
            value, rows = self._open
            self._open = None
            yield self._batch(value, pa.array([rows.encode()], pa.binary()))

    def _batch(self, keys: pa.Array, sets: pa.Array) -> pa.RecordBatch:
        self.count += len(keys)
        return pa.RecordBatch.from_arrays([keys, sets], schema=_schema(self._kind))


def _sets(starts: NDArray[np.int64], rows: _Rows) -> pa.Array:
    """Return the sets of all groups of rows but the last start, which is where the rows end."""
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    same = owners[1:] == owners[:-1]
    if (same & (rows[1:] <= rows[:-1])).any():
        order = np.lexsort((rows, owners))
        owners, rows = owners[order], rows[order]
        first = np.append(True, (owners[1:] != owners[:-1]) | (rows[1:] != rows[:-1]))
        owners, rows = owners[first], rows[first]
    return encode_sets(owners, rows, len(starts) - 1, ROW_SETS).cast(pa.binary())


def _schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(KEYS, kind), pa.field(SETS, pa.binary())])


def _write(
    entries: Iterator[pa.RecordBatch], kind: pa.DataType, target: NewIndexFolder, sets: dict[str, GrowingRowSet]
) -> None:
    metadata: dict[str, str] = {}
    buffers: dict[str, bytes] = {}

    def gathered() -> Iterator[pa.RecordBatch]:
        gathering = _Gathering(kind)
        for batch in entries:
            values, rows = batch.column(VALUES), batch.column(ROWS).to_numpy()
            nulls = values.null_count
            for start, stop in ((0, nulls), (nulls, len(values))):
                if start < stop:
                    yield from gathering.add(values.slice(start, stop - start), rows[start:stop])
        yield from gathering.finish()
        metadata[STATISTICS] = json.dumps({"num_bitmaps": gathering.count}, separators=(",", ":"))
        buffers.update((key, rows.encode()) for key, rows in sets.items())

    target.write(LOOKUP, Schema.from_arrow(_schema(kind)), WRITTEN_VERSION, gathered(), metadata, buffers)


def _write_bitmap(work: Training) -> bytes:
    train(work.entries, work.kind, work.target, work.memory_limit)
    return b""


def _write_label_list(work: Training) -> bytes:
    train_label_list(work.entries, work.kind, work.target, work.memory_limit)
    return b""


def _is_list(kind: pa.DataType) -> bool:
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and is_ordered(kind.value_type)


TRAINER: Final = Trainer("BITMAP", "/lance.table.BitmapIndexDetails", is_ordered, ORDERED, _write_bitmap)
LABEL_LIST_TRAINER: Final = Trainer(
    "LABEL_LIST",
    "/lance.table.LabelListIndexDetails",
    _is_list,
    "a list or large list",
    _write_label_list,
    version=1,
    stable_version=1,
)
