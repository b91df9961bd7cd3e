"""Tests of every dataset type in Spark, and every Spark type in a dataset: same values, or an error with a name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import lance as reference
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import types as T

import lance_dataset
from lance_dataset.errors import UnsupportedError
from lance_dataset.spark.batches import conform_batch
from lance_dataset.spark.types import FIXED_SIZE_KEY, arrow_schema, spark_schema

UTC = dt.timezone.utc
MOMENT = dt.datetime(2024, 3, 10, 7, 30, 0, 123456)
ZONED = dt.datetime(2024, 7, 1, 12, 0, 0, 5, tzinfo=UTC)
ITEM = pa.field("item", pa.int32())

# name: Arrow type of the dataset, values, Spark type, values seen in Spark (None: the same)
READ = {
    "bool": (pa.bool_(), [True, None, False], "boolean", None),
    "int8": (pa.int8(), [-128, None, 127], "tinyint", None),
    "int16": (pa.int16(), [-(2**15), None, 2**15 - 1], "smallint", None),
    "int32": (pa.int32(), [-(2**31), None, 2**31 - 1], "int", None),
    "int64": (pa.int64(), [-(2**63), None, 2**63 - 1], "bigint", None),
    "uint8": (pa.uint8(), [0, None, 255], "smallint", None),
    "uint16": (pa.uint16(), [0, None, 2**16 - 1], "int", None),
    "uint32": (pa.uint32(), [0, None, 2**32 - 1], "bigint", None),
    "uint64": (pa.uint64(), [0, None, 2**64 - 1], "decimal(20,0)", [Decimal(0), None, Decimal(2**64 - 1)]),
    "float16": (pa.float16(), [1.5, None, -65504.0], "float", None),
    "float32": (pa.float32(), [1.5, None, -0.25], "float", None),
    "float64": (pa.float64(), [0.1, None, float("inf")], "double", None),
    "decimal": (pa.decimal128(38, 4), [Decimal("1.0001"), None, Decimal("-9.5000")], "decimal(38,4)", None),
    "decimal256": (pa.decimal256(20, 2), [Decimal("1.25"), None, Decimal("-1.25")], "decimal(20,2)", None),
    "string": (pa.string(), ["", None, "naïve 🙂"], "string", None),
    "large_string": (pa.large_string(), ["a", None, "b"], "string", None),
    "binary": (pa.binary(), [b"", None, b"\x00\xff"], "binary", None),
    "large_binary": (pa.large_binary(), [b"a", None, b"b"], "binary", None),
    "fixed_binary": (pa.binary(2), [b"ab", None, b"\x00\xff"], "binary", None),
    "date32": (pa.date32(), [dt.date(1900, 1, 1), None, dt.date(2200, 12, 31)], "date", None),
    "date64": (pa.date64(), [dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)], "date", None),
    "ntz_s": (pa.timestamp("s"), [MOMENT.replace(microsecond=0), None, None], "timestamp_ntz", None),
    "ntz_us": (pa.timestamp("us"), [MOMENT, None, dt.datetime(1800, 1, 1)], "timestamp_ntz", None),
    "ntz_ns": (pa.timestamp("ns"), [MOMENT, None, None], "timestamp_ntz", None),
    "ts_utc": (pa.timestamp("us", "UTC"), [ZONED, None, None], "timestamp", None),
    "ts_ny": (pa.timestamp("ms", "America/New_York"), [ZONED.replace(microsecond=5000), None, None], "timestamp", None),
    "duration": (pa.duration("ms"), [dt.timedelta(days=2, milliseconds=5), None, None], "interval day to second", None),
    "time32": (pa.time32("s"), [dt.time(23, 59, 59), None, None], "time(6)", None),
    "time64": (pa.time64("ns"), [dt.time(1, 2, 3, 4), None, None], "time(6)", None),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), ["x", None, "x"], "string", None),
    "list": (pa.list_(ITEM), [[1, None], None, []], "array<int>", None),
    "list_u8": (pa.list_(pa.uint8()), [[255], None, []], "array<smallint>", None),
    "large_list": (pa.large_list(pa.large_string()), [["a"], None, []], "array<string>", None),
    "vector": (pa.list_(pa.float32(), 2), [[1.0, 2.0], None, [3.0, 4.0]], "array<float>", None),
    "nested_list": (pa.list_(pa.list_(ITEM)), [[[1], None], None, []], "array<array<int>>", None),
    "struct": (
        pa.struct([("a", pa.uint32()), ("b", pa.list_(pa.string()))]),
        [{"a": 2**32 - 1, "b": ["x"]}, {"a": 1, "b": []}, {"a": None, "b": None}],
        "struct<a:bigint,b:array<string>>",
        None,
    ),
}  # fmt: skip


def plain(value):
    """Convert rows to dicts and moments to UTC, so that values of Spark and of Arrow compare."""
    if isinstance(value, T.Row):
        return {name: plain(part) for name, part in value.asDict().items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


def in_utc(array: pa.ChunkedArray) -> list:
    if pa.types.is_timestamp(array.type) and array.type.tz:
        return [None if v is None else v.astimezone(UTC) for v in array.cast(pa.timestamp("us", "UTC")).to_pylist()]
    return array.to_pylist(maps_as_pydicts="strict") if pa.types.is_map(array.type) else array.to_pylist()


@pytest.fixture(scope="module")
def all_types(session, tmp_path_factory):
    table = pa.table({name: pa.array(values, arrow) for name, (arrow, values, _, _) in READ.items()})
    uri = str(tmp_path_factory.mktemp("types") / "all.lance")
    lance_dataset.write_dataset(table, uri)
    return session.read.format("lance").load(uri)


def test_spark_types(all_types):
    assert {f.name: f.dataType.simpleString() for f in all_types.schema.fields} == {
        name: spark for name, (_, _, spark, _) in READ.items()
    }
    assert all_types.schema["vector"].metadata == {FIXED_SIZE_KEY: 2}


def test_values(all_types):
    table = all_types.toArrow()
    for name, (_, values, _, seen) in READ.items():
        assert in_utc(table[name]) == (values if seen is None else seen), name


def test_values_through_the_jvm(all_types):
    """Spark's SQL prints the same values, with moments in the time zone of the session."""
    row = all_types.selectExpr(
        "cast(uint64 as string) u", "cast(ntz_us as string) n", "cast(ts_utc as string) t", "cast(time64 as string) m",
        "cast(duration as string) d", "struct.a a", "hex(fixed_binary) f",
    ).collect()[0]  # fmt: skip
    assert tuple(row) == (
        "0", "2024-03-10 07:30:00.123456", "2024-07-01 08:00:00.000005", "01:02:03.000004",
        "INTERVAL '2 00:00:00.005' DAY TO SECOND", 2**32 - 1, "6162",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arrow", "value", "message"),
    [
        (pa.timestamp("ns"), 1001, "Column 'x' of type timestamp.* without loss"),
        (pa.time64("ns"), 1001, "Column 'x' of type time64.* without loss"),
        (pa.duration("s"), 2**62, "Column 'x' of type duration.* without loss"),
    ],
)
def test_values_that_spark_cannot_hold_are_errors(spark, uri, arrow, value, message):
    lance_dataset.write_dataset(pa.table({"x": pa.array([value], pa.int64()).cast(arrow), "y": [1]}), uri)
    with pytest.raises(PythonException, match=message):
        spark.read.format("lance").load(uri).collect()
    assert spark.read.format("lance").option("columns", "y").load(uri).collect() == [(1,)]


