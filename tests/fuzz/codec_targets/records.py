from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import records


def varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def record(c: Chaos, depth: int) -> bytes:
    """Return fields 1 to 6 in any order, with records inside, and some of kinds that do not exist."""
    out = b""
    for _ in range(c.random.randint(0, 8)):
        number, kind = c.random.randint(1, 6), c.random.choice([0, 0, 1, 2, 2, 2, 5])
        if c.flag(0.01):
            number, kind = c.random.choice([0, 2**29, 2**40]), c.random.randint(0, 7)
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(c.random.choice([0, 5, 2**31, 2**63, 2**64 - 1]))
        elif kind == 2:
            inner = record(c, depth - 1) if depth else bytes(c.content(c.random.randint(0, 9)))
            out += varint(len(inner)) + inner
        else:
            out += b"12345678"[: 8 if kind == 1 else 4]
    return out


def ranges(c: Chaos, size: int) -> tuple[Any, Any]:
    if c.flag(0.7):
        return np.zeros(1, np.int64), np.array([size], np.int64)
    starts = c.integers(size)
    ends = np.minimum(starts + c.integers(40, len(starts)), size) if c.flag(0.8) else c.integers(size, len(starts))
    return starts, ends


def locate(c: Chaos) -> object:
    data = c.damaged(record(c, 3), 0.4)
    starts, ends = ranges(c, len(data))
    room = c.random.choice([0, 1, 5, 300])
    out = [c.integers(5, room - (c.random.random() < 0.02)) for _ in range(4)]
    return records.locate(data, starts, ends, c.random.randint(0, 7), *out)


def columns(c: Chaos) -> object:
    data = c.damaged(record(c, 3), 0.4)
    starts, ends = ranges(c, len(data))
    count = c.random.choice([0, 1, 3, 16, 17])
    wanted = np.stack([c.integers(7, count), c.integers(3, count), c.integers(6, count), c.integers(9, count)], 1)
    wanted = np.ascontiguousarray(wanted.astype(np.int64))
    out = np.zeros((count, len(starts) - (c.random.random() < 0.02) if len(starts) else 0), np.int64)
    return records.columns(data, starts, ends, wanted, out)


def numbers(c: Chaos) -> object:
    data = c.damaged(record(c, 3), 0.4)
    starts, ends = ranges(c, len(data))
    room = c.random.choice([0, 1, 5, 300])
    out = [c.integers(5, room - (c.random.random() < 0.02)) for _ in range(2)]
    return records.numbers(data, starts, ends, c.random.randint(0, 7), *out)


def weigh(c: Chaos) -> object:
    data = c.damaged(record(c, 3), 0.4)
    count, width = c.random.randint(0, 3), c.random.choice([0, 3, 7])
    fields = np.ascontiguousarray(c.integers(count + 2, count * width).reshape(count, width) - 2)
    return records.weigh(data, c.integers(100, count + (c.random.random() < 0.02)), fields)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "records.locate": locate,
    "records.columns": columns,
    "records.numbers": numbers,
    "records.weigh": weigh,
}
