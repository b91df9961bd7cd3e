"""Values of legacy pages as Arrow arrays, with one node class per kind of page, structs and lists included."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, bit_width
from lance_dataset.file.column import OversizeError
from lance_dataset.file.kinds import is_text, is_wide
from lance_dataset.file.v0_1.container import PageTable
from lance_dataset.file.v0_1.spans import Spans, fetch, release
from lance_dataset.io.base import InputFile
from lance_dataset.properties import cached_property
from lancecodec import CodecError, OffsetOverflowError, utf8
from lancecodec import spans as kernels
from lancecodec.blocks import FileBlocks, Held

__all__ = [
    "BinaryNode",
    "BlobNode",
    "DictionaryNode",
    "FixedNode",
    "ListNode",
    "Node",
    "NullNode",
    "Pages",
    "StructNode",
]


#: Maximum width in bits at which rows are located before checking that their pages have them.
_NARROW = 8 << 10
#: Lists with at most this many items are not compared with each other.
_FEW_ITEMS = 1 << 16
#: Average page size in bytes from which on pages become separate arrays instead of being copied into one.
_VIEW_BYTES = 256 << 10


@dataclass(frozen=True)
class Pages:
    """Pages of one field.

    Attributes
    ----------
    source
        The file.
    positions, lengths
        First byte and number of values of the page of each batch.
    batch_offsets
        First row of each batch, and the number of rows.
    where
        File and field, for error messages.
    """

    source: InputFile
    positions: NDArray[np.int64]
    lengths: NDArray[np.int64]
    batch_offsets: NDArray[np.int64]
    where: str

    @classmethod
    def of(cls, table: PageTable, field_id: int, where: str) -> Pages:
        """Look up the pages of a field."""
        positions, lengths = table.cells(field_id)
        return cls(table.source, positions, lengths, table.batch_offsets, where)

    @cached_property
    def blocks(self) -> FileBlocks | None:
        """Blocks of the file, kept for later takes; None if it is mapped."""
        return self.source.blocks()

    def fetch(
        self, positions: NDArray[np.int64], sizes: NDArray[np.int64], spans: Spans
    ) -> tuple[pa.Buffer, NDArray[np.int64], Held | None]:
        """See `spans.fetch`."""
        return fetch(self.source, positions, sizes, None if spans.is_range else self.blocks)

    def by_row(self, bits: int, extra: int = 0) -> kernels.BatchPages | None:
        """Return compiled access to fixed-width values by row; `extra` values have no row.

        None for files that are neither mapped nor have blocks. Rows of the latter must be loaded with `hold_rows`.
        """
        mapped = self.source.mapped
        if mapped is None and bits % 8 == 0 and self.blocks is not None:
            mapped = pa.py_buffer(self.blocks)
        if mapped is None or (bits % 8 and bits != 1) or bits > 8 * mapped.size:
            return None
        lengths = np.maximum(self.lengths - extra, 0) if extra else self.lengths
        try:
            return kernels.BatchPages(mapped, self.batch_offsets, self.positions, lengths, bits)
        except CodecError as error:
            self.fail(error)

    def hold_rows(
        self, by_row: kernels.BatchPages, rows: NDArray[np.int64], width: int
    ) -> tuple[NDArray[np.int64], Held | None]:
        """Load `width` bytes of each row, as long as the result lives; return their positions too."""
        positions = np.empty(len(rows), np.int64)
        by_row.locate(rows, positions)
        return positions, None if self.blocks is None else self.blocks.hold(positions, positions + width)

    def check_size(self, bits: int) -> None:
        """Raise unless all pages fit in the file; otherwise they would decode to many times its size."""
        room = 8 * self.source.size
        if bits and (int(self.lengths.max(initial=0)) > room or int(self.lengths.sum()) > room // bits):
            raise CorruptFileError(
                f"{self.where}: its pages claim {self.lengths.sum()} values of {bits} bits, more than the file has"
            )

    def check(self, spans: Spans, extra: int = 0) -> None:
        """Raise if a span ends after its page, which holds `extra` more values than rows."""
        needed = spans.starts + spans.counts
        short = needed > self.lengths[spans.batches] - extra
        if short.any():
            span = int(short.argmax())
            batch = int(spans.batches[span])
            raise CorruptFileError(
                f"{self.where}, batch {batch}: the page has {self.lengths[batch]} values, but {needed[span] + extra} "
                "are needed"
            )

    def check_bytes(self, starts: NDArray[np.int64], sizes: NDArray[np.int64], spans: Spans) -> None:
        """Raise if bytes of values lie outside the file, or exceed its size although no row is repeated."""
        size = self.source.size
        outside = starts > size - sizes
        if outside.any():
            span = int(outside.argmax())
            raise CorruptFileError(
                f"{self.where}, batch {spans.batches[span]}: {sizes[span]} bytes of values from byte {starts[span]} on "
                f"are not within the {size} bytes of the file"
            )
        total = int(sizes.sum())
        if total > size and total > size * spans.most_repeats():
            raise CorruptFileError(f"{self.where}: its values claim more bytes than the {size} of the file")

    def fail(self, error: CodecError) -> NoReturn:
        """Convert an error of a kernel to an error of this package."""
        if isinstance(error, OffsetOverflowError):
            raise OversizeError(f"{self.where}: {error}") from error
        raise CorruptFileError(f"{self.where}: {error}") from error


class Node(abc.ABC):
    """Values of a field with everything below it."""

    @abc.abstractmethod
    def read(self, spans: Spans) -> pa.Array:
        """Return the values of some spans."""


@dataclass(frozen=True)
class NullNode(Node):
    """Nulls, whose pages have no bytes."""

    pages: Pages

    def read(self, spans: Spans) -> pa.Array:
        """See `Node.read`."""
        self.pages.check(spans)
        return pa.Array.from_buffers(pa.null(), spans.total, [None])  # pa.nulls would allocate a bitmap


class FixedNode(Node):
    """Fixed-width values, including fixed-size lists of them; all valid.

    Parameters
    ----------
    pages
        Pages of the values.
    arrow_type
        Type of the values.
    bits
        Bits of a value; for a list, the bits of all its items.
    """

    def __init__(self, pages: Pages, arrow_type: pa.DataType, bits: int) -> None:
        self._pages = pages
        self._type = arrow_type
        self._bits = bits
        self._by_row = pages.by_row(bits)
        self._is_list = pa.types.is_fixed_size_list(arrow_type)

    def read(self, spans: Spans) -> pa.Array:
        """See `Node.read`."""
        by_row, rows = self._by_row, spans.rows
        if by_row is None or rows is None or self._bits > _NARROW:
            self._pages.check(spans)  # the allocation relies on this
        out = allocate((spans.total * self._bits + 7) // 8)
        try:
            if by_row is not None and rows is not None:
                held = None if self._pages.blocks is None else self._pages.hold_rows(by_row, rows, self._bits // 8)
                by_row.take(rows, out)
                del held
            elif out.size:
                self._copy(spans, out)
        except CodecError as error:
            self._pages.fail(error)
        if self._is_list:
            return over_values(self._type, spans.total, out)
        return pa.Array.from_buffers(self._type, spans.total, [None, out], 0)

    def views(self, spans: Spans) -> list[pa.Array] | None:
        """Return the values of each span as views of a mapped file; None if spans are short or unaligned."""
        source, width = self._pages.source, self._bits // 8
        if source.mapped is None or self._bits % 8 or spans.total * width < _VIEW_BYTES * len(spans.counts):
            return None
        self._pages.check(spans)
        places = self._pages.positions[spans.batches] + spans.starts * width
        if (places % self._alignment).any():
            return None
        counts = spans.counts.tolist()
        pieces = [source.read(place, count * width) for place, count in zip(places.tolist(), counts, strict=True)]
        return [over_values(self._type, count, piece) for piece, count in zip(pieces, counts, strict=True)]

    @cached_property
    def _alignment(self) -> int:
        """Return the alignment that Arrow requires of the values."""
        kind = self._type
        while pa.types.is_fixed_size_list(kind):
            kind = kind.value_type
        width = bit_width(kind) // 8
        return 1 if pa.types.is_fixed_size_binary(kind) else min(width & -width, 8) or 1

    def _copy(self, spans: Spans, out: pa.Buffer) -> None:
        pages, bits = self._pages, self._bits
        starts = pages.positions[spans.batches]
        if bits % 8 == 0:
            width = bits // 8
            places, sizes = starts + spans.starts * width, spans.counts * width
            source, starts, _held = pages.fetch(places, sizes, spans)
            kernels.fixed(source, starts, spans.counts, width, out)
            if spans.is_range:
                release(pages.source, places, sizes)
            return
        first = spans.starts * bits
        end = first + spans.counts * bits
        places, sizes = starts + first // 8, -(-end // 8) - first // 8
        source, begins, _held = pages.fetch(places, sizes, spans)
        kernels.bits(source, begins * 8 + first % 8, spans.counts * bits, out)


def over_values(arrow_type: pa.DataType, count: int, values: pa.Buffer) -> pa.Array:
    """Build an array without nulls over fixed-width values; (nested) fixed-size lists use their flattened items."""
    if not pa.types.is_fixed_size_list(arrow_type):
        return pa.Array.from_buffers(arrow_type, count, [None, values])
    items = over_values(arrow_type.value_type, count * arrow_type.list_size, values)
    return pa.Array.from_buffers(arrow_type, count, [None], children=[items])


class BinaryNode(Node):
    """Strings and binaries. In a nullable field, a value without bytes is null.

    Parameters
    ----------
    pages
        Pages of their offsets, which are positions in the file.
    arrow_type
        Type of the values.
    nullable
        True if the field is nullable.
    """

    def __init__(self, pages: Pages, arrow_type: pa.DataType, nullable: bool) -> None:
        self._pages = pages
        self._type = arrow_type
        self._nullable = nullable
        self._wide = is_wide(arrow_type)
        self._is_text = is_text(arrow_type)
        self._offsets = _Offsets(pages, stored_wide=True, wide=self._wide)

    def read(self, spans: Spans) -> pa.Array:
        """See `Node.read`."""
        wide, count, pages = self._wide, spans.total, self._pages
        ends = self._offsets.read(spans)
        pages.check_bytes(ends.starts, ends.sizes, spans)
        values = allocate(ends.total)
        validity, nulls = None, 0
        try:
            source, starts, _held = pages.fetch(ends.starts, ends.sizes, spans)
            kernels.fixed(source, starts, ends.sizes, 1, values)
            if spans.is_range:
                release(pages.source, ends.starts, ends.sizes)
            if self._is_text:
                utf8.validate(values, ends.offsets, wide)
            if self._nullable:
                validity = allocate((count + 7) // 8)
                nulls = kernels.empties(ends.offsets, wide, count, validity)
        except CodecError as error:
            pages.fail(error)
        buffers = [validity if nulls else None, ends.offsets, values]
        return pa.Array.from_buffers(self._type, count, buffers, nulls)


class BlobNode(Node):
    """Descriptions of binaries: position of each value in the file, and its length; null where the value is null.

    Parameters
    ----------
    pages
        Pages of their offsets, which are positions in the file.
    arrow_type
        Type of a description, a struct of two uint64.
    nullable
        True if the field is nullable.
    """

    def __init__(self, pages: Pages, arrow_type: pa.DataType, nullable: bool) -> None:
        self._pages = pages
        self._type = arrow_type
        self._nullable = nullable
        self._offsets = _Offsets(pages, stored_wide=True, wide=True)

    def read(self, spans: Spans) -> pa.Array:
        """See `Node.read`."""
        count = spans.total
        ends = self._offsets.read(spans)
        self._pages.check_bytes(ends.starts, ends.sizes, spans)
        offsets = np.frombuffer(ends.offsets, np.int64)
        skipped = ends.starts - (np.cumsum(ends.sizes) - ends.sizes)  # file bytes before the values of each span
        places = offsets[:-1] + np.repeat(skipped, spans.counts)
        children = [pa.array(values.astype(np.uint64)) for values in (places, np.diff(offsets))]
        validity, nulls = None, 0
        if self._nullable:
            validity = allocate((count + 7) // 8)
            nulls = kernels.empties(ends.offsets, True, count, validity)
        buffers = [validity if nulls else None]
        return pa.Array.from_buffers(self._type, count, buffers, nulls, children=children)


class ListNode(Node):
    """Lists, which are never null.

    Parameters
    ----------
    pages
        Pages of their offsets, which count from the start of the page of items of the same batch.
    arrow_type
        Type of the lists.
    items
        The items.
    """

    def __init__(self, pages: Pages, arrow_type: pa.DataType, items: Node) -> None:
        self._type = arrow_type
        self._items = items
        wide = is_wide(arrow_type)
        self._where = pages.where
        self._offsets = _Offsets(pages, stored_wide=wide, wide=wide, extra=1)

    def read(self, spans: Spans) -> pa.Array:
        """See `Node.read`."""
        ends = self._offsets.read(spans)
        self._check_items(ends, spans)
        items = self._items.read(spans.items(ends.starts, ends.sizes, ends.total))
        return pa.Array.from_buffers(self._type, spans.total, [None, ends.offsets], 0, children=[items])

    def _check_items(self, ends: _Ends, spans: Spans) -> None:
        """Raise if lists of different rows share items, which could then be any times as many as the file has."""
        if ends.total <= _FEW_ITEMS:
            return
        order = np.lexsort((spans.starts, spans.batches))
        batches, rows, first = spans.batches[order], spans.starts[order], ends.starts[order]
        shared = (first[1:] < (first + ends.sizes[order])[:-1]) & (batches[1:] == batches[:-1]) & (rows[1:] > rows[:-1])
        if shared.any():
            batch = int(batches[1:][shared][0])
            raise CorruptFileError(f"{self._where}, batch {batch}: its lists overlap")


@dataclass(frozen=True)
class StructNode(Node):
    """Structs, which are never null.

    Attributes
    ----------
    arrow_type
        Type of the structs.
    children
        Fields of the structs.
    """

    arrow_type: pa.DataType
    children: tuple[Node, ...]

    def read(self, spans: Spans) -> pa.Array:
        """See `Node.read`."""
        arrays = [child.read(spans) for child in self.children]
        return pa.Array.from_buffers(self.arrow_type, spans.total, [None], 0, children=arrays)


@dataclass(frozen=True)
class DictionaryNode(Node):
    """Indices into the dictionary of the field.

    Attributes
    ----------
    indices
        The indices.
    values
        The dictionary.
    where
        File and field, for error messages.
    """

    indices: FixedNode
    values: pa.Array
    where: str

    def read(self, spans: Spans) -> pa.Array:
        """Read values, see `Node.read`; if the dictionary has no values, all rows are null."""
        indices = self.indices.read(spans)
        numbers = np.asarray(indices)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= max(len(self.values), 1)):
            wrong = numbers[(numbers < 0) | (numbers >= len(self.values))][0]
            raise CorruptFileError(f"{self.where}: index {wrong} into a dictionary of {len(self.values)} values")
        if len(self.values) == 0:
            indices = pa.nulls(len(indices), indices.type)
        return pa.DictionaryArray.from_arrays(indices, self.values, safe=False)  # checked above


class _Ends(NamedTuple):
    """Offsets of values from 0; per span, the first stored offset and the distance to the last; all distances."""

    offsets: pa.Buffer
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    total: int


class _Offsets:
    """Stored offsets of strings or lists; a page of lists has one more offset than lists."""

    def __init__(self, pages: Pages, *, stored_wide: bool, wide: bool, extra: int = 0) -> None:
        self._pages = pages
        self._stored_wide = stored_wide
        self._wide = wide
        self._extra = extra
        self._by_row = pages.by_row(64 if stored_wide else 32, extra)

    def read(self, spans: Spans) -> _Ends:
        """Return the joined offsets of some spans."""
        pages = self._pages
        starts, sizes = np.empty(spans.length, np.int64), np.empty(spans.length, np.int64)
        try:
            source, positions, _held = self._find(spans)
            offsets = allocate((spans.total + 1) * (8 if self._wide else 4))
            total = kernels.offsets(
                source, positions, spans.counts, self._stored_wide, self._wide, offsets, starts, sizes
            )
        except OffsetOverflowError as error:
            if self._stored_wide:  # unless the offsets are corrupt
                large = allocate((spans.total + 1) * 8)
                try:
                    kernels.offsets(source, positions, spans.counts, True, True, large, starts, sizes)
                except CodecError as lie:
                    pages.fail(lie)
                pages.check_bytes(starts, sizes, spans)
            pages.fail(error)
        except CodecError as error:
            pages.fail(error)
        return _Ends(offsets, starts, sizes, total)

    def _find(self, spans: Spans) -> tuple[pa.Buffer, NDArray[np.int64], Held | None]:
        """Return a buffer with the offsets of each span, and their start positions in it."""
        pages, width = self._pages, 8 if self._stored_wide else 4
        if spans.rows is not None and self._by_row is not None:
            positions, held = pages.hold_rows(self._by_row, spans.rows, 2 * width)
            return pages.source.mapped or pa.py_buffer(pages.blocks), positions, held
        pages.check(spans, self._extra)
        positions = pages.positions[spans.batches] + spans.starts * width
        return pages.fetch(positions, (spans.counts + 1) * width, spans)
