"""Pages of 2.3 files from before the planar layout, read as nested arrays of their branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pyarrow as pa

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.encodings.flat import Flat
from lance_dataset.file.structural.encodings.sequences import Delta
from lance_dataset.file.structural.nesting import Branch
from lance_dataset.file.structural.read.page import NestedPage, Page, PageGrammar
from lance_dataset.file.v2_1.messages import PAGE_LAYOUT
from lance_dataset.file.v2_1.pages import LEVEL_PAGES
from lance_dataset.file.v2_3.layout import SparseFixedSizeList, SparseLayer, SparseList, StoredSequence
from lance_dataset.file.v2_3.pre.layout import EarlierSparseLayout, parse_page_layout
from lance_dataset.file.v2_3.sparse import SparsePage
from lance_dataset.file.v2_3.structure import Structure, open_structure
from lance_dataset.properties import cached_property

__all__ = ["PRE_PAGES"]

_BITS = 64
_COUNT_BITS = 4
_MAX_COUNT = 1 << 15
#: A size in a chunk word of 2.3 has 28 bits.
_MAX_SIZE = 1 << 28


class _EntryPage(Page):
    """A page whose chunk words are pairs: the size in units of 8 bytes minus 1, and the number of values."""

    @cached_property
    def _words(self) -> pa.Buffer:
        stored = super().read(0)
        if stored.size % 8 or not stored.size:
            raise CorruptFileError(f"{self.where}: chunk entries of {stored.size} bytes")
        sizes, counts = np.frombuffer(stored, "<u4").reshape(-1, 2).T
        leading = counts[:-1]
        if (sizes >= _MAX_SIZE).any() or (leading & (leading - 1)).any() or (leading > _MAX_COUNT).any():
            raise CorruptFileError(f"{self.where}: chunks of sizes or numbers of values that no chunk has")
        if (leading < 2).any() or counts.sum(dtype=np.uint64) != self.length:
            raise CorruptFileError(f"{self.where}: {counts.sum(dtype=np.uint64)} values in chunks, not {self.length}")
        logs = np.zeros(len(counts), np.uint32)
        logs[:-1] = np.log2(leading).astype(np.uint32)
        return pa.py_buffer((sizes << _COUNT_BITS | logs).astype("<u4").tobytes())

    def size_of(self, buffer: int) -> int:
        """See `Page.size_of`."""
        return self._words.size if buffer == 0 else super().size_of(buffer)

    def read(self, buffer: int) -> pa.Buffer:
        """See `Page.read`."""
        return self._words if buffer == 0 else super().read(buffer)


class EarlierSparsePage(SparsePage):
    """A sparse page whose positions are stored as differences; see `SparsePage`."""

    def __init__(self, page: Page, stored: EarlierSparseLayout, branch: Branch) -> None:
        plain = {field.name: getattr(page, field.name) for field in fields(Page)}
        super().__init__(_EntryPage(**plain), stored.layout, branch)
        slots = page.length
        for layer, count in zip(stored.layout.layers, stored.slots, strict=True):
            if slots != count:
                raise CorruptFileError(f"{page.where}: a layer claims {count} slots instead of {slots}")
            if isinstance(layer, SparseList):
                slots = layer.num_child_slots
            elif isinstance(layer, SparseFixedSizeList):
                slots *= layer.dimension
        if slots != stored.leaf_slots:
            raise CorruptFileError(f"{page.where}: claims {stored.leaf_slots} values instead of {slots}")

    @cached_property
    def _structure(self) -> Structure:
        page = self._page
        payloads = iter([page.read(buffer) for buffer in range(self._value_buffers, len(page.buffers))])
        absolute: list[pa.Buffer] = []
        layers = [_absolute_layer(layer, payloads, absolute) for layer in self._layout.layers]
        return open_structure(layers, page.length, absolute, sum(size for _, size in page.buffers))


def _absolute_layer(layer: SparseLayer, payloads: Iterator[pa.Buffer], absolute: list[pa.Buffer]) -> SparseLayer:
    """Return the layer with positions in the form of 2.3, and append their payloads to `absolute`."""
    if isinstance(layer, SparseList):
        positions = _absolute(layer.positions, payloads, absolute)
        counts = _absolute(layer.counts, payloads, absolute)
        layer = replace(layer, positions=positions, counts=counts)
    validity = replace(layer.validity, positions=_absolute(layer.validity.positions, payloads, absolute))
    return replace(layer, validity=validity)


def _absolute(stored: StoredSequence, payloads: Iterator[pa.Buffer], absolute: list[pa.Buffer]) -> StoredSequence:
    encoding = stored.encoding
    payload = next(payloads) if encoding.has_payload else None
    if not isinstance(encoding, Delta):
        absolute.extend([] if payload is None else [payload])
        return stored
    steps = np.frombuffer(encoding.deltas.integers(payload, stored.length, _BITS), np.uint64, stored.length)
    absolute.append(pa.py_buffer(np.cumsum(steps, dtype=np.uint64).tobytes()))
    return StoredSequence(Flat(_BITS), stored.length)


def _open_page(page: Page, branch: Branch) -> NestedPage:
    if isinstance(page.layout, EarlierSparseLayout):
        return EarlierSparsePage(page, page.layout, branch)
    return LEVEL_PAGES.open_page(page, branch)


#: Pages of 2.3 files of pylance 4 to 13.
PRE_PAGES = PageGrammar("2.3 (pylance 4 to 13)", PAGE_LAYOUT, parse_page_layout, _open_page)
