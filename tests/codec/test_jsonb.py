"""Tests of values at paths of JSON documents, compared with the walker in Python and documents of the reference."""

from __future__ import annotations

import json
import random
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import LanceError
from lance_dataset.expr.functions.json_path import find, parse_path
from lance_dataset.expr.functions.json_values import elements, is_container, members, scalar
from lance_dataset.file.jsonb import encode_document
from lancecodec import CodecError, jsonb

INTEGERS = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, -32768, 65535, 65536, 2**31, -(2**31) - 1, 2**32]
INTEGERS += [2**63 - 1, -(2**63), 2**63, 2**64 - 1]
KEYS = ["x", "y", "", "é", "a b", "0"]
leaves = (
    st.none() | st.booleans() | st.sampled_from(INTEGERS) | st.floats() | st.sampled_from(["", "x", "é日本", "z" * 300])
)
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
)
steps = st.lists(st.sampled_from(KEYS) | st.integers(0, 4), max_size=3)


def find_all(data: Any, offsets: Any, path: list[str | int], wide: bool = True) -> tuple[Any, Any, Any]:
    """Return kinds, words and limits."""
    keys = [step.encode() if isinstance(step, str) else b"" for step in path]
    ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
    described = [
        (end - len(key), end, -1) if isinstance(step, str) else (-1, -1, step)
        for step, key, end in zip(path, keys, ends, strict=True)
    ]
    count = len(offsets) - 1
    kinds, words, ranges = np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(2 * count, np.int64)
    numbers = np.array(described, np.int64).ravel()
    jsonb.find(data, offsets.view(np.uint8), wide, b"".join(keys), numbers, kinds, words, ranges)
    return kinds, words, ranges


def find_one(document: bytes, path: list[str | int]) -> tuple[int, int, bytes]:
    """Return kind, word and bytes of the value of one document."""
    kinds, words, ranges = find_all(document, np.array([0, len(document)]), path)
    return int(kinds[0]), int(words[0]), document[ranges[0] : ranges[1]]


def text_of(path: list[str | int]) -> str:
    return "$" + "".join(f"[{json.dumps(step)}]" for step in path)


def check(document: bytes, path: list[str | int]) -> None:
    """Compare with the walker in Python, unless the kernel leaves the document to it."""
    kind, word, content = find_one(document, path)
    if kind == jsonb.OTHER:
        return
    found = find(document, parse_path(text_of(path)))
    if kind == jsonb.MISSING:
        assert not found
        assert not content
        return
    value = found[0]
    if kind in (jsonb.ARRAY, jsonb.OBJECT):
        assert is_container(value)
        assert content == value
    elif kind == jsonb.NULL_VALUE:
        assert value in (b"", b"\x20\x00\x00\x00\x00\x00\x00\x00")
    elif kind == jsonb.STRING:
        assert value[4] & 0x70 == 0x10
        assert content == value[8:]
    elif kind in (jsonb.TRUE, jsonb.FALSE):
        assert scalar(value) is (kind == jsonb.TRUE)
    elif kind == jsonb.FLOAT:
        known = scalar(value)
        assert isinstance(known, float)
        assert known != known or struct.pack("<d", known) == struct.pack("<q", word)
    else:
        assert scalar(value) == word % (2**64 if kind == jsonb.UNSIGNED else 2**65) or scalar(value) == word
        assert (kind == jsonb.UNSIGNED) == (word < 0 <= int(scalar(value) or 0))


@given(documents, steps)
def test_values_are_those_of_the_python_walker(value: Any, path: list[str | int]) -> None:
    document = encode_document(json.dumps(value))
    assert find_one(document, path)[0] != jsonb.OTHER
    check(document, path)


def test_numbers() -> None:
    array = encode_document(json.dumps([*INTEGERS, 1.5, -0.0]))
    for place, value in enumerate(INTEGERS):
        kind, word, _ = find_one(array, [place])
        assert (kind, word % 2**64) == (jsonb.UNSIGNED if value >= 2**63 else jsonb.INTEGER, value % 2**64)
    for place, number in ((len(INTEGERS), 1.5), (len(INTEGERS) + 1, -0.0)):
        kind, word, _ = find_one(array, [place])
        assert kind == jsonb.FLOAT
        assert struct.pack("<q", word) == struct.pack("<d", number)


