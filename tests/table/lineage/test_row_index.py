"""Tests of the index of stable row ids, compared with a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError
from lance_dataset.table.fragment import Fragment
from lance_dataset.table.fragment_list import FragmentList
from lance_dataset.table.lineage.id_pieces import IdPieces, IdRuns, Whole
from lance_dataset.table.lineage.plain_ids import PlainIds
from lance_dataset.table.lineage.rank import RankedBits
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_index import RowIdIndex
from lance_dataset.table.lineage.segments import Bitmap, Holes, Range, Segment, Values
from lance_dataset.table.lineage.stored_ids import StoredIds

Model = dict[int, int]


@dataclass(frozen=True)
class _Fragment:
    id: int
    row_ids: RowIds
    deletions: NDArray[np.int64]


def _fragment(fragment_id: int, ids: RowIds, deleted: object = ()) -> _Fragment:
    dead = np.array(sorted(deleted), np.int64)  # type: ignore[call-overload]
    return _Fragment(fragment_id, RowIds.decode(ids.encode(), len(ids), "x"), dead)


def _pieces(fragments: list[_Fragment]) -> IdPieces:
    """Return the row ids, decoded one by one; they must be the same if they are decoded together."""
    expected = IdPieces.of({fragment.id: fragment.row_ids for fragment in fragments})
    listed = [Fragment(each.id, (), None, len(each.row_ids), each.row_ids.encode()) for each in fragments]
    found = StoredIds.of(FragmentList.of(listed)).pieces()
    assert found is not None
    assert _unpacked(found.runs) == _unpacked(expected.runs)
    assert list(map(_summary, found.wholes)) == list(map(_summary, expected.wholes))
    return found


def _summary(part: Whole) -> tuple[object, ...]:
    ids = part.segment
    return part.address, len(ids), ids.bounds, ids.take(np.linspace(0, len(ids) - 1, 100).astype(np.int64)).tolist()


def _unpacked(runs: IdRuns) -> list[tuple[int, int]]:
    listed = zip(runs.first.tolist(), runs.addresses.tolist(), runs.lengths.tolist(), strict=True)
    return [(first + step, address + step) for first, address, length in listed for step in range(length)]


def _build(fragments: list[_Fragment], plain: PlainIds | None = None) -> RowIdIndex:
    dead = {fragment.id: fragment.deletions for fragment in fragments}
    return RowIdIndex.build(_pieces(fragments), dead.__getitem__, plain)


def _extended(index: RowIdIndex, fragments: list[_Fragment]) -> RowIdIndex | None:
    return index.extended(_pieces(fragments))


def _model(fragments: list[_Fragment]) -> Model:
    """Return the address of each live id."""
    found = {}
    for fragment in fragments:
        dead = set(fragment.deletions.tolist())
        for offset, row_id in enumerate(fragment.row_ids.to_numpy().tolist()):
            if offset not in dead:
                found[row_id] = (fragment.id << 32) + offset
    return found


def _live(model: Model) -> Callable[[NDArray[np.uint64]], NDArray[np.bool_]]:
    alive = np.array(sorted(model.values()), np.uint64)
    return lambda addresses: np.isin(addresses, alive)


def _check(index: RowIdIndex, fragments: list[_Fragment], extra: object = ()) -> None:
    model = _model(fragments)
    listed = {row_id for fragment in fragments for row_id in fragment.row_ids.to_numpy().tolist()}
    near = {row_id + step for row_id in listed for step in (-1, 0, 1)} | {0, 2**64 - 1} | set(extra)  # type: ignore[call-overload]
    ids = [row_id for row_id in near if 0 <= row_id < 2**64]
    ids += ids[: len(ids) // 2]
    np.random.default_rng(len(ids)).shuffle(ids)
    addresses, found = index.find(np.array(ids, np.uint64), _live(model))
    got = {row_id: int(at) for row_id, at, hit in zip(ids, addresses, found, strict=True) if hit}
    assert got == {row_id: model[row_id] for row_id in ids if row_id in model}


class _Table:
    """A table in memory with the changes of a real one."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        self.rows: dict[int, list[int]] = {}
        self.dead: dict[int, set[int]] = {}
        self.next_id, self.next_fragment = draw(st.sampled_from([0, 2**63 - 20])), draw(st.sampled_from([0, 2**31 - 2]))

    def live(self) -> list[tuple[int, int]]:
        return [
            (fragment, offset)
            for fragment, ids in self.rows.items()
            for offset in range(len(ids))
            if offset not in self.dead[fragment]
        ]

    def add(self, ids: list[int]) -> None:
        if ids:
            self.rows[self.next_fragment], self.dead[self.next_fragment] = ids, set()
            self.next_fragment += 1

    def append(self) -> None:
        count = int(self.rng.integers(1, 400))
        self.add(list(range(self.next_id, self.next_id + count)))
        self.next_id += count

    def chosen(self) -> list[tuple[int, int]]:
        live = self.live()
        if self.rng.random() < 0.5 and live:
            start = int(self.rng.integers(0, len(live)))
            return live[start : start + int(self.rng.integers(0, 200))]
        share = self.rng.choice([0.01, 0.2, 0.7])
        return [place for place in live if self.rng.random() < share]

    def delete(self) -> list[int]:
        gone = []
        for fragment, offset in self.chosen():
            self.dead[fragment].add(offset)
            gone.append(self.rows[fragment][offset])
        return gone

    def update(self) -> None:
        moved = self.delete()
        if self.rng.random() < 0.5:
            self.rng.shuffle(moved)
        self.add(moved)

    def compact(self) -> None:
        picked = [fragment for fragment in self.rows if self.rng.random() < 0.6]
        ids = [self.rows[fragment][offset] for fragment, offset in self.live() if fragment in picked]
        for fragment in picked:
            del self.rows[fragment], self.dead[fragment]
        self.add(ids)

    def fragments(self) -> list[_Fragment]:
        return [_fragment(number, RowIds.from_values(ids), self.dead[number]) for number, ids in self.rows.items()]


