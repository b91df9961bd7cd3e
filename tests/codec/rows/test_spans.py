"""Tests of runs of values at any positions of a buffer, compared with slices."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, OffsetOverflowError, spans

seeds = st.integers(0, 2**32 - 1)
span_counts = st.one_of(st.integers(0, 20), st.sampled_from([255, 256, 257, 513]))
#: Values per span, as in a take, a scan of small pages, and a mixture.
longest = st.sampled_from([0, 1, 2, 9, 70, 1500])
widths = st.sampled_from([1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 32, 33, 40, 100])


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def random_counts(rng: np.random.Generator, n: int, most: int) -> np.ndarray:
    counts = rng.integers(0, most + 1, n)
    if most == 1 and rng.random() < 0.8:
        counts[:] = 1
    return counts


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@given(span_counts, longest, widths, st.integers(0, 9), st.sampled_from([0, 1, 100]), seeds)
def test_fixed(n: int, most: int, width: int, skew: int, slack: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = random_counts(rng, n, min(most, 4000 // width))
    source = rng.bytes(width * (int(counts.max(initial=1)) + int(rng.integers(20))) + int(rng.integers(3)))
    positions = rng.integers(0, len(source) - counts * width, endpoint=True)
    expected = b"".join(source[p : p + c * width] for p, c in zip(positions.tolist(), counts.tolist(), strict=True))
    out = bytearray(b"\xa5" * (skew + len(expected) + slack + 1))
    spans.fixed(ragged(source, skew), positions, counts, width, memoryview(out)[skew:-1])
    assert bytes(out[skew : skew + len(expected)]) == expected
    assert out[-1] == 0xA5


@given(span_counts, longest, st.integers(0, 9), seeds)
def test_bits(n: int, most: int, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = random_counts(rng, n, most)
    source = rng.bytes((int(counts.max(initial=1)) + 7) // 8 + int(rng.integers(20)))
    positions = rng.integers(0, len(source) * 8 - counts, endpoint=True)
    unpacked = np.unpackbits(np.frombuffer(source, np.uint8), bitorder="little")
    pieces = [unpacked[p : p + c] for p, c in zip(positions.tolist(), counts.tolist(), strict=True)]
    expected = np.packbits(np.concatenate([unpacked[:0], *pieces]), bitorder="little").tobytes()
    out = bytearray(b"\xa5" * (skew + len(expected) + 1))
    spans.bits(ragged(source, skew), positions, counts, memoryview(out)[skew:-1])
    assert bytes(out[skew:-1]) == expected
    assert out[-1] == 0xA5


@dataclass(frozen=True)
class Stored:
    """Pages of offsets in one buffer, and spans of them."""

    source: bytes
    positions: np.ndarray
    counts: np.ndarray
    lists: list[list[int]]


def random_offsets(rng: np.random.Generator, n: int, most: int, wide: bool) -> Stored:
    """Return spans that each have their own page, and leave out some values at both ends."""
    source, positions, lists = bytearray(), [], []
    counts = random_counts(rng, n, most)
    stride = 8 if wide else 4
    for count in counts.tolist():
        before, after = rng.integers(0, 4, 2).tolist()
        page = np.cumsum([rng.integers(0, 2**40 if wide else 2**20), *rng.integers(0, 50, before + count + after)])
        source += rng.bytes(int(rng.integers(3)))
        positions.append(len(source) + before * stride)
        source += page.astype(f"<i{stride}").tobytes()
        lists.append(page[before : before + count + 1].tolist())
    return Stored(bytes(source), np.array(positions, np.int64), counts, lists)


@given(span_counts, longest, st.booleans(), st.booleans(), st.integers(0, 9), seeds)
def test_offsets(n: int, most: int, wide: bool, out_wide: bool, skew: int, seed: int) -> None:
    stored = random_offsets(np.random.default_rng(seed), min(n, 30_000 // (most + 1)), most, wide)
    total, stride = int(stored.counts.sum()), 8 if out_wide else 4
    out = bytearray(b"\xa5" * (skew + stride * (total + 1) + 1))
    starts, sizes = np.full(len(stored.counts), -7), np.full(len(stored.counts), -7)
    result = spans.offsets(
        ragged(stored.source, skew),
        *(stored.positions, stored.counts, wide, out_wide, memoryview(out)[skew:-1], starts, sizes),
    )
    expected, end = [0], 0
    for offsets in stored.lists:
        expected += [end + offset - offsets[0] for offset in offsets[1:]]
        end = expected[-1]
    assert np.frombuffer(bytes(out[skew:-1]), f"<i{stride}").tolist() == expected
    some = stored.counts > 0
    assert starts.tolist() == np.where(some, [offsets[0] for offsets in stored.lists], 0).tolist()
    assert sizes.tolist() == [offsets[-1] - offsets[0] for offsets in stored.lists]
    assert (result, out[-1]) == (end, 0xA5)


@given(
    st.one_of(st.integers(0, 40), st.sampled_from([1023, 1024, 1025, 4097])), st.booleans(), st.integers(0, 9), seeds
)
def test_empties(n: int, wide: bool, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, rng.choice([1, 2, 9, 1000]), n)
    offsets = np.cumsum([rng.integers(5), *lengths]).astype(np.int64 if wide else np.int32)
    out = bytearray(b"\xa5" * (skew + (n + 7) // 8 + 1))
    empty = spans.empties(ragged(offsets.tobytes(), skew), wide, n, memoryview(out)[skew:-1])
    assert empty == (lengths == 0).sum()
    assert bytes(out[skew:-1]) == np.packbits(lengths > 0, bitorder="little").tobytes()
    assert out[-1] == 0xA5


def test_empties_see_wide_differences() -> None:
    """Offsets whose low halves are equal are not taken for equal."""
    out = bytearray(1)
    assert spans.empties(integers(0, 2**32, 2**32, 2**33), True, 3, out) == 1
    assert out == b"\x05"


GOLDEN_STRINGS = bytes.fromhex("61 62 63 64 7a 7a") + integers(0, 1, 1, 4, 4, 6).tobytes()


def strings(positions: np.ndarray, counts: np.ndarray) -> list[bytes]:
    ends, starts, sizes = np.empty(int(counts.sum()) + 1, np.int32), np.empty_like(counts), np.empty_like(counts)
    total = spans.offsets(GOLDEN_STRINGS, positions, counts, True, False, ends, starts, sizes)
    data = bytearray(total)
    spans.fixed(GOLDEN_STRINGS, starts, sizes, 1, data)
    return [bytes(data[a:b]) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def test_golden_strings() -> None:
    """["a", "", "bcd", null, "zz"] at the start of a file is decoded: bytes, then offsets from byte 6 on."""
    assert strings(integers(6), integers(5)) == [b"a", b"", b"bcd", b"", b"zz"]
    assert strings(integers(6 + 32, 6 + 16, 6), integers(1, 1, 2)) == [b"zz", b"bcd", b"a", b""]
    out = bytearray(1)
    assert spans.empties(integers(0, 1, 1, 4, 4, 6), True, 5, out) == 2
    assert out == b"\x15"


def test_golden_lists_and_bits() -> None:
    """[[1, 2], null, [3]] of int16 and the first rows of a page of booleans are decoded."""
    page = bytes.fromhex("00000000 02000000 02000000 03000000 0100 0200 0300")
    ends, starts, sizes = np.empty(3, np.int32), np.empty(2, np.int64), np.empty(2, np.int64)
    assert spans.offsets(page, integers(8, 0), integers(1, 1), False, False, ends, starts, sizes) == 3
    assert (ends.tolist(), starts.tolist(), sizes.tolist()) == ([0, 1, 3], [2, 0], [1, 2])
    items = np.empty(3, np.int16)
    spans.fixed(page, 16 + 2 * starts, sizes, 2, items)
    assert items.tolist() == [3, 1, 2]
    out = bytearray(1)
    spans.bits(b"\x31\x01", integers(8, 4), integers(1, 2), out)  # rows 8, 4 and 5 of 31 01
    assert out == b"\x07"


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 32, 50])
@pytest.mark.parametrize("at", [-1, 301, 2**62, 2**63 - 1, -(2**63)])
def test_fixed_rejects_positions(width: int, at: int, single: bool) -> None:
    positions, counts = np.zeros(300, np.int64), np.full(300, 1)
    counts[7] = 1 if single else 0
    positions[270] = at if at != 301 else 301 - width
    with pytest.raises(CodecError, match=r"span 270, 1 values .* is not within the buffer of 300 bytes"):
        spans.fixed(bytes(300), positions, counts, width, bytearray(300 * width))
    positions[270] = 300 - width
    spans.fixed(bytes(300), positions, counts, width, bytearray(300 * width))


@pytest.mark.parametrize("at", [-1, 24, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("count", [1, 2])
def test_bits_rejects_positions(at: int, count: int) -> None:
    with pytest.raises(CodecError, match=r"span 1, .* at bit"):
        spans.bits(bytes(3), integers(0, at if at != 24 else 25 - count), integers(1, count), bytearray(8))
    spans.bits(bytes(3), integers(0, 24 - count), integers(1, count), bytearray(8))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("at", [-1, 49, 2**62, 2**63 - 1, -(2**63)])
def test_offsets_rejects_positions(wide: bool, count: int, at: int) -> None:
    out, arrays, counts = bytearray(64), (np.empty(2, np.int64), np.empty(2, np.int64)), integers(1, count)
    size = (count + 1) * (8 if wide else 4)
    positions = integers(0, at if at != 49 else 49 - size)
    with pytest.raises(CodecError, match=r"span 1, .* is not within the buffer of 48 bytes"):
        spans.offsets(bytes(48), positions, counts, wide, False, out, *arrays)
    spans.offsets(bytes(48), integers(0, 48 - size), counts, wide, False, out, *arrays)


@pytest.mark.parametrize("count", [-1, -(2**63), 4, 2**60, 2**61, 2**62, 2**63 - 1])
def test_counts_are_refused(count: int) -> None:
    place, counts, out = integers(0, 0), integers(1, count), bytearray(24)
    message = "span 1 has" if count < 0 else "spans 0 to 1"
    with pytest.raises(CodecError, match=message):
        spans.fixed(bytes(100), place, counts, 8, out)
    with pytest.raises(CodecError, match=message):
        spans.bits(bytes(100), place, counts if count != 4 else integers(1, 192), out)
    with pytest.raises(CodecError, match=message):
        spans.offsets(bytes(100), place, counts, True, True, bytearray(32), place.copy(), place.copy())


def test_counts_that_overflow_together() -> None:
    counts = np.full(8, 2**61)
    with pytest.raises(CodecError, match="too small"):
        spans.fixed(bytes(8), np.zeros(8, np.int64), counts, 1, bytearray(8))
    with pytest.raises(CodecError, match="too small"):
        spans.bits(bytes(8), np.zeros(8, np.int64), counts, bytearray(8))


def test_single_values_need_room() -> None:
    ones, place = np.ones(300, np.int64), np.zeros(300, np.int64)
    with pytest.raises(CodecError, match="spans 0 to 299"):
        spans.fixed(bytes(8), place, ones, 4, bytearray(1199))
    with pytest.raises(CodecError, match="spans 0 to 296"):
        spans.bits(bytes(8), place, ones, bytearray(37))
    with pytest.raises(CodecError, match="spans 0 to 299"):
        spans.offsets(bytes(8), place, ones, False, False, bytearray(1200), place.copy(), place.copy())


def test_values_without_bytes() -> None:
    spans.fixed(b"", integers(5, -1), integers(3, 2**63 - 1), 0, bytearray())
    with pytest.raises(CodecError, match="span 1 has -3 values of 0 bytes"):
        spans.fixed(b"", integers(5, -1), integers(3, -3), 0, bytearray())
    with pytest.raises(CodecError, match="negative"):
        spans.fixed(b"", integers(), integers(), -1, bytearray())


def test_empty_spans_may_be_anywhere() -> None:
    place, counts, out = integers(-5, 2**63 - 1, 1), integers(0, 0, 1), bytearray(1)
    spans.fixed(b"ab", place, counts, 1, out)
    assert out == b"b"
    spans.bits(b"\x02", place, counts, out)
    assert out == b"\x01"
    starts, sizes, ends = np.full(3, -7), np.full(3, -7), bytearray(8)
    assert spans.offsets(b".\1\0\0\0\5\0\0\0", place, counts, False, False, ends, starts, sizes) == 4
    assert (starts.tolist(), sizes.tolist()) == ([0, 0, 1], [0, 0, 4])
    nothing = integers()
    spans.fixed(b"", nothing, nothing, 4, bytearray())
    spans.bits(b"", nothing, nothing, bytearray())
    assert spans.offsets(b"", nothing, nothing, True, True, bytearray(8), nothing, nothing) == 0
    assert spans.empties(bytes(4), False, 0, bytearray()) == 0


@pytest.mark.parametrize("at", [0, 1, 1023, 1024, 1025, 2048, 3000])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("out_wide", [False, True])
@pytest.mark.parametrize("damage", ["negative", "decrease", "high"])
def test_offsets_that_are_none(at: int, wide: bool, out_wide: bool, damage: str) -> None:
    stored = np.arange(10, 3011, dtype=np.int64 if wide else np.int32)
    if damage == "high" and at == 3000:
        stored[-2] = np.iinfo(stored.dtype).max
    else:
        stored[at] = {"negative": -1, "decrease": stored[at] - 2, "high": np.iinfo(stored.dtype).max}[damage]
    if damage == "decrease" and at == 0:
        stored[0] = 12
    out, arrays = bytearray(8 * 3001), (np.empty(3000, np.int64), np.empty(3000, np.int64))
    with pytest.raises(CodecError, match="decrease or are negative"):
        spans.offsets(stored, integers(0), integers(3000), wide, out_wide, out, *arrays)
    single = np.arange(3000) * stored.itemsize
    with pytest.raises(CodecError, match=r"decrease or are negative|read fewer"):  # a single value can only be too long
        spans.offsets(stored, single, np.ones(3000, np.int64), wide, out_wide, out, *arrays)


@pytest.mark.parametrize("out_wide", [False, True])
def test_wrapping_offsets_are_no_ascent(out_wide: bool) -> None:
    arrays = np.empty(1, np.int64), np.empty(1, np.int64)
    for stored in ([2**63 - 1, -(2**63), 5], [5, 2**62, -(2**62)], [0, 2**32, 1], [2**32, 2**32 + 1, 2]):
        with pytest.raises(CodecError, match="decrease or are negative"):
            spans.offsets(integers(*stored), integers(0), integers(2), True, out_wide, bytearray(24), *arrays)


@pytest.mark.parametrize("counts", [[1, 1], [2], [1, 0, 1]])
def test_sums_that_need_wide_offsets(counts: list[int]) -> None:
    places = np.cumsum([0, *counts[:-1]]) * 8
    arrays = np.empty(3, np.int64), np.empty(3, np.int64)
    fits, passes = integers(7, 9, 2**31 + 6), integers(7, 9, 2**31 + 7)
    ends = np.empty(3, np.int32)
    assert spans.offsets(fits, places, np.array(counts), True, False, ends, *arrays) == 2**31 - 1
    assert ends.tolist() == [0, 2, 2**31 - 1]
    with pytest.raises(OffsetOverflowError, match="read fewer"):
        spans.offsets(passes, places, np.array(counts), True, False, ends, *arrays)
    assert spans.offsets(passes, places, np.array(counts), True, True, np.empty(3, np.int64), *arrays) == 2**31


@pytest.mark.parametrize("count", [1, 2])
def test_sums_that_no_offsets_hold(count: int) -> None:
    source, place = integers(0, 2**62, 2**62), np.zeros(2, np.int64)
    with pytest.raises(OffsetOverflowError):
        spans.offsets(
            source, place, np.full(2, count), True, True, bytearray(40), np.empty(2, np.int64), np.empty(2, np.int64)
        )


def test_arrays_are_refused() -> None:
    one, out = integers(0), bytearray(64)
    odd = np.frombuffer(bytes(9), np.int64, offset=1, count=1)
    for positions, counts in ((odd, one), (one, odd)):
        with pytest.raises(CodecError, match="aligned"):
            spans.fixed(b"", positions, counts, 1, out)
    with pytest.raises(CodecError, match="2 positions do not match 1 counts"):
        spans.bits(b"", integers(0, 0), one, out)
    with pytest.raises(ValueError, match="dtype"):
        spans.fixed(b"", one, one.astype(np.int32), 1, out)
    with pytest.raises(CodecError, match="0 starts and 1 sizes"):
        spans.offsets(b"", one, one, True, True, out, integers(), one)
    with pytest.raises(CodecError, match="first offset"):
        spans.offsets(b"", one, one, True, True, bytearray(7), one, one)


@pytest.mark.parametrize("n", [-1, 4, 2**60, 2**61 - 1, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("wide", [False, True])
def test_empties_rejects_sizes(n: int, wide: bool) -> None:
    with pytest.raises(CodecError, match="do not hold"):
        spans.empties(bytes(32 if wide else 16), wide, n, bytearray(8))


def test_empties_rejects_small_outputs() -> None:
    with pytest.raises(CodecError, match="too small"):
        spans.empties(bytes(40), False, 9, bytearray(1))


@pytest.mark.parametrize("out_wide", [False, True])
def test_offsets_that_change_during_the_call(out_wide: bool) -> None:
    """If another thread changes the source during a call, offsets returned without an error ascend to their sum."""
    stored = np.arange(200_001, dtype=np.int64)
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            stored[1000::1000] -= 5_000
            stored[1000::1000] += 5_000

    out = np.empty(len(stored), np.int64 if out_wide else np.int32)
    arrays = np.empty(1, np.int64), np.empty(1, np.int64)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(400):
            try:
                total = spans.offsets(stored, integers(0), integers(200_000), True, out_wide, out, *arrays)
            except CodecError:
                continue
            assert out[0] == 0
            assert out[-1] == total == arrays[1][0]
            assert (np.diff(out) >= 0).all()
    finally:
        done.set()
        thread.join()


# -- rows of batches -----------------------------------------------------------------------------------------------


def batch_pages(sizes: list[int], width: int, seed: int = 0) -> tuple[bytes, list[np.ndarray], np.ndarray]:
    """Return a buffer with a page per batch at odd places.

    With it come first rows, positions and lengths of the pages, and all values in row order.
    """
    rng = np.random.default_rng(seed)
    data, positions, values = bytearray(), [], []
    for size in sizes:
        data += rng.bytes(int(rng.integers(0, 5)))
        positions.append(len(data))
        page = rng.integers(0, 256, (size, width), np.uint8)
        values.append(page)
        data += page.tobytes()
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    lengths = np.array(sizes, np.int64)
    rows = np.concatenate([np.empty((0, width), np.uint8), *values])
    return bytes(data), [starts, np.array(positions, np.int64), lengths], rows


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from([0, 1, 2, 3, 4, 8, 16, 24, 300]), st.data())
def test_rows_of_batches(sizes: list[int], width: int, data: st.DataObject) -> None:
    source, arrays, values = batch_pages(sizes, width)
    starts, positions, _ = arrays
    pages = spans.BatchPages(source, *arrays, width * 8)
    total = int(starts[-1])
    count = data.draw(st.sampled_from([0, 1, 5, 256, 300])) if total else 0
    rows = np.random.default_rng(count).integers(0, max(total, 1), count)
    out = bytearray(count * width)
    pages.take(rows, out)
    assert bytes(out) == values[rows].tobytes()
    found = np.empty(count, np.int64)
    pages.locate(rows, found)
    batches = np.searchsorted(starts, rows, "right") - 1
    assert (found == positions[batches] + (rows - starts[batches]) * width).all()


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 300))
def test_bits_of_batches(sizes: list[int], count: int) -> None:
    rng = np.random.default_rng(count)
    bits = [rng.random(size) < 0.5 for size in sizes]
    data, positions = bytearray(b"\xff"), []
    for page in bits:
        positions.append(len(data))
        data += np.packbits(page, bitorder="little").tobytes()
    starts = np.cumsum([0, *sizes]).astype(np.int64)
    pages = spans.BatchPages(data, starts, np.array(positions, np.int64), np.array(sizes, np.int64), 1)
    if not starts[-1]:
        return
    rows = rng.integers(0, starts[-1], count)
    out = bytearray(b"\xff" * ((count + 7) // 8))
    pages.take(rows, out)
    expected = np.concatenate(bits)[rows]
    assert bytes(out) == np.packbits(expected, bitorder="little").tobytes()


def test_batches_that_lie() -> None:
    starts, positions, lengths = (np.array(values, np.int64) for values in ([0, 2, 5], [0, 8], [2, 3]))
    source = bytes(20)
    good = spans.BatchPages(source, starts, positions, lengths, 32)
    out = bytearray(4)
    for rows, message in (([5], "row 5 is outside"), ([-1], "row -1 is outside"), ([2**62], "is outside")):
        with pytest.raises(CodecError, match=message):
            good.take(np.array(rows, np.int64), out)
        with pytest.raises(CodecError, match=message):
            good.locate(np.array(rows, np.int64), np.empty(1, np.int64))
    with pytest.raises(CodecError, match="too small"):
        good.take(np.array([0, 1], np.int64), out)
    with pytest.raises(CodecError, match="too few"):
        good.locate(np.array([0, 1], np.int64), np.empty(1, np.int64))
    short = spans.BatchPages(source, starts, positions, np.array([2, 1], np.int64), 32)
    with pytest.raises(CodecError, match="page of row 3 has fewer values"):
        short.take(np.array([3], np.int64), out)
    outside = spans.BatchPages(source, starts, np.array([0, 12], np.int64), lengths, 32)
    with pytest.raises(CodecError, match="row 4: its value is not within the buffer of 20 bytes"):
        outside.take(np.array([4], np.int64), out)
    for given_starts, given_positions, given_lengths, bits in (
        ([0, 2], [0, 8], [2, 3], 32),
        ([1, 2, 5], [0, 8], [2, 3], 32),
        ([0, 6, 5], [0, 8], [2, 3], 32),
        ([0, 2, 5], [0, 21], [2, 3], 32),
        ([0, 2, 5], [-1, 8], [2, 3], 32),
        ([0, 2, 5], [0, 8], [2, -3], 32),
        ([0, 2, 5], [0, 8], [2, 2**62], 32),
        ([0, 2, 5], [0, 8], [2], 32),
        ([0, 2, 5], [0, 8], [2, 3], 12),
        ([0, 2, 5], [0, 8], [2, 3], -8),
        ([], [], [], 8),
    ):
        arrays = (np.array(values, np.int64) for values in (given_starts, given_positions, given_lengths))
        with pytest.raises(CodecError):
            spans.BatchPages(source, *arrays, bits)
