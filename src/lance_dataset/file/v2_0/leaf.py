"""Leaf columns of 2.0 files: one column of pages with values of its own."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate, bit_width, concat_arrays
from lance_dataset.file.column import ColumnReader, OversizeError
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.v2_0.arrays import check_nulls_fit, has_nothing_but_nulls, read_node, read_page
from lance_dataset.file.v2_0.dictionaries import encoded_strings
from lance_dataset.file.v2_0.nodes import Binary, Dictionary, Fixed, FixedSizeList, Flat, Node, Nullable, plain_fixed
from lance_dataset.file.v2_0.page import Page
from lance_dataset.file.v2_0.take import ends_table, nested_array, take_page
from lance_dataset.properties import cached_property
from lancecodec import CodecError, OffsetOverflowError, utf8
from lancecodec.blocks import FileBlocks, Held
from lancecodec.pages import EndsPages, FixedPages

if TYPE_CHECKING:
    from lancecodec.pages import EndsTable

__all__ = ["LeafColumn", "page_ranges"]


def page_ranges(pages: list[Page], starts: list[int], start: int, stop: int) -> list[tuple[Page, int, int]]:
    """Return (page, first, end) inside each page for a range of the column; `starts` are the starts of the pages."""
    ranges = []
    number = max(bisect_right(starts, start) - 1, 0)
    while start < stop:
        page = pages[number]
        end = min(stop, page.start + page.length)
        ranges.append((page, start - page.start, end - page.start))
        start = end
        number += 1
    return ranges


class LeafColumn(ColumnReader):
    """A column of pages without child columns.

    Parameters
    ----------
    pages
        Non-empty pages in row order.
    arrow_type
        Storage type of the values.
    nullable
        True if nulls are allowed; a null in another column means corruption.
    where
        File and column, for error messages.
    """

    def __init__(self, pages: list[Page], arrow_type: pa.DataType, nullable: bool, where: str) -> None:
        self.arrow_type = arrow_type
        self.num_rows = pages[-1].start + pages[-1].length if pages else 0
        self._pages = pages
        self._starts = [page.start for page in pages]
        self._nullable = nullable
        self._where = where

    def read(self, start: int, stop: int) -> pa.Array:
        """See `ColumnReader.read`."""
        pieces = self._read_pieces(start, stop)
        if len(pieces) > 1:
            self._check_null_pages(start, stop)
        return self._join(pieces)

    def _join(self, pieces: list[pa.Array]) -> pa.Array:
        try:
            return concat_arrays(pieces, self.arrow_type)
        except pa.ArrowInvalid as error:
            if not pa.types.is_dictionary(self.arrow_type):
                raise
            raise UnsupportedError(
                f"{self._where}: the rows have more distinct values than the index type "
                f"{self.arrow_type.index_type} can represent; read fewer rows at a time"
            ) from error

    def _check_null_pages(self, start: int, stop: int) -> None:
        ranges = page_ranges(self._pages, self._starts, start, stop)
        nulls = sum(end - first for page, first, end in ranges if has_nothing_but_nulls(page.node))
        check_nulls_fit(self.arrow_type, nulls, self._where)

    def read_chunks(self, start: int, stop: int) -> list[pa.Array]:
        """Return one array per page, without a copy if the page has the layout of Arrow."""
        return self._read_pieces(start, stop)

    def read_encoded(self, start: int, stop: int) -> list[pa.Array]:
        """See `ColumnReader.read_encoded`."""
        return self._read_pieces(start, stop, encoded=is_binary_like(self.arrow_type))

    def _read_pieces(self, start: int, stop: int, *, encoded: bool = False) -> list[pa.Array]:
        pieces: list[pa.Array] = []
        for page, first, end in page_ranges(self._pages, self._starts, start, stop):
            pieces.extend(self._read_page(page, first, end, encoded=encoded))
        return pieces

    def _read_page(self, page: Page, first: int, end: int, *, encoded: bool = False) -> list[pa.Array]:
        try:
            if encoded and isinstance(page.node, Dictionary):
                array = encoded_strings(page, page.node, self.arrow_type, first, end, read_node)
            else:
                array = read_page(page, self.arrow_type, first, end)
        except OffsetOverflowError as error:
            if end - first == 1:
                raise CorruptFileError(f"{page.where}: one value has more than 2**31 - 1 bytes") from error
            middle = (first + end) // 2
            halves = (first, middle), (middle, end)
            return [piece for half in halves for piece in self._read_page(page, *half, encoded=encoded)]
        except CodecError as error:
            raise CorruptFileError(f"{page.where}: {error}") from error
        self._check_nulls(array)
        return [array]

    def _check_nulls(self, array: pa.Array) -> None:
        if not self._nullable and array.null_count:
            raise CorruptFileError(f"{self._where}: holds {array.null_count} nulls but is declared not nullable")

    # -- random access -------------------------------------------------------------------------------------------

    def take(self, rows: NDArray[np.int64]) -> pa.Array:
        """Take values, see `ColumnReader.take`; compiled for a mapped file, else range by range."""
        try:
            array = self._take_pages(rows)
            if array is None:
                return self._take_ranges(rows)
        except OffsetOverflowError as error:
            raise OversizeError(f"{self._where}: {error}") from error
        except CodecError as error:
            raise CorruptFileError(f"{self._where}: {error}") from error
        self._check_nulls(array)
        return array

    def _take_pages(self, rows: NDArray[np.int64]) -> pa.Array | None:
        """Take values from compiled tables, None if there are none for these pages."""
        try:
            if self._fixed is not None:
                return self._take_fixed(self._fixed, rows)
            return None if self._ends is None else self._take_binary(self._ends, rows)
        except OffsetOverflowError:
            raise
        except CodecError:
            if self._blocks is None:
                raise
            return None  # bytes that were not loaded may have been looked at

    def _take_fixed(self, pages: FixedPages, rows: NDArray[np.int64]) -> pa.Array:
        count = len(rows)
        held = self._hold(pages, rows)
        values = allocate((count * self._fixed_bits + 7) // 8)
        validity = allocate((count + 7) // 8) if pages.has_nulls else None
        nulls = pages.take(rows, values, validity if validity is not None else None)
        del held
        if nulls == 0:
            validity = None
        if not pa.types.is_fixed_size_list(self.arrow_type):
            return pa.Array.from_buffers(self.arrow_type, count, [validity, values], null_count=nulls)
        return nested_array(self.arrow_type, count, validity, values)

    def _take_binary(self, pages: EndsPages, rows: NDArray[np.int64]) -> pa.Array:
        count, wide = len(rows), is_wide(self.arrow_type)
        held = self._hold(pages, rows)
        offsets, validity = allocate((count + 1) * (8 if wide else 4)), allocate((count + 7) // 8)
        total, nulls = pages.take_offsets(rows, wide, offsets, validity)
        data = allocate(total)
        pages.take_bytes(rows, wide, offsets, data)
        del held
        if not pa.types.is_binary(self.arrow_type) and not pa.types.is_large_binary(self.arrow_type):
            utf8.validate(data, offsets, wide)
        buffers = [validity if nulls else None, offsets, data]
        return pa.Array.from_buffers(self.arrow_type, count, buffers, null_count=nulls)

    def _hold(self, pages: FixedPages | EndsPages, rows: NDArray[np.int64]) -> Held | None:
        """Load what some rows need, as long as the result lives; None if the file is mapped."""
        blocks = self._blocks
        return None if blocks is None else pages.hold(rows, blocks)

    @property
    def _blocks(self) -> FileBlocks | None:
        return self._pages[0].source.blocks() if self._pages else None

    def _take_ranges(self, rows: NDArray[np.int64]) -> pa.Array:
        """Take values page by page, for other encodings and files that are not mapped."""
        distinct, back = np.unique(rows, return_inverse=True)
        pieces = []
        cuts = np.searchsorted(distinct, self._page_starts)
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            page = self._pages[number]
            inside = distinct[cuts[number] : cuts[number + 1]] - page.start
            pieces.append(take_page(page, self.arrow_type, inside))
            self._check_nulls(pieces[-1])
        gathered = self._join(pieces)
        return gathered if len(rows) == 0 else gathered.take(pa.array(back.reshape(-1)))

    # -- compiled page tables, built once per open file ------------------------------------------------------------

    @property
    def _viewable(self) -> bool:
        return all(page.source.mapped is not None or page.source.blocks() is not None for page in self._pages)

    @cached_property
    def _page_starts(self) -> list[int]:
        return [*self._starts, self.num_rows]

    @cached_property
    def _fixed_bits(self) -> int:
        """Width of a value in bits, with fixed-size lists flattened; 0 if it has none."""
        return _flattened_bits(self.arrow_type)

    @cached_property
    def _fixed(self) -> FixedPages | None:
        if self._fixed_bits == 0 or not self._viewable:
            return None
        values: list[pa.Buffer | None] = []
        validity: list[pa.Buffer | None] = []
        for page in self._pages:
            shape = _fixed_shape(page.node, self.arrow_type)
            if shape is None:
                return None
            flat, bits, count = shape
            values.append(None if flat is None else page.view_flat(flat, page.length * count))
            validity.append(None if bits is None else page.view_flat(bits, page.length))
        if all(buffer is None for buffer in values):
            return None  # all values are null: only the schema gives their width
        return FixedPages(self._page_starts, self._fixed_bits, values, validity)

    @cached_property
    def _ends(self) -> EndsPages | None:
        if not is_binary_like(self.arrow_type) or not self._viewable:
            return None
        tables: list[EndsTable | None] = []
        for page in self._pages:
            if isinstance(page.node, Nullable) and page.node.values is None:
                tables.append(None)
                continue
            table = _binary_table(page)
            if table is None:
                return None
            tables.append(table)
        return EndsPages(self._page_starts, tables)


def _flattened_bits(arrow_type: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(arrow_type):
        bits = _flattened_bits(arrow_type.value_type)
        return 0 if bits % 8 else bits * arrow_type.list_size
    if pa.types.is_dictionary(arrow_type) or pa.types.is_null(arrow_type):
        return 0
    try:
        return bit_width(arrow_type)
    except ValueError:
        return 0


def _fixed_shape(node: Node, arrow_type: pa.DataType) -> tuple[Flat | None, Flat | None, int] | None:
    """Return (values, validity, values per row) of a page that stores plain fixed-width rows, else None."""
    validity: Fixed | None = None
    values: Node = node
    if isinstance(node, Nullable):
        if node.values is None:
            return None, None, 1
        validity, values = node.validity, node.values
    count = 1
    while isinstance(values, FixedSizeList):
        if not pa.types.is_fixed_size_list(arrow_type) or values.dimension != arrow_type.list_size:
            return None
        count *= values.dimension
        arrow_type = arrow_type.value_type
        values = plain_fixed(values.items) or values.items
        if isinstance(values, Nullable) and values.validity is None and values.values is not None:
            values = values.values
    if not isinstance(values, Flat) or values.scheme or not isinstance(validity, (Flat, type(None))):
        return None
    return (values, validity, count) if values.bits == _flattened_bits(arrow_type) else None


def _binary_table(page: Page) -> EndsTable | None:
    """Return the page as a table for `EndsPages`, or None if it is packed, compressed or wrapped."""
    node = page.node
    if isinstance(node, Binary):
        return ends_table(page, node, page.length) if _is_in_place(node) else None
    if not isinstance(node, Dictionary):
        return None
    codes = plain_fixed(node.indices)
    items = node.items
    if not isinstance(codes, Flat) or codes.bits != 8 or codes.scheme or not isinstance(items, Binary):
        return None
    if not _is_in_place(items):
        return None
    return ends_table(page, items, node.size, page.view_flat(codes, page.length))


def _is_in_place(node: Binary) -> bool:
    """Return True if values are looked up in place."""
    return all(part is None or (isinstance(part, Flat) and not part.scheme) for part in (node.ends, node.data))
