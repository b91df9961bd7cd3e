from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa

from codec_targets.chaos import Chaos
from codec_targets.miniblock import chunk_buffers, counts_of, joined, level_buffers, opened, symbol_table, text_buffer
from lancecodec import CodecError, take, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import RepetitionIndex
from lancecodec.miniblock_write import Assembly
from lancecodec.take import ADDRESSES, ColumnTaker, FragmentTaker, RowTaker, TakenRows
from lancecodec.take_pages import Lists, PageTaker


def found(look: Callable[[np.ndarray], TakenRows], wanted: np.ndarray) -> TakenRows:
    """Return rows, possibly outside the table."""
    try:
        return look(wanted)
    except IndexError as error:
        raise CodecError(str(error)) from error


def level_streams(c: Chaos, counts: list[int]) -> tuple[dict[str, object], tuple[int, int] | None]:
    if c.flag():
        return {}, None
    kind = c.random.choice([levels.FLAT, levels.RLE])
    parts = [[level_buffers(c, kind, n, 1)] for n in counts]
    return {"levels": counts, "level_streams": joined(parts)}, (kind, 0)


def fixed(c: Chaos) -> PageTaker:
    """Return a page of numbers or of indices."""
    counts = counts_of(c)
    streams, definition = level_streams(c, counts)
    kind, bits = c.random.choice([values.FLAT, values.INLINE, values.RLE]), c.random.choice([8, 16, 32, 64])
    page = opened(c, [chunk_buffers(c, kind, bits, n) for n in counts], counts, **streams)
    if c.flag():
        return take_pages.fixed_chunks(page, bits // 8, kind, bits, definition=definition)
    count = c.random.choice([2, 300])
    if c.flag():
        return take_pages.fixed_chunks(page, 5, kind, bits, definition=definition, entries=c.out(300 * 5), count=count)
    if c.flag():
        stored = c.damaged(np.array([32, 8 + 4 * 301, *range(301)], np.int32), 0.2)
        block = b"".join([memoryview(stored).tobytes(), bytes(300)])
        return take_pages.indexed_chunks(page, -1, kind, bits, block, count, wide=c.flag(), definition=definition)
    ends = c.damaged(np.arange(301, dtype=np.int32) * 3, 0.2)
    return take_pages.fixed_chunks(
        page, -1, kind, bits, definition=definition, entries=c.content(900), offsets=ends, count=count
    )


def texts(c: Chaos) -> PageTaker:
    counts, wide = counts_of(c), c.flag()
    streams, definition = level_streams(c, counts)
    page = opened(c, [text_buffer(c, n, wide) for n in counts], counts, **streams)
    return take_pages.text_chunks(page, wide, symbol_table=symbol_table(c) if c.flag() else None, definition=definition)


def zipped(c: Chaos) -> PageTaker:
    rows, bits_def = c.random.randint(1, 50), c.random.randint(0, 1)
    if c.flag():
        width = c.random.choice([0, 1, 8, 24])
        size = rows * (bits_def + max(width, 1)) - c.flag(0.1)
        return take_pages.zipped(c.content(max(size, 0)), rows, width, bits_def=bits_def)
    sizes = c.rng.integers(0, 20, rows)
    items = [bytes(bits_def) + int(size).to_bytes(4, "little") + bytes(int(size)) for size in sizes]
    index = np.append(0, np.cumsum([len(item) for item in items])).astype(np.uint32)
    table = symbol_table(c) if c.flag(0.2) else None
    return take_pages.zipped(
        c.damaged(np.frombuffer(b"".join(items), np.uint8), 0.4),
        rows,
        -1,
        bits_def=bits_def,
        index=c.damaged(index, 0.2),
        index_width=4,
        offset_bits=32,
        symbol_table=table,
    )


def constant(c: Chaos) -> PageTaker:
    rows = c.random.randint(1, 50)
    definition = c.rng.integers(0, 2 + c.flag(0.1), rows).astype(np.uint16) if c.flag() else None
    if c.flag(0.3):
        return take_pages.nulls(rows, c.random.choice([-1, 0, 8]))
    return take_pages.constant(rows, *c.random.choice([(-1, b"text"), (0, b"\1"), (4, b"1234")]), definition=definition)


def rows(c: Chaos) -> object:
    """Take rows of a few fragments of such pages."""
    made = [c.random.choice([fixed, texts, zipped, constant])(c) for _ in range(c.random.randint(1, 4))]
    shapes = sorted(set(map(width_of, made)))
    width = c.random.choice(shapes)
    mine = [page for page in made if width_of(page) == width and page.num_rows]
    if not mine:
        raise CodecError("no page")
    starts = np.append(0, np.cumsum([page.num_rows for page in mine])).tolist()
    column = ColumnTaker(starts, width, lambda number: mine[number] if c.flag(0.98) else None)
    total = starts[-1]
    deleted = np.flatnonzero(c.rng.random(total) < 0.2) if c.flag() else None
    live = total - (0 if deleted is None else len(deleted))
    if deleted is not None:
        deleted = c.damaged(deleted, 0.1)
    fragments = c.random.randint(1, 3)
    text = width < 0 and c.flag()
    taker = RowTaker(
        [(width, False, text, (), 0), (8, False, False, (), 0)],
        np.arange(fragments + 1) * live,
        lambda position: FragmentTaker([column, ADDRESSES], total, position, deleted),
    )
    taken = found(taker.numbers, c.integers(live * fragments)) if c.flag() else found(taker.places, c.integers(total))
    taken.decode_all()
    if 0 in taken.missing:
        return None
    kind = pa.binary() if width < 0 else pa.bool_() if width == 0 else pa.binary(width)
    array = pa.Array._import_from_c(taken.column(0), kind)
    array.validate(full=True)
    return array


def list_page(c: Chaos) -> PageTaker:
    """Return a page of lists."""
    counts = counts_of(c)
    n = sum(counts)
    starts = c.rng.random(n) < c.random.choice([0.01, 0.3, 0.9])
    starts[0] = True
    edges = np.append(0, np.cumsum(counts))
    parts = list(pairwise(edges))
    streams = [
        [starts[a:b].astype(np.uint16).tobytes(), c.rng.integers(0, 2, b - a).astype(np.uint16)] for a, b in parts
    ]
    numbers = [[c.content(4 * (b - a)).tobytes()] for a, b in parts]
    level_parts = joined([[rep, bytes(definition)] for rep, definition in streams])
    page = opened(c, numbers, counts, levels=counts, level_streams=level_parts)
    started = np.array([int(starts[:stop].sum()) for stop in edges[1:]])
    within = np.append(~starts[edges[1:-1]], False)
    pairs = np.stack([np.diff(started - within, prepend=0), within], 1).astype(np.uint64)
    index = RepetitionIndex(c.damaged(pairs, 0.1), len(counts), int(starts.sum()))
    kinds = {"null_items": c.flag(0.8), "null_lists": c.flag(), "empty_lists": c.flag(), "required": c.flag(0.2)}
    if not any(list(kinds.values())[:3]):
        kinds["null_items"] = True
    described = Lists(index.started, (levels.FLAT, 0), **kinds)
    return take_pages.fixed_chunks(page, 4, values.FLAT, 32, definition=(levels.FLAT, 0), lists=described)


def plain_list_page(c: Chaos) -> PageTaker:
    """Return a page of lists without definition levels."""
    n = c.random.randint(1, 40)
    starts = c.rng.random(n) < 0.5
    starts[0] = True
    rep, numbers = starts.astype(np.uint16).tobytes(), c.content(4 * n).tobytes()
    plan = Assembly([n], [(numbers, [len(numbers)])], True, levels=[n], level_streams=[(rep, [len(rep)])])
    words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, data)
    page = Chunks(ChunkTable(words, n, len(data), True), 1, repetition=True, data=c.damaged(data, 0.2))
    described = Lists(np.array([0, int(starts.sum())]), (levels.FLAT, 0))
    return take_pages.fixed_chunks(page, 4, values.FLAT, 32, lists=described)


