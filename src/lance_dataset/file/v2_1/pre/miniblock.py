"""Mini-block pages from before 2.1 was stable."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.variable import Variable
from lance_dataset.file.structural.layout import MiniBlockLayout
from lance_dataset.file.structural.read.decompression import WantedValues
from lance_dataset.file.structural.read.miniblock import MiniBlockPage, OpenedChunks
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.v2_1.pre.encodings import WRITERS
from lance_dataset.properties import cached_property
from lancecodec.miniblock import ChunkTable

__all__ = ["EarlyMiniBlockPage", "PreMiniBlockPage", "early_dictionary_size"]

_UNIT = 8
_COUNT_BITS = 4
_LEVELS = Flat(16)
_BITS = Flat(1)
_SIZES = struct.Struct("<HHH")
_COUNT = struct.Struct("<I")


class PreMiniBlockPage(MiniBlockPage):
    """A page of 0.26 to 0.32: its chunks are those of 2.1, but dictionaries of strings have a different header."""

    def _open_dictionary(self, encoding: Encoding) -> pa.Array:
        data = self.page.read(2)
        size = self._dictionary_size(data)
        if isinstance(encoding, Variable):
            data = _stable_strings(data, size, 64 if encoding.wide else 32)
        return encoding.entries(data, size, self._entry_type, self.page.where)

    def _dictionary_size(self, data: pa.Buffer) -> int:
        return self._layout.dictionary_size


def _stable_strings(data: pa.Buffer, size: int, bits: int) -> pa.Buffer:
    """Replace the header of a block of strings, [number of strings, start of the bytes], by the header of 2.1.

    Dictionaries of 0.32 start with the width of the offsets in one byte. The kernel reads those, so they stay
    unchanged.
    """
    if data.size < 2 * _COUNT.size or bits != 32 or _COUNT.unpack_from(data)[0] != size:
        return data
    if _COUNT.unpack_from(data, _COUNT.size)[0] != 2 * _COUNT.size + (size + 1) * bits // 8:
        return data
    return pa.py_buffer(_COUNT.pack(bits) + data[_COUNT.size :].to_pybytes())


def early_dictionary_size(layout: MiniBlockLayout, data: pa.Buffer, where: str) -> int:
    """Return the number of dictionary entries in a buffer, as early layouts do not store it but blocks of strings do.

    Raises
    ------
    CorruptFileError
        The buffer is too short, or the dictionary has an unknown encoding.
    """
    if isinstance(layout.dictionary, Variable) and data.size >= _COUNT.size:
        return int(_COUNT.unpack_from(data)[0])
    if isinstance(layout.dictionary, Flat):
        return data.size * 8 // layout.dictionary.bits
    raise CorruptFileError(f"{where}: a dictionary with encoding {layout.dictionary} in {data.size} bytes")


class EarlyMiniBlockPage(PreMiniBlockPage):
    """A page of 0.19 to 0.25, whose chunks are rewritten one by one into chunks of 2.1 when they are read.

    Early chunks start with the sizes of repetition levels, definition levels and values, 16 bits each, even if the page
    has no such levels. The levels follow immediately, the values at the next multiple of 8 bytes.
    """

    def __init__(self, page: Page, layout: MiniBlockLayout, value_type: pa.DataType, items_per_row: int) -> None:
        for levels in (layout.rep, layout.definition):
            if levels not in (None, _LEVELS):
                raise UnsupportedError(f"{page.where}: levels with encoding {levels} in a page that {WRITERS}, wrote")
        super().__init__(page, layout, value_type, items_per_row)
        if self._wrapped:
            raise UnsupportedError(f"{page.where}: compressed chunks; {WRITERS}, is not known to write them so early")

    @property
    def _at_hand(self) -> bool:
        return False

    def _dictionary_size(self, data: pa.Buffer) -> int:
        return early_dictionary_size(self._layout, data, self.page.where)

    def _load(self, spans: Sequence[tuple[int, int]], wanted: WantedValues) -> OpenedChunks:
        chunks = [chunk for first, stop in spans for chunk in range(first, stop)]
        rewritten = [self._rewritten(chunk) for chunk in chunks]
        table = self._table
        starts = np.asarray(table.starts)
        sizes = np.diff(starts)
        sizes[chunks] = [len(data) for data in rewritten]
        counts = np.frombuffer(self.page.read(0), "<u2").astype(np.uint32) % (1 << _COUNT_BITS)
        words = counts | (sizes // _UNIT - 1).astype(np.uint32) << _COUNT_BITS
        stable = ChunkTable(words.tobytes(), self._layout.num_items, int(sizes.sum()), True)
        opened = self._chunks(None, stable)
        for chunk, data in zip(chunks, rewritten, strict=True):
            opened.load(data, chunk)
        return self._open(opened)

    def _rewritten(self, chunk: int) -> bytes:
        return self.page.cache.get(("rewritten", self.page.start, chunk), lambda: self._rewrite(chunk), len)

    def _rewrite(self, chunk: int) -> bytes:
        """Return a chunk as in 2.2: number of levels, 32-bit sizes of values, parts at multiples of 8 bytes."""
        levels, values = self._split(chunk)
        if self._encoding == _BITS:
            start, stop = self._table.firsts[chunk], self._table.firsts[chunk + 1]
            values = self._bits[start // 8 : (stop + 7) // 8]
        count = len(levels[0]) // 2 if levels else 0
        header = struct.pack(f"<{1 + len(levels)}HI", count, *map(len, levels), len(values))
        return b"".join(part + bytes(-len(part) % _UNIT) for part in (header, *levels, values))

    def _split(self, chunk: int) -> tuple[list[bytes], bytes]:
        """Return the level streams that the page has, and the values."""
        starts, layout = self._table.starts, self._layout
        data = self.page.read_range(1, starts[chunk], starts[chunk + 1]).to_pybytes()
        repetition, definition, size = _SIZES.unpack_from(data)
        middle, stop = _SIZES.size + repetition, _SIZES.size + repetition + definition
        begin = stop + -stop % _UNIT
        if begin + size > len(data):
            raise CorruptFileError(f"chunk {chunk} of {len(data)} bytes claims {begin + size}")
        levels = []
        if layout.rep is not None:
            levels.append(data[_SIZES.size : middle])
        if layout.definition is not None:
            levels.append(data[middle:stop])
        if sum(map(len, levels)) != repetition + definition or len({len(stream) for stream in levels}) > 1:
            raise CorruptFileError(f"chunk {chunk} has {repetition} and {definition} bytes of levels")
        return levels, data[begin : begin + size]

    @cached_property
    def _bits(self) -> bytes:
        """Values of 1 bit of all chunks. These releases, which cannot read them, put them into the last chunk."""
        bits = b"".join(self._split(chunk)[1] for chunk in range(self._table.num_chunks))
        if len(bits) != (self._layout.num_items + 7) // 8:
            raise CorruptFileError(f"{self._layout.num_items} values of 1 bit in {len(bits)} bytes")
        return bits
