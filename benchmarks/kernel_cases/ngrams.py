from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import ngrams

TEXTS = VALUES // 4
LINE = b"carefully final deposits wake furiously along the express packages; "


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Return pieces of a text of 10 to 40 bytes, and their offsets."""
    ends = np.concatenate([[0], np.cumsum(rng().integers(10, 41, TEXTS))]).astype(np.int32)
    data = np.resize(np.frombuffer(LINE, np.uint8), int(ends[-1])).copy()
    changed = rng().integers(0, len(data), len(data) // 20)
    data[changed] = rng().integers(ord("a"), ord("z") + 1, len(changed))
    return data, ends


def entries(folded: bool) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, ...]]:
    """Return texts, and outputs for their tokens."""
    data, ends = texts()
    room = ngrams.room(data, ends, False, folded)
    return (data, ends), (*(np.empty(room, np.uint32) for _ in range(2)), np.empty(TEXTS, np.uint32))


def room() -> Case:
    data, ends = texts()
    return Case(lambda: ngrams.room(data, ends, False, False), ends.nbytes)


def find(folded: bool) -> Case:
    (data, ends), outputs = entries(folded)
    return Case(lambda: ngrams.find(data, ends, False, folded, *outputs), data.nbytes)


def group() -> Case:
    (data, ends), (tokens, rows, others) = entries(False)
    count, _ = ngrams.find(data, ends, False, False, tokens, rows, others)
    ids, starts = np.arange(TEXTS, dtype=np.uint64), np.empty(ngrams.PLAIN + 1, np.int64)
    tokens, rows, out = tokens[:count], rows[:count], np.empty(count, np.uint64)
    return Case(lambda: ngrams.group(tokens, rows, ids, starts, out), out.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "ngrams.room": room,
    "ngrams.find, plain": lambda: find(False),
    "ngrams.find, folded": lambda: find(True),
    "ngrams.group": group,
}
