"""Tests of expressions that would take all memory or never end: they are refused or computed another way."""

from __future__ import annotations

import decimal
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_dataset.errors import FilterError
from lance_dataset.expr.compiled import compile_expression, compile_filter

BATCH = pa.RecordBatch.from_pydict(
    {
        "i": [1, None],
        "f": [1.5, None],
        "s": ["a", None],
        "dec": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "repeat('x', 1000000000000)",
        "repeat(s, 1000000000000)",
        "lpad(s, 1000000000000)",
        "rpad('x', 9223372036854775807, 'ab')",
        "replace(repeat(s, 1000000), 'a', repeat('b', 1000000))",
        "regexp_replace(repeat(s, 1000000), 'a', repeat('b', 1000000), 'g')",
        "generate_series(timestamp(9) '2020-01-01', timestamp(9) '2200-01-01', interval '1 nanosecond')",
        "generate_series(1, 1000000000000)",
        "array_repeat(s, 1000000000000)",
    ],
)
def test_results_that_fit_no_array(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="more than 2147483647"):
        compile_expression(text, BATCH.schema).evaluate(BATCH)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dec < 1e999999999", "more digits"),
        ("dec < 1e99999999999999999999", "exponent"),
        ("dec + 1e999999999 > 1", "more digits"),
        ("CAST(1e99999999 AS DECIMAL(38, 0)) > 1", "more digits"),
        (f"i < 1{'0' * 400}", "use CAST|not comparable"),
        ("INTERVAL '" + "1" * 5000 + " day' IS NULL", "Expected an interval"),
        ("i = 1 /* 2", "Unterminated comment"),
        ("i" + ".a" * 5000 + " = 1", "more than 200 parts"),
    ],
)
def test_literals_of_absurd_size(text: str, message: str) -> None:
    with pytest.raises(FilterError, match=message):
        compile_filter(text, BATCH.schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f < 1" + "0" * 6000, [True, False]),
        ("f < 1e999999999", [True, False]),
        ("0e999999999 < dec", [True, False]),
        ("1e999999 * 1e999999 > f", [True, False]),
        ("isnan(round(f, -1000000000))", [True, False]),
        ("isnan(round(f, 1000000000))", [True, False]),
        ("round(dec, 1000000000) = 1.5", [True, False]),
        ("round(dec, -1000000000) = 0", [True, False]),
        ("i = 1 OR " * 3000 + "i = 2", [True, False]),
        ("i = 1 AND " * 3000 + "(i = 1 AND s = 'a')", [True, False]),
    ],
)
def test_what_is_large_but_has_a_meaning(text: str, expected: list[bool]) -> None:
    assert compile_filter(text, BATCH.schema).mask(BATCH).to_pylist() == expected


def test_chains_are_one_node() -> None:
    tree = compile_filter("i = 1 OR i = 2 OR i = 3 AND s = 'a' AND f > 1", BATCH.schema).tree
    assert [len(node.children()) for node in (tree, tree.children()[2])] == [3, 3]


def test_sets_of_dates_that_python_does_not_have() -> None:
    far = pa.array([10**17 - 10**17 % 86_400_000, 0], pa.int64()).cast(pa.date64())
    batch = pa.RecordBatch.from_pydict({"d": far})
    assert compile_filter(pc.field("d").isin(far[:1]), batch.schema).mask(batch).to_pylist() == [True, False]


def test_a_hash_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "blake3", None)
    with pytest.raises(ValueError, match="pip install blake3"):
        compile_expression("digest(s, 'blake3')", BATCH.schema).evaluate(BATCH)


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL '1 day' = INTERVAL '1 day'",
        "INTERVAL '1 day' < NULL",
        "NULL * INTERVAL '1 day' IS NULL",
        "NULL >> INTERVAL '1 day' IS NULL",
        "INTERVAL '1 day' - INTERVAL '1 day' IS NULL",
    ],
)
def test_what_intervals_do_not_do(text: str) -> None:
    with pytest.raises(FilterError, match=r"not comparable|does not take"):
        compile_filter(text, BATCH.schema)


def test_moments_beyond_the_calendar_have_no_text() -> None:
    batch = pa.RecordBatch.from_pydict({"at": pa.array([2**62, 0], pa.timestamp("s"))})
    with pytest.raises(pa.ArrowInvalid, match="years 1 to 9999"):
        compile_expression("CAST(at AS STRING)", batch.schema).evaluate(batch)
