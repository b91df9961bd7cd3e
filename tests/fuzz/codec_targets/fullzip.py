from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.fullzip import ZipLayout, index_width, row_ranges, row_span


def layout_of(c: Chaos, **more: Any) -> ZipLayout:
    lists, nulls = c.flag(), c.flag()
    bits = [(1, 2), (3, 9), (9, 12)]
    bits_rep, bits_def = c.random.choice(bits)
    return ZipLayout(
        bits_rep=bits_rep if lists else 0,
        bits_def=bits_def if nulls else 0,
        max_repetition=int(lists),
        max_definition=3 if nulls else 0,
        max_visible=1 if nulls else 0,
        **more,
    )


def zipped(c: Chaos) -> tuple[ZipLayout, bool, Any, np.ndarray, int]:
    """Return a layout, and items zipped with it, usually damaged."""
    variable = c.flag()
    layout = layout_of(c, **({"offset_bits": c.random.choice([32, 64])} if variable else {"width": c.number(9)}))
    n = c.random.choice([1, 2, 100])
    rep, dfn = (c.rng.integers(0, top, n).astype(np.uint16) for top in (2, 4))
    rep[0] = 1
    offsets = np.append(0, np.cumsum(c.rng.integers(0, 20, n))).astype(np.int64) if variable else None
    values = c.content(int(offsets[-1]) if offsets is not None else 9 * n)
    out, index = np.zeros(40 * n, np.uint8), np.zeros(n + 1, np.uint32)
    for streams in ((rep, dfn), (rep, None), (None, dfn), (None, None)):
        try:
            size, rows = layout.zip_items(
                n, values, out, index, 4, repetition=streams[0], definition=streams[1], offsets=offsets, wide=True
            )
        except ValueError:
            continue
        return layout, variable, c.damaged(out[:size], 0.6), index[: rows + 1], rows
    raise ValueError("no items")


def unzip(c: Chaos) -> object:
    layout, variable, data, index, rows = zipped(c)
    picked = c.integers(rows)
    begins, ends = np.zeros(len(picked), np.int64), np.zeros(len(picked), np.int64)
    if c.flag(0.3):
        begins, ends = np.array([0]), np.array([len(data)])
    else:
        row_ranges(c.damaged(index, 0.1), 4, picked, len(data), begins, ends)
    items, visible, _, size = layout.count(data, begins, ends)
    rep, dfn = (c.out(min(2 * items, 10_000)) if c.flag() else None for _ in range(2))
    if variable:
        wide = c.flag()
        places = c.out((visible + 1) * (8 if wide else 4))
        return layout.unzip_variable(
            data, begins, ends, wide, places, c.out(min(size, 100_000)), repetition=rep, definition=dfn
        )
    return layout.unzip_fixed(data, begins, ends, c.out(min(size, 100_000)), repetition=rep, definition=dfn)


def fixed(c: Chaos) -> object:
    layout, _, data, _, _ = zipped(c)
    items = c.integers(len(data) // (layout.item_size or 1))
    if c.flag():
        return layout.take_fixed(data, items, c.out(len(items) * 9), c.out(2 * len(items)) if c.flag() else None)
    start, stop = sorted([c.number(100), c.number(100)])
    return layout.scan_fixed(
        data, start, stop, c.out(min(9 * (stop - start), 10_000)), c.out(200) if c.flag() else None
    )


def zip_items(c: Chaos) -> object:
    variable = c.flag()
    layout = layout_of(c, **({"offset_bits": 32} if variable else {"width": c.number(9)}))
    n = c.number(60)
    rep, dfn = (c.rng.integers(0, 3, 60).astype(np.uint16) if c.flag() else None for _ in range(2))
    offsets = np.cumsum(c.rng.integers(0, 9, 61)).astype(np.int32) if variable else None
    if offsets is not None and c.flag(0.2):
        offsets[c.random.randrange(61)] = c.random.choice([-1, 2**31 - 1, 0])
    streams: dict[str, Any] = {"repetition": rep, "definition": dfn, "offsets": offsets}
    size, rows, _ = layout.zipped_size(n, values := c.out(600), **streams)
    return layout.zip_items(
        n, values, c.out(min(size, 100_000)), c.out(min(2 * (rows + 1), 1000)), c.random.choice([1, 2]), **streams
    )


def span(c: Chaos) -> object:
    rows = c.number(50)
    index = np.sort(c.rng.integers(0, 200, 51)).astype(np.uint16)
    width = index_width(102, 50) if c.flag(0.9) else c.number(9)
    return row_span(c.damaged(index, 0.2), width, rows, c.number(51), c.random.choice([200, 100]), c.number(2))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "fullzip.unzip": unzip,
    "fullzip.fixed": fixed,
    "fullzip.zip_items": zip_items,
    "fullzip.row_span": span,
}
