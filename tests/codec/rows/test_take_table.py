"""Tests of compiled takes from tables of many fragments: threads, callbacks, damage."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pages.take_pages import (
    COUNTS,
    CUTS,
    ROWS,
    WORDS,
    chunks_of,
    cut,
    import_column,
    inline,
    list_page,
    rows_of,
    text_chunk,
)

from lancecodec import CodecError, take, take_pages
from lancecodec import miniblock_levels as levels
from lancecodec import miniblock_values as values
from lancecodec.miniblock import Chunks, ChunkTable
from lancecodec.miniblock_write import Assembly
from lancecodec.take import ADDRESSES, ColumnTaker, FragmentTaker, RowTaker, TakenRows
from lancecodec.take_pages import Lists, PageTaker

# -- tables ------------------------------------------------------------------------------------------------------


class Table:
    """Fragments of pages of 32-bit numbers, with some rows deleted. Each value is its row address."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.pages_opened: list[tuple[int, int]] = []
        self.fragments, live = [], []
        for number in range(int(rng.integers(1, 8))):
            lengths = rng.integers(1, 50, int(rng.integers(1, 4)))
            rows = int(lengths.sum())
            deleted = np.flatnonzero(rng.random(rows) < rng.choice([0.0, 0.2, 1.0], p=[0.4, 0.5, 0.1]))
            self.fragments.append((number * 3, np.append(0, np.cumsum(lengths)).tolist(), deleted))
            live.append(np.setdiff1d(np.arange(rows), deleted) + (number * 3 << 32))
        self.live = np.concatenate(live)
        starts = np.append(0, np.cumsum([len(part) for part in live]))
        self.taker = RowTaker([(8, False, False, (), 0), (8, False, False, (), 0)], starts, self.open)

    def open(self, position: int) -> FragmentTaker:
        fragment_id, starts, deleted = self.fragments[position]

        def page(number: int) -> PageTaker:
            self.pages_opened.append((position, number))
            rows = np.arange(starts[number], starts[number + 1]) + (fragment_id << 32)
            return take_pages.zipped(rows.tobytes(), len(rows), 8)

        return FragmentTaker([ColumnTaker(starts, 8, page), ADDRESSES], starts[-1], fragment_id, deleted)

    def check(self, taken: TakenRows, expected: np.ndarray) -> None:
        taken.decode_all()
        assert taken.num_rows == len(expected)
        assert taken.missing == []
        schema = pa.schema([("a", pa.int64()), ("b", pa.uint64())])
        batch = pa.RecordBatch._import_from_c(taken.batch(), schema)
        batch.validate(full=True)
        assert batch["a"].to_pylist() == batch["b"].to_pylist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 400))
def test_rows_of_many_fragments(seed: int, count: int) -> None:
    table, rng = Table(seed), np.random.default_rng(seed)
    if len(table.live):
        rows = rng.integers(0, len(table.live), count)
        table.check(table.taker.numbers(rows), table.live[rows])
    positions = rng.integers(0, len(table.fragments), count)
    offsets = np.array([rng.integers(0, table.fragments[position][1][-1]) for position in positions])
    ids = np.array([table.fragments[position][0] for position in positions])
    table.check(table.taker.places(positions << 32 | offsets), ids << 32 | offsets)
    assert len(set(table.pages_opened)) == len(table.pages_opened)


def test_rows_outside() -> None:
    table = Table(5)
    for rows in ([len(table.live)], [-1], [0, 2**62], [-(2**63)]):
        with pytest.raises(IndexError):
            table.taker.numbers(np.array(rows))
    with pytest.raises(IndexError):
        table.taker.places(np.array([len(table.fragments) << 32]))
    with pytest.raises(CodecError, match="outside a fragment"):
        table.taker.places(np.array([1 << 20]))
    with pytest.raises(CodecError, match="rows to take are empty"):
        table.taker.numbers(np.array([], np.int64))


def test_many_threads() -> None:
    table = Table(7)
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(50):
                rows = rng.integers(0, len(table.live), 200)
                table.check(table.taker.numbers(rows), table.live[rows])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("deleted", [[0, 1, 2, 3], [9, 9, 9], [-(2**62), 2**62], [5, 0, 5, 0]])
