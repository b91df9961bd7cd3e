"""Tests of random access to levels: values and whole rows, compared with a scan of the whole page."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pages import lance_page

from lancecodec import CodecError, bitpacking
from lancecodec import level_builder as builder
from lancecodec import levels as streams
from lancecodec import miniblock_levels as levels
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_levels import Levels, RepetitionIndex, row_starts
from lancecodec.miniblock_write import Assembly

KINDS = [levels.FLAT, levels.RLE, levels.OUT_OF_LINE]


@dataclass
class Column:
    """The levels of a page, and the result of a scan of all of it."""

    levels: Levels
    index: RepetitionIndex | None
    repetition: np.ndarray | None
    definition: np.ndarray | None
    entries: np.ndarray
    values: np.ndarray

    @property
    def num_rows(self) -> int:
        return len(self.entries) - 1

    def expected(self, rows: Any) -> tuple[bytes, bytes | None, list[int], list[int]]:
        places = [slice(self.entries[row], self.entries[row + 1]) for row in rows]
        parts = [
            None if stream is None else b"".join(stream[place].tobytes() for place in places)
            for stream in (self.repetition, self.definition)
        ]
        begins = [int(self.values[row]) for row in rows]
        counts = [int(self.values[row + 1] - self.values[row]) for row in rows]
        return parts[0] or b"", parts[1], begins, counts

    def taken(self, rows: Any) -> tuple[bytes, bytes | None, list[int], list[int]]:
        begins, counts = np.full((2, len(rows) + 1), -7)
        assert self.index is not None
        rep, dfn = self.levels.take_rows(self.index, np.array(rows, np.int64), begins, counts)
        assert begins[-1] == counts[-1] == -7
        return rep, dfn, begins[:-1].tolist(), counts[:-1].tolist()


def scanned(column: Levels, num_chunks: int, tops: dict[str, int], rep: bool, dfn: bool) -> Column:
    total = column.begins(0, num_chunks)[-1]
    repetition, definition = (np.zeros(total, np.uint16) if there else None for there in (rep, dfn))
    column.scan(0, num_chunks, repetition, definition)
    top = tops["max_repetition"]
    rows = total if repetition is None else int((repetition == top).sum())
    entries, values = np.zeros((2, rows + 1), np.int64)
    if repetition is not None:
        assert row_starts(repetition, definition, total, top, tops["max_visible"], entries, values) == rows
    return Column(column, None, repetition, definition, entries, values)


def encoded(kind: int, part: np.ndarray, width: int) -> bytes:
    """Return one chunk of a level stream."""
    if kind == levels.FLAT:
        return part.tobytes()
    if kind == levels.OUT_OF_LINE:
        out = np.zeros(bitpacking.out_of_line_size(len(part), 16, width), np.uint8)
        bitpacking.out_of_line_encode(part, 16, width, out)
        return out.tobytes()
    starts = np.append(np.flatnonzero(np.append(True, part[1:] != part[:-1])), len(part))
    runs = [(part[a], min(b - k, 255)) for a, b in pairwise(starts) for k in range(a, b, 255)]
    data = np.array([value for value, _ in runs], np.uint16).tobytes()
    return len(data).to_bytes(8, "little") + data + bytes(length for _, length in runs)


def written(built: builder.Levels, counts: list[int], kinds: tuple[int, int], damage: Any = None) -> Column:
    """Return a page of these levels, in chunks with the given numbers of values."""
    cuts = np.zeros(len(counts), np.int64)
    streams.cut(built.definition, built.num_items, built.max_visible_definition, np.array(counts), cuts)
    parts: list[tuple[bytes, list[int]]] = []
    codecs: list[tuple[int, int] | None] = []
    for kind, data, top in zip(
        kinds, (built.repetition, built.definition), (built.max_repetition, built.max_definition), strict=True
    ):
        codecs.append(None if data is None else (kind, top.bit_length() if kind == levels.OUT_OF_LINE else 0))
        if data is None:
            continue
        stream = np.frombuffer(data, np.uint16)
        chunks = [encoded(kind, stream[a:b], top.bit_length()) for a, b in pairwise([0, *cuts])]
        parts.append((b"".join(chunks), np.cumsum([len(chunk) for chunk in chunks]).tolist()))
    plan = Assembly(counts, [], True, levels=np.diff(cuts, prepend=0).tolist(), level_streams=parts)
    words, data_ = np.zeros(plan.words_size, np.uint8), np.zeros(plan.chunks_size, np.uint8)
    plan.write(words, data_)
    if damage is not None:
        damage(data_)
    table = ChunkTable(words, sum(counts), plan.chunks_size, True)
    rep, dfn = (codec is not None for codec in codecs)
    chunks_ = Chunks(table, 0, repetition=rep, definition=dfn, data=data_)
    tops = {
        "max_repetition": built.max_repetition,
        "max_definition": built.max_definition,
        "max_visible": built.max_visible_definition,
    }
    column = Levels(chunks_, repetition=codecs[0], definition=codecs[1], **tops)
    if damage is not None:
        result = Column(column, None, None, None, np.zeros(1), np.zeros(1))
    else:
        result = scanned(column, len(counts), tops, rep, dfn)
    if built.repetition is not None:
        pairs = np.zeros(2 * len(counts), np.uint64)
        streams.repetition_index(built.repetition, built.max_repetition, cuts, pairs)
        rows = streams.count_rows(built.repetition, built.max_repetition)
        result.index = RepetitionIndex(pairs, len(counts), rows)
    return result


def ends(lengths: list[int]) -> np.ndarray:
    return np.append(0, np.cumsum(lengths)).astype(np.int32)


def bits(valid: list[bool]) -> np.ndarray:
    return np.packbits(np.array(valid, bool), bitorder="little")


@st.composite
def pages(draw: st.DrawFn) -> tuple[builder.Levels, list[int]]:
    """Draw lists or lists of lists with nulls at every layer, and a division into chunks."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, depth = draw(st.integers(1, 60)), draw(st.integers(1, 2))
    mean, holes = draw(st.sampled_from([1, 3, 40])), draw(st.sampled_from([0.0, 0.2, 0.9]))
    layers: list[Any] = []
    slots = rows
    for _ in range(depth):
        valid = (random.random(slots) >= holes).tolist()
        lengths = (random.integers(0, 2 * mean + 1, slots) * valid).tolist()
        layers.append(("list", ends(lengths), False, bits(valid) if holes else None, 0))
        slots = sum(lengths)
    nulls = draw(st.booleans())
    layers.append(("item", bits((random.random(slots) < 0.7).tolist()) if nulls else None, 0))
    built = builder.build(rows, layers)
    left, counts = built.num_visible_items, list[int]()
    while left > 3:
        counts.append(min(1 << int(random.integers(1, draw(st.sampled_from([3, 8])))), 1 << (left.bit_length() - 2)))
        left -= counts[-1]
    return built, [*counts, left] if left else counts


