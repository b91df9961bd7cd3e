from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec.fixed_size_list import Shape

#: Bytes of all values, far more than the caches hold.
SIZE = 64 << 20


class Lists:
    """Rows of lists of `items` values of `bits`, with or without validity of the items."""

    def __init__(self, items: int, bits: int, nulls: bool) -> None:
        self.shape = Shape([items], [nulls], bits)
        self.rows = SIZE * 8 // (items * bits)
        self.values = np.ones(SIZE, np.uint8)
        bitmap = rng().integers(0, 256, (self.rows * items + 7) // 8, np.uint8)
        self.validity = [bitmap if nulls else None]
        self.bitmaps = [(bitmap, 0) if nulls else None]
        self.size = self.values.nbytes + (bitmap.nbytes if nulls else 0)

    def chunks(self) -> tuple[int, np.ndarray, list[np.ndarray]]:
        per_chunk = self.shape.rows_per_chunk()
        ends = np.zeros((self.shape.buffers, -(-self.rows // per_chunk)), np.int64)
        self.shape.plan(self.rows, per_chunk, ends)
        return per_chunk, ends, [np.zeros(end, np.uint8) for end in ends[:, -1]]


def encode(items: int, bits: int, nulls: bool) -> Case:
    lists = Lists(items, bits, nulls)
    per_chunk, _, outputs = lists.chunks()
    return Case(lambda: lists.shape.encode(lists.bitmaps, lists.values, 0, lists.rows, per_chunk, outputs), lists.size)


def decode(items: int, bits: int, nulls: bool) -> Case:
    lists = Lists(items, bits, nulls)
    per_chunk, ends, buffers = lists.chunks()
    lists.shape.encode(lists.bitmaps, lists.values, 0, lists.rows, per_chunk, buffers)
    counts = np.full(ends.shape[1], per_chunk, np.int64)
    counts[-1] = lists.rows - per_chunk * (len(counts) - 1)
    return Case(lambda: lists.shape.decode(buffers, ends, counts, lists.validity, lists.values), lists.size)


def pack_rows(items: int, bits: int, nulls: bool) -> Case:
    lists = Lists(items, bits, nulls)
    out = np.zeros(lists.rows * lists.shape.row_bytes, np.uint8)
    return Case(lambda: lists.shape.pack_rows(lists.bitmaps, lists.values, 0, lists.rows, out), lists.size)


def unpack_rows(items: int, bits: int, nulls: bool) -> Case:
    lists = Lists(items, bits, nulls)
    source = np.ones(lists.rows * lists.shape.row_bytes, np.uint8)
    return Case(lambda: lists.shape.unpack_rows(source, lists.rows, lists.validity, lists.values), lists.size)


VARIANTS: dict[str, tuple[int, int, bool]] = {
    "4 x 32 bits": (4, 32, False),
    "4 x 32 bits, nulls": (4, 32, True),
    "100 x 32 bits, nulls": (100, 32, True),
    "768 x 16 bits": (768, 16, False),
}

CASES: dict[str, Callable[[], Case]] = {
    f"fixed_size_list.{work.__name__}, {name}": partial(work, *variant)
    for work in (encode, decode, pack_rows, unpack_rows)
    for name, variant in VARIANTS.items()
}
CASES["fixed_size_list.encode, 3 x 1 bit, nulls"] = partial(encode, 3, 1, True)
CASES["fixed_size_list.decode, 3 x 1 bit, nulls"] = partial(decode, 3, 1, True)