def test_deleted_rows_that_cannot_be(deleted: list[int]) -> None:
    """Invalid deleted rows never make a take read rows outside the fragment."""
    page = take_pages.zipped(np.arange(4).tobytes(), 4, 8)
    fragment = FragmentTaker([ColumnTaker([0, 4], 8, lambda _: page)], 4, 0, np.array(deleted))
    taker = RowTaker([(8, False, False, (), 0)], np.array([0, 4]), lambda _: fragment)
    if max(deleted) < 9 or deleted[0] < 0:
        with pytest.raises(CodecError, match="outside a fragment"):
            taker.numbers(np.arange(4))
    else:
        taken = taker.numbers(np.arange(4))
        taken.decode_all()
        assert import_column(taken, 0, pa.int64()).to_pylist() == [0, 1, 2, 3]


def test_columns_that_are_missing() -> None:
    page = take_pages.zipped(bytes(32), 4, 8)
    columns = [ColumnTaker([0, 2, 4], 8, lambda number: page if number > 5 else None), None, ADDRESSES]
    shapes = [(8, False, False, (), 0)] * 3
    taker = RowTaker(shapes, np.array([0, 4]), lambda _: FragmentTaker(columns, 4, 1))
    taken = taker.numbers(np.array([3, 0]))
    taken.decode_all()
    assert taken.missing == [0, 1]
    assert import_column(taken, 2, pa.uint64()).to_pylist() == [(1 << 32) + 3, 1 << 32]
    with pytest.raises(CodecError):
        taken.column(0)
    with pytest.raises(CodecError):
        taken.batch()


def test_what_callbacks_raise_arrives() -> None:
    def broken(_: int) -> Any:
        raise KeyError("open")

    taker = RowTaker([(8, False, False, (), 0)], np.array([0, 4]), broken)
    with pytest.raises(KeyError, match="open"):
        taker.numbers(np.array([1]))
    column = ColumnTaker([0, 4], 8, broken)
    taker = RowTaker([(8, False, False, (), 0)], np.array([0, 4]), lambda _: FragmentTaker([column], 4, 1))
    with pytest.raises(KeyError, match="open"):
        taker.numbers(np.array([1]))
    wrong = ColumnTaker([0, 4], 4, lambda _: take_pages.nulls(4, 8))
    taker = RowTaker([(4, False, False, (), 0)], np.array([0, 4]), lambda _: FragmentTaker([wrong], 4, 1))
    with pytest.raises(CodecError, match="8 bytes"):
        taker.numbers(np.array([1]))


