from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import variable

#: Bytes of offsets and values, far more than the caches hold.
SIZE = 64 << 20


def strings(mean: int, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return Arrow offsets and bytes of values of 0 to twice `mean` bytes."""
    count = SIZE // (mean + (8 if wide else 4))
    offsets = np.concatenate([[0], np.cumsum(rng().integers(0, 2 * mean + 1, count))])
    return offsets.astype(np.int64 if wide else np.int32), np.ones(offsets[-1], np.uint8)


def chunks(offsets: np.ndarray, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    count = len(offsets) - 1
    counts, ends = np.empty((2, variable.plan_bound(count)), np.int64)
    number = variable.plan(offsets, wide, count, wide, counts, ends)
    return counts[:number].copy(), ends[:number].copy()


def plan(mean: int, wide: bool) -> Case:
    offsets, data = strings(mean, wide)
    return Case(lambda: chunks(offsets, wide), offsets.nbytes + data.nbytes)


def encode(mean: int, wide: bool) -> Case:
    offsets, data = strings(mean, wide)
    counts, ends = chunks(offsets, wide)
    out, count = np.zeros(ends[-1], np.uint8), len(offsets) - 1
    return Case(
        lambda: variable.encode(offsets, wide, data, count, wide, counts, ends, out), offsets.nbytes + data.nbytes
    )


def decode(mean: int, wide: bool, out_wide: bool) -> Case:
    offsets, data = strings(mean, wide)
    counts, ends = chunks(offsets, wide)
    encoded, count = np.zeros(ends[-1], np.uint8), len(offsets) - 1
    variable.encode(offsets, wide, data, count, wide, counts, ends, encoded)
    places = np.zeros(len(offsets), np.int64 if out_wide else np.int32)
    out = np.zeros(variable.decode_bound(len(encoded), count, len(counts), wide), np.uint8)
    return Case(
        lambda: variable.decode(encoded, wide, counts, ends, count, out_wide, places, out), places.nbytes + data.nbytes
    )


def block(mean: int) -> Case:
    offsets, data = strings(mean, False)
    count = len(offsets) - 1
    encoded, places = np.zeros(variable.block_bound(count, len(data), False), np.uint8), np.zeros_like(offsets)
    variable.encode_block(offsets, False, data, count, False, encoded)
    return Case(lambda: variable.decode_block(encoded, count, False, places), places.nbytes)


def measure(wide: bool) -> Case:
    offsets, _ = strings(8, wide)
    return Case(lambda: variable.measure(offsets, wide, len(offsets) - 1), offsets.nbytes)


def select(mean: int) -> Case:
    offsets, data = strings(mean, False)
    count = len(offsets) - 1
    index = np.flatnonzero(rng().random(count) < 0.9)
    places = np.zeros(len(index) + 1, np.int32)
    out = np.zeros(variable.select_offsets(offsets, False, count, index, False, places), np.uint8)

    def work() -> None:
        variable.select_offsets(offsets, False, count, index, False, places)
        variable.select_bytes(offsets, False, data, count, index, out)

    return Case(work, places.nbytes + out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    **{f"variable.decode, mean {mean}": partial(decode, mean, False, False) for mean in (8, 30, 200)},
    **{f"variable.decode, mean {mean}, 64 bits": partial(decode, mean, True, True) for mean in (8, 30, 200)},
    "variable.decode, mean 30, 32 to 64 bits": partial(decode, 30, False, True),
    **{f"variable.plan, mean {mean}": partial(plan, mean, False) for mean in (8, 30, 200)},
    **{f"variable.encode, mean {mean}": partial(encode, mean, False) for mean in (8, 30, 200)},
    "variable.encode, mean 30, 64 bits": partial(encode, 30, True),
    "variable.decode_block, mean 8": partial(block, 8),
    "variable.measure, 32 bits": partial(measure, False),
    "variable.measure, 64 bits": partial(measure, True),
    "variable.select, 90 % of values of mean 8": partial(select, 8),
    "variable.select, 90 % of values of mean 200": partial(select, 200),
}
