from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_dataset._proto import rowids_pb2
from lance_dataset.errors import CorruptFileError, LanceError
from lance_dataset.table.row_ids import RowIds, RowVersions


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
        _sequence(sorted_array=_array(16, 0, b"\0\0\0")),
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
