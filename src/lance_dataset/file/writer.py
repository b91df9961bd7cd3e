"""Writing of a data file: batches are buffered per column until they fill a page, then encoded and appended."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset._proto import encodings_pb2
from lance_dataset.errors import InvalidInputError, SchemaError, UnsupportedError
from lance_dataset.file.blob_fields import described_blobs, is_prepared, unprepared
from lance_dataset.file.blob_writing import BlobOutput, BlobWriter
from lance_dataset.file.column import ColumnEncoder, EncodedPage
from lance_dataset.file.container import ContainerWriter, stored_encoding
from lance_dataset.file.encode_queue import EncodeQueue
from lance_dataset.file.families import PagedFamily, paged_family_of
from lance_dataset.file.goals import StorageGoal, check_goal_version, with_goal
from lance_dataset.file.options import is_blob_v2
from lance_dataset.file.stored_bounds import bounds_buffer, buffer_size
from lance_dataset.file.summary import DataFileSummary
from lance_dataset.file.v0_1.write.shared import LegacyWrite
from lance_dataset.file.v0_1.write.writer import LegacyFileWriter
from lance_dataset.file.versions import manifest_pair, resolve_version
from lance_dataset.io.base import OutputFile
from lance_dataset.memory import MemoryUse, share_of_memory
from lance_dataset.types.schema import Field, Schema
from lancecodec import metadata

__all__ = ["DataFileSummary", "DataFileWriter", "LegacyFileWriter", "LegacyWrite", "open_writer"]

_LEGACY = "0.1"

_PAGE_BYTES = 8 << 20
#: Default buffer limit for all columns together, which bounds the memory for very wide tables.
_TOTAL_CACHE_BYTES = 64 << 20
_MIN_PAGE_BYTES = 64 << 10
_MAX_PAGE_BYTES = 32 << 20
#: Bounds of values take at most this share of a file.
_BOUNDS_SHARE = 1024


def open_writer(
    output: OutputFile,
    schema: Schema,
    version: str | None = None,
    *,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    max_rows_per_group: int = 1024,
    legacy: LegacyWrite | None = None,
    blobs: BlobOutput | None = None,
    goal: StorageGoal | None = None,
    bounds: bool = False,
) -> DataFileWriter | LegacyFileWriter:
    """Start a data file of any version.

    Parameters
    ----------
    output
        The new file.
    schema
        Schema with field ids.
    version
        File version.
    data_cache_bytes, max_page_bytes
        See `DataFileWriter`; legacy (0.1) files have one page per batch, whatever its size.
    max_rows_per_group
        Rows of the batches of legacy files; later versions have no groups.
    legacy
        State of the write that a legacy file belongs to.
    blobs, goal, bounds
        See `DataFileWriter`. Legacy files have statistics instead of bounds.
    """
    version = resolve_version(version)
    check_goal_version(goal, version)
    if version == _LEGACY:
        return LegacyFileWriter(
            output, schema, max_rows_per_group=max_rows_per_group, data_cache_bytes=data_cache_bytes, write=legacy
        )
    return DataFileWriter(
        *(output, schema, version),
        data_cache_bytes=data_cache_bytes,
        max_page_bytes=max_page_bytes,
        blobs=blobs,
        goal=goal,
        bounds=bounds,
    )


class DataFileWriter:
    """Streaming writer of one data file. Memory is bounded by one page per column, and two per thread.

    Parameters
    ----------
    output
        The new file; closed by `finish`, removed by `abort`.
    schema
        Schema with field ids.
    version
        File version, 2.0 or later.
    data_cache_bytes
        Bytes buffered by all columns together before pages are cut; by default 8 MiB a column, 64 MiB in all.
    max_page_bytes
        Maximum size of a page in bytes; larger spans of rows are cut into several pages. As rows are cut evenly, pages
        of rows with different sizes may be up to one half larger.
    blobs
        Place of values of blob columns of version 2 that do not fit into the file; None for a file without such
        columns.
    goal
        What encodings are chosen for; None for ``balanced``.
    bounds
        True to write bounds of the values behind the pages, for the filters of this package; see `stored_bounds`.
    """

    def __init__(
        self,
        output: OutputFile,
        schema: Schema,
        version: str | None = None,
        *,
        data_cache_bytes: int | None = None,
        max_page_bytes: int | None = None,
        blobs: BlobOutput | None = None,
        goal: StorageGoal | None = None,
        bounds: bool = False,
    ) -> None:
        self.version = resolve_version(version)
        check_goal_version(goal, self.version)
        family = paged_family_of(self.version)
        #: Blobs are descriptors in the file.
        self._stored = described_blobs(schema)
        family.check_schema(schema if self._stored is schema else unprepared(schema), self.version)
        self.schema = schema
        self._output = output
        self._container = ContainerWriter(output, self.version)
        self._page_bytes = _page_target(data_cache_bytes, max_page_bytes, len(schema.fields))
        #: Size up to which rows are joined: without a given limit, a small rest is not worth a page of its own.
        self._joined_bytes = min(self._page_bytes + self._page_bytes // 2, max_page_bytes or _MAX_PAGE_BYTES)
        self._blobs: BlobWriter | None = None
        if self._stored is not schema:
            self._blobs = BlobWriter(schema, self._container.write_buffer, _checked_output(blobs, schema))
        self._indices = family.column_indices(self._stored)
        #: Records of the pages of each column, as they are stored.
        self._pages = [bytearray() for _ in self._indices]
        self._pending = self._make_pending(family, goal)
        if bounds:
            for column in self._pending:
                column.encoder.gather_bounds()
        self._queue = EncodeQueue(self._write_page)
        self.num_rows = 0

    def _make_pending(self, family: PagedFamily, goal: StorageGoal | None) -> list[_PendingColumn]:
        pending, index, write_buffer = [], 0, self._container.write_buffer
        for top in self._stored.fields:
            encoder = family.open_encoder(with_goal(top, goal), index, self.version, write_buffer)
            pending.append(_PendingColumn(top, encoder))
            index += len(family.column_indices(Schema((top,)))) if top.children else 1
        return pending

    @property
    def bytes_written(self) -> int:
        """Size of the file so far in bytes, without buffered pages."""
        return self._output.tell()

    @property
    def bytes_pending(self) -> int:
        """Size in bytes of arrays that wait for their page."""
        return self._queue.bytes + sum(column.bytes for column in self._pending)

    def add_global_buffer(self, data: bytes) -> int:
        """Append a global buffer and return its index, which starts at 1."""
        return self._container.add_global_buffer(data)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch that has the columns of the schema, in order, as storage types.

        Raises
        ------
        SchemaError, UnsupportedError
            A column cannot be stored as declared. The file is then unusable; call `abort`.
        """
        if batch.num_columns != len(self._pending):
            raise SchemaError(f"the batch has {batch.num_columns} columns, but the file has {len(self._pending)}")
        if batch.num_rows == 0:
            return
        for top, column, array in zip(self.schema.fields, self._pending, batch.columns, strict=True):
            if array.type != top.storage_type:
                raise SchemaError(
                    f"column {top.name!r}: the batch has type {array.type}, but the file has {top.storage_type}"
                )
            _check_valid(array, top.name)
            if column.field is not top and self._blobs is not None:
                array = self._blobs.descriptors(array, top)
            for piece, size in _cut(array, self._page_bytes, self._joined_bytes):
                if column.bytes and column.bytes + size > self._joined_bytes:
                    self._flush(column)  # do not join pieces of one array, each nearly a page, again
                column.add(piece, size)
                if column.bytes >= self._page_bytes:
                    self._flush(column)
        self.num_rows += batch.num_rows

    def _flush(self, column: _PendingColumn) -> None:
        if not column.arrays:
            return
        arrays, size, column.arrays, column.bytes = column.arrays, column.bytes, [], 0
        self._queue.encode(column.field.name, column.encoder, arrays, size)

    def _write_page(self, page: EncodedPage) -> None:
        column, length, encoding, buffers, priority = page
        ranges = [self._container.write_buffer(parts) for parts in buffers]
        stored = encoding if isinstance(encoding, bytes) else stored_encoding(encoding)
        self._pages[column] += metadata.page_record(ranges, length, stored, priority)

    def finish(self, schema_metadata: dict[str, bytes] | None = None, *, close: bool = True) -> DataFileSummary:
        """Write the buffered rows and the metadata.

        Parameters
        ----------
        schema_metadata
            Entries added to the metadata of the schema.
        close
            True to close the file, which is then complete and durable; otherwise, call `close` later.
        """
        for column in self._pending:
            self._flush(column)
        self._queue.finish()
        for column in self._pending:
            for page in column.encoder.finish():
                self._write_page(page)
        if self._blobs is not None:
            self._blobs.finish()
        schema = self._stored
        if schema_metadata:
            schema = Schema(schema.fields, {**schema.metadata, **schema_metadata})
        records = self._column_records()
        self._write_bounds(records)
        size = self._container.finish(schema, self.num_rows, records)
        if close:
            self.close()
        fields, columns = zip(*self._indices, strict=True) if self._indices else ((), ())
        return DataFileSummary(self.num_rows, size, tuple(fields), tuple(columns), *manifest_pair(self.version))

    def _column_records(self) -> list[bytes]:
        """Return the serialized metadata of each column."""
        values = metadata.column_head(stored_encoding(encodings_pb2.ColumnEncoding(values={})))
        heads = {
            index: metadata.column_head(stored_encoding(encoding))
            for column in self._pending
            for index, encoding in column.encoder.column_encodings().items()
        }
        return [heads.get(index, values) + pages for index, pages in enumerate(self._pages)]

    def _write_bounds(self, records: list[bytes]) -> None:
        """Append the bounds that were gathered, coarser if necessary, unless they are large for a small file."""
        gathered = [each for column in self._pending for each in column.encoder.gathered().items()]
        found = [(index, each, bounds) for index, each in gathered if (bounds := each.finish()) is not None]
        most = self._output.tell() // _BOUNDS_SHARE
        sizes = {index: (each.width, len(bounds)) for index, each, bounds in found}
        while found and buffer_size(list(sizes.values())) > most:
            index, each, bounds = max(found, key=lambda part: len(part[2]) * part[1].width)
            if len(bounds) == 1:
                return
            bounds.halve()
            sizes[index] = each.width, len(bounds)
        if found:
            stored = {index: each.stored(bounds) for index, each, bounds in found}
            self._container.add_global_buffer(bounds_buffer(stored, records, self.num_rows))

    def close(self) -> None:
        """Close the finished file, which is durable on return."""
        self._output.close()

    def abort(self) -> None:
        """Remove the unfinished file."""
        self._queue.discard()
        if self._blobs is not None:
            self._blobs.abort()
        self._output.abort()


