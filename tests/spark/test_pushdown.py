"""Tests of pushed-down filters: they select the rows that Spark selects."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

import lance_dataset
from lance_dataset.spark.pushdown import translate

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
NAN = float("nan")
UTC = dt.timezone.utc
DAY = dt.date
MONEY = pa.decimal128(10, 2)

TABLE = pa.table(
    {
        "row": pa.array(range(6)),
        "i8": pa.array([-128, -1, None, 1, 5, 127], pa.int8()),
        "u8": pa.array([0, 1, 2, None, 200, 255], pa.uint8()),
        "u64": pa.array([0, 1, None, 5, 2**63, 2**64 - 1], pa.uint64()),
        "f": pa.array([NAN, 1.5, None, -0.0, 0.0, float("-inf")], pa.float64()),
        "f32": pa.array([0.1, NAN, -0.0, 1.5, None, float("inf")], pa.float32()),
        "half": pa.array([0.5, 1, None, 2, 3, 4], pa.float16()),
        "d": pa.array([Decimal(t) if t else None for t in ("1.50", "-2", "", "0", "99999999.99", "7.25")], MONEY),
        "s": pa.array(["a%b", "a_b", None, "it's", 'q"\\`', ""]),
        "ls": pa.array(["Zebra", "äpfel", "🙂", None, "zebra", "\n"], pa.large_string()),
        "b": pa.array([b"ab", b"", None, b"\x00", b"\xff", b"abc"]),
        "bo": pa.array([True, False, None, True, False, None]),
        "day": pa.array([DAY(1969, 12, 31), DAY(2024, 2, 29), None, DAY(1, 1, 1), DAY(9999, 12, 31), DAY(1970, 1, 1)]),
        "n": pa.array([0, 1, None, -1, 1_700_000_000_123_456, 5], pa.timestamp("us")),
        "z": pa.array([0, 1, None, -1, 1_700_000_000_123_456, 5], pa.timestamp("us", "UTC")),
        "ms": pa.array([0, 1, None, -1, 1_700_000_000_123, 5], pa.timestamp("ms")),
        "st": pa.array(
            [{"x": x, "y z": text} for x, text in ((1, "a"), (None, "b"), (None, None), (3, None), (4, "a"), (1, ""))]
        ),
        "l": pa.array([[1], [], None, [None], [2, 3], [4]]),
        "dict": pa.array(["a", "b", None, "a", "c", "b"]).dictionary_encode(),
    }
)  # fmt: skip

CONDITIONS = [
    "i8 NOT IN (1, 5)", "i8 IN (1, NULL)", "NOT (i8 <=> 1)", "i8 >= -128", "u64 > 9223372036854775807",
    "f > 1", "f <= 1.5", "f IN (0.0d, 1.5d)", "f >= double('NaN')", "f32 = 0.1", "NOT (f32 > 1)", "d > 1.505",
    "s = 'it''s'", "s LIKE '%\\\\%%'", "NOT startswith(s, 'a')", "ls > 'z'", "b IN (X'00', X'ff')", "NOT bo",
    "day > date'1969-12-31' AND z < timestamp'2023-11-14 17:13:20.123456'", "st.`y z` LIKE 'a%' AND st.x IS NOT NULL",
    "dict = 'a'", "i8 = 1 OR f > 1",
]  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    uri = str(tmp_path_factory.mktemp("pushdown") / "filters.lance")
    lance_dataset.write_dataset(TABLE, uri)
    return uri


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Return a dataset of 3 fragments with deleted rows."""
    uri = str(tmp_path_factory.mktemp("parts") / "parts.lance")
    rows = pa.table({"n": range(90), "t": [f"t{n % 7}" for n in range(90)], "s": [{"x": n % 5} for n in range(90)]})
    lance_dataset.write_dataset(rows, uri, max_rows_per_file=30)
    lance_dataset.dataset(uri).delete("n % 10 = 9")
    return uri


@pytest.fixture
def pushing(spark):
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.set(PUSHDOWN, "false")


def selected(conditions, load) -> dict[str, list[int]]:
    """Return the rows for each condition, with one Spark job for all of them."""
    union = None
    for number, condition in enumerate(conditions):
        part = load().filter(condition).selectExpr(f"{number} AS number", "row")
        union = part if union is None else union.unionAll(part)
    found: dict[str, list[int]] = {condition: [] for condition in conditions}
    for number, row in union.coalesce(2).collect():
        found[conditions[number]].append(row)
    return {condition: sorted(rows) for condition, rows in found.items()}


