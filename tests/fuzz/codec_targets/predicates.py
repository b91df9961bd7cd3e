from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import predicates


def strings(c: Chaos) -> tuple[Any, Any, bool]:
    """Return bytes and mostly plausible offsets into them."""
    wide, count = c.flag(), c.random.choice([0, 1, 8, 9, c.random.randint(0, 300)])
    data = c.buffer(c.random.randint(0, 2000))
    size = len(data) if isinstance(data, bytes | np.ndarray) else 10
    ends = np.sort(c.rng.integers(0, size + 1, count + 1))
    if c.flag(0.1):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, size + 1, 2**31 - 1, -(2**31)])
    return data, c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05), wide


def text(c: Chaos) -> Any:
    return c.buffer(c.random.choice([0, 1, 2, 3, 8, 9, 70]))


def contains(c: Chaos) -> object:
    return predicates.contains(*strings(c), text(c), c.out(40))


def compare_text(c: Chaos) -> object:
    return predicates.compare_text(*strings(c), text(c), c.number(2), c.out(40))


def compare_decimals(c: Chaos) -> object:
    width, count = c.random.choice([16, 16, 32, 32, 8]), c.random.randint(0, 200)
    values, bound = c.buffer(width * count), c.buffer(width)
    return predicates.compare_decimals(values, bound, c.number(2), c.flag(), c.out((count + 7) // 8))


def positions(c: Chaos) -> object:
    bits, out = c.buffer(c.random.randint(0, 60)), np.empty(c.random.choice([0, 3, 300, 480]), np.int64)
    return predicates.positions(bits, c.number(480), out)


def marked(c: Chaos) -> object:
    width, count = c.random.choice([1, 2, 4, 8, 3]), c.random.randint(0, 200)
    return predicates.marked(c.buffer(width * count), width, c.buffer(), c.out((count + 7) // 8))


def integer_set(c: Chaos) -> object:
    width, count = c.random.choice([1, 2, 4, 8, 8, 3]), c.random.randint(0, 200)
    members = predicates.IntegerSet(c.buffer(width * c.random.randint(0, 50)), width)
    return members.contains(c.buffer(width * count), c.out((count + 7) // 8))


def string_set(c: Chaos) -> object:
    return predicates.StringSet(*strings(c)).contains(*strings(c), c.out(40))


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "predicates.contains": contains,
    "predicates.compare_text": compare_text,
    "predicates.compare_decimals": compare_decimals,
    "predicates.marked": marked,
    "predicates.positions": positions,
    "predicates.IntegerSet": integer_set,
    "predicates.StringSet": string_set,
}
