from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec import packed


def fixed(c: Chaos) -> tuple[list[Any], int, Any, int]:
    """Return widths, rows, distance of rows (or worse) and the bytes the rows need."""
    widths = [c.random.choice([1, 2, 3, 4, 7, 8, 12, 16, 33, 100]) for _ in range(c.random.randint(1, 4))]
    rows, gap = c.random.choice([0, 1, 2, 5, 100, 300]), c.random.choice([0, 0, 0, 1, 9])
    size = max(rows - 1, 0) * (sum(widths) + gap) + (sum(widths) if rows else 0)
    stride = sum(widths) + gap if gap or c.flag() else 0
    if c.flag(0.05):
        widths[c.random.randrange(len(widths))] = c.number()
    return widths, rows, stride if c.flag(0.95) else c.number(), size


def column(c: Chaos, width: Any, rows: int) -> Any:
    return c.out(rows * (width if isinstance(width, int) and 0 < width < 1000 else 8))


def rows_or_worse(c: Chaos, rows: int) -> Any:
    return rows if c.flag(0.9) else c.number(rows + 2)


def pack(c: Chaos) -> object:
    widths, rows, stride, size = fixed(c)
    columns = [column(c, width, rows) for width in widths]
    return packed.pack(columns, widths, rows_or_worse(c, rows), c.out(size), stride)


def unpack(c: Chaos) -> object:
    widths, rows, stride, size = fixed(c)
    columns = [column(c, width, rows) if c.flag(0.8) else None for width in widths]
    return packed.unpack(c.out(size), widths, rows_or_worse(c, rows), columns, stride)


def take(c: Chaos) -> object:
    widths, rows, stride, size = fixed(c)
    index = c.integers(rows)
    columns = [column(c, width, len(index)) if c.flag(0.8) else None for width in widths]
    return packed.take(c.out(size), widths, rows_or_worse(c, rows), index, columns, stride)


class Rows:
    """Variable rows: fields, children to pack and validity."""

    def __init__(self, c: Chaos) -> None:
        self.count = c.random.choice([0, 1, 2, 9, 100])
        self.fields: list[tuple[bool, Any]] = []
        self.children: list[Any] = []
        self.bit = c.random.randint(0, 9)
        self.validity = c.content((self.count + self.bit + 7) // 8) if c.flag(0.4) else None
        for _ in range(c.random.randint(1, 4)):
            if c.flag():
                width = c.random.choice([1, 3, 4, 8, 40])
                self.fields.append((False, width))
                self.children.append((c.content(width * self.count), width))
                continue
            width, wide = c.random.choice([4, 8]), c.flag()
            lengths = c.rng.integers(0, c.random.choice([1, 5, 60, 300]), self.count)
            offsets = np.cumsum([0, *lengths.tolist()]).astype(np.int64 if wide else np.int32)
            self.fields.append((True, width))
            self.children.append((c.content(int(offsets[-1])), width, offsets, wide))

    def packed(self, wide: bool) -> tuple[np.ndarray, np.ndarray]:
        offsets = np.zeros(self.count + 1, np.int64 if wide else np.int32)
        packed.row_offsets(self.children, self.count, wide, offsets, self.validity, self.bit)
        data = np.zeros(offsets[-1], np.uint8)
        packed.pack_rows(self.children, self.count, data, self.validity, self.bit)
        return offsets, data

    def damaged(self, c: Chaos) -> list[Any]:
        """Return the children, one of them possibly broken."""
        children = list(self.children)
        if c.flag(0.5):
            which = c.random.randrange(len(children))
            child = list(children[which])
            part = c.random.randrange(len(child))
            if isinstance(child[part], np.ndarray):
                child[part] = c.damaged(child[part])
            else:
                child[part] = c.number()
            children[which] = tuple(child)
        return children


def row_offsets(c: Chaos) -> object:
    rows, wide = Rows(c), c.flag()
    out = c.out((rows.count + 1) * (8 if wide else 4))
    bit = rows.bit if c.flag(0.9) else c.number()
    return packed.row_offsets(rows.damaged(c), rows_or_worse(c, rows.count), wide, out, rows.validity, bit)


def pack_rows(c: Chaos) -> object:
    rows = Rows(c)
    out = c.out(len(rows.packed(True)[1]))
    return packed.pack_rows(rows.damaged(c), rows_or_worse(c, rows.count), out, rows.validity, rows.bit)


def split_rows(c: Chaos) -> object:
    rows, wide = Rows(c), c.flag()
    offsets, data = rows.packed(wide)
    offsets, data = c.damaged(offsets, 0.2), c.damaged(data, 0.5)
    fields, outputs = list(rows.fields), []
    for variable, width in fields:
        out_wide = c.flag()
        size = (rows.count + 1) * (8 if out_wide else 4) if variable else rows.count * width
        outputs.append(None if c.flag(0.2) else (c.out(size), out_wide) if variable else c.out(size))
    if c.flag(0.1):
        fields[0] = (c.flag(), c.number())
    validity = rows.validity if c.flag(0.9) else None
    sizes = packed.split_rows(offsets, wide, data, rows_or_worse(c, rows.count), fields, outputs, validity, rows.bit)
    targets = [c.out(size) if variable else None for (variable, _), size in zip(fields, sizes, strict=True)]
    if c.flag(0.2):
        data = c.damaged(data)
    return packed.split_bytes(offsets, wide, data, rows.count, fields, targets, validity, rows.bit)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "packed.pack": pack,
    "packed.unpack": unpack,
    "packed.take": take,
    "packed.row_offsets": row_offsets,
    "packed.pack_rows": pack_rows,
    "packed.split_rows": split_rows,
    "packed.row_bytes": lambda c: packed.row_bytes([c.number() for _ in range(c.random.randint(0, 5))]),
}