def test_columns_without_a_spark_type_are_refused_by_name(spark, uri):
    blob = pa.field("picture", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table(
        [pa.array([b"abc"], pa.large_binary()), pa.array([1])], schema=pa.schema([blob, ("y", pa.int64())])
    )
    reference.write_dataset(table, uri, data_storage_version="2.0")
    with pytest.raises(AnalysisException, match=r"Column 'picture' is (a blob column|of the extension type)"):
        spark.read.format("lance").load(uri)
    assert spark.read.format("lance").option("columns", "y").load(uri).collect() == [(1,)]


@pytest.mark.parametrize(
    "field",
    [
        pa.field("x", pa.decimal256(60, 2)),
        pa.field("x", pa.month_day_nano_interval()),
        pa.field("x", pa.struct([pa.field("x", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})])),
    ],
)
def test_refused_types(field):
    with pytest.raises(UnsupportedError, match=r"Column 'x(\.x)?' is of .*type"):
        spark_schema(pa.schema([field]))


def test_spark_types_survive_a_round_trip(spark, uri):
    spark.conf.set("spark.sql.timeType.enabled", "true")
    frame = spark.sql(
        """SELECT cast(1 AS tinyint) a, cast(2 AS smallint) b, 3 c, 4L d, cast(0.5 AS float) e, 0.1d f,
                  cast(1.5 AS decimal(20,4)) g, 'text' h, X'00ff' i, date'2024-02-29' j,
                  timestamp'2024-07-01 08:00:00.000005' k, timestamp_ntz'2024-07-01 08:00:00.000005' l,
                  interval '1 02:03:04.5' day to second m, time'10:11:12.123456' n, true o,
                  array(1, null) p, named_struct('x', 1, 'y', array(named_struct('z', 'deep'))) q,
                  cast(null AS int) t"""
    )
    frame = (
        spark.range(2)
        .crossJoin(frame)
        .selectExpr(*[name if name == "q" else f"if(id = 0, {name}, null) {name}" for name in frame.columns])
    )
    frame.write.format("lance").mode("append").save(uri)
    found = spark.read.format("lance").load(uri)
    assert found.schema.simpleString() == frame.schema.simpleString()
    as_text = [f"cast({name} as string) {name}" for name in frame.columns]
    assert sorted(map(str, found.selectExpr(*as_text).collect())) == sorted(
        map(str, frame.selectExpr(*as_text).collect())
    )
    stored = reference.dataset(uri).to_table().sort_by("a")
    assert stored.schema.field("k").type == pa.timestamp("us", "UTC")
    assert stored["k"][0].as_py() == dt.datetime(2024, 7, 1, 12, 0, 0, 5, tzinfo=UTC)
    assert stored["l"][0].as_py() == dt.datetime(2024, 7, 1, 8, 0, 0, 5)
    assert stored["q"].to_pylist() == [{"x": 1, "y": [{"z": "deep"}]}] * 2
    assert all(field.nullable for field in stored.schema)


