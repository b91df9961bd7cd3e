"""Mini-block pages: conversion of rows to chunks, and of chunks to levels and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.buffers import allocate, filled_bitmap
from lance_dataset.file.cache import Decoded
from lance_dataset.file.stored_test import SEARCHED_BITS, IndexTest, StoredTest
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.encodings.base import ChunkValues, Encoding, TakenLevels
from lance_dataset.file.structural.layout import MiniBlockLayout, list_depth, max_definition, max_visible_definition
from lance_dataset.file.structural.read.decompression import ALL_VALUES, WantedValues, decompress_chunks
from lance_dataset.file.structural.read.dictionary import DictionaryValues, indices_taker
from lance_dataset.file.structural.read.levels import LeafValues, level_codec, list_levels
from lance_dataset.file.structural.read.page import LeafPage, Page, expand_ranges, expand_rows
from lance_dataset.file.take_shape import take_shape
from lance_dataset.late_dataclass import dataclass
from lance_dataset.properties import cached_property
from lancecodec import CodecError, intervals, miniblock_values, take_pages
from lancecodec import levels as level_codecs
from lancecodec.blocks import FileBlocks, Held
from lancecodec.intervals import ChunkRanges
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import Levels, RepetitionIndex
from lancecodec.take_pages import PageTaker

__all__ = ["MiniBlockPage", "OpenedChunks"]

#: Size in bits of values that are searched only if they are flat; no index has it.
_FLAT_ONLY = 128


@dataclass(frozen=True)
class OpenedChunks:
    """Loaded chunks with the decoders of their levels and values."""

    values: ChunkValues
    levels: Levels


class MiniBlockPage(LeafPage):
    """A page of chunks of a few KiB each.

    Parameters
    ----------
    page
        A page with a mini-block layout.
    layout
        The layout of the page.
    value_type
        Arrow type of the leaf.
    items_per_row
        Values per row in pages without lists: the product of the dimensions of fixed-size lists above the leaf.
    """

    def __init__(self, page: Page, layout: MiniBlockLayout, value_type: pa.DataType, items_per_row: int) -> None:
        self.page = page
        self.layers = layout.layers
        self._layout = layout
        self._value_type = value_type
        self._items_per_row = items_per_row
        self._encoding = layout.values.inner
        self._wrapped = self._encoding is not layout.values
        self._least_bits = self._encoding.least_bits
        self._depth = list_depth(layout.layers)
        self._max_visible = max_visible_definition(layout.layers)
        page.require_buffers(2 + (layout.dictionary is not None) + layout.indexed)
        expected = self._encoding.num_buffers
        if layout.num_buffers != expected:
            raise CorruptFileError(f"{page.where}: {layout.num_buffers} value buffers per chunk instead of {expected}")
        self._entries: Decoded[pa.Array] | None = None
        if layout.dictionary is not None:
            self._entries = Decoded(attrgetter("nbytes"), page.size_of(2))
        if not self._depth and layout.num_items != page.length * items_per_row:
            raise CorruptFileError(
                f"{page.where}: {layout.num_items} values in {page.length} rows of {items_per_row} values"
            )

    # -- parts that are read once per open file -----------------------------------------------------------------

    @cached_property
    def _table(self) -> ChunkTable:
        layout, size = self._layout, self.page.size_of(1)
        # Compressed buffers can be checked only after decompression.
        least = sum(self._least_bits[int(self._wrapped) :])
        if layout.num_items * least > 8 * size:
            raise CorruptFileError(f"{layout.num_items} values of at least {least:g} bits in chunks of {size} bytes")
        return ChunkTable(self.page.read(0), layout.num_items, size, layout.large)

    @cached_property
    def _index(self) -> RepetitionIndex:
        data = self.page.read(len(self.page.buffers) - 1)
        return RepetitionIndex(data, self._table.num_chunks, self.page.length)

    @property
    def _dictionary(self) -> pa.Array | None:
        """Entries of the dictionary."""
        encoding = self._layout.dictionary
        if encoding is None or self._entries is None:
            return None
        return self._entries.get(lambda: self._open_dictionary(encoding))

    def _open_dictionary(self, encoding: Encoding) -> pa.Array:
        data = self.page.read(2)
        return encoding.entries(data, self._layout.dictionary_size, self._entry_type, self.page.where)

    @property
    def _entry_type(self) -> pa.DataType:
        value_type = self._value_type
        return value_type.value_type if isinstance(value_type, pa.DictionaryType) else value_type

    @cached_property
    def _whole(self) -> OpenedChunks:
        """All chunks of a page that is viewable."""
        return self._open(self._all_chunks)

    def _opened(self) -> OpenedChunks:
        """Return all chunks of a mapped page, with a dictionary only as long as it stays itself."""
        if self._entries is not None and self._dictionary is not None and not self._entries.stays:
            return self._open(self._all_chunks)
        return self._whole

    @cached_property
    def _all_chunks(self) -> Chunks:
        return self._chunks(self.page.view(1))

    @cached_property
    def _at_hand(self) -> bool:
        """True if chunks can be decoded without loading them first."""
        return self.page.is_mapped and not self._wrapped

    def _chunks(self, data: pa.Buffer | None, table: ChunkTable | None = None) -> Chunks:
        layout = self._layout
        return Chunks(
            table or self._table,
            layout.num_buffers,
            repetition=layout.rep is not None,
            definition=layout.definition is not None,
            wrapped=self._wrapped,
            data=data,
        )

    def _open(self, chunks: Chunks) -> OpenedChunks:
        where = self.page.where
        levels = Levels(
            chunks,
            repetition=level_codec(self._layout.rep, where),
            definition=level_codec(self._layout.definition, where),
            max_repetition=self._depth,
            max_definition=max_definition(self.layers),
            max_visible=self._max_visible,
        )
        dictionary = self._dictionary
        if dictionary is None:
            return OpenedChunks(self._encoding.open_chunks(chunks, self._value_type, where), levels)
        return OpenedChunks(DictionaryValues(self._encoding, chunks, self._value_type, dictionary, where), levels)

    def _load(self, spans: Sequence[tuple[int, int]], wanted: WantedValues) -> OpenedChunks:
        """Return the chunks of some ascending ranges, read and decompressed if necessary to read values.

        Raises
        ------
        WideSpanError
            See `check_span`.
        """
        if self._at_hand:
            self._will_need(spans)
            return self._opened()
        spans = [span for span in spans if span[0] < span[1]]
        chunks, starts = self._chunks(None), self._table.starts
        parts = [(starts[first], starts[stop]) for first, stop in spans]
        for (first, _), data in zip(spans, self.page.read_parts(1, parts), strict=True):
            chunks.load(data, first)
        self._decompress(chunks, spans, wanted)
        return self._open(chunks)

    def will_need(self, rows: NDArray[np.int64]) -> bool:
        """See `LeafPage.will_need`."""
        if self.page.is_mapped:
            firsts = self._index.started if self._depth else self._table.firsts
            items = rows if self._depth else rows * self._items_per_row
            chunks = np.unique(np.searchsorted(np.asarray(firsts), items, side="right") - 1)
            return self._will_need([(chunk, min(chunk + 1, self._table.num_chunks)) for chunk in chunks.tolist()])
        return False

    def _will_need(self, spans: Sequence[tuple[int, int]]) -> bool:
        starts = self._table.starts
        return self.page.will_need(1, [(starts[first], starts[stop]) for first, stop in spans])

    def _decompress(self, chunks: Chunks, spans: Sequence[tuple[int, int]], wanted: WantedValues) -> None:
        if self._wrapped:
            decompress_chunks(chunks, self._layout.values, spans, wanted, self.page.where)

    # -- rows without lists --------------------------------------------------------------------------------------

    def read(self, start: int, stop: int) -> LeafValues:
        """See `LeafPage.read`."""
        return self._read(start, stop, encoded=False)

    def read_encoded(self, start: int, stop: int) -> LeafValues:
        """See `LeafPage.read_encoded`; runs are expanded, as comparing runs costs more than they save."""
        return self._read(start, stop, encoded=self._layout.dictionary is not None)

    def _read(self, start: int, stop: int, *, encoded: bool) -> LeafValues:
        if self._depth:
            return self._read_lists(start, stop)
        low, high = start * self._items_per_row, stop * self._items_per_row
        first, last = self._table.chunk_range(low, high)
        opened = self._load([(first, last)], WantedValues(low, high, divisible=stop - start > 1))
        definition = None
        if self._layout.definition is not None:
            firsts = self._table.firsts
            definition = allocate((firsts[last] - firsts[first]) * 2)
            opened.levels.scan(first, last, None, definition)
            definition = definition.slice((low - firsts[first]) * 2, (high - low) * 2)
        values = self._values(opened, definition, low, high, encoded=encoded)
        self._discard(first, last)
        return LeafValues(values, high - low, None, definition)

    def _discard(self, first: int, last: int) -> None:
        """Release the memory of chunks that a scan has decoded."""
        if self._at_hand:
            starts = self._table.starts
            self.page.discard_range(1, starts[first], starts[last])

    def take(self, rows: NDArray[np.int64]) -> LeafValues:
        """See `LeafPage.take`."""
        if self._depth:
            return self._take_lists(rows)
        items = expand_rows(rows, self._items_per_row)
        held = self._hold(items)
        at_hand = self._at_hand or held is not None
        opened = self._opened() if at_hand else self._load(self._chunks_of(items), _wanted(rows, items))
        definition = None
        if self._layout.definition is not None:
            definition = allocate(len(items) * 2)
            opened.levels.take(items, definition)
        return LeafValues(self._taken(opened, definition, items), len(items), None, definition)

    def taker(self, required: bool, lists: bool | None = None) -> PageTaker | None:
        """See `LeafPage.taker`."""
        if type(self) is not MiniBlockPage or self._items_per_row != 1 or self._wrapped or not self.page.is_viewable:
            return None
        where = self.page.where
        shape = take_shape(self._value_type)
        if shape is None:
            return None
        if self._layout.definition is not None and not max_definition(self.layers):
            return None  # levels that the layers do not have: any but 0 is damage
        levels: TakenLevels = (level_codec(self._layout.definition, where), None)
        if lists is not None:
            repetition = level_codec(self._layout.rep, where)
            levels = levels[0], list_levels(self.layers, repetition, self._index.started, lists)
        chunks, dictionary = self._all_chunks, self._dictionary
        if dictionary is None:
            return self._encoding.take_chunks(chunks, shape, self._value_type, levels, required, where)
        if self._entries is None or not self._entries.stays:
            return None
        return indices_taker(self._encoding, chunks, shape, dictionary, levels, required, where)

    @property
    def _blocks(self) -> FileBlocks | None:
        """Blocks of a file that is not mapped, from which `_all_chunks` are views; None if chunks need other reads."""
        return None if self._wrapped or type(self) is not MiniBlockPage else self.page.blocks

    def _hold(self, items: NDArray[np.int64]) -> Held | None:
        """Load the chunks of some values for `_whole`, as long as the result lives; None if that is not necessary."""
        blocks = self._blocks
        return None if blocks is None else take_pages.hold_values(self._all_chunks, blocks, items)

    def _chunks_of(self, items: NDArray[np.int64]) -> list[tuple[int, int]]:
        if self._at_hand:
            return []
        chunks = np.unique(np.searchsorted(np.asarray(self._table.firsts), items, side="right") - 1)
        return [(int(chunk), int(chunk) + 1) for chunk in chunks]

    def _values(
        self, opened: OpenedChunks, definition: pa.Buffer | None, low: int, high: int, *, encoded: bool = False
    ) -> pa.Array:
        scan = opened.values.scan_encoded if encoded else opened.values.scan
        try:
            return scan(low, high)
        except CodecError:
            validity = self._tolerated(definition)
            if validity is None:
                raise
            return scan(low, high, validity)

    def _taken(self, opened: OpenedChunks, definition: pa.Buffer | None, items: NDArray[np.int64]) -> pa.Array:
        try:
            return opened.values.take(items)
        except CodecError:
            validity = self._tolerated(definition)
            if validity is None:
                raise
            return opened.values.take(items, validity)

    def _tolerated(self, definition: pa.Buffer | None) -> pa.Buffer | None:
        """Return a bitmap of the valid items if dictionary indices of nulls need not have an entry, otherwise None."""
        if self._layout.dictionary is None or definition is None:
            return None
        levels = np.frombuffer(definition, np.uint16)
        return pa.py_buffer(np.packbits(levels[levels <= self._max_visible] == 0, bitorder="little"))

    def dictionary_bytes(self) -> tuple[float, float] | None:
        """See `LeafPage.dictionary_bytes`; only the entries themselves tell the length of texts."""
        if self._layout.dictionary is None or pa.types.is_nested(self._value_type):
            return None
        index = self._encoding.chunk_codec(self.page.where)[1] / 8
        if isinstance(self._value_type, pa.DictionaryType):
            return index, index
        width = value_bits(self._value_type) / 8
        if width:
            return index, width
        entries = self._dictionary
        return None if entries is None else (index, entries.nbytes / max(len(entries), 1))

    # -- search --------------------------------------------------------------------------------------------------

    def can_search(self, test: StoredTest) -> bool:
        """See `LeafPage.can_search`: one value for each row, mapped, of which the test needs what is stored."""
        if not self._is_mapped_and_flat or test.validity is not None:
            return self._is_mapped_and_flat
        if not self._at_hand or self._encoding.is_text or pa.types.is_nested(self._value_type):
            return False
        codec, bits = self._encoding.chunk_codec(self.page.where)
        if bits not in SEARCHED_BITS or (bits == _FLAT_ONLY and codec != miniblock_values.FLAT):
            return False
        if self._layout.dictionary is not None:
            kind = self._value_type
            return bits != _FLAT_ONLY and (not pa.types.is_dictionary(kind) or kind.index_type.bit_width == bits)
        return test.intervals is not None and bits == value_bits(self._value_type)

    @cached_property
    def _is_mapped_and_flat(self) -> bool:
        layout = self._layout
        if type(self) is not MiniBlockPage or not self.page.is_mapped or self._depth or self._items_per_row != 1:
            return False
        return layout.rep is None and (layout.definition is None or max_definition(self.layers) > 0)

    @cached_property
    def _ranges(self) -> ChunkRanges:
        return ChunkRanges(self._table.num_chunks, wide=value_bits(self._value_type) == _FLAT_ONLY)

    def search(self, test: StoredTest, start: int, stop: int, kept: pa.Buffer | None) -> pa.Buffer | None:
        """See `LeafPage.search`; a condition is computed for the entries of a dictionary if that is less work."""
        index_test = None
        if test.validity is not None and self._layout.definition is None:
            return filled_bitmap(test.validity[0], stop - start, kept)
        if test.validity is None and self._layout.dictionary is not None:
            index_test = self._index_test(test) if self._layout.dictionary_size <= stop - start else None
            if index_test is None:
                return None
        first, last = self._table.chunk_range(start, stop)
        self._will_need([(first, last)])
        found = allocate((stop - start + 7) // 8)
        self._search(test, index_test, start, stop, found, kept)
        self._discard(first, last)
        return found

    def _search(
        self,
        test: StoredTest,
        index_test: IndexTest | None,
        start: int,
        stop: int,
        found: pa.Buffer,
        kept: pa.Buffer | None,
    ) -> None:
        chunks, ranges, where = self._all_chunks, self._ranges, self.page.where
        levels = level_codec(self._layout.definition, where)
        if test.validity is not None:
            valid, null = test.validity
            intervals.search_nulls(chunks, levels, valid, null, ranges, start, stop, found, kept)
            return
        kind, bits = self._encoding.chunk_codec(where)
        if index_test is not None:
            one, entries, marks = index_test.intervals, index_test.entries, index_test.marks
            flags = None if marks is None else marks.data
            intervals.search_indices(
                chunks, kind, bits, levels, one, ranges, start, stop, found, kept, entries=entries, marks=flags
            )
        elif test.intervals is not None:
            intervals.search(chunks, kind, bits, levels, test.intervals, ranges, start, stop, found, kept)

    def _index_test(self, test: StoredTest) -> IndexTest | None:
        """Return a test as one of dictionary indices, None if it fails for an entry."""
        dictionary = self._dictionary
        if dictionary is None or dictionary.null_count:
            return None
        passes = test.of_entries(dictionary)
        if passes is None:
            return None
        _, bits = self._encoding.chunk_codec(self.page.where)
        return IndexTest.of(passes[0][: self._shown_entries(len(dictionary))], passes[1], bits)

    def _shown_entries(self, entries: int) -> int:
        """Return how many entries indices can have: stored ones are unsigned, those of Arrow may be signed."""
        kind = self._value_type
        if not pa.types.is_dictionary(kind):
            return entries
        return min(entries, 1 << (kind.index_type.bit_width - pa.types.is_signed_integer(kind.index_type)))

    # -- rows of lists -------------------------------------------------------------------------------------------

    def _read_lists(self, start: int, stop: int) -> LeafValues:
        first, last, skipped = self._index.chunk_range(start, stop)
        opened = self._load([(first, last)], replace(ALL_VALUES, divisible=stop - start > 1))
        total = opened.levels.begins(first, last)[-1]
        if self._depth == 1 and total > self.page.length + self._layout.num_items:
            # A chunk may claim millions; each must begin a row or own a value.
            raise CorruptFileError(f"{self.page.where}: {total} levels for {self._layout.num_items} values")
        repetition = allocate(total * 2)
        definition = None if self._layout.definition is None else allocate(total * 2)
        opened.levels.scan(first, last, repetition, definition)
        begin, end = level_codecs.row_items(repetition, self._depth, skipped, skipped + stop - start)
        low = self._table.firsts[first]
        if begin:
            low += self._visible(definition, 0, begin)
        high = low + self._visible(definition, begin, end)
        repetition = repetition.slice(begin * 2, (end - begin) * 2)
        if definition is not None:
            definition = definition.slice(begin * 2, (end - begin) * 2)
        values = self._values(opened, definition, low, high)
        self._discard(first, last)
        return LeafValues(values, end - begin, repetition, definition)

    def _visible(self, definition: pa.Buffer | None, start: int, stop: int) -> int:
        """Return the number of items that own a value."""
        if definition is None:
            return stop - start
        return level_codecs.count_visible(definition, start, stop, self._max_visible)

    def _take_lists(self, rows: NDArray[np.int64]) -> LeafValues:
        blocks, held = self._blocks, None
        if blocks is not None:
            held = take_pages.hold_lists(self._all_chunks, blocks, self._index.started, rows)
        opened = self._opened() if held is not None else self._load(self._chunks_of_rows(rows), _wanted(rows, None))
        begins, counts = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        taken = opened.levels.take_rows(self._index, rows, begins, counts)
        repetition, definition = (None if levels is None else pa.py_buffer(levels) for levels in taken)
        items = expand_ranges(begins, counts)
        length = len(taken[0]) // 2
        return LeafValues(self._taken(opened, definition, items), length, repetition, definition)

    def _chunks_of_rows(self, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
        if self._at_hand:
            return []
        index, count = self._index, self._table.num_chunks
        spans = []
        for row in np.unique(rows).tolist():
            first, last, _ = index.chunk_range(row, row + 1)
            # A row may end with its chunk, which the kernel only sees in the next chunk.
            spans.append((first, last + (last < count and index.started[last] == index.ended[last] == row + 1)))
        merged: list[tuple[int, int]] = []
        for first, last in spans:
            if merged and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return merged


def _wanted(rows: NDArray[np.int64], items: NDArray[np.int64] | None) -> WantedValues:
    """Return the values that a take of rows reads; none of lists are known before their levels are decoded."""
    return WantedValues(items=items, divisible=len(rows) > 1 and bool((rows != rows[0]).any()))