@settings(max_examples=30, deadline=None)
@given(pages(), st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), st.data())
def test_rows_of_any_page(page: tuple[builder.Levels, list[int]], kinds: tuple[int, int], data: st.DataObject) -> None:
    built, counts = page
    if not counts:
        return
    column = written(built, counts, kinds)
    rows = data.draw(st.lists(st.integers(0, column.num_rows - 1), max_size=40))
    for order in (rows, sorted(rows), range(column.num_rows), range(column.num_rows)[::-1]):
        assert column.taken(order) == column.expected(order)


def list_column(rows: list[Any], kind: pa.DataType, tops: tuple[int, int, int]) -> Column:
    """Return levels as the reference writes them."""
    [page] = lance_page.pages_of(pa.array(rows, kind), "2.1")
    names = {"rep_compression", "def_compression"} & set(page.mini)
    codecs = {name: codec_of(page.mini[name]) for name in names}
    table = ChunkTable(page.buffers[0], page.mini["num_items"], len(page.buffers[1]), False)
    rep, dfn = (f"{name}_compression" in names for name in ("rep", "def"))
    chunks = Chunks(table, page.mini["num_buffers"], repetition=rep, definition=dfn, data=page.buffers[1])
    limits = dict(zip(("max_repetition", "max_definition", "max_visible"), tops, strict=True))
    kinds = [codecs.get(f"{name}_compression") for name in ("rep", "def")]
    column = Levels(chunks, repetition=kinds[0], definition=kinds[1], **limits)
    result = scanned(column, table.num_chunks, limits, rep, dfn)
    if rep:
        result.index = RepetitionIndex(page.buffers[-1], table.num_chunks, page.length)
        assert result.num_rows == page.length
    return result