def test_arguments_that_do_not_fit() -> None:
    plain, levelled = (
        chunks_of([[bytes(4 * n) for n in COUNTS]]),
        chunks_of([[bytes(n) for n in COUNTS]], [[bytes(2 * n) for n in COUNTS]]),
    )
    for call in (
        lambda: take_pages.fixed_chunks(plain, 8, values.FLAT, 32),
        lambda: take_pages.fixed_chunks(plain, 4, 9, 32),
        lambda: take_pages.fixed_chunks(plain, 4, values.RLE, 32),
        lambda: take_pages.fixed_chunks(plain, 4, values.FLAT, 32, definition=(0, 0)),
        lambda: take_pages.fixed_chunks(levelled, 1, values.FLAT, 8),
        lambda: take_pages.fixed_chunks(levelled, 1, values.FLAT, 8, definition=(77, 0)),
        lambda: take_pages.fixed_chunks(plain, 4, values.FLAT, 32, entries=bytes(4), count=2),
        lambda: take_pages.fixed_chunks(plain, -1, values.FLAT, 32, entries=bytes(4), count=2),
        lambda: take_pages.fixed_chunks(plain, -1, values.FLAT, 32, entries=b"", offsets=bytes(8), count=2),
        lambda: take_pages.text_chunks(plain, False, symbol_table=bytes(2312)),
        lambda: take_pages.zipped(b"", 4, -1, index=bytes(5), index_width=1, offset_bits=16),
        lambda: take_pages.zipped(b"", 4, -1, index=bytes(4), index_width=1, offset_bits=32),
        lambda: take_pages.zipped(b"", 4, 4, bits_def=33),
        lambda: take_pages.constant(4, 4, b"ab"),
        lambda: take_pages.constant(4, 4, b"abcd", definition=b"\0"),
        lambda: take_pages.nulls(-1, 4),
        lambda: ColumnTaker([1, 4], 4, print),
        lambda: ColumnTaker([0, 4, 4], 4, print),
        lambda: ColumnTaker([], 4, print),
        lambda: FragmentTaker([], 4, 2**32),
        lambda: FragmentTaker([ColumnTaker([0, 5], 4, print)], 4, 0),
        lambda: RowTaker([(4, False, False, (), 5)], np.array([0]), print),
        lambda: RowTaker([(4, False, False, (0,), 0)], np.array([0]), print),
        lambda: RowTaker([(4, False, False, (2**31, 2**31, 2**31), 0)], np.array([0]), print),
        lambda: RowTaker([(4, False, False, (32, 2), 0)], np.array([0]), print),
        lambda: RowTaker([], np.array([0, 5, 4]), print),
        lambda: RowTaker([], np.array([0, 2**63 - 1]), print),
        lambda: Lists(np.array([0, 2, 1]), (0, 0)),
    ):
        with pytest.raises(CodecError):
            call()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_damage_never_crashes(seed: int) -> None:
    """Damaged pages give other values or a missing column, and never crash."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 9, ROWS).astype("u4")
    texts = [WORDS[i].encode() for i in rng.integers(0, len(WORDS), ROWS)]
    parts = [text_chunk(texts[low:high], False) for low, high in itertools.pairwise(CUTS)]
    kinds: list[tuple[list[list[bytes]], Callable[[Chunks], PageTaker], pa.DataType, int]] = [
        (
            [[inline(part) for part in cut(numbers)]],
            lambda chunks: take_pages.fixed_chunks(chunks, 4, values.INLINE, 32, definition=(levels.FLAT, 0)),
            pa.uint32(),
            4,
        ),
        ([parts], lambda chunks: take_pages.text_chunks(chunks, False, definition=(levels.FLAT, 0)), pa.string(), -1),
    ]
    for buffers, opened, kind, width in kinds:
        plan = Assembly(
            COUNTS,
            [(b"".join(part), np.cumsum([len(each) for each in part]).tolist()) for part in buffers],
            True,
            levels=COUNTS,
            level_streams=[(bytes(2 * ROWS), (2 * CUTS[1:]).tolist())],
        )
        words, data = bytearray(plan.words_size), bytearray(plan.chunks_size)
        plan.write(words, data)
        for at in rng.integers(0, len(data), 4):
            data[at] = rng.integers(0, 256)
        damaged = Chunks(ChunkTable(words, ROWS, len(data), True), 1, definition=True, data=data)
        found = rows_of(opened(damaged), rng.permutation(ROWS), kind, (width, False, width < 0, (), 0))
        assert found is None or len(found) == ROWS


@pytest.mark.parametrize("given_", [[1.0], [True], [None], ["a"], [-1], [2**63], [np.int64(1)], [1, 2, object()]])
def test_lists_of_other_things_are_no_integers(given_: list[Any]) -> None:
    assert take.integers(given_) is None


def test_integers() -> None:
    assert np.asarray(take.integers([5, 0, 2**63 - 1])).tolist() == [5, 0, 2**63 - 1]
    assert len(take.integers([])) == 0


def plain_list_page(lengths: list[int]) -> PageTaker:
    """Return lists of the numbers from 0 on, in one chunk without definition levels."""
    stored = np.arange(sum(lengths), dtype=np.uint16)
    rep = np.isin(stored, np.cumsum([0, *lengths[:-1]])).astype(np.uint16).tobytes()
    streams = [(rep, [len(rep)])]
    data = stored.tobytes()
    plan = Assembly([len(stored)], [(data, [len(data)])], True, levels=[len(stored)], level_streams=streams)
    words, page = bytearray(plan.words_size), bytearray(plan.chunks_size)
    plan.write(words, page)
    chunks = Chunks(ChunkTable(words, len(stored), len(page), True), 1, repetition=True, data=page)
    return take_pages.fixed_chunks(chunks, 2, values.FLAT, 16, lists=Lists(np.array([0, len(lengths)]), (0, 0)))


@pytest.mark.parametrize("first", [0, 1])
def test_lists_of_pages_with_and_without_definition_levels(first: int) -> None:
    pages = [plain_list_page([2, 1]), list_page([(1, 0), (0, 1), (1, 2), (1, 3)], [7, 8])]
    lists: list[list[Any]] = [[[0, 1], [2]], [[7, None], None, []]]
    taker = RowTaker(
        [(2, False, False, (), 4)],
        np.array([0, 5]),
        lambda _: FragmentTaker([ColumnTaker([0, (2, 3)[first], 5], 2, lambda n: pages[n ^ first])], 5, 0),
    )
    expected = pa.array(lists[first] + lists[1 - first], pa.list_(pa.uint16()))
    rng = np.random.default_rng(1)
    for wanted in ([0, 1, 2, 3, 4], [4, 0, 2], [2], rng.integers(0, 5, 3000).tolist()):
        taken = taker.numbers(np.array(wanted))
        taken.decode_all()
        assert taken.missing == []
        assert import_column(taken, 0, expected.type).equals(expected.take(pa.array(wanted)))


def test_pages_of_lists_in_a_column_of_values() -> None:
    page = plain_list_page([2, 1])
    column = ColumnTaker([0, 2], 2, lambda _: page)
    taker = RowTaker([(2, False, False, (), 0)], np.array([0, 2]), lambda _: FragmentTaker([column], 2, 0))
    with pytest.raises(CodecError, match="lists"):
        taker.numbers(np.array([1]))


def numbers_taker(rows: int, columns: int = 1) -> RowTaker:
    page = take_pages.zipped(np.arange(rows).tobytes(), rows, 8)
    opened = [ColumnTaker([0, rows], 8, lambda _: page) for _ in range(columns)]
    return RowTaker([(8, False, False, (), 0)] * columns, np.array([0, rows]), lambda _: FragmentTaker(opened, rows, 0))


def test_columns_are_given_away_once() -> None:
    taken = numbers_taker(4, 2).numbers(np.array([2, 1]))
    taken.decode_all()
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    batch = pa.RecordBatch._import_from_c(taken.batch(), schema)
    batch.validate(full=True)
    assert batch.to_pydict() == {"a": [2, 1], "b": [2, 1]}
    for again in (taken.batch, lambda: taken.column(0)):
        with pytest.raises(CodecError):
            again()
    nothing = RowTaker([], np.array([0, 4]), lambda _: FragmentTaker([], 4, 0)).numbers(np.array([1]))
    nothing.batch()
    with pytest.raises(CodecError):
        nothing.batch()


def decode_first(taken: TakenRows, wrong: list[BaseException]) -> None:
    try:
        taken.decode(0)
    except BaseException as error:
        wrong.append(error)


def test_one_column_decoded_by_many_threads() -> None:
    """One of several threads decodes a column; the others get a `CodecError` or find it done."""
    taker, rows = numbers_taker(100_000), np.random.default_rng(1).integers(0, 100_000, 100_000)
    for _ in range(10):
        taken = taker.numbers(rows)
        wrong: list[BaseException] = []

        threads = [threading.Thread(target=decode_first, args=(taken, wrong)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(isinstance(error, CodecError) and "thread" in str(error) for error in wrong)
        assert np.array_equal(import_column(taken, 0, pa.int64()), rows)


def test_takes_in_cycles_are_collected() -> None:
    """Takes in reference cycles are collected: the collector clears Python attributes before the memory is freed."""

    class Cycle:
        held: Any

    def broken(_: int) -> Any:
        raise KeyError("open")

    for opens in (True, False):
        for decoded in (0, 1, 2):
            cycle = Cycle()
            page = take_pages.zipped(np.arange(400).tobytes(), 400, 8)

            def open_page(_: int, cycle: Cycle = cycle, page: PageTaker = page, opens: bool = opens) -> PageTaker:
                return page if opens and cycle else broken(0)

            columns = [ColumnTaker([0, 400], 8, open_page) for _ in range(2)]
            shapes = [(8, False, False, (), 0)] * 2
            taker = RowTaker(
                shapes,
                np.array([0, 400]),
                lambda _, columns=columns, cycle=cycle: FragmentTaker(columns if cycle else [], 400, 0),
            )
            cycle.held = [taker, columns, page]
            if not opens:
                with pytest.raises(KeyError):
                    taker.numbers(np.arange(400))
                continue
            taken = taker.numbers(np.arange(400)[::-1].copy())
            for column in range(decoded):
                taken.decode(column)
            cycle.held.append(taken)
            if decoded == 2:
                taken.batch()
            del taken
        del cycle, page, open_page, columns, taker
        gc.collect()
