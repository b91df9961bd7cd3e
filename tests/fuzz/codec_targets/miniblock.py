from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import Levels, RepetitionIndex, row_starts
from lancecodec.miniblock_values import FixedValues, VariableValues, check_indices
from lancecodec.miniblock_write import Assembly


def room(c: Chaos, size: int) -> Any:
    """Return an output for the request, unless that is absurd."""
    return c.out(min(size, 100_000))


def counts_of(c: Chaos) -> list[int]:
    """Return numbers of values per chunk, as a writer may choose them."""
    regular = c.flag()
    log = c.random.randint(1, 9)
    full = [1 << (log if regular else c.random.randint(1, 9)) for _ in range(c.random.choice([0, 1, 5]))]
    return [*full, c.random.randint(1, 600)]


def chunk_buffers(c: Chaos, kind: int, bits: int, n: int) -> list[bytes]:
    """Return the value buffers of a chunk of n values."""
    if kind == values.INLINE:
        width = c.random.randint(0, bits)
        return [width.to_bytes(bits // 8, "little") + c.content(128 * width).tobytes()]
    if kind == values.RLE:
        lengths = [255] * (n // 255) + [n % 255] * (n % 255 > 0)
        return [c.content(bits // 8 * len(lengths)).tobytes(), bytes(lengths)]
    return [c.content((n * bits + 7) // 8).tobytes()]


def text_buffer(c: Chaos, n: int, wide: bool) -> list[bytes]:
    sizes = c.rng.integers(0, 30, n)
    ends = np.append(0, np.cumsum(sizes)) + (n + 1) * (8 if wide else 4)
    data = bytes(ends.astype(np.int64 if wide else np.int32).tobytes()) + c.content(int(sizes.sum())).tobytes()
    return [data + b"H" * (-len(data) % 8)]


def level_buffers(c: Chaos, kind: int, n: int, top: int) -> bytes:
    if kind == levels.RLE:
        lengths = bytes([255] * (n // 255) + [n % 255] * (n % 255 > 0))
        return struct.pack("<Q", 2 * len(lengths)) + bytes(2 * len(lengths)) + lengths
    return c.rng.integers(0, top + 1, n).astype(np.uint16).tobytes()


def joined(chunks: list[list[bytes]]) -> list[tuple[bytes, list[int]]]:
    streams = [list(stream) for stream in zip(*chunks, strict=True)]
    return [(b"".join(stream), np.cumsum([len(part) for part in stream]).tolist()) for stream in streams]


def opened(c: Chaos, chunks: list[list[bytes]], counts: list[int], **level_streams: Any) -> Chunks:
    """Return a page of such chunks, usually with some damage."""
    large = c.flag()
    plan = Assembly(counts, joined(chunks), large, **{k: v for k, v in level_streams.items() if v})
    words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, data)
    words = c.damaged(words, 0.05)
    streams = len(level_streams.get("level_streams") or [])
    table = ChunkTable(words, sum(counts) if c.flag(0.95) else c.number(5000), len(data), large)
    page = Chunks(table, len(chunks[0]), definition=streams > 0, repetition=streams > 1, wrapped=c.flag(0.1))
    damaged = c.damaged(data, 0.6)
    for chunk in range(table.num_chunks):
        begin, end = table.starts[chunk], table.starts[chunk + 1]
        if c.flag(0.98) and len(damaged) >= end:
            page.load(damaged[begin:end].copy(), chunk)
            if c.flag(0.1):
                page.replace(chunk, c.damaged(page.stored(chunk)))
    return page


def fixed(c: Chaos) -> object:
    kind = c.random.choice([values.FLAT, values.INLINE, values.RLE, values.SPLIT])
    bits = c.random.choice([32, 64] if kind == values.SPLIT else [8, 16, 32, 64])
    bits = c.random.choice([1, 4, 24, 128, bits]) if kind == values.FLAT else bits
    counts = counts_of(c)
    column = FixedValues(opened(c, [chunk_buffers(c, kind, bits, n) for n in counts], counts), kind, bits)
    start, stop = sorted([c.number(sum(counts)), c.number(sum(counts))])
    at = c.number(3)
    what = c.random.randint(0, 3)
    items = c.integers(sum(counts))
    validity = c.out(600) if c.flag() else None
    if what == 0:
        return column.scan(start, stop, room(c, ((stop - start + at) * bits + 7) // 8), at)
    if what == 1:
        return column.take(items, room(c, ((len(items) + at) * bits + 7) // 8), at)
    entries, count = c.out(300 * 5), c.random.choice([2, 300])
    if what == 2:
        out = room(c, (stop - start + at) * 5)
        return column.scan_dictionary(start, stop, entries, 5, count, out, at, validity, c.number(5))
    return column.take_dictionary(items, entries, 5, count, room(c, (len(items) + at) * 5), at, validity, c.number(5))


def symbol_table(c: Chaos) -> np.ndarray:
    table = bytearray(2312)
    count = c.random.choice([3, 40, 255])
    table[0], table[3], table[4:8] = count, c.flag(0.9), b"TSSF"
    table[8 : 8 + 8 * count] = c.content(8 * count).tobytes()
    table[8 + 8 * count : 8 + 9 * count] = c.rng.integers(1, 9, count).astype(np.uint8).tobytes()
    return c.damaged(table, 0.1)


def variable(c: Chaos) -> object:
    counts, wide, out_wide = counts_of(c), c.flag(), c.flag()
    page = opened(c, [text_buffer(c, n, wide) for n in counts], counts)
    column = VariableValues(page, wide, symbol_table(c) if c.flag() else None)
    start, stop = sorted([c.number(sum(counts)), c.number(sum(counts))])
    width, items = 8 if out_wide else 4, c.integers(sum(counts))
    base = c.number(100)
    if c.flag(0.1):
        return column.estimate(start, stop)
    if c.flag(0.3):
        return column.scan(
            start, stop, out_wide, room(c, width * (stop - start + 1)), c.out(c.random.choice([50, 9000]))
        )
    if c.flag():
        size = column.scan_offsets(start, stop, out_wide, room(c, width * (stop - start + 1)), base)
        return column.scan_bytes(start, stop, room(c, size))
    size = column.take_offsets(items, out_wide, c.out(width * (len(items) + 1)), base)
    if len(np.unique(items)) == len(items) and (np.diff(items) > 0).all():
        assert size <= column.most_bytes
    return column.take_bytes(items, room(c, size))


def decode_levels(c: Chaos) -> object:
    counts = counts_of(c)
    streams, top = c.random.choice([1, 2]), c.random.randint(1, 5)
    kind = c.random.choice([levels.FLAT, levels.FLAT, levels.RLE])
    parts = [[level_buffers(c, kind, n, top) for _ in range(streams)] for n in counts]
    page = opened(c, [[b""] for _ in counts], counts, levels=counts, level_streams=joined(parts))
    codec = (kind, 0) if c.flag(0.8) else (c.random.choice([levels.INLINE, levels.OUT_OF_LINE, 9]), c.number(16))
    column = Levels(
        page,
        repetition=codec if streams > 1 else None,
        definition=codec,
        max_repetition=top,
        max_definition=top,
        max_visible=c.random.choice([top, 0]),
    )
    first, stop = (0, len(counts)) if c.flag(0.8) else (c.number(9), c.number(9))
    total = column.begins(first, stop)[-1]
    return column.scan(first, stop, room(c, 2 * total) if streams > 1 else None, room(c, 2 * total))


def rows(c: Chaos) -> object:
    n = c.number(500)
    stream = c.rng.integers(0, 3, 500).astype(np.uint16)
    entries, slots = np.zeros(c.random.choice([0, 1, 600]), np.int64), np.zeros(600, np.int64)
    return row_starts(stream, stream[:n] if c.flag() else None, n, c.random.randint(0, 2), 1, entries, slots)


def index(c: Chaos) -> object:
    pairs = np.stack([c.rng.integers(0, 9, 30), c.rng.integers(0, 2, 30)], 1)
    pairs[-1, 1] = 0
    total = int(pairs[:, 0].sum()) if c.flag(0.9) else c.number(200)
    made = RepetitionIndex(c.damaged(pairs.astype(np.uint64), 0.3), 30, total)
    return made.chunk_range(c.number(total), c.number(total))


def assembly(c: Chaos) -> object:
    counts = counts_of(c) if c.flag(0.9) else c.integers(600).tolist()
    stops = np.sort(c.integers(900, len(counts)))
    data = c.out(min(int(stops[-1]), 10_000) if len(stops) else 0)
    plan = Assembly(counts, [(data, stops)] * c.random.choice([0, 1, 3, 17]), c.flag(), full=c.number(600))
    return plan.write(c.out(plan.words_size), c.out(plan.chunks_size))


def indices(c: Chaos) -> object:
    bits, n = c.random.choice([8, 16, 32, 64, 24]), c.number(300)
    return check_indices(c.out(300 * 8), bits, n, c.number(300), c.out(60) if c.flag() else None, c.number(9))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "miniblock.FixedValues": fixed,
    "miniblock.VariableValues": variable,
    "miniblock.Levels": decode_levels,
    "miniblock.row_starts": rows,
    "miniblock.RepetitionIndex": index,
    "miniblock.Assembly": assembly,
    "miniblock.check_indices": indices,
}
