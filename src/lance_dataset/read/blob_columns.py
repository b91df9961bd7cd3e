"""Blob columns of version 2 in other forms than that of their file: values, stored form, descriptors of old files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.blob_arrays import Convert, converted, struct_of
from lance_dataset.file.blob_fields import DESCRIPTOR, is_pair, is_resolved
from lance_dataset.file.blob_values import check_ranges, check_total, read_values
from lance_dataset.file.buffers import allocate, octets
from lance_dataset.file.column import ColumnReader, Part
from lance_dataset.io.base import InputFile
from lance_dataset.limits import ResultLimit, check_memory
from lance_dataset.read.blob_places import BlobKind, BlobPlaces, BlobRange, Descriptors
from lance_dataset.types.schema import Field

__all__ = ["ConvertedColumn", "blob_values", "descriptors_of_pairs", "stored_blobs"]

_READ_BYTES = 64 << 20
#: Rows whose sizes are averaged, and assumed size of an external object in bytes.
_SAMPLE_ROWS = 1 << 14
_UNKNOWN_BYTES = 1 << 20
_KIND = np.dtype(np.uint8)


class ConvertedColumn(ColumnReader):
    """A column whose blobs have another form than in the file.

    Parameters
    ----------
    inner
        The column as the file has it.
    have, want
        The fields of both forms. They differ only in blobs.
    convert
        Converts the array of a blob.
    """

    def __init__(self, inner: ColumnReader, have: Field, want: Field, convert: Convert) -> None:
        self.arrow_type = want.storage_type
        self.num_rows = inner.num_rows
        self._inner = inner
        self._have = have
        self._want = want
        self._convert = convert

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        return self._converted(self._inner.read(start, stop))

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_chunks`."""
        return [self._converted(piece) for piece in self._inner.read_chunks(start, stop)]

    def parts(self, start: int, stop: int) -> list[Part]:
        """See `ColumnReader.parts`."""
        return self._inner.parts(start, stop)

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """See `ColumnReader.take`."""
        return self._converted(self._inner.take(rows))

    def value_bytes(self) -> float | None:
        """Return the average over the first rows, from the sizes in descriptors."""
        rows = min(self.num_rows, _SAMPLE_ROWS)
        total = 0

        def measured(array: pa.Array, have: Field, want: Field) -> pa.Array:
            nonlocal total
            found = Descriptors.of(array)
            unknown = found.valid & (found.kinds == BlobKind.EXTERNAL) & (found.sizes == 0)
            total += int(found.sizes[found.valid].sum()) + int(unknown.sum()) * _UNKNOWN_BYTES
            return pa.nulls(len(array), want.storage_type)

        if self._is_small or not rows:
            return None
        converted(self._inner.read(0, rows), self._have, self._want, measured)
        return total / rows + 16

    @property
    def _is_small(self) -> bool:
        """True if the result holds no values."""
        return not any(is_resolved(node) for node in self._want.walk())

    def _converted(self, array: pa.Array) -> pa.Array:
        return converted(array, self._have, self._want, self._convert)


# -- descriptors of blobs that files before 2.2 hold --------------------------------------------------------------


def descriptors_of_pairs(array: pa.Array, have: Field, want: Field) -> pa.Array:
    """Convert descriptions of version 1 to descriptors of values in the same file."""
    assert is_pair(have)
    position, size = array.field("position"), array.field("size")
    null = np.asarray(array.is_null()) | np.asarray(position.is_null()) | np.asarray(size.is_null())
    positions, sizes = (each.fill_null(0).to_numpy() for each in (position, size))
    null |= (sizes == 0) & (positions != 0)  # as 2.0 files encode a null
    count = len(array)
    children = [
        pa.array(np.full(count, BlobKind.INLINE, _KIND)),
        pa.array(np.where(null, np.uint64(0), positions)),
        pa.array(np.where(null, np.uint64(0), sizes)),
        pa.array(np.zeros(count, np.uint32)),
        pa.array([""] * count, pa.string()),
    ]
    return struct_of(want.storage_type, [children[_NUMBERS[child.name]] for child in want.children], null)


_NUMBERS = {child.name: number for number, child in enumerate(DESCRIPTOR)}


# -- values -------------------------------------------------------------------------------------------------------


def blob_values(places: BlobPlaces, limit: ResultLimit) -> Convert:
    """Return a conversion of descriptors to the bytes of the values, wherever they are."""

    def convert(array: pa.Array, have: Field, want: Field) -> pa.Array:
        return _values(Descriptors.of(array), places, limit)

    return convert


