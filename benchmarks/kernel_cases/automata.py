from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import automata


def write_fst() -> Case:
    numbers = np.unique(rng().integers(0, 1 << 40, VALUES // 16))
    keys = b"".join(b"%010x" % number for number in numbers.tolist())
    offsets = np.arange(len(numbers) + 1, dtype=np.int64) * 10
    order = np.arange(len(numbers), dtype=np.uint64)
    return Case(lambda: automata.write_fst(keys, offsets, order), len(keys))


def crc32c() -> Case:
    data = rng().integers(0, 256, 8 * VALUES, np.uint8)
    return Case(lambda: automata.crc32c(data), data.nbytes)


CASES: dict[str, Callable[[], Case]] = {"automata.write_fst": write_fst, "automata.crc32c": crc32c}
