"""Tests of the building of posting lists against a model of documents, and literal bytes of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.errors import OffsetOverflowError
from lancecodec.search import inversion

#: Types of words.
KINDS = (np.uint16, np.uint32)
DOCUMENTS = st.lists(st.lists(st.integers(0, 6), max_size=9), max_size=12)


def _arrays(documents: list[list[int]]) -> tuple[Any, Any, Any]:
    words = np.array([word for document in documents for word in document], KINDS[len(documents) % 2])
    lengths = np.array([len(document) for document in documents], np.uint32)
    positions = np.array([2 * place for document in documents for place in range(len(document))])
    return words, lengths, positions.astype((np.uint8, np.uint16, np.uint32)[len(documents) % 3])


@given(DOCUMENTS, st.integers(0, 12), st.integers(0, 7))
def test_lists_of_all_words(documents: list[list[int]], cut: int, low: int) -> None:
    parts, first = [], 0
    for part in (documents[:cut], documents[cut:]):
        words, sizes, positions = _arrays(part)
        parts.append(inversion.WordDocuments(words, sizes, first, positions))
        first += len(part)
    seen, lengths, often = np.zeros(7, np.uint32), np.zeros(7, np.int64), np.zeros(7, np.int64)
    for part_documents in parts:
        part_documents.count(seen, lengths, often)
    lengths, often = lengths[low:], often[low:]
    found, counts = np.empty(lengths.sum(), np.uint32), np.empty(lengths.sum(), np.uint32)
    steps, blank = np.empty(often.sum(), np.uint32), np.zeros(7 - low, np.uint32)
    lists = inversion.WordLists(
        low, np.cumsum(lengths) - lengths, np.cumsum(often) - often, blank, blank.copy(), found, counts, steps
    )
    for part_documents in parts:
        part_documents.fill(lists)
    expected = [
        (document, places)
        for word in range(low, 7)
        for document, words in enumerate(documents)
        if (places := [2 * place for place, each in enumerate(words) if each == word])
    ]
    assert found.tolist() == [document for document, _ in expected]
    assert counts.tolist() == [len(places) for _, places in expected]
    assert steps.tolist() == [step for _, places in expected for step in np.diff(places, prepend=0).tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_ranked(kind: Any) -> None:
    codes = np.array([2, 0, 1, 2], kind)
    inversion.rank_codes(codes, np.array([5, 4, 9], np.uint32))
    assert codes.tolist() == [9, 5, 4, 9]
    with pytest.raises(CodecError):
        inversion.rank_codes(np.array([3], kind), np.zeros(3, np.uint32))
    with pytest.raises(CodecError):
        inversion.rank_codes(np.array([0], np.uint16), np.array([1 << 16], np.uint32))


@pytest.mark.parametrize(("words", "lengths"), [([7], [1]), ([1], [2]), ([1, 1], [1, 2])], ids=str)
def test_words_and_lengths_are_checked(words: list[int], lengths: list[int]) -> None:
    documents = inversion.WordDocuments(np.array(words, np.uint16), np.array(lengths, np.uint32))
    with pytest.raises(CodecError):
        documents.count(np.zeros(7, np.uint32), np.zeros(7, np.int64), np.zeros(7, np.int64))


def test_wrong_sizes_are_refused() -> None:
    words, lengths = np.zeros(4, np.uint16), np.array([4], np.uint32)
    for arguments in (
        (np.zeros(4, np.int64), lengths),
        (words, lengths, 0, np.zeros(3, np.uint8)),
        (words, lengths, 0, np.zeros(4, np.int64)),
        (words, lengths, 1 << 32),
        (np.zeros(9, np.uint8)[1:].view(np.uint16), lengths),
    ):
        with pytest.raises(CodecError):
            inversion.WordDocuments(*arguments)


def test_lists_without_room() -> None:
    documents = inversion.WordDocuments(np.array([1, 1], np.uint32), np.array([1, 1], np.uint32))
    for place in (-1, 0, 1, 2**62):
        one = np.zeros(1, np.uint32)
        lists = inversion.WordLists(
            1, np.array([place]), np.zeros(1, np.int64), one, one.copy(), one.copy(), one.copy()
        )
        with pytest.raises(CodecError):
            documents.fill(lists)


def _lists(lengths: list[int], documents: Any, frequencies: Any, of: Any, size: int, *, fixed: bool = False) -> Any:
    blocks, impacts = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    counts = -(-np.array(lengths) // size)
    ends, impact_ends = np.zeros(counts.sum(), np.int64), np.zeros((counts - (-counts // 32)).sum(), np.int64)
    best = np.zeros(len(lengths), np.float32)
    norms = inversion.DocumentNorms(np.array(of, np.uint32), np.ones(len(of), np.float32))
    limits = np.ones(len(lengths), np.float32)
    arguments = (np.array(lengths), np.array(documents, np.uint32), np.array(frequencies, np.uint32), norms, limits)
    used = inversion.write_lists(*arguments, size, fixed, blocks, ends, impacts, impact_ends, best)
    return blocks[: used[0]].tobytes(), ends.tolist(), impacts[: used[1]].tobytes(), impact_ends.tolist(), best.tolist()


def test_a_full_block() -> None:
    blocks, ends, *_, best = _lists([128], 1000 + 3 * np.arange(128), np.ones(128), np.ones(1400), 128)
    assert blocks == bytes.fromhex("0000003fe803000002fc") + b"\xff" * 31 + b"\x01" + b"\xff" * 16
    assert (ends, best) == ([len(blocks)], [0.5])


def test_short_blocks_and_skip_data() -> None:
    lengths = np.full(13, 99)
    lengths[[3, 9, 12]] = 10, 9, 40
    blocks, _, impacts, ends, _ = _lists([3], [3, 9, 12], [1, 2, 5], lengths, 128)
    assert blocks[4:].hex() == "030603010205"
    assert (impacts.hex(), ends) == ("0c0203090511" * 2, [6, 12])
    blocks = _lists([3], [3, 9, 12], [1, 2, 5], lengths, 128, fixed=True)[0]
    assert np.frombuffer(blocks[4:], np.uint32).tolist() == [3, 9, 12, 1, 2, 5]


def test_exceptions_of_large_blocks() -> None:
    often = np.ones(256, np.uint32)
    often[7] = 1000
    blocks = _lists([256], np.arange(256), often, np.ones(256), 256)[0]
    assert blocks[:5].hex() == "0000000001"
    assert blocks[37:39].hex() == "0101"
    assert blocks[-3:].hex() == "07f403"


@pytest.mark.parametrize(
    ("lengths", "documents", "frequencies"),
    [([2], [0, 1], [1, 0]), ([2], [1, 1], [1, 1]), ([2], [0, 9], [1, 1]), ([0], [], []), ([1], [0, 1], [1, 1])],
    ids=str,
)
def test_lists_are_checked(lengths: list[int], documents: list[int], frequencies: list[int]) -> None:
    with pytest.raises(CodecError):
        _lists(lengths, documents, frequencies, [1, 1], 128)


def test_outputs_that_are_too_small() -> None:
    one, ends = np.ones(1, np.uint32), np.zeros(2, np.int64)
    norms, limit = inversion.DocumentNorms(np.ones(2, np.uint32), np.ones(2, np.float32)), np.ones(1, np.float32)
    for room, impacts in ((13, 100), (100, 3)):
        with pytest.raises(OffsetOverflowError):
            inversion.write_lists(
                *(np.ones(1, np.int64), one, one, norms, limit, 128, False),
                *(bytearray(room), ends, bytearray(impacts), ends, limit),
            )
    with pytest.raises(OffsetOverflowError):
        inversion.write_positions(np.ones(1, np.int64), one, one, 128, bytearray(4), ends)


def test_positions() -> None:
    steps = np.full(131, 3, np.uint32)
    out, ends = bytearray(1000), np.zeros(2, np.int64)
    size = inversion.write_positions(np.array([1, 1]), np.array([130, 1], np.uint32), steps, 128, out, ends)
    assert bytes(out[:size]) == b"\x02" + b"\xff" * 32 + b"\x03" * 3
    assert ends.tolist() == [35, 36]
    with pytest.raises(CodecError):
        inversion.write_positions(np.array([1, 1]), np.array([130, 2], np.uint32), steps, 128, out, ends)
