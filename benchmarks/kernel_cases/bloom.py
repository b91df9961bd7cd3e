from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import bloom

ZONE = 8192
FILTER = 32_768


def hash_fixed(width: int) -> Case:
    values, out = rng().integers(0, 256, VALUES * width, np.uint8), np.empty(VALUES, np.uint64)
    return Case(lambda: bloom.hash_fixed(values, width, out), values.nbytes)


def hash_variable() -> Case:
    ends = np.concatenate([[0], np.cumsum(rng().integers(10, 41, VALUES))]).astype(np.int32)
    data, out = rng().integers(0, 256, int(ends[-1]), np.uint8), np.empty(VALUES, np.uint64)
    return Case(lambda: bloom.hash_variable(data, ends, False, out), data.nbytes)


def hashes(count: int) -> np.ndarray:
    return rng().integers(0, 1 << 64, count, np.uint64)


def insert() -> Case:
    found, stops = hashes(VALUES), np.append(np.arange(ZONE, VALUES, ZONE), VALUES)
    out = np.zeros(len(stops) * FILTER, np.uint8)
    return Case(lambda: bloom.insert(found, stops, FILTER, out), found.nbytes)


def probe(count: int) -> Case:
    filters = VALUES // 32
    data = rng().integers(0, 256, filters * 64, np.uint8) & 0x55
    offsets, out = np.arange(filters + 1, dtype=np.int64) * 64, np.empty(filters, np.uint8)
    wanted = hashes(count)
    return Case(lambda: bloom.probe(data, offsets, True, wanted, out), 32 * filters)


CASES: dict[str, Callable[[], Case]] = {
    "bloom.hash_fixed, u64": lambda: hash_fixed(8),
    "bloom.hash_fixed, u32": lambda: hash_fixed(4),
    "bloom.hash_variable": hash_variable,
    "bloom.insert": insert,
    "bloom.probe, 1 value": lambda: probe(1),
    "bloom.probe, 20 values": lambda: probe(20),
}
