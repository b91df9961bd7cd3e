"""Windows of columns: values that a bitmap keeps, texts of a dictionary, texts as codes; outputs or new arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import fsst, take_pages
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_write import Assembly
from lancecodec.take import ColumnTaker
from lancecodec.take_pages import PageTaker
from lancecodec.window import SpareMemory, Window

CHUNK = 1024


def chunked(chunks: list[bytes]) -> Chunks:
    """Return chunks of CHUNK values of one buffer."""
    counts, ends = [CHUNK] * len(chunks), np.cumsum([len(chunk) for chunk in chunks]).tolist()
    plan = Assembly(counts, [(b"".join(chunks), ends)], True)
    words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, data)
    return Chunks(ChunkTable(words, CHUNK * len(chunks), len(data), True), 1, data=data)


def case(page: PageTaker, width: int, share: float, size: int) -> Case:
    """Return the reading of a share of a page; a row that is kept has `size` bytes on average."""
    rows = page.num_rows
    column = ColumnTaker([0, rows], width, lambda _: page)
    mask = None if share == 1 else np.packbits(rng().random(rows) < share, bitorder="little")
    first = Window([column], 0, rows, mask)
    (room,) = first.room()
    assert room is not None
    kept = first.num_rows
    content = bytearray(room[1]) if width < 0 else None
    out = np.empty((kept + 1) * 4 if width < 0 else kept * width, np.uint8)

    def work() -> None:
        window = Window([column], 0, rows, mask)
        window.room()
        window.read([(out, None, content, False, False)])

    return Case(work, kept * size)


def arrays() -> Case:
    """Return the reading of 16 columns of 16 chunks into memory that is used again."""
    rows = 16 * CHUNK
    parts = rng().integers(0, 256, (16, 8 * CHUNK)).astype(np.uint8)
    page = take_pages.fixed_chunks(chunked([part.tobytes() for part in parts]), 8, values.FLAT, 64)
    columns = [ColumnTaker([0, rows], 8, lambda _: page) for _ in range(16)]
    memory = SpareMemory(16 << 20)
    windows = max(VALUES // rows // 16, 1)

    def work() -> None:
        for _ in range(windows):
            Window(columns, 0, rows).arrays([(False, False)] * 16, memory)

    return Case(work, windows * 16 * rows * 8)


def fixed(share: float) -> Case:
    rows = VALUES // CHUNK * CHUNK
    parts = rng().integers(0, 256, (rows // CHUNK, 8 * CHUNK)).astype(np.uint8)
    page = take_pages.fixed_chunks(chunked([part.tobytes() for part in parts]), 8, values.FLAT, 64)
    return case(page, 8, share, 8)


def named(share: float) -> Case:
    rows = VALUES // CHUNK * CHUNK
    sizes = rng().integers(4, 20, 200)
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    codes = rng().integers(0, 200, (rows // CHUNK, CHUNK)).astype(np.uint8)
    page = take_pages.fixed_chunks(
        chunked([part.tobytes() for part in codes]),
        -1,
        values.FLAT,
        8,
        entries=rng().integers(97, 123, int(offsets[-1])).astype(np.uint8),
        offsets=offsets,
        count=200,
    )
    return case(page, -1, share, 12)


def compressed(share: float) -> Case:
    rows = max(VALUES // 16 // CHUNK, 1) * CHUNK
    symbols = bytearray(fsst.TABLE_SIZE)
    fsst.write_table([b"http://w", b"example.", b"com/", b"page"], symbols)
    chunks = []
    for _ in range(rows // CHUNK):
        sizes = rng().integers(2, 12, CHUNK)
        ends = 4 * (CHUNK + 1) + np.append(0, np.cumsum(sizes))
        data = ends.astype(np.int32).tobytes() + rng().integers(0, 4, int(sizes.sum())).astype(np.uint8).tobytes()
        chunks.append(data + b"H" * (-len(data) % 4))
    page = take_pages.text_chunks(chunked(chunks), False, symbol_table=symbols)
    return case(page, -1, share, 42)


CASES: dict[str, Callable[[], Case]] = {
    "window.Window.read, values of 8 bytes, 50%": lambda: fixed(0.5),
    "window.Window.read, texts of a dictionary, 10%": lambda: named(0.1),
    "window.Window.read, FSST, all": lambda: compressed(1),
    "window.Window.arrays, 16 columns": arrays,
}
