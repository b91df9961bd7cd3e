"""Tests of CASE, which evaluates only the rows of a branch, of `now()`, constant in a query, and of `random()`."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.expr.compiled import compile_expression, compile_filter
from lance_dataset.expr.tree import Case, Constant, is_volatile
from lance_dataset.scan.pruning.prune import may_fail


@pytest.fixture(scope="module")
def numbers() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "n": pa.array([0, 1, None, 4, -2], pa.int32()),
            "s": ["7", "x", None, "12", ""],
            "nested": [[1], None, [2, 3], [], [None]],
        }
    )


def _values(text: str, batch: pa.RecordBatch) -> list[object]:
    compiled = compile_expression(text, batch.schema)
    found = compiled.evaluate(batch)
    assert found.type == compiled.type
    empty = compiled.evaluate(batch.slice(0, 0))
    assert (len(empty), empty.type) == (0, compiled.type)
    parts = [compiled.evaluate(batch.slice(row, 1)).to_pylist()[0] for row in range(batch.num_rows)]
    assert parts == found.to_pylist()
    return parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN n = 0 THEN -1 ELSE 8 / n END", [-1, 8, None, 2, -4]),
        ("CASE n WHEN 0 THEN 1 / 0 WHEN 1 THEN 10 ELSE 20 END", "divide"),
        ("CASE WHEN n > 1000 THEN 1 / 0 ELSE n END", [0, 1, None, 4, -2]),
        ("CASE WHEN n = 0 THEN 0 WHEN 8 / n > 3 THEN 1 ELSE 2 END", [0, 1, 2, 2, 2]),
        ("CASE WHEN regexp_like(s, '^[0-9]+$') THEN CAST(s AS INT) END", [7, None, None, 12, None]),
        ("CASE WHEN n IN (0, 4) THEN nested END", [[1], None, None, [], None]),
        ("CASE WHEN n IS NULL THEN 'none' WHEN n > 0 THEN 'more' ELSE s END", ["7", "more", "none", "more", ""]),
        ("CASE WHEN true THEN n ELSE 1 / 0 END", [0, 1, None, 4, -2]),
        ("CASE WHEN false THEN 1 / 0 ELSE 3 END", [3] * 5),
        ("CASE WHEN NULL THEN 1 END", [None] * 5),
        ("CASE WHEN n > 0 THEN 1 ELSE 2.5 END", [2.5, 1.0, 2.5, 1.0, 2.5]),
        ("CASE WHEN n > 0 THEN CASE WHEN n > 2 THEN 1 / (n - 4) ELSE 5 END ELSE 0 END", "divide"),
        ("coalesce(CASE n WHEN 1 THEN 'one' END, 'other')", ["other", "one", "other", "other", "other"]),
    ],
)
def test_case(text, expected, numbers):
    if expected == "divide":
        with pytest.raises(pa.ArrowInvalid, match="divide"):
            compile_expression(text, numbers.schema).evaluate(numbers)
    else:
        assert _values(text, numbers) == expected


def test_case_in_scans_with_statistics(tmp_path, numbers):
    table = pa.Table.from_batches([numbers] * 400)
    dataset = lance_dataset.write_dataset(table, tmp_path / "case.lance", data_storage_version="2.0")
    text = "CASE WHEN n = 0 THEN false ELSE 8 / n = 2 END AND n > 1"
    assert dataset.to_table(filter=text)["n"].to_pylist() == [4] * 400
    found = dataset.to_table(columns={"x": "CASE WHEN n = 0 THEN 0 ELSE 8 / n END"}, filter="n >= 0", limit=5)
    assert found["x"].to_pylist() == [0, 8, 2, 0, 8]


def test_case_for_pruning(numbers):
    tree = compile_filter("CASE WHEN n = 1 THEN n > 0 ELSE s = 'a' END", numbers.schema).tree
    assert isinstance(tree, Case)
    assert not may_fail(tree)
    assert may_fail(compile_filter("CASE WHEN n = 1 THEN 1 / n > 0 END", numbers.schema).tree)


def test_time_stands_still(numbers):
    before = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
    compiled = compile_expression("now()", numbers.schema)
    moments = compiled.evaluate(numbers)
    assert compiled.type == pa.timestamp("ns")
    assert isinstance(compiled.tree, Constant)
    assert len(set(moments.cast(pa.int64()).to_pylist())) == 1
    assert pa.scalar(before, pa.timestamp("ns")).value - 10**6 <= moments[0].value
    assert _values("now() = current_timestamp AND current_date = CAST(now() AS DATE)", numbers) == [True] * 5
    assert _values("current_time() = to_time(now())", numbers) == [True] * 5
    assert _values("now() BETWEEN now() AND now()", numbers) == [True] * 5


def test_chance_is_taken_in_each_row():
    batch = pa.RecordBatch.from_pydict({"n": pa.array(range(4000))})
    chance = compile_expression("random()", batch.schema)
    assert is_volatile(chance.tree)
    first, second = chance.evaluate(batch).to_numpy(), chance.evaluate(batch).to_numpy()
    assert len(np.unique(first)) == 4000
    assert not np.array_equal(first, second)
    assert ((first >= 0) & (first < 1)).all()
    assert 1000 < compile_filter("random() < 0.5", batch.schema).mask(batch).true_count < 3000
    mixed = compile_expression("CASE WHEN random() < 0.5 THEN 1 ELSE 10 / (n - n + 1) END", batch.schema)
    assert set(mixed.evaluate(batch).to_pylist()) == {1, 10}
    names = compile_expression("uuid()", batch.schema).evaluate(batch)
    assert len(names.unique()) == 4000
    assert compile_expression("length(uuid())", batch.schema).evaluate(batch)[0].as_py() == 36
