"""Levels of single values and of whole rows of mini-block pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import FLAT, Levels, RepetitionIndex
from lancecodec.miniblock_write import Assembly

CHUNK = 1024


def opened(streams: list[np.ndarray], counts: np.ndarray) -> Chunks:
    """Return chunks of levels only; every entry owns a value."""
    ends = np.cumsum(2 * counts)
    plan = Assembly(counts, [], True, levels=counts, level_streams=[(stream, ends) for stream in streams])
    words, data = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(words, data)
    table = ChunkTable(words, int(counts.sum()), len(data), True)
    return Chunks(table, 0, repetition=len(streams) > 1, definition=True, data=data)


def chunk_counts(n: int) -> np.ndarray:
    return np.diff(np.append(np.arange(0, n, CHUNK), n))


def take(share: int) -> Case:
    """Read the definition levels of single values, ascending."""
    counts = chunk_counts(VALUES)
    definition = rng().integers(0, 2, VALUES).astype(np.uint16)
    column = Levels(opened([definition], counts), definition=(FLAT, 0), max_definition=1, max_visible=1)
    items = np.flatnonzero(rng().random(VALUES) < 1 / share)
    out = np.zeros(len(items), np.uint16)
    return Case(lambda: column.take(items, out), out.nbytes)


def take_rows(mean: int, share: int) -> Case:
    """Read rows of lists of about `mean` values, ascending."""
    starts = rng().random(VALUES) < 1 / mean
    starts[0] = True
    counts, definition = chunk_counts(VALUES), rng().integers(0, 2, VALUES).astype(np.uint16)
    started = np.add.reduceat(starts, np.arange(0, VALUES, CHUNK)).cumsum()
    next_starts = np.append(starts[CHUNK::CHUNK], True)
    ended = started - ~next_starts
    pairs = np.stack([np.diff(ended, prepend=0), ~next_starts], 1).astype(np.uint64)
    tops = {"max_repetition": 1, "max_definition": 1, "max_visible": 1}
    column = Levels(
        opened([starts.astype(np.uint16), definition], counts), repetition=(FLAT, 0), definition=(FLAT, 0), **tops
    )
    index = RepetitionIndex(pairs, len(counts), int(starts.sum()))
    rows = np.flatnonzero(rng().random(index.num_rows) < 1 / share)
    begins, found = np.zeros((2, len(rows)), np.int64)
    levels, _ = column.take_rows(index, rows, begins, found)
    return Case(lambda: column.take_rows(index, rows, begins, found), 2 * len(levels))


CASES: dict[str, Callable[[], Case]] = {
    **{f"miniblock_rows.take, 1 value of {share}": partial(take, share) for share in (2, 1000)},
    **{
        f"miniblock_rows.take_rows, lists of {mean}, 1 row of {share}": partial(take_rows, mean, share)
        for mean in (5, 200)
        for share in (1, 100)
    },
}
