"""Row ids of many small fragments that updates left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import row_ids

IDS = 20
FRAGMENTS = VALUES // IDS


def split() -> Case:
    """Decode arrays of a few ids in no order."""
    values = rng().integers(0, 60_000, (FRAGMENTS, IDS)).astype("<u2")
    head = bytes([0x0A, 2 * IDS + 6, 0x2A, 2 * IDS + 4, 0x0A, 2 * IDS + 2, 0x12, 2 * IDS])
    data = b"".join(head + each.tobytes() for each in values)
    size = len(head) + 2 * IDS
    starts = np.arange(FRAGMENTS) * size
    bases = np.arange(FRAGMENTS, dtype=np.uint64) << np.uint64(32)
    out = np.empty(VALUES, np.uint64), np.empty(VALUES, np.int64), np.empty(VALUES, np.uint64)
    rows, wholes = np.full(FRAGMENTS, IDS), np.empty((4, 0), np.int64)
    return Case(lambda: row_ids.split(data, starts, starts + size, rows, bases, 1024, *out, wholes), 24 * VALUES)


def lanes() -> Case:
    first = np.sort(rng().integers(0, VALUES // 2, VALUES)).astype(np.uint64)
    lengths, out = np.ones(VALUES, np.int64), np.empty(VALUES, np.uint8)
    return Case(lambda: row_ids.lanes(first, lengths, 4, out), 16 * VALUES)


CASES: dict[str, Callable[[], Case]] = {"row_ids.split, arrays": split, "row_ids.lanes": lanes}
