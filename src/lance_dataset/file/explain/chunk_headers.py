"""Headers of all chunks of a mini-block page, which hold the sizes of levels and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_dataset.errors import CorruptFileError
from lance_dataset.file.structural.layout import MiniBlockLayout
from lance_dataset.file.structural.read.page import Page
from lance_dataset.file.v2_1.pre.layout import PreLayout
from lancecodec import CodecError
from lancecodec.miniblock import ChunkTable

__all__ = ["ChunkSizes", "read_chunk_sizes"]

_MOST_BUFFERS = 1000
#: Header of chunks from before 2.1 was stable.
_EARLY_HEADER = np.dtype([("repetition", "<u2"), ("definition", "<u2"), ("values", "<u2", (1,))])


@dataclass(frozen=True)
class ChunkSizes:
    """Contents of the chunks of a page.

    Attributes
    ----------
    counts
        Values of each chunk.
    level_bytes
        Bytes of repetition and definition levels in all chunks.
    values
        Bytes of each value buffer, by chunk and buffer.
    """

    counts: NDArray[np.int64]
    level_bytes: int
    values: NDArray[np.int64]


def read_chunk_sizes(page: Page, layout: MiniBlockLayout, num_items: int) -> ChunkSizes:
    """Read the chunk words and chunk headers only.

    Raises
    ------
    CorruptFileError
        The chunk words and headers contradict each other.
    """
    page_buffers = len(page.buffers)
    if page_buffers < 2:
        raise CorruptFileError(f"{page.where}: has {page_buffers} buffers, chunks need 2")
    try:
        table = ChunkTable(page.read(0), num_items, page.size_of(1), layout.large)
    except CodecError as error:
        raise CorruptFileError(f"{page.where}: {error}") from error
    starts = np.asarray(table.starts)
    if layout.num_buffers > _MOST_BUFFERS:
        raise CorruptFileError(f"{page.where}: chunks with {layout.num_buffers} value buffers")
    early = isinstance(page.layout, PreLayout) and page.layout.early_chunks
    header = _EARLY_HEADER if early else _header_type(layout)
    if (np.diff(starts) < header.itemsize).any():
        raise CorruptFileError(f"{page.where}: a chunk is smaller than its header of {header.itemsize} bytes")
    headers = _read_headers(page, starts[:-1], header)
    present = [name for name in ("repetition", "definition") if name in (header.names or ())]
    levels = sum([int(headers[name].sum(dtype=np.int64)) for name in present])
    values = headers["values"].astype(np.int64).reshape(len(headers), layout.num_buffers)
    return ChunkSizes(np.diff(np.asarray(table.firsts)), levels, values)


def _header_type(layout: MiniBlockLayout) -> np.dtype:
    fields: list[tuple] = [("levels", "<u2")]
    fields += [("repetition", "<u2")] if layout.rep is not None else []
    fields += [("definition", "<u2")] if layout.definition is not None else []
    return np.dtype([*fields, ("values", "<u4" if layout.large else "<u2", (layout.num_buffers,))])


def _read_headers(page: Page, starts: NDArray[np.int64], header: np.dtype) -> NDArray:
    size = header.itemsize
    if page.is_mapped:  # only the memory pages with the headers are touched
        data = np.frombuffer(page.read(1), np.uint8)
        return data[starts[:, None] + np.arange(size)].reshape(-1).view(header)
    position = page.buffers[1][0]
    ranges = [(position + start, size) for start in starts.tolist()]
    return np.frombuffer(b"".join(memoryview(part) for part in page.source.read_ranges(ranges)), header)
