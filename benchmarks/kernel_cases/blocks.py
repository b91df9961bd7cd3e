"""Blocks of a file that stay in memory, found again, and loaded anew each time. The copy is as large as the ranges."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable

import numpy as np

from kernel_cases.case import Case, rng
from lancecodec import blocks
from lancecodec.blocks import FileBlocks

FILE_BYTES = 32 << 20
RANGES = 2000
RANGE_BYTES = 4000


def file_blocks() -> FileBlocks:
    with tempfile.TemporaryFile() as file:
        file.write(rng().integers(0, 256, FILE_BYTES, np.uint8).tobytes())
        file.flush()
        descriptor = os.dup(file.fileno())
    return FileBlocks(FILE_BYTES, lambda _: [], lambda: descriptor, lambda _, __: None)


def begins() -> np.ndarray:
    return rng().integers(0, FILE_BYTES - RANGE_BYTES, RANGES)


def held() -> Case:
    file, first = file_blocks(), begins()
    last = first + RANGE_BYTES
    return Case(lambda: file.hold(first, last), RANGES * RANGE_BYTES)


def loaded() -> Case:
    file, first = file_blocks(), begins()
    last = first + RANGE_BYTES

    def load() -> None:
        blocks.set_limit(0)
        file.hold(first, last)

    return Case(load, RANGES * RANGE_BYTES)


CASES: dict[str, Callable[[], Case]] = {
    "blocks.FileBlocks.hold in memory": held,
    "blocks.FileBlocks.hold read again": loaded,
}
