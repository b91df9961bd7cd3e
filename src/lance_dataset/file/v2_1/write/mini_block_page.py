"""Pages of chunks: values, levels and the repetition index put together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_dataset.file.buffers import allocate
from lance_dataset.file.v2_1.layout import MiniBlockLayout
from lance_dataset.file.v2_1.write.encoded import Bytes, EncodedChunks
from lance_dataset.file.v2_1.write.level_streams import LevelStream, encode_levels
from lance_dataset.file.v2_1.write.page_levels import PageLevels
from lance_dataset.file.v2_1.write.request import steps
from lance_dataset.file.v2_1.write.written import WrittenPage
from lancecodec import levels as level_codec
from lancecodec.miniblock_write import Assembly

__all__ = ["ChunkLimitError", "mini_block_page"]

_MAX_LEVELS = 65_535
_MAX_STREAM_BYTES = 65_535
_SMALL_CHUNK_BYTES = 32 << 10
_INDEX_ENTRY_BYTES = 16


class ChunkLimitError(Exception):
    """Too many levels for a chunk: fewer rows have fewer of them."""


def mini_block_page(levels: PageLevels, chunks: EncodedChunks, large: bool) -> WrittenPage:
    """Put a mini-block page together.

    Parameters
    ----------
    levels
        Of the page.
    chunks
        Its values.
    large
        Whether chunks are described with 32 bits, as from 2.2 on.

    Raises
    ------
    ChunkLimitError
        The levels between the values of a chunk are too many for it.
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
    """Repetition and definition levels, None for one the page does not have."""
    raw = (levels.repetition, levels.definition)
    if any(stream is not None for stream in raw) and largest > _MAX_LEVELS:
        raise ChunkLimitError
    streams = [None if stream is None else encode_levels(stream, ends, runs=large) for stream in raw]
    for stream in streams:
        if stream is not None and int(steps(stream.ends).max()) > _MAX_STREAM_BYTES:
            raise ChunkLimitError
    return streams


def _check_small(chunks: EncodedChunks, streams: list[LevelStream]) -> None:
    """Levels must not make a chunk larger than 16-bit words can say; values alone never do."""
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
