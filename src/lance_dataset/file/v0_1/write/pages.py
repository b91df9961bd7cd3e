"""Conversion of Arrow arrays to the pages of a block of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import SchemaError
from lance_dataset.file.buffers import octets
from lance_dataset.file.kinds import is_text, is_wide
from lance_dataset.file.v0_1.arrays import (
    count_nulls,
    fixed_bits,
    fixed_bytes,
    is_bits,
    value_offsets,
    visible_items,
    without_hidden_bytes,
    zero_based,
)
from lance_dataset.file.v0_1.layout import PageKind, bits_per_row, page_kind
from lance_dataset.io.base import OutputFile
from lance_dataset.late_dataclass import dataclass
from lance_dataset.types.schema import Field
from lancecodec import CodecError, utf8

__all__ = ["NULLS_LOST", "Bounds", "FieldPages", "Leaf", "Warn", "field_pages", "write_pages"]

#: Called with (path, what is lost) if data has something that legacy files cannot hold.
Warn = Callable[[str, str], None]
_Parts = Sequence["memoryview"]
_OFFSET = 8
#: Pages up to this average size are joined before they are written.
_SMALL = 32 << 10

#: What is lost of nulls, up to the values that are read in place of them.
NULLS_LOST = "holds nulls, which legacy (0.1) files cannot store: they will be read as "
_EMPTY_LOST = "holds empty values, which legacy (0.1) files cannot tell from nulls: they will be read as null"


class Bounds:
    """Rows of the pages of a block, the same for all of its columns.

    Parameters
    ----------
    rows
        int64, first row of each page, and the end of the last one.
    """

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.rows = rows
        self.lengths: NDArray[np.int64] = np.diff(rows)
        #: A zero per page.
        self.nothing = np.zeros(len(self.lengths), np.int64)
        self._fixed: dict[int, tuple[NDArray[np.int64], list[tuple[int, int]]]] = {}

    def fixed(self, bits: int) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """Return the bytes of each page of values of some bits, and the range of its bits."""
        known = self._fixed.get(bits)
        if known is None:
            ranges = list(zip((self.rows[:-1] * bits).tolist(), (self.rows[1:] * bits).tolist(), strict=True))
            known = self._fixed[bits] = (self.lengths * bits + 7) // 8, ranges
        return known


class FieldPages(NamedTuple):
    """Pages of one field in consecutive batches.

    Attributes
    ----------
    field_id
        The field.
    lengths
        int64 per page, the length that the page table records.
    sizes
        int64 per page, size in bytes.
    heads
        int64 per page, bytes that precede the position in the page table.
    parts
        Returns the bytes of each page, given the position of each page in the file (int64).
    """

    field_id: int
    lengths: NDArray[np.int64]
    sizes: NDArray[np.int64]
    heads: NDArray[np.int64]
    parts: Callable[[NDArray[np.int64]], Iterable[_Parts]]


@dataclass(frozen=True)
class Leaf:
    """Values of a field outside of lists, one per row, as input of statistics."""

    field: Field
    values: pa.Array


def field_pages(
    node: Field, path: str, array: pa.Array, bounds: Bounds, warn: Warn, leaves: list[Leaf] | None, absent: int = 0
) -> Iterator[FieldPages]:
    """Yield the pages of a field and of all fields below it, in the order of the schema.

    Parameters
    ----------
    node, path
        Field, and its name for error messages.
    array
        Values of the storage type; indices in place of dictionaries.
    bounds
        Rows of each page in `array`.
    warn
        Called for nulls that are lost.
    leaves
        Gets the input of statistics; None below lists.
    absent
        Number of values that are null because the struct around them is null.

    Raises
    ------
    SchemaError
        A field that is not nullable has a null, or a string is not UTF-8.
    """
    nulls = array.null_count - absent
    if not node.nullable and nulls > 0:
        raise SchemaError(f"column {path!r} is declared not nullable, but its data holds {nulls} null values")
    kind = page_kind(node)
    if kind is PageKind.NONE:
        if nulls > 0:
            warn(path, NULLS_LOST + "structs of zero, empty or null fields")
        yield from _struct_pages(node, path, array, bounds, warn, leaves)
        return
    if kind is PageKind.BINARY:
        array = without_hidden_bytes(array)
    if leaves is not None:
        leaves.append(Leaf(node, array))
    if kind is PageKind.LIST:
        if nulls > 0:
            warn(path, NULLS_LOST + "empty lists")
        yield from _list_pages(node, path, array, bounds, warn)
    elif kind is PageKind.BINARY:
        yield _binary_pages(node, path, array, bounds, warn)
    elif kind is PageKind.NULL:
        yield FieldPages(node.id, bounds.lengths, bounds.nothing, bounds.nothing, lambda starts: [() for _ in starts])
    else:
        if kind is PageKind.FIXED and count_nulls(array) > absent:
            warn(path, NULLS_LOST + ("false" if is_bits(array.type) else "zeros"))
        yield _fixed_pages(node.id, array, bounds)


def _struct_pages(
    node: Field, path: str, array: pa.StructArray, bounds: Bounds, warn: Warn, leaves: list[Leaf] | None
) -> Iterator[FieldPages]:
    nulls = array.null_count
    # Values under a null struct must stay hidden, so its fields are null too; indices already respect this.
    hidden = array.flatten() if nulls else []
    for number, child in enumerate(node.children):
        seen = not nulls or page_kind(child) is PageKind.DICTIONARY
        values = array.field(number) if seen else hidden[number]
        yield from field_pages(child, f"{path}.{child.name}", values, bounds, warn, leaves, nulls)


def _list_pages(node: Field, path: str, array: pa.Array, bounds: Bounds, warn: Warn) -> Iterator[FieldPages]:
    _lengths(array, path)
    offsets, items = visible_items(array)
    width = offsets.dtype.itemsize
    lengths = bounds.lengths + 1
    pieces = [
        ((offsets[start : end + 1] - offsets[start]).data.cast("B"),)
        for start, end in zip(bounds.rows[:-1].tolist(), bounds.rows[1:].tolist(), strict=True)
    ]
    yield FieldPages(node.id, lengths, lengths * width, bounds.nothing, lambda starts: pieces)
    child, inner = node.children[0], Bounds(offsets[bounds.rows].astype(np.int64))
    yield from field_pages(child, f"{path}.{child.name}", items, inner, warn, None)


def _fixed_pages(field_id: int, array: pa.Array, bounds: Bounds) -> FieldPages:
    sizes, ranges = bounds.fixed(bits_per_row(array.type))
    if is_bits(array.type):
        bitmap = fixed_bits(array)
        pieces = [(zero_based(bitmap, start, end - start),) for start, end in ranges]
    else:
        values = fixed_bytes(array)
        pieces = [(values[start // 8 : end // 8],) for start, end in ranges]
    return FieldPages(field_id, bounds.lengths, sizes, bounds.nothing, lambda starts: pieces)


def _binary_pages(node: Field, path: str, array: pa.Array, bounds: Bounds, warn: Warn) -> FieldPages:
    offsets, lengths = value_offsets(array), _lengths(array, path)
    first = int(offsets[0])
    content = octets(array.buffers()[2].slice(first, int(offsets[-1]) - first)) if offsets[-1] > first else b""
    if first:
        offsets = offsets - first
    if is_text(array.type):
        _check_text(content, offsets, is_wide(array.type), path)
    if node.nullable and np.count_nonzero(lengths == 0) > array.null_count:
        warn(path, _EMPTY_LOST)
    view, cuts = memoryview(content), offsets[bounds.rows].astype(np.int64)
    heads, counts = np.diff(cuts), bounds.lengths

    def parts(starts: NDArray[np.int64]) -> Iterator[_Parts]:
        shifts = (starts - cuts[:-1]).tolist()
        rows, ends = bounds.rows.tolist(), cuts.tolist()
        for page, shift in enumerate(shifts):
            absolute: NDArray[np.int64] = offsets[rows[page] : rows[page + 1] + 1].astype(np.int64)
            absolute += shift
            yield view[ends[page] : ends[page + 1]], absolute.data.cast("B")

    return FieldPages(node.id, counts, heads + (counts + 1) * _OFFSET, heads, parts)


def _lengths(array: pa.Array, path: str) -> NDArray[np.int32] | NDArray[np.int64]:
    """Return the length of each string, binary or list; raise if offsets descend."""
    lengths: NDArray[np.int32] | NDArray[np.int64] = np.diff(value_offsets(array))
    if len(lengths) and int(lengths.min()) < 0:
        raise SchemaError(f"column {path!r}: the data is not a valid Arrow array: its offsets descend")
    return lengths


def _check_text(
    content: memoryview | bytes, offsets: NDArray[np.int64] | NDArray[np.int32], wide: bool, path: str
) -> None:
    try:
        utf8.validate(content, np.ascontiguousarray(offsets).data.cast("B"), wide)
    except CodecError as error:
        raise SchemaError(f"column {path!r}: {error}") from error


def write_pages(output: OutputFile, fields: Sequence[FieldPages]) -> NDArray[np.int64]:
    """Append the pages of a block, batch by batch; return the cells of the page table, [field, batch, 2]."""
    sizes = np.stack([pages.sizes for pages in fields], axis=1)
    ends = np.cumsum(sizes.ravel()) + output.tell()
    starts = (ends - sizes.ravel()).reshape(sizes.shape)
    pieces = [pages.parts(starts[:, number]) for number, pages in enumerate(fields)]
    parts = [part for batch in zip(*pieces, strict=True) for page in batch for part in page]
    if parts and sizes.sum() < len(parts) * _SMALL:
        output.write(b"".join(parts))
    else:
        output.write_many([part for part in parts if len(part)])
    cells = np.empty((len(fields), len(sizes), 2), np.int64)
    for number, pages in enumerate(fields):
        cells[number, :, 0] = starts[:, number] + pages.heads
        cells[number, :, 1] = pages.lengths
    return cells
