from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import packed

#: Bytes of all columns, far more than the caches hold.
SIZE = 64 << 20
TYPICAL = (4, 8, 2, 1)


def columns(widths: Sequence[int], rows: int) -> list[np.ndarray]:
    return [np.ones(rows * width, np.uint8) for width in widths]


def pack(widths: Sequence[int]) -> Case:
    rows = SIZE // sum(widths)
    sources, out = columns(widths, rows), np.zeros(rows * sum(widths), np.uint8)
    return Case(lambda: packed.pack(sources, widths, rows, out), out.nbytes)


def unpack(widths: Sequence[int], child: int | None = None) -> Case:
    rows = SIZE // sum(widths)
    source = np.ones(rows * sum(widths), np.uint8)
    targets: list[np.ndarray | None] = list(columns(widths, rows))
    if child is not None:
        targets = [target if i == child else None for i, target in enumerate(targets)]
    return Case(
        lambda: packed.unpack(source, widths, rows, targets),
        sum(target.nbytes for target in targets if target is not None),
    )


def take(widths: Sequence[int]) -> Case:
    rows = SIZE // sum(widths)
    source, index = np.ones(rows * sum(widths), np.uint8), np.sort(rng().integers(0, rows, 250_000))
    targets = columns(widths, len(index))
    return Case(lambda: packed.take(source, widths, rows, index, targets), len(index) * sum(widths))


def variable_rows() -> tuple[int, list[tuple[object, ...]], np.ndarray, np.ndarray]:
    """Return rows of an int32, a string of about 20 bytes and a float64: their children, offsets and bytes."""
    rows = SIZE // 36
    ends = np.concatenate([[0], np.cumsum(rng().integers(0, 41, rows))]).astype(np.int32)
    number, text, real = np.ones(rows, np.int32), np.ones(ends[-1], np.uint8), np.ones(rows, np.float64)
    children: list[tuple[object, ...]] = [(number, 4), (text, 4, ends, False), (real, 8)]
    offsets = np.zeros(rows + 1, np.int32)
    packed.row_offsets(children, rows, False, offsets)
    data = np.zeros(offsets[-1], np.uint8)
    packed.pack_rows(children, rows, data)
    return rows, children, offsets, data


def pack_rows() -> Case:
    rows, children, offsets, data = variable_rows()

    def work() -> None:
        packed.row_offsets(children, rows, False, offsets)
        packed.pack_rows(children, rows, data)

    return Case(work, data.nbytes)


def split_rows() -> Case:
    rows, children, offsets, data = variable_rows()
    fields = [(False, 4), (True, 4), (False, 8)]
    number, text, real = (np.zeros_like(child[0]) for child in children)
    ends = np.zeros(rows + 1, np.int32)

    def work() -> None:
        packed.split_rows(offsets, False, data, rows, fields, [number, (ends, False), real])
        packed.split_bytes(offsets, False, data, rows, fields, [None, text, None])

    return Case(work, data.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "packed.pack, 4 + 8 + 2 + 1 bytes": partial(pack, TYPICAL),
    "packed.pack, 8 + 8 bytes": partial(pack, (8, 8)),
    "packed.pack, 3 + 12 + 5 bytes": partial(pack, (3, 12, 5)),
    "packed.unpack, 4 + 8 + 2 + 1 bytes": partial(unpack, TYPICAL),
    "packed.unpack, 8 + 8 bytes": partial(unpack, (8, 8)),
    "packed.unpack, 3 + 12 + 5 bytes": partial(unpack, (3, 12, 5)),
    "packed.unpack, one child of 8 bytes of 15": partial(unpack, TYPICAL, 1),
    "packed.take, 4 + 8 + 2 + 1 bytes": partial(take, TYPICAL),
    "packed.pack_rows, int32, string, float64": pack_rows,
    "packed.split_rows, int32, string, float64": split_rows,
}
