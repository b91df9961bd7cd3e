"""Tests of conditions of JSON paths in compiled code, compared with the conditions in Python."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_dataset.errors import LanceError
from lance_dataset.expr.functions.json_path import Where, parse_path
from lance_dataset.expr.functions.json_programs import program_of
from lance_dataset.file.jsonb import encode_document
from lancecodec import CodecError, jsonb

NUMBERS = [0, 1, 2, -1, 300, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]
NUMBERS += [1.5, 2.0, -0.0, 9007199254740992.0, 1e300]
TEXTS = ["", "a", "ab", "b", "é", "日本"]
leaves = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.floats()
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("xyé"), inner, max_size=3)
)
constants = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS)
places = st.lists(st.sampled_from([".x", ".y", ".é", "[0]", "[1]"]), max_size=2).map("".join)


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    place = "@" + draw(places) + draw(st.sampled_from(["", "", "[*]", "[*][*]"]))
    sign = draw(st.sampled_from(["==", "!=", "<>", "<", "<=", ">", ">=", "starts with"]))
    constant = json.dumps(draw(constants if sign != "starts with" else st.sampled_from(TEXTS)), ensure_ascii=False)
    return f"{constant} {sign} {place}" if sign[0] != "s" and draw(st.booleans()) else f"{place} {sign} {constant}"


conditions = st.recursive(
    comparisons() | places.map(lambda place: f"exists(@{place})"),
    lambda inner: st.tuples(st.sampled_from([" && ", " || "]), st.lists(inner, min_size=2, max_size=3)).map(
        lambda drawn: "(" + drawn[0].join(drawn[1]) + ")"
    ),
    max_leaves=5,
)


def condition(text: str) -> Any:
    (step,) = parse_path(f"$?({text})").steps
    assert isinstance(step, Where)
    return step.test


def verdict(document: bytes, text: str) -> int:
    """Run the condition for one document."""
    kinds, words, ranges = np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(2, np.int64)
    offsets, verdicts, nothing = np.array([0, len(document)]), np.zeros(1, np.uint8), np.zeros(0, np.int64)
    jsonb.find(document, offsets.view(np.uint8), True, b"", nothing, kinds, words, ranges)
    program = program_of(condition(text))
    assert program is not None
    jsonb.test(document, program.texts, program.steps, program.tests, kinds, words, ranges, verdicts)
    return int(verdicts[0])


VERDICTS = {False: jsonb.REFUTED, True: jsonb.MET, None: jsonb.UNKNOWN}


@settings(max_examples=100, deadline=None)
@given(documents, conditions)
def test_verdicts_are_those_of_python(value: Any, text: str) -> None:
    document = encode_document(json.dumps(value))
    assert verdict(document, text) == VERDICTS[condition(text)(document, document)]


@settings(max_examples=60, deadline=None)
@given(documents, conditions, st.data())
def test_damaged_documents(value: Any, text: str, data: st.DataObject) -> None:
    """Whatever is not left to the caller has the verdict of Python."""
    document = bytearray(encode_document(json.dumps(value)))
    for _ in range(data.draw(st.integers(1, 3))):
        document[data.draw(st.integers(0, len(document) - 1))] = data.draw(st.sampled_from([0, 1, 0x10, 0x50, 255]))
    found = verdict(bytes(document), text)
    try:
        expected = VERDICTS[condition(text)(bytes(document), bytes(document))]
    except LanceError:
        expected = jsonb.LEFT
    assert found in (expected, jsonb.LEFT)


@pytest.mark.parametrize("text", ["@.x == $.y", "@.* == 1", "@.x == @.y", "1 == 1", "@ == 1e999 || @[last] == 2"])
def test_other_conditions_have_no_program(text: str) -> None:
    assert program_of(condition(text)) is None


def test_integers_beyond_64_bits_have_no_program() -> None:
    assert program_of(condition(f"@ == {2**64}")) is None
    assert program_of(condition(" && ".join(["@ == 1"] * (jsonb.MAX_VERDICTS + 1)))) is None


def test_equal_constants_of_different_kinds() -> None:
    one = encode_document("1")
    assert [verdict(one, f"@ == {text}") for text in ("1", "true", "1.0")] == [jsonb.MET, jsonb.UNKNOWN, jsonb.MET]


def test_bad_programs() -> None:
    document, kinds = encode_document("[1]"), np.full(1, jsonb.ARRAY, np.uint8)
    words, ranges, verdicts = np.zeros(1, np.int64), np.array([0, len(document)]), np.zeros(1, np.uint8)
    good = [jsonb.EQUAL, 0, 1, 1, jsonb.STRING, 0, 0, 1]

    def run(tests: list[int], **changes: Any) -> None:
        given: dict[str, Any] = {"kinds": kinds, "words": words, "ranges": ranges, "verdicts": verdicts, **changes}
        jsonb.test(document, b"x", np.array([-1, -1, 0]), np.array(tests, np.int64), *given.values())

    run(good)
    for place, wrong in [(0, -1), (0, 10), (1, 2), (2, -1), (2, 2), (3, 9), (4, 0), (4, 8), (6, 2), (7, 2), (6, -1)]:
        with pytest.raises(CodecError, match="not a condition"):
            run([*good[:place], wrong, *good[place + 1 :]])
    joined = [jsonb.AND, 0, 2, 0, 0, 0, 0, 0]
    run([*good, *good, *joined])
    for tests in ([], joined, [*good, *joined], [*good, *good], good * 65):
        with pytest.raises(CodecError, match="not a condition"):
            run(tests)
    with pytest.raises(CodecError, match="too small"):
        run(good, verdicts=np.zeros(0, np.uint8))
    with pytest.raises(CodecError, match="too few"):
        run(good, kinds=np.zeros(0, np.uint8))
    with pytest.raises(CodecError, match="offsets"):
        run(good, ranges=np.array([0, len(document) + 1]))
