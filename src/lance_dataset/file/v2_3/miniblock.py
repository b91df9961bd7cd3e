"""Mini-block pages of 2.3: chunks as in 2.2, whose parts may be in encodings that only block context had before.

Such chunks are rewritten on reading, one by one, into chunks as 2.2 has them, which the kernels then decode.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_dataset.file.cache import lazy
from lance_dataset.file.v2_1.layout import MiniBlockLayout
from lance_dataset.file.v2_1.read.miniblock import MiniBlockPage, OpenedChunks
from lance_dataset.file.v2_1.read.page import Page
from lance_dataset.file.v2_3.blocks import decode_dictionary
from lance_dataset.file.v2_3.rewrite import ChunkRewriter, open_rewriter
from lancecodec.miniblock import ChunkTable

__all__ = ["PlanarMiniBlockPage"]

_UNIT = 8
_COUNT_BITS = 4


class PlanarMiniBlockPage(MiniBlockPage):
    """A page of chunks of a few KiB each; see `MiniBlockPage`."""

    def __init__(self, page: Page, layout: MiniBlockLayout, value_type: pa.DataType, items_per_row: int) -> None:
        self._rewriter: ChunkRewriter | None = open_rewriter(layout, page.where)
        plain = layout if self._rewriter is None else self._rewriter.plain
        super().__init__(page, plain, value_type, items_per_row)
        if self._rewriter is not None:
            self._least_bits = []  # those of the chunks as they will be, not as they are stored

    @property
    def _at_hand(self) -> bool:
        return self._rewriter is None and super()._at_hand

    @lazy
    def _dictionary(self) -> pa.Array | None:
        layout = self._layout
        if layout.dictionary is None:
            return None
        data = self.page.read(2)
        return decode_dictionary(data, layout.dictionary, layout.dictionary_size, self._entry_type, self.page.where)

    def _load(self, spans: Sequence[tuple[int, int]]) -> OpenedChunks:
        if self._rewriter is None:
            return super()._load(spans)
        chunks = [chunk for first, stop in spans for chunk in range(first, stop)]
        rewritten = [self._rewritten(chunk) for chunk in chunks]
        words = np.frombuffer(self.page.read(0), "<u4").copy()
        sizes = np.array([len(data) for data in rewritten], np.uint32)
        words[chunks] = words[chunks] % (1 << _COUNT_BITS) | (sizes // _UNIT - 1) << _COUNT_BITS
        total = int((words >> _COUNT_BITS).sum(dtype=np.int64) + len(words)) * _UNIT
        table = ChunkTable(words, self._layout.num_items, total, True)
        opened = self._chunks(None, table)
        for chunk, data in zip(chunks, rewritten, strict=True):
            opened.load(data, chunk)
        self._decompress(opened, spans)
        return self._open(opened)

    def _rewritten(self, chunk: int) -> bytes:
        """A chunk as 2.2 has it."""
        assert self._rewriter is not None
        rewriter, table = self._rewriter, self._table

        def make() -> bytes:
            data = self.page.read_range(1, table.starts[chunk], table.starts[chunk + 1])
            return rewriter.rewrite(data, table.firsts[chunk + 1] - table.firsts[chunk])

        return self.page.cache.get(("rewritten", self.page.start, chunk), make, len)
