"""Tests of JSON text to binary form and back, compared with the functions in Python that define both forms."""

from __future__ import annotations

import json
import math
import random
import struct
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import LanceError
from lance_dataset.file.jsonb import decode_document, encode_document
from lancecodec import CodecError, json_text

characters = st.characters(exclude_categories=["Cs"])
numbers = st.integers(-(2**70), 2**70) | st.floats()
leaves = st.none() | st.booleans() | numbers | st.text(characters, max_size=30)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(characters), inner, max_size=5)
)


def converted(kernel: Any, pieces: list[bytes], skip: bytes = b"") -> list[bytes]:
    """Return the result for each text or document; empty for those that are left to the caller."""
    offsets = np.cumsum([0, *(len(each) for each in pieces)]).astype(np.int64)
    data = b"".join(pieces)
    out, ends = np.empty(6 * len(data) + 64 * len(pieces) + 64, np.uint8), np.zeros(len(offsets), np.int64)
    assert kernel(data, offsets.view(np.uint8), True, skip, 0, out, ends) == len(pieces)
    return [out[low:high].tobytes() for low, high in pairwise(ends)]


def encoded(text: str) -> bytes:
    return converted(json_text.encode, [text.encode()])[0]


def decoded(document: bytes) -> str:
    return converted(json_text.decode, [document])[0].decode()


