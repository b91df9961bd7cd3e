"""Assembly of pages from values and levels: mini-block, full-zip and blob pages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.blob_output import write_values
from lance_dataset.file.buffers import allocate
from lance_dataset.file.column import WriteBuffer
from lance_dataset.file.structural.encodings.packed_struct import PackedStruct
from lance_dataset.file.structural.encodings.request import Bytes, EncodedChunks, EncodedItems, steps
from lance_dataset.file.structural.layout import BlobLayout, FullZipLayout, Layer, Layout, MiniBlockLayout
from lance_dataset.file.structural.write.levels import LevelStream, PageLevels, encode_levels
from lance_dataset.file.structural.write.span import Span
from lance_dataset.late_dataclass import dataclass
from lancecodec import flat
from lancecodec import levels as level_codec
from lancecodec.fullzip import ZipLayout
from lancecodec.miniblock_write import Assembly

__all__ = ["ChunkLimitError", "WrittenPage", "blob_page", "full_zip_page", "mini_block_page", "plain_page"]

_MAX_LEVELS = 65_535
_MAX_STREAM_BYTES = 65_535
_SMALL_CHUNK_BYTES = 32 << 10
_INDEX_ENTRY_BYTES = 16
_DESCRIPTOR_BITS = (64, 64)
_LEVEL_BITS = 16


@dataclass(frozen=True)
class WrittenPage:
    """Layout and buffers of a page.

    Attributes
    ----------
    layout
        Descriptor of the page.
    buffers
        The page buffers in order, each as a list of parts to be concatenated.
    reason
        Reason for the layout, in a short sentence.
    """

    layout: Layout
    buffers: list[list[Bytes]]
    reason: str

    @property
    def size(self) -> int:
        """Total bytes of all buffers."""
        return sum(memoryview(part).nbytes for parts in self.buffers for part in parts)


# -- mini-block ---------------------------------------------------------------------------------------------------


class ChunkLimitError(Exception):
    """Error for too many levels in a chunk; a page of fewer rows has fewer levels."""


def mini_block_page(levels: PageLevels, chunks: EncodedChunks, large: bool) -> WrittenPage:
    """Build a mini-block page.

    Parameters
    ----------
    levels
        Levels of the page.
    chunks
        Values of the page.
    large
        True if chunks are described with 32 bits, which is from 2.2 on.

    Raises
    ------
    ChunkLimitError
        A chunk cannot hold the levels between its values.
    """
    ends = np.empty(len(chunks.counts), np.int64)
    largest = level_codec.cut(levels.definition, levels.num_items, levels.max_visible_definition, chunks.counts, ends)
    streams = _level_streams(levels, ends, largest, large)
    if not large:
        _check_small(chunks, [stream for stream in streams if stream is not None])
    present = [(stream.data, stream.ends) for stream in streams if stream is not None]
    assembly = Assembly(
        chunks.counts,
        chunks.buffers,
        large,
        levels=steps(ends) if present else None,
        level_streams=present,
        full=chunks.full,
    )
    words, data = allocate(assembly.words_size), allocate(assembly.chunks_size)
    assembly.write(words, data)
    buffers: list[list[Bytes]] = [[words], [data]]
    if chunks.dictionary is not None:
        buffers.append([chunks.dictionary.buffer])
    if levels.repetition is not None:
        buffers.append([_repetition_index(levels.repetition, levels.max_repetition, ends)])
    return WrittenPage(_layout(levels, chunks, streams, large), buffers, chunks.reason)


def _level_streams(levels: PageLevels, ends: NDArray[np.int64], largest: int, large: bool) -> list[LevelStream | None]:
    """Return repetition and definition levels, None for a stream that the page does not have."""
    raw = (levels.repetition, levels.definition)
    if any(stream is not None for stream in raw) and largest > _MAX_LEVELS:
        raise ChunkLimitError
    streams = [None if stream is None else encode_levels(stream, ends, runs=large) for stream in raw]
    for stream in streams:
        if stream is not None and int(steps(stream.ends).max()) > _MAX_STREAM_BYTES:
            raise ChunkLimitError
    return streams


def _check_small(chunks: EncodedChunks, streams: list[LevelStream]) -> None:
    """Raise ChunkLimitError if levels make a chunk too large for 16-bit words; values alone never do."""
    if not streams:
        return
    ends = [stream.ends for stream in streams] + [ends for _, ends in chunks.buffers]
    header = -(-2 * (1 + len(ends)) // 8) * 8
    sizes = header + sum((steps(each) + 7) // 8 * 8 for each in ends)
    if int(np.max(sizes)) > _SMALL_CHUNK_BYTES:
        raise ChunkLimitError


def _repetition_index(repetition: bytes, max_repetition: int, ends: NDArray[np.int64]) -> pa.Buffer:
    index = allocate(_INDEX_ENTRY_BYTES * len(ends))
    level_codec.repetition_index(repetition, max_repetition, ends, index)
    return index


def _layout(
    levels: PageLevels, chunks: EncodedChunks, streams: list[LevelStream | None], large: bool
) -> MiniBlockLayout:
    rep, definition = (None if stream is None else stream.encoding for stream in streams)
    dictionary = chunks.dictionary
    return MiniBlockLayout(
        values=chunks.encoding,
        layers=levels.layers,
        num_items=levels.num_visible_items,
        num_buffers=len(chunks.buffers),
        rep=rep,
        definition=definition,
        dictionary=None if dictionary is None else dictionary.encoding,
        dictionary_size=0 if dictionary is None else dictionary.size,
        indexed=levels.repetition is not None,
        large=large,
    )


# -- full-zip -----------------------------------------------------------------------------------------------------


def full_zip_page(levels: PageLevels, items: EncodedItems) -> WrittenPage:
    """Zip the levels and values of a page.

    Parameters
    ----------
    levels
        Levels of the page.
    items
        Visible values of the page.
    """
    rep_bits = 0 if levels.repetition is None else levels.max_repetition.bit_length()
    def_bits = _definition_bits(levels.definition)
    layout = FullZipLayout(
        values=items.encoding,
        layers=levels.layers,
        num_items=levels.num_items,
        num_visible_items=levels.num_visible_items,
        rep_bits=rep_bits,
        def_bits=def_bits,
        bits=None if items.width is None else 8 * items.width,
        length_bits=items.offset_bits,
    )
    if rep_bits == 0 and def_bits == 0 and items.width is not None:
        return WrittenPage(layout, [[items.values]], items.reason)  # there are no levels or lengths to zip
    return WrittenPage(layout, _zip(levels, items, rep_bits, def_bits), items.reason)


def plain_page(levels: PageLevels, chunks: EncodedChunks) -> WrittenPage:
    """Build a page without levels whose chunks are all values of whole bytes side by side."""
    bits = chunks.encoding.plain_item_bits
    if bits is None:
        raise ValueError(f"values encoded as {chunks.encoding} do not lie side by side")
    layout = FullZipLayout(
        values=chunks.encoding,
        layers=levels.layers,
        num_items=levels.num_items,
        num_visible_items=levels.num_visible_items,
        rep_bits=0,
        def_bits=0,
        bits=bits,
        length_bits=None,
    )
    return WrittenPage(layout, [[chunks.buffers[0][0]]], chunks.reason)


def _definition_bits(definition: bytes | None) -> int:
    """Return the bits of a definition level, at least 1 if the page has a stream, even if all levels are 0."""
    return 0 if definition is None else max(1, level_codec.max_level(definition).bit_length())


def _zip(levels: PageLevels, items: EncodedItems, rep_bits: int, def_bits: int) -> list[list[Bytes]]:
    zipping = ZipLayout(
        bits_rep=rep_bits,
        bits_def=def_bits,
        max_repetition=levels.max_repetition,
        max_definition=levels.max_definition,
        max_visible=levels.max_visible_definition,
        width=items.width,
        offset_bits=items.offset_bits,
    )
    repetition = levels.repetition if rep_bits else None
    definition = levels.definition if def_bits else None
    size, rows, _ = zipping.zipped_size(
        levels.num_items,
        items.values,
        repetition=repetition,
        definition=definition,
        offsets=items.offsets,
        wide=items.wide,
    )
    out = allocate(size)
    width = _position_width(size) if items.width is None or rep_bits else 0
    index = allocate((rows + 1) * width) if width else None
    zipping.zip_items(
        levels.num_items,
        items.values,
        out,
        index,
        width,
        repetition=repetition,
        definition=definition,
        offsets=items.offsets,
        wide=items.wide,
    )
    return [[out]] if index is None else [[out], [index]]


def _position_width(size: int) -> int:
    """Return the bytes of a position of up to `size`: 1, 2, 4 or 8."""
    return next(width for width in (1, 2, 4, 8) if size < 1 << (8 * width))


# -- blobs --------------------------------------------------------------------------------------------------------


def blob_page(span: Span, write_buffer: WriteBuffer, large: bool) -> WrittenPage:
    """Write the values of a page to the file, and return a page with their positions and sizes.

    Parameters
    ----------
    span
        Binaries that are not in a list.
    write_buffer
        Appends bytes to the file with alignment.
    large
        True if chunks are described with 32 bits, which is from 2.2 on.
    """
    count = span.levels.num_items
    descriptors = np.zeros((count, 2), np.uint64)
    if span.levels.definition is not None:
        # the position of a null holds the definition level of the null layer, above the bits of its repetition level
        # (0)
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