def test_special_floats() -> None:
    array = encode_document("[NaN, Infinity, -Infinity]")
    found = [struct.unpack("<d", struct.pack("<q", find_one(array, [place])[1]))[0] for place in range(3)]
    assert np.isnan(found[0])
    assert found[1:] == [np.inf, -np.inf]


def test_golden_bytes() -> None:
    """`{"a":[5],"bc":"é"}`, byte by byte."""
    inner = bytes.fromhex("80000001 20000002 5005")
    entries = "40000002 10000001 10000002 5000000a 10000002"
    document = bytes.fromhex(entries) + b"abc" + inner + "é".encode()
    assert find_one(document, ["a", 0]) == (jsonb.INTEGER, 5, b"\x50\x05")
    assert find_one(document, ["bc"]) == (jsonb.STRING, 0, "é".encode())
    assert find_one(document, ["a"])[0] == jsonb.ARRAY
    assert find_one(document, ["b"])[0] == find_one(document, ["a", 1])[0] == jsonb.MISSING
    assert find_one(document, [])[0] == jsonb.OBJECT


def test_documents_of_the_reference(tmp_path: Path) -> None:
    texts = ['{"x":1}', '{"x":{"y":[1,"two",3.5]}}', "[1]", '"s"', "5", "null", '{"y":null}', None, '{"x":{"y":[1]}}']
    column = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))
    stored = lance.write_dataset(pa.table({"j": column}), tmp_path / "t")
    found = stored.to_table(columns={"d": "json_get(j, 'x')"})["d"].combine_chunks()
    data = found.buffers()[2]
    offsets = np.frombuffer(found.buffers()[1], np.int64)[found.offset : found.offset + len(texts) + 1]
    kinds, _, ranges = find_all(data, offsets, ["y", 1])
    assert [row for row in range(len(texts)) if kinds[row] == jsonb.STRING] == [1]
    assert memoryview(data)[ranges[2] : ranges[3]] == b"two"
    assert find_all(data, offsets, [])[0][0] == jsonb.INTEGER


def test_of_equal_keys_the_last_counts() -> None:
    document = struct.pack(">IIIII", 0x40000002, 0x10000001, 0x10000001, 0x30000000, 0x40000000) + b"kk"
    assert find_one(document, ["k"])[0] == jsonb.TRUE
    check(document, ["k"])


def test_a_step_may_have_a_key_and_a_place() -> None:
    for text in ('{"1": true}', "[false, true]"):
        document = encode_document(text)
        kinds, words, ranges = np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(2, np.int64)
        offsets = np.array([0, len(document)]).view(np.uint8)
        jsonb.find(document, offsets, True, b"1", np.array([0, 1, 1]), kinds, words, ranges)
        assert kinds[0] == jsonb.TRUE


@pytest.mark.parametrize("wide", [False, True])
def test_many_documents_at_odd_addresses(wide: bool) -> None:
    rng = random.Random(3)
    texts = [json.dumps({"pad": "p" * rng.randint(0, 9), "x": f"value {n}"}) for n in range(500)]
    encoded = [encode_document(text) for text in texts]
    offsets = np.cumsum([3, *(len(each) for each in encoded)]).astype(np.int64 if wide else np.int32)
    data = np.frombuffer(b"abcd" + b"".join(encoded), np.uint8)[1:]
    skewed = np.frombuffer(b"!" + offsets.tobytes(), np.uint8)[1:]
    count = len(texts)
    kinds, words, ranges = np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(2 * count, np.int64)
    jsonb.find(data, skewed, wide, b"x", np.array([0, 1, -1]), kinds, words, ranges)
    assert (kinds == jsonb.STRING).all()
    assert (np.diff(ranges) >= 0).all()
    assert [bytes(data[low:high]).decode() for low, high in ranges.reshape(-1, 2)] == [f"value {n}" for n in range(500)]


def test_text_and_unknown_values_are_left_to_the_caller() -> None:
    date = struct.pack(">III", 0x40000001, 0x10000001, 0x60000005) + b"x" + b"\x20\x00\x00\x00\x01"
    decimal = struct.pack(">III", 0x40000001, 0x10000001, 0x20000003) + b"x" + b"\x70\x01\x02"
    for document in (b'{"x":1}', b"12", b"null", b"\x40", b"\x20\x00\x00\x00", date, decimal):
        assert find_one(document, ["x"])[0] == jsonb.OTHER
    assert find_one(b"", ["x"])[0] == jsonb.MISSING
    assert find_one(b"", [])[0] == jsonb.NULL_VALUE


