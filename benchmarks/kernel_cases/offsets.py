from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import offsets


@dataclass(frozen=True)
class Ends:
    """Offsets of VALUES values of 0 to 15 items in both forms; every tenth value is null if `nulls`."""

    nulls: bool

    def arrow(self, wide: bool) -> np.ndarray:
        lengths = rng().integers(0, 16, VALUES)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if wide else np.int32)

    def valid(self) -> np.ndarray:
        return rng().random(VALUES) >= (0.1 if self.nulls else 0)

    def total(self) -> int:
        return int(self.arrow(True)[-1])

    def raw(self) -> np.ndarray:
        ends = self.arrow(True)[1:].astype(np.uint64)
        return ends + np.where(self.valid(), np.uint64(0), np.uint64(self.total() + 1))


def decode(wide: bool, nulls: bool) -> Case:
    ends = Ends(nulls)
    raw, total = ends.raw(), ends.total()
    out, validity = np.empty(VALUES + 1, np.int64 if wide else np.int32), np.empty((VALUES + 7) // 8, np.uint8)
    raw_bytes, out_bytes = raw.view(np.uint8), out.view(np.uint8)
    return Case(
        lambda: offsets.decode(raw_bytes, 0, VALUES, total + 1, total, wide, out_bytes, validity),
        out.nbytes + validity.nbytes,
    )


def encode(wide: bool, nulls: bool) -> Case:
    ends = Ends(nulls)
    source, total, out = ends.arrow(wide).view(np.uint8), ends.total(), np.empty(VALUES * 8, np.uint8)
    validity = np.packbits(ends.valid(), bitorder="little") if nulls else None
    return Case(
        lambda: offsets.encode(source, wide, VALUES, validity, 0, 0, total + 1, out),
        source.nbytes + (0 if validity is None else validity.nbytes),
    )


CASES: dict[str, Callable[[], Case]] = {
    "offsets.decode, 32 bits": lambda: decode(False, False),
    "offsets.decode, 32 bits, nulls": lambda: decode(False, True),
    "offsets.decode, 64 bits": lambda: decode(True, False),
    "offsets.decode, 64 bits, nulls": lambda: decode(True, True),
    "offsets.encode, 32 bits": lambda: encode(False, False),
    "offsets.encode, 32 bits, nulls": lambda: encode(False, True),
    "offsets.encode, 64 bits": lambda: encode(True, False),
    "offsets.encode, 64 bits, nulls": lambda: encode(True, True),
}