def stored_blobs(places: BlobPlaces, limit: ResultLimit) -> Convert:
    """Return a conversion of descriptors to the stored form: references to external objects, and other values."""

    def convert(array: pa.Array, have: Field, want: Field) -> pa.Array:
        found = Descriptors.of(array)
        has_range = len(want.children) == 4
        outside = found.valid & (found.kinds == BlobKind.EXTERNAL)
        if not has_range:
            outside &= found.sizes == 0
        inside = Descriptors(
            found.valid & ~outside, found.kinds, found.positions, found.sizes, found.blob_ids, found.uris
        )
        data = _values(inside, places, limit)
        numbers = np.flatnonzero(outside)
        uris: list[str | None] = [None] * len(array)
        for number, uri in zip(numbers.tolist(), found.uris.take(pa.array(numbers)).to_pylist(), strict=True):
            uris[number] = places.external_uri(int(found.blob_ids[number]), uri)
        children = [data, pa.array(uris, pa.string())]
        if has_range:
            whole = ~outside | (found.sizes == 0)
            children += [pa.array(each, mask=whole) for each in (found.positions, found.sizes)]
        return struct_of(want.storage_type, children, ~found.valid)

    return convert


def _values(found: Descriptors, places: BlobPlaces, limit: ResultLimit) -> pa.Array:
    """Read the bytes of each row that is valid."""
    count = len(found.valid)
    filled = np.flatnonzero(found.valid)
    if (found.kinds[filled] == BlobKind.INLINE).all():
        return _inline_values(found, places, limit)
    ranges = list(_ranges(found, filled, places))
    sizes = np.zeros(count, np.int64)
    sizes[filled] = [each.size for each in ranges]
    total = int(sizes.sum(dtype=object)) if count else 0
    limit.check(total, f"the values of {count:,} blobs")
    sources: dict[int, InputFile] = {}
    groups: dict[int, list[int]] = {}
    for number, each in enumerate(ranges):
        if each.size:
            source = each.source
            sources[id(source)] = source
            groups.setdefault(id(source), []).append(number)
    check_memory(total, sum(source.size for source in sources.values()), "the values of a blob column")
    nulls = count - len(filled)
    validity = pa.py_buffer(np.packbits(found.valid, bitorder="little")) if nulls else None
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = allocate(total)
    out = octets(data)
    for key, numbers in groups.items():
        for group in _grouped(numbers, ranges):
            wanted = [(ranges[number].position, ranges[number].size) for number in group]
            for number, content in zip(group, sources[key].read_ranges(wanted), strict=True):
                start = int(offsets[filled[number]])
                out[start : start + ranges[number].size] = octets(content)
    return pa.Array.from_buffers(pa.large_binary(), count, [validity, pa.py_buffer(offsets), data], nulls)


def _inline_values(found: Descriptors, places: BlobPlaces, limit: ResultLimit) -> pa.Array:
    """Read values that are all in the data file."""
    sizes = np.where(found.valid, found.sizes, np.uint64(0))
    positions = np.where(sizes > 0, found.positions, np.uint64(0))
    source = places.source
    check_ranges(positions, sizes, source.size, source.path)
    check_total(sizes, source.size, source.path)
    limit.check(int(sizes.sum()), f"the values of {len(sizes):,} blobs")
    nulls = len(sizes) - int(found.valid.sum())
    validity = pa.py_buffer(np.packbits(found.valid, bitorder="little")) if nulls else None
    return read_values(source, positions, sizes, validity, nulls)


def _ranges(found: Descriptors, rows: NDArray[np.int64], places: BlobPlaces) -> Iterator[BlobRange]:
    uris = found.uris.take(pa.array(rows))
    columns = (found.kinds, found.positions, found.sizes, found.blob_ids)
    numbers = (column[rows].tolist() for column in columns)
    for kind, position, size, blob_id, uri in zip(*numbers, uris.to_pylist(), strict=True):
        if position + size > np.iinfo(np.int64).max:
            raise CorruptFileError(f"a blob column has a value of {size} bytes at {position}")
        yield places.range_of(kind, position, size, blob_id, uri)


def _grouped(numbers: Sequence[int], ranges: Sequence[BlobRange]) -> Iterator[list[int]]:
    group: list[int] = []
    held = 0
    for number in numbers:
        if group and held + ranges[number].size > _READ_BYTES:
            yield group
            group, held = [], 0
        group.append(number)
        held += ranges[number].size
    if group:
        yield group
