"""Tests of pages of words that one call chooses and encodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lancecodec import CodecError, bitpacking, word_pages
from lancecodec.miniblock_write import Assembly

NO_ROWS = np.empty(0, np.int64)
WIDTHS = [1, 2, 4, 8]


def noise(count: int, width: int, bits: int) -> bytes:
    """Return words of up to `bits` bits without runs."""
    words = np.random.default_rng(count).integers(0, 1 << bits, count, np.uint64)
    words[1::2] ^= (words[1::2] == words[: count // 2 * 2 : 2]).astype(np.uint64)
    return words.astype(f"<u{width}").tobytes()


def assembled(values: bytes, width: int, large: bool) -> tuple[bytes, bytes]:
    """Return the page from the kernels that do one step each."""
    count = len(values) // width
    counts = np.diff(np.append(np.arange(0, count, 1024), count))
    out, ends = bytearray(bitpacking.inline_bound(count, 8 * width)), np.empty(len(counts), np.int64)
    size = bitpacking.inline_encode(values, 8 * width, out, ends)
    page = Assembly(counts, [(memoryview(out)[:size], ends)], large)
    words, chunks = bytearray(page.words_size), bytearray(page.chunks_size)
    page.write(words, chunks)
    return bytes(words), bytes(chunks)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1000, 1024, 5000])
def test_packed_words(count: int, width: int, large: bool) -> None:
    values = noise(count, width, 8 * width - 5)
    for begin in (0, 3):
        encoded = word_pages.encode(b"\xff" * begin + values + b"\xff", begin, count, width, large, NO_ROWS, 0)
        assert encoded == assembled(values, width, large)


@pytest.mark.parametrize("width", WIDTHS)
def test_words_that_fill_all_bits_stay_plain(width: int) -> None:
    assert word_pages.encode(noise(3000, width, 8 * width), 0, 3000, width, True, NO_ROWS, 0) == ()


def test_few_words_stay_plain() -> None:
    """A block of 1,024 values would be larger, whatever their width."""
    assert word_pages.encode(noise(30, 4, 20), 0, 30, 4, True, NO_ROWS, 0) == ()


def test_words_that_may_be_smaller_in_another_form() -> None:
    rows = np.arange(0, 3000, 10)
    few = noise(3000, 4, 3)
    assert word_pages.encode(bytes(12_000), 0, 3000, 4, True, NO_ROWS, 0) is None, "one value"
    assert word_pages.encode(np.arange(3000).repeat(9).astype("<u4"), 0, 27_000, 4, True, NO_ROWS, 0) is None, "runs"
    assert word_pages.encode(few, 0, 3000, 4, True, rows, 8) is None, "a dictionary"
    assert word_pages.encode(few, 0, 3000, 4, True, rows, 7) == assembled(few, 4, True), "too many values for one"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((b"12345678", 0, 2, 3, True, NO_ROWS, 0), "not 3"),
        ((b"12345678", 0, 0, 4, True, NO_ROWS, 0), "0 words"),
        ((b"12345678", 0, 3, 4, True, NO_ROWS, 0), "3 words of 4 bytes from byte 0 on, in a buffer of 8 bytes"),
        ((b"12345678", 1, 2, 4, True, NO_ROWS, 0), "from byte 1"),
        ((b"12345678", -4, 2, 4, True, NO_ROWS, 0), "from byte -4"),
        ((b"12345678", 2**62, 2, 4, True, NO_ROWS, 0), "in a buffer"),
        ((b"12345678", 0, 2**61, 8, True, NO_ROWS, 0), "in a buffer"),
        ((b"12345678", 0, 2, 4, True, np.zeros(4097, np.int64), 0), "4097"),
        ((b"12345678", 0, 2, 4, True, np.array([0, 2]), 0), "sample"),
        ((b"12345678", 0, 2, 4, True, np.array([-1]), 0), "sample"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(CodecError, match=text):
        word_pages.encode(*arguments)