@given(documents, steps, st.data())
def test_damaged_documents(value: Any, path: list[str | int], data: Any) -> None:
    """Whatever is not left to the caller is what the walker in Python finds, too."""
    document = bytearray(encode_document(json.dumps(value)))
    for _ in range(data.draw(st.integers(1, 3))):
        if document:
            document[data.draw(st.integers(0, len(document) - 1))] = data.draw(st.sampled_from([0, 1, 0x10, 0x50, 255]))
    cut = bytes(document[: data.draw(st.integers(0, len(document)))])
    for each in (bytes(document), cut):
        kind = find_one(each, path)[0]
        try:
            check(each, path)
        except LanceError:
            assert kind == jsonb.OTHER or kind == jsonb.STRING


def test_huge_counts_do_not_leave_the_document() -> None:
    for header in (0x5AFFFFFF, 0x9FFFFFFF, 0x40000001, 0x80000002):
        assert find_one(struct.pack(">II", header, 0x1FFFFFFF), ["x"])[0] in (jsonb.OTHER, jsonb.MISSING)
        assert find_one(struct.pack(">II", header, 0x1FFFFFFF), [0])[0] in (jsonb.OTHER, jsonb.MISSING)


def test_bad_arguments() -> None:
    def call(**changes: Any) -> None:
        arguments: dict[str, Any] = {
            "data": b"\x80\x00\x00\x00",
            "offsets": np.array([0, 4]),
            "wide": True,
            "keys": b"x",
            "steps": np.array([0, 1, -1]),
            "kinds": np.zeros(1, np.uint8),
            "words": np.zeros(1, np.int64),
            "ranges": np.zeros(2, np.int64),
            **changes,
        }
        jsonb.find(*arguments.values())

    call()
    for offsets in ([0, 5], [2, 1], [-1, 4], [5, 5], [0]):
        with pytest.raises(CodecError, match="offsets"):
            call(offsets=np.array(offsets))
    with pytest.raises(CodecError, match="key of step 0"):
        call(steps=np.array([0, 2, -1]))
    with pytest.raises(CodecError, match="key of step 0"):
        call(steps=np.array([1, 0, -1]))
    with pytest.raises(CodecError, match="too small"):
        call(kinds=np.zeros(0, np.uint8))
    with pytest.raises(CodecError, match="too small"):
        call(ranges=np.zeros(1, np.int64))
    call(words=np.zeros(0, np.int64), offsets=np.array([0]))


def children_of(document: bytes, objects: bool, alone: int = 1) -> list[bytes]:
    """Return the elements or members of a document as documents."""
    offsets = np.array([0, len(document)])
    kinds, words, ranges = find_all(document, offsets, [])
    counts = np.zeros(1, np.int64)
    jsonb.count(document, objects, alone, kinds, ranges, counts)
    total = max(int(counts[0]), 0)
    found = np.empty(total, np.uint8), np.empty(total, np.int64), np.empty(2 * total, np.int64)
    jsonb.children(document, objects, kinds, words, ranges, counts, *found)
    out, ends = np.empty(8 * total + len(document), np.uint8), np.empty(total + 1, np.int64)
    jsonb.documents(document, found[0], found[2], out, ends)
    return [out[low:high].tobytes() for low, high in pairwise(ends)]


@given(documents, st.booleans())
def test_children_are_those_of_the_python_walker(value: Any, is_object: bool) -> None:
    document = encode_document(json.dumps(value))
    if is_object:
        expected = [inner for _, inner in members(document) or ()]
        assert children_of(document, True, 0) == expected
    else:
        inner = elements(document)
        assert children_of(document, False) == ([document] if inner is None else inner)


@given(documents, steps, steps)
def test_a_path_can_be_followed_in_two_parts(value: Any, first: list[str | int], second: list[str | int]) -> None:
    document = encode_document(json.dumps(value))
    offsets = np.array([0, len(document)])
    kinds, words, ranges = find_all(document, offsets, first)
    keys = [step.encode() if isinstance(step, str) else b"" for step in second]
    ends = np.cumsum([len(key) for key in keys], dtype=np.int64)
    described = [
        (end - len(key), end, -1) if isinstance(step, str) else (-1, -1, step)
        for step, key, end in zip(second, keys, ends, strict=True)
    ]
    jsonb.follow(document, b"".join(keys), np.array(described, np.int64).ravel(), kinds, words, ranges)
    expected = find_all(document, offsets, [*first, *second])
    assert kinds[0] == expected[0][0]
    if kinds[0] != jsonb.MISSING:
        assert (words[0], ranges.tolist()) == (expected[1][0], expected[2].tolist())