@settings(deadline=None)
@given(st.data())
def test_histories(data: st.DataObject) -> None:
    table = _Table(data.draw)
    table.append()
    index: RowIdIndex | None = None
    for step in data.draw(st.lists(st.sampled_from(["append", "append", "delete", "update", "compact"]), max_size=12)):
        known = set(table.rows)
        getattr(table, step)()
        fragments = table.fragments()
        if index is not None and step == "delete":
            _check(index, fragments)  # deletions leave an index unchanged
        if index is not None and step == "append":
            extended = _extended(index, [each for each in fragments if each.id not in known])
            assert extended is not None
            _check(extended, fragments)
        index = _build(fragments)
        _check(index, fragments)


def test_many_overlapping_fragments() -> None:
    """More fragments than there are layers may have the same range of ids."""
    ids = np.random.default_rng(0).permutation(30_000)
    fragments = [_fragment(number, RowIds.from_values(ids[number::20])) for number in range(20)]
    index = _build(fragments)
    assert len(index.layers) > 4  # of segments, and of the live rows of the others
    _check(index, fragments)


def test_rows_moved_again_and_again() -> None:
    """The index is right if every fragment lists the same ids, and only those of the last one are live."""
    everything = range(100)
    fragments = [_fragment(number, RowIds.from_values(everything), everything) for number in range(9)]
    fragments.append(_fragment(9, RowIds.from_values(list(everything)[::-1])))
    _check(_build(fragments), fragments)


def test_many_small_updates() -> None:
    """Rows that were updated a few times, a few rows each time."""
    rng = np.random.default_rng(4)
    rows, dead = {0: list(range(3000))}, {0: set[int]()}
    for number in range(1, 300):
        moved = rng.choice(3000, 10, replace=False).tolist()
        for fragment, ids in rows.items():
            dead[fragment] |= {offset for offset, row_id in enumerate(ids) if row_id in moved}
        rows[number], dead[number] = moved, set()
    fragments = [_fragment(number, RowIds.from_values(ids), dead[number]) for number, ids in rows.items()]
    index = _build(fragments)
    assert index.trimmed
    assert len(index.trimmed) < 50  # the deletions of most fragments do not matter
    _check(index, fragments)


def test_memory() -> None:
    ranges = [_fragment(number, RowIds.from_range(number * 10**6, 10**6)) for number in range(100)]
    assert _build(ranges).nbytes <= 2000
    kept = RowIds.from_range(0, 10**6).without(np.flatnonzero(np.random.default_rng(0).random(10**6) < 0.1))
    assert _build([_fragment(0, kept)]).nbytes < 200_000


def test_nothing() -> None:
    index = _build([])
    _check(index, [], [1, 5])
    more = [_fragment(3, RowIds.from_range(5, 10))]
    extended = _extended(index, more)
    assert extended is not None
    _check(extended, more)
    assert _extended(extended, []) is extended
    assert _extended(extended, [_fragment(4, RowIds.from_range(3, 1))]) is None
    assert _extended(extended, [_fragment(4, RowIds.from_range(14, 1))]) is None
    # a row that moved once more since is listed by two of the new fragments
    twice = [_fragment(4, RowIds.from_values([95, 90]), {1}), _fragment(5, RowIds.from_values([92, 90]))]
    assert _extended(extended, twice) is None


