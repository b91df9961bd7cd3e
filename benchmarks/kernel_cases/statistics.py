from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec import statistics
from lancecodec.statistics import DistinctSketch


def fixed(width: int, kind: Literal["u", "i", "f"], nulls: bool = False, run: int = 1) -> Case:
    values = rng().random(VALUES // run) * 2 ** (7 * width) if kind != "f" else rng().random(VALUES // run)
    values = np.repeat(values, run).astype(f"<{kind}{width}")
    validity = np.packbits(rng().random(VALUES) < 0.8, bitorder="little") if nulls else None
    source = values.view(np.uint8)
    return Case(lambda: statistics.fixed(source, width, kind, validity), values.nbytes)


def fixed_bytes(width: int) -> Case:
    values = rng().integers(0, 256, (VALUES, width), np.uint8)
    return Case(lambda: statistics.fixed_bytes(values, width), values.nbytes)


def variable(nulls: bool) -> Case:
    offsets = np.concatenate([[0], np.cumsum(rng().integers(0, 30, VALUES))]).astype(np.int32)
    data = bytes(int(offsets[-1]))
    validity = np.packbits(rng().random(VALUES) < 0.8, bitorder="little") if nulls else None
    return Case(lambda: statistics.variable(data, offsets, False, validity), offsets.nbytes)


def sketch_fixed() -> Case:
    values, sketch = rng().integers(0, 2**60, VALUES), DistinctSketch()
    return Case(lambda: sketch.add_fixed(values, 8), values.nbytes)


def sketch_variable() -> Case:
    offsets = np.concatenate([[0], np.cumsum(rng().integers(4, 30, VALUES))]).astype(np.int32)
    data, sketch = rng().integers(97, 123, int(offsets[-1]), np.uint8), DistinctSketch()
    return Case(lambda: sketch.add_variable(data, offsets, False), data.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "statistics.fixed, u8": lambda: fixed(1, "u"),
    "statistics.fixed, i16": lambda: fixed(2, "i"),
    "statistics.fixed, i32": lambda: fixed(4, "i"),
    "statistics.fixed, i64": lambda: fixed(8, "i"),
    "statistics.fixed, f32": lambda: fixed(4, "f"),
    "statistics.fixed, f64": lambda: fixed(8, "f"),
    "statistics.fixed, i64, nulls": lambda: fixed(8, "i", nulls=True),
    "statistics.fixed, i64, runs of 100": lambda: fixed(8, "i", run=100),
    "statistics.fixed, i64, runs of 1000": lambda: fixed(8, "i", run=1000),
    "statistics.fixed_bytes, 16": lambda: fixed_bytes(16),
    "statistics.variable": lambda: variable(False),
    "statistics.variable, nulls": lambda: variable(True),
    "statistics.DistinctSketch.add_fixed, 8 bytes": sketch_fixed,
    "statistics.DistinctSketch.add_variable": sketch_variable,
}
