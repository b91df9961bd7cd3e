from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import row_sets
from lancecodec.search.row_sets import RowSets

FORM = (8, False)


def sets(count: int, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers of sets, stops, positions, and an output for the sets."""
    parts = [np.unique(rng().integers(0, top, 2 * VALUES // count, np.uint64)) for _ in range(count)]
    values, stops = np.concatenate(parts), np.cumsum([len(part) for part in parts], dtype=np.int64)
    bounds = np.empty(count + 1, np.int64)
    row_sets.measure(values, stops, *FORM, bounds)
    return values, stops, bounds, np.empty(int(bounds[-1]), np.uint8)


def known(count: int, top: int) -> tuple[RowSets, np.ndarray, np.ndarray]:
    """Return sets with their numbers and positions."""
    values, stops, bounds, out = sets(count, top)
    row_sets.encode(values, stops, *FORM, bounds, out)
    return RowSets(out, bounds, *FORM), values, bounds


def measure(count: int, top: int) -> Case:
    values, stops, bounds, _ = sets(count, top)
    return Case(lambda: row_sets.measure(values, stops, *FORM, bounds), values.nbytes)


def encode(count: int, top: int) -> Case:
    values, stops, bounds, out = sets(count, top)
    return Case(lambda: row_sets.encode(values, stops, *FORM, bounds, out), values.nbytes)


def scan() -> Case:
    values, stops, bounds, out = sets(VALUES // 20, 1 << 24)
    row_sets.encode(values, stops, *FORM, bounds, out)
    return Case(lambda: RowSets(out, bounds, *FORM), values.nbytes)


def decode(count: int, top: int) -> Case:
    found, values, _ = known(count, top)
    containers = found.describe(np.empty(count, np.int64), np.empty(0, np.int64))
    out = np.empty(len(values), np.uint64)
    return Case(lambda: found.decode(0, containers, out), out.nbytes)


def intersect(count: int, top: int) -> Case:
    found, values, _ = known(count, top)
    out = np.empty(len(values), np.uint64)
    return Case(lambda: found.intersect(out), values.nbytes)


def unite(count: int, top: int) -> Case:
    found, values, bounds = known(count, top)
    order, out = np.arange(count), np.empty(int(bounds[-1]), np.uint8)
    stops, places = np.array([count // 2, count]), np.empty(3, np.int64)
    return Case(lambda: found.unite(order, stops, places, out), values.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "row_sets.measure, small sets": lambda: measure(20_000, 1 << 24),
    "row_sets.encode, small sets": lambda: encode(20_000, 1 << 24),
    "row_sets.encode, dense sets": lambda: encode(20, 1 << 20),
    "row_sets.RowSets": scan,
    "row_sets.decode, small sets": lambda: decode(20_000, 1 << 24),
    "row_sets.decode, dense sets": lambda: decode(20, 1 << 20),
    "row_sets.intersect, dense sets": lambda: intersect(20, 1 << 20),
    "row_sets.intersect, sparse sets": lambda: intersect(4, 1 << 25),
    "row_sets.unite, dense sets": lambda: unite(20, 1 << 20),
}
