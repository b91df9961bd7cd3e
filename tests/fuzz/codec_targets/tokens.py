from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from codec_targets.chaos import Chaos
from lancecodec.search import tokens


def texts(c: Chaos) -> tuple[Any, ...]:
    """Return bytes, mostly plausible offsets into them, and a bitmap."""
    wide, count = c.flag(), c.random.choice([0, 1, 8, 9, c.random.randint(0, 200)])
    size = c.random.randint(0, 2000)
    letters = c.flag()
    data = c.rng.choice(np.frombuffer("ab Z9é日\xa0".encode(), np.uint8), size) if letters else c.buffer(size)
    ends = np.sort(c.rng.integers(0, size + 1, count + 1))
    if c.flag(0.1):
        ends[c.random.randrange(len(ends))] = c.random.choice([-1, size + 1, 2**31 - 1, -(2**31)])
    offsets = c.damaged(ends.astype(np.int64 if wide else np.int32).tobytes(), 0.05)
    if c.flag():
        return data, offsets, wide
    return data, offsets, wide, c.buffer((count + 7) // 8 + 1), c.number(8)


def found(c: Chaos) -> tokens.FoundTokens:
    room, count = c.random.choice([0, 5, 3000]), c.random.choice([0, 201, 201, 201])
    codes, positions = np.empty(room, np.int32), np.empty(room + c.random.choice([0, 0, -1, 1]) * (room > 0), np.int32)
    return tokens.FoundTokens(codes, positions, np.empty(count, np.int64), c.number(50), c.flag())


def table(c: Chaos) -> tokens.TokenTable:
    made = tokens.TokenTable()
    if c.flag():
        made.whole(
            tokens.FoundTokens(*(np.empty(1, kind) for kind in (np.int32, np.int32, np.int64))),
            b"a",
            bytes(4) + b"\1\0\0\0",
            False,
        )
    return made


def alphabet(c: Chaos) -> tokens.Alphabet:
    ends = np.sort(c.rng.integers(0, c.random.choice([128, 0x3000, 0x110000]), c.random.choice([0, 2, 6])))
    if len(ends) and c.flag(0.05):
        ends[0] = c.random.choice([-1, 0x110001, 2**31 - 1])
    return tokens.Alphabet(ends.astype(np.int32)[: len(ends) - c.flag(0.02)])


def runs(c: Chaos) -> object:
    made = table(c)
    made.runs(alphabet(c), found(c), *texts(c))
    return made.tokens(c.number(3))


def grams(c: Chaos) -> object:
    return table(c).grams(c.number(4), c.number(5), c.flag(), found(c), *texts(c))


def whole(c: Chaos) -> object:
    made = table(c)
    return made.whole(found(c), *texts(c)), made.count, made.nbytes


TARGETS: dict[str, Callable[[Chaos], object]] = {
    "tokens.Alphabet": alphabet,
    "tokens.FoundTokens": found,
    "tokens.TokenTable.runs": runs,
    "tokens.TokenTable.grams": grams,
    "tokens.TokenTable.whole": whole,
}
