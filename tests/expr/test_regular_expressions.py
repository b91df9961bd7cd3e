"""Tests of regular expressions: same meaning as in the reference, and linear time."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import UnsupportedError
from lance_dataset.expr.compiled import compile_expression

TEXTS = ["aab", "b", "baaac", None, "", "a b", "Éa1_é", "x\ny", "12-34", "\u0664", "aAbB"]
PATTERNS = [
    "a*",
    "^a",
    "^",
    "(a)?(b)",
    "(a*)",
    "a|b",
    "[^a]",
    "[(]",
    "([)(?<a>P]|b)",
    r"\d+",
    r"\w+",
    r"\s",
    r"\D",
    r"\W",
    "(?i)a",
    "(?P<x>a)b",
    "$",
]
TABLE = pa.table({"s": TEXTS, "p": [PATTERNS[row % len(PATTERNS)] for row in range(len(TEXTS))]})
EXPRESSIONS = [
    "regexp_like(s, {p})",
    "regexp_count(s, {p})",
    "regexp_count(s, {p}, 2)",
    "regexp_count(s, {p}, 1, 'i')",
    "regexp_instr(s, {p})",
    "regexp_instr(s, {p}, 1, 2)",
    "regexp_match(s, {p})",
    "regexp_match(s, {p}, 'i')",
    "regexp_replace(s, {p}, '<$1>')",
    "regexp_replace(s, {p}, '<$0>', 'g')",
    "regexp_replace(s, {p}, '[\\1$$]', 'gi')",
]
LAYOUT = ["regexp_count(s, 'A # x', 1, 'ix')", "regexp_match(s, 'a b', 'x')", "regexp_count(s, '[ a b ] # x', 1, 'x')"]
CONDITIONS = [
    "regexp_match(s, 'a')",
    "NOT regexp_match(s, 'a')",
    "NOT regexp_like(s, 'a')",
    "regexp_match(s, 'a') IS NULL",
    "NOT (regexp_match(s, 'a') AND s < 'm')",
    "NOT (regexp_match(s, 'a') OR s = 'b')",
    "regexp_match(s, '[a,)(]')",
    "array_has_any(make_array(s, 'a,b'), make_array('(b', 'a b'))",
    "s IN ('a b', '(,)', 'it''s')",
    "array_has(make_array(regexp_replace(s, '[,(]b', ')'), 'a,b'), 'a b')",
]
CATASTROPHE = "(a+)+$"


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return lance.write_dataset(TABLE, tmp_path_factory.mktemp("regex") / "data.lance")


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *LAYOUT])
def test_like_the_reference(expression: str, reference: lance.LanceDataset) -> None:
    batch = TABLE.to_batches()[0]
    for pattern in ["p", *(f"'{pattern}'" for pattern in PATTERNS)] if "{p}" in expression else [""]:
        text = expression.replace("{p}", pattern)
        expected = reference.to_table(columns={"value": text})["value"].to_pylist()
        assert compile_expression(text, batch.schema).evaluate(batch).to_pylist() == expected, text


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("index", [None, "NGRAM"])
def test_filters_like_the_reference(
    condition: str, index: str | None, reference: lance.LanceDataset, tmp_path: Path
) -> None:
    """Rows without a match are those of ``NOT regexp_match``, including nulls, with and without an index."""
    expected = reference.to_table(filter=condition)["s"].to_pylist()
    dataset = lance_dataset.write_dataset(TABLE, tmp_path / "data")
    if index:
        dataset.create_scalar_index("s", index)
    assert dataset.to_table(filter=condition)["s"].to_pylist() == expected


@pytest.mark.parametrize(
    "expression",
    [
        f"regexp_count(s, '{CATASTROPHE}')",
        f"regexp_replace(s, '{CATASTROPHE}', 'x')",
        f"regexp_instr(s, '{CATASTROPHE}')",
        f"regexp_match(s, '{CATASTROPHE}')",
        f"regexp_like(s, '{CATASTROPHE}', 'x')",
        "s LIKE concat(t, repeat('%a', 25), 'b')",
        "s ILIKE concat(t, repeat('%a', 25), 'b')",
    ],
)
def test_no_pattern_takes_exponential_time(expression: str) -> None:
    """Patterns that would run for years in a backtracking engine finish."""
    batch = pa.RecordBatch.from_pydict({"s": ["a" * 5000 + "!"], "t": [""]})
    assert len(compile_expression(expression, batch.schema).evaluate(batch)) == 1


@pytest.mark.parametrize("pattern", ["(?=a)", r"(a)\1", "(", "[", "a{5000}"])
def test_what_is_no_pattern(pattern: str) -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["a"]})
    for name in ("like", "count", "instr", "match"):
        with pytest.raises(pa.ArrowInvalid, match="regular expression"):
            compile_expression(f"regexp_{name}(s, '{pattern}')", batch.schema).evaluate(batch)


def test_what_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["a"]})
    for text in (r"regexp_count(s, '[\W]')", "regexp_instr(s, '(a)', 1, 1, '', 1)"):
        with pytest.raises((UnsupportedError, pa.ArrowInvalid), match="not supported"):
            compile_expression(text, batch.schema).evaluate(batch)


def test_marks_are_none_of_the_characters_of_the_text() -> None:
    batch = pa.RecordBatch.from_pydict({"s": ["\ue000a\ue001a", "a\ue002"]})
    assert compile_expression("regexp_count(s, 'a')", batch.schema).evaluate(batch).to_pylist() == [2, 1]
    assert compile_expression("regexp_instr(s, 'a', 1, 2)", batch.schema).evaluate(batch).to_pylist() == [4, 0]


def test_a_pattern_for_each_row() -> None:
    """If each row has a pattern, rows of one pattern are computed together, and results keep the row order."""
    chosen = random.Random(5)
    rows = [(chosen.choice(TEXTS), chosen.choice([*PATTERNS, None])) for _ in range(500)]
    batch = pa.RecordBatch.from_pydict({"s": [s for s, _ in rows], "p": [p for _, p in rows]})
    found = compile_expression("regexp_count(s, p)", batch.schema).evaluate(batch).to_pylist()
    for (text, pattern), count in zip(rows, found, strict=True):
        single = pa.RecordBatch.from_pydict({"s": pa.array([text], pa.string()), "p": pa.array([pattern], pa.string())})
        assert compile_expression("regexp_count(s, p)", single.schema).evaluate(single).to_pylist() == [count]
