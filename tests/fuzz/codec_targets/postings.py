from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import postings

DOCUMENTS = 600


def varints(values: list[int]) -> bytes:
    out = bytearray()
    for value in values:
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def term(c: Chaos) -> postings.Term:
    """Return a list of one short block, or of any bytes."""
    size = c.random.choice([128, 128, 256])
    count = c.random.randint(1, 100)
    steps = [c.random.randint(0, 3), *(c.random.randint(1, 5) for _ in range(count - 1))]
    data = bytes(4 if size == 128 else 0) + varints(steps) + varints([c.random.randint(1, 9) for _ in range(count)])
    ends = np.array([0, len(data)], np.int64)
    length = count if c.flag(0.95) else c.number()
    return postings.Term(c.damaged(data, 0.1), c.damaged(ends.tobytes(), 0.05), length, DOCUMENTS, size, c.flag(0.05))


def norms(c: Chaos, count: int) -> Any:
    return c.rng.random(count if c.flag(0.97) else c.size(), np.float32)


def open_term(c: Chaos) -> object:
    return term(c)


def decode(c: Chaos) -> object:
    found = term(c)
    places = found.length if c.flag(0.9) else c.size()
    return found.decode(np.empty(places, np.uint32), np.empty(places, np.uint32))


def impacts(c: Chaos) -> object:
    ends = np.cumsum(np.append(0, c.rng.integers(0, 9, 3))).astype(np.int64)
    return term(c).bound_by_impacts(c.buffer(int(ends[-1])), c.damaged(ends.tobytes(), 0.1), norms(c, postings.CODES))


def documents(c: Chaos) -> object:
    return term(c).bound_by_documents(norms(c, DOCUMENTS))


def positions(c: Chaos) -> object:
    starts = np.cumsum(np.append(0, c.rng.integers(0, 200, c.random.randint(0, 4)))).astype(np.int64)
    owners = np.arange(len(starts), dtype=np.int64).tobytes() if c.flag(0.3) else None
    data = c.buffer(int(starts[-1]))
    return postings.Positions(data, c.damaged(starts.tobytes(), 0.1), owners, c.random.randint(0, 2))


def search(c: Chaos) -> object:
    terms = [term(c) for _ in range(c.random.randint(0, 3))]
    best = c.random.choice([0, 3, 10])
    room = c.random.choice([best or DOCUMENTS, DOCUMENTS, c.size()])
    phrase = places = None
    if terms and c.flag(0.3):
        order = c.rng.integers(0, len(terms) + c.flag(0.05), 3).astype(np.int32)
        phrase = postings.Phrase(order, np.arange(3, dtype=np.int32), c.random.randint(0, 3))
        places = [postings.Positions(c.buffer(400), np.array([0, 400], np.int64), None, 1) for _ in terms]
    return postings.search(
        terms,
        c.rng.random(len(terms), np.float32),
        norms(c, DOCUMENTS),
        c.buffer(DOCUMENTS // 8) if c.flag() else None,
        c.flag(),
        best,
        -1.0,
        np.empty(room, np.uint32),
        np.empty(room, np.float32),
        phrase,
        places,
    )


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "postings.Term": open_term,
    "postings.decode": decode,
    "postings.bound_by_impacts": impacts,
    "postings.bound_by_documents": documents,
    "postings.Positions": positions,
    "postings.search": search,
}
