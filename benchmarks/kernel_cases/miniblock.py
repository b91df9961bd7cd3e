"""Pages of mini-blocks: decoding of whole pages, lookup of single values, assembly of chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import fsst, variable
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import FLAT as FLAT_LEVELS
from lancecodec.miniblock_levels import Levels
from lancecodec.miniblock_values import FLAT, INLINE, RLE, FixedValues, VariableValues
from lancecodec.miniblock_write import Assembly

__all__ = ["CASES"]

#: 64 MiB of 32-bit values.
LARGE = 1 << 24
#: Number of values in a typical page.
PAGE = 1 << 20
CHUNK = 1024


def page(n: int, chunk: int, buffers: Sequence[tuple[np.ndarray, np.ndarray]]) -> Chunks:
    """Return chunks of `chunk` values, from value buffers with their ends."""
    counts = np.full(n // chunk, chunk, np.int64)
    plan = Assembly(counts, list(buffers), True)
    words, chunks = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(words, chunks)
    return Chunks(ChunkTable(words, n, plan.chunks_size, True), len(buffers), data=chunks)


def ends(n: int, chunk: int, size: int) -> np.ndarray:
    return np.arange(1, n // chunk + 1, dtype=np.int64) * size


def flat(n: int) -> FixedValues:
    values = rng().integers(0, 2**31, n).astype(np.int32)
    return FixedValues(page(n, CHUNK, [(values, ends(n, CHUNK, 4 * CHUNK))]), FLAT, 32)


def inline(n: int) -> FixedValues:
    """Return values packed to 13 bits."""
    block = np.append(np.uint32(13), rng().integers(0, 2**32, 32 * 13).astype(np.uint32))
    packed = np.tile(block, n // CHUNK)
    return FixedValues(page(n, CHUNK, [(packed, ends(n, CHUNK, block.nbytes))]), INLINE, 32)


def rle(n: int) -> FixedValues:
    """Return values in runs of 16."""
    runs, chunk = 256, 4096
    values = rng().integers(0, 2**31, runs * (n // chunk)).astype(np.int32)
    lengths = np.full(runs * (n // chunk), 16, np.uint8)
    buffers = [(values, ends(n, chunk, 4 * runs)), (lengths, ends(n, chunk, runs))]
    return FixedValues(page(n, chunk, buffers), RLE, 32)


def scan(column: FixedValues, n: int) -> Case:
    out = np.zeros(n, np.int32)
    return Case(lambda: column.scan(0, n, out), out.nbytes)


def take(column: FixedValues) -> Case:
    items, out = np.sort(rng().integers(0, PAGE, 1000)), np.zeros(1000, np.int32)
    return Case(lambda: column.take(items, out), out.nbytes)


def dictionary() -> Case:
    column, out, entries = inline(LARGE), np.zeros(LARGE, np.int64), rng().integers(0, 2**62, 1 << 13)
    return Case(lambda: column.scan_dictionary(0, LARGE, entries, 8, len(entries), out), out.nbytes)


def text(n: int, compressed: bool) -> VariableValues:
    """Return strings of 20 bytes on average, in chunks of the size that the reference uses."""
    random = rng()
    sizes = random.integers(10, 31, n)
    words = np.frombuffer(b"".join(b"%07d" % i for i in random.integers(0, 5000, 400)), np.uint8)
    data = np.resize(words, int(sizes.sum()))
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    table = None
    if compressed:
        table = np.zeros(fsst.TABLE_SIZE, np.uint8)
        fsst.build(data, offsets, False, n, table)
        coded, places = np.zeros(fsst.encode_bound(len(data)), np.uint8), np.zeros(n + 1, np.int32)
        size = fsst.Encoder(fsst.SymbolTable(table)).encode(data, offsets, False, n, False, places, coded)
        offsets, data = places, coded[:size]
    bound = variable.plan_bound(n)
    counts, stops = np.zeros(bound, np.int64), np.zeros(bound, np.int64)
    chunks = variable.plan(offsets, False, n, False, counts, stops)
    counts, stops = counts[:chunks], stops[:chunks]
    stored = np.zeros(int(stops[-1]), np.uint8)
    variable.encode(offsets, False, data, n, False, counts, stops, stored)
    plan = Assembly(counts, [(stored, stops)], True)
    first, second = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(first, second)
    return VariableValues(Chunks(ChunkTable(first, n, plan.chunks_size, True), data=second), False, table)


def scan_text(n: int, compressed: bool, passes: int) -> Case:
    column = text(n, compressed)
    offsets = np.zeros(n + 1, np.int32)
    size = column.scan_offsets(0, n, False, offsets)
    out = np.zeros(size + (1 << 16), np.uint8)

    def two() -> None:
        column.scan_offsets(0, n, False, offsets)
        column.scan_bytes(0, n, out)

    return Case(two if passes == 2 else lambda: column.scan(0, n, False, offsets, out), size + offsets.nbytes)


def take_text(compressed: bool) -> Case:
    column = text(PAGE, compressed)
    items, offsets = np.sort(rng().integers(0, PAGE, 1000)), np.zeros(1001, np.int32)
    out = np.zeros(column.take_offsets(items, False, offsets), np.uint8)

    def work() -> None:
        column.take_offsets(items, False, offsets)
        column.take_bytes(items, out)

    return Case(work, out.nbytes + offsets.nbytes)


def levels() -> Case:
    n, values = LARGE, np.zeros(LARGE, np.uint8)
    nulls, out = (rng().random(LARGE) < 0.1).astype(np.uint16), np.zeros(LARGE, np.uint16)
    counts = np.full(n // CHUNK, CHUNK, np.int64)
    streams = [(nulls, ends(n, CHUNK, 2 * CHUNK))]
    plan = Assembly(counts, [(values, ends(n, CHUNK, CHUNK))], True, levels=counts, level_streams=streams)
    words, chunks = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(words, chunks)
    opened = Chunks(ChunkTable(words, n, plan.chunks_size, True), definition=True, data=chunks)
    column = Levels(opened, definition=(FLAT_LEVELS, 0), max_definition=1, max_visible=1)
    return Case(lambda: column.scan(0, n // CHUNK, None, out), out.nbytes)


def assemble() -> Case:
    values = rng().integers(0, 2**31, LARGE).astype(np.int32)
    counts, stops = np.full(LARGE // CHUNK, CHUNK, np.int64), ends(LARGE, CHUNK, 4 * CHUNK)
    plan = Assembly(counts, [(values, stops)], True)
    words, chunks = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    return Case(lambda: Assembly(counts, [(values, stops)], True).write(words, chunks), values.nbytes)


def open_table() -> Case:
    words = np.full(PAGE // CHUNK, 513 << 4 | 10, np.uint32)
    return Case(lambda: ChunkTable(words, PAGE, 514 * 8 * len(words), True), words.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "miniblock.scan, flat 32": lambda: scan(flat(LARGE), LARGE),
    "miniblock.scan, inline 32 of 13": lambda: scan(inline(LARGE), LARGE),
    "miniblock.scan, rle 32, runs of 16": lambda: scan(rle(LARGE), LARGE),
    "miniblock.scan_dictionary, 64 bits": dictionary,
    "miniblock.scan, strings of 20": lambda: scan_text(LARGE // 6, False, 1),
    "miniblock.scan, strings of 20, two passes": lambda: scan_text(LARGE // 6, False, 2),
    "miniblock.scan, strings of 20, fsst": lambda: scan_text(LARGE // 6, True, 1),
    "miniblock.scan, strings of 20, fsst, two passes": lambda: scan_text(LARGE // 6, True, 2),
    "miniblock.take, flat 32, 1000 of 1M": lambda: take(flat(PAGE)),
    "miniblock.take, inline 32, 1000 of 1M": lambda: take(inline(PAGE)),
    "miniblock.take, rle 32, 1000 of 1M": lambda: take(rle(PAGE)),
    "miniblock.take, strings, 1000 of 1M": lambda: take_text(False),
    "miniblock.take, strings, fsst, 1000 of 1M": lambda: take_text(True),
    "miniblock.levels, flat 16": levels,
    "miniblock.Assembly, flat 32": assemble,
    "miniblock.ChunkTable, 1024 chunks": open_table,
}
