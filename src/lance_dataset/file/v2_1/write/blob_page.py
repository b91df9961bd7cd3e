"""Pages of blobs: values elsewhere in the file, their positions and sizes in the page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.blob_output import write_values
from lance_dataset.file.column import WriteBuffer
from lance_dataset.file.v2_1.compressive import PackedStruct
from lance_dataset.file.v2_1.layout import BlobLayout, Layer, MiniBlockLayout
from lance_dataset.file.v2_1.write.encoded import EncodedChunks
from lance_dataset.file.v2_1.write.mini_block_page import mini_block_page
from lance_dataset.file.v2_1.write.page_levels import PageLevels
from lance_dataset.file.v2_1.write.span import Span
from lance_dataset.file.v2_1.write.written import WrittenPage
from lancecodec import flat

__all__ = ["blob_page"]

_DESCRIPTOR_BITS = (64, 64)
_LEVEL_BITS = 16


def blob_page(span: Span, write_buffer: WriteBuffer, large: bool) -> WrittenPage:
    """Write the values of a page to the file, and describe where they are.

    Parameters
    ----------
    span
        Binaries that are in no list.
    write_buffer
        Appends bytes to the file, aligned.
    large
        Whether chunks are described with 32 bits, as from 2.2 on.
    """
    count = span.levels.num_items
    descriptors = np.zeros((count, 2), np.uint64)
    if span.levels.definition is not None:
        # that of a null tells which layer is null, above the bits of its repetition level (0)
        definition = np.frombuffer(span.levels.definition, np.uint16)
        descriptors[:, 0] = definition.astype(np.uint64) << np.uint64(_LEVEL_BITS)
    if span.num_valid:
        positions, sizes = write_values(span.values, write_buffer)
        filled = sizes > 0
        descriptors[filled, 0] = positions[filled]
        descriptors[:, 1] = sizes
    plain = PageLevels((Layer.ALL_VALID_ITEM,), None, None, count, count, 0, 0, 0)
    inner = mini_block_page(plain, _descriptor_chunks(descriptors), large)
    if not isinstance(inner.layout, MiniBlockLayout):
        raise TypeError(f"blob descriptors in a {type(inner.layout).__name__}")
    layout = BlobLayout(inner.layout, span.levels.layers)
    return WrittenPage(layout, inner.buffers, "the values are blobs, stored outside the page")


def _descriptor_chunks(descriptors: NDArray[np.uint64]) -> EncodedChunks:
    width = sum(_DESCRIPTOR_BITS) // 8
    full = flat.chunk_values(8 * width)
    ends = np.append(np.arange(full, len(descriptors), full), len(descriptors)).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    data = descriptors.tobytes()
    return EncodedChunks(PackedStruct(_DESCRIPTOR_BITS), counts, [(data, ends * width)], full, None, "descriptors")
