"""A thousand columns of a few thousand values each, in batches: found, scanned and taken."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec.batch_columns import BatchColumns

COLUMNS, ROWS, BATCH = 1000, 4096, 1024


def opened() -> Callable[[], BatchColumns]:
    """Return a function that finds the columns of a file, whose pages are in the order of the batches."""
    values = rng().integers(0, 1 << 20, COLUMNS * ROWS, np.int32)
    starts = np.arange(0, ROWS + 1, BATCH)
    table = b"".join(
        struct.pack("<qq", 4 * BATCH * (batch * COLUMNS + column), BATCH)
        for column in range(COLUMNS)
        for batch in range(ROWS // BATCH)
    )
    data, numbers = values.tobytes() + table, list(range(COLUMNS))
    return lambda: BatchColumns(data, starts, values.nbytes, numbers, [32] * COLUMNS, [0] * COLUMNS)


def find() -> Case:
    return Case(opened(), COLUMNS * ROWS // BATCH * 16)


def read() -> Case:
    columns = opened()()
    out = np.empty(columns.places(ROWS, False)[-1], np.uint8)
    return Case(lambda: columns.read(0, COLUMNS, 0, ROWS, out), len(out))


def take() -> Case:
    columns, rows = opened()(), np.arange(0, ROWS, 10)
    out = np.empty(columns.places(len(rows), True)[-1], np.uint8)
    return Case(lambda: columns.take(0, COLUMNS, rows, out), len(out))


CASES: dict[str, Callable[[], Case]] = {
    "batch_columns.find": find,
    "batch_columns.read": read,
    "batch_columns.take, a tenth": take,
}
