"""Tests of variable-width values against pyarrow, golden vectors and the chunks pylance writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pages import lance_page

from lancecodec import CodecError, variable

WIDTHS = st.booleans()
seeds = st.integers(0, 2**32 - 1)
lengths = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 63, 64, 65, 300, 1023, 1024, 1025, 4097])


@dataclass(frozen=True)
class Values:
    """Arrow values whose offsets start at `origin`, in buffers at odd addresses if `skew` is odd."""

    items: list[bytes]
    origin: int
    skew: int

    @property
    def offsets(self) -> np.ndarray:
        return np.cumsum([self.origin, *map(len, self.items)])

    @property
    def data(self) -> memoryview:
        return at(b"#" * self.origin + b"".join(self.items) + b"##", self.skew)

    def arrow(self, wide: bool) -> memoryview:
        return at(self.offsets.astype(dtype(wide)).tobytes(), self.skew)


def dtype(wide: bool) -> Any:
    return np.int64 if wide else np.int32


def at(data: bytes, skew: int) -> memoryview:
    return memoryview(b"." * skew + data)[skew:]


def room(size: int, skew: int = 0) -> memoryview:
    return memoryview(bytearray(b"\xa5" * (size + skew)))[skew:]


def random_values(seed: int, length: int) -> Values:
    rng = np.random.default_rng(seed)
    top = int(rng.choice([1, 3, 12, 60, 700] if length < 2000 else [1, 3, 12, 60]))
    ends = np.cumsum(rng.integers(0, top, length)).tolist()
    data = rng.bytes(ends[-1] if ends else 0)
    items = [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    return Values(items, int(rng.choice([0, 7])), int(rng.choice([0, 0, 1, 3])))


def encoded(values: Values, wide: bool, out_wide: bool, **rule: int) -> tuple[bytes, np.ndarray, np.ndarray]:
    length = len(values.items)
    counts, ends = np.zeros((2, variable.plan_bound(length)), np.int64)
    chunks = variable.plan(values.arrow(wide), wide, length, out_wide, counts, ends, **rule)
    counts, ends = counts[:chunks].copy(), ends[:chunks].copy()
    out = room(int(ends[-1]) if chunks else 0, values.skew)
    assert variable.encode(values.arrow(wide), wide, values.data, length, out_wide, counts, ends, out) == len(out)
    return bytes(out), counts, ends


def expected_counts(values: Values, wide: bool, target: int = 4096, max_values: int = 4096) -> list[int]:
    """Return the number of values of each chunk by the rule of the format chapter, with a new sum for every trial."""
    width, counts, at = 8 if wide else 4, [], 0
    sizes = [len(item) for item in values.items]

    def fits(count: int) -> bool:
        return sum(sizes[at : at + count]) + (count + 1) * width <= target

    while at < len(sizes):
        left, take, trial = len(sizes) - at, 2, 4
        while True:
            if left <= 1:
                take = left
            elif trial > left:
                take = left if fits(left) else take
            elif fits(trial) and 2 * trial <= max_values:
                take, trial = trial, 2 * trial
                continue
            break
        counts.append(take)
        at += take
    return counts


def expected_chunk(items: list[bytes], wide: bool) -> bytes:
    width = 8 if wide else 4
    offsets = np.cumsum([(len(items) + 1) * width, *map(len, items)]).astype(dtype(wide))
    data = b"".join(items)
    return offsets.tobytes() + data + b"\x48" * (-len(data) % width)


@given(seeds, lengths, WIDTHS, WIDTHS)
def test_chunks_and_back(seed: int, length: int, wide: bool, out_wide: bool) -> None:
    values = random_values(seed, length)
    data, counts, ends = encoded(values, wide, out_wide)
    assert counts.tolist() == expected_counts(values, out_wide)
    begin = item = 0
    for count, end in zip(counts.tolist(), ends.tolist(), strict=True):
        assert data[begin:end] == expected_chunk(values.items[item : item + count], out_wide)
        begin, item = end, item + count
    for back_wide in (False, True):
        offsets = room((length + 1) * (8 if back_wide else 4), values.skew)
        out = room(variable.decode_bound(len(data), length, len(counts), out_wide), 1)
        size = variable.decode(at(data, values.skew), out_wide, counts, ends, length, back_wide, offsets, out)
        assert bytes(out[:size]) == b"".join(values.items)
        assert np.frombuffer(bytes(offsets), dtype(back_wide)).tolist() == (values.offsets - values.origin).tolist()


@given(seeds, lengths, WIDTHS, st.sampled_from([0, 64, 1000, 16384]), st.sampled_from([2, 3, 8, 4096, 32768]))
def test_other_targets(seed: int, length: int, wide: bool, target: int, max_values: int) -> None:
    values = random_values(seed, length)
    _, counts, _ = encoded(values, wide, wide, target=target, max_values=max_values)
    assert counts.tolist() == expected_counts(values, wide, target, max_values)


@given(seeds, lengths, WIDTHS, WIDTHS, st.sampled_from([0, 1, 2**31 - 2**25]))
def test_one_chunk(seed: int, length: int, wide: bool, out_wide: bool, base: int) -> None:
    values = random_values(seed, length)
    chunk = at(expected_chunk(values.items, wide), values.skew)
    offsets = room((length + 1) * (8 if out_wide else 4), values.skew)
    begin, size = variable.decode_chunk(chunk, length, wide, out_wide, offsets, base)
    assert bytes(chunk[begin : begin + size]) == b"".join(values.items)
    assert np.frombuffer(bytes(offsets), dtype(out_wide)).tolist() == (values.offsets - values.origin + base).tolist()
    for index in {0, length // 2, length - 1} if length else ():
        begin, size = variable.chunk_value(chunk, length, wide, index)
        assert bytes(chunk[begin : begin + size]) == values.items[index]


@given(seeds, lengths, WIDTHS, WIDTHS, WIDTHS)
def test_block_and_back(seed: int, length: int, wide: bool, block_wide: bool, out_wide: bool) -> None:
    values = random_values(seed, length)
    total = sum(map(len, values.items))
    block = room(variable.block_bound(length, total, block_wide), values.skew)
    assert variable.encode_block(values.arrow(wide), wide, values.data, length, block_wide, block) == len(block)
    offsets = room((length + 1) * (8 if out_wide else 4), values.skew)
    begin, size = variable.decode_block(block, length, out_wide, offsets, 5)
    assert bytes(block[begin : begin + size]) == b"".join(values.items)
    assert np.frombuffer(bytes(offsets), dtype(out_wide)).tolist() == (values.offsets - values.origin + 5).tolist()


@given(seeds, lengths, WIDTHS, WIDTHS)
def test_generic_offsets(seed: int, length: int, wide: bool, out_wide: bool) -> None:
    values = random_values(seed, length)
    coded = room((length + 1) * (8 if out_wide else 4))
    first, last = variable.rebase(values.arrow(wide), wide, length, out_wide, coded)
    assert (first, last) == (values.offsets[0], values.offsets[-1])
    offsets = room((length + 1) * (8 if wide else 4))
    variable.decode_generic(coded, out_wide, length, last - first, wide, offsets, 9)
    assert np.frombuffer(bytes(offsets), dtype(wide)).tolist() == (values.offsets - values.origin + 9).tolist()
    for wrong in (last - first - 1, last - first + 1, -1):
        with pytest.raises(CodecError, match="offsets"):
            variable.decode_generic(coded, out_wide, length, wrong, wide, offsets)


@given(seeds, lengths.filter(bool), WIDTHS, WIDTHS)
def test_single_values(seed: int, length: int, wide: bool, out_wide: bool) -> None:
    values = random_values(seed, length)
    total = sum(map(len, values.items))
    assert variable.measure(values.arrow(wide), wide, length) == (total, max(map(len, values.items)))
    index = np.random.default_rng(seed).integers(0, length, 2 * length)
    chosen = [values.items[i] for i in index.tolist()]
    offsets = room((len(index) + 1) * (8 if out_wide else 4))
    size = variable.select_offsets(values.arrow(wide), wide, length, index, out_wide, offsets)
    out = room(size, values.skew)
    assert variable.select_bytes(values.arrow(wide), wide, values.data, length, index, out) == size
    assert bytes(out) == b"".join(chosen)
    assert np.frombuffer(bytes(offsets), dtype(out_wide)).tolist() == np.cumsum([0, *map(len, chosen)]).tolist()


GOLDEN = Values([b"ab", b"", b"xyz"], 0, 0)
GOLDEN_CHUNKS = {
    False: "10000000 12000000 12000000 15000000 6162 78797a 484848",
    True: "2000000000000000 2200000000000000 2200000000000000 2500000000000000 6162 78797a 484848",
}
GOLDEN_BLOCKS = {
    False: "20000000 18000000 00000000 02000000 02000000 05000000 6162 78797a",
    True: "4000000000000000 3000000000000000 0000000000000000 0200000000000000 0200000000000000 0500000000000000"
    "6162 78797a",
}


@pytest.mark.parametrize("wide", [False, True])
def test_golden(wide: bool) -> None:
    data, counts, ends = encoded(GOLDEN, False, wide)
    assert data == bytes.fromhex(GOLDEN_CHUNKS[wide])
    assert (counts.tolist(), ends.tolist()) == ([3], [len(data)])
    out = bytearray(variable.block_bound(3, 5, wide))
    assert variable.encode_block(GOLDEN.arrow(False), False, GOLDEN.data, 3, wide, out) == len(out)
    assert bytes(out) == bytes.fromhex(GOLDEN_BLOCKS[wide])


def test_golden_dictionary_block() -> None:
    block = bytes.fromhex(
        "20000000 1c000000 00000000 04000000 09000000 0e000000 0e000000 62657461 616c706861 67616d6d61"
    )
    offsets = bytearray(20)
    begin, size = variable.decode_block(block, 4, False, offsets)
    assert (np.frombuffer(offsets, np.int32).tolist(), block[begin : begin + size]) == (
        [0, 4, 9, 14, 14],
        b"betaalphagamma",
    )


@pytest.mark.parametrize("wide", [False, True])
def test_legacy_block_header(wide: bool) -> None:
    """A legacy block starts with a byte of width, the number of values and the position of the bytes."""
    items = [b"%d" % i for i in range(300)]
    width, word = (8, "<u8") if wide else (4, "<u4")
    head = np.array([len(items), 1 + 2 * width + 301 * width], word).tobytes()
    offsets = np.cumsum([0, *map(len, items)]).astype(word).tobytes()
    block = bytes([8 * width]) + head + offsets + b"".join(items)
    out = bytearray(301 * 4)
    begin, size = variable.decode_block(block, 300, False, out)
    assert block[begin : begin + size] == b"".join(items)
    assert out == np.cumsum([0, *map(len, items)]).astype(np.int32).tobytes()
    with pytest.raises(CodecError, match="header"):
        variable.decode_block(block, 299, False, out)


def test_no_values() -> None:
    assert variable.plan_bound(0) == 0
    assert encoded(Values([], 0, 0), False, False)[0] == b""
    none = np.zeros(0, np.int64)
    offsets = bytearray(b"\xff" * 8)
    assert variable.decode(b"", False, none, none, 0, True, offsets, bytearray()) == 0
    assert bytes(offsets) == bytes(8)


def test_gap_before_the_values_and_any_padding() -> None:
    chunk = np.array([12, 13, 14], np.int32).tobytes() + b"xyzw"
    shifted = np.array([13, 14, 15], np.int32).tobytes() + b"?xyw"
    for buffer, expected in ((chunk, b"xy"), (shifted, b"xy")):
        begin, size = variable.decode_chunk(buffer, 2, False, False, bytearray(12))
        assert buffer[begin : begin + size] == expected


def damaged_chunks(wide: bool) -> dict[str, bytes]:
    def chunk(*offsets: int, data: bytes = b"abcdefgh") -> bytes:
        return np.array(offsets, np.int64).astype(np.uint64 if wide else np.uint32).tobytes() + data

    head = 3 * (8 if wide else 4)
    top = 2**63 if wide else 2**31
    return {
        "too short": chunk(head, head, data=b""),
        "empty": b"",
        "not whole offsets": chunk(head, head + 1, head + 2) + b"x",
        "into the offsets": chunk(head - 1, head + 1, head + 2),
        "decrease": chunk(head, head + 3, head + 2),
        "decrease at the start": chunk(head + 2, head + 1, head + 3),
        "past the end": chunk(head, head + 1, head + 9),
        "in between past the end": chunk(head, head + 100, head + 4),
        "negative": chunk(head, top - 1 + 1 - 2**64 if wide else top, head + 4),
        "all negative": chunk(*(3 * [-1])),
    }


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", list(damaged_chunks(False)))
def test_damaged_chunks(wide: bool, kind: str) -> None:
    chunk = damaged_chunks(wide)[kind]
    for out_wide in (False, True):
        with pytest.raises(CodecError):
            variable.decode_chunk(chunk, 2, wide, out_wide, bytearray(24))
    ends = np.array([len(chunk)])
    with pytest.raises(CodecError, match="chunk 0"):
        variable.decode(chunk, wide, np.array([2]), ends, 2, True, bytearray(24), bytearray(64))


def test_a_decrease_anywhere_is_found() -> None:
    offsets = np.arange(4000, 4000 + 700, dtype=np.int32)
    for at_entry in range(1, 699):
        wrong = offsets.copy()
        wrong[at_entry] += 2
        with pytest.raises(CodecError, match="offsets"):
            variable.measure(wrong, False, 699)
        with pytest.raises(CodecError, match="offsets"):
            variable.rebase(wrong, False, 699, False, bytearray(2800))


@pytest.mark.parametrize("wide", [False, True])
def test_damaged_blocks(wide: bool) -> None:
    block = bytes.fromhex(GOLDEN_BLOCKS[wide])
    width = 8 if wide else 4
    for at_byte, value in [(0, 33), (0, 0), (3, 1), (width, 1), (2 * width, 1), (3 * width, 9), (5 * width, 6)]:
        wrong = bytearray(block)
        wrong[at_byte] = value
        with pytest.raises(CodecError):
            variable.decode_block(wrong, 3, False, bytearray(16))
    for size in range(len(block)):
        with pytest.raises(CodecError):
            variable.decode_block(block[:size], 3, False, bytearray(16))
    for length in (0, 2, 4):
        with pytest.raises(CodecError):
            variable.decode_block(block, length, False, bytearray(20))


def test_offsets_that_do_not_fit() -> None:
    huge = np.array([0, 2**31 - 40, 2**31 + 5], np.int64)
    counts, ends = np.zeros((2, 1), np.int64)
    assert variable.plan(huge, True, 2, False, counts, ends) == 1
    chunk = bytes.fromhex(GOLDEN_CHUNKS[False])
    for base, out_wide in [(2**31 - 5, False), (2**63 - 5, True), (-1, False), (-(2**63), True)]:
        with pytest.raises(CodecError, match="do not fit"):
            variable.decode_chunk(chunk, 3, False, out_wide, bytearray(32), base)
        with pytest.raises(CodecError, match="do not fit"):
            variable.rebase(GOLDEN.arrow(False), False, 3, out_wide, bytearray(32), base)
    assert variable.decode_chunk(chunk, 3, False, False, bytearray(32), 2**31 - 6) == (16, 5)
    with pytest.raises(CodecError, match="do not fit"):
        variable.rebase(huge, True, 2, False, bytearray(12))
    with pytest.raises(CodecError, match="do not fit"):
        variable.select_offsets(huge, True, 2, np.array([0, 1]), False, bytearray(12))


@pytest.mark.parametrize(
    ("counts", "ends"), [([3], [23]), ([2], [24]), ([4], [24]), ([3], [40]), ([-1], [24]), ([], [])]
)
def test_encode_rejects_other_plans(counts: list[int], ends: list[int]) -> None:
    plan = np.array(counts, np.int64), np.array(ends, np.int64)
    with pytest.raises(CodecError, match="counts do not add up"):
        variable.encode(GOLDEN.arrow(False), False, GOLDEN.data, 3, False, *plan, bytearray(24))


@pytest.mark.parametrize("length", [-1, 4, 2**61, 2**63 - 1, -(2**63)])
def test_lengths_beyond_the_buffers(length: int) -> None:
    one = np.zeros(1, np.int64)
    with pytest.raises(CodecError):
        variable.plan(bytes(16), False, length, False, one, one.copy())
    with pytest.raises(CodecError):
        variable.decode_chunk(bytes(16), length, False, False, bytearray(16))
    with pytest.raises(CodecError):
        variable.decode_block(bytes(16), length, False, bytearray(16))
    with pytest.raises(CodecError):
        variable.measure(bytes(16), False, length)
    with pytest.raises(CodecError):
        variable.chunk_value(bytes(16), 3, False, length)


@pytest.mark.parametrize("index", [-1, 3, 2**62])
def test_selection_outside(index: int) -> None:
    with pytest.raises(CodecError, match="selection 1"):
        variable.select_offsets(GOLDEN.arrow(False), False, 3, np.array([0, index]), False, bytearray(12))
    with pytest.raises(CodecError, match="selection 1"):
        variable.select_bytes(GOLDEN.arrow(False), False, GOLDEN.data, 3, np.array([0, index]), bytearray(12))


# -- the reference ---------------------------------------------------------------------------------------------------

PLAIN = {"lance-encoding:compression": "none", "lance-encoding:structural-encoding": "miniblock"}


def chunks_of(page: lance_page.Page) -> list[tuple[int, bytes]]:
    """Return the number of values and the bytes after the 8-byte header of each chunk of a page without levels."""
    words = np.frombuffer(page.buffers[0], np.uint32 if "has_large_chunk" in page.mini else np.uint16).tolist()
    found, begin, left = [], 0, page.mini["num_items"]
    for i, word in enumerate(words):
        end = begin + ((word >> 4) + 1) * 8
        count = left if i == len(words) - 1 else 1 << (word & 15)
        found.append((count, page.buffers[1][begin + 8 : end]))
        begin, left = end, left - count
    return found


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("length", "top", "target"), [(5000, 60, 4096), (67, 60, 4096), (9000, 3, 16384), (50, 250, 64)]
)
def test_chunks_are_those_of_pylance(length: int, top: int, target: int, wide: bool, version: str) -> None:
    rng = np.random.default_rng(length)
    values = Values([rng.bytes(n) for n in rng.integers(0, top, length).tolist()], 0, 0)
    array = pa.array(values.items, pa.large_binary() if wide else pa.binary())
    metadata = {**PLAIN, "lance-encoding:minichunk-size": str(target), "lance-encoding:dict-divisor": "100000"}
    [page] = lance_page.pages_of(array, version, metadata)
    data, counts, ends = encoded(values, wide, wide, target=target)
    stored = chunks_of(page)
    assert [count for count, _ in stored] == counts.tolist()
    begins = [0, *ends[:-1].tolist()]
    for (_, chunk), begin, end in zip(stored, begins, ends.tolist(), strict=True):
        assert chunk[: end - begin] == data[begin:end]
        assert len(chunk) - (end - begin) < 8


@pytest.mark.parametrize("wide", [False, True])
def test_pylance_reads_our_chunks(tmp_path: Path, wide: bool) -> None:
    rng = np.random.default_rng(5)
    values = Values([rng.bytes(n) for n in rng.integers(0, 60, 3000).tolist()], 0, 0)
    data, counts, ends = encoded(values, wide, wide)
    words, chunks, begin = [], b"", 0
    for i, (count, end) in enumerate(zip(counts.tolist(), ends.tolist(), strict=True)):
        chunk = np.array([0, end - begin], np.uint16).tobytes() + bytes(4) + data[begin:end]
        chunk += bytes(-len(chunk) % 8)
        log = 0 if i == len(counts) - 1 else count.bit_length() - 1
        words.append(log | (len(chunk) // 8 - 1) << 4)
        chunks, begin = chunks + chunk, end
    layout = lance_page.mini_block(lance_page.variable(64 if wide else 32), num_items=3000, version="2.1")
    page = lance_page.Page(layout, [np.array(words, np.uint16).tobytes(), chunks], 3000)
    field = pa.field("a", pa.large_binary() if wide else pa.binary(), nullable=False)
    lance_page.write_pages(tmp_path / "a.lance", field, [page], "2.1")
    assert lance_page.read_back(tmp_path / "a.lance").to_pylist() == values.items