def codec_of(message: dict[str, Any]) -> tuple[int, int]:
    [(name, body)] = message.items()
    if name == "out_of_line_bitpacking":
        return levels.OUT_OF_LINE, body["values"]["flat"]["bits_per_value"]
    return {"flat": levels.FLAT, "inline_bitpacking": levels.INLINE, "rle": levels.RLE}[name], 0


REFERENCE = {
    "short": ([None if i % 5 == 0 else [i, None] * (i % 4) for i in range(5000)], pa.list_(pa.int64()), (1, 3, 1)),
    "rows over many chunks": ([list(range(i * 900)) for i in range(1, 9)], pa.list_(pa.int64()), (1, 0, 0)),
    "one row": ([list(range(9000))], pa.list_(pa.int64()), (1, 0, 0)),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_rows_of_the_reference(name: str) -> None:
    column = list_column(*REFERENCE[name])
    random = np.random.default_rng(3)
    n = column.num_rows
    many = random.integers(0, n, 300)
    for rows in ([], [0], [n - 1], [n - 1, 0], range(n), many, np.sort(many)):
        assert column.taken(rows) == column.expected(rows)
    for bad in (-1, n, 2**62, -(2**63)):
        with pytest.raises(CodecError, match="outside"):
            column.taken([0, bad])


@pytest.mark.parametrize("kind", [*KINDS, levels.INLINE])
def test_single_values(kind: int) -> None:
    random = np.random.default_rng(5)
    built = builder.build(700, [("item", bits((random.random(700) < 0.5).tolist()), 0)])
    if kind == levels.INLINE:
        column = list_column([None if i % 3 else i for i in range(700)], pa.int64(), (0, 1, 1))
    else:
        column = written(built, [256, 128, 256, 60], (levels.FLAT, kind))
    assert column.definition is not None
    for items in ([], range(700), random.integers(0, 700, 500), np.sort(random.integers(0, 700, 90)), [699, 0, 699]):
        out = np.full(len(items) + 1, 77, np.uint16)
        column.levels.take(np.array(items, np.int64), out)
        assert (out[:-1] == column.definition[np.array(items, np.int64)]).all()
        assert out[-1] == 77
    for bad in (-1, 700, 2**62, -(2**63)):
        with pytest.raises(CodecError, match="requested position 1"):
            column.levels.take(np.array([3, bad]), np.zeros(2, np.uint16))


def index_of(started: list[int]) -> np.ndarray:
    """Return a repetition index from the rows started up to the end of each chunk.

    All chunks but the last end within a row.
    """
    ended = np.array(started) - (np.arange(len(started)) < len(started) - 1)
    return np.stack([np.diff(ended, prepend=0), np.array(started) != ended], 1).astype(np.uint64)


def lists_of(lengths: list[int]) -> builder.Levels:
    return builder.build(len(lengths), [("list", ends(lengths), False, None, 0), ("item", None, 0)])


def test_index_that_contradicts_the_levels() -> None:
    column = written(lists_of([3, 4, 2, 2]), [4, 4, 3], (levels.FLAT, levels.FLAT))
    assert column.taken([0, 1, 2, 3]) == column.expected([0, 1, 2, 3])
    assert bytes(column.levels.begins(0, 3)) == np.array([0, 4, 8, 11]).tobytes()
    for started, rows in (([1, 3, 4], [0, 1, 2]), ([2, 2, 4], [1, 2, 3]), ([1, 2, 4], [0, 2, 3])):
        column.index = RepetitionIndex(index_of(started), 3, 4)
        for row in rows:
            with pytest.raises(CodecError, match=f"levels of row {row}"):
                column.taken([row])


def run_stream(runs: list[tuple[int, int]]) -> bytes:
    """Runs of (level, length) as a stream."""
    lengths, stored = [], []
    for level, length in runs:
        whole, rest = divmod(length, 255)
        stored += [level] * (whole + (rest > 0))
        lengths += [255] * whole + [rest] * (rest > 0)
    return np.uint64(2 * len(stored)).tobytes() + np.array(stored, "<u2").tobytes() + bytes(lengths)


def test_a_row_of_millions_of_levels_without_values(little_memory: None) -> None:
    """Chunks that claim as many levels as they can for one list without a value for most of them."""
    most, chunks = 5_500_000, 60
    parts, words = [], []
    for number in range(chunks):
        row = [(1, 1), (0, most - 1)] if number == 0 else [(0, most)]
        rep, dfn = run_stream(row), run_stream([(0, 2), (2, most - 2)])
        header = np.array([most % 65536, len(rep), len(dfn)], "<u2").tobytes() + np.uint32(4).tobytes()
        chunk = b"".join(part + bytes(-len(part) % 8) for part in (header, rep, dfn, b"abcd"))
        parts.append(chunk)
        words.append((len(chunk) // 8 - 1) << 4 | (number < chunks - 1))
    data = b"".join(parts)
    table = ChunkTable(np.array(words, "<u4"), 2 * chunks, len(data), True)
    column = Levels(
        Chunks(table, 1, repetition=True, definition=True, data=data),
        repetition=(levels.RLE, 0),
        definition=(levels.RLE, 0),
        max_repetition=1,
        max_definition=2,
        max_visible=1,
    )
    pairs = np.array([[0, 1]] * (chunks - 1) + [[1, 0]], np.uint64)
    index = RepetitionIndex(pairs, chunks, 1)
    begins, counts = np.empty((2, 1), np.int64)
    with pytest.raises(CodecError, match="levels of row 0"):
        column.take_rows(index, np.array([0]), begins, counts)


def test_levels_that_do_not_exist() -> None:
    def damage(chunks: np.ndarray) -> None:
        place = np.flatnonzero(chunks.view(np.uint16) == 1)[-1]
        chunks.view(np.uint16)[place] = 9

    column = written(lists_of([3, 4, 2, 2]), [4, 4, 3], (levels.FLAT, levels.FLAT), damage)
    with pytest.raises(CodecError, match="levels of row 3"):
        column.taken([3])


def test_outputs_and_pages_that_do_not_fit() -> None:
    column = written(lists_of([3, 4]), [4, 3], (levels.FLAT, levels.FLAT))
    assert column.index is not None
    with pytest.raises(CodecError, match="1 and 2 entries for 2 rows"):
        column.levels.take_rows(column.index, np.array([0, 1]), np.zeros(1, np.int64), np.zeros(2, np.int64))
    with pytest.raises(CodecError, match="without lists"):
        column.levels.take(np.array([0]), np.zeros(1, np.uint16))
    other = RepetitionIndex(np.array([2, 0], np.uint64), 1, 2)
    with pytest.raises(CodecError, match="does not match these levels"):
        column.levels.take_rows(other, np.array([0]), np.zeros(1, np.int64), np.zeros(1, np.int64))
    flat = written(builder.build(9, [("item", bits([True, False] * 4 + [True]), 0)]), [8, 1], (0, levels.FLAT))
    with pytest.raises(CodecError, match="too small for 3 levels"):
        flat.levels.take(np.array([0, 1, 2]), np.zeros(2, np.uint16))
    with pytest.raises(CodecError, match="does not match these levels"):
        flat.levels.take_rows(column.index, np.array([0]), np.zeros(1, np.int64), np.zeros(1, np.int64))


@settings(max_examples=60, deadline=None)
@given(pages(), st.sampled_from(KINDS), st.integers(0, 2**32))
def test_damage_never_crashes(page: tuple[builder.Levels, list[int]], kind: int, seed: int) -> None:
    built, counts = page
    random = np.random.default_rng(seed)
    if not counts:
        return

    def damage(chunks: np.ndarray) -> None:
        for _ in range(random.integers(1, 4)):
            chunks[random.integers(0, len(chunks))] = random.choice([0, 1, 2, 0x7F, 0xFF])

    column = written(built, counts, (kind, kind), damage)
    assert column.index is not None
    rows = random.integers(0, column.index.num_rows, 20)
    begins, counts_ = np.zeros((2, 20), np.int64)
    try:
        column.levels.take_rows(column.index, rows, begins, counts_)
    except CodecError:
        return
    assert ((begins >= 0) & (counts_ >= 0) & (begins + counts_ <= sum(counts))).all()
