"""Pages for tests of compiled takes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lancecodec import bitpacking, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import RepetitionIndex
from lancecodec.miniblock_write import Assembly
from lancecodec.take import ColumnTaker, FragmentTaker, RowTaker, TakenRows
from lancecodec.take_pages import Lists, PageTaker

COUNTS = [64, 64, 32, 8, 5]
ROWS = sum(COUNTS)
CUTS = np.append(0, np.cumsum(COUNTS))
WORDS = ["", "a", "word", "grün", "longer than eight bytes", "x" * 300]


def cut(stream: np.ndarray, counts: Sequence[int] = COUNTS) -> list[np.ndarray]:
    return [stream[low:high] for low, high in itertools.pairwise([0, *np.cumsum(counts).tolist()])]


def chunks_of(
    buffers: Sequence[Sequence[bytes]],
    level_streams: Sequence[Sequence[bytes]] = (),
    counts: Sequence[int] = COUNTS,
) -> Chunks:
    """Return chunks of `counts` values from the bytes of each buffer in every chunk."""

    def joined(parts: Sequence[bytes]) -> tuple[bytes, list[int]]:
        return b"".join(parts), np.cumsum([len(part) for part in parts]).tolist()

    entries = counts if level_streams else None
    plan = Assembly(
        counts, list(map(joined, buffers)), True, levels=entries, level_streams=list(map(joined, level_streams))
    )
    words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, data)
    table = ChunkTable(words, sum(counts), len(data), True)
    two = len(level_streams) > 1
    return Chunks(table, len(buffers), repetition=two, definition=bool(level_streams), data=data)


def inline(part: np.ndarray) -> bytes:
    """Return one block of 1,024 values with its width in front."""
    bits = part.dtype.itemsize * 8
    out = np.zeros(bits // 8 + 128 * bits, np.uint8)
    ends = np.zeros(1, np.int64)
    size = bitpacking.inline_encode(np.ascontiguousarray(part), bits, out, ends)
    return out[: int(ends[0]) if size is None else size].tobytes()


def text_chunk(texts: Sequence[bytes], wide: bool) -> bytes:
    size = 8 if wide else 4
    ends = (len(texts) + 1) * size + np.append(0, np.cumsum([len(text) for text in texts]))
    data = ends.astype(np.int64 if wide else np.int32).tobytes() + b"".join(texts)
    return data + b"H" * (-len(data) % 8)


def import_column(taken: TakenRows, column: int, kind: pa.DataType) -> pa.Array:
    array = pa.Array._import_from_c(taken.column(column), kind)
    array.validate(full=True)
    return array


def rows_of(page: PageTaker | None, rows: Any, kind: pa.DataType, shape: tuple[Any, ...]) -> pa.Array | None:
    """Return rows of a column of that page alone; None for a missing page."""
    total = ROWS if page is None else page.num_rows
    column = ColumnTaker([0, total], shape[0], lambda _: page)
    taker = RowTaker([shape], np.array([0, total]), lambda _: FragmentTaker([column], total, 0))
    taken = taker.numbers(np.array(rows, np.int64))
    taken.decode_all()
    assert taken.missing in ([], [0])
    return None if taken.missing else import_column(taken, 0, kind)


def list_page(entries: list[tuple[int, int]], stored: list[int], required: bool = False) -> PageTaker | None:
    """Return a page of lists in chunks of 64 values, each with the entries up to those of the next chunk."""
    owners = np.cumsum([definition < 2 for _, definition in entries])
    counts = [64] * (len(stored) // 64) + [len(stored) % 64] * (len(stored) % 64 > 0)
    if len(counts) > 1 and counts[-1] == 64:
        counts[-1] = 64
    edges = [0, *np.searchsorted(owners, np.cumsum(counts)[:-1] + 1).tolist(), len(entries)]
    rep, dfn, data, per_chunk = [], [], [], []
    numbers, first = np.array(stored, np.uint16), 0
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        part = np.array(entries[low:high], np.uint16).reshape(-1, 2)
        rep.append(np.ascontiguousarray(part[:, 0]).tobytes())
        dfn.append(np.ascontiguousarray(part[:, 1]).tobytes())
        data.append(numbers[first : first + count].tobytes())
        per_chunk.append(high - low)
        first += count

    def joined(parts: list[bytes]) -> tuple[bytes, list[int]]:
        return b"".join(parts), np.cumsum([len(part) for part in parts]).tolist()

    plan = Assembly(counts, [joined(data)], True, levels=per_chunk, level_streams=[joined(rep), joined(dfn)])
    words, page = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, page)
    table = ChunkTable(words, len(stored), len(page), True)
    chunks = Chunks(table, 1, repetition=True, definition=True, data=page)
    starts = np.array([rep_level for rep_level, _ in entries])
    started = np.array([int(starts[:stop].sum()) for stop in edges[1:]])
    open_ = [stop < len(entries) and starts[stop] == 0 for stop in edges[1:]]
    pairs = np.stack([np.diff(started - open_, prepend=0), open_], 1).astype(np.uint64)
    index = RepetitionIndex(pairs, len(counts), int(starts.sum()))
    lists = Lists(
        index.started, (levels.FLAT, 0), null_items=True, null_lists=True, empty_lists=True, required=required
    )
    return take_pages.fixed_chunks(chunks, 2, values.FLAT, 16, definition=(levels.FLAT, 0), lists=lists)