def test_the_same_rows_with_and_without_pushdown(pushing, stored):
    columns = [F.expr(condition).alias(str(number)) for number, condition in enumerate(CONDITIONS)]
    rows = pushing.read.format("lance").load(stored).select("row", *columns).collect()
    by_spark = {c: [row.row for row in rows if row[str(number)]] for number, c in enumerate(CONDITIONS)}
    pushdown = pushing.read.format("lance").option("pushdown", "true")
    assert selected(CONDITIONS, lambda: pushdown.load(stored)) == by_spark


def test_queries_narrow_their_scans_to_the_same_rows(spark, stored):
    """Without the option, a rule of the optimizer tells each scan what its query needs; see the package narrowing."""
    chosen = CONDITIONS[::3]  # a plan of all takes long to make
    columns = [F.expr(condition).alias(str(number)) for number, condition in enumerate(chosen)]
    frame = spark.read.format("lance").load(stored)
    rows = frame.select("row", *columns).collect()
    by_spark = {c: [row.row for row in rows if row[str(number)]] for number, c in enumerate(chosen)}
    assert selected(chosen, lambda: frame) == by_spark
    frame.createOrReplaceTempView("filters")
    found = spark.sql("SELECT row FROM filters WHERE 1 <= i8 AND i8 IN (-128,1,2,3,4,5,6,7,8,9,10,11,127) OR bo")
    assert [row.row for row in found.collect()] == [0, 3, 4, 5]


def test_conditions_that_are_too_deep_or_have_java_time_zones_stay_with_spark(spark, stored):
    frame = spark.read.format("lance").load(stored)
    deep = " OR ".join(f"(i8 = {number} AND s = 'a_b')" for number in range(-1, 250))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "PST")  # Python has no such zone
    try:
        assert [row.row for row in frame.filter(deep).select("row").collect()] == [1]
        assert frame.filter("z > timestamp'2000-01-01 00:00:00'").select("row").collect()[0].row == 4
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def requests(frame) -> list[str]:
    """Return what the plan of a frame asks of its scans."""
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    return [line for line in plan.splitlines() if "lance_request" in line and "named_struct" in line]


def test_scans_get_the_columns_conditions_and_limits_of_their_query(spark, parts):
    frame = spark.read.format("lance").load(parts)
    rest = [n for n in range(90) if n % 10 != 9]
    asked = frame.filter("n > 50 AND length(t) = 2").select("n")
    assert '"columns":[0,1]' in requests(asked)[0]
    assert '{"call":"GreaterThan","arguments":[{"column":0},{"value":0}]}' in requests(asked)[0]
    assert [row.n for row in asked.collect()] == [n for n in rest if n > 50]
    both = frame.filter("n < 20").union(frame.filter("s.x = 3"))
    assert len(requests(both)) == 2
    assert sorted(row.n for row in both.collect()) == sorted(
        [n for n in rest if n < 20] + [n for n in rest if n % 5 == 3]
    )
    joined = frame.alias("a").join(frame.alias("b"), F.expr("a.n = b.n + 1")).filter("a.t = 't1'").selectExpr("b.n")
    assert sorted(row.n for row in joined.collect()) == [n for n in rest if (n + 1) % 7 == 1 and n + 1 in rest]
    assert '"limit":4' in requests(frame.select("t").limit(4))[0]
    assert [row.t for row in frame.select("t").limit(4).collect()] == ["t0", "t1", "t2", "t3"]
    assert [row.n for row in frame.filter("n >= 28").select("n").limit(2).collect()] == [28, 30]
    assert frame.select().count() == frame.agg(F.count("*")).first()[0] == len(rest)
    found = spark.sql("SELECT n FROM {f} WHERE n > (SELECT max(n) - 3 FROM {f})", f=frame)
    assert [row.n for row in found.collect()] == [86, 87, 88]
    cached = frame.cache()
    assert (cached.filter("n < 5").count(), cached.count()) == (5, len(rest))
    cached.unpersist()