class _PendingColumn:
    """Buffered arrays of a top-level column that wait to become a page."""

    def __init__(self, field: Field, encoder: ColumnEncoder) -> None:
        self.field = field
        self.encoder = encoder
        self.arrays: list[pa.Array] = []
        self.bytes = 0

    def add(self, array: pa.Array, size: int) -> None:
        self.arrays.append(array)
        self.bytes += size


def _checked_output(blobs: BlobOutput | None, schema: Schema) -> BlobOutput | None:
    name = next((node.name for node in schema.walk() if is_blob_v2(node) and not is_prepared(node)), None)
    if blobs is None and name is not None:
        raise UnsupportedError(
            f"column {name!r}: blob columns of version 2 are written to datasets, not to files by themselves; for a "
            "single file, write the values as large_binary, or make descriptors with BlobDescriptorArrayBuilder"
        )
    return blobs


def _held_bytes(array: pa.Array, size: int) -> int:
    """Return the bytes that count for an array of that size; null columns have none, but their pages must end too."""
    return max(size, len(array) // 8)


def _check_valid(array: pa.Array, name: str) -> None:
    """Raise SchemaError if a buffer is too short for its array; takes constant time."""
    try:
        array.validate()
    except pa.ArrowInvalid as error:
        raise SchemaError(f"column {name!r}: the data is not a valid Arrow array: {error}") from error


def _page_target(data_cache_bytes: int | None, max_page_bytes: int | None, columns: int) -> int:
    for name, value in (("data_cache_bytes", data_cache_bytes), ("max_page_bytes", max_page_bytes)):
        if value is not None and value <= 0:
            raise InvalidInputError(f"{name} must be positive, not {value}")
    total = share_of_memory(_TOTAL_CACHE_BYTES, MemoryUse.PAGES)
    usual = max(min(_PAGE_BYTES, total // 4), _MIN_PAGE_BYTES)  # every thread encodes a page, and tries some encodings
    per_column = (data_cache_bytes or total) // max(columns, 1)
    target = max(per_column, 1 if data_cache_bytes else _MIN_PAGE_BYTES)
    return min(target, max_page_bytes or _MAX_PAGE_BYTES, usual if data_cache_bytes is None else target)


def _cut(array: pa.Array, target: int, most: int) -> list[tuple[pa.Array, int]]:
    """Cut an array of more than `most` bytes into pieces of about `target` bytes; return each with its size.

    Pieces have the same number of rows, at least one, unless that makes some of them much larger than `target`, not
    counting the dictionary that each of them has.
    """
    size = array.nbytes
    if size <= most or len(array) < 2:
        return [(array, _held_bytes(array, size))]
    count = min(-(-size // target), len(array))
    rows = -(-len(array) // count)
    dictionary = array.slice(0, 0).nbytes
    found = []
    for start in range(0, len(array), rows):
        piece = array.slice(start, rows)
        found.extend(_cut(piece, target, max(most, target + target // 2 + dictionary)))
    return found