def test_damaged_containers_have_no_children() -> None:
    document = bytearray(encode_document('{"a": [1, 2], "b": "text"}'))
    document[7] = 200
    kinds, _, ranges = find_all(bytes(document), np.array([0, len(document)]), [])
    counts = np.zeros(1, np.int64)
    for objects in (False, True):
        jsonb.count(bytes(document), objects, 1, kinds, ranges, counts)
        assert counts[0] == -1


def test_bad_ranges_and_counts() -> None:
    document, words = encode_document("[1, 2]"), np.zeros(1, np.int64)
    kinds, counts = np.full(1, jsonb.ARRAY, np.uint8), np.zeros(1, np.int64)
    found = np.empty(2, np.uint8), np.empty(2, np.int64), np.empty(4, np.int64)
    for ranges in ([-1, 4], [0, len(document) + 1], [5, 4]):
        limits = np.array(ranges)
        with pytest.raises(CodecError, match="offsets"):
            jsonb.count(document, False, 0, kinds, limits, counts)
        with pytest.raises(CodecError, match="offsets"):
            jsonb.follow(document, b"", np.zeros(0, np.int64), kinds, words, limits)
        with pytest.raises(CodecError, match="offsets"):
            jsonb.children(document, False, kinds, words, limits, np.array([2]), *found)
        with pytest.raises(CodecError, match="offsets"):
            jsonb.documents(document, kinds, limits, np.empty(100, np.uint8), np.empty(2, np.int64))
    whole = np.array([0, len(document)])
    with pytest.raises(CodecError, match="too small for the counts"):
        jsonb.children(document, False, kinds, words, whole, np.array([3]), *found)
    with pytest.raises(CodecError, match="counts"):
        jsonb.children(document, False, np.full(1, jsonb.TRUE, np.uint8), words, whole, np.array([2]), *found)
    with pytest.raises(CodecError, match="do not fit"):
        jsonb.documents(document, kinds, whole, np.empty(8, np.uint8), np.empty(2, np.int64))
    with pytest.raises(CodecError, match="too few"):
        jsonb.count(document, False, 0, kinds, np.zeros(1, np.int64), counts)


@given(st.lists(st.from_regex(r"-?[0-9]{0,20}", fullmatch=True) | st.sampled_from(["x", "1x", "é", "+1", "-"])))
def test_texts_of_digits_and_strings(texts: list[str]) -> None:
    document = encode_document(json.dumps([*texts, 5, None]))
    offsets = np.array([0, len(document)])
    kinds, words, ranges = find_all(document, offsets, [])
    count = len(texts) + 2
    found = np.empty(count, np.uint8), np.empty(count, np.int64), np.empty(2 * count, np.int64)
    jsonb.children(document, False, kinds, words, ranges, np.array([count]), *found)
    out, ends = np.empty(len(document), np.uint8), np.empty(count + 1, np.int64)
    jsonb.strings(document, found[0], found[2], out, ends)
    assert [out[low:high].tobytes().decode() for low, high in pairwise(ends)] == [*texts, "", ""]
    jsonb.digits(document, *found)
    for row, text in enumerate(texts):
        is_number = text.lstrip("-").isdigit() and len(text.lstrip("-")) <= 18 and text.isascii()
        assert found[0][row] == (jsonb.INTEGER if is_number else jsonb.STRING)
        assert not is_number or found[1][row] == int(text)
    for call in (
        lambda limits: jsonb.digits(document, found[0][:1], np.zeros(1, np.int64), limits),
        lambda limits: jsonb.strings(document, found[0][:1], limits, out, np.zeros(2, np.int64)),
    ):
        with pytest.raises(CodecError, match="offsets"):
            call(np.array([0, len(document) + 1]))
        with pytest.raises(CodecError, match="too few"):
            call(np.zeros(1, np.int64))
    with pytest.raises(CodecError, match="do not fit"):
        jsonb.strings(document, np.full(1, jsonb.STRING, np.uint8), np.array([0, 4]), out[:3], np.zeros(2, np.int64))
