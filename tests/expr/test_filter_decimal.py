"""Tests that decimal columns compare exactly with every spelling of a number."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Decimal, localcontext

import duckdb
import lance
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lance_dataset
from lance_dataset.expr.compiled import compile_expression, compile_filter

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


@pytest.mark.parametrize("scale", [0, 20, 38])
def test_texts_of_many_digits_become_decimals_exactly(tmp_path, scale):
    digits = ["9" * 38, "12345678901234567890123456789012345678", "12345678901234567890123456789012345679", "5"]
    with localcontext(prec=60):
        values = [sign * Decimal(text).scaleb(-scale) for text in digits for sign in (1, -1)]
    lance_dataset.write_dataset(pa.table({"x": pa.array(values, pa.decimal128(38, scale))}), tmp_path / "t")
    ours, theirs = lance_dataset.dataset(tmp_path / "t"), lance.dataset(str(tmp_path / "t"))
    for value in values:
        for form in ("decimal(38,{s}) '{v:f}'", "cast('{v:f}4' AS decimal(38,{s}))"):
            if form.startswith("cast") and not scale:
                continue  # another digit is too many for a number without places
            for operator, kept in (("=", [value]), (">", [each for each in values if each > value])):
                text = f"x {operator} {form.format(s=scale, v=value)}"
                assert ours.count_rows(text) == theirs.count_rows(text) == len(kept), text


def test_decimal256_column():
    batch = pa.RecordBatch.from_pydict({"x": pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal256(50, 4))})
    assert _kept("x = 1.5", batch) == [0]
    assert _kept("x IN (2.5, 7)", batch) == [1]


DIGITS = st.one_of(
    st.integers(-(10**19), 10**19),
    st.integers(0, 60).map(lambda bits: 2**bits - 1),
    st.integers(0, 19).map(lambda zeros: 10**zeros),
    st.sampled_from([2**64 - 1, 2**63, 3689348814741910323]),
)


@given(values=st.lists(DIGITS, min_size=1, max_size=6), divisor=DIGITS.filter(bool), scale=st.integers(0, 6))
def test_quotients_are_exact(values, divisor, scale):
    """Quotients are exact, including those that Arrow's division gets wrong."""
    with localcontext() as context:
        context.prec = 100
        numbers = [Decimal(value).scaleb(-scale) for value in values]
        batch = pa.RecordBatch.from_pydict(
            {
                "x": pa.array([*numbers, None], pa.decimal128(26, scale)),
                "y": pa.array([Decimal(divisor)] * len(numbers) + [Decimal(0)], pa.decimal128(20, 0)),
            }
        )
        found = compile_expression("x / y", batch.schema).evaluate(batch)
        exact = [
            int(abs(n) * 10 ** (scale + 4) / abs(divisor)) * (1 if (n < 0) == (divisor < 0) else -1) for n in numbers
        ]
        assert found.type.scale == scale + 4
        assert found.to_pylist() == [*(Decimal(value).scaleb(-scale - 4) for value in exact), None]


@given(values=st.lists(DIGITS, min_size=1, max_size=6), zeros=st.integers(0, 17), places=st.integers(0, 17))
def test_roundings_are_exact(values, zeros, places):
    assume(max(map(abs, values)) * 10 ** (-zeros % 5) < 10 ** (38 - max(zeros, 5)))  # the column holds 38 digits
    with localcontext() as context:
        context.prec = 100
        numbers = [Decimal(value).scaleb(-zeros % 5) for value in values]
        column = pa.array([None, *numbers], pa.decimal128(38, max(zeros, 5)))
        batch = pa.RecordBatch.from_pydict({"x": column})
        rounded = [None, *(number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP) for number in numbers)]
        for text in (f"round(x, {places})", f"CAST(x AS DECIMAL(38, {places}))"):
            assert compile_expression(text, batch.schema).evaluate(batch).to_pylist() == rounded
        cut = [None, *(number.to_integral_value("ROUND_DOWN") for number in numbers)]
        whole = compile_expression("TRY_CAST(x AS BIGINT)", batch.schema).evaluate(batch).to_pylist()
        assert whole == [None if n is None or not -(2**63) <= n < 2**63 else int(n) for n in cut]


def test_product_of_wide_decimals():
    big = Decimal("9" * 36 + ".99")
    batch = pa.RecordBatch.from_pydict({"x": pa.array([big, None, Decimal("-1.50")], pa.decimal256(38, 2))})
    found = compile_expression("x * x", batch.schema).evaluate(batch)
    with localcontext() as context:
        context.prec = 100
        assert found.to_pylist() == [big * big, None, Decimal("2.25")]
    with pytest.raises(pa.ArrowInvalid):
        compile_expression("x / (x - x)", batch.schema).evaluate(batch)


@pytest.mark.parametrize("operator", ["*", "/"])
@pytest.mark.parametrize("other", [(12, 2), (26, 4), (38, 0), (38, 10)])
def test_products_and_quotients_have_the_type_of_the_reference(tmp_path, operator, other):
    """Products and quotients have the reference's type: 128 bits with the maximum number of digits, for all values."""
    columns = [
        pa.array([Decimal("7.25"), None, Decimal("-3"), Decimal(10**17)], pa.decimal128(26, 4)),
        pa.array([Decimal("7"), Decimal("3"), Decimal("-2"), Decimal(10**6)], pa.decimal128(*other)),
    ]
    table = pa.table(columns, ["a", "b"])
    lance.write_dataset(table, tmp_path)
    for text in (f"a {operator} b", f"b {operator} (a + 1)"):
        expected = lance.dataset(tmp_path).to_table(columns={"x": text})["x"]
        found = lance_dataset.dataset(tmp_path).to_table(columns={"x": text})["x"]
        assert found.to_pylist() == expected.to_pylist()
        assert found.type == expected.type


def test_products_of_too_many_bits(tmp_path):
    table = pa.table({"a": pa.array([Decimal(10**37), Decimal(4 * 10**37)], pa.decimal128(38, 0)), "b": [17, 4]})
    lance.write_dataset(table, tmp_path)
    for library in (lance, lance_dataset):
        dataset = library.dataset(tmp_path)
        assert dataset.to_table(columns={"x": "a * a"}, limit=0).schema.field("x").type == pa.decimal128(38, 0)
        assert dataset.to_table(columns={"x": "a * b"})["x"].cast(pa.decimal256(40, 0)).to_pylist() == [
            Decimal(17 * 10**37),
            Decimal(16 * 10**37),
        ]
        with pytest.raises(Exception, match="overflow"):
            dataset.to_table(columns={"x": "a * a"})
