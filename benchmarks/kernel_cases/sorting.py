from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import sorting


def sort_keys(bits: int) -> Case:
    keys = rng().integers(0, 1 << bits, VALUES, np.uint64)
    outputs = [np.empty(VALUES, kind) for kind in (np.uint64, np.uint32, np.uint64, np.uint32)]
    return Case(lambda: sorting.sort_keys(keys, *outputs), keys.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    f"sorting.sort_keys, {bits} bits": lambda bits=bits: sort_keys(bits) for bits in (9, 20, 64)
}
