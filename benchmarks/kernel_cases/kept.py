from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import kept


def mask(share: float) -> tuple[np.ndarray, int]:
    flags = rng().random(VALUES) < share
    return np.packbits(flags, bitorder="little"), int(flags.sum())


def fixed(width: int, share: float) -> Case:
    bits, count = mask(share)
    values, out = rng().integers(0, 256, VALUES * width, np.uint8), np.empty(count * width, np.uint8)
    return Case(lambda: kept.fixed(values, width, bits, 0, VALUES, out), values.nbytes)


def bitmap(share: float) -> Case:
    bits, count = mask(share)
    values, out = rng().integers(0, 256, VALUES // 8, np.uint8), np.empty(count // 8 + 1, np.uint8)
    return Case(lambda: kept.bitmap(values, 0, bits, 0, VALUES, out, count), values.nbytes)


def strings(share: float) -> Case:
    """Offsets, then bytes."""
    bits, count = mask(share)
    offsets = np.concatenate([[0], np.cumsum(rng().integers(5, 20, VALUES))]).astype(np.int32)
    data, ends = rng().integers(0, 256, int(offsets[-1]), np.uint8), np.empty(count + 1, np.int32)
    out = np.empty(kept.ends(offsets, False, bits, 0, VALUES, ends, count), np.uint8)

    def both() -> None:
        kept.ends(offsets, False, bits, 0, VALUES, ends, count)
        kept.strings(data, offsets, False, bits, 0, VALUES, out)

    return Case(both, data.nbytes + offsets.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    **{f"kept.fixed, {width} bytes, 90%": lambda width=width: fixed(width, 0.9) for width in (1, 4, 8, 16)},
    "kept.fixed, 8 bytes, 5%": lambda: fixed(8, 0.05),
    "kept.bitmap, 90%": lambda: bitmap(0.9),
    "kept.strings, 90%": lambda: strings(0.9),
    "kept.strings, 5%": lambda: strings(0.05),
}
