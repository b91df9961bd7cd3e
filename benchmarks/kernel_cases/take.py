"""Random access to whole rows: numbers, strings and vectors of several fragments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import take_pages
from lancecodec.take import ColumnTaker, FragmentTaker, RowTaker
from lancecodec.take_pages import PageTaker

ROWS = 1 << 14
FRAGMENTS = 16


def taker(page: PageTaker, width: int, dimensions: tuple[int, ...] = ()) -> RowTaker:
    """Return a taker with the same page as every fragment of a table."""
    column = ColumnTaker([0, page.num_rows], width, lambda _: page)
    fragment = FragmentTaker([column], page.num_rows, 0)
    starts = np.arange(FRAGMENTS + 1) * page.num_rows
    return RowTaker([(width, False, False, dimensions, 0)], starts, lambda _: fragment)


def case(page: PageTaker, width: int, size: int, ordered: bool) -> Case:
    table = taker(page, width)
    rows = rng().integers(0, table.num_rows, ROWS)
    rows = np.sort(rows) if ordered else rows
    return Case(lambda: table.numbers(rows).decode_all(), ROWS * size)


def values(width: int, ordered: bool) -> Case:
    count = VALUES // max(width // 8, 1)
    data = rng().integers(0, 256, count * width).astype(np.uint8)
    return case(take_pages.zipped(data, count, width), width, width, ordered)


def texts(ordered: bool) -> Case:
    sizes = rng().integers(0, 40, VALUES)
    items = b"".join(int(size).to_bytes(4, "little") + b"x" * int(size) for size in sizes)
    index = np.append(0, np.cumsum(sizes + 4)).astype(np.uint32)
    page = take_pages.zipped(items, VALUES, -1, index=index, index_width=4, offset_bits=32)
    return case(page, -1, 20, ordered)


CASES: dict[str, Callable[[], Case]] = {
    **{
        f"take.numbers, values of {width} bytes, {order}": partial(values, width, order == "sorted")
        for width in (8, 512)
        for order in ("sorted", "shuffled")
    },
    **{f"take.numbers, strings, {order}": partial(texts, order == "sorted") for order in ("sorted", "shuffled")},
}
