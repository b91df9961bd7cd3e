"""Tests of the division of texts into tokens, against regular expressions and plain loops."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancecodec.errors import CodecError, OffsetOverflowError
from lancecodec.search.tokens import Alphabet, FoundTokens, TokenTable

LETTERS = np.array([48, 58, 65, 91, 97, 123, 0xC0, 0x250, 0x4E00, 0x9FFF, 0x1F600, 0x1F650], np.int32)
PATTERN = re.compile("[0-9A-Za-zÀ-ɏ一-\u9ffe\U0001f600-\U0001f64f]+")
TEXTS = ["The quick brown fox", "", None, "  été, 日本!x", "a" * 50 + " b", "\U0001f600a\U0001f650", "x", "ABC abc"]


def buffers(texts: list[Any], wide: bool = False) -> tuple[Any, ...]:
    array = pa.array(["before", *texts], pa.large_string() if wide else pa.string()).slice(1)
    validity, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[1 : len(array) + 2]
    return data, ends, wide, validity, 1


class Room:
    def __init__(self, texts: int, room: int = 10_000, longest: int = 1 << 62, lower: bool = False) -> None:
        self.codes, self.positions = np.empty(room, np.int32), np.empty(room, np.int32)
        self.ends = np.empty(texts, np.int64)
        self.found = FoundTokens(self.codes, self.positions, self.ends, longest, lower)

    def lists(self, table: TokenTable, texts: int) -> list[list[tuple[str, int]]]:
        known, stops = strings(table), [0, *self.ends[:texts].tolist()]
        pairs = [(known[code], at) for code, at in zip(self.codes[: stops[-1]], self.positions.tolist(), strict=False)]
        return [pairs[low:high] for low, high in itertools.pairwise(stops)]


def strings(table: TokenTable) -> list[str]:
    offsets, data = table.tokens()
    ends = np.frombuffer(offsets, np.int64)
    return [data[low:high].decode() for low, high in itertools.pairwise(ends)]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("longest", [1, 4, 40, 1 << 62])
def test_runs(wide: bool, lower: bool, longest: int) -> None:
    """Runs of letters become tokens; those that are too long leave a gap in the positions."""
    table, room = TokenTable(), Room(len(TEXTS), longest=longest, lower=lower)
    count = table.runs(Alphabet(LETTERS), room.found, *buffers(TEXTS, wide))
    expected = []
    for text in TEXTS:
        runs = enumerate(PATTERN.findall(text or ""))
        kept = [(run, at) for at, run in runs if len(run.encode()) < longest]
        expected.append([(re.sub("[A-Z]", lambda m: m[0].lower(), run) if lower else run, at) for run, at in kept])
    assert room.lists(table, len(TEXTS)) == expected
    assert count == sum(map(len, expected))


@pytest.mark.parametrize(
    ("shortest", "largest", "prefixes"), [(1, 2, False), (3, 3, False), (1, 4, True), (2, 1, False)]
)
def test_grams(shortest: int, largest: int, prefixes: bool) -> None:
    """All n-grams of characters become tokens, by their starts and sizes."""
    table, room = TokenTable(), Room(len(TEXTS))
    table.grams(shortest, largest, prefixes, room.found, *buffers(TEXTS))
    expected = [
        [
            (text[start : start + size], 0)
            for start in range(min(1, len(text)) if prefixes else len(text))
            for size in range(shortest, largest + 1)
            if start + size <= len(text)
        ]
        for text in (each or "" for each in TEXTS)
    ]
    assert room.lists(table, len(TEXTS)) == expected


def test_whole_texts() -> None:
    """Texts that are not null become tokens, also empty ones."""
    table, room = TokenTable(), Room(len(TEXTS), longest=30)
    table.whole(room.found, *buffers(TEXTS))
    expected = [[] if text is None or len(text.encode()) >= 30 else [(text, 0)] for text in TEXTS]
    assert room.lists(table, len(TEXTS)) == expected


def test_many_tokens() -> None:
    """The table grows, and equal tokens of all lengths have one code across calls."""
    texts = [f"{'w' * (i % 40)}{i % 30_011}" for i in range(100_000)]
    table, room = TokenTable(), Room(len(texts), len(texts))
    first: dict[str, int] = {}
    codes = [first.setdefault(text, len(first)) for text in texts]
    for _ in range(2):
        table.whole(room.found, *buffers(texts))
        assert room.codes.tolist() == codes
    assert strings(table) == list(first)
    assert table.count == len(first)
    assert table.nbytes > sum(map(len, first))
    assert table.tokens(len(first)) == (bytes(8), b"")


def test_bytes_that_are_not_text() -> None:
    """Bytes that are not UTF-8 separate tokens."""
    data = b"ab\xffcd\xc3 e\xed\xa0\x80f\xf5\x80g\xe4\xb8"
    table, room = TokenTable(), Room(1)
    table.runs(Alphabet(LETTERS), room.found, data, np.array([0, len(data)], np.int32), False)
    assert [token for token, _ in room.lists(table, 1)[0]] == ["ab", "cd", "e", "f", "g"]


def test_errors() -> None:
    """Offsets beyond the data, too little room, and ranges that are not of code points are refused."""
    table, letters = TokenTable(), Alphabet(LETTERS)
    for offsets in ([0, 9], [3, 1], [-1, 2]):
        with pytest.raises(CodecError, match="offsets"):
            table.runs(letters, Room(1).found, b"abc", np.array(offsets, np.int32), False)
    with pytest.raises(OffsetOverflowError):
        table.runs(letters, Room(1, 1).found, b"a b c", np.array([0, 5], np.int32), False)
    with pytest.raises(CodecError, match="too few"):
        table.whole(Room(1).found, b"abc", np.array([0, 1, 2], np.int32), False)
    with pytest.raises(CodecError, match="validity"):
        table.whole(Room(9).found, b"abc", np.zeros(10, np.int32), False, b"\xff", 0)
    with pytest.raises(CodecError, match="no token has the code"):
        table.tokens(5000)
    for ranges in ([5, 4], [-1, 4], [0, 0x110001], [1]):
        with pytest.raises(CodecError):
            Alphabet(np.array(ranges, np.int32))


def test_nulls_may_have_any_offsets() -> None:
    """Offsets around a null are not looked at."""
    table, room = TokenTable(), Room(3)
    table.whole(room.found, b"abc", np.array([0, 1, 99, 3], np.int32), False, b"\x01", 0)
    assert room.lists(table, 3) == [[("a", 0)], [], []]
