"""Tests of errors of filters that cannot run: they name the problem and its position."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_dataset.errors import FieldNotFoundError, FilterError, InvalidInputError, LanceError
from lance_dataset.expr.compiled import compile_expression, compile_filter


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("i =", 3, "Expected an expression"),
        ("i = (1", 6, "Expected ')'"),
        ("i = 1)", 5, "found ')'"),
        ("i = 'abc", 4, "Unterminated string"),
        ('i = "abc', 4, "Unterminated string"),
        ("`i = 1", 0, "Unterminated quoted name"),
        ("i in ()", 2, "at least one value"),
        ("i in (select 1)", 6, "Subqueries"),
        ("", 0, "empty"),
        ("   ", 3, "empty"),
        ("i = 1 AND", 9, "Expected an expression"),
        ("i between 1", 11, "Expected AND"),
        ("i is", 4, "after IS"),
        ("i is 5", 5, "after IS"),
        ("a b", 2, "found 'b'"),
        ("i & 1 = 1", 2, "Operator & is not supported"),
        ("s ~ 'a'", 2, "Operator ~ is not supported"),
        ("i <=> 1", 2, "Operator <=> is not supported"),
        ("s -> 'a'", 2, "Operator -> is not supported"),
        ("i = ?", 4, "Operator ? is not supported"),
        ("CASE WHEN i = 1 THEN 'a' ELSE 2 END = 'a'", 0, "CASE needs values of one type"),
        ("b AND CASE WHEN i THEN true END", 16, "WHEN needs booleans"),
        ("CASE WHEN b THEN true", 21, "Expected END"),
        ("CASE i THEN true END", 7, "Expected WHEN"),
        ("CASE i WHEN 'a' THEN true END", 12, "use CAST"),
        ("EXISTS (SELECT 1)", 0, "EXISTS is not supported"),
        ("s SIMILAR TO 'a'", 2, "SIMILAR is not supported"),
        ("i = +1", 4, "Expected an expression"),
        ("i = 1abc", 4, "Malformed number"),
        ("(1, 2) = i", 0, "Tuples"),
        ("s LIKE 'a' ESCAPE '!!'", 18, "escape"),
        ("s LIKE s ESCAPE '!'", 16, "literal"),
        ("s LIKE 'a' ESCAPE s", 18, "escape"),
        ("i IS UNKNOWN", 0, "needs booleans"),
        ("ts + INTERVAL '1 foo' > ts", 14, "Expected an interval"),
        ("ts * INTERVAL '1 day' > ts", 3, "does not take"),
        ("i = 1 / 0", 6, "divide by zero"),
        ("i = CAST('x' AS INT)", 4, "Cannot convert the string 'x'"),
        ("EXTRACT(century FROM ts) = 20", 0, "does not know 'century'"),
        ("date_part(s, ts) = 1", 0, "constant"),
        ("SUBSTRING(s FROM 'a') = 'b'", 17, "needs an integer"),
        ("POSITION('a' IN i) = 1", 16, "needs a string"),
        ("chr(-1) = 'a'", 0, "not a Unicode character"),
        ("random(1) > 0", 0, "takes 0 argument"),
        ('st."x" = 1', 3, "back-ticks"),
        ("CAST(i AS FOO) = 1", 10, "Unsupported data type 'FOO'"),
        ("CAST(i AS DECIMAL(99,2)) = 1", 10, "parameters"),
        ("x'616' = bin", 0, "hexadecimal"),
        ("i = 1 \x00", 6, "Unexpected character"),
        ("foo(i)", 0, "Invalid function 'foo'"),
        ("i = 1 AND lowre(s) = 'a'", 10, "did you mean 'lower'"),
        ("count(i) = 1", 0, "aggregate 'count'"),
        ("abs(i, 2) = 1", 0, "takes 1 argument"),
        ("lower(i) = '1'", 6, "needs a string"),
        ("array_has(i, 1)", 10, "needs a list"),
        ("array_has(li, 'a')", 14, "Wrong literal"),
        ("coalesce(i, 'a') = 'a'", 0, "one type"),
        ("i = 1.5", 4, "not comparable with int32"),
        ("i = 1.0", 4, "not comparable with int32"),
        ("u8 = 300", 5, "outside the range of uint8"),
        ("u8 = -1", 5, "outside the range"),
        ("u8 IN (1, 300)", 10, "outside the range"),
        ("u8 BETWEEN 1 AND 300", 17, "outside the range"),
        ("300 = u8", 0, "outside the range"),
        ("big = 9223372036854775808", 6, "outside the range"),
        ("i = '1'", 4, "use CAST"),
        ("s = 1", 4, "use CAST"),
        ("f = '1'", 4, "use CAST"),
        ("b = 1", 4, "use CAST"),
        ("bin = 'a'", 6, "use CAST"),
        ("d = '2024-01-01'", 4, "write date '2024-01-01'"),
        ("ts > '2024-01-01'", 5, "write timestamp '2024-01-01'"),
        ("st.x = 1.5", 7, "not comparable"),
        ("li = 1", 5, "use CAST"),
        ("s = i", 2, "Cannot compare string with int32"),
        ("i AND b", 0, "needs booleans"),
        ("NOT s", 4, "needs booleans"),
        ("i IS TRUE", 0, "needs booleans"),
        ("i LIKE '1'", 0, "LIKE needs strings"),
        ("-s = 'a'", 0, "signed number"),
        ("-u8 = 1", 0, "signed number"),
        ("s + 1 = 2", 2, "does not take string and int64"),
        ("i.x = 1", 0, "only structs"),
        ("li.x = 1", 0, "only structs"),
        ("i[1] = 1", 1, "Only lists"),
        ("date 'foo' = d", 0, "foo"),
        ("timestamp 'foo' = ts", 0, "foo"),
        ("CAST(li AS INT) = 1", 0, "Unsupported CAST"),
        ("arrow_cast(i, 'Foo') = 1", 14, "Arrow type"),
        ("date_trunc('foo', ts) = ts", 0, "does not know 'foo'"),
        ("1 < i < 5", 8, "use CAST"),
    ],
)
def test_position_and_message(text, position, message, table):
    with pytest.raises(FilterError) as caught:
        compile_filter(text, table.schema)
    assert message in str(caught.value)
    assert caught.value.position == position
    assert str(caught.value).endswith(" " * position + "^")
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("zd = 1", "did you mean"),
        ("`camelcase` = 1", "did you mean 'CamelCase'"),
        ("`With Space` = 1", "did you mean 'with space'"),
        ("st.X = 1", "did you mean 'x'"),
        ("st['zz'] = 1", "No field named 'zz' in struct 'st'"),
        ("i = 1 AND wrods IS NULL", "did you mean 'words'"),
    ],
)
def test_unknown_names(text, suggestion, table):
    with pytest.raises(FieldNotFoundError, match="No field named") as caught:
        compile_filter(text, table.schema)
    assert suggestion in str(caught.value)


@pytest.mark.parametrize("text", ["i", "i + 1", "s", "NULL", "'a'", "st", "lower(s)"])
def test_not_boolean(text, table):
    with pytest.raises(FilterError, match="does not return a boolean"):
        compile_filter(text, table.schema)


def test_ambiguous_case():
    schema = pa.schema([("Ab", pa.int32()), ("aB", pa.int32())])
    assert compile_filter("Ab = 1", schema).columns == ("Ab",)
    with pytest.raises(FilterError, match="could be any of"):
        compile_filter("ab = 1", schema)


def test_deep_nesting_is_refused(table):
    with pytest.raises(FilterError, match="nested"):
        compile_filter("(" * 5000 + "b" + ")" * 5000, table.schema)
    with pytest.raises(FilterError, match="nested"):
        compile_filter("NOT " * 5000 + "b", table.schema)
    with pytest.raises(FilterError, match="nested"):
        compile_filter("i" + " + i" * 5000 + " = 1", table.schema)


def test_long_conjunctions_are_fine(table, batch):
    text = " OR ".join(f"i = {number}" for number in range(2000))
    assert compile_filter(text, table.schema).mask(batch).true_count > 0


def test_wrong_argument(table):
    with pytest.raises(TypeError, match="not int"):
        compile_filter(5, table.schema)
    assert compile_filter(None, table.schema) is None


def test_batch_without_the_column(table, batch):
    compiled = compile_filter("i = 1", table.schema)
    with pytest.raises(InvalidInputError, match="lacks the column 'i'"):
        compiled.mask(batch.select(["s"]))


@pytest.mark.parametrize("text", ["i / 0 = 1", "CAST(s AS INT) = 1", "CAST(f AS INT) = 1"])
def test_errors_of_the_data(text, table, batch, reference_rows):
    with pytest.raises(pa.ArrowInvalid):
        reference_rows(text)
    with pytest.raises(pa.ArrowInvalid):
        compile_filter(text, table.schema).mask(batch)


def test_expression_errors(table):
    with pytest.raises(FieldNotFoundError):
        compile_expression("nope + 1", table.schema)
    with pytest.raises(FilterError):
        compile_expression("i +", table.schema)


WORDS = [
    "i",
    "f",
    "s",
    "b",
    "d",
    "ts",
    "dec",
    "st",
    "li",
    "words",
    "bin",
    "st.x",
    "li[1]",
    "u8",
    "1",
    "0",
    "-7",
    "300",
    "1.5",
    "'a'",
    "'2024-01-01'",
    "X'61'",
    "NULL",
    "TRUE",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "=",
    "<",
    ">=",
    "!=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "::",
    "<<",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "LIKE",
    "BETWEEN",
    "DISTINCT",
    "FROM",
    "CAST(",
    "TRY_CAST(",
    "AS",
    "INT",
    "STRING",
    "DATE",
    "DECIMAL(10,2)",
    "TIMESTAMP",
    "abs(",
    "lower(",
    "coalesce(",
    "nullif(",
    "array_has(",
    "array_length(",
    "concat(",
    "date_part(",
    "'year'",
    "round(",
    "make_array(",
    "struct(",
    "now()",
    "INTERVAL",
    "'1",
    "day'",
    "x",
    "`",
    '"',
    ";",
]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join))
def test_any_text_compiles_or_is_refused(text):
    schema = _SCHEMA
    try:
        compiled = compile_expression(text, schema)
    except LanceError:
        return
    try:
        values = compiled.evaluate(_EMPTY)
    except pa.ArrowInvalid:  # constants that fail only when they run, such as 1 / 0 beside a column
        return
    assert values.type == compiled.type


@settings(max_examples=200)
@given(st.text(max_size=30))
def test_any_characters_are_refused_politely(text):
    with contextlib.suppress(LanceError):
        compile_filter(text, _SCHEMA)


_SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("u8", pa.uint8()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("dec", pa.decimal128(15, 2)),
        ("bin", pa.binary()),
        ("st", pa.struct([("x", pa.int32())])),
        ("li", pa.list_(pa.int32())),
        ("words", pa.list_(pa.string())),
    ]
)
_EMPTY = pa.RecordBatch.from_arrays([pa.array([None], field.type) for field in _SCHEMA], schema=_SCHEMA)
