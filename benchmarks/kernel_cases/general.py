"""LZ4 and Zstandard: the speed of the libraries, and the overhead per unit if units are as small as chunks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec.general import (
    Scheme,
    compress,
    compress_units,
    decompress,
    decompress_units,
    decompressed_ends,
)

UNIT = 4096
UNITS = 1_000


def content() -> np.ndarray:
    """Return integers below 1,000 as 64 bits, which compress to about a fifth."""
    return rng().integers(0, 1_000, UNITS * UNIT // 8).view(np.uint8)


def compress_one(scheme: Scheme) -> Case:
    data = content()
    return Case(lambda: compress(scheme, None, data), data.nbytes)


def decompress_one(scheme: Scheme) -> Case:
    data = content()
    unit = compress(scheme, None, data)
    return Case(lambda: decompress(scheme, unit, expected_size=data.nbytes), data.nbytes)


def compress_many(scheme: Scheme) -> Case:
    data, ends, out_ends = content(), np.arange(1, UNITS + 1) * UNIT, np.empty(UNITS, np.int64)
    return Case(lambda: compress_units(scheme, None, data, ends, out_ends), data.nbytes)


def decompress_many(scheme: Scheme) -> Case:
    data, ends, stored_ends = content(), np.arange(1, UNITS + 1) * UNIT, np.empty(UNITS, np.int64)
    stored, out = compress_units(scheme, None, data, ends, stored_ends), np.empty(data.nbytes, np.uint8)

    def work() -> None:
        decompressed_ends(scheme, stored, stored_ends, ends, out.nbytes)
        decompress_units(scheme, stored, stored_ends, ends, out)

    return Case(work, data.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "general.compress, lz4": lambda: compress_one("lz4"),
    "general.compress, zstd": lambda: compress_one("zstd"),
    "general.compress_units, lz4, 4 KiB each": lambda: compress_many("lz4"),
    "general.compress_units, zstd, 4 KiB each": lambda: compress_many("zstd"),
    "general.decompress, lz4": lambda: decompress_one("lz4"),
    "general.decompress, zstd": lambda: decompress_one("zstd"),
    "general.decompress_units, lz4, 4 KiB each": lambda: decompress_many("lz4"),
    "general.decompress_units, zstd, 4 KiB each": lambda: decompress_many("zstd"),
}
