from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import join_keys

Shape = list[tuple[int, bool]]


def shape(c: Chaos) -> Shape:
    count = c.random.choice([0, 1, 1, 1, 2, 2, 3, 5])
    widths = [join_keys.BITS, join_keys.TEXTS, join_keys.TEXTS, join_keys.NOTHING, 1, 2, 4, 8, 8, 9, 16, 17, 32]
    return [(c.random.choice([*widths, c.number(40)]), c.flag(0.3)) for _ in range(count)]


def columns(c: Chaos, wanted: Shape, rows: Any) -> list[Any]:
    return [column(c, width, null_is_value, rows if isinstance(rows, int) else 9) for width, null_is_value in wanted]


def column(c: Chaos, width: Any, null_is_value: bool, rows: int) -> Any:
    """Return a column that mostly has the rows, with mostly plausible offsets."""
    rows = min(max(rows, 0), 700)
    first, wide, offsets = c.random.choice([0, 0, 1, 5]), c.flag(), None
    size = width if isinstance(width, int) and 0 <= width < 100 else 1
    data = c.buffer((rows + first) * size)
    if width == join_keys.TEXTS:
        held = len(data) if isinstance(data, bytes | np.ndarray) else 10
        ends = np.sort(c.rng.integers(0, held + 1, rows + first + 1))
        if c.flag(0.1):
            ends[c.random.randrange(len(ends))] = c.random.choice([-1, held + 1, 2**31 - 1, -(2**31)])
        offsets = c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05)
    bit = c.random.choice([0, 0, 3, 9])
    validity = c.buffer((rows + bit + 7) // 8) if c.flag(0.4) else None
    if c.flag(0.03):
        first, bit = c.number(9), c.number(9)
    return width, null_is_value, validity, bit, data, first, offsets, wide


def rows_of(c: Chaos) -> Any:
    return c.random.choice([0, 1, 255, 256, 257, 600, c.number(300)])


def out(c: Chaos, rows: Any) -> Any:
    rows = min(max(rows, 0), 1000) if isinstance(rows, int) else 9
    return np.empty(rows + c.random.choice([0, 0, 0, 0, 1, 5, -1 if rows else 0]), np.int64)


def table(c: Chaos) -> object:
    wanted, made = shape(c), join_keys.KeyTable()
    for _ in range(c.random.randint(0, 3)):
        rows = rows_of(c)
        made.add(columns(c, wanted, rows), rows, out(c, rows))
    rows = rows_of(c)
    described = columns(c, wanted if c.flag(0.95) else shape(c), rows)
    return made.find(described, rows, out(c, rows), out(c, rows))


def parts(c: Chaos) -> object:
    rows = rows_of(c)
    return join_keys.KeyParts(c.number(40)).numbers(columns(c, shape(c), rows), rows, out(c, rows))


def pack(c: Chaos) -> object:
    rows = rows_of(c)
    ends = np.empty(min(max(rows, 0), 1000) + 1 if isinstance(rows, int) else 9, np.int64)
    return join_keys.pack(columns(c, shape(c), rows), rows, ends)


def measure_groups(c: Chaos) -> object:
    count = c.random.randint(0, 30)
    groups = c.integers(count + 1)
    return join_keys.measure_groups(groups, np.empty(count, np.int64), np.empty(c.random.choice([count, 3]), np.int64))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "join_keys.KeyTable": table,
    "join_keys.KeyParts": parts,
    "join_keys.pack": pack,
    "join_keys.measure_groups": measure_groups,
}
