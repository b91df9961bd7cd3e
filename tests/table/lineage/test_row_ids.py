"""Tests of sequences of stable row ids and row versions."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.table.lineage.id_pieces import IdPieces
from lance_dataset.table.lineage.row_ids import RowIds
from lance_dataset.table.lineage.row_index import RowIdIndex
from lance_dataset.table.lineage.row_versions import RowVersions


def _sequence(**segment: object) -> bytes:
    return rowids_pb2.RowIdSequence(segments=[rowids_pb2.U64Segment(**segment)]).SerializeToString()  # type: ignore[arg-type]


def _array(width: int, base: int, content: bytes) -> rowids_pb2.EncodedU64Array:
    if width == 64:
        return rowids_pb2.EncodedU64Array(u64_array={"values": content})
    return rowids_pb2.EncodedU64Array(**{f"u{width}_array": {"base": base, "offsets": content}})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0a040a02100a", list(range(10))),
        ("0a060a04080a1014", list(range(10, 20))),
        ("0a091a07080110061a0111", [1, 5]),
        ("0a0b1a090802101a1a03010480", [2, 12, 25]),
        (
            _sequence(range_with_bitmap={"start": 20, "end": 33, "bitmap": bytes.fromhex("fb13")}).hex(),
            [20, 21, 23, 24, 25, 26, 27, 28, 29, 32],
        ),
        (
            _sequence(
                range_with_holes={"start": 0, "end": 12, "holes": _array(16, 3, bytes.fromhex("00000500"))}
            ).hex(),
            [0, 1, 2, 4, 5, 6, 7, 9, 10, 11],
        ),
        (_sequence(sorted_array=_array(32, 5, bytes.fromhex("0000000001000100"))).hex(), [5, 65542]),
        (_sequence(array=_array(64, 0, b"\xff" * 8 + bytes(8))).hex(), [2**64 - 1, 0]),
        ("", []),
    ],
)
def test_golden(text: str, values: list[int]) -> None:
    assert RowIds.decode(bytes.fromhex(text), len(values), "x").to_numpy().tolist() == values


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.lists(st.integers(0, 2**64 - 1), max_size=50),
        st.lists(st.integers(0, 2**64 - 1), max_size=50, unique=True).map(sorted),
        st.lists(st.integers(2**63, 2**63 + 300), max_size=200, unique=True).map(sorted),
        st.tuples(st.integers(0, 2**40), st.sets(st.integers(0, 999), max_size=5)).map(
            lambda item: [item[0] + i for i in range(1000) if i not in item[1]]
        ),
    )
)
def test_round_trip(values: list[int]) -> None:
    encoded = RowIds.from_values(values).encode()
    assert RowIds.decode(encoded, len(values), "x").to_numpy().tolist() == values
    assert len(encoded) <= 60 + 8 * len(values)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([4, 5, 6], "range"),
        ([], "range"),
        ([5, 4], "array"),
        ([i for i in range(1000) if i != 500], "range_with_holes"),
        (list(range(0, 1000, 2)), "range_with_bitmap"),
        ([0, 1000, 5000], "sorted_array"),
    ],
)
def test_smallest_kind_is_chosen(values: list[int], kind: str) -> None:
    message = rowids_pb2.RowIdSequence.FromString(RowIds.from_values(values).encode())
    assert [segment.WhichOneof("segment") for segment in message.segments] == [kind]


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("0a00"),
        bytes.fromhex("ffff"),
        _sequence(range={"start": 5, "end": 4}),
        _sequence(range={"start": 0, "end": 2**64 - 1}),
        _sequence(range={"start": 0, "end": 9}),
        _sequence(range={"start": 0, "end": 11}),
        _sequence(range_with_bitmap={"start": 0, "end": 2**63, "bitmap": b"\1"}),
        _sequence(range_with_bitmap={"start": 0, "end": 10, "bitmap": b"\xff\xff"}),
        _sequence(range_with_holes={"start": 0, "end": 2**62}),
        _sequence(range_with_holes={"start": 0, "end": 11, "holes": _array(16, 11, b"\0\0")}),
        _sequence(range_with_holes={"start": 5, "end": 16, "holes": _array(16, 0, b"\0\0")}),
        _sequence(range_with_holes={"start": 0, "end": 12, "holes": _array(16, 0, b"\3\0\2\0")}),
        _sequence(range_with_holes={"start": 0, "end": 12, "holes": _array(16, 0, b"\3\0\3\0")}),
        _sequence(range_with_holes={"start": 0, "end": 2**64 - 1, "holes": _array(16, 0, b"\3\0")}),
        _sequence(range_with_bitmap={"start": 0, "end": 10, "bitmap": b"\xff\x07"}),
        _sequence(range_with_bitmap={"start": 0, "end": 17, "bitmap": b"\xff\xff"}),
        _sequence(range_with_bitmap={"start": 9, "end": 2, "bitmap": b""}),
        _sequence(sorted_array=_array(16, 0, b"\0\0\0")),
        _sequence(sorted_array=_array(16, 0, bytes(range(10, 0, -1)) * 2)),
        _sequence(array=_array(64, 0, bytes(8 * 11))),
        _sequence(array=_array(32, 2**64 - 1, b"\1\0\0\0" * 10)),
    ],
)
def test_broken_sequences(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        RowIds.decode(data, 10, "x")


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    for decode in (RowIds.decode, RowVersions.decode):
        with suppress(LanceError):
            assert len(decode(data, 10, "x").to_numpy()) == 10


def test_versions() -> None:
    golden = bytes.fromhex("0a090a050a0310f4031001")
    assert RowVersions.decode(golden, 500, "x").runs == ((500, 1),)
    assert RowVersions.constant(500, 1).encode() == golden
    assert RowVersions.decode(None, 3, "x").to_numpy().tolist() == [1, 1, 1]
    values = np.array([4, 4, 2, 2, 2, 9])
    assert RowVersions.decode(RowVersions.from_values(values).encode(), 6, "x").to_numpy().tolist() == values.tolist()
    with pytest.raises(CorruptFileError):
        RowVersions.decode(golden, 499, "x")
    with pytest.raises(CorruptFileError):
        RowVersions.decode(golden, 501, "x")


@st.composite
def sequences(draw: st.DrawFn) -> tuple[RowIds, list[int]]:
    """Draw sequences of segments of all kinds, some decoded from messages, and their values."""
    parts, values = [], []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.sampled_from([0, 7, 2**40, 2**64 - 400]))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            found = list(range(start, start + draw(st.integers(0, 30))))
        elif kind == 1:
            holes = draw(st.sets(st.integers(0, 299), max_size=4))
            found = [start + number for number in range(300) if number not in holes]
        elif kind == 2:
            found = sorted(start + number for number in draw(st.sets(st.integers(0, 60), max_size=40)))
        elif kind == 3:
            found = sorted(draw(st.sets(st.integers(0, 2**64 - 1), max_size=8)))
        else:
            found = draw(st.lists(st.integers(0, 2**64 - 1), max_size=8, unique=True))
        part = RowIds.from_values(found)
        if draw(st.booleans()):
            part = RowIds.decode(part.encode(), len(found), "x")
        parts.append(part)
        values += found
    return RowIds.concatenated(parts), values


@settings(max_examples=200, deadline=None)
@given(sequences(), st.data())
def test_cutting_and_joining(found: tuple[RowIds, list[int]], data: st.DataObject) -> None:
    ids, values = found
    assert len(ids) == len(values)
    assert ids.to_numpy().tolist() == values
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    assert ids.take(np.array(rows, np.int64)).tolist() == [values[row] for row in rows]
    start, stop = (data.draw(st.integers(0, len(values))) for _ in range(2))
    assert ids.slice(start, stop).to_numpy().tolist() == values[start:stop]
    dropped = sorted(set(rows))
    left = ids.without(np.array(dropped, np.int64))
    kept = [value for row, value in enumerate(values) if row not in dropped]
    assert left.to_numpy().tolist() == kept
    both = RowIds.concatenated([left, ids.slice(start, stop), RowIds.from_range(5, 3)])
    expected = [*kept, *values[start:stop], 5, 6, 7]
    assert both.to_numpy().tolist() == expected
    assert RowIds.decode(both.encode(), len(both), "x").to_numpy().tolist() == expected


@settings(max_examples=200, deadline=None)
@given(sequences(), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_sequences(found: tuple[RowIds, list[int]], damage: list[tuple[int, int]]) -> None:
    """A damaged sequence that can be decoded can also be sliced, joined, encoded and indexed."""
    ids, values = found
    data = bytearray(ids.encode())
    for place, byte in damage:
        if data:
            data[place % len(data)] = byte
    try:
        decoded = RowIds.decode(bytes(data), len(values), "x")
    except CorruptFileError:
        return
    everything = decoded.to_numpy()
    rows = np.arange(len(values))
    assert decoded.take(rows).tolist() == everything.tolist()
    assert decoded.slice(0, len(values) // 2).to_numpy().tolist() == everything[: len(values) // 2].tolist()
    assert decoded.without(rows[::2]).to_numpy().tolist() == everything[1::2].tolist()
    assert RowIds.decode(decoded.encode(), len(values), "x").to_numpy().tolist() == everything.tolist()
    with suppress(CorruptFileError):  # of an id that occurs twice
        index = RowIdIndex.build(IdPieces.of({3: decoded}), lambda _: rows[:0])
        addresses, hits = index.find(everything, lambda at: np.ones(len(at), bool))
        assert hits.all()
        assert everything[(addresses & np.uint64(2**32 - 1)).astype(int)].tolist() == everything.tolist()


def test_ranges_are_never_unpacked() -> None:
    """A range of a billion ids takes no more memory than one of a few."""
    ids = RowIds.concatenated([RowIds.from_range(0, 10**9), RowIds.from_range(10**9, 10**9)])
    assert len(ids.segments) == 1
    cut = RowIds.decode(ids.encode(), 2 * 10**9, "x").without(np.array([5, 10**9])).slice(3, 10**9 + 3)
    assert len(cut) == 10**9
    assert cut.take(np.array([0, 2, 10**9 - 1])).tolist() == [3, 6, 10**9 + 4]
    assert len(cut.encode()) < 60


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 3), max_size=40), st.data())
def test_cutting_versions(values: list[int], data: st.DataObject) -> None:
    versions = RowVersions.decode(RowVersions.from_values(values).encode(), len(values), "x")
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    assert len(versions) == len(values)
    assert versions.take(np.array(rows, np.int64)).tolist() == [values[row] for row in rows]
    start, stop = (data.draw(st.integers(0, len(values))) for _ in range(2))
    assert versions.slice(start, stop).to_numpy().tolist() == values[start:stop]
    dropped = sorted(set(rows))
    kept = [value for row, value in enumerate(values) if row not in dropped]
    left = versions.without(np.array(dropped, np.int64))
    assert left.to_numpy().tolist() == kept
    joined = RowVersions.concatenated([left, versions])
    assert joined.to_numpy().tolist() == kept + values
    assert all(one != other for (_, one), (_, other) in pairwise(joined.runs))
