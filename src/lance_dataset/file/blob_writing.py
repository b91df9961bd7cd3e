"""Writing the values of blob columns of version 2: into the data file, into files beside it, or as references."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import InvalidInputError
from lance_dataset.file.blob_arrays import converted, struct_of
from lance_dataset.file.blob_fields import described, is_prepared
from lance_dataset.file.blob_output import write_values
from lance_dataset.file.column import WriteBuffer
from lance_dataset.file.options import BLOB_THRESHOLDS, is_blob_v2
from lance_dataset.io.base import InputFile, OutputFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.threads.pools import storage_pool
from lance_dataset.threads.tasks import Background
from lance_dataset.types.schema import Field, Schema

__all__ = ["BlobOutput", "BlobWriter", "External", "Thresholds"]

_INLINE, _PACKED, _DEDICATED, _EXTERNAL, _, _MANAGED_IN_BASE = range(6)
#: Maximum number of finished files that wait for the disk.
_MAX_CLOSING = 8
_COPY_BYTES = 16 << 20


@dataclass(frozen=True)
class Thresholds:
    """Sizes in bytes that decide where a value is stored.

    Attributes
    ----------
    inline
        Values up to this size are in the data file.
    dedicated
        Values above this size have a file of their own.
    pack
        Maximum size of a file with several values.
    """

    inline: int
    dedicated: int
    pack: int

    @classmethod
    def of(cls, metadata: Mapping[str, bytes], pack: int | None = None) -> Thresholds:
        """Read the thresholds of a field; `pack` replaces that of the field."""
        try:
            sizes = [int(metadata.get(key, default)) for key, default in BLOB_THRESHOLDS.items()]
        except ValueError as error:
            raise InvalidInputError(f"a threshold of a blob column is not a number: {error}") from error
        found = cls(*sizes)
        return found if pack is None else replace(found, pack=pack)


@dataclass(frozen=True)
class External:
    """Reference to an external object, as it is stored."""

    base_id: int
    path: str


class BlobOutput(Protocol):
    """Place of the values of one data file that are not in the file itself."""

    @property
    def pack_threshold(self) -> int | None:
        """Maximum size of files with several values; None for that of each field."""
        ...

    def open_side(self, number: int) -> OutputFile:
        """Create a file beside the data file."""
        ...

    def reference(self, uri: str, where: str) -> External | None:
        """Return how to store a reference to an object; None to store a copy of its bytes."""
        ...

    def fetch(self, uri: str) -> InputFile:
        """Open an external object."""
        ...

    def remove(self) -> None:
        """Remove all files beside the data file."""
        ...


@dataclass
class _Pack:
    number: int
    output: OutputFile


@dataclass
class _Rows:
    """Descriptors of some rows, filled by kind."""

    count: int
    kinds: NDArray[np.uint8] = field(init=False)
    positions: NDArray[np.uint64] = field(init=False)
    sizes: NDArray[np.uint64] = field(init=False)
    numbers: NDArray[np.uint32] = field(init=False)
    uris: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = np.zeros(self.count, np.uint8)
        self.positions, self.sizes = np.zeros(self.count, np.uint64), np.zeros(self.count, np.uint64)
        self.numbers = np.zeros(self.count, np.uint32)

    def put(self, row: int, kind: int, position: int, size: int, number: int, uri: str = "") -> None:
        self.kinds[row], self.positions[row], self.sizes[row], self.numbers[row] = kind, position, size, number
        if uri:
            self.uris[row] = uri

    def array(self, null: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
        texts = pa.array([self.uris.get(row, "") for row in range(self.count)], pa.string())
        numbers = (pa.array(each) for each in (self.kinds, self.positions, self.sizes, self.numbers))
        return struct_of(kind, [*numbers, texts], null)


class BlobWriter:
    """Writer of the values of all blob columns of one data file. They share the files beside it.

    Parameters
    ----------
    schema
        Schema of the data file, with blobs in their stored form.
    write_buffer
        Appends bytes to the data file, aligned.
    output
        Place of the other values; None if all columns have descriptors of values that are there already.
    """

    def __init__(self, schema: Schema, write_buffer: WriteBuffer, output: BlobOutput | None) -> None:
        self._write_buffer = write_buffer
        self._place = output
        pack = None if output is None else output.pack_threshold
        self._thresholds = {node.id: Thresholds.of(node.metadata, pack) for node in schema.walk() if is_blob_v2(node)}
        self._pack: _Pack | None = None
        self._last = 0
        self._closing = Background(storage_pool)
        self._unclosed: deque[OutputFile] = deque()
        self._open: OutputFile | None = None

    @property
    def _output(self) -> BlobOutput:
        if self._place is None:
            raise InvalidInputError("this file holds descriptors of blobs only, not their values")
        return self._place

    def descriptors(self, array: pa.Array, have: Field) -> pa.Array:
        """Write the values of a column, and return the column with descriptors of them.

        Raises
        ------
        InvalidInputError
            A row is neither a value nor a reference, or refers to an object that must not be referred to.
        MissingFileError
            An object whose bytes should be copied does not exist.
        """
        return converted(array, have, described(have), self._converted)

    def finish(self) -> None:
        """Close all files, which are durable on return."""
        self._close_pack()
        while self._closing:
            self._wait()

    def abort(self) -> None:
        """Remove all files."""
        self._closing.drop()
        opened = [*self._unclosed, self._pack.output if self._pack else None, self._open]
        for output in opened:
            if output is not None:
                output.abort()
        self._pack = self._open = None
        if self._last and self._place is not None:
            self._place.remove()

    # -- rows ----------------------------------------------------------------------------------------------------

    def _converted(self, array: pa.Array, have: Field, want: Field) -> pa.Array:
        if is_prepared(have):
            return self._prepared(array, have, want)
        limits = self._thresholds[have.id]
        data, uris = array.field("data"), array.field("uri")
        valid = np.asarray(array.is_valid())
        here, there = valid & np.asarray(data.is_valid()), valid & np.asarray(uris.is_valid())
        _check(array, have.name, valid, here, there)
        rows = _Rows(len(array))
        lengths = _lengths(data)
        own = here & (lengths > limits.dedicated)
        inline = here & ~own & ((lengths <= limits.inline) | (lengths == 0))
        self._write_inline(data, inline, rows)
        for row in np.flatnonzero(here & ~inline).tolist():
            content = [memoryview(data[row].as_buffer())]
            self._write_beside(row, int(lengths[row]), iter(content), limits, rows)
        for row in np.flatnonzero(there).tolist():
            self._write_external(row, uris[row].as_py(), _span(array, row), have.name, limits, rows)
        return rows.array(~valid, want.storage_type)

    def _prepared(self, array: pa.Array, have: Field, want: Field) -> pa.Array:
        """Convert descriptors of values that are written already; inline values are written now."""
        valid = np.asarray(array.is_valid()) & np.asarray(array.field("kind").is_valid())
        kinds = array.field("kind").fill_null(0).to_numpy()
        inline = valid & (kinds == _INLINE)
        _check_prepared(array, have.name, valid, kinds)
        rows = _Rows(len(array))
        self._write_inline(array.field("data"), inline, rows)
        for row in np.flatnonzero(valid & ~inline).tolist():
            found = {name: array.field(name)[row].as_py() for name in ("position", "blob_size", "blob_id", "uri")}
            place = (found["position"] or 0, found["blob_size"] or 0, found["blob_id"] or 0, found["uri"] or "")
            rows.put(row, int(kinds[row]), *place)
        return rows.array(~valid, want.storage_type)

    def _write_inline(self, data: pa.Array, inline: NDArray[np.bool_], rows: _Rows) -> None:
        numbers = np.flatnonzero(inline)
        if not len(numbers):
            return
        values = data if len(numbers) == len(data) else data.filter(pa.array(inline))
        positions, sizes = write_values(values, self._write_buffer)
        rows.positions[numbers], rows.sizes[numbers] = positions, sizes

    def _write_beside(
        self, row: int, size: int, content: Iterator[memoryview], limits: Thresholds, rows: _Rows
    ) -> None:
        """Write a value to a file beside the data file."""
        if size > limits.dedicated:
            self._last += 1
            number = self._last
            self._open = output = self._output.open_side(number)
            for part in content:
                output.write(part)
            self._open = None
            self._close(output)
            rows.put(row, _DEDICATED, 0, size, number)
            return
        pack = self._pack
        if pack is not None and pack.output.tell() + size > limits.pack:
            self._close_pack()
            pack = None
        if pack is None:
            self._last += 1
            pack = self._pack = _Pack(self._last, self._output.open_side(self._last))
        position = pack.output.tell()
        for part in content:
            pack.output.write(part)
        rows.put(row, _PACKED, position, size, pack.number)

    # -- external objects ----------------------------------------------------------------------------------------

    def _write_external(
        self, row: int, uri: str, span: tuple[int, int] | None, name: str, limits: Thresholds, rows: _Rows
    ) -> None:
        found = self._output.reference(uri, f"column {name!r}")
        if found is not None:
            position, size = span or (0, 0)
            rows.put(row, _EXTERNAL, position, size, found.base_id, found.path)
            return
        source = self._output.fetch(uri)
        position, size = span or (0, source.size)
        if position + size > source.size:
            raise InvalidInputError(
                f"column {name!r}: the blob has {size} bytes at {position} of {uri!r}, which has {source.size} bytes"
            )
        if size > limits.inline or size > limits.dedicated:
            self._write_beside(row, size, _pieces(source, position, size), limits, rows)
            return
        content = list(_pieces(source, position, size))
        start, _ = self._write_buffer(content) if content else (0, 0)
        rows.put(row, _INLINE, start, size, 0)

    # -- files ---------------------------------------------------------------------------------------------------

    def _close_pack(self) -> None:
        if self._pack is not None:
            output, self._pack = self._pack.output, None
            self._close(output)

    def _close(self, output: OutputFile) -> None:
        self._unclosed.append(output)
        self._closing.start(output.close)
        while len(self._closing) > _MAX_CLOSING:
            self._wait()

    def _wait(self) -> None:
        self._closing.wait_for_oldest()
        self._unclosed.popleft()


def _check(
    array: pa.Array, name: str, valid: NDArray[np.bool_], here: NDArray[np.bool_], there: NDArray[np.bool_]
) -> None:
    """Raise InvalidInputError unless each row is null, a value, or a reference."""
    problems = [(valid & (here == there), "must set exactly one of `data` and `uri`")]
    if array.type.num_fields == 4:
        position, size = array.field("position"), array.field("size")
        starts, ends = valid & np.asarray(position.is_valid()), valid & np.asarray(size.is_valid())
        empty = ends & (size.fill_null(1).to_numpy() == 0)
        problems = [
            (starts != ends, "must set both `position` and `size`, or neither"),
            (starts & ~there, "sets `position` and `size` but `uri` is null"),
            (empty, "external range `size` must be greater than zero"),
            *problems,
        ]
    for wrong, what in problems:
        if wrong.any():
            raise InvalidInputError(f"Blob v2 field {name!r} row {int(np.argmax(wrong))} {what}")


def _check_prepared(array: pa.Array, name: str, valid: NDArray[np.bool_], kinds: NDArray[np.uint8]) -> None:
    """Raise InvalidInputError unless each descriptor has what its kind needs."""
    has = {child: np.asarray(array.field(child).is_valid()) for child in ("data", "uri", "blob_id", "blob_size")}
    numbers = array.field("blob_id").fill_null(0).to_numpy()
    beside, apart = (kinds == _PACKED) | (kinds == _DEDICATED), (kinds > _EXTERNAL) & (kinds <= _MANAGED_IN_BASE)
    problems = [
        ((kinds == _EXTERNAL) | (kinds > _MANAGED_IN_BASE), "has a kind that cannot be prepared"),
        ((kinds == _INLINE) & ~has["data"], "is stored in the data file, but has no data"),
        (beside & (~has["blob_size"] | (numbers == 0)), "needs the number of a file, and a size"),
        (apart & (~has["blob_size"] | ~has["uri"]), "needs a path, and a size"),
    ]
    for wrong, what in problems:
        if (valid & wrong).any():
            raise InvalidInputError(f"Blob v2 field {name!r} row {int(np.argmax(valid & wrong))} {what}")


def _lengths(data: pa.Array) -> NDArray[np.int64]:
    _, offsets, _ = data.buffers()
    if offsets is None or not len(data):
        return np.zeros(len(data), np.int64)
    ends: NDArray[np.int64] = np.frombuffer(offsets, np.int64, len(data) + 1, data.offset * 8)
    return ends[1:] - ends[:-1]


def _span(array: pa.Array, row: int) -> tuple[int, int] | None:
    """Return position and size of the range of an external object, or None for the whole object."""
    if array.type.num_fields < 4:
        return None
    position, size = (array.field(name)[row].as_py() for name in ("position", "size"))
    return None if position is None or size is None else (position, size)


def _pieces(source: InputFile, position: int, size: int) -> Iterator[memoryview]:
    end = position + size
    for start in range(position, end, _COPY_BYTES):
        yield memoryview(source.read(start, min(_COPY_BYTES, end - start)))
