from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_cases.case import VALUES, Case, rng
from lancecodec.search import tokens

LETTERS = tokens.Alphabet(np.array([48, 58, 65, 91, 97, 123, 0xC0, 0x250], np.int32))
WORDS = 60_000


def texts(accents: bool = False) -> tuple[bytes, np.ndarray]:
    """Return texts of 20 words each, which occur as often as in natural languages."""
    lengths, letters = rng().integers(2, 11, WORDS), np.array(list("etaoinshrdlucmfwyp" + "éüñß" * accents))
    words = [
        "".join(rng().permutation(letters)[:size].tolist()) + str(i % 97) * (i > 900) for i, size in enumerate(lengths)
    ]
    ranks = np.minimum(rng().zipf(1.3, VALUES // 8) - 1, WORDS - 1)
    lines = [" ".join(words[rank] for rank in part).encode() for part in np.array_split(ranks, VALUES // 160)]
    return b"".join(lines), np.cumsum([0, *map(len, lines)]).astype(np.int32)


def found(size: int, count: int) -> tokens.FoundTokens:
    return tokens.FoundTokens(np.empty(size, np.int32), np.empty(size, np.int32), np.empty(count, np.int64), 40, True)


def runs(accents: bool) -> Case:
    (data, ends), table = texts(accents), tokens.TokenTable()
    out = found(len(data), len(ends))
    return Case(lambda: table.runs(LETTERS, out, data, ends, False), len(data))


def grams() -> Case:
    (data, ends), table = texts(), tokens.TokenTable()
    out = found(len(data), len(ends))
    return Case(lambda: table.grams(3, 3, False, out, data, ends, False), len(data))


def whole() -> Case:
    (data, ends), table = texts(), tokens.TokenTable()
    out = found(len(ends), len(ends))
    return Case(lambda: table.whole(out, data, ends, False), len(data))


CASES: dict[str, Callable[[], Case]] = {
    "tokens.TokenTable.runs, ASCII": lambda: runs(False),
    "tokens.TokenTable.runs, accents": lambda: runs(True),
    "tokens.TokenTable.grams": grams,
    "tokens.TokenTable.whole": whole,
}
