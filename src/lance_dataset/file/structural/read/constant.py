"""Constant pages: one value, or null, in every visible item."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, bit_width, filled_bitmap
from lance_dataset.file.cache import Decoded
from lance_dataset.file.kinds import is_binary_like, is_empty_struct, is_wide
from lance_dataset.file.stored_test import StoredTest
from lance_dataset.file.structural.arrays import dictionary_array, fixed_array, value_bits
from lance_dataset.file.structural.layout import (
    ConstantLayout,
    Layer,
    list_depth,
    max_definition,
    max_visible_definition,
)
from lance_dataset.file.structural.read.levels import LeafValues, decode_levels
from lance_dataset.file.structural.read.page import LeafPage, Page, expand_ranges, expand_rows
from lance_dataset.file.take_shape import take_shape
from lance_dataset.limits import check_memory
from lance_dataset.properties import cached_property
from lancecodec import OffsetOverflowError, constant, take_pages
from lancecodec.take_pages import PageTaker

__all__ = ["ConstantPage"]

#: Repetition and definition levels, and the number of items.
_Levels: TypeAlias = "tuple[pa.Buffer | None, pa.Buffer | None, int]"
#: Byte limits. Constant pages do not grow with their number of values; writers cut pages far below these limits.
_MAX_BYTES = 1 << 30
_MAX_PAGE_BYTES = 1 << 34
_MAX_NULL_BYTES = 1 << 34
#: Maximum bytes of one array of strings; longer ranges are read in pieces.
_MAX_PIECE_BYTES = (1 << 31) - 1
_LENGTH = struct.Struct("<I")
#: Wider values, which take no bytes in the file, are not worth a second code path.
_MAX_TAKEN_WIDTH = 1 << 16


class ConstantPage(LeafPage):
    """A page that stores at most one value in addition to its levels.

    Parameters
    ----------
    page
        A page with a constant layout.
    layout
        The layout of the page.
    value_type
        Arrow type of the leaf.
    items_per_row
        Values per row in pages without lists.
    """

    def __init__(self, page: Page, layout: ConstantLayout, value_type: pa.DataType, items_per_row: int) -> None:
        self.page = page
        self.layers = layout.layers
        self._layout = layout
        self._value_type = value_type
        self._items_per_row = items_per_row
        self._depth = list_depth(layout.layers)
        count = len(page.buffers)
        self._decoded = Decoded(_levels_size, sum(size for _, size in page.buffers))
        self._inline = layout.inline_value is not None
        if count not in ((0, 2) if self._inline else (0, 1, 2, 3)):
            raise CorruptFileError(f"{page.where}: a constant page with {count} buffers")
        if count < 2 and self._depth:
            raise CorruptFileError(f"{page.where}: a constant page of lists without levels")
        if count == 0 and not self._inline and layout.layers != (Layer.NULLABLE_ITEM,):
            raise CorruptFileError(f"{page.where}: a page of nulls with layers {list(layout.layers)} but no levels")

    # -- levels --------------------------------------------------------------------------------------------------

    @property
    def _levels(self) -> _Levels:
        """Repetition and definition levels, and the number of items."""
        return self._decoded.get(self._open_levels)

    def _open_levels(self) -> _Levels:
        layout, page = self._layout, self.page
        items = page.length * self._items_per_row
        if len(page.buffers) < 2:
            return None, None, items
        first = len(page.buffers) - 2
        streams: list[pa.Buffer | None] = []
        counts: list[int] = []
        needed = 0
        for buffer, encoding, declared, present in (
            (first, layout.rep, layout.num_rep_values, self._depth > 0),
            (first + 1, layout.definition, layout.num_def_values, max_definition(self.layers) > 0),
        ):
            size = page.size_of(buffer)
            if not present and size:
                raise CorruptFileError(f"{page.where}: levels that its layers do not have")
            if size == 0:
                streams.append(None)
                continue
            count = declared if encoding is not None else size // 2
            if count > _MAX_BYTES:
                raise CorruptFileError(f"{page.where}: claims {count} levels")
            if needed:  # otherwise the block is checked alone
                check_memory(needed + 2 * count, sum(size for _, size in page.buffers), f"{page.where}: its levels")
            needed += 2 * count
            streams.append(decode_levels(page.read(buffer), encoding, count, page.where))
            counts.append(count)
        if len(set(counts)) > 1 or (self._depth and streams[0] is None):
            raise CorruptFileError(f"{page.where}: level streams of {counts} entries")
        if counts and not self._depth and counts[0] != items:
            raise CorruptFileError(f"{page.where}: {counts[0]} levels for {items} values")
        return streams[0], streams[1], counts[0] if counts else items

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """First item of each row, followed by the number of items."""
        repetition, _, items = self._levels
        if repetition is None:
            raise CorruptFileError(f"{self.page.where}: a constant page of lists without levels")
        stored = sum(size for _, size in self.page.buffers)
        check_memory(9 * items + 8 * self.page.length, stored, f"{self.page.where}: the starts of its lists")
        starts = np.flatnonzero(np.frombuffer(repetition, np.uint16) == self._depth)
        if len(starts) != self.page.length or (len(starts) and starts[0] != 0):
            raise CorruptFileError(f"{self.page.where}: its levels start {len(starts)} rows")
        return np.append(starts, items)

    # -- rows ----------------------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> LeafValues:
        """See `LeafPage.read`."""
        return self._read(start, stop, self._values)

    def read_encoded(self, start: int, stop: int) -> LeafValues:
        """See `LeafPage.read_encoded`: the value is the only entry of the dictionary."""
        return self._read(start, stop, self._values_encoded)

    def _read(self, start: int, stop: int, values: Callable[[int], pa.Array]) -> LeafValues:
        repetition, definition, _ = self._levels
        if repetition is None:
            low, high = start * self._items_per_row, stop * self._items_per_row
        else:
            low, high = int(self._rows[start]), int(self._rows[stop])
        return self._leaf(
            high - low,
            None if repetition is None else repetition.slice(low * 2, (high - low) * 2),
            None if definition is None else definition.slice(low * 2, (high - low) * 2),
            values,
        )

    def can_search(self, test: StoredTest) -> bool:
        """See `LeafPage.can_search`."""
        return not (self._depth or self._items_per_row != 1 or _has_no_values(self._value_type))

    def search(self, test: StoredTest, start: int, stop: int, kept: pa.Buffer | None) -> pa.Buffer | None:
        """See `LeafPage.search`: the test is computed for the value and for null."""
        _, definition, _ = self._levels
        results = test.validity or self._results(test)
        if results is None:
            return None
        if definition is None:
            null = len(self.page.buffers) == 0 and not self._inline
            return filled_bitmap(results[null], stop - start, kept)
        levels = np.frombuffer(definition, np.uint16)[start:stop]
        if len(levels) and levels.max() > max_definition(self.layers):
            raise CorruptFileError(f"{self.page.where}: a level that its layers do not have")
        bits = np.packbits(np.where(levels == 0, *results), bitorder="little")
        return pa.py_buffer(bits if kept is None else bits & np.frombuffer(kept, np.uint8, len(bits)))

    def _results(self, test: StoredTest) -> tuple[bool, bool] | None:
        """Return the results of a test for the value and for null, None if it fails for one of them."""
        value = self._values(1)
        if pa.types.is_dictionary(value.type):
            value = value.dictionary_decode()
        results = test.of_entries(value)
        return None if results is None else (bool(results[0][0]), results[1])

    def take(self, rows: NDArray[np.int64]) -> LeafValues:
        """See `LeafPage.take`."""
        repetition, definition, _ = self._levels
        if repetition is None and definition is None:
            return self._leaf(len(rows) * self._items_per_row, None, None, self._values)
        if repetition is None:
            items = expand_rows(rows, self._items_per_row)
        else:
            begins = self._rows[rows]
            items = expand_ranges(begins, self._rows[rows + 1] - begins)
        return self._leaf(len(items), _pick(repetition, items), _pick(definition, items), self._values)

    def taker(self, required: bool, lists: bool | None = None) -> PageTaker | None:
        """See `LeafPage.taker`."""
        shape = take_shape(self._value_type)
        if shape is None or shape.dimensions or self._depth or self._items_per_row != 1:
            return None
        repetition, definition, _ = self._levels
        if shape.width > _MAX_TAKEN_WIDTH or repetition is not None:
            return None
        if definition is None and len(self.page.buffers) == 0 and not self._inline:
            return take_pages.nulls(self.page.length, shape.width, required=required)
        scalar = self._scalar
        if isinstance(scalar, tuple):
            size, value = scalar
        else:
            size = max(shape.width, 0)
            value = bytes(0 if shape.width < 0 else max(size, 1)) if scalar is None else scalar
        if self.page.length * (size + 8) > _MAX_PAGE_BYTES:
            return None
        if definition is not None and not self._decoded.stays:
            return None
        return take_pages.constant(self.page.length, shape.width, value, definition=definition, required=required)

    def _leaf(
        self,
        items: int,
        repetition: pa.Buffer | None,
        definition: pa.Buffer | None,
        values: Callable[[int], pa.Array],
    ) -> LeafValues:
        if definition is None and len(self.page.buffers) == 0 and not self._inline:
            return self._nulls(items)
        visible = items
        if definition is not None and self._depth:
            levels = np.frombuffer(definition, np.uint16)
            visible = int(np.count_nonzero(levels <= max_visible_definition(self.layers)))
        return LeafValues(values(visible), items, repetition, definition)

    def _nulls(self, count: int) -> LeafValues:
        """Return rows that are all null, or, with the same page, structs without children that are all valid."""
        values = _placeholders(self._value_type, count, self.page.where)
        if pa.types.is_null(self._value_type) or is_empty_struct(self._value_type):
            return LeafValues(values, count)
        return LeafValues(values, count, None, pa.py_buffer(np.ones(count, np.uint16)))

    # -- values --------------------------------------------------------------------------------------------------

    def _values(self, count: int) -> pa.Array:
        value_type, scalar = self._value_type, self._scalar
        if scalar is None:
            return _placeholders(value_type, count, self.page.where)
        if isinstance(scalar, tuple):
            offsets, data = scalar
            return self._repeat_binary(offsets, data, count)
        bits = value_bits(value_type)
        self._check_size(count, bits // 8)
        out = allocate((count * bits + 7) // 8)
        if bits == 1:
            constant.fill_bits(scalar, 1, count, out)
        elif bits:
            constant.fill(scalar, count, out)
        return fixed_array(value_type, count, out)

    def _values_encoded(self, count: int) -> pa.Array:
        """Return the values as a dictionary array with one entry."""
        value_type = self._value_type
        if self._scalar is None or pa.types.is_nested(value_type) or pa.types.is_dictionary(value_type):
            return self._values(count)
        codes = pa.py_buffer(np.zeros(count, np.uint8))
        return dictionary_array(pa.dictionary(pa.uint8(), value_type), codes, count, self._values(1))

    def _repeat_binary(self, size: int, data: bytes, count: int) -> pa.Array:
        self._check_size(count, size + 8)
        kind = np.int64 if is_wide(self._value_type) else np.int32
        offsets = pa.py_buffer((np.arange(count + 1, dtype=np.int64) * size).astype(kind))
        out = allocate(count * size)
        if size:
            constant.fill(data, count, out)
        return pa.Array.from_buffers(self._value_type, count, [None, offsets, out], 0)

    def _check_size(self, count: int, width: int) -> None:
        if self.page.length * self._items_per_row * width > _MAX_PAGE_BYTES and count > 1:
            raise CorruptFileError(
                f"{self.page.where}: repeats a value of {width} bytes {self.page.length} times, "
                "more than a page can hold"
            )
        if count * width > _MAX_PIECE_BYTES:
            raise OffsetOverflowError(f"{count} values of {width} bytes each")

    @cached_property
    def _scalar(self) -> bytes | tuple[int, bytes] | None:
        """The value: its bytes, or (length, bytes) for strings; None for null."""
        if self._inline:
            return self._check_scalar(self._layout.inline_value or b"")
        if len(self.page.buffers) in (0, 2):
            return None
        buffers = _scalar_buffers(self.page.read(0).to_pybytes(), self.page.where)
        if not is_binary_like(self._value_type):
            if len(buffers) != 1:
                raise CorruptFileError(f"{self.page.where}: a scalar of {len(buffers)} buffers")
            return self._check_scalar(buffers[0])
        width = 8 if is_wide(self._value_type) else 4
        if len(buffers) != 2 or len(buffers[0]) not in (8, 16):
            raise CorruptFileError(f"{self.page.where}: a scalar of {len(buffers)} buffers is not a string")
        width = len(buffers[0]) // 2
        first, last = (int.from_bytes(buffers[0][i * width : (i + 1) * width], "little") for i in range(2))
        if not 0 <= first <= last <= len(buffers[1]):
            raise CorruptFileError(f"{self.page.where}: the scalar has offsets {first} and {last}")
        return self._check_text(buffers[1][first:last])

    def _check_text(self, data: bytes) -> tuple[int, bytes]:
        if pa.types.is_string(self._value_type) or pa.types.is_large_string(self._value_type):
            try:
                data.decode()
            except UnicodeDecodeError as error:
                raise CorruptFileError(f"{self.page.where}: the scalar is not UTF-8: {error}") from error
        return len(data), data

    def _check_scalar(self, value: bytes) -> bytes:
        bits = value_bits(self._value_type)
        if pa.types.is_boolean(self._value_type) and len(value) == 1 and value[0] in (0, 1):
            return value
        if pa.types.is_decimal(self._value_type) and {len(value), bits // 8} == {16, 32}:
            return int.from_bytes(value, "little", signed=True).to_bytes(bits // 8, "little", signed=True)
        empty = pa.types.is_fixed_size_binary(self._value_type) and bits == 0
        if (bits == 0 and not empty) or bits % 8 or len(value) != bits // 8:
            raise CorruptFileError(f"{self.page.where}: a scalar of {len(value)} bytes for type {self._value_type}")
        return value


def _has_no_values(value_type: pa.DataType) -> bool:
    return pa.types.is_nested(value_type) or pa.types.is_null(value_type)


def _levels_size(levels: _Levels) -> int:
    return sum(stream.size for stream in levels[:2] if stream is not None)


def _pick(levels: pa.Buffer | None, items: NDArray[np.int64]) -> pa.Buffer | None:
    return None if levels is None else pa.py_buffer(np.frombuffer(levels, np.uint16)[items])


def _scalar_buffers(data: bytes, where: str) -> list[bytes]:
    """Return the buffers of a one-element array, stored as a count, their lengths and their bytes."""
    try:
        (count,) = _LENGTH.unpack_from(data)
        if count > 3:
            raise CorruptFileError(f"{where}: a scalar of {count} buffers")
        lengths = [_LENGTH.unpack_from(data, 4 * (i + 1))[0] for i in range(count)]
    except struct.error as error:
        raise CorruptFileError(f"{where}: the scalar buffer of {len(data)} bytes is too short") from error
    at, buffers = 4 * (count + 1), []
    for length in lengths:
        buffers.append(data[at : at + length])
        at += length
    if at != len(data):
        raise CorruptFileError(f"{where}: the scalar buffer has {len(data)} bytes, its parts {at}")
    return buffers


def _placeholders(value_type: pa.DataType, count: int, where: str) -> pa.Array:
    """Return values to be placed under nulls: zeros, or empty values of variable width."""
    if pa.types.is_null(value_type):
        return pa.nulls(count)
    size = 8 if is_binary_like(value_type) else _placeholder_bytes(value_type)
    if count * size > _MAX_NULL_BYTES:
        raise CorruptFileError(f"{where}: claims {count} nulls of type {value_type}, more than a page can hold")
    if count * size > _MAX_BYTES and count > 1:
        raise OffsetOverflowError(f"{count} nulls of type {value_type}")  # makes the caller read in pieces
    nulls = pa.nulls(count, value_type)
    return _unmasked(nulls)


def _placeholder_bytes(value_type: pa.DataType) -> float:
    if pa.types.is_fixed_size_list(value_type):
        return value_type.list_size * (1 / 8 + _placeholder_bytes(value_type.value_type))
    if pa.types.is_struct(value_type):
        return sum(_placeholder_bytes(child.type) for child in value_type)
    if pa.types.is_dictionary(value_type):
        return float(value_type.index_type.bit_width // 8)
    return 8 if is_binary_like(value_type) else bit_width(value_type) / 8


def _unmasked(nulls: pa.Array) -> pa.Array:
    """Return an array of nulls without its own validity bitmap; its children may stay null."""
    kind, length, buffers = nulls.type, len(nulls), nulls.buffers()
    if pa.types.is_dictionary(kind):
        return nulls  # the dictionary has no entry for an index to point to
    if pa.types.is_struct(kind):
        children = [nulls.field(i) for i in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, length, [None], 0, 0, children)
    if pa.types.is_fixed_size_list(kind):
        return pa.Array.from_buffers(kind, length, [None], 0, 0, [nulls.values])
    return pa.Array.from_buffers(kind, length, [None, *buffers[1:]], 0)
