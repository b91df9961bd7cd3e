"""Tests of the shortcuts of loaded frames: they read less, and show the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_dataset


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
