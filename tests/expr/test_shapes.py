"""Filters that differ only in their constants."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import FilterError
from lance_dataset.expr.bind import bind
from lance_dataset.expr.compiled import compile_filter
from lance_dataset.expr.parse import parse

_SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.int8()),
        ("u", pa.uint16()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("l", pa.large_string()),
        ("d", pa.decimal128(9, 2)),
        ("t", pa.timestamp("us")),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("x", pa.struct([("y", pa.int32())])),
    ]
)
_COLUMNS = ["a", "b", "u", "f", "s", "l", "d", "t", "day", "flag", "x.y", "A"]
_NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**70))
_TEXTS = st.sampled_from(["", "it''s", "2020-01-01", "5", "x", "2020-01-01 10:00:00"])
_CONSTANTS = st.one_of(_NUMBERS.map(str), _TEXTS.map("'{}'".format), st.sampled_from(["-5", "1.5", "NULL", "true"]))
_LEAVES = st.one_of(
    st.builds(
        "{} {} {}".format, st.sampled_from(_COLUMNS), st.sampled_from(["=", "<", ">=", "!=", "LIKE"]), _CONSTANTS
    ),
    st.builds("{1} < {0}".format, st.sampled_from(_COLUMNS), _CONSTANTS),
    st.builds("{} IN ({}, {})".format, st.sampled_from(_COLUMNS), _CONSTANTS, _CONSTANTS),
    st.builds("{} BETWEEN {} AND {}".format, st.sampled_from(_COLUMNS), _CONSTANTS, _CONSTANTS),
    st.builds("{} + {} > {}".format, st.sampled_from(_COLUMNS), _CONSTANTS, _CONSTANTS),
    st.builds("{} IS NULL".format, st.sampled_from(_COLUMNS)),
)
_FILTERS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds("({}) AND {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        inner.map("NOT ({})".format),
    ),
    max_leaves=4,
)


def _types(node: object) -> list[object]:
    found = [node.type]
    for child in node.children():
        found += _types(child)
    return found


@given(_FILTERS)
def test_filters_bind_as_if_each_were_the_first(text: str) -> None:
    """Also if another one of the same shape was bound before."""
    try:
        expected = bind(parse(text), _SCHEMA, text)
    except FilterError as error:
        with pytest.raises(FilterError, match=f"^{re.escape(str(error))}$"):
            compile_filter(text, _SCHEMA)
        return
    found = compile_filter(text, _SCHEMA)
    assert found is not None
    assert found.tree == expected
    assert _types(found.tree) == _types(expected)
    again = compile_filter(text, _SCHEMA)
    assert again is not None
    assert again.tree == expected
    assert again.field_paths == found.field_paths


def test_a_constant_of_another_size_is_bound_anew() -> None:
    for text in ("b = 5", "b = 100", "d = 7", "d < 12345678901", "s = 'x'", "s = 'it''s'"):
        found = compile_filter(text, _SCHEMA)
        assert found is not None
        assert found.tree == bind(parse(text), _SCHEMA, text)
    with pytest.raises(FilterError, match="outside the range of int8"):
        compile_filter("b = 300", _SCHEMA)
    batch = pa.RecordBatch.from_pydict({"d": [Decimal("7.00"), None]}, schema=pa.schema([_SCHEMA.field("d")]))
    assert compile_filter("d = 7", _SCHEMA).mask(batch).to_pylist() == [True, False]


def test_errors_name_the_text_and_the_place() -> None:
    assert compile_filter("a = 5", _SCHEMA) is not None
    with pytest.raises(FilterError, match="99999999999999999999"):
        compile_filter("a = 99999999999999999999", _SCHEMA)
    with pytest.raises(FilterError, match=r"position 4"):
        compile_filter("a = > 3", _SCHEMA)


def test_the_same_text_is_compiled_once_for_a_schema() -> None:
    """Filters with functions are compiled each time, as their values may change; so are those of other schemas."""
    first = compile_filter("a = 5 AND s IN ('x', 'y')", _SCHEMA)
    assert compile_filter("a = 5 AND s IN ('x', 'y')", _SCHEMA) is first
    assert compile_filter("a = 6 AND s IN ('x', 'y')", _SCHEMA) is not first
    assert compile_filter("a > 3 OR s IS NOT NULL", _SCHEMA) is compile_filter("a > 3 OR s IS NOT NULL", _SCHEMA)
    other = pa.schema([("a", pa.string()), ("s", pa.string())])
    assert compile_filter("a = '5'", other).mask(pa.record_batch([["5"], ["x"]], schema=other)).to_pylist() == [True]
    for text in ("random() < a", "t < now()", "lower(s) = 'x'"):
        assert compile_filter(text, _SCHEMA) is not compile_filter(text, _SCHEMA)


_LIST_ITEMS = st.one_of(
    st.lists(st.integers(-(2**70), 2**70).map(str), min_size=1, max_size=5),
    st.lists(st.integers(-200, 200).map(str), min_size=1, max_size=5),
    st.lists(st.text('ab, ()-`"', max_size=3).map("'{}'".format), min_size=1, max_size=5),
    st.lists(_CONSTANTS, min_size=1, max_size=4),
)


@given(
    st.sampled_from([*_COLUMNS, "a + 1"]),
    _LIST_ITEMS,
    st.sampled_from([",", " , ", ",  "]),
    st.sampled_from(["", "NOT "]),
)
def test_lists_read_in_one_step_mean_what_they_mean_one_by_one(
    column: str, items: list[str], comma: str, word: str
) -> None:
    """A comment keeps the lexer from reading the list in one step."""
    text, plain = (f"{column} {word}IN ({comma.join(items)}{end})" for end in ("", "/**/"))
    try:
        expected = bind(parse(plain), _SCHEMA, plain)
    except FilterError as error:
        message = str(error).split("\n", maxsplit=1)[0]
        with pytest.raises(FilterError, match=f"^{re.escape(message)}"):
            compile_filter(text, _SCHEMA)
        return
    for _ in range(2):
        found = compile_filter(text, _SCHEMA)
        assert found is not None
        assert found.tree == expected


def test_malformed_lists_are_refused_at_their_place() -> None:
    for text, position in (("a IN (1, 2 3)", 11), ("a IN (1,, 2)", 8), ("a IN (1, 2,)", 11), ("s IN ('x' 'y')", 10)):
        with pytest.raises(FilterError, match=rf"position {position}\b"):
            compile_filter(text, _SCHEMA)
    with pytest.raises(FilterError, match="Tuples are not supported"):
        compile_filter("position(s IN (1, 2)) = 1", _SCHEMA)


def test_null_is_no_member_of_a_list_and_hides_what_is_missing() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, None]}, schema=pa.schema([_SCHEMA.field("a")]))
    for text, expected in (
        ("a IN (1, 3)", [True, False, None]),
        ("a NOT IN (1, 3)", [False, True, None]),
        ("a IN (1, NULL)", [True, None, None]),
        ("a NOT IN (1, NULL)", [False, None, None]),
    ):
        found = compile_filter(text, batch.schema)
        assert found is not None
        assert found.evaluate(batch).to_pylist() == expected


_PIECES = st.sampled_from(
    [
        *(" AND ", " OR ", "NOT ", "(", ")", "a = 5", "a = 71", "x.y = 5", "`a` = 5", "a = 5AND b = 3"),
        *("s = 'x'", "s = 'it''s'", 's = "x 7"', "s = '`'", "s = '--'", "s = ')'", "s = X'61'"),
        *("f = 1.5", "f < 2e3", "f > .5", "-- it's 5\n", "/* 5 ' */", "/*'*/"),
        *("a IN (5)", "a IN (5, 6)", "s IN ('x')", "s IN ('x', 'y')"),
    ]
)


@given(st.lists(st.tuples(_PIECES, _PIECES, _PIECES), min_size=1, max_size=3))
def test_quick_looks_never_mistake_one_filter_for_another(parts: list[tuple[str, str, str]]) -> None:
    for text in ("".join(pieces) for pieces in parts):
        try:
            expected = bind(parse(text), _SCHEMA, text)
            assert pa.types.is_boolean(expected.type)
        except (FilterError, AssertionError):
            with pytest.raises(FilterError):
                compile_filter(text, _SCHEMA)
            continue
        for _ in range(2):
            found = compile_filter(text, _SCHEMA)
            assert found is not None
            assert found.tree == expected


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["a = 5", "a = 71", "a = 5"], [[True, False], [False, True], [True, False]]),
        (["s = '5'", "s = '--'", "s = ''"], [[True, False], [False, True], [False, False]]),
        (["s IN ('5')", "s IN ('5', '--')", "s IN ('--', 'x', 'y')"], [[True, False], [True, True], [False, True]]),
        (["a IN (5)", "a IN (5, 71)", "a IN (-5, 71)"], [[True, False], [True, True], [False, True]]),
        (["s = '5' -- 1", "s = '--' -- 2", "s = '5' -- it's"], [[True, False], [False, True], [True, False]]),
        (["`a` = 5", "`a` = 71"], [[True, False], [False, True]]),
    ],
)
def test_rows_kept_by_filters_of_one_shape(texts: list[str], kept: list[list[bool]]) -> None:
    schema = pa.schema([_SCHEMA.field("a"), _SCHEMA.field("s")])
    batch = pa.RecordBatch.from_pydict({"a": [5, 71], "s": ["5", "--"]}, schema=schema)
    for text, expected in zip(texts, kept, strict=True):
        found = compile_filter(text, schema)
        assert found is not None
        assert found.mask(batch).to_pylist() == expected
