"""Tests of rows, chunks, repetition index and control words against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, levels

seeds = st.integers(0, 2**32 - 1)
counts = st.one_of(st.integers(0, 20), st.sampled_from([63, 64, 65, 1000, 40_000]))


def u16(values: list[int] | np.ndarray) -> np.ndarray:
    return np.asarray(values, np.uint16)


def random_stream(rng: np.random.Generator, count: int, top: int) -> np.ndarray:
    stream = rng.integers(0, top + 1, count) * (rng.random(count) < rng.choice([0.02, 0.5, 1.0]))
    return u16(np.where(rng.random(count) < rng.choice([0.0, 0.01, 0.9]), top, stream))


def skewed(stream: np.ndarray, skew: int) -> memoryview:
    return memoryview(b"." * skew + stream.tobytes())[skew:]


@given(counts, st.sampled_from([1, 2, 3, 65_535]), st.integers(0, 1), seeds)
def test_rows(count: int, top: int, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream = random_stream(rng, count, top)
    source = skewed(stream, skew)
    starts = np.flatnonzero(stream == top)
    rows = len(starts)
    assert levels.max_level(source) == max(stream.tolist(), default=0)
    assert levels.count_rows(source, top) == rows
    out = np.full(rows + 1, -1, np.int64)
    assert levels.row_starts(source, top, out[:rows]) == rows
    assert out.tolist() == [*starts.tolist(), -1]
    ends = [*starts.tolist(), count]
    for _ in range(5):
        first, last = sorted(rng.integers(0, rows + 1, 2).tolist())
        assert levels.row_items(source, top, first, last) == (ends[first], ends[last])
    start, stop = sorted(rng.integers(0, count + 1, 2).tolist())
    limit = int(rng.integers(0, top + 1))
    assert levels.count_visible(source, start, stop, limit) == (stream[start:stop] <= limit).sum()


def slow_index(repetition: np.ndarray, top: int, ends: np.ndarray) -> list[int]:
    pairs, start = [], 0
    for end in ends.tolist():
        part = repetition[start:end]
        heads = np.flatnonzero(part == top)
        whole = end == len(repetition) or repetition[end] == top
        rows = sum(1 for head in heads if head > 0) + whole
        pairs += [rows, 0 if whole else len(part) - (int(heads[-1]) if len(heads) else 0)]
        start = end
    return pairs


@given(st.integers(1, 3000), st.integers(0, 3), st.booleans(), seeds)
def test_cut_and_repetition_index(count: int, visible_top: int, plain: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    definition = None if plain else random_stream(rng, count, 4)
    shown = np.ones(count, bool) if definition is None else definition <= visible_top
    visible = int(shown.sum())
    if visible == 0:
        with pytest.raises(CodecError):
            levels.cut(definition, count, visible_top, np.array([1]), np.zeros(1, np.int64))
        return
    bounds = np.unique([0, visible, *rng.integers(0, visible + 1, rng.integers(0, 9))])
    ends = np.zeros(len(bounds) - 1, np.int64)
    most = levels.cut(definition, count, visible_top, np.diff(bounds), ends)
    expected = np.flatnonzero(shown)[bounds[1:] - 1] + 1
    expected[-1] = count
    assert ends.tolist() == expected.tolist()
    assert most == np.diff([0, *ends]).max()
    repetition = random_stream(rng, count, 2)
    repetition[0] = 2
    out = np.zeros(2 * len(ends), np.uint64)
    levels.repetition_index(repetition, 2, ends, out)
    assert out.tolist() == slow_index(repetition, 2, ends)
    assert out[::2].sum() == (repetition == 2).sum()


def test_golden_repetition_index() -> None:
    """list<list<int32>> [[1],[]], null, [null,[null]] has three rows, which end in the only chunk."""
    ends, out = np.zeros(1, np.int64), np.zeros(2, np.uint64)
    assert levels.cut(u16([0, 3, 4, 2, 1]), 5, 1, np.array([2]), ends) == 5
    levels.repetition_index(u16([2, 1, 2, 2, 1]), 2, ends, out)
    assert (ends.tolist(), out.tolist()) == ([5], [3, 0])


@pytest.mark.parametrize("sizes", [[], [2], [4], [0, 3], [3, 0], [-1, 4], [1, 1, 2], [2**62, 2**62], [3, 2**63 - 1]])
def test_cut_rejects_counts(sizes: list[int]) -> None:
    with pytest.raises(CodecError):
        levels.cut(u16([0, 0, 9, 0]), 4, 1, np.array(sizes, np.int64), np.zeros(len(sizes), np.int64))
    with pytest.raises(CodecError):
        levels.cut(None, 3, 0, np.array(sizes, np.int64), np.zeros(len(sizes), np.int64))


@pytest.mark.parametrize("ends", [[3], [5], [0, 4], [2, 2, 4], [3, 2, 4], [-1, 4], [2**62, 4], [2, 2**62]])
def test_repetition_index_rejects_ends(ends: list[int]) -> None:
    with pytest.raises(CodecError):
        levels.repetition_index(u16([1, 0, 1, 1]), 1, np.array(ends, np.int64), bytearray(64))


def test_other_rejections() -> None:
    stream = u16([1, 0, 1])
    with pytest.raises(CodecError):
        levels.max_level(b"abc")
    with pytest.raises(CodecError):
        levels.count_rows(stream, 65_536)
    with pytest.raises(CodecError):
        levels.row_starts(stream, 1, np.zeros(1, np.int64))
    for start, stop in [(-1, 1), (2, 1), (0, 3), (3, 3), (2**62, 2**62)]:
        with pytest.raises(CodecError):
            levels.row_items(stream, 1, start, stop)
    for start, stop in [(-1, 1), (2, 1), (0, 4), (4, 4)]:
        with pytest.raises(CodecError):
            levels.count_visible(stream, start, stop, 0)
    with pytest.raises(CodecError):
        levels.cut(stream, 4, 1, np.array([4]), np.zeros(1, np.int64))
    with pytest.raises(CodecError):
        levels.repetition_index(stream, 1, np.array([3]), bytearray(15))


@given(counts, st.integers(0, 16), st.integers(0, 16), st.integers(0, 1), seeds)
def test_control_words(count: int, bits_rep: int, bits_def: int, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rep = u16(rng.integers(0, 2**bits_rep, count)) if bits_rep else None
    definition = u16(rng.integers(0, 2**bits_def, count)) if bits_def else None
    width = levels.control_width(bits_rep, bits_def)
    assert width == next(bytes_ for bytes_ in (0, 1, 2, 4) if bits_rep + bits_def <= 8 * bytes_)
    words = memoryview(bytearray(skew + count * width))[skew:]
    levels.pack_control_words(None if rep is None else skewed(rep, skew), definition, count, bits_rep, bits_def, words)
    zeros = np.zeros(count, np.int64)
    expected = (zeros if rep is None else rep.astype(np.int64)) << bits_def
    expected |= zeros if definition is None else definition.astype(np.int64)
    if width:
        assert np.frombuffer(bytes(words), f"<u{width}").tolist() == expected.tolist()
    back = np.full((2, count), 7, np.uint16)
    levels.unpack_control_words(words, count, bits_rep, bits_def, back[0], back[1])
    assert back[0].tolist() == (zeros if rep is None else rep).tolist()
    assert back[1].tolist() == (zeros if definition is None else definition).tolist()


def test_golden_control_words() -> None:
    """list<int32> [1], [], null, [null, 2] in a full-zip page has 1 bit of repetition and 2 bits of definition."""
    words = bytearray(5)
    levels.pack_control_words(u16([1, 1, 1, 1, 0]), u16([0, 3, 2, 1, 0]), 5, 1, 2, words)
    assert words.hex() == "0407060500"


def test_control_words_reject() -> None:
    with pytest.raises(CodecError, match="level"):
        levels.pack_control_words(u16([2]), None, 1, 1, 2, bytearray(1))
    with pytest.raises(CodecError, match="level"):
        levels.pack_control_words(None, u16([1]), 1, 1, 0, bytearray(1))
    for bits in [(17, 0), (0, 17), (-1, 3), (3, -1), (2**62, 2**62)]:
        with pytest.raises(CodecError, match="control words cannot hold"):
            levels.control_width(*bits)
    with pytest.raises(CodecError, match="too small"):
        levels.pack_control_words(None, u16([1, 1]), 2, 8, 1, bytearray(3))
    for words, count in [(3, 2), (4, 3), (4, -1), (5, 2)]:
        with pytest.raises(CodecError):
            levels.unpack_control_words(bytes(words), count, 8, 1, None, None)
    with pytest.raises(CodecError):
        levels.unpack_control_words(bytes(4), 2, 8, 1, bytearray(3), None)
    with pytest.raises(CodecError):
        levels.unpack_control_words(bytes(4), 2, 8, 1, None, bytearray(6))
