from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.fixed_size_list import Shape


@dataclass(frozen=True)
class Lists:
    """A shape, a number of rows, and the bits of a row in each stream."""

    shape: Shape
    rows: int
    widths: list[int]

    def sizes(self, rows: int) -> list[int]:
        return [(rows * width + 7) // 8 for width in self.widths]

    def levels(self, buffers: list[Any]) -> tuple[list[Any], Any]:
        """Return the buffers of streams as one per level, and values."""
        streams = iter(buffers)
        validity = [next(streams) if flag else None for flag in self.shape.has_validity]
        return validity, next(streams, None)

    def sources(self, c: Chaos) -> tuple[list[Any], Any, int]:
        bit, first = c.random.randint(0, 20), c.random.choice([0, 0, 1, c.number(3)])
        skipped = first * self.shape.bits if isinstance(first, int) and 0 <= first < 100 else 0
        leads = [bit] * (len(self.widths) - (self.shape.bits > 0)) + [skipped]
        data = [c.out((self.rows * width + lead + 7) // 8) for width, lead in zip(self.widths, leads, strict=False)]
        validity, values = self.levels(data)
        return (
            [None if level is None else (level, bit if c.flag(0.95) else c.number()) for level in validity],
            values,
            first,
        )

    def targets(self, c: Chaos, rows: int) -> tuple[list[Any], Any]:
        return self.levels([c.out(size) for size in self.sizes(rows)])

    def rows_or_worse(self, c: Chaos) -> Any:
        return self.rows if c.flag(0.9) else c.number(self.rows + 2)


def lists(c: Chaos, whole: bool = False) -> Lists:
    count = c.random.choice([1, 1, 2, 3])
    dimensions = [c.random.choice([1, 2, 3, 8, 9, 65]) for _ in range(count)]
    flags = [c.flag() for _ in range(count)]
    bits = c.random.choice([0, 8, 16, 32, 64] if whole else [0, 1, 3, 8, 16, 32, 64])
    items = np.cumprod(dimensions).tolist()
    widths = [n for n, flag in zip(items, flags, strict=True) if flag] + ([items[-1] * bits] if bits else [])
    return Lists(Shape(dimensions, flags, bits), c.random.choice([0, 1, 2, 7, 64, 100]), widths)


def shape(c: Chaos) -> object:
    count = c.random.choice([0, 1, 2, 3, 32, 33])
    made = Shape([c.number() for _ in range(count)], [c.flag() for _ in range(count)], c.number(64))
    ends = np.zeros((made.buffers, c.random.randint(0, 50)), np.int64)
    made.plan(c.number(300), c.number(), ends)
    return made.row_bytes, made.rows_per_chunk()


def encode(c: Chaos) -> object:
    given = lists(c)
    per_chunk = c.random.choice([1, 2, 16, 64, c.number()])
    size = per_chunk if isinstance(per_chunk, int) and 0 < per_chunk < 1000 else 8
    whole, rest = divmod(given.rows, size)
    outputs = [c.out(whole * full + last) for full, last in zip(given.sizes(size), given.sizes(rest), strict=True)]
    return given.shape.encode(*given.sources(c), given.rows_or_worse(c), per_chunk, outputs)


def decode_chunk(c: Chaos) -> object:
    given, row = lists(c), c.random.choice([0, 0, 1, 5])
    buffers = [c.buffer(size + (c.random.choice([-1, 1]) if c.flag(0.05) else 0)) for size in given.sizes(given.rows)]
    targets = given.targets(c, given.rows + row)
    return given.shape.decode_chunk(buffers, given.rows_or_worse(c), *targets, row if c.flag(0.95) else c.number())


def decode(c: Chaos) -> object:
    given, chunks = lists(c), c.random.randint(0, 5)
    counts = c.rng.integers(0, 9, chunks)
    ends = np.zeros((len(given.widths), chunks), np.int64)
    for line, width in zip(ends, given.widths, strict=True):
        line[:] = np.cumsum((counts * width + 7) // 8)
    buffers = [c.out(int(line[-1]) if chunks else 0) for line in ends]
    targets = given.targets(c, int(counts.sum()))
    for values in (counts, ends.reshape(-1)):
        number = c.number()
        if len(values) and c.flag(0.1) and isinstance(number, int) and abs(number) < 2**63:
            values[c.random.randrange(len(values))] = number
    return given.shape.decode(buffers, ends, counts, *targets)


def take_chunk(c: Chaos) -> object:
    given = lists(c)
    index = c.integers(given.rows)
    buffers = [c.buffer(size) for size in given.sizes(given.rows)]
    return given.shape.take_chunk(buffers, given.rows_or_worse(c), index, *given.targets(c, len(index)))


def pack_rows(c: Chaos) -> object:
    given = lists(c, c.flag(0.9))
    stride = given.shape.row_bytes + c.random.choice([0, 0, 1, 9])
    out = c.out(given.rows * stride)
    return given.shape.pack_rows(*given.sources(c), given.rows_or_worse(c), out, stride if c.flag(0.9) else c.number())


def unpack_rows(c: Chaos) -> object:
    given, row = lists(c, c.flag(0.9)), c.random.choice([0, 0, 1, 5])
    stride = given.shape.row_bytes + c.random.choice([0, 0, 1, 9])
    source, targets = c.out(given.rows * stride), given.targets(c, given.rows + row)
    places = None
    if c.flag(0.4):
        places = c.integers(
            max(given.rows * stride - given.shape.row_bytes, 1), given.rows + c.random.choice([0, 0, -1])
        )
    rows = given.rows_or_worse(c)
    return given.shape.unpack_rows(source, rows, *targets, row, stride if c.flag(0.9) else c.number(), places)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "fixed_size_list.Shape": shape,
    "fixed_size_list.encode": encode,
    "fixed_size_list.decode_chunk": decode_chunk,
    "fixed_size_list.decode": decode,
    "fixed_size_list.take_chunk": take_chunk,
    "fixed_size_list.pack_rows": pack_rows,
    "fixed_size_list.unpack_rows": unpack_rows,
}
