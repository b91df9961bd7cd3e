"""Rows by number from pages. The copy is as large as the rows taken, which are scattered: expect a small ratio."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.pages import EndsPages, FixedPages

TAKEN = 250_000
PAGES = 16


def rows(in_order: bool) -> np.ndarray:
    taken = rng().integers(0, VALUES, TAKEN)
    return np.sort(taken) if in_order else taken


def starts() -> list[int]:
    return np.linspace(0, VALUES, PAGES + 1).astype(int).tolist()


def take_fixed(width: int, nulls: bool, in_order: bool) -> Case:
    sizes = np.diff(starts())
    values: list = [rng().integers(0, 256, size * width, np.uint8) for size in sizes]
    bits: list = [rng().integers(0, 256, (size + 7) // 8, np.uint8) if nulls else None for size in sizes]
    pages = FixedPages(starts(), width * 8, values, bits)
    taken, out = rows(in_order), np.empty(TAKEN * width, np.uint8)
    validity = np.empty((TAKEN + 7) // 8, np.uint8) if nulls else None
    return Case(lambda: pages.take(taken, out, validity), out.nbytes + (0 if validity is None else validity.nbytes))


def ends_pages() -> EndsPages:
    descriptions: list = []
    for size in np.diff(starts()):
        ends = np.cumsum(rng().integers(12, 29, size)).astype(np.uint64)
        total = int(ends[-1])
        data = rng().integers(97, 123, total, np.uint8)
        descriptions.append((ends.view(np.uint8), total + 1, total, 0, data, None, 0))
    return EndsPages(starts(), descriptions)


def take_ends(in_order: bool) -> Case:
    """Run both passes, as in a take of strings."""
    pages, taken = ends_pages(), rows(in_order)
    ends, validity = np.empty((TAKEN + 1) * 4, np.uint8), np.empty((TAKEN + 7) // 8, np.uint8)
    total, _ = pages.take_offsets(taken, False, ends, validity)
    out = np.empty(total, np.uint8)

    def work() -> None:
        pages.take_offsets(taken, False, ends, validity)
        pages.take_bytes(taken, False, ends, out)

    return Case(work, ends.nbytes + validity.nbytes + out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "pages.FixedPages.take, 4 bytes, sorted": lambda: take_fixed(4, False, True),
    "pages.FixedPages.take, 8 bytes, sorted": lambda: take_fixed(8, False, True),
    "pages.FixedPages.take, 8 bytes, random": lambda: take_fixed(8, False, False),
    "pages.FixedPages.take, 8 bytes, nulls": lambda: take_fixed(8, True, True),
    "pages.FixedPages.take, 16 bytes, sorted": lambda: take_fixed(16, False, True),
    "pages.FixedPages.take, 512 bytes, random": lambda: take_fixed(512, False, False),
    "pages.EndsPages.take, sorted": lambda: take_ends(True),
    "pages.EndsPages.take, random": lambda: take_ends(False),
}
