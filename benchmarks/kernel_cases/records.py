"""Fragments of a large table, as a manifest lists them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case
from lancecodec import records

FRAGMENTS = 200_000
#: A file path of 56 bytes, field ids and column indices of three columns, version, size; id and rows of the fragment.
_FILE = b"\x0a\x38" + b"p" * 56 + b"\x12\x03\x00\x01\x02\x1a\x03\x00\x01\x02\x20\x02\x28\x02\x30\xd9\x08"
_FRAGMENT = b"\x08\xe8\x07\x12" + bytes([len(_FILE)]) + _FILE + b"\x20\x80\x08"


def listed() -> tuple[bytes, np.ndarray, np.ndarray]:
    data = (b"\x12" + bytes([len(_FRAGMENT)]) + _FRAGMENT) * FRAGMENTS
    return data, np.zeros(1, np.int64), np.array([len(data)], np.int64)


def locate() -> Case:
    data, start, end = listed()
    out = [np.zeros(FRAGMENTS, np.int64) for _ in range(4)]
    return Case(lambda: records.locate(data, start, end, 2, *out), len(data))


def columns(wanted: list[tuple[int, int, int, int]]) -> Case:
    data, start, end = listed()
    _, _, starts, ends = places = [np.zeros(FRAGMENTS, np.int64) for _ in range(4)]
    records.locate(data, start, end, 2, *places)
    columns_, out = np.array(wanted, np.int64), np.zeros((len(wanted), FRAGMENTS), np.int64)
    return Case(lambda: records.columns(data, starts, ends, columns_, out), len(data))


CASES: dict[str, Callable[[], Case]] = {
    "records.locate, fragments": locate,
    "records.columns, two": lambda: columns([(1, 0, records.LAST, 0), (4, 0, records.LAST, 0)]),
    "records.columns, inner": lambda: columns([(2, 2, records.MAX, -1), (2, 6, records.LAST, 0)]),
}
