"""Texts that must occur wherever a condition on texts is true, checked against the conditions themselves."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_dataset.expr.compiled import compile_filter
from lance_dataset.expr.functions.regex_syntax import translated
from lance_dataset.index.scalar.conditions import (
    AllTexts,
    AnyText,
    CaselessTextCondition,
    Condition,
    Text,
    TextCondition,
    TextNeed,
    ValueCondition,
)
from lance_dataset.index.scalar.ngram_tokens import tokens_of
from lance_dataset.scan.indexed.conditions import AllOf, AnyOf, ColumnCondition, Node, conditions_of
from lance_dataset.scan.indexed.regex_needs import need_of_regex
from lance_dataset.types.schema import Schema

_COLUMNS = pa.schema([("c", pa.string()), ("d", pa.string())])


def _node(filter: str) -> Node | None:
    compiled = compile_filter(filter, _COLUMNS)
    assert compiled is not None
    assert compiled.tree is not None
    return conditions_of(compiled.tree, Schema.from_arrow(_COLUMNS), lambda _: True)


def _condition(text: str) -> Condition | None:
    """Return the condition of a filter on one column."""
    node = _node(text)
    assert node is None or isinstance(node, ColumnCondition)
    return None if node is None else node.condition


def _texts(*contents: str) -> AllTexts:
    return AllTexts(tuple(map(Text, contents)))


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ("contains(c, 'abc')", TextCondition(Text("abc"), True)),
        ("contains(c, '')", None),
        ("contains_tokens(c, 'abc')", TextCondition(Text("abc"), False)),
        ("contains_tokens(c, 'abc-d abc')", TextCondition(_texts("abc", "d"), False)),
        ("contains_tokens(c, ' -')", None),
        ("contains_tokens(c, d)", None),
        ("contains(c, d)", None),
        ("contains(lower(c), 'abc')", None),
        ("NOT contains(c, 'abc')", None),
        ("c LIKE '%abc%'", TextCondition(Text("abc"), True)),
        ("c LIKE '%%a_c%'", TextCondition(_texts("a", "c"), False)),
        ("c LIKE '%a\\%c%'", TextCondition(Text("a%c"), True)),
        ("c LIKE '%abc'", TextCondition(Text("abc"), False)),
        ("c LIKE 'abc%def'", TextCondition(_texts("abc", "def"), False)),
        ("c LIKE '%'", None),
        ("c LIKE '%_%'", None),
        ("c NOT LIKE '%abc%'", None),
        ("NOT (c NOT LIKE '%abc%')", None),
        ("c ILIKE '%Ab-cé%'", CaselessTextCondition(_texts("Ab", "c"))),
        ("c ILIKE '%é%'", None),
        ("ends_with(c, 'abc')", TextCondition(Text("abc"), False)),
        ("regexp_like(c, 'abc')", TextCondition(Text("abc"), True)),
        ("regexp_like(c, 'a.c')", TextCondition(_texts("a", "c"), False)),
        ("regexp_like(c, 'abc', 'i')", CaselessTextCondition(Text("abc"))),
        ("regexp_like(c, 'a b c # x', 'x')", TextCondition(Text("abc"), True)),
        ("regexp_like(c, d)", None),
        ("regexp_match(c, 'ab+') IS NOT NULL", TextCondition(_texts("ab", "b"), False)),
        ("regexp_match(c, 'ab+') IS NULL", None),
        ("NOT (regexp_match(c, 'ab+') IS NULL)", None),
    ],
)
def test_conditions_of_filters(filter: str, expected: Condition | None) -> None:
    assert _condition(filter) == expected


@pytest.mark.parametrize("filter", ["c LIKE 'abc%'", "starts_with(c, 'abc')"])
def test_prefixes_are_ranges_and_texts(filter: str) -> None:
    """A B-tree answers exactly; an n-gram index finds candidates."""
    node = _node(filter)
    assert isinstance(node, ColumnCondition)
    assert [type(form.condition) for form in node.forms] == [ValueCondition, TextCondition]
    assert node.forms[1].condition == TextCondition(Text("abc"), False)


def test_joined_prefixes_are_joined_texts() -> None:
    def weaker(filter: str) -> TextNeed | None:
        node = _node(filter)
        assert isinstance(node, ColumnCondition)
        return None if node.weaker is None else node.weaker.need

    abc, other = Text("abc"), Text("def")
    assert weaker("c LIKE 'abc%' OR c LIKE 'def%'") == AnyText((abc, other))
    assert weaker("c LIKE 'abc%' AND starts_with(c, 'def')") == AllTexts((abc, other))
    assert weaker("c LIKE 'abc%' AND c > 'x'") == AllTexts((abc,))
    assert weaker("c LIKE 'abc%' OR c > 'x'") is None


def test_conditions_are_combined() -> None:
    node = _node("contains(c, 'a') AND contains(d, 'b')")
    assert isinstance(node, AllOf)
    assert node.is_complete
    node = _node("contains(c, 'a') OR c LIKE '%b%'")
    assert isinstance(node, AnyOf)


_A, _B, _AB = Text("a"), Text("b"), Text("ab")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a|b", AnyText((_A, _B))),
        ("(a|b)c", AllTexts((AnyText((_A, _B)), Text("c")))),
        ("a(b|)", _A),
        ("|a", None),
        ("", None),
        ("a*", None),
        ("ab?", _A),
        ("ab{0,3}", _A),
        ("a{3}b", Text("aaab")),
        ("a{2,}b", AllTexts((Text("aa"), Text("aab")))),
        ("a{40}", AllTexts((Text("a" * 16), Text("a" * 16)))),
        ("a+?b", AllTexts((_A, _AB))),
        ("(ab)+", _AB),
        ("(?:ab)*c", Text("c")),
        ("^ab$", _AB),
        (r"a\bb", _AB),
        (r"a\.b\x41\x{e9}\n", Text("a.bAé\n")),
        (r"a\db", AllTexts((_A, _B))),
        (r"a\pLb\P{Greek}", AllTexts((_A, _B))),
        ("a[]x]b[^]y]", AllTexts((_A, _B))),
        ("a[[:alpha:]]b", AllTexts((_A, _B))),
        (r"a[\]]b", AllTexts((_A, _B))),
        ("a]b}", Text("a]b}")),
        (r"\Qa.b\E", None),
        (r"a\1", None),
        ("a{b", None),
        ("a**", None),
        ("(a", None),
        ("a)", None),
        ("(?=a)b", None),
        ("(" * 100 + "a" + ")" * 100, None),
        ("|".join("abc"[n % 3] for n in range(100)), None),
        ("ſ", Text("ſ")),
    ],
)
def test_needs_of_expressions(pattern: str, expected: TextNeed | None) -> None:
    found = need_of_regex(pattern)
    assert (None if found is None else found.need) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("(?i)ab", _AB), ("x(?i:ab)é", AllTexts((Text("x"), _AB))), ("(?i)é|a", None), ("(?is-m)a.b", AllTexts((_A, _B)))],
)
def test_needs_without_case(pattern: str, expected: TextNeed | None) -> None:
    found = need_of_regex(pattern)
    assert (None if found is None else found.need) == expected
    assert found is None or found.is_caseless


_ATOMS = ["a", "b", "K", "s", "é", "ab", "bK", ".", "[ab]", "[^a]", r"\d", r"\w", "^", "$", r"\b", r"\.", "1", "-", "ß"]
_SIGNS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "+?", "*?"]


def _expression(chosen: random.Random, depth: int) -> str:
    parts = []
    for _ in range(chosen.randint(1, 4)):
        kind = chosen.random()
        if kind < 0.7 or not depth:
            atom = chosen.choice(_ATOMS)
            sign = "" if atom in ("^", "$", r"\b") else chosen.choice(_SIGNS)
            parts.append(atom + sign)
        elif kind < 0.85:
            parts.append(f"({_expression(chosen, depth - 1)}){chosen.choice(_SIGNS)}")
        else:
            parts.append(f"(?:{_expression(chosen, depth - 1)}|{_expression(chosen, depth - 1)})")
    return "".join(parts)


def _holds(need: TextNeed, text: str) -> bool:
    if isinstance(need, Text):
        return need.content in text
    return (any if isinstance(need, AnyText) else all)(_holds(part, text) for part in need.parts)


def _tokens_hold(need: TextNeed, tokens: set[int]) -> bool:
    if isinstance(need, Text):
        return tokens >= set(tokens_of(need.content))
    return (any if isinstance(need, AnyText) else all)(_tokens_hold(part, tokens) for part in need.parts)


def test_matching_texts_satisfy_the_needs() -> None:
    chosen = random.Random(7)
    alphabet = [*"abKksé1-.ß \n", "\N{KELVIN SIGN}", "ſ", "ẞ", "S"]
    texts = ["".join(chosen.choices(alphabet, k=chosen.randint(0, 9))) for _ in range(400)]
    known = matched = 0
    for number in range(600):
        pattern = ("(?i)" if number % 3 == 0 else "") + _expression(chosen, 2)
        found = need_of_regex(translated(pattern).text)
        if found is None:
            continue
        known += 1
        matches = pc.match_substring_regex(pa.array(texts), translated(pattern).text).to_pylist()
        for text, matches_it in zip(texts, matches, strict=True):
            if matches_it:
                matched += 1
                assert found.is_caseless or _holds(found.need, text), (pattern, text)
                assert _tokens_hold(found.need, set(tokens_of(text))), (pattern, text)
            elif found.is_literal:
                assert not _holds(found.need, text), (pattern, text)
    assert known > 200
    assert matched > 2000


def test_like_patterns_satisfy_the_needs() -> None:
    chosen = random.Random(3)
    texts = pa.array(["".join(chosen.choices("abK%_\\é", k=chosen.randint(0, 8))) for _ in range(300)])
    for _ in range(300):
        pattern = "".join(chosen.choices(["a", "b", "K", "é", "%", "_", "\\%", "\\_"], k=chosen.randint(0, 6)))
        filter = f"c {chosen.choice(['LIKE', 'ILIKE'])} '{pattern}'"
        node = _node(filter)
        form = node.forms[-1].condition if isinstance(node, ColumnCondition) else None
        if not isinstance(form, TextCondition):
            continue
        expression = "".join(
            {"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in re.findall(r"\\.|.", pattern)
        )
        for text in texts.to_pylist():
            if re.fullmatch(expression, text, re.DOTALL):
                assert _holds(form.need, text)
            elif form.is_whole:
                assert not _holds(form.need, text)
