"""Tests of UTF-8 validation against Python's decoder."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancecodec import CodecError, utf8

PLACES = [0, 1, 5, 28, 29, 30, 31, 32, 33, 63, 4090, 4092, 4093, 4094, 4095, 4096, 4097, 8191, 9000]


def is_valid(data: bytes) -> bool:
    whole, copy = np.array([0, len(data)], np.int64), bytearray(len(data))
    try:
        utf8.validate(data, whole, True)
    except CodecError as error:
        with pytest.raises(CodecError, match=f"^{re.escape(str(error))}$"):
            utf8.copy(data, whole, True, copy)
        return False
    utf8.copy(data, whole, True, copy)
    return copy == data


def python_valid(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(st.lists(st.text(max_size=50), max_size=60), st.booleans(), st.integers(0, 9))
def test_text_is_valid(values: list[str], wide: bool, skew: int) -> None:
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int64 if wide else np.int32)
    data = memoryview(b"\xff" * skew + b"".join(encoded))[skew:]
    offsets = memoryview(b"." * skew + ends.tobytes())[skew:]
    utf8.validate(data, offsets, wide)
    copy = bytearray(len(data))
    utf8.copy(data, offsets, wide, copy)
    assert copy == data
    if copy:
        with pytest.raises(CodecError, match="too small"):
            utf8.copy(data, offsets, wide, copy[1:])


@given(st.text(max_size=80), st.data())
def test_a_value_that_begins_inside_a_character(text: str, data: st.DataObject) -> None:
    encoded = text.encode()
    cut = data.draw(st.integers(0, len(encoded)))
    ends = np.array([0, cut, len(encoded)], np.int32)
    if python_valid(encoded[:cut]):
        utf8.validate(encoded, ends, False)
    else:
        with pytest.raises(CodecError, match=f"byte {cut} "):
            utf8.validate(encoded, ends, False)


def test_the_last_value_ends_inside_a_character() -> None:
    with pytest.raises(CodecError):
        utf8.validate("é".encode(), np.array([0, 1], np.int32), False)


@pytest.mark.parametrize("lead", range(0x80, 0x100))
def test_every_two_bytes(lead: int) -> None:
    for second in range(0x100):
        for tail in (b"", b"\x80", b"\x80\x80", b"\x80\xbf", b"\xc2"):
            data = bytes([lead, second]) + tail
            assert is_valid(data) == python_valid(data), data


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize(
    "wrong", [b"\x80", b"\xc0\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x9a", b"\xff"]
)
@pytest.mark.parametrize("filler", ["a", "é", "→", "🚀"])
def test_the_first_wrong_byte_is_named(at: int, wrong: bytes, filler: str) -> None:
    before = (filler * at).encode()[: at // len(filler.encode()) * len(filler.encode())].rjust(at, b"a")
    for after in (b"", b"plain" * 2000):
        data = before + wrong + after
        with pytest.raises(CodecError) as caught:
            utf8.validate(data, np.array([0, len(data)], np.int64), True)
        assert f"byte {at} " in str(caught.value)


@given(st.binary(max_size=200), st.sampled_from(PLACES), st.sampled_from(["a", "é", "→", "🚀"]))
def test_any_bytes(data: bytes, at: int, filler: str) -> None:
    whole = (filler * at).encode() + data
    assert is_valid(whole) == python_valid(whole)


@given(st.text(min_size=1, max_size=300), st.data())
def test_a_changed_byte(text: str, data: st.DataObject) -> None:
    encoded = bytearray(text.encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    assert is_valid(bytes(encoded)) == python_valid(bytes(encoded))


def test_offsets_outside_the_data_are_not_followed() -> None:
    utf8.validate("é".encode(), np.array([-(2**63), 2**63 - 1, 2, -1], np.int64), True)
    utf8.validate(b"", b"", False)
    utf8.validate("é".encode(), b"", True)
