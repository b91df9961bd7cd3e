from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import inversion

_WORDS, _LENGTH = 5000, 32


def _documents() -> tuple[Any, Any]:
    words = np.minimum(rng().zipf(1.2, VALUES), _WORDS) - 1
    return words.astype(np.uint32), np.full(VALUES // _LENGTH, _LENGTH, np.uint32)


def rank_codes() -> Case:
    codes, _ = _documents()
    ranks = np.arange(_WORDS, dtype=np.uint32)
    return Case(lambda: inversion.rank_codes(codes, ranks), codes.nbytes)


def _counted() -> tuple[Any, Any, Any]:
    words, sizes = _documents()
    documents = inversion.WordDocuments(words, sizes, 0, words)
    lengths, often = np.zeros(_WORDS, np.int64), np.zeros(_WORDS, np.int64)
    documents.count(np.zeros(_WORDS, np.uint32), lengths, often)
    return documents, lengths, often


def count() -> Case:
    documents, lengths, often = _counted()
    seen = np.zeros(_WORDS, np.uint32)
    return Case(lambda: documents.count(seen, lengths, often), 4 * VALUES)


def _filled(lists: Any) -> tuple[Any, Any, Any]:
    documents, lengths, often = lists
    found, counts = np.empty(lengths.sum(), np.uint32), np.empty(lengths.sum(), np.uint32)
    steps, blank = np.empty(often.sum(), np.uint32), np.zeros(_WORDS, np.uint32)
    starts = np.cumsum(lengths) - lengths, np.cumsum(often) - often
    documents.fill(inversion.WordLists(0, *starts, blank, blank.copy(), found, counts, steps))
    return found, counts, steps


def fill() -> Case:
    lists = _counted()
    return Case(lambda: _filled(lists), 4 * VALUES)


def write_lists(size: int) -> Case:
    documents, lengths, often = _counted()
    found, counts, _ = _filled((documents, lengths, often))
    kept = lengths > 0
    ends = [np.empty(len(found) // size + 2 * _WORDS, np.int64) for _ in range(2)]
    norms = inversion.DocumentNorms(*(np.ones(VALUES // _LENGTH, kind) for kind in (np.uint32, np.float32)))
    limits, best = np.ones(int(kept.sum()), np.float32), np.ones(int(kept.sum()), np.float32)
    out = [np.empty(12 * len(found) + 5000, np.uint8) for _ in range(2)]
    lists = lengths[kept], found, counts, norms, limits, size, False, out[0], ends[0], out[1], ends[1], best
    return Case(lambda: inversion.write_lists(*lists), 8 * len(found))


def write_positions() -> Case:
    documents, lengths, often = _counted()
    _, counts, steps = _filled((documents, lengths, often))
    steps = np.abs(steps.astype(np.int32)).astype(np.uint32)
    ends, out = np.empty(len(counts) // 128 + _WORDS, np.int64), np.empty(5 * len(steps), np.uint8)
    return Case(lambda: inversion.write_positions(lengths, counts, steps, 128, out, ends), steps.nbytes)


CASES: dict[str, Callable[[], Case]] = {
    "inversion.rank_codes": rank_codes,
    "inversion.WordDocuments.count": count,
    "inversion.WordDocuments.fill": fill,
    "inversion.write_lists, 128": lambda: write_lists(128),
    "inversion.write_lists, 256": lambda: write_lists(256),
    "inversion.write_positions": write_positions,
}
