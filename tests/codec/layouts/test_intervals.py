"""Tests of intervals: of plain values, and of the chunks of a page, against NumPy."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from numpy.typing import NDArray

from lancecodec import CodecError, bitpacking, intervals
from lancecodec.intervals import FLOAT, SIGNED, UNSIGNED, ChunkRanges, IntervalTest
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import FLAT as FLAT_LEVELS
from lancecodec.miniblock_values import FLAT, INLINE, RLE, SPLIT
from lancecodec.miniblock_write import Assembly

TYPES = {
    **{("u", bits): UNSIGNED for bits in (8, 16, 32, 64)},
    **{("i", bits): SIGNED for bits in (8, 16, 32, 64)},
    **{("f", bits): FLOAT for bits in (32, 64)},
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0]


def keys_of(values: NDArray[np.generic], order: int) -> list[int]:
    """Return the keys, computed one by one."""
    bits = 8 * values.dtype.itemsize
    found = []
    for word in values.view(f"u{bits // 8}").tolist():
        negative = order == FLOAT and word >> (bits - 1)
        found.append(word if order == UNSIGNED else word ^ ((1 << bits) - 1 if negative else 1 << (bits - 1)))
    return found


def values_of(kind: str, bits: int, n: int, rng: np.random.Generator) -> NDArray[np.generic]:
    if kind == "f":
        values = rng.normal(size=n).astype(f"f{bits // 8}")
        values[rng.random(n) < 0.3] = rng.choice(np.array(SPECIAL, values.dtype))
        return values
    width = rng.integers(1, bits + 1)
    return (rng.integers(0, 1 << 62, n) >> max(62 - width, 0)).astype(f"{kind}{bits // 8}")


def random_test(keys: list[int], bits: int, order: int, rng: np.random.Generator) -> tuple[IntervalTest, list[int]]:
    """Return a test, and the ends of its intervals: those of even number begin one, the others are behind one."""
    top = (1 << bits) - 1
    near = [key + int(step) for key in rng.choice(np.array(keys, object), 6) for step in rng.integers(-1, 2, 1)]
    ends = sorted({*rng.choice(np.array([0, top + 1, *near], object), rng.integers(0, 7)).tolist()} - {-1})
    ends = ends[: len(ends) // 2 * 2]
    pairs = [(low, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True)]
    return IntervalTest(bits, order, pairs, null=bool(rng.integers(0, 2))), ends


def inside(keys: list[int], ends: list[int]) -> NDArray[np.bool_]:
    return np.array([bisect_left(ends, key + 1) % 2 == 1 for key in keys], bool)


def unpacked(bits: NDArray[np.uint8], n: int) -> NDArray[np.bool_]:
    return np.unpackbits(bits, count=n, bitorder="little").astype(bool)


@pytest.mark.parametrize(("kind", "bits"), TYPES)
def test_plain_values(kind: str, bits: int) -> None:
    order, rng = TYPES[kind, bits], np.random.default_rng(bits)
    for n in (0, 1, 63, 64, 65, 1000):
        values = values_of(kind, bits, n, rng)
        keys = keys_of(values, order)
        for _ in range(8):
            test, ends = random_test(keys or [5], bits, order, rng)
            out = np.full((n + 7) // 8, 255, np.uint8)
            moved = np.empty(values.nbytes + 1, np.uint8)[1:]  # an odd address
            moved[:] = values.view(np.uint8)
            test.values(moved, out)
            assert unpacked(out, n).tolist() == inside(keys, ends).tolist()
            assert not np.unpackbits(out, bitorder="little")[n:].any()


def chunk_buffers(values: NDArray[np.generic], kind: int) -> list[bytes]:
    """Return the value buffers of a chunk."""
    if kind == FLAT:
        return [values.tobytes()]
    width, words = values.dtype.itemsize, values.view(f"u{values.dtype.itemsize}")
    if kind == SPLIT:
        return [values.view(np.uint8).reshape(-1, width).T.tobytes()]
    if kind == RLE:
        starts = np.flatnonzero(np.append(True, words[1:] != words[:-1]))
        lengths = np.diff(np.append(starts, len(words)))
        cut = [
            (word, min(255, rest))
            for word, length in zip(words[starts], lengths.tolist(), strict=True)
            for rest in range(length, 0, -255)
        ]
        return [np.array([word for word, _ in cut], words.dtype).tobytes(), bytes(length for _, length in cut)]
    out, end = np.zeros(bitpacking.inline_bound(len(words), 8 * width), np.uint8), np.zeros(1, np.int64)
    return [out[: bitpacking.inline_encode(words, 8 * width, out, end)].tobytes()]


def page_of(chunks: list[NDArray[np.generic]], kind: int, nulls: list[NDArray[np.uint16]] | None) -> Chunks:
    streams = [list(stream) for stream in zip(*(chunk_buffers(chunk, kind) for chunk in chunks), strict=True)]
    counts = [len(chunk) for chunk in chunks]

    def joined(parts: list[bytes]) -> tuple[bytes, list[int]]:
        return b"".join(parts), np.cumsum([len(part) for part in parts]).tolist()

    levels = {} if nulls is None else {"levels": counts, "level_streams": [joined([n.tobytes() for n in nulls])]}
    plan = Assembly(counts, [joined(stream) for stream in streams], True, **levels)
    words, data = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(words, data)
    table = ChunkTable(words, sum(counts), len(data), True)
    return Chunks(table, len(streams), definition=nulls is not None, data=data)


@pytest.mark.parametrize("kind", [FLAT, INLINE, RLE, SPLIT])
@pytest.mark.parametrize(("letter", "bits"), TYPES)
def test_pages(letter: str, bits: int, kind: int) -> None:
    if kind == SPLIT and bits < 32:
        return
    order, rng = TYPES[letter, bits], np.random.default_rng(10 * bits + kind)
    for case in range(6):
        sizes = [1024] * int(rng.integers(0, 3)) + [int(rng.integers(1, 1025))]
        chunks = [values_of(letter, bits, size, rng) for size in sizes]
        if kind == RLE:
            chunks = [np.repeat(chunk, 7)[: len(chunk)] for chunk in chunks]
        if rng.integers(0, 2):
            chunks = [np.sort(chunk) for chunk in chunks]
        nulls = None
        if case % 2:
            nulls = [(rng.random(size) < rng.choice([0.0, 0.3, 1.0])).astype(np.uint16) for size in sizes]
        page, levels = page_of(chunks, kind, nulls), None if nulls is None else (FLAT_LEVELS, 0)
        keys, ranges = keys_of(np.concatenate(chunks), order), ChunkRanges(len(sizes))
        is_null = np.zeros(len(keys), bool) if nulls is None else np.concatenate(nulls).astype(bool)
        for _ in range(8):  # each search knows more ranges
            test, ends = random_test(keys, bits, order, rng)
            start, stop = sorted(rng.integers(0, len(keys) + 1, 2).tolist())
            kept = rng.random(stop - start) < rng.choice([0.0, 0.001, 0.5])
            mask = None if rng.integers(0, 2) else np.packbits(kept, bitorder="little")
            out = np.zeros((stop - start + 7) // 8, np.uint8)
            intervals.search(page, kind, bits, levels, test, ranges, start, stop, out, mask)
            expected = np.where(is_null, test.null, inside(keys, ends))[start:stop]
            expected = expected if mask is None else expected & kept
            assert unpacked(out, stop - start).tolist() == expected.tolist()
        for number, begin in enumerate(np.cumsum([0, *sizes[:-1]]).tolist()):
            some = keys[begin : begin + sizes[number]]
            assert ranges[number] in (None, (min(some), max(some)))


@pytest.mark.parametrize("order", [UNSIGNED, SIGNED])
def test_values_of_two_words(order: int) -> None:
    """Values of 128 bits, of which many share one of their words: plain, and in the chunks of a page."""
    rng = np.random.default_rng(order)
    words = np.array([0, 1, 5, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], np.uint64)
    for case in range(12):
        sizes = [256] * int(rng.integers(0, 4)) + [int(rng.integers(1, 257))]
        values = rng.choice(words[: int(rng.integers(1, 7))], (sum(sizes), 2))
        if case % 3 == 0:
            values[:, 0] = rng.integers(0, 1 << 62, len(values))
        if case % 4 == 0:
            values = values[np.argsort(values[:, 1], kind="stable")]
        sign = (1 << 127) if order == SIGNED else 0
        keys = [(low | high << 64) ^ sign for low, high in values.tolist()]
        is_null = rng.random(len(keys)) < (0.3 if case % 2 else 0.0)
        parts = np.split(values, np.cumsum(sizes)[:-1])
        levels = [part.astype(np.uint16) for part in np.split(is_null, np.cumsum(sizes)[:-1])]
        page = page_of([part.reshape(-1).view("V16") for part in parts], FLAT, levels if case % 2 else None)
        definition, ranges = (FLAT_LEVELS, 0) if case % 2 else None, ChunkRanges(len(sizes), wide=True)
        for _ in range(6):
            test, ends = random_test(keys, 128, order, rng)
            out = np.full((len(keys) + 7) // 8, 255, np.uint8)
            test.values(values, out)
            assert unpacked(out, len(keys)).tolist() == inside(keys, ends).tolist()
            start, stop = sorted(rng.integers(0, len(keys) + 1, 2).tolist())
            intervals.search(page, FLAT, 128, definition, test, ranges, start, stop, out)
            expected = np.where(is_null, test.null, inside(keys, ends))[start:stop]
            assert unpacked(out, stop - start).tolist() == expected.tolist()
        for number, begin in enumerate(np.cumsum([0, *sizes[:-1]]).tolist()):
            some = keys[begin : begin + sizes[number]]
            assert ranges[number] in (None, (min(some), max(some)))


@pytest.mark.parametrize("kind", [FLAT, INLINE, RLE, SPLIT])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_indices(bits: int, kind: int) -> None:
    """Tests of the entries of a dictionary, as intervals or as marks; nulls may have indices without an entry."""
    if kind == SPLIT and bits < 32:
        return
    rng = np.random.default_rng(10 * bits + kind)
    for case in range(8):
        entries = int(rng.integers(1, 200))
        sizes = [1024] * int(rng.integers(0, 3)) + [int(rng.integers(1, 1025))]
        chunks = [rng.integers(0, entries, size).astype(f"u{bits // 8}") for size in sizes]
        nulls = [np.zeros(size, np.uint16) for size in sizes]
        if case % 2:
            nulls = [(rng.random(size) < 0.3).astype(np.uint16) for size in sizes]
            chunks = [np.where(null, 255, chunk).astype(chunk.dtype) for chunk, null in zip(chunks, nulls, strict=True)]
        page, levels = page_of(chunks, kind, nulls if case % 2 else None), (FLAT_LEVELS, 0) if case % 2 else None
        indices, is_null, ranges = np.concatenate(chunks), np.concatenate(nulls) == 1, ChunkRanges(len(sizes))
        for _ in range(6):
            low, high = sorted(rng.integers(0, entries, 2).tolist())
            test = IntervalTest(bits, UNSIGNED, [(low, high)], null=bool(rng.integers(0, 2)))
            marks = None if rng.integers(0, 2) else np.zeros(entries, np.uint8)
            passes = (indices >= low) & (indices <= high)
            if marks is not None:
                marks[low : high + 1] = rng.integers(0, 2, high + 1 - low)
                passes = np.append(marks, np.zeros(256, np.uint8))[indices.astype(np.int64)] == 1
            start, stop = sorted(rng.integers(0, len(indices) + 1, 2).tolist())
            kept = rng.random(stop - start) < rng.choice([0.001, 0.5, 1.0])
            out, mask = np.zeros((stop - start + 7) // 8, np.uint8), np.packbits(kept, bitorder="little")
            options = {"entries": entries, "marks": marks}
            intervals.search_indices(page, kind, bits, levels, test, ranges, start, stop, out, mask, **options)
            expected = np.where(is_null, test.null, passes)[start:stop] & kept
            assert unpacked(out, stop - start).tolist() == expected.tolist()


@pytest.mark.parametrize("with_marks", [False, True])
@pytest.mark.parametrize("ends", [[], [(0, 9)], [(0, 3)]])
def test_indices_without_an_entry(ends: list[tuple[int, int]], with_marks: bool) -> None:
    """They are damage even if the test has the same result for all entries, and in later searches too."""
    indices = np.arange(100, dtype=np.uint8) % 10
    indices[70] = 10
    test, marks, out = IntervalTest(8, UNSIGNED, ends), np.ones(10, np.uint8) if with_marks else None, bytearray(13)
    for kind in (FLAT, INLINE, RLE):
        page, ranges = page_of([indices], kind, None), ChunkRanges(1)
        for _ in range(2):
            intervals.search_indices(page, kind, 8, None, test, ranges, 0, 70, out, entries=10, marks=marks)
            with pytest.raises(CodecError, match=r"chunk 0.*dictionary entry"):
                intervals.search_indices(page, kind, 8, None, test, ranges, 0, 100, out, entries=10, marks=marks)
        levels = np.zeros(100, np.uint16)
        levels[70] = 1
        nullable = page_of([indices], kind, [levels])
        for _ in range(2):
            arguments = nullable, kind, 8, (FLAT_LEVELS, 0), test, ranges, 0, 100, out
            intervals.search_indices(*arguments, entries=10, marks=marks)
            assert not unpacked(np.frombuffer(out, np.uint8), 100)[70]


def test_nulls() -> None:
    """Values are not looked at: even those that cannot be decoded have nulls."""
    rng = np.random.default_rng(1)
    levels = [(rng.random(size) < share).astype(np.uint16) for size, share in ((1024, 0.0), (1024, 0.5), (77, 1.0))]
    page = page_of([np.zeros(len(part), np.uint8) for part in levels], FLAT, levels)
    is_null, ranges = np.concatenate(levels) == 1, ChunkRanges(3)
    for _ in range(2):
        for start, stop in ((0, len(is_null)), (5, 6), (1000, 2100), (7, 7)):
            for valid, null in ((True, False), (False, True), (True, True), (False, False)):
                kept = rng.random(stop - start) < 0.5
                out, mask = np.zeros((stop - start + 7) // 8, np.uint8), np.packbits(kept, bitorder="little")
                intervals.search_nulls(page, (FLAT_LEVELS, 0), valid, null, ranges, start, stop, out, mask)
                expected = np.where(is_null[start:stop], null, valid) & kept
                assert unpacked(out, stop - start).tolist() == expected.tolist()
    damaged = page_of([np.zeros(10, np.uint8)], FLAT, [np.full(10, 2, np.uint16)])
    with pytest.raises(CodecError, match="chunk 0"):
        intervals.search_nulls(damaged, (FLAT_LEVELS, 0), False, True, ChunkRanges(1), 0, 10, bytearray(2))


def test_impossible_searches_of_indices() -> None:
    page, out, ranges = page_of([np.zeros(10, np.uint8)], FLAT, None), bytearray(2), ChunkRanges(1)
    unsigned, signed = IntervalTest(8, UNSIGNED, []), IntervalTest(8, SIGNED, [])
    for test, options in (
        (unsigned, {"entries": -1}),
        (unsigned, {"entries": 3, "marks": bytes(2)}),
        (unsigned, {"entries": 0}),
        (signed, {"entries": 1}),
    ):
        with pytest.raises(CodecError):
            intervals.search_indices(page, FLAT, 8, None, test, ranges, 0, 10, out, **options)
    with pytest.raises(CodecError):
        intervals.search_nulls(page, (FLAT_LEVELS, 0), True, False, ranges, 0, 10, out)
    with pytest.raises(CodecError):
        intervals.search_nulls(page, None, True, False, ChunkRanges(2), 0, 10, out)


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            (24, SIGNED, []),
            (16, FLOAT, []),
            (128, FLOAT, []),
            (128, SIGNED, [(0, 1 << 128)]),
            (8, SIGNED, [(-1, 5)]),
            (8, 7, []),
            (8, UNSIGNED, [(3, 2)]),
            (8, UNSIGNED, [(0, 256)]),
        ),
        *((8, UNSIGNED, [(0, 5), (6, 7)]), (8, UNSIGNED, [(6, 7), (0, 1)])),
        (64, SIGNED, [(3 * n, 3 * n) for n in range(17)]),
        (64, UNSIGNED, [(0, (1 << 64) - 1), (5, 6)]),
    ],
)
def test_impossible_tests(arguments: tuple[int, int, list[tuple[int, int]]]) -> None:
    with pytest.raises(CodecError):
        IntervalTest(*arguments)


def test_impossible_searches() -> None:
    page, test, out = page_of([np.arange(100, dtype=np.int32)], FLAT, None), IntervalTest(32, SIGNED, []), bytearray(13)
    ranges = ChunkRanges(1)
    intervals.search(page, FLAT, 32, None, test, ranges, 0, 100, out)
    for kind, bits, levels, known, stop, target in (
        (9, 32, None, ranges, 100, out),
        (FLAT, 64, None, ranges, 100, out),
        (RLE, 32, None, ranges, 100, out),
        (FLAT, 32, (FLAT_LEVELS, 0), ranges, 100, out),
        (FLAT, 32, None, ChunkRanges(2), 100, out),
        (FLAT, 32, None, ranges, 101, out),
        (FLAT, 32, None, ranges, 100, bytearray(12)),
    ):
        with pytest.raises(CodecError):
            intervals.search(page, kind, bits, levels, test, known, 0, stop, target)
    with pytest.raises(CodecError):
        intervals.search(page, FLAT, 32, None, test, ranges, 0, 100, out, bytes(12))
    wide_test, wide = IntervalTest(128, SIGNED, []), page_of([np.zeros(100, "V16")], FLAT, None)
    for page_, kind, known in ((wide, FLAT, ranges), (wide, INLINE, ChunkRanges(1, wide=True))):
        with pytest.raises(CodecError):
            intervals.search(page_, kind, 128, None, wide_test, known, 0, 100, out)
    with pytest.raises(CodecError):
        test.values(bytes(5), out)
    with pytest.raises(IndexError):
        ranges[1]