def test_extension_keeps_bitmaps_apart() -> None:
    bitmaps = [RowIds.from_values(start + np.flatnonzero(np.arange(300) % 7)) for start in (0, 1000, 2000)]
    fragments = [_fragment(number, ids) for number, ids in enumerate(bitmaps)]
    fragments.append(_fragment(7, RowIds.from_range(5000, 3)))
    index = _build(fragments[:1])
    for number, fragment in enumerate(fragments[1:], start=2):
        extended = _extended(index, [fragment])
        assert extended is not None
        index = extended
        _check(index, fragments[:number])


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 3, 50, 2**63 - 5, 2**64 - 40]), st.integers(0, 9), st.integers(1, 20)),
        max_size=12,
    ),
    st.data(),
)
def test_plain_fragments(ranges: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Fragments of one range are recognized without reading each, and chosen so that no two overlap."""
    fragments, held = [], {}
    for number, (base, shift, count) in enumerate(ranges):
        ids = RowIds.from_range(base + shift, count)
        kind = data.draw(st.sampled_from(["plain", "plain", "plain", "two", "long", "none"]))
        if kind == "two":
            ids = RowIds((*ids.segments, *RowIds.from_values([1]).segments))
        encoded = None if kind == "none" else ids.encode()
        rows = count + (kind == "long") + (kind == "two")
        fragments.append(Fragment(2 * number, (), physical_rows=rows, row_ids=encoded))
        if kind == "plain":
            held[2 * number] = range(base + shift, base + shift + count)
    found = StoredIds.of(FragmentList.of(fragments[::-1])).plain()
    spans = zip(found.fragment_ids.tolist(), found.first.tolist(), found.last.tolist(), strict=True)
    assert {number: range(first, last + 1) for number, first, last in spans} == held
    assert found.holds(found.where(np.arange(len(found)) % 2 == 0))
    chosen = found.where(found.apart)
    listed = [row_id for number in chosen.fragment_ids.tolist() for row_id in held[number]]
    assert len(listed) == len(set(listed))
    parts = {number: _fragment(number, RowIds.from_range(ids.start, len(ids))) for number, ids in held.items()}
    alone = [parts[number] for number in chosen.fragment_ids.tolist()]
    _check(_build([], chosen), alone)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["range", "holes", "bitmap", "values", "array"]),
            st.sampled_from([0, 7, 1000, 2**64 - 3000]),
            st.sampled_from([0, 1, 5, 64, 65, 200, 1023, 1024, 1500]),
        ),
        max_size=8,
    ),
    st.integers(0, 2**32),
)
def test_segments_decoded_together(kinds: list[tuple[str, int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    segments: list[Segment] = []
    for kind, start, count in kinds:
        numbers = start + np.flatnonzero(rng.random(count) < rng.choice([0.1, 0.5, 0.99])).astype(np.uint64)
        if kind == "range":
            segments.append(Range(start, start + count))
        elif kind == "holes":
            segments.append(Holes(start, start + count, numbers))
        elif kind == "bitmap":
            bits = np.zeros(count, bool)
            bits[(numbers - np.uint64(start)).astype(np.int64)] = True
            segments.append(Bitmap(start, start + count, np.packbits(bits, bitorder="little")))
        else:
            segments.append(Values(0, numbers if kind == "values" else rng.permutation(numbers)))
    message = rowids_pb2.RowIdSequence(segments=[_as_stored(segment) for segment in segments])
    rows = sum(len(segment) for segment in segments)
    listed = [Fragment(5, (), None, rows, message.SerializeToString())]
    found = StoredIds.of(FragmentList.of(listed)).pieces()
    expected = IdPieces.of({5: RowIds(tuple(segments))}) if rows else IdPieces.of({})
    assert found is not None
    assert _unpacked(found.runs) == _unpacked(expected.runs)
    assert [part.address for part in found.wholes] == [part.address for part in expected.wholes]
    if rows:
        longer = [Fragment(5, (), None, rows + 1, message.SerializeToString())]
        assert StoredIds.of(FragmentList.of(longer)).pieces() is None


def _as_stored(segment: Segment) -> rowids_pb2.U64Segment:
    """Return the message of a segment in its own kind, which may not be the smallest."""
    if isinstance(segment, Bitmap):
        place = {"start": segment.start, "end": segment.stop, "bitmap": segment.bits.tobytes()}
        return rowids_pb2.U64Segment(range_with_bitmap=place)
    if isinstance(segment, Holes):
        holes = {"u64_array": {"values": segment.holes.astype("<u8").tobytes()}}
        return rowids_pb2.U64Segment(range_with_holes={"start": segment.start, "end": segment.stop, "holes": holes})
    if isinstance(segment, Range):
        return segment.to_proto()
    return rowids_pb2.U64Segment(array={"u64_array": {"values": segment.to_numpy().astype("<u8").tobytes()}})


def test_an_id_twice() -> None:
    with pytest.raises(CorruptFileError, match=r"fragment 3.* 7 occurs twice"):
        _build([_fragment(3, RowIds.from_values([7, 3, 7, 1]))])
    twins = [_fragment(number, RowIds.from_values([9, 5, 2, number + 20])) for number in range(8)]
    with pytest.raises(CorruptFileError, match="row id"):
        _build(twins)


@given(st.lists(st.booleans(), min_size=1, max_size=400))
def test_rank(bits: list[bool]) -> None:
    packed = np.packbits(bits, bitorder="little")
    ranked = RankedBits.joined([RankedBits.of(packed), RankedBits.of(packed)])
    half = len(ranked) // 2
    places = np.concatenate([np.arange(len(bits)), half + np.arange(len(bits))])
    assert ranked.test(places).tolist() == bits + bits
    before = np.cumsum([0, *bits, *[False] * (half - len(bits)), *bits])
    assert ranked.rank(places).tolist() == before[places].tolist()
