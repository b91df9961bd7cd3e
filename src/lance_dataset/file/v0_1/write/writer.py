"""Writer of a legacy (0.1) file: rows are buffered until they fill batches, which are appended page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError, SchemaError
from lance_dataset.file.buffers import concat_arrays
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.v0_1.layout import PageKind, page_kind
from lance_dataset.file.v0_1.write.check import check_schema
from lance_dataset.file.v0_1.write.pages import Bounds, FieldPages, Leaf, field_pages, write_pages
from lance_dataset.file.v0_1.write.plain_groups import plain_groups, write_groups
from lance_dataset.file.v0_1.write.shared import LegacyWrite
from lance_dataset.file.v0_1.write.statistics import Statistics
from lance_dataset.file.v0_1.write.trailer import write_trailer
from lance_dataset.io.base import OutputFile
from lance_dataset.threads.pools import cpu_count, cpu_pool
from lance_dataset.threads.tasks import Task
from lance_dataset.types.schema import Schema

__all__ = ["LegacyFileWriter"]

_VERSION = "0.1"
_MANIFEST_PAIR = (0, 2)
_MAX_ROWS = 2**31 - 1
_Item = TypeVar("_Item")
#: Size in bytes of the blocks of batches that are written together, to share the work done per column.
_BLOCK_BYTES = 8 << 20
_BLOCK_BATCHES = 4096
#: Fewer bytes than this are not worth a thread.
_LEAST_BYTES = 1 << 20


class LegacyFileWriter:
    """Streaming writer of one legacy file. Memory is bounded by a batch, or by 8 MiB if batches are smaller.

    Parameters
    ----------
    output
        The new file; closed by `finish`, removed by `abort`.
    schema
        Schema with field ids.
    max_rows_per_group
        Rows of each batch. The last batch of the file, and those that `end_batch` ends, may have fewer.
    data_cache_bytes
        Number of bytes buffered before batches are written.
    write
        The write that the file belongs to; by default, the file is a write of its own.

    Raises
    ------
    UnsupportedError
        Legacy files cannot hold a type.
    """

    def __init__(
        self,
        output: OutputFile,
        schema: Schema,
        *,
        max_rows_per_group: int = 1024,
        data_cache_bytes: int | None = None,
        write: LegacyWrite | None = None,
    ) -> None:
        if max_rows_per_group < 1:
            raise InvalidInputError(f"max_rows_per_group must be at least 1, not {max_rows_per_group}")
        if data_cache_bytes is not None and data_cache_bytes <= 0:
            raise InvalidInputError(f"data_cache_bytes must be positive, not {data_cache_bytes}")
        check_schema(schema, _VERSION)
        self.version = _VERSION
        self.schema = schema
        self.num_rows = 0
        self._output = output
        self._group = max_rows_per_group
        self._block_bytes = data_cache_bytes or _BLOCK_BYTES
        self._write = write or LegacyWrite(schema)
        self._types = [top.storage_type for top in schema.fields]
        self._groups = plain_groups(schema.fields, max_rows_per_group)
        grouped = {number for group in self._groups for number in group.numbers}
        self._others = [number for number in range(len(schema.fields)) if number not in grouped]
        self._statistics = Statistics(schema, self._groups)
        self._waiting: deque[list[pa.Array]] = deque()
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._batches: list[int] = []
        #: Fields in the order of their pages, and their cells in each block.
        self._paged = [node.id for group in self._groups for node in group.fields]
        others = (node for number in self._others for node in schema.fields[number].walk())
        self._paged += [node.id for node in others if page_kind(node) is not PageKind.NONE]
        self._cells: list[NDArray[np.int64]] = []

    @property
    def bytes_written(self) -> int:
        """Size of the file so far in bytes, without buffered rows."""
        return self._output.tell()

    @property
    def bytes_pending(self) -> int:
        """Size in bytes of arrays that wait for their batch to fill."""
        return self._waiting_bytes

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch whose columns are those of the schema, in order, as storage types.

        Raises
        ------
        SchemaError
            A column cannot be stored as declared. The file is then unusable; call `abort`.
        InvalidInputError
            The file would have more rows than it can hold.

        Warns
        -----
        UserWarning
            Nulls are lost.
        """
        if batch.num_columns != len(self._types):
            raise SchemaError(f"the batch has {batch.num_columns} columns, but the file has {len(self._types)}")
        if batch.num_rows == 0:
            return
        if self.num_rows + batch.num_rows > _MAX_ROWS:
            raise InvalidInputError(f"a legacy (0.1) file holds at most {_MAX_ROWS} rows; lower max_rows_per_file")
        arrays = []
        for top, kind, array in zip(self.schema.fields, self._types, batch.columns, strict=True):
            if array.type != kind:
                raise SchemaError(f"column {top.name!r}: the batch has type {array.type}, but the file has {kind}")
            _check_valid(array, top.name)
            arrays.append(self._write.coded(top, array))
        self.num_rows += batch.num_rows
        self._waiting.append(arrays)
        self._waiting_rows += batch.num_rows
        # Arrow also counts the values of dictionaries, which are not written with the rows.
        self._waiting_bytes += sum(array.nbytes for array in arrays) if self._write.has_dictionaries else batch.nbytes
        if self._waiting_bytes >= self._block_bytes or self._waiting_rows >= _BLOCK_BATCHES * self._group:
            self._write_full_batches()

    def _write_full_batches(self) -> None:
        if self._waiting_rows < self._group:
            return
        per_batch = max(self._waiting_bytes * self._group // max(self._waiting_rows, 1), 1)
        at_once = min(max(self._block_bytes // per_batch, 1), _BLOCK_BATCHES)
        while self._waiting_rows >= self._group:
            batches = min(at_once, self._waiting_rows // self._group)
            self._write_block(self._take(batches * self._group), batches, self._group)
        self._waiting_bytes = sum(array.nbytes for arrays in self._waiting for array in arrays)

    def _take(self, rows: int) -> list[pa.Array]:
        """Return the first buffered rows, in one array per column."""
        pieces: list[list[pa.Array]] = []
        self._waiting_rows -= rows
        while rows:
            arrays = self._waiting.popleft()
            length = len(arrays[0])
            if length > rows:
                self._waiting.appendleft([array.slice(rows) for array in arrays])
                arrays = [array.slice(0, rows) for array in arrays]
                length = rows
            pieces.append(arrays)
            rows -= length
        if len(pieces) == 1:
            return pieces[0]
        try:
            return [concat_arrays(list(column), column[0].type) for column in zip(*pieces, strict=True)]
        except pa.ArrowInvalid as error:
            raise InvalidInputError(
                f"{self._group} rows are too many for one batch: {error}; lower max_rows_per_group"
            ) from error

    def _write_block(self, arrays: list[pa.Array], batches: int, rows: int) -> None:
        """Append batches of equal size."""
        bounds = Bounds(np.arange(batches + 1, dtype=np.int64) * rows)
        leaves: list[Leaf] = []
        pages: list[FieldPages] = []
        cells = self._write_groups(arrays, batches, rows)
        for number in self._others:
            top = self.schema.fields[number]
            pages += field_pages(top, top.name, arrays[number], bounds, self._write.warn, leaves)
        size = sum(int(page.sizes.sum()) for page in pages)
        with _beside(partial(self._statistics.add, leaves), rows, size):
            if pages:
                cells.append(write_pages(self._output, pages))
        self._cells.append(np.concatenate(cells) if cells else np.empty((0, batches, 2), np.int64))
        self._batches += [rows] * batches

    def _write_groups(self, arrays: list[pa.Array], batches: int, rows: int) -> list[NDArray[np.int64]]:
        """Append the pages of all groups, and gather their statistics; return the cells of each group."""
        together = [self._groups] if batches > 1 and self._groups else [[group] for group in self._groups]
        cells = []
        for groups in together:  # one at a time if a batch is large
            values = [group.values(arrays, batches, rows, self._write.warn) for group in groups]
            for group, pages in zip(groups, values, strict=True):
                if group.has_bounds:
                    self._statistics.add_group(group, group.bounds(pages, arrays))
            cells += write_groups(self._output, values)
        return cells

    def end_batch(self) -> None:
        """Write the buffered rows, as a smaller batch if they do not fill one."""
        self._write_full_batches()
        if self._waiting_rows:
            rows = self._waiting_rows
            self._write_block(self._take(rows), 1, rows)
        self._waiting_bytes = 0

    def finish(self, schema_metadata: dict[str, bytes] | None = None, *, close: bool = True) -> DataFileSummary:
        """Write the buffered rows, and the trailer of the file.

        Parameters
        ----------
        schema_metadata
            Entries added to the metadata of the schema.
        close
            True to close the file, which is then complete and durable; otherwise, call `close` later.
        """
        self.end_batch()
        schema = self._write.with_values(self.schema)
        if schema_metadata:
            schema = Schema(schema.fields, {**schema.metadata, **schema_metadata})
        offsets = np.cumsum([0, *self._batches], dtype=np.int64).tolist()
        write_trailer(self._output, schema, offsets, self._page_table(), self._statistics)
        if close:
            self.close()
        fields = tuple(sorted(node.id for node in schema.walk()))
        return DataFileSummary(self.num_rows, self._output.tell(), fields, (), *_MANIFEST_PAIR)

    def _page_table(self) -> NDArray[np.int64]:
        """Return cells [field id - smallest id, batch, 2], up to the largest id with a page; missing cells are zero."""
        first = min((node.id for node in self.schema.walk()), default=0)
        table = np.zeros((max(self._paged, default=first - 1) + 1 - first, len(self._batches), 2), np.int64)
        if self._cells:
            table[np.array(self._paged, np.int64) - first] = np.concatenate(self._cells, axis=1)
        return table

    def close(self) -> None:
        """Close the finished file, which is durable on return."""
        self._output.close()

    def abort(self) -> None:
        """Remove the unfinished file."""
        self._waiting.clear()
        self._output.abort()


@contextmanager
def _beside(function: Callable[[_Item], None], item: _Item, size: int) -> Iterator[None]:
    """Call a function on another thread while the body runs if there is enough data to pay off; otherwise before it."""
    if size < _LEAST_BYTES or cpu_count() < 2:
        function(item)
        yield
        return
    task = Task.start(cpu_pool, function, item)
    try:
        yield
    except BaseException:
        task.drop(wait=True)
        raise
    task.result()


def _check_valid(array: pa.Array, name: str) -> None:
    """Raise SchemaError if a buffer is too short for its array; takes constant time."""
    try:
        array.validate()
    except pa.ArrowInvalid as error:
        raise SchemaError(f"column {name!r}: the data is not a valid Arrow array: {error}") from error
