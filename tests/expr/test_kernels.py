"""Tests of filter kernels of the codec core, compared with Arrow, Python and exact numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_dataset.errors import CorruptFileError
from lance_dataset.expr.compiled import compile_expression, compile_filter
from lance_dataset.expr.kernels import like_regex

TEXT = st.lists(st.sampled_from(["a", "b", "%", "_", "\\", "é", "日", "\n", "ab"]), max_size=8).map("".join)
OPERATORS = {"=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater}


def kept(text: str, **columns: pa.Array) -> list[bool]:
    """Return the mask of a filter, after checking that slices of the batch give slices of the mask."""
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    compiled = compile_filter(text, batch.schema)
    assert compiled is not None
    mask = compiled.mask(batch)
    mask.validate(full=True)
    for start in (1, 3, 9):
        assert compiled.mask(batch.slice(start, 30)).equals(mask.slice(start, 30))
    found: list[bool] = mask.to_pylist()
    return found


@given(st.lists(st.none() | TEXT, max_size=40), TEXT, st.booleans(), st.booleans())
def test_like(values: list[str | None], pattern: str, negated: bool, wide: bool) -> None:
    regex = like_regex(pattern, False)
    column = pa.array(values, pa.large_string() if wide else pa.string())
    text = f"s {'NOT ' if negated else ''}LIKE '{pattern}'"
    expected = [value is not None and (regex.fullmatch(value) is not None) != negated for value in values]
    assert kept(text, s=column) == expected


@pytest.mark.parametrize("pattern", ["%needle%", "needle%", "%needle", "needle", "%n__dle%", "%ne%le%", "%needle_%"])
def test_like_over_many_strings(pattern: str) -> None:
    values = [
        f"{'x' * (row % 9)}{['needle', 'needl', 'nee', '', 'noodle'][row % 5]}{'y' * (row % 4)}" for row in range(900)
    ]
    regex = like_regex(pattern, False)
    assert kept(f"s LIKE '{pattern}'", s=pa.array(values)) == [regex.fullmatch(value) is not None for value in values]


@given(st.lists(st.none() | TEXT, max_size=30), st.lists(st.none() | TEXT, min_size=1, max_size=9), st.booleans())
def test_strings_in_lists(values: list[str | None], members: list[str | None], negated: bool) -> None:
    column = pa.array(values, pa.string())
    items = ", ".join("NULL" if item is None else f"'{item}'" for item in members)
    expected = [
        value is not None and ((value not in members and None not in members) if negated else value in members)
        for value in values
    ]
    assert kept(f"s {'NOT ' if negated else ''}IN ({items})", s=column) == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64()])
def test_integers_in_long_lists(kind: pa.DataType) -> None:
    top = 2 ** (kind.bit_width - pa.types.is_signed_integer(kind)) - 1
    members = [*range(0, 100, 3), top, top - 5]
    values = [*range(120), top, top - 1, None]
    items = ", ".join(map(str, members))
    assert kept(f"i IN ({items})", i=pa.array(values, kind)) == [value in members for value in values]
    assert kept(f"i NOT IN ({items})", i=pa.array(values, kind)) == [
        value is not None and value not in members for value in values
    ]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.date32(), pa.date64()])
def test_moments_in_lists(kind: pa.DataType) -> None:
    column = pa.array([0, 1, 365, None, 366], pa.int32()).cast(pa.date32()).cast(kind)
    word = "timestamp" if pa.types.is_timestamp(kind) else "date"
    end = " 00:00:00" if word == "timestamp" else ""
    found = kept(f"d IN ({word} '1970-01-02{end}', {word} '1971-01-01{end}')", d=column)
    assert found == [False, True, True, False, False]


# -- decimals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.decimal256(50, 2), pa.decimal128(38, 0)])
def test_decimals_against_constants(operator: str, kind: pa.DataType) -> None:
    texts = ["0", "1", "-1", "1.25", "99999.99", "-99999.99", "12345678"]
    values = [Decimal(text) if kind.scale else Decimal(text).quantize(Decimal(1)) for text in texts] * 11
    column = pa.array([*values, None], kind)
    for bound in values[:7]:
        expected = OPERATORS[operator](column, pa.scalar(bound, kind)).fill_null(False).to_pylist()
        assert kept(f"d {operator} CAST('{bound}' AS DECIMAL(38, {kind.scale}))", d=column) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = 1200", [True, False, False, False]),
        ("d != 1200", [False, True, False, True]),
        ("d < 1200", [False, True, False, False]),
        ("1200 <= d", [True, False, False, True]),
        ("d BETWEEN 1 AND 5000", [True, False, False, False]),
        ("d = e", [True, False, False, False]),
        ("d = d", [True, True, False, True]),
        ("d IN (1200, -300)", [True, True, False, False]),
        ("d IS NOT DISTINCT FROM 1200", [True, False, False, False]),
        ("d IS DISTINCT FROM d", [False, False, False, False]),
    ],
)
@pytest.mark.parametrize("make", [pa.decimal128, pa.decimal256])
def test_decimals_of_a_negative_scale(text: str, expected: list[bool], make: type[pa.DataType]) -> None:
    kind = make(5, -2)
    d = pa.array([Decimal(1200), Decimal(-300), None, Decimal(9999900)], kind)
    e = pa.array([Decimal(1200), Decimal(300), Decimal(100), None], kind)
    assert kept(text, d=d, e=e) == expected


def damaged(kind: pa.DataType) -> pa.Array:
    """Return 1.23, and a value that has more digits than the type."""
    numbers = b"".join(number.to_bytes(kind.byte_width, "little", signed=True) for number in (123, -(10**30)))
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(numbers)])


@pytest.mark.parametrize(
    "text", ["d < 1200", "d < i", "CAST(d AS BIGINT) = 1", "CAST(d AS DECIMAL(10, 4)) = 1.23", "d = 1.234"]
)
def test_damaged_decimals_are_called_so(text: str) -> None:
    with pytest.raises(CorruptFileError, match=r"more than 5 digits"):
        kept(text, d=damaged(pa.decimal128(5, 2)), i=pa.array([1, 2]))


def test_damaged_decimals_that_nothing_converts() -> None:
    d = damaged(pa.decimal128(5, 2))
    assert kept("d = 1.23", d=d) == [True, False]
    assert kept("TRY_CAST(d AS DECIMAL(10, 4)) = 1.23", d=d) == [True, False]
    assert kept("TRY_CAST(d AS BIGINT) IS NULL", d=d) == [False, True]


def test_values_that_do_not_convert_are_no_damage() -> None:
    with pytest.raises(pa.ArrowInvalid):
        kept("CAST(d AS DECIMAL(3, 2)) = 1", d=pa.array([Decimal("100.00")], pa.decimal128(5, 2)))


@given(st.lists(st.integers(-(10**12) + 1, 10**12 - 1), max_size=70), st.integers(-(10**12) + 1, 10**12 - 1))
def test_decimals_are_exact(values: list[int], bound: int) -> None:
    column = pa.array([Decimal(value).scaleb(-2) for value in values], pa.decimal128(12, 2))
    limit = Fraction(bound, 100)
    found = kept(f"d <= CAST('{Decimal(bound).scaleb(-2):f}' AS DECIMAL(12, 2))", d=column)
    assert found == [Fraction(value, 100) <= limit for value in values]


# -- remainders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()])
@pytest.mark.parametrize("divisor", [1, 2, 7, 10, 127, -1, -7])
def test_remainders_of_integers_have_the_sign_of_the_dividend(kind: pa.DataType, divisor: int) -> None:
    if divisor < 0 and pa.types.is_unsigned_integer(kind):
        divisor = -divisor
    top = 2 ** (kind.bit_width - pa.types.is_signed_integer(kind)) - 1
    low = 0 if pa.types.is_unsigned_integer(kind) else -top - (divisor != -1)
    numbers = [low, low + 1, 0, None, 1, 6, 7, top, top - 1, max(low, -6), max(low, -7), max(low, -8), None]
    batch = pa.record_batch([pa.array(numbers, kind)], ["x"])
    compiled = compile_expression(f"x % arrow_cast({divisor}, '{str(kind).title().replace('Ui', 'UI')}')", batch.schema)
    sign = [None if number is None else (-1 if number < 0 else 1) for number in numbers]
    expected = [n if n is None else s * (abs(n) % abs(divisor)) for n, s in zip(numbers, sign, strict=True)]
    for start in (0, 1, 3):
        found = compiled.evaluate(batch.slice(start))
        found.validate(full=True)
        assert found.type == kind
        assert found.to_pylist() == expected[start:]


def test_remainders_by_zero_fail() -> None:
    batch = pa.record_batch([pa.array([1, 2])], ["x"])
    with pytest.raises(pa.ArrowInvalid):
        compile_expression("x % 0", batch.schema).evaluate(batch)
