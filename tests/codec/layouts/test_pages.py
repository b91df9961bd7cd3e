"""Tests of random access over pages against NumPy models of whole columns."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError
from lancecodec.pages import EndsPages, FixedPages

page_sizes = st.lists(st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 1500)), max_size=7)
row_counts = st.one_of(st.integers(0, 20), st.integers(0, 3000))
seeds = st.integers(0, 2**32 - 1)


def ragged(data: bytes, skew: int) -> memoryview:
    return memoryview(b"\xff" * skew + data)[skew:]


def packed(bits: np.ndarray) -> bytes:
    return np.packbits(bits.astype(bool), bitorder="little").tobytes()


def starts_of(sizes: list[int]) -> list[int]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).tolist()


def some_rows(rng: np.random.Generator, total: int, count: int) -> np.ndarray:
    """Return row numbers that are unsorted, sorted or consecutive, with repetitions."""
    rows = rng.integers(0, max(total, 1), count if total else 0)
    kind = rng.integers(0, 3)
    if kind == 1:
        rows = np.sort(rows)
    if kind == 2 and total:
        rows = np.arange(count) % total
    return rows


@given(page_sizes, st.sampled_from([1, 2, 3, 4, 8, 12, 16, 20, 64, 512]), row_counts, st.integers(0, 9), seeds)
def test_fixed_pages(sizes: list[int], width: int, count: int, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, validity, model, valid = [], [], [], []
    for size in sizes:
        content = rng.integers(0, 256, (size, width), np.uint8)
        bits = rng.random(size) < rng.choice([0.2, 1.0])
        kind = rng.integers(0, 3) if seed % 2 else 0
        if kind == 2:
            content[:], bits[:] = 0, False
        model.append(content)
        valid.append(bits if kind else np.ones(size, bool))
        values.append(None if kind == 2 else ragged(content.tobytes(), skew))
        validity.append(ragged(packed(bits), skew) if kind else None)
    pages = FixedPages(starts_of(sizes), width * 8, values, validity)
    total = sum(sizes)
    assert pages.num_rows == total
    assert pages.has_nulls == any(v is not None for v, size in zip(validity, sizes, strict=True) if size)
    rows = some_rows(rng, total, count)
    out, bits_out = bytearray(skew + len(rows) * width + 1), bytearray(b"\xa5" * ((len(rows) + 7) // 8 + 1))
    wants_validity = pages.has_nulls or seed % 3 == 0
    nulls = pages.take(rows, memoryview(out)[skew:], bits_out if wants_validity else None)
    expected = np.concatenate([np.empty((0, width), np.uint8), *model])[rows]
    expected_valid = np.concatenate([np.empty(0, bool), *valid])[rows]
    assert bytes(out[skew:-1]) == expected.tobytes()
    assert out[-1] == 0
    assert nulls == (~expected_valid).sum()
    assert bits_out[-1] == 0xA5
    if wants_validity:
        assert bytes(bits_out[:-1]) == packed(expected_valid)


@given(page_sizes, row_counts, seeds)
def test_boolean_pages(sizes: list[int], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = [rng.integers(0, 2, size, np.uint8) for size in sizes]
    valid = [rng.integers(0, 2, size, np.uint8) for size in sizes]
    absent = [bool(rng.integers(0, 2)) for _ in sizes]
    pages = FixedPages(
        starts_of(sizes),
        1,
        [None if no else packed(bits) for bits, no in zip(model, absent, strict=True)],
        [packed(bits) for bits in valid],
    )
    rows = some_rows(rng, sum(sizes), count)
    out, bits_out = bytearray((len(rows) + 7) // 8), bytearray((len(rows) + 7) // 8)
    nulls = pages.take(rows, out, bits_out)
    present = np.repeat([not no for no in absent], sizes).astype(bool)
    expected = np.concatenate([np.empty(0, np.uint8), *model]) * present
    expected_valid = np.concatenate([np.empty(0, np.uint8), *valid]) * present
    assert bytes(out) == packed(expected[rows])
    assert bytes(bits_out) == packed(expected_valid[rows])
    assert nulls == (expected_valid[rows] == 0).sum()


Value = tuple[int, bytes] | None


def binary_page(rng: np.random.Generator, size: int, base: int, lists: bool, skew: int) -> tuple[object, list[Value]]:
    """Return a page description and its values: where each starts in the item column, and its bytes."""
    kind = rng.choice(["plain", "nulls", "dictionary", "all null"])
    if kind == "all null" and not lists:
        return None, [None] * size
    entries = int(rng.integers(1, 256)) if kind == "dictionary" and not lists else size
    lengths = rng.integers(0, rng.choice([1, 4, 40]), entries)
    ends = np.cumsum(lengths, dtype=np.uint64)
    total = int(lengths.sum())
    data = rng.integers(0, 256, total, np.uint8).tobytes()
    adjustment = total + int(rng.choice([1, 50, 2**40]))
    begins = np.concatenate([[0], ends[:-1].astype(np.int64)]) if entries else ends.astype(np.int64)
    spans: list[Value] = [(base + b, data[b : b + n]) for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
    if kind != "plain":
        null = rng.random(entries) < rng.choice([0.3, 1.0])
        ends = ends + np.where(null, np.uint64(adjustment), np.uint64(0))
        spans = [None if no else span for span, no in zip(spans, null, strict=True)]
    raw = ragged(ends.tobytes(), skew)
    if kind == "dictionary" and not lists:
        codes = rng.integers(0, entries + 1, size, np.uint8)
        page = (raw, adjustment, total, base, ragged(data, skew), ragged(codes.tobytes(), skew), entries)
        return page, [spans[code - 1] if code else None for code in codes]
    return (raw, adjustment, total, base, None if lists else ragged(data, skew), None, 0), spans


@given(page_sizes, row_counts, st.booleans(), st.booleans(), st.integers(0, 9), seeds)
def test_ends_pages(sizes: list[int], count: int, wide: bool, lists: bool, skew: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    descriptions, model = [], []
    for size in sizes:
        page, values = binary_page(rng, size, int(rng.integers(0, 10**9)), lists, skew)
        descriptions.append(page)
        model += values
    pages = EndsPages(starts_of(sizes), descriptions)
    assert pages.num_rows == len(model)
    rows = some_rows(rng, len(model), count)
    expected = [model[row] for row in rows]
    width = 8 if wide else 4
    offsets, validity = bytearray(skew + (len(rows) + 1) * width), bytearray((len(rows) + 7) // 8)
    begins = np.full(len(rows), -1)
    total, nulls = pages.take_offsets(rows, wide, memoryview(offsets)[skew:], validity, begins)
    got = np.frombuffer(bytes(offsets[skew:]), f"<i{width}")
    assert got.tolist() == np.cumsum([0, *(len(value[1]) if value else 0 for value in expected)]).tolist()
    assert bytes(validity) == packed(np.array([value is not None for value in expected], bool))
    assert (total, nulls) == (got[-1], expected.count(None))
    for value, begin in zip(expected, begins.tolist(), strict=True):
        assert value is None or value[0] == begin
    if not lists:
        out = bytearray(skew + total + 1)
        pages.take_bytes(rows, wide, memoryview(offsets)[skew:], memoryview(out)[skew:])
        assert bytes(out[skew:-1]) == b"".join(value[1] for value in expected if value)
        assert out[-1] == 0


def ends(*values: int) -> bytes:
    return np.array(values, np.uint64).tobytes()


def test_golden_string_dictionary() -> None:
    """["a", null, "bb", "bb", "a"] is decoded as the reference writes it: code 0 is null, code k is entry k - 1."""
    pages = EndsPages([0, 5], [(ends(1, 3), 4, 3, 0, b"abb", b"\1\0\2\2\1", 2)])
    rows = np.array([4, 1, 2, 0])
    offsets, validity, out = np.empty(5, np.int32), np.empty(1, np.uint8), bytearray(4)
    assert pages.take_offsets(rows, False, offsets, validity) == (4, 1)
    pages.take_bytes(rows, False, offsets, out)
    assert (offsets.tolist(), validity[0], bytes(out)) == ([0, 1, 1, 3, 4], 0b1101, b"abba")


def test_buffers_are_kept_alive() -> None:
    values = [np.full(1000, k, np.uint8) for k in range(50)]
    pages = FixedPages([1000 * k for k in range(51)], 8, list(values), [None] * 50)
    del values
    gc.collect()
    junk = [np.zeros(1000, np.uint8) for _ in range(100)]
    out = np.empty(50, np.uint8)
    pages.take(np.arange(50) * 1000, out)
    assert out.tolist() == list(range(50))
    assert len(junk) == 100


def test_a_held_buffer_cannot_be_resized() -> None:
    values = bytearray(8)
    pages = FixedPages([0, 8], 8, [values], [None])
    with pytest.raises(BufferError):
        values.clear()
    del pages
    values.clear()


@pytest.mark.parametrize("row", [-1, 3, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("starts", [[0, 3], [0, 0, 2, 3, 3], [0], [0, 0, 0]])
def test_rows_that_do_not_exist(row: int, starts: list[int]) -> None:
    pages = len(starts) - 1
    rows = np.array([row])
    fixed = FixedPages(starts, 8, [b"abc"] * pages, [None] * pages)
    with pytest.raises(CodecError, match="is outside"):
        fixed.take(rows, bytearray(1))
    variable = EndsPages(starts, [(ends(1, 1, 1), 2, 1, 0, b"x", None, 0)] * pages)
    with pytest.raises(CodecError, match="is outside"):
        variable.take_offsets(rows, False, bytearray(8), bytearray(1))
    with pytest.raises(CodecError, match="is outside"):
        variable.take_bytes(rows, False, bytearray(8), bytearray(1))


@pytest.mark.parametrize("starts", [[], [1], [0, 2, 1], [0, -1], [-1, 0], [5, 5]])
def test_page_starts(starts: list[int]) -> None:
    for make in (lambda: FixedPages(starts, 8, [b""], [None]), lambda: EndsPages(starts, [None])):
        with pytest.raises(CodecError):
            make()


@pytest.mark.parametrize("bits", [-8, 0, 2, 7, 9, 2**41, 2**63 - 8, -(2**63)])
def test_fixed_widths(bits: int) -> None:
    with pytest.raises(CodecError, match="not supported"):
        FixedPages([0, 0], bits, [b""], [None])


@pytest.mark.parametrize(
    ("starts", "bits", "values", "validity"),
    [
        ([0, 3], 32, [bytes(11)], [None]),
        ([0, 9], 1, [bytes(1)], [None]),
        ([0, 9], 8, [bytes(9)], [bytes(1)]),
        ([0, 9], 8, [None], [bytes(1)]),
        ([0, 2**62], 8, [bytes(9)], [None]),
        ([0, 2**60], 2**10, [None], [None]),
        ([0, 1], 8, [], []),
        ([0, 1], 8, [bytes(1)], []),
    ],
)
def test_fixed_buffers_that_are_too_small(starts: list[int], bits: int, values: list, validity: list) -> None:
    with pytest.raises(CodecError):
        FixedPages(starts, bits, values, validity)


def test_fixed_outputs_that_are_too_small() -> None:
    rows = np.zeros(9, np.int64)
    pages = FixedPages([0, 2], 32, [bytes(8)], [None])
    with pytest.raises(CodecError, match="too small"):
        pages.take(rows, bytearray(35))
    with pytest.raises(CodecError, match="too small"):
        pages.take(rows, bytearray(36), bytearray(1))
    nullable = FixedPages([0, 2], 32, [bytes(8)], [b"\1"])
    with pytest.raises(CodecError, match="needed"):
        nullable.take(rows, bytearray(36))
    with pytest.raises(CodecError, match="too small"):
        nullable.take(rows, bytearray(36), bytearray(1))
    with pytest.raises(CodecError, match="too small"):
        FixedPages([0, 2], 1, [b"\1"], [None]).take(rows, bytearray(1))


def test_a_huge_width_does_not_wrap() -> None:
    pages = FixedPages([0, 100], 2**40, [None], [None])
    with pytest.raises(CodecError):
        pages.take(np.zeros(10, np.int64), bytearray(64), bytearray(2))


PLAIN = (ends(1, 3), 4, 3, 0, b"abb", None, 0)


@pytest.mark.parametrize(
    "page",
    [
        (ends(1)[:-1], *PLAIN[1:]),
        (ends(1, 3), 3, 3, 0, b"abb", None, 0),
        (ends(1, 3), 4, 3, 0, b"ab", None, 0),
        (ends(1, 3), 2**64 - 1, 2**63, 0, None, None, 0),
        (ends(1, 3), 4, 3, -1, b"abb", None, 0),
        (ends(1, 3), 4, 3, 2**63 - 1, b"abb", None, 0),
        (ends(1, 3), 4, 3, 0, b"abb", b"\1", 2),
        (ends(1, 3), 4, 3, 0, b"abb", b"\1\1", 3),
        (ends(1, 3), 4, 3, 0, b"abb", b"\1\1", -1),
        (ends(1, 3), 4, 3, 0, b"abb", b"\1\1", 2**61),
    ],
)
def test_ends_pages_that_contradict_themselves(page: tuple) -> None:
    with pytest.raises(CodecError):
        EndsPages([0, 2], [page])


@pytest.mark.parametrize("page", [b"", (1, 2), [*PLAIN], (None, *PLAIN[1:]), (ends(1, 3), "4", 3, 0, b"abb", None, 0)])
def test_descriptions_of_other_shapes(page: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        EndsPages([0, 2], [page])


@pytest.mark.parametrize(
    "page",
    [
        (ends(3, 1), 4, 3, 0, b"abb", None, 0),
        (ends(1, 4), 5, 3, 0, b"abb", None, 0),
        (ends(1, 2**64 - 1), 4, 3, 0, b"abb", None, 0),
        (ends(9, 3), 4, 3, 0, b"abb", None, 0),
        (ends(1, 3), 4, 3, 0, b"abb", b"\1\3", 2),
        (ends(1, 3), 4, 3, 0, b"abb", b"\1\xff", 2),
        (b"", 0, 0, 0, b"", b"\0\1", 0),
    ],
)
def test_wrong_ends_are_found_when_taken(page: tuple) -> None:
    pages = EndsPages([0, 0, 2], [None, page])
    with pytest.raises(CodecError, match="of page 1 "):
        pages.take_offsets(np.array([1]), False, bytearray(8), bytearray(1))
    with pytest.raises(CodecError, match="of page 1 "):
        pages.take_bytes(np.array([1]), False, bytearray(8), bytearray(8))


def test_a_dictionary_without_entries_is_all_null() -> None:
    pages = EndsPages([0, 2], [(b"", 0, 0, 0, b"", b"\0\0", 0)])
    assert pages.take_offsets(np.array([1, 0]), False, bytearray(12), bytearray(1)) == (0, 2)


def test_totals_that_overflow() -> None:
    items = 2**62
    pages = EndsPages([0, 1], [(ends(items), items + 1, items, 0, None, None, 0)])
    for rows, wide in (([0], False), ([0, 0], True)):
        with pytest.raises(CodecError, match="too many items"):
            pages.take_offsets(np.array(rows), wide, bytearray(64), bytearray(1))


def test_values_forged_to_overlap() -> None:
    """Forged values that overlap are refused: each is within its page, but together they are larger than the page."""
    count, size = 1000, 1 << 16
    forged = ends(*([0, size] * (count // 2)))
    pages = EndsPages([0, count, 2 * count], [(forged, size + 1, size, 0, bytes(size), None, 0)] * 2)
    offsets, validity = bytearray(8 * (2 * count + 1)), bytearray(2 * count)
    odd = np.arange(1, 2 * count, 2)
    with pytest.raises(CodecError, match="decreases"):
        pages.take_offsets(odd, True, offsets, validity)
    assert pages.take_offsets(odd[:2], True, offsets, validity) == (2 * size, 0)


def test_one_value_repeated_beyond_the_size_of_its_page() -> None:
    """One value may be taken many times, beyond the size of its page, and a null's adjustment is not a decrease."""
    pages = EndsPages([0, 3], [(ends(10, 10 + 11, 10), 11, 10, 0, b"0123456789", None, 0)])
    offsets, validity = bytearray(8 * 101), bytearray(13)
    for _ in range(2):
        assert pages.take_offsets(np.zeros(100, np.int64), True, offsets, validity) == (1000, 0)
        assert pages.take_offsets(np.arange(100) % 3, True, offsets, validity) == (340, 33)


