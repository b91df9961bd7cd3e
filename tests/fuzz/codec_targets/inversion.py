from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import inversion


def _numbers(c: Chaos, top: int, count: int, kind: Any) -> Any:
    return c.integers(top, count + (1 if c.flag(0.02) else 0)).astype(kind)


def _documents(c: Chaos, words: int) -> Any:
    sizes = c.rng.integers(0, 9, c.random.randint(0, 20)).astype(np.uint32)
    count = int(sizes.sum())
    if len(sizes) and c.flag(0.1):
        sizes[c.random.randrange(len(sizes))] = c.random.choice([0, count + 1, 2**32 - 1])
    kind, wide = c.random.choice([np.uint16, np.uint32]), c.random.choice([np.uint8, np.uint16, np.uint32])
    positions = _numbers(c, 50, count, wide) if c.flag() else None
    return inversion.WordDocuments(_numbers(c, words, count, kind), sizes, c.number(100), positions)


def rank_codes(c: Chaos) -> object:
    words = c.random.randint(1, 20)
    return inversion.rank_codes(
        _numbers(c, words, c.random.randint(0, 50), c.random.choice([np.uint16, np.uint32])),
        np.arange(words, dtype=np.uint32),
    )


def count(c: Chaos) -> object:
    words = c.random.randint(1, 20)
    return _documents(c, words).count(*(np.zeros(words, kind) for kind in (np.uint32, np.int64, np.int64)))


def fill(c: Chaos) -> object:
    words = c.random.randint(1, 20)
    room = c.random.choice([0, 5, 400])
    places = [np.arange(words, dtype=np.int64) * 20 if c.flag(0.9) else c.integers(400, words) for _ in range(2)]
    scratch = [np.zeros(words, np.uint32) for _ in range(2)]
    out = [np.zeros(room, np.uint32) for _ in range(2)]
    steps = np.zeros(room, np.uint32) if c.flag() else None
    lists = inversion.WordLists(c.number(5), *(each.astype(np.int64) for each in places), *scratch, *out, steps)
    return _documents(c, words).fill(lists)


def _lists(c: Chaos) -> tuple[Any, Any, Any]:
    documents = c.random.choice([1, 40, 600])
    chosen = [
        np.sort(c.rng.choice(documents, c.random.randint(1, documents), replace=False))
        for _ in range(c.random.randint(0, 3))
    ]
    found = np.concatenate([np.empty(0, np.int64), *chosen]).astype(np.uint32)
    often = c.rng.integers(1, c.random.choice([2, 100, 2**32]), len(found)).astype(np.uint32)
    if len(found) and c.flag(0.1):
        found[c.random.randrange(len(found))] = c.random.choice([0, documents, 2**32 - 1])
    if len(often) and c.flag(0.1):
        often[c.random.randrange(len(often))] = 0
    lengths = np.array([len(each) for each in chosen], np.int64)
    if len(lengths) and c.flag(0.1):
        lengths[c.random.randrange(len(lengths))] = c.random.choice([-1, 0, 5000, 2**62])
    return lengths, found, often


def write_lists(c: Chaos) -> object:
    lengths, found, often = _lists(c)
    documents = c.random.choice([0, 600, 600, 600])
    norms = inversion.DocumentNorms(_numbers(c, 2**32, documents, np.uint32), np.ones(documents, np.float32))
    scores = [np.ones(len(lengths), np.float32) for _ in range(2)]
    ends = [np.zeros(c.random.choice([1, 40]), np.int64) for _ in range(2)]
    out = [c.out(c.random.choice([10, 40_000])) for _ in range(2)]
    size = c.random.choice([128, 256, 128, 256, 127])
    return inversion.write_lists(
        lengths, found, often, norms, scores[0], size, c.flag(), out[0], ends[0], out[1], ends[1], scores[1]
    )


def write_positions(c: Chaos) -> object:
    lengths, _, often = _lists(c)
    often = np.minimum(often, 300)
    steps = _numbers(c, c.random.choice([2, 2**32]), int(often.sum()), np.uint32)
    ends = np.zeros(c.random.choice([1, 40]), np.int64)
    return inversion.write_positions(lengths, often, steps, c.random.choice([128, 256, 5]), c.out(5 * len(steps)), ends)


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "inversion.rank_codes": rank_codes,
    "inversion.WordDocuments.count": count,
    "inversion.WordDocuments.fill": fill,
    "inversion.write_lists": write_lists,
    "inversion.write_positions": write_positions,
}
