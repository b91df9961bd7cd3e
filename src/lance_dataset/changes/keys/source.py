"""Rows of a merge's source, collected once in memory or in a temporary file, and read as often as needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.changes.keys.key_columns import is_view, plain_type
from lance_dataset.errors import FieldNotFoundError, RowIndexError, nearest_name_hint
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.read.concatenate import UnjoinableError, join_arrays
from lance_dataset.read.spool import Spool, check_columns

__all__ = ["DEFAULT_BUDGET", "Source", "bounded_rows", "source_row_bytes"]

#: Maximum number of bytes of a source that are kept in memory.
DEFAULT_BUDGET = 256 << 20
#: Maximum number of rows, and of bytes, of a batch.
_MOST_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20


class Source:
    """Rows of a merge's source, to be used as a context manager that removes its temporary file.

    A source is often a stream that can be read only once. But a merge reads its rows several times, and again when it
    is retried after a conflict. Several threads may read concurrently.

    Attributes
    ----------
    schema
        Schema of the rows. String and binary views are converted to large strings and binaries, because Arrow can take
        rows of these.
    num_rows
        Number of rows. They are numbered from 0 in the order of the stream.
    """

    schema: pa.Schema
    num_rows: int

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._batches = spool.seal()
        self._ends = np.cumsum([batch.num_rows for batch in self._batches], dtype=np.int64)
        self._table = pa.Table.from_batches(self._batches, spool.schema)
        self.schema, self.num_rows = spool.schema, spool.num_rows

    @classmethod
    def collect(cls, batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, budget: int = DEFAULT_BUDGET) -> Source:
        """Read a stream to its end.

        Parameters
        ----------
        batches
            Batches of `schema`, which is checked for every batch.
        schema
            Schema of the rows.
        budget
            Maximum number of bytes to keep in memory. A larger source is kept in a temporary file.

        Raises
        ------
        SchemaError
            A batch has other columns.
        StorageError
            The temporary file cannot be written.
        """
        spool = Spool(_without_views(schema), budget)
        try:
            for batch in batches:
                check_columns(batch, schema)
                spool.add(batch if spool.schema is schema else _as_plain(batch, spool.schema))
            return cls(spool)
        except BaseException:
            spool.close()
            raise

    @property
    def is_spilled(self) -> bool:
        """True if the rows are in a temporary file."""
        return self._spool.is_spilled

    def close(self) -> None:
        """Release the rows. Arrays that were returned stay valid."""
        self._spool.close()
        self._batches, self._table = [], self.schema.empty_table()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- reading -------------------------------------------------------------------------------------------------

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column of all rows. In a spilled source it is memory-mapped, and `release` frees its pages.

        Raises
        ------
        FieldNotFoundError
            The column does not exist.
        """
        return self._table.column(self._number(name))

    def take(self, rows: NDArray[np.int64], columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Take rows by number, in any order and with repeats. A spilled source keeps nothing else in memory.

        Parameters
        ----------
        rows
            Row numbers; int64.
        columns
            Names of top-level columns, in the wanted order; None for all.

        Raises
        ------
        UnjoinableError
            The rows exceed one Arrow array; fewer of them may fit.
        FieldNotFoundError
            A column does not exist.
        RowIndexError
            A row number is out of range.
        """
        if len(rows):
            low, high = int(rows.min()), int(rows.max())
            if low < 0 or high >= self.num_rows:
                raise RowIndexError(f"rows {low} to {high} are out of range for a source of {self.num_rows} rows")
        numbers = self._numbers(columns)
        fields = [self.schema.field(number) for number in numbers]
        pieces, back = self._pieces(rows, numbers)
        arrays = [_joined([piece[place] for piece in pieces], field, back) for place, field in enumerate(fields)]
        self.release()
        return _batch(arrays, pa.schema(fields, self.schema.metadata), len(rows))

    def _pieces(
        self, rows: NDArray[np.int64], numbers: list[int]
    ) -> tuple[list[list[pa.Array]], NDArray[np.int64] | None]:
        """Take the columns of the wanted rows from each batch.

        Returns
        -------
        pieces : list of lists
            Columns of each batch that has any of the rows.
        back : numpy.ndarray or None
            Position of each wanted row in the concatenated pieces; None if the order is the same.
        """
        back = None
        if len(self._batches) > 1 and bool((rows[1:] < rows[:-1]).any()):
            order = np.argsort(rows, kind="stable")
            back = np.empty(len(rows), np.int64)
            back[order] = np.arange(len(rows))
            rows = rows[order]
        cuts = [0, len(rows)] if len(self._batches) == 1 else [0, *np.searchsorted(rows, self._ends).tolist()]
        pieces = []
        names = self.schema.names
        for batch, end, (low, high) in zip(self._batches, self._ends.tolist(), pairwise(cuts), strict=True):
            if low < high:
                local = pa.array(rows[low:high] - (end - batch.num_rows))
                pieces.append([_taken(batch.column(number), local, names[number]) for number in numbers])
        return pieces, back

    def batches(self, columns: Sequence[str] | None = None, batch_rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Read all rows in order, in the stored batches or in batches of at most `batch_rows` rows.

        In a spilled source the memory of a batch is released when the next one is requested.
        """
        numbers = self._numbers(columns)
        schema = pa.schema([self.schema.field(number) for number in numbers], self.schema.metadata)
        for batch in self._spool.batches():
            chosen = _batch([batch.column(number) for number in numbers], schema, batch.num_rows)
            step = batch_rows or batch.num_rows
            for start in range(0, batch.num_rows, step):
                yield chosen.slice(start, step)

    def release(self) -> None:
        """Release the memory of a spilled source. Reading it again loads it from the file."""
        self._spool.release()

    def _numbers(self, columns: Sequence[str] | None) -> list[int]:
        if columns is None:
            return list(range(len(self.schema)))
        return [self._number(name) for name in columns]

    def _number(self, name: str) -> int:
        number = self.schema.get_field_index(name)
        if number < 0:
            raise FieldNotFoundError(f"the source has no column {name!r}{nearest_name_hint(name, self.schema.names)}")
        return number


def _without_views(schema: pa.Schema) -> pa.Schema:
    """Replace string and binary views in a schema; return the schema itself if it has none."""
    types = [_without_view(field.type) for field in schema]
    if all(kind == field.type for kind, field in zip(types, schema, strict=True)):
        return schema
    return pa.schema([field.with_type(kind) for kind, field in zip(types, schema, strict=True)], schema.metadata)


def _without_view(kind: pa.DataType) -> pa.DataType:
    if is_view(kind):
        return plain_type(kind)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    if pa.types.is_map(kind):
        keys, items = (field.with_type(_without_view(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(keys, items, kind.keys_sorted)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = kind.value_field.with_type(_without_view(kind.value_type))
        if pa.types.is_fixed_size_list(kind):
            return pa.list_(item, kind.list_size)
        return pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item)
    return kind


def _as_plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _batch(arrays: list[pa.Array], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # The row count of a batch without columns is that of a struct array without fields.
    return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))


def _taken(array: pa.Array, places: pa.Array, name: str) -> pa.Array:
    try:
        return array.take(places)
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        text = f"column {name!r}: {len(places)} rows exceed one Arrow array of type {array.type}; take fewer at a time"
        raise UnjoinableError(text, oversize=True) from error


def _joined(pieces: list[pa.Array], field: pa.Field, back: NDArray[np.int64] | None) -> pa.Array:
    joined = join_arrays(pieces, field.type, field.name)
    return joined if back is None else joined.take(pa.array(back))


def bounded_rows(row_bytes: float) -> int:
    """Return the number of rows in a batch, given the bytes of a row."""
    most = share_of_memory(_BATCH_BYTES, MemoryUse.BATCHES)
    return int(max(1, min(_MOST_ROWS, most / max(row_bytes, 1))))


def source_row_bytes(source: Source) -> float:
    """Return the average number of bytes of a source row, estimated from the first batch."""
    sample = next(source.batches(), None)
    return 1.0 if sample is None else sample.nbytes / max(sample.num_rows, 1)