def test_searches_and_limits_come_before_the_conditions_of_a_query(spark, parts):
    reader = spark.read.format("lance")
    assert reader.option("limit", 5).load(parts).filter("n > 2").count() == 2
    assert reader.option("order_by", "-n").option("limit", 3).load(parts).filter("n < 88").select("t").count() == 2


def test_conditions_stay_with_spark_if_the_option_says_so(spark, parts):
    frame = spark.read.format("lance").option("pushdown", "false").load(parts)
    assert requests(frame.filter("n < 5").select("n")) == []
    assert frame.filter("n < 5").select("n").count() == 5


def physical_plan(frame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def test_spark_leaves_pushed_filters_to_lance(pushing, stored):
    frame = pushing.read.format("lance").option("pushdown", "true").load(stored)
    plan = physical_plan(frame.filter("i8 = 1 AND row % 7 = 3"))
    assert "% 7" in plan
    assert "= 1)" not in plan.split("BatchScan")[0]


def test_without_the_option_one_frame_may_be_used_in_many_ways(pushing, stored):
    frame = pushing.read.format("lance").load(stored)
    assert frame.filter("row < 2").count() == 2
    assert frame.count() == 6
    assert frame.filter("row < 2").unionAll(frame.filter("row >= 2")).count() == 6
    assert "row" in physical_plan(frame.filter("row < 2")).split("BatchScan")[0]


def test_pushdown_needs_the_setting_of_spark(spark, stored):
    with pytest.raises(AnalysisException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        spark.read.format("lance").option("pushdown", "true").load(stored).filter("row < 2").collect()


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (EqualTo(("i8",), 1), "`i8` = 1"),
        (Not(In(("i8",), (1, 2))), "NOT (`i8` IN (1, 2))"),
        (GreaterThan(("f",), 1.0), "(`f` > 1.0 OR isnan(`f`))"),
        (LessThanOrEqual(("f32",), 0.5), "(`f32` <= 0.5 AND NOT isnan(`f32`))"),
        (EqualTo(("u64",), Decimal(2**64 - 1)), "`u64` = 18446744073709551615"),
        (EqualNullSafe(("s",), None), "`s` IS NULL"),
        (EqualTo(("s",), "it's"), "`s` = 'it''s'"),
        (StringStartsWith(("s",), "a%"), "starts_with(`s`, 'a%')"),
        (StringEndsWith(("st", "y z"), "\\"), "ends_with(`st`.`y z`, '\\')"),
        (StringContains(("ls",), "ä"), "contains(`ls`, 'ä')"),
        (EqualTo(("z",), dt.datetime(2024, 1, 1, tzinfo=UTC)), "`z` = timestamp(6) '2024-01-01 00:00:00.000000'"),
        (IsNull(("l",)), "`l` IS NULL"),
        (IsNotNull(("st", "x")), "`st`.`x` IS NOT NULL"),
    ],
)
def test_translations(condition, text):
    assert translate(condition, TABLE.schema) == text


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("i8",), 128),
        EqualTo(("i8",), "1"),
        EqualTo(("u8",), -1),
        EqualTo(("bo",), 1),
        EqualTo(("i8",), True),
        EqualTo(("f",), NAN),
        GreaterThan(("f",), float("inf")),
        EqualTo(("f32",), 0.1),
        GreaterThan(("half",), 1.0),
        In(("i8",), (1, None)),
        In(("i8",), ()),
        Not(In(("s",), ("a", None))),
        GreaterThan(("b",), b"a"),
        EqualTo(("d",), Decimal("1.505")),
        EqualTo(("n",), dt.datetime(2024, 1, 1, tzinfo=UTC)),
        EqualTo(("z",), dt.datetime(2024, 1, 1)),
        EqualTo(("ms",), dt.datetime(1970, 1, 1, 0, 0, 0, 500)),
        EqualTo(("day",), dt.datetime(2024, 1, 1)),
        EqualTo(("dict",), "a"),
        EqualTo(("l",), [1]),
        EqualTo(("st",), {"x": 1}),
        EqualTo(("nix",), 1),
        EqualTo(("i8", "x"), 1),
        StringStartsWith(("b",), "a"),
    ],
)
def test_what_is_not_exactly_the_same_stays_with_spark(condition):
    assert translate(condition, TABLE.schema) is None