@given(values, st.sampled_from([None, 1]), st.booleans())
def test_valid_documents_are_those_of_the_python_functions(value: Any, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    document = encoded(text)
    assert document == encode_document(text)
    assert decoded(document) == decode_document(document)


@given(st.text(st.sampled_from('[]{},:"\\ue09dD8a1-+. NaInfity\n\x00é')) | st.text(characters, max_size=8))
def test_any_text(text: str) -> None:
    document = encoded(text)
    if document:
        assert document == encode_document(text)


@given(values, st.data())
def test_damaged_documents_are_left_or_equal(value: Any, data: Any) -> None:
    document = bytearray(encode_document(json.dumps(value)))
    for _ in range(data.draw(st.integers(1, 3))):
        document[data.draw(st.integers(0, len(document) - 1))] = data.draw(st.sampled_from([0, 1, 0x10, 0x50, 255]))
    cut = bytes(document[: data.draw(st.integers(0, len(document)))])
    for each in (bytes(document), cut):
        text = decoded(each)
        try:
            expected = decode_document(each)
        except LanceError:
            assert text == ""
        else:
            assert text in ("", expected)


def random_number(rng: random.Random) -> str:
    """Return a number of a kind that rounds in a way of its own."""
    bits = rng.getrandbits(63)
    kind = rng.randrange(6)
    if kind == 0:
        return repr(rng.random())
    if kind == 1:  # any, also subnormal
        bits >>= rng.choice([0, 0, 11, 11 + rng.randrange(52)])
        number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return repr(number) if math.isfinite(number) else "0.5"
    if kind == 2:
        return f"{bits}e{rng.randrange(-345, 312)}"
    if kind == 3:
        return f"-{rng.getrandbits(70)}.{rng.getrandbits(rng.randrange(1, 70)):020}E{rng.randrange(-30, 30):+}"
    if kind == 4:
        return str(rng.getrandbits(rng.randrange(1, 90)) * rng.choice([1, -1]))
    return repr(2.0 ** rng.randrange(-1074, 1023))


def test_numbers_are_rounded_as_in_python() -> None:
    rng = random.Random(8)
    texts = [random_number(rng) for _ in range(20_000)]
    documents = converted(json_text.encode, [text.encode() for text in texts])
    assert sum(not document for document in documents) < 100
    known = [document or encode_document(text) for text, document in zip(texts, documents, strict=True)]
    assert known == [encode_document(text) for text in texts]
    assert [text.decode() for text in converted(json_text.decode, known)] == [decode_document(each) for each in known]


def test_numbers_in_the_middle_of_two() -> None:
    """A number that is exactly, or nearly, in the middle of two others is rounded right, or left to the caller."""
    rng = random.Random(9)
    for _ in range(300):
        bits = rng.getrandbits(52) | rng.randrange(1010, 1060) << 52
        low, high = (struct.unpack("<d", struct.pack("<Q", each))[0] for each in (bits, bits + 1))
        middle = (Fraction(low) + Fraction(high)) / 2
        places = middle.denominator.bit_length() - 1
        digits = middle.numerator * 5**places
        for number in (digits - 1, digits, digits + 1):
            text = f"{number}e-{places}"
            assert encoded(text) in (b"", encode_document(text)), text


@pytest.mark.parametrize(
    "text", ["9007199254740993", "9007199254740993.0", "9007199254740995.0", "18446744073709551616"]
)
def test_middles_with_few_digits_are_not_left(text: str) -> None:
    assert encoded(text) == encode_document(text)


def test_sorting_of_keys() -> None:
    rng = random.Random(2)
    for count in (2, 31, 32, 33, 500):
        names = [f"{'k' * rng.randrange(3)}{number}" for number in range(count)]
        rng.shuffle(names)
        text = json.dumps({name: [name, {}] for name in names})
        assert encoded(text) == encode_document(text)
        assert encoded(text[:-1] + f', "{rng.choice(names)}": 0}}') == b""


def test_what_is_left() -> None:
    texts = [
        "[1",
        "1 2",
        "nul",
        '"',
        '"\\x"',
        '"\\ud83d"',
        '"\\ude00"',
        '{"a":1,"a":2}',
        "[1,]",
        '{"a"}',
        "01",
        "1.",
        "-",
    ]
    texts += ["[" * 401 + "]" * 401, "\ufeff1", '"\\u12', "{}{}", "+1", ".5", "1e", "[" * 5000, '{"":' * 5000]
    assert [encoded(text) for text in texts] == [b""] * len(texts)
    deep = "[" * 400 + "]" * 400
    assert decoded(encoded(deep)) == deep


def test_skipped_and_later_rows() -> None:
    texts = [b"1", b"[2]", b'"three"']
    assert converted(json_text.encode, texts, b"\0\1\0") == [encode_document("1"), b"", encode_document('"three"')]
    offsets, out = np.array([0, 1, 4, 11], np.int32), np.zeros(200, np.uint8)
    ends = np.array([0, 7, 0, 0])
    assert json_text.encode(b"".join(texts), offsets.view(np.uint8), False, b"", 1, out, ends) == 3
    assert ends.tolist() == [0, 7, 17, 30]
    assert out[7:17].tobytes() == encode_document("[2]")


@pytest.mark.parametrize("kernel", [json_text.encode, json_text.decode])
def test_small_outputs(kernel: Any) -> None:
    """A kernel stops in front of a row for which the output is too small, and goes on from there."""
    texts = [json.dumps({"name": "n" * size, "list": list(range(size))}) for size in range(40)]
    known = [encode_document(text) for text in texts]
    given_pieces = [text.encode() for text in texts] if kernel is json_text.encode else known
    expected = known if kernel is json_text.encode else [decode_document(each).encode() for each in known]
    offsets = np.cumsum([0, *(len(each) for each in given_pieces)])
    out, ends, row, stops = np.zeros(0, np.uint8), np.zeros(len(texts) + 1, np.int64), 0, 0
    while row < len(texts):
        row = kernel(b"".join(given_pieces), offsets.view(np.uint8), True, b"", row, out, ends)
        out = np.concatenate([out, np.zeros(100, np.uint8)])
        stops += 1
    assert stops > 10
    assert out[: ends[-1]].tobytes() == b"".join(expected)


@pytest.mark.parametrize("kernel", [json_text.encode, json_text.decode])
def test_bad_arguments(kernel: Any) -> None:
    def call(**changes: Any) -> int:
        arguments: dict[str, Any] = {
            "data": b"1234",
            "offsets": np.array([0, 4]),
            "wide": True,
            "skip": b"",
            "row": 0,
            "out": np.zeros(100, np.uint8),
            "ends": np.zeros(2, np.int64),
            **changes,
        }
        return kernel(*arguments.values())

    assert call() == 1
    for offsets in ([0, 5], [2, 1], [-1, 4], [0]):
        with pytest.raises(CodecError, match="offsets"):
            call(offsets=np.array(offsets))
    for changes in ({"row": 2}, {"row": -1}, {"ends": np.array([101, 0])}, {"ends": np.array([-1, 0])}):
        with pytest.raises(CodecError, match="row"):
            call(**changes)
    with pytest.raises(CodecError, match="marks"):
        call(skip=b"1", data=b"12", offsets=np.array([0, 1, 2]), ends=np.zeros(3, np.int64))
    with pytest.raises(CodecError, match="too few"):
        call(ends=np.zeros(0, np.int64))


def test_documents_of_the_reference(tmp_path: Path) -> None:
    rng = random.Random(12)
    texts = [f'{{"b":[{random_number(rng)}],"a":{json.dumps(chr(rng.randrange(1, 0x800)))}}}' for _ in range(300)]
    column = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))
    path = str(tmp_path / "file.lance")
    schema = pa.schema([pa.field("j", pa.json_())])
    with lance.file.LanceFileWriter(path, schema, version="2.1") as writer:
        writer.write_batch(pa.table([column], schema=schema))
    stored = lance.file.LanceFileReader(path).read_all().to_table()["j"].to_pylist()
    assert converted(json_text.encode, [text.encode() for text in texts]) == stored
