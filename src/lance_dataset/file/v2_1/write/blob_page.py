"""Pages of blobs: values elsewhere in the file, their positions and sizes in the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_dataset.file.column import WriteBuffer
from lance_dataset.file.container import ALIGNMENT
from lance_dataset.file.kinds import is_wide
from lance_dataset.file.v2_1.compressive import PackedStruct
from lance_dataset.file.v2_1.layout import BlobLayout, Layer, MiniBlockLayout
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks
from lance_dataset.file.v2_1.write.mini_block_page import mini_block_page
from lance_dataset.file.v2_1.write.page_levels import PageLevels
from lance_dataset.file.v2_1.write.span import Span
from lance_dataset.file.v2_1.write.written import WrittenPage
from lancecodec import flat, gather

__all__ = ["blob_page"]

_DESCRIPTOR_BITS = (64, 64)
_PADDING = b"\x48" * ALIGNMENT
_LEVEL_BITS = 16
#: Values of fewer bytes on average are copied together before they are written.
_SMALL_BYTES = 16 << 10


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
        _write_values(span, write_buffer, descriptors)
    plain = PageLevels((Layer.ALL_VALID_ITEM,), None, None, count, count, 0, 0, 0)
    inner = mini_block_page(plain, _descriptor_chunks(descriptors), large)
    if not isinstance(inner.layout, MiniBlockLayout):
        raise TypeError(f"blob descriptors in a {type(inner.layout).__name__}")
    layout = BlobLayout(inner.layout, span.levels.layers)
    return WrittenPage(layout, inner.buffers, "the values are blobs, stored outside the page")


def _write_values(span: Span, write_buffer: WriteBuffer, descriptors: NDArray[np.uint64]) -> None:
    """Append the values one after another, each at an aligned position, and fill in where they are."""
    wide = is_wide(span.values.type)
    width = 8 if wide else 4
    _, offsets, data = span.values.buffers()
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32, len(span.values) + 1, span.values.offset * width)
    ends = ends.astype(np.int64, copy=False)
    sizes = np.diff(ends)
    filled = np.flatnonzero(sizes)
    if len(filled) == 0:
        return
    places = -(-sizes[filled] // ALIGNMENT) * ALIGNMENT
    starts = np.cumsum(places) - places
    parts: list[Bytes]
    if int(places.sum()) < _SMALL_BYTES * len(filled):
        parts = [_gathered(data, ends, filled, np.append(starts, starts[-1] + sizes[filled[-1]]))]
    else:
        parts = _in_place(memoryview(data), ends[filled].tolist(), sizes[filled].tolist())
    position, _ = write_buffer(parts)
    descriptors[filled, 0] = position + starts
    descriptors[filled, 1] = sizes[filled]


def _gathered(data: Bytes, ends: NDArray[np.int64], filled: NDArray[np.int64], starts: NDArray[np.int64]) -> memoryview:
    """Small values copied to their places, which costs less than to write each by itself."""
    out = np.full(int(starts[-1]), _PADDING[0], np.uint8)
    gather.variable(data, ends, filled.data, filled.itemsize, starts, out.data)
    return out.data


def _in_place(content: memoryview, begins: Sequence[int], sizes: Sequence[int]) -> list[Bytes]:
    """Large values and the padding between them, without a copy."""
    parts: list[Bytes] = []
    for begin, size in zip(begins, sizes, strict=True):
        parts.append(content[begin : begin + size])
        if size % ALIGNMENT:
            parts.append(_PADDING[: -size % ALIGNMENT])
    return parts


def _descriptor_chunks(descriptors: NDArray[np.uint64]) -> EncodedChunks:
    width = sum(_DESCRIPTOR_BITS) // 8
    full = flat.chunk_values(8 * width)
    ends = np.append(np.arange(full, len(descriptors), full), len(descriptors)).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    data = descriptors.tobytes()
    return EncodedChunks(PackedStruct(_DESCRIPTOR_BITS), counts, [(data, ends * width)], full, None, "descriptors")
