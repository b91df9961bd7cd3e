"""Bounds of zones of values and texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.intervals import FLOAT, SIGNED
from lancecodec.zones import ZoneBounds

__all__ = ["CASES"]

ZONE = 8192


def values(bits: int, order: int, nulls: bool = False) -> Case:
    data = rng().normal(size=VALUES) if order == FLOAT else rng().integers(0, 256, VALUES * bits // 8).astype(np.uint8)
    mask = rng().integers(0, 256, (VALUES + 7) // 8).astype(np.uint8) if nulls else None
    return Case(lambda: ZoneBounds(ZONE).add_fixed(data, bits, order, mask), data.nbytes)


def texts() -> Case:
    offsets = np.append(0, np.cumsum(rng().integers(0, 30, VALUES))).astype(np.int32)
    data = rng().integers(97, 123, int(offsets[-1])).astype(np.uint8)
    return Case(lambda: ZoneBounds(ZONE).add_texts(data, offsets, False), data.nbytes + offsets.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "zones.add_fixed, 32 bits": lambda: values(32, SIGNED),
    "zones.add_fixed, 64 bits": lambda: values(64, SIGNED),
    "zones.add_fixed, 64 bits, nulls": lambda: values(64, SIGNED, nulls=True),
    "zones.add_fixed, 128 bits": lambda: values(128, SIGNED),
    "zones.add_fixed, doubles": lambda: values(64, FLOAT),
    "zones.add_texts": texts,
}