def test_bytes_of_a_list_column_do_not_exist() -> None:
    pages = EndsPages([0, 1], [(ends(3), 4, 3, 0, None, None, 0)])
    with pytest.raises(CodecError, match="no value bytes"):
        pages.take_bytes(np.array([0]), False, np.array([0, 3], np.int32), bytearray(3))


@pytest.mark.parametrize("offsets", [[0, 2], [0, 4], [1, 0], [-3, 0], [2, 5], [2**31 - 4, 2**31 - 1]])
def test_offsets_of_other_rows(offsets: list[int]) -> None:
    pages = EndsPages([0, 1], [(ends(3), 4, 3, 0, b"abc", None, 0)])
    with pytest.raises(CodecError, match="do not belong to these rows"):
        pages.take_bytes(np.array([0]), False, np.array(offsets, np.int32), bytearray(4))


def test_ends_outputs_that_are_too_small() -> None:
    pages, rows = EndsPages([0, 2], [PLAIN]), np.zeros(9, np.int64)
    with pytest.raises(CodecError):
        pages.take_offsets(rows, True, bytearray(79), bytearray(2))
    with pytest.raises(CodecError):
        pages.take_offsets(rows, True, bytearray(80), bytearray(1))
    with pytest.raises(CodecError):
        pages.take_offsets(rows, True, bytearray(80), bytearray(2), np.empty(8, np.int64))
    with pytest.raises(CodecError):
        pages.take_bytes(rows, True, bytearray(79), bytearray(9))
