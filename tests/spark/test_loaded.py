"""Tests of the shortcuts of loaded frames: they read less, and show the same."""

from __future__ import annotations

import random
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_dataset
from lance_dataset.errors import UnsupportedError
from lance_dataset.spark.batches import with_unscaled_decimals

WIDE = Context(prec=40)


@pytest.fixture
def stored(uri):
    lance_dataset.write_dataset(pa.table({"n": range(100)}), uri, max_rows_per_file=40)
    lance_dataset.dataset(uri).delete("n % 10 = 9")
    return uri


def load(spark, uri, **options):
    return spark.read.format("lance").options(**options).load(uri)


def test_counts_need_no_job(spark, stored):
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("counts", "")
    frame = load(spark, stored)
    assert frame.count() == 90
    assert load(spark, stored, filter="n < 30").count() == 27
    assert load(spark, stored, version=1, columns="n").count() == 100
    assert load(spark, stored, limit=7).count() == 7
    assert list(tracker.getJobIdsForGroup("counts")) == []
    assert frame.filter("n < 30").count() == 27
    lance_dataset.dataset(stored).delete("n < 50")
    assert frame.count() == 90


def test_limits_read_as_many_rows_as_they_need(spark, stored, capsys):
    frame = load(spark, stored, columns="n")
    assert [row.n for row in frame.limit(3).collect()] == [0, 1, 2]
    assert frame.limit(3).rdd.getNumPartitions() == 1
    assert (frame.first().n, len(frame.take(5)), len(frame.head(2))) == (0, 5, 2)
    assert frame.limit(0).collect() == []
    assert load(spark, stored, limit=2).limit(5).count() == 2
    capsys.readouterr()
    frame.show(2)
    assert capsys.readouterr().out == "+---+\n|  n|\n+---+\n|  0|\n|  1|\n+---+\nonly showing top 2 rows\n"
    load(spark, stored, filter="n > 97").show()
    assert capsys.readouterr().out == "+---+\n|  n|\n+---+\n| 98|\n+---+\n\n"


def test_one_reader_loads_the_newest_version_each_time(spark, stored):
    reader = spark.read.format("lance")
    assert reader.load(stored).count() == 90
    lance_dataset.dataset(stored).delete("n >= 10")
    assert reader.load(stored).count() == 9


def test_other_frames_stay_as_they_are(spark, stored, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "p"))
    for frame in (
        spark.read.parquet(str(tmp_path / "p")),
        spark.read.format("lance").schema("n bigint").load(stored),
        spark.read.load(stored, format="lance", schema="n bigint"),
    ):
        assert "count" not in vars(frame)
        assert frame.limit(1).count() == 1


def test_spark_knows_the_size_of_a_frame(spark, stored):
    def size(frame):
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert 100 * 8 <= size(load(spark, stored)) <= 100 * 32
    assert size(load(spark, stored, limit=3)) <= 3 * 32
    joined = load(spark, stored).alias("a").join(load(spark, stored).alias("b"), "n")
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
    assert joined.filter("n < 40").count() == 36


def test_tasks_of_a_frame_read_their_shares(spark, stored):
    for count in (1, 3, 7, 100):
        frame = load(spark, stored, num_partitions=count)
        assert frame.rdd.getNumPartitions() == count
        assert [row.n for row in frame.collect()] == [n for n in range(100) if n % 10 != 9]
    empty = stored + ".empty"
    lance_dataset.write_dataset(pa.table({"n": pa.array([], pa.int64())}), empty)
    assert load(spark, empty).collect() == []


def test_decimals_that_spark_makes_of_integers_are_the_same(spark, uri):
    chance = random.Random(3)
    columns = {}
    for precision, scale in [(1, 0), (5, 5), (12, 2), (18, 0), (18, 18), (19, 2), (38, 10)]:
        most = 10**precision - 1
        numbers = [None, 0, 1, -1, most, -most, *(chance.randint(-most, most) for _ in range(50))]
        values = [None if number is None else Decimal(number).scaleb(-scale, WIDE) for number in numbers]
        columns[f"d{precision}_{scale}"] = pa.array(values, pa.decimal128(precision, scale))
    rows = pa.table(
        {"n": range(56), **columns, "s": pa.array([{"d": value} for value in columns["d12_2"].to_pylist()])}
    )
    lance_dataset.write_dataset(rows, uri, max_rows_per_file=30)
    frame = load(spark, uri)
    for kept in (frame, frame.filter("n >= 1"), frame.filter("d12_2 < 0 AND d18_0 IS NOT NULL")):
        selected = kept.select("n", "d5_5", *columns)
        numbers = [row.n for row in selected.collect()]
        assert selected.orderBy("n").collect() == [
            tuple(rows[name][number].as_py() for name in selected.columns) for number in sorted(numbers)
        ]
        assert selected.schema == frame.select("n", "d5_5", *columns).schema
    assert frame.filter("d12_2 < 0").count() == pc.sum(pc.less(rows["d12_2"], pa.scalar(Decimal(0)))).as_py()
    totals = frame.agg(dict.fromkeys(("d1_0", "d12_2", "d18_0"), "sum")).first()
    for name in ("d1_0", "d12_2", "d18_0"):
        assert totals[f"sum({name})"] == sum(value for value in rows[name].to_pylist() if value is not None)
    assert [row.d for row in frame.select("s.d").collect()] == rows["d12_2"].to_pylist()


def test_unscaled_decimals():
    values = pa.array([Decimal("1.25"), None, Decimal("-0.01"), None], pa.decimal128(5, 2))
    batch = pa.record_batch({"d": values, "n": pa.array([1, 2, 3, 4]), "wide": values.cast(pa.decimal128(30, 2))})
    assert with_unscaled_decimals(batch)["d"].to_pylist() == [125, None, -1, None]
    assert with_unscaled_decimals(batch.slice(1, 2))["d"].to_pylist() == [None, -1]
    assert with_unscaled_decimals(batch.slice(2, 1))["d"].to_pylist() == [-1]
    assert with_unscaled_decimals(batch.slice(4)).schema.types == [pa.int64(), pa.int64(), pa.decimal128(30, 2)]
    assert with_unscaled_decimals(batch).select(["n", "wide"]) == batch.select(["n", "wide"])
    words = pa.py_buffer(np.array([5, 7, 6, 0], "<i8"))
    hidden = pa.Array.from_buffers(pa.decimal128(5, 2), 2, [pa.py_buffer(b"\x02"), words])
    assert with_unscaled_decimals(pa.record_batch({"d": hidden}))["d"].to_pylist() == [None, 6]
    shown = pa.Array.from_buffers(pa.decimal128(5, 2), 2, [None, words])
    with pytest.raises(UnsupportedError, match=r"Column 'd' of type decimal128\(5, 2\) holds a value of more digits"):
        with_unscaled_decimals(pa.record_batch({"d": shown}))
