"""Decimal columns compare exactly with every spelling of a number."""

from __future__ import annotations

import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.query.expr import compile_filter

VALUES = ["1.50", "0.05", "0.07", "0.06", "-3.00", "0.00", "9999999999999.99", "0.01", "100.10"]


def _batch(values, precision=15, scale=2):
    return pa.RecordBatch.from_pydict(
        {"x": pa.array([v and Decimal(v) for v in values], pa.decimal128(precision, scale))}
    )


def _kept(text, batch):
    return [row for row, keep in enumerate(compile_filter(text, batch.schema).mask(batch).to_pylist()) if keep]


@pytest.mark.parametrize("seed", range(4))
def test_against_duckdb(seed):
    choose = random.Random(seed)
    batch = _batch([*VALUES, None] * 3)
    data = pa.Table.from_batches([batch]).append_column("row", pa.array(range(batch.num_rows)))
    assert data.num_rows
    numbers = [*VALUES, "0.055", "0.0500", "7", "-3", "0.075", "1e1", "1.5e0", "0"]
    for _ in range(40):
        low, high = choose.choice(numbers), choose.choice(numbers)
        operator = choose.choice(["=", "!=", "<", "<=", ">", ">="])
        text = choose.choice(
            [
                f"x {operator} {low}",
                f"{low} {operator} x",
                f"x BETWEEN {low} AND {high}",
                f"x NOT BETWEEN {low} AND {high}",
                f"x IN ({low}, {high})",
                f"x NOT IN ({low}, {high}, 0.06)",
                f"x + {low} {operator} {high}",
                f"x * {choose.choice(numbers[9:])} {operator} {high}",
                f"x IS DISTINCT FROM {low}",
            ]
        )
        # DuckDB reads numbers with an exponent as doubles; plain digits are decimals there as well.
        exact = text.replace("1e1", "10").replace("1.5e0", "1.5")
        expected = duckdb.sql(f"SELECT row FROM data WHERE {exact} ORDER BY row").fetchall()
        assert _kept(text, batch) == [row for (row,) in expected], text


def test_tpch_discount():
    batch = _batch(VALUES)
    assert _kept("x BETWEEN 0.05 AND 0.07", batch) == [1, 2, 3]
    assert _kept("x BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", batch) == [1, 2, 3]


@given(
    values=st.lists(st.decimals(-(10**6), 10**6, places=4), min_size=1, max_size=20),
    bound=st.decimals(-(10**6), 10**6, places=7),
    operator=st.sampled_from(["=", "<", ">=", "!="]),
)
def test_against_python(values, bound, operator):
    batch = _batch(values, 20, 4)
    compare = {"=": Decimal.__eq__, "<": Decimal.__lt__, ">=": Decimal.__ge__, "!=": Decimal.__ne__}[operator]
    expected = [row for row, value in enumerate(values) if compare(value, bound)]
    assert _kept(f"x {operator} {bound:f}", batch) == expected


def test_wide_decimals_do_not_overflow():
    value = Decimal("12345678901234567890123456789012345.678")
    batch = pa.RecordBatch.from_pydict({"x": pa.array([value, None, -value], pa.decimal128(38, 3))})
    assert _kept("x > 12345678901234567890123456789012345.6779999", batch) == [0]
    assert _kept("x = 12345678901234567890123456789012345.678", batch) == [0]
    assert _kept("x < 1e40", batch) == [0, 2]
    assert _kept("x * 10 > 0", batch) == [0]


def test_decimal256_column():
    batch = pa.RecordBatch.from_pydict({"x": pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal256(50, 4))})
    assert _kept("x = 1.5", batch) == [0]
    assert _kept("x IN (2.5, 7)", batch) == [1]
