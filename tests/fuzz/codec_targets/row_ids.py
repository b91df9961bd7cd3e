from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codec_targets.chaos import Chaos
from codec_targets.manifests import field
from codec_targets.records import ranges, record
from lancecodec import row_ids


def array(c: Chaos, count: int) -> bytes:
    width = c.random.choice([2, 4, 8])
    values = np.sort(c.rng.choice(80, count, replace=False)) if c.flag(0.8) else c.rng.integers(0, 80, count)
    data = values.astype(f"<u{width}").tobytes()
    base = c.random.choice([0, 5, 2**64 - 40])
    return field({2: 1, 4: 2, 8: 3}[width], (field(1, base) if width < 8 else b"") + field(2, data))


def segment(c: Chaos) -> tuple[bytes, int]:
    """Return a segment, and its number of ids."""
    kind, start, span = c.random.randint(1, 5), c.random.choice([0, 3, 2**63, 2**64 - 81]), c.random.randint(0, 80)
    if kind >= 4:
        return field(kind, array(c, span)), span
    place = field(1, start) + field(2, start + span)
    if kind == 1:
        return field(1, place), span
    bits = c.rng.integers(0, 2, span, np.uint8)
    if kind == 3:
        return field(3, place + field(3, np.packbits(bits, bitorder="little").tobytes())), int(bits.sum())
    holes = (start + np.flatnonzero(bits).astype(np.uint64)).astype("<u8").tobytes()
    return field(2, place + field(3, field(3, field(2, holes)))), span - int(bits.sum())


def split(c: Chaos) -> object:
    parts = [segment(c) for _ in range(c.random.randint(0, 6))]
    data = b"".join(field(1, each) for each, _ in parts) + (record(c, 3) if c.flag(0.1) else b"")
    data = c.damaged(data, 0.3)
    starts, ends = ranges(c, len(data))
    rows = c.integers(100, len(starts))
    if len(starts) == 1 and c.flag(0.9):
        rows = np.array([sum(count for _, count in parts)], np.int64)
    room, places = c.random.choice([0, 1, 5, 300]), c.random.choice([0, 1, 9])
    first, addresses = (np.zeros(room - (c.random.random() < 0.02 and room > 0), np.uint64) for _ in range(2))
    wholes = np.zeros((4, places), np.int64)
    bases = c.integers(2**40, len(starts)).astype(np.uint64)
    few = c.random.choice([1, 30, 1000])
    return row_ids.split(data, starts, ends, rows, bases, few, first, c.integers(5, room), addresses, wholes)


def lanes(c: Chaos) -> object:
    lengths = c.integers(20) + c.flag(0.9)
    first = (
        np.sort(c.rng.integers(0, 200, len(lengths), np.uint64)) if c.flag(0.9) else c.integers(200).astype(np.uint64)
    )
    return row_ids.lanes(first, lengths, c.random.randint(0, 9), c.out(len(lengths)))


TARGETS: dict[str, Callable[[Chaos], object]] = {"row_ids.split": split, "row_ids.lanes": lanes}