def lists(c: Chaos) -> object:
    """Take rows of lists of some pages."""
    made = [c.random.choice([list_page, plain_list_page])(c) for _ in range(c.random.randint(1, 3))]
    made = [page for page in made if page.num_rows]
    if not made:
        raise CodecError("no rows")
    starts = np.append(0, np.cumsum([page.num_rows for page in made]))
    total = int(starts[-1])
    column = ColumnTaker(starts.tolist(), 4, lambda number: made[number])
    taker = RowTaker([(4, False, False, (), 4)], np.array([0, total]), lambda _: FragmentTaker([column], total, 0))
    taken = found(taker.numbers, c.integers(total))
    taken.decode_all()
    if taken.missing:
        return None
    array = pa.Array._import_from_c(taken.column(0), pa.list_(pa.uint32()))
    array.validate(full=True)
    return array


def width_of(page: PageTaker) -> int:
    """Return the width that a column must have for the page, found by trial."""
    for width in (-1, 0, 1, 2, 4, 5, 8, 24):
        taker = RowTaker(
            [(width, False, False, (), 0)],
            np.array([0, max(page.num_rows, 1)]),
            lambda _, width=width: FragmentTaker(
                [ColumnTaker([0, max(page.num_rows, 1)], width, lambda _: page)], max(page.num_rows, 1), 0
            ),
        )
        try:
            taker.numbers(np.array([0]))
        except CodecError:
            continue
        return width
    return -1


def integers(c: Chaos) -> object:
    pool = [1, 0, -1, 2**63, 2**63 - 1, True, None, 1.5, "1", 10**30]
    return take.integers([c.random.choice(pool[: c.random.choice([2, 10])]) for _ in range(c.random.randint(0, 20))])


TARGETS: dict[str, Callable[[Chaos], object]] = {"take.rows": rows, "take.lists": lists, "take.integers": integers}