def test_vector_column_by_metadata_and_back(spark, uri, tmp_path):
    frame = spark.sql("SELECT id, array(cast(id AS float), 0.5f) v FROM range(4)")
    frame = frame.withMetadata("v", {FIXED_SIZE_KEY: 2})
    frame.write.format("lance").mode("append").save(uri)
    assert reference.dataset(uri).schema.field("v").type == pa.list_(pa.float32(), 2)
    again = spark.read.format("lance").load(uri)
    again.write.format("lance").mode("append").save(str(tmp_path / "copy.lance"))
    copied = lance_dataset.dataset(str(tmp_path / "copy.lance")).to_table().sort_by("id")
    assert copied.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert copied["v"].to_pylist() == [[float(i), 0.5] for i in range(4)]


def test_vectors_of_a_wrong_length_are_refused(spark, uri):
    frame = spark.sql("SELECT array(1.0f, 2.0f, 3.0f) v").withMetadata("v", {FIXED_SIZE_KEY: 2})
    with pytest.raises(PythonException, match="Column 'v'"):
        frame.write.format("lance").mode("append").save(uri)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT parse_json('1') v", "Column 'v' is of the Spark type variant"),
        ("SELECT interval '1' year v", "Column 'v' is of the Spark type interval year"),
        ("SELECT named_struct('w', interval '1' year) v", "Column 'v.w' is of the Spark type interval year"),
    ],
)
def test_spark_types_that_cannot_be_stored(spark, uri, sql, message):
    with pytest.raises(AnalysisException, match=message):
        spark.sql(sql).write.format("lance").mode("append").save(uri)


def test_maps_and_null_structs_are_converted():
    """Maps and null structs, which files of 2.0 cannot store, are read from files of later versions."""
    struct = pa.struct([("a", pa.uint32())])
    table = pa.table(
        {
            "m": pa.array([[("k", 200)], None, []], pa.map_(pa.large_string(), pa.uint8())),
            "s": pa.array([{"a": 1}, None, {"a": None}], struct),
        }
    )
    spark = spark_schema(table.schema)
    assert spark.simpleString() == "struct<m:map<string,smallint>,s:struct<a:bigint>>"
    batch = conform_batch(table.to_batches()[0], arrow_schema(spark), "read into Spark")
    assert batch.column("m").to_pylist() == [[("k", 200)], None, []]
    assert batch.column("s").to_pylist() == [{"a": 1}, None, {"a": None}]


def test_layouts_match_what_spark_expects():
    from pyspark.sql.pandas.types import to_arrow_schema

    spark = T.StructType(
        [
            T.StructField("a", T.ArrayType(T.ArrayType(T.TimestampType(), False)), False),
            T.StructField("m", T.MapType(T.StringType(), T.TimestampNTZType(), False)),
            T.StructField("s", T.StructType([T.StructField("d", T.DecimalType(7, 3), False)])),
            T.StructField("n", T.NullType()),
        ]
    )
    assert arrow_schema(spark).equals(to_arrow_schema(spark, timezone="UTC"), check_metadata=False)
