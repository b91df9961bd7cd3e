"""Tests that computed columns have the values and types that the reference computes."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from lance_dataset.expr.compiled import compile_expression

EXPRESSIONS = Path(__file__).with_name("expressions.txt")
# The reference returns views, nanoseconds for dates, and wider decimals; the values are the same.
OTHER_TYPE = [
    "left(s, 2)",
    "left(s, -1)",
    "right(s, 2)",
    "right(s, -1)",
    "md5(s)",
    "concat(s, ls)",
    "date_trunc('day', d)",
    "to_timestamp(i)",
]


def _texts() -> list[str]:
    return EXPRESSIONS.read_text(encoding="utf-8").splitlines()


def _same(left, right) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-13, abs_tol=0.0)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    return left == right


def test_values_and_types(batch, reference):
    different = []
    for text in _texts():
        expected = reference.to_table(columns={"value": text})["value"].combine_chunks()
        compiled = compile_expression(text, batch.schema)
        found = compiled.evaluate(batch)
        assert found.type == compiled.type
        same = all(map(_same, expected.to_pylist(), found.to_pylist())) and len(expected) == len(found)
        if not same or expected.type != found.type:
            different.append((text, expected.type, found.type, expected.to_pylist()[:12], found.to_pylist()[:12]))
    assert different == []


@pytest.mark.parametrize("text", OTHER_TYPE)
def test_values(text, batch, reference):
    expected = reference.to_table(columns={"value": text})["value"].to_pylist()
    found = compile_expression(text, batch.schema).evaluate(batch).to_pylist()
    assert [str(value) for value in found] == [str(value) for value in expected]


def test_constants_fill_the_batch(batch, table):
    compiled = compile_expression("1.5", batch.schema)
    assert compiled.columns == ()
    assert compiled.type == pa.float64()
    assert compiled.evaluate(batch).to_pylist() == [1.5] * batch.num_rows
    assert compiled.evaluate(table).length() == table.num_rows


def test_number_literals_are_exact_beside_decimals(batch):
    found = compile_expression("dec + 0.1", batch.schema).evaluate(batch)
    assert found.type == pa.decimal128(16, 2)
    assert str(found[0]) == "1.60"


def test_plain_sql_spellings_beyond_the_reference(batch):
    """`substr`, `trim`, `ceil` and `floor` work; the reference refuses these keywords."""
    evaluate = lambda text: compile_expression(text, batch.schema).evaluate(batch).to_pylist()  # noqa: E731
    assert evaluate("substr(s, 2, 3)") == [v and v[1:4] for v in batch["s"].to_pylist()]
    assert evaluate("trim(s)") == [v and v.strip(" ") for v in batch["s"].to_pylist()]
    assert evaluate("floor(st.`in`.w)")[0] == 2.0
    assert evaluate("ceil(st.`in`.w)")[0] == 3.0
