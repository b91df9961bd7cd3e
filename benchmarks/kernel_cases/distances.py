from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search.distances import ELEMENTS, METRICS, Coarse, Nearest, query_size

DIMENSION = 128
#: Bytes of an element.
WIDTHS = {"f": 4, "d": 8, "e": 2, "b": 2, "i1": 1, "u1": 1}


def add(element: str, metric: str, queries: int = 1, k: int = 10, *, rows: bool = False) -> Case:
    """Add vectors to a search; with `rows` every second one."""
    count = max(VALUES // DIMENSION, 1)
    kind = {"e": np.float16, "f": np.float32, "d": np.float64}.get(element)
    numbers = rng().standard_normal((count, DIMENSION))
    values = (numbers * 40).astype(np.int8) if kind is None else numbers.astype(kind)
    if element == "b":
        values = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    size = query_size(DIMENSION, ELEMENTS.index(element), METRICS.index(metric)) * queries
    wanted = rng().standard_normal(size // 4).astype(np.float32).tobytes()
    chosen = np.arange(0, count, 2) if rows else None

    def work() -> None:
        search = Nearest(wanted, DIMENSION, ELEMENTS.index(element), METRICS.index(metric), k)
        search.add(values, count, chosen, None, 0, None, 0, None)

    return Case(work, count * DIMENSION * WIDTHS[element] // (2 if rows else 1))


def add_lists() -> Case:
    """Add lists of eight vectors."""
    count = max(VALUES // DIMENSION // 8, 1) * 8
    values = rng().standard_normal((count, DIMENSION)).astype(np.float32)
    wanted = rng().standard_normal((4, DIMENSION)).astype(np.float32)
    offsets = np.arange(0, count + 1, 8, dtype=np.int32)

    def work() -> None:
        search = Nearest(wanted, DIMENSION, 0, METRICS.index("cosine"), 10, lists=True)
        search.add_lists(values, count, None, 0, offsets, False, None, None, 0, None, 0, None)

    return Case(work, values.nbytes)


def add_coarse() -> Case:
    """Compare those of many vectors that are near by their coarse codes."""
    count = max(VALUES // DIMENSION, 1)
    values = rng().standard_normal((count, DIMENSION)).astype(np.float32)
    codes, wanted = Coarse(values, count, DIMENSION, 0), rng().standard_normal(DIMENSION).astype(np.float32)
    return Case(lambda: Nearest(wanted, DIMENSION, 0, 0, 10).add_coarse(values, codes, 0), values.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    **{f"distances.add, f32, {metric}": lambda metric=metric: add("f", metric) for metric in METRICS[:3]},
    **{f"distances.add, {element}, l2": lambda element=element: add(element, "l2") for element in ELEMENTS[1:]},
    "distances.add, u1, hamming": lambda: add("u1", "hamming"),
    "distances.add, f32, l2, 16 queries": lambda: add("f", "l2", queries=16),
    "distances.add, f32, l2, every second row": lambda: add("f", "l2", rows=True),
    "distances.add, f32, l2, k 1000": lambda: add("f", "l2", k=1000),
    "distances.add_coarse, f32, l2": add_coarse,
    "distances.add_lists, f32, cosine": add_lists,
}
