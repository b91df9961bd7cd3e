"""Mini-block pages of 2.3: chunks as in 2.2, but parts may have encodings that 2.2 allows only in block context.

Such chunks are rewritten one by one into chunks of 2.2 when they are read. The kernels then decode those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError, UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.structural.encodings.base import Encoding
from lance_dataset.file.structural.encodings.bitpacking import OutOfLineBitpacking
from lance_dataset.file.structural.layout import MiniBlockLayout, list_depth, max_definition
from lance_dataset.file.structural.read.decompression import WantedValues, check_span
from lance_dataset.file.structural.read.miniblock import MiniBlockPage, OpenedChunks
from lance_dataset.file.structural.read.page import Page
from lance_dataset.limits import check_memory, memory_allowance
from lancecodec import bitpacking
from lancecodec.miniblock import ChunkTable

__all__ = ["PlanarMiniBlockPage"]

_Part: TypeAlias = "pa.Buffer | bytes"

_UNIT = 8
_COUNT_BITS = 4
_LEVEL_BITS = 16
#: Maximum bit width of rewritten levels, so that a chunk has room for 65,535 of them.
_MAX_LEVEL_WIDTH = 7


class PlanarMiniBlockPage(MiniBlockPage):
    """A page of chunks of a few KiB each; see `MiniBlockPage`."""

    def __init__(self, page: Page, layout: MiniBlockLayout, value_type: pa.DataType, items_per_row: int) -> None:
        self._rewriter: ChunkRewriter | None = open_rewriter(layout, page.where)
        plain = layout if self._rewriter is None else self._rewriter.plain
        super().__init__(page, plain, value_type, items_per_row)
        if self._rewriter is not None:
            self._least_bits = ()  # they describe stored chunks, not rewritten ones

    @property
    def _at_hand(self) -> bool:
        return self._rewriter is None and super()._at_hand

    def _open_dictionary(self, encoding: Encoding) -> pa.Array:
        data = self.page.read(2)
        return encoding.planar_entries(data, self._layout.dictionary_size, self._entry_type, self.page.where)

    def _load(self, spans: Sequence[tuple[int, int]], wanted: WantedValues) -> OpenedChunks:
        if self._rewriter is None:
            return super()._load(spans, wanted)
        chunks = [chunk for first, stop in spans for chunk in range(first, stop)]
        rewritten, starts, size, stored = [], self._table.starts, 0, 0
        for chunk in chunks:
            rewritten.append(self._rewritten(chunk))
            size, stored = size + len(rewritten[-1]), stored + starts[chunk + 1] - starts[chunk]
            check_span(size, stored, len(chunks), wanted)
        words = np.frombuffer(self.page.read(0), "<u4").copy()
        sizes = np.array([len(data) for data in rewritten], np.uint32)
        words[chunks] = words[chunks] % (1 << _COUNT_BITS) | (sizes // _UNIT - 1) << _COUNT_BITS
        total = int((words >> _COUNT_BITS).sum(dtype=np.int64) + len(words)) * _UNIT
        table = ChunkTable(words, self._layout.num_items, total, True)
        opened = self._chunks(None, table)
        for chunk, data in zip(chunks, rewritten, strict=True):
            opened.load(data, chunk)
        self._decompress(opened, spans, wanted)
        return self._open(opened)

    def _rewritten(self, chunk: int) -> bytes:
        """Return a chunk in the form of 2.2."""
        assert self._rewriter is not None
        rewriter, table = self._rewriter, self._table

        def make() -> bytes:
            data = self.page.read_range(1, table.starts[chunk], table.starts[chunk + 1])
            return rewriter.rewrite(data, table.firsts[chunk + 1] - table.firsts[chunk])

        return self.page.cache.get(("rewritten", self.page.start, chunk), make, len)


# -- rewriting ----------------------------------------------------------------------------------------------------


def open_rewriter(layout: MiniBlockLayout, where: str) -> ChunkRewriter | None:
    """Return the rewriter of the chunks of a page, None if the chunks already have the form of 2.2.

    Raises
    ------
    UnsupportedError
        The page combines encodings in a way that no release writes.
    """
    plain = replace(
        layout,
        values=_plain_values(layout.values),
        rep=_plain_levels(layout.rep, list_depth(layout.layers), where),
        definition=_plain_levels(layout.definition, max_definition(layout.layers), where),
    )
    if plain == layout:
        return None
    buffers = layout.num_buffers if plain.values == layout.values else 1
    return ChunkRewriter(layout, replace(plain, num_buffers=buffers), where)


def _plain_values(encoding: Encoding) -> Encoding:
    plain = encoding.inner.plain_chunks
    return encoding if plain is encoding.inner else plain


def _plain_levels(encoding: Encoding | None, highest: int, where: str) -> Encoding | None:
    if encoding is None or (encoding.is_simple_part and encoding.has_payload) or encoding.level_codec is not None:
        return encoding
    width = highest.bit_length()
    if width > _MAX_LEVEL_WIDTH:
        raise UnsupportedError(f"{where}: levels up to {highest} with encoding {encoding}")
    return OutOfLineBitpacking(_LEVEL_BITS, width)


class ChunkRewriter:
    """Rewriter of the chunks of a page.

    Parameters
    ----------
    stored
        The layout of the page.
    plain
        The layout of the rewritten chunks.
    where
        File, column and page, for error messages.
    """

    def __init__(self, stored: MiniBlockLayout, plain: MiniBlockLayout, where: str) -> None:
        self._stored = stored
        self.plain = plain
        self._where = where
        self._values = stored.values.inner
        self._rewrites_values = stored.values != plain.values
        expected = self._values.stored_buffers if self._rewrites_values else stored.num_buffers
        if stored.num_buffers != expected:
            raise CorruptFileError(f"{where}: {stored.num_buffers} value buffers per chunk instead of {expected}")
        if stored.num_buffers > 16:
            raise CorruptFileError(f"{where}: {stored.num_buffers} value buffers per chunk")

    def rewrite(self, chunk: pa.Buffer, count: int) -> bytes:
        """Return a stored chunk of `count` values, rewritten to the plain layout.

        Raises
        ------
        CodecError, CorruptFileError
            The chunk contradicts the layout.
        """
        num_levels, levels, values = self._split(chunk)
        streams: list[_Part] = []
        for encoding, plain, part in zip(
            (self._stored.rep, self._stored.definition), (self.plain.rep, self.plain.definition), levels, strict=True
        ):
            if part is not None:
                streams.append(part if encoding == plain else _repack(encoding, plain, part, num_levels))
        if self._rewrites_values:
            values = [self._plain_value(values, count)]
        return _join(num_levels, streams, values)

    def _split(self, chunk: pa.Buffer) -> tuple[int, tuple[pa.Buffer | None, pa.Buffer | None], list[pa.Buffer]]:
        """Return the number of levels, the level streams and the value buffers."""
        stored = self._stored
        widths = [2 for encoding in (stored.rep, stored.definition) if encoding is not None] + [4] * stored.num_buffers
        data = memoryview(chunk)
        at = 2
        sizes = []
        for width in widths:
            sizes.append(int.from_bytes(data[at : at + width], "little"))
            at += width
        parts = []
        for size in sizes:
            at += -at % _UNIT
            if at + size > chunk.size:
                raise CorruptFileError(f"{self._where}: a part of {size} bytes at {at} of a chunk of {chunk.size}")
            parts.append(chunk.slice(at, size))
            at += size
        rep = parts.pop(0) if stored.rep is not None else None
        definition = parts.pop(0) if stored.definition is not None else None
        return int.from_bytes(data[:2], "little"), (rep, definition), parts

    def _plain_value(self, parts: list[pa.Buffer], count: int) -> _Part:
        if self._values is not self._stored.values and parts:
            parts = [self._decompressed(parts[0], count), *parts[1:]]
        return self._values.plain_chunk(parts, count)

    def _decompressed(self, part: pa.Buffer, count: int) -> pa.Buffer:
        """Return the first value buffer without general compression."""
        most = self._values.most_stored_bytes(count)
        if most is None:
            data = part.to_pybytes()
            most = self._stored.values.decompressed_size(data)
            most = memory_allowance(len(data)) if most is None else most
            check_memory(most, len(data), f"{self._where}: a chunk")
        return self._stored.values.decompress(part, most)


def _repack(encoding: Encoding | None, plain: Encoding | None, part: pa.Buffer, count: int) -> pa.Buffer:
    assert encoding is not None
    assert isinstance(plain, OutOfLineBitpacking)
    levels = encoding.integers(part, count, _LEVEL_BITS)
    out = allocate(bitpacking.out_of_line_size(count, _LEVEL_BITS, plain.width))
    bitpacking.out_of_line_encode(levels, _LEVEL_BITS, plain.width, out)
    return out


def _join(num_levels: int, streams: list[_Part], values: list[_Part]) -> bytes:
    """Build a chunk from its parts."""
    sizes = [memoryview(part).nbytes for part in (*streams, *values)]
    header = num_levels.to_bytes(2, "little") + b"".join(
        size.to_bytes(2 if number < len(streams) else 4, "little") for number, size in enumerate(sizes)
    )
    pieces = [header, bytes(-len(header) % _UNIT)]
    for part, size in zip((*streams, *values), sizes, strict=True):
        pieces += [part, bytes(-size % _UNIT)]
    return b"".join(pieces)
