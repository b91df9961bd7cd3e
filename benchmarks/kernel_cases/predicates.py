from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import predicates

LINE = b"carefully final deposits wake furiously along the express packages; "
OUT = np.empty(VALUES // 8 + 1, np.uint8)


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Return pieces of a text of 10 to 40 bytes, and their offsets."""
    ends = np.concatenate([[0], np.cumsum(rng().integers(10, 41, VALUES))]).astype(np.int32)
    data = np.resize(np.frombuffer(LINE, np.uint8), int(ends[-1])).copy()
    data[rng().integers(0, len(data), len(data) // 20)] = ord("x")
    return data, ends


def contains(text: bytes) -> Case:
    data, ends = texts()
    return Case(lambda: predicates.contains(data, ends, False, text, OUT), data.nbytes)


def compare_text(place: int) -> Case:
    data, ends = texts()
    return Case(lambda: predicates.compare_text(data, ends, False, b"furiously", place, OUT), ends.nbytes)


def compare_decimals(width: int) -> Case:
    values = rng().integers(-(10**9), 10**9, VALUES)
    wide = np.zeros((VALUES, width // 8), np.int64)
    wide[:, 0], wide[:, 1:] = values, (values >> 63)[:, None]
    data, bound = wide.tobytes(), (1000).to_bytes(width, "little")
    return Case(lambda: predicates.compare_decimals(data, bound, predicates.LESS, False, OUT), len(data))


def positions(share: float) -> Case:
    kept = rng().random(8 * VALUES) < share
    packed, out = np.packbits(kept, bitorder="little"), np.empty(8 * VALUES, np.int64)
    return Case(lambda: predicates.positions(packed, 8 * VALUES, out), int(kept.sum()) * 8 + packed.nbytes)


def marked(width: int, entries: int) -> Case:
    codes = rng().integers(0, entries, VALUES).astype(f"<u{width}")
    marks = rng().integers(0, 2, entries).astype(np.uint8)
    return Case(lambda: predicates.marked(codes, width, marks, OUT), codes.nbytes)


def integers(top: int) -> Case:
    values = rng().integers(0, top, VALUES)
    members = predicates.IntegerSet(rng().integers(0, top, 1000), 8)
    return Case(lambda: members.contains(values, OUT), values.nbytes)


def strings() -> Case:
    data, ends = texts()
    members = predicates.StringSet(data, ends[:1001], False)
    return Case(lambda: members.contains(data, ends, False, OUT), data.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "predicates.contains, frequent": lambda: contains(b"furiously"),
    "predicates.contains, rare": lambda: contains(b"zebra crossing"),
    "predicates.compare_text, prefix": lambda: compare_text(predicates.PREFIX),
    "predicates.compare_text, whole": lambda: compare_text(predicates.WHOLE),
    "predicates.compare_decimals, 16 bytes": lambda: compare_decimals(16),
    "predicates.compare_decimals, 32 bytes": lambda: compare_decimals(32),
    "predicates.positions, 1%": lambda: positions(0.01),
    "predicates.positions, 50%": lambda: positions(0.5),
    "predicates.marked, u8": lambda: marked(1, 7),
    "predicates.marked, u16": lambda: marked(2, 2400),
    "predicates.IntegerSet, dense": lambda: integers(200_000),
    "predicates.IntegerSet, sparse": lambda: integers(2**60),
    "predicates.StringSet": strings,
}
