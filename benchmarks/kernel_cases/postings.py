from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import postings

SIZE = VALUES
#: Width of packed differences and frequencies.
WIDTH = 2


def term(seed: int) -> postings.Term:
    """Return a list of full blocks of packed numbers."""
    blocks = SIZE // 128
    parts = np.zeros((blocks, 10 + 32 * WIDTH), np.uint8)
    firsts = (np.arange(blocks, dtype=np.uint32) * 128 * 3).view(np.uint8).reshape(blocks, 4)
    parts[:, 4:8], parts[:, 8], parts[:, 9 + 16 * WIDTH] = firsts, WIDTH, WIDTH
    random = np.random.default_rng(seed)
    for start in (9, 10 + 16 * WIDTH):  # numbers of two bits from 1 to 3
        low = random.integers(0, 256, (blocks, 16 * WIDTH), np.uint8)
        parts[:, start : start + 16 * WIDTH] = low | (~(low | low >> 1) & 0x55)
    parts[:, 9] &= 0xFC
    offsets = np.arange(blocks + 1, dtype=np.int64) * parts.shape[1]
    return postings.Term(parts.tobytes(), offsets, SIZE, 4 * SIZE, 128, False)


def norms() -> np.ndarray:
    return (0.3 + rng().random(4 * SIZE)).astype(np.float32)


def decode() -> Case:
    found, docs, counts = term(1), np.empty(SIZE, np.uint32), np.empty(SIZE, np.uint32)
    return Case(lambda: found.decode(docs, counts), docs.nbytes + counts.nbytes)


def bounds() -> Case:
    found, measured = term(1), norms()
    return Case(lambda: found.bound_by_documents(measured), 8 * SIZE)


def search(every: bool, best: int) -> Case:
    terms, measured = [term(1), term(2)], norms()
    for each in terms:
        each.bound_by_documents(measured)
    weights = np.ones(2, np.float32)
    room = best or 2 * SIZE
    docs, scores = np.empty(room, np.uint32), np.empty(room, np.float32)
    return Case(lambda: postings.search(terms, weights, measured, None, every, best, -1.0, docs, scores), 16 * SIZE)


CASES: dict[str, Callable[[], Case]] = {
    "postings.decode": decode,
    "postings.bound_by_documents": bounds,
    "postings.search, all": lambda: search(False, 0),
    "postings.search, best": lambda: search(False, 10),
    "postings.search, every": lambda: search(True, 10),
}
