"""Full-zip pages: conversion of rows to byte ranges, and of byte ranges to levels and values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, filled_bitmap
from lance_dataset.file.kinds import is_binary_like, is_wide
from lance_dataset.file.stored_test import SEARCHED_BITS, StoredTest
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.layout import FullZipLayout, list_depth, max_definition, max_visible_definition
from lance_dataset.file.structural.read.levels import LeafValues
from lance_dataset.file.structural.read.page import LeafPage, Page, expand_rows
from lance_dataset.file.take_shape import take_shape
from lance_dataset.properties import cached_property
from lancecodec import fullzip, take_pages
from lancecodec.fullzip import ZipLayout
from lancecodec.intervals import IntervalTest
from lancecodec.take_pages import PageTaker

__all__ = ["FullZipPage"]

#: Items whose values are copied for a search at a time, so that they stay in the cache; a multiple of 8.
_SEARCHED_ITEMS = 1 << 13


class FullZipPage(LeafPage):
    """A page of consecutive items, each with its levels.

    Parameters
    ----------
    page
        A page with a full-zip layout.
    layout
        The layout of the page.
    value_type
        Arrow type of the leaf.
    items_per_row
        Values per row in pages without lists.
    """

    def __init__(self, page: Page, layout: FullZipLayout, value_type: pa.DataType, items_per_row: int) -> None:
        self.page = page
        self.layers = layout.layers
        self._layout = layout
        self._value_type = value_type
        self._items_per_row = items_per_row
        self._width = None if layout.bits is None else layout.bits // 8
        self._lists = list_depth(layout.layers) > 0
        self._indexed = self._lists or self._width is None
        page.require_buffers(2 if self._indexed else 1)
        if self._width is not None and layout.values.item_width != self._width:
            raise CorruptFileError(f"{page.where}: {layout.bits} bits per value do not fit {layout.values}")
        if not self._lists:
            self._check_items(page, layout, items_per_row)

    def _check_items(self, page: Page, layout: FullZipLayout, items_per_row: int) -> None:
        items = page.length * items_per_row
        if not layout.num_items == layout.num_visible_items == items:
            raise CorruptFileError(f"{page.where}: {layout.num_items} items in {page.length} rows without lists")
        size = self._zip.item_size if layout.rep_bits + layout.def_bits or self._width else self._width
        if size is not None and page.size_of(0) != items * size:
            raise CorruptFileError(f"{page.where}: {items} items of {size} bytes in {page.size_of(0)} bytes")

    @cached_property
    def _zip(self) -> ZipLayout:
        layout = self._layout
        return ZipLayout(
            bits_rep=layout.rep_bits,
            bits_def=layout.def_bits,
            max_repetition=list_depth(self.layers),
            max_definition=max_definition(self.layers),
            max_visible=max_visible_definition(self.layers),
            width=self._width,
            offset_bits=layout.length_bits,
            symbol_table=layout.values.item_symbols,
        )

    @cached_property
    def _index_width(self) -> int:
        return fullzip.index_width(self.page.size_of(1), self.page.length * self._entries_per_row)

    @property
    def _entries_per_row(self) -> int:
        """Entries of the repetition index per row: in pages without lists it has one per value."""
        return 1 if self._lists else self._items_per_row

    # -- rows ----------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> LeafValues:
        """See `LeafPage.read`."""
        if not self._indexed:
            return self._scan_items(start * self._items_per_row, stop * self._items_per_row)
        width = self._index_width
        start, stop = start * self._entries_per_row, stop * self._entries_per_row
        index = self.page.read_range(1, start * width, (stop + 1) * width)
        begin, end = fullzip.row_span(index, width, start, stop, self.page.size_of(0), start)
        data = self.page.read_range(0, begin, end)
        begins, ends = np.array([0]), np.array([end - begin])
        if not self._lists and self._width is None and start < stop:
            begins, ends = self._ranges_of_values(index, start, stop, begin)
        leaf = self._unzip(data, begins, ends, stop - start)
        self.page.discard_range(0, begin, end)
        declared = self._layout.num_items
        if leaf.num_items > declared or (stop - start == self.page.length and leaf.num_items != declared):
            raise CorruptFileError(f"{self.page.where}: {leaf.num_items} items in its rows, its layout has {declared}")
        return leaf

    def _ranges_of_values(
        self, index: pa.Buffer, start: int, stop: int, begin: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where consecutive values start and end behind a byte of the data.

        A processor looks at many of them at once, but it follows their lengths one by one, and waits for the memory.
        """
        begins, ends = np.empty(stop - start, np.int64), np.empty(stop - start, np.int64)
        numbers = np.arange(start, stop)
        fullzip.row_ranges(index, self._index_width, numbers, self.page.size_of(0), begins, ends, start)
        if (begins[1:] != ends[:-1]).any():
            raise CorruptFileError(f"{self.page.where}: its values overlap")
        begins -= begin
        ends -= begin
        return begins, ends

    def take(self, rows: NDArray[np.int64]) -> LeafValues:
        """See `LeafPage.take`."""
        if not self._indexed:
            return self._take_items(expand_rows(rows, self._items_per_row))
        rows = expand_rows(rows, self._entries_per_row)
        index = self.page.hold(1, rows * self._index_width, (rows + 2) * self._index_width)
        begins, ends = self._row_ranges(rows, viewed=index is not None)
        data = self.page.hold(0, begins, ends)
        if self.page.is_mapped or data is not None:
            return self._unzip(self.page.view(0), begins, ends, len(rows))
        data, begins, ends = self._fetch(begins, ends)
        return self._unzip(data, begins, ends, len(rows))

    def taker(self, required: bool, lists: bool | None = None) -> PageTaker | None:
        """See `LeafPage.taker`."""
        layout = self._layout
        if self._lists or self._items_per_row != 1 or not self.page.is_viewable or layout.rep_bits:
            return None
        if layout.def_bits and max_definition(self.layers) != 1:
            return None
        data, length = self.page.view(0), self.page.length
        if self._width is not None:
            width = _taken_width(layout, self._value_type)
            if width is None:
                return None
            return take_pages.zipped(data, length, width, bits_def=layout.def_bits, required=required)
        if not is_binary_like(self._value_type) or not layout.values.is_text:
            return None
        return take_pages.zipped(
            data,
            length,
            -1,
            bits_def=layout.def_bits,
            index=self.page.view(1),
            index_width=self._index_width,
            offset_bits=layout.length_bits,
            symbol_table=layout.values.item_symbols,
            required=required,
        )

    def _row_ranges(self, rows: NDArray[np.int64], *, viewed: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the starts and ends of rows in the data; of an index that is not at hand, only entries are read."""
        width, count = self._index_width, len(rows)
        if viewed or self.page.is_mapped:
            index, numbers = self.page.view(1), rows
        elif 2 * count >= self.page.size_of(1) // width:
            index, numbers = self.page.read(1), rows
        else:
            parts = self.page.read_parts(1, [(row * width, (row + 2) * width) for row in rows.tolist()])
            index, numbers = pa.py_buffer(b"".join(parts)), np.arange(0, 2 * count, 2)
        begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
        size = self.page.size_of(0)
        fullzip.row_ranges(index, width, numbers, size, begins, ends)
        if int((ends - begins).sum()) > size:  # rows that are repeated, or that were forged to overlap
            _, first = np.unique(rows, return_index=True)
            if (begins[first[1:]] < ends[first[:-1]]).any():
                raise CorruptFileError(f"{self.page.where}: its rows overlap")
        return begins, ends

    def _fetch(
        self, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[pa.Buffer, NDArray[np.int64], NDArray[np.int64]]:
        """Return the concatenated bytes of some ranges, and the position of each range in them."""
        parts = self.page.read_parts(0, list(zip(begins.tolist(), ends.tolist(), strict=True)))
        places = np.concatenate([[0], np.cumsum(ends - begins)])
        return pa.py_buffer(b"".join(parts)), places[:-1].copy(), places[1:].copy()

    # -- items of one size ---------------------------------------------------------------------------------------

    def _scan_items(self, first: int, last: int) -> LeafValues:
        width = self._width or 0
        count = last - first
        if not self._layout.def_bits:
            values = self.page.read_range(0, first * width, last * width)
            return LeafValues(self._fixed(values, count), count)
        size = self._zip.item_size or 0
        data = self.page.read_range(0, first * size, last * size)
        values, definition = allocate(count * width), allocate(count * 2)
        self._zip.scan_fixed(data, 0, count, values, definition)
        self.page.discard_range(0, first * size, last * size)
        return LeafValues(self._fixed(values, count), count, None, definition)

    def _take_items(self, items: NDArray[np.int64]) -> LeafValues:
        width, count = self._width or 0, len(items)
        values = allocate(count * width)
        definition = allocate(count * 2) if self._layout.def_bits else None
        size = self._zip.item_size or 0
        held = self.page.hold(0, items * size, (items + 1) * size)
        if self.page.is_mapped or held is not None:
            data = self.page.view(0)
        else:
            distinct, items = np.unique(items, return_inverse=True)
            data, _, _ = self._fetch(distinct * size, (distinct + 1) * size)
        if width or definition is not None:
            self._zip.take_fixed(data, items, values, definition)
        return LeafValues(self._fixed(values, count), count, None, definition)

    def _fixed(self, values: pa.Buffer, count: int) -> pa.Array:
        return self._layout.values.fixed_items(self._value_type, values, count, self.page.where)

    # -- search --------------------------------------------------------------------------------------------------

    def can_search(self, test: StoredTest) -> bool:
        """See `LeafPage.can_search`: one value for each row, mapped, of which the test needs what is stored."""
        layout = self._layout
        if not self.page.is_mapped or self._lists or self._items_per_row != 1 or layout.rep_bits or layout.def_bits > 8:
            return False
        if layout.def_bits and max_definition(self.layers) != 1:
            return False
        if test.validity is not None:
            return True
        bits = value_bits(self._value_type)
        return test.intervals is not None and bits in SEARCHED_BITS and layout.values.flat_bits == layout.bits == bits

    def search(self, test: StoredTest, start: int, stop: int, kept: pa.Buffer | None) -> pa.Buffer | None:
        """See `LeafPage.search`; null tests look at the levels alone."""
        if test.validity is not None and not self._layout.def_bits:
            return filled_bitmap(test.validity[0], stop - start, kept)
        found = np.zeros((stop - start + 7) // 8, np.uint8)
        if test.validity is not None:
            valid, null = test.validity
            found[:] = np.packbits(np.where(self._searched_levels(start, stop) == 0, valid, null), bitorder="little")
        elif test.intervals is not None:
            for first in range(start, stop, _SEARCHED_ITEMS if self._layout.def_bits else stop - start):
                last = min(first + _SEARCHED_ITEMS, stop) if self._layout.def_bits else stop
                part = found[(first - start) // 8 : (last - start + 7) // 8]
                self._search_values(test.intervals, first, last, part)
        if kept is not None:
            found &= np.frombuffer(kept, np.uint8, len(found))
        return pa.py_buffer(found)

    def _search_values(self, test: IntervalTest, first: int, last: int, found: NDArray[np.uint8]) -> None:
        """Mark the values of some rows that pass a test."""
        width, size = self._width or 0, self._zip.item_size or 0
        if not self._layout.def_bits:
            test.values(self.page.read_range(0, first * width, last * width), found.data)
            return
        data = self.page.read_range(0, first * size, last * size)
        values, definition = allocate((last - first) * width), allocate((last - first) * 2)
        self._zip.scan_fixed(data, 0, last - first, values, definition)
        test.values(values, found.data)
        nulls = np.packbits(np.frombuffer(definition, np.uint16) != 0, bitorder="little")
        found[:] = found | nulls if test.null else found & ~nulls

    def _searched_levels(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the definition levels of some rows, which are the first bytes of their items."""
        if not self._indexed:
            size = self._zip.item_size or 0
            levels = np.frombuffer(self.page.read_range(0, start * size, stop * size), np.uint8)[::size]
        else:
            begins, ends = self._row_ranges(np.arange(start, stop), viewed=False)
            if (begins >= ends).any():
                raise CorruptFileError(f"{self.page.where}: a row without a level")
            levels = np.frombuffer(self.page.view(0), np.uint8)[begins]
        if levels.max(initial=0) > 1:
            raise CorruptFileError(f"{self.page.where}: a level that its layers do not have")
        return levels

    # -- items of any size ---------------------------------------------------------------------------------------

    def _unzip(self, data: pa.Buffer, begins: NDArray[np.int64], ends: NDArray[np.int64], rows: int) -> LeafValues:
        zipped = self._zip
        items, visible, found, size = zipped.count(data, begins, ends)
        if found != rows:
            raise CorruptFileError(f"{self.page.where}: {found} rows where its index has {rows}")
        repetition = allocate(items * 2) if self._layout.rep_bits else None
        definition = allocate(items * 2) if self._layout.def_bits else None
        if self._width is not None:
            values = allocate(visible * self._width)
            again = zipped.unzip_fixed(data, begins, ends, values, repetition=repetition, definition=definition)
            self._check_unchanged(again, (items, visible, found))
            return LeafValues(self._fixed(values, visible), items, repetition, definition)
        wide = is_wide(self._value_type) if is_binary_like(self._value_type) else True
        offsets, values = allocate((visible + 1) * (8 if wide else 4)), allocate(size)
        counts = zipped.unzip_variable(
            data, begins, ends, wide, offsets, values, repetition=repetition, definition=definition
        )
        self._check_unchanged(counts, (items, visible, found, size))
        validity = self._validity(definition)
        encoding = self._layout.values
        array = encoding.variable_items(self._value_type, offsets, wide, values, visible, validity, self.page.where)
        return LeafValues(array, items, repetition, definition)

    def _check_unchanged(self, counts: tuple[int, ...], expected: tuple[int, ...]) -> None:
        """Refuse items that differ from those counted before: outputs would remain that nobody filled."""
        if counts != expected:
            raise CorruptFileError(f"{self.page.where}: its items changed while they were read")

    def _validity(self, definition: pa.Buffer | None) -> pa.Buffer | None:
        """Return a bitmap of the valid ones among visible items, None if all are valid."""
        if definition is None:
            return None
        levels = np.frombuffer(definition, np.uint16)
        visible = levels[levels <= max_visible_definition(self.layers)]
        return pa.py_buffer(np.packbits(visible == 0, bitorder="little"))


def _taken_width(layout: FullZipLayout, value_type: pa.DataType) -> int | None:
    """Return the width (see `TakeShape`) of fixed-width values, None if only `LeafPage.take` can read them."""
    shape, bits = take_shape(value_type), layout.bits
    if shape is None or shape.width < 0:
        return None
    if shape.width == 0 and layout.values.flat_bits == 8:
        return 0
    items = layout.values.flattened(value_type, "")
    return shape.width if items is not None and bits and items.flat_bits == 8 * shape.width == bits else None
