"""Sparse pages put together: no values, one value, chunks or zipped values, and the layers above them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.v2_1.layout import ConstantLayout, Layer
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks, EncodedItems
from lance_dataset.file.v2_1.write.full_zip_page import full_zip_page
from lance_dataset.file.v2_1.write.mini_block_page import mini_block_page
from lance_dataset.file.v2_1.write.page_levels import PageLevels
from lance_dataset.file.v2_1.write.written import WrittenPage
from lance_dataset.file.v2_3.layout import PlanarLayout, SparseLayout
from lance_dataset.file.v2_3.sparse_layers import SparseLayers

__all__ = ["PlanarPage", "chunked_page", "constant_page", "dense_page", "none_page", "zipped_page"]


@dataclass(frozen=True)
class PlanarPage:
    """A page as the writer of 2.3 hands it on; see `v2_1.written.WrittenPage`.

    Attributes
    ----------
    layout
        Its descriptor.
    buffers
        The page buffers in order, each as the parts whose concatenation it is.
    """

    layout: PlanarLayout
    buffers: list[list[Bytes]]

    @property
    def size(self) -> int:
        """Bytes of all buffers."""
        return sum(memoryview(part).nbytes for parts in self.buffers for part in parts)


def dense_page(page: WrittenPage) -> PlanarPage:
    """A page of 2.2 with the same buffers."""
    layout = page.layout
    if not isinstance(layout, PlanarLayout):
        raise TypeError(f"2.3 has no pages of layout {type(layout).__name__}")
    return PlanarPage(layout, page.buffers)


def none_page(structure: SparseLayers) -> PlanarPage:
    """A page no slot of which has a value: they are null, or structs without a child."""
    return _sparse(structure, WrittenPage(ConstantLayout((Layer.NULLABLE_ITEM,)), [], ""))


def constant_page(structure: SparseLayers, value: bytes) -> PlanarPage:
    """A page of one value in every slot that is not null."""
    return _sparse(structure, WrittenPage(ConstantLayout((Layer.ALL_VALID_ITEM,), inline_value=value), [], ""))


def chunked_page(structure: SparseLayers, chunks: EncodedChunks) -> PlanarPage:
    """A page with a value for every slot of the leaf, null ones included."""
    return _sparse(structure, mini_block_page(_plain(int(chunks.counts.sum())), chunks, large=True))


def zipped_page(structure: SparseLayers, items: EncodedItems, valid: NDArray[np.bool_] | None) -> PlanarPage:
    """A page with a value for every valid slot of the leaf.

    Parameters
    ----------
    structure
        The layers.
    items
        A value for every slot, at least one of them valid.
    valid
        Which slots are valid; None for all.
    """
    if items.width is not None:
        count = memoryview(items.values).nbytes // items.width
    else:
        count = memoryview(items.offsets or b"").nbytes // (8 if items.wide else 4) - 1
    if valid is not None:
        items, count = _only(items, valid), int(np.count_nonzero(valid))
    return _sparse(structure, full_zip_page(_plain(count), items))


def _plain(count: int) -> PageLevels:
    """Levels of so many values without structure."""
    return PageLevels((Layer.ALL_VALID_ITEM,), None, None, count, count, 0, 0, 0)


def _only(items: EncodedItems, valid: NDArray[np.bool_]) -> EncodedItems:
    """The values of valid slots."""
    if items.width is not None:
        rows = np.frombuffer(items.values, np.uint8).reshape(len(valid), items.width)
        return replace(items, values=rows[valid].tobytes())
    kind = pa.large_binary() if items.wide else pa.binary()
    buffers = [None, pa.py_buffer(items.offsets), pa.py_buffer(items.values)]
    chosen = pa.Array.from_buffers(kind, len(valid), buffers).take(pa.array(np.flatnonzero(valid)))
    _, offsets, values = chosen.buffers()
    size = (len(chosen) + 1) * (8 if items.wide else 4)
    return replace(items, values=values if values is not None else b"", offsets=offsets.slice(0, size))


def _sparse(structure: SparseLayers, values: WrittenPage) -> PlanarPage:
    layout = SparseLayout(structure.layers, values.layout)  # type: ignore[arg-type]  # blobs do not come here
    return PlanarPage(layout, [*values.buffers, *([payload] for payload in structure.payloads)])
