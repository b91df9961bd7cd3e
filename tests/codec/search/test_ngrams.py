"""Tests of tokens of n-gram indices against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.search import ngrams

TEXTS = st.lists(st.one_of(st.text("abzAZ09 é-", max_size=12), st.text(max_size=20)), max_size=30)


def value(character: int, folded: bool) -> int | None:
    """Return the digit of a byte; None if it separates."""
    text = chr(character)
    if text.isascii() and text.isdigit():
        return character - ord("0") + 1
    if not text.isascii() or not text.isalpha():
        return None
    return (character - ord("a") + 11) % 256 if folded or text.islower() else character - ord("A") + 11


def model(text: bytes, folded: bool) -> set[int]:
    """Return the tokens of a text."""
    digits = [value(each, folded) for each in text]
    windows = zip(digits, digits[1:], digits[2:], strict=False)
    return {a * 1369 + b * 37 + c for a, b, c in windows if a is not None and b is not None and c is not None}


def found(texts: list[bytes], folded: bool, wide: bool) -> tuple[list[set[int]], list[int]]:
    """Return the tokens of texts, and the numbers of those that are left out."""
    ends = np.cumsum([3, *map(len, texts)]).astype(np.int64 if wide else np.int32)
    data = b"abc" + b"".join(texts)
    room = ngrams.room(data, ends, wide, folded)
    tokens, rows, others = np.empty(room, np.uint32), np.empty(room, np.uint32), np.empty(len(texts), np.uint32)
    count, left = ngrams.find(data, ends, wide, folded, tokens, rows, others)
    result: list[list[int]] = [[] for _ in texts]
    assert (np.diff(rows[:count].astype(np.int64)) >= 0).all()
    for token, row in zip(tokens[:count].tolist(), rows[:count].tolist(), strict=True):
        result[row].append(token)
    assert all(len(set(each)) == len(each) for each in result)
    return [set(each) for each in result], others[:left].tolist()


@given(TEXTS, st.booleans())
def test_tokens_of_plain_texts(texts: list[str], wide: bool) -> None:
    result, others = found([text.encode() for text in texts], False, wide)
    assert others == [number for number, text in enumerate(texts) if not text.isascii()]
    for text, tokens in zip(texts, result, strict=True):
        assert tokens == (model(text.lower().encode(), False) if text.isascii() else set())
        assert all(token < ngrams.PLAIN for token in tokens)


@given(TEXTS, st.booleans())
def test_tokens_of_folded_texts(texts: list[str], wide: bool) -> None:
    """Other than ASCII characters separate; capital letters have the numbers that bytes overflow to."""
    result, others = found([text.encode() for text in texts], True, wide)
    assert not others
    assert result == [model(text.encode(), True) for text in texts]
    assert all(token < ngrams.FOLDED for tokens in result for token in tokens)


def test_known_numbers() -> None:
    result, _ = found([b"Hello", b"VVV", b"zzz", b"000"], False, False)
    assert 25219 in result[0]
    assert result[2:] == [{50652}, {1407}]
    assert found([b"VVV", b"UUU"], True, False)[0] == [{0}, {ngrams.FOLDED - 1}]


def test_long_texts_need_room_for_all_tokens_at_most() -> None:
    text = np.random.default_rng(1).integers(ord("a"), ord("z") + 1, 200_000).astype(np.uint8).tobytes()
    ends = np.array([0, len(text)], np.int64)
    assert ngrams.room(text, ends, True, False) == ngrams.PLAIN + 1
    assert found([text], False, True)[0] == [model(text, False)]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=60))
def test_entries_are_grouped(entries: list[tuple[int, int]]) -> None:
    tokens, rows = (np.array([entry[part] for entry in entries], np.uint32) for part in range(2))
    ids = np.random.default_rng(len(entries)).integers(0, 1 << 63, 10, np.uint64)
    starts, out = np.empty(42, np.int64), np.empty(len(entries), np.uint64)
    ngrams.group(tokens, rows, ids, starts, out)
    assert starts[0] == 0
    assert starts[-1] == len(entries)
    for token in range(41):
        expected = [int(ids[row]) for each, row in entries if each == token]
        assert out[starts[token] : starts[token + 1]].tolist() == expected


def test_errors() -> None:
    none = np.empty(0, np.uint32)
    some = np.zeros(1, np.uint32)
    for ends in ([0, 9], [2, 1], [-1, 1]):
        with pytest.raises(CodecError, match="offsets"):
            ngrams.room(b"abc", np.array(ends, np.int32), False, False)
        with pytest.raises(CodecError, match="offsets"):
            ngrams.find(
                b"abc", np.array(ends, np.int32), False, False, np.empty(9, np.uint32), np.empty(9, np.uint32), some
            )
    with pytest.raises(CodecError, match="whole number of offsets"):
        ngrams.room(b"abc", b"12345", False, False)
    with pytest.raises(CodecError):
        ngrams.find(b"abc", np.array([0, 3], np.int32), False, False, some, some, some)
    with pytest.raises(CodecError, match="places do not fit"):
        ngrams.find(b"abc", np.array([0, 3], np.int32), False, False, some, some, none)
    ids = np.zeros(1, np.uint64)
    with pytest.raises(CodecError):
        ngrams.group(some + 3, some, ids, np.zeros(4, np.int64), ids)
    with pytest.raises(CodecError):
        ngrams.group(some, some + 1, ids, np.zeros(4, np.int64), ids)
    with pytest.raises(CodecError, match="fit together"):
        ngrams.group(some, some, ids, np.zeros(4, np.int64), np.zeros(2, np.uint64))
