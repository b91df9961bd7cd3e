"""Tests of reading datasets in Spark."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import types as T

import lance_dataset
from lance_dataset.errors import InvalidInputError
from lance_dataset.spark.options import ReadOptions
from lance_dataset.spark.partitions import partition_count, plan_partitions


def numbers(rows: int, start: int = 0) -> pa.Table:
    values = np.arange(start, start + rows)
    return pa.table({"i": values, "half": values / 2, "name": [f"n{v}" for v in values]})


def read(spark, uri, **options):
    return spark.read.format("lance").options(**options).load(uri)


def column(frame, name="i"):
    return [row[name] for row in frame.select(name).collect()]


def test_reads_everything_in_order(spark, uri):
    table = numbers(1000)
    lance_dataset.write_dataset(table, uri, max_rows_per_file=300)
    frame = read(spark, uri, num_partitions=3)
    assert frame.schema.simpleString() == "struct<i:bigint,half:double,name:string>"
    assert frame.toArrow().to_pydict() == table.to_pydict()
    assert frame.count() == 1000


def test_one_fragment_is_read_by_several_tasks(spark, uri):
    lance_dataset.write_dataset(numbers(1001), uri)
    frame = read(spark, uri, num_partitions=4)
    sizes = frame.rdd.mapPartitions(lambda rows: [len(list(rows))]).collect()
    assert sorted(sizes) == [250, 250, 250, 251]
    assert column(frame) == list(range(1001))


def test_deleted_rows_are_absent_from_every_slice(spark, uri):
    dataset = lance_dataset.write_dataset(numbers(500), uri, max_rows_per_file=200)
    dataset.delete("i % 7 = 0 or (i > 120 and i < 260)")
    expected = [i for i in range(500) if not (i % 7 == 0 or 120 < i < 260)]
    for parts in (1, 3, 8):
        assert column(read(spark, uri, num_partitions=parts)) == expected


def test_rows_per_partition_and_batch_size(spark, uri):
    lance_dataset.write_dataset(numbers(100), uri)
    frame = read(spark, uri, rows_per_partition=30, batch_size=7)
    assert frame.rdd.getNumPartitions() == 4
    assert column(frame) == list(range(100))


def test_columns_option_selects_and_orders(spark, uri):
    lance_dataset.write_dataset(numbers(10), uri)
    for text in ("name, i", '["name", "i"]'):
        frame = read(spark, uri, columns=text)
        assert frame.columns == ["name", "i"]
        assert frame.first() == ("n0", 0)


def test_row_ids_can_be_asked_for(spark, uri):
    dataset = lance_dataset.write_dataset(numbers(6), uri, max_rows_per_file=4)
    rows = read(spark, uri, columns="_rowid,i,_rowaddr").collect()
    expected = dataset.scanner(columns=["i"], with_row_id=True, with_row_address=True).to_table().to_pydict()
    assert [row["_rowid"] for row in rows] == expected["_rowid"]
    assert [row["_rowaddr"] for row in rows] == expected["_rowaddr"]


def test_filter_option(spark, uri):
    lance_dataset.write_dataset(numbers(100), uri)
    assert column(read(spark, uri, filter="i % 10 = 3 AND name != 'n13'", num_partitions=3)) == [
        i for i in range(100) if i % 10 == 3 and i != 13
    ]
    assert column(read(spark, uri, filter="i < 50", columns="name").filter("name like '%9'"), "name") == [
        "n9", "n19", "n29", "n39", "n49"
    ]  # fmt: skip


def test_versions(spark, uri):
    lance_dataset.write_dataset(numbers(10), uri)
    lance_dataset.write_dataset(numbers(5, 10), uri, mode="append")
    assert read(spark, uri, version=1).count() == 10
    assert read(spark, uri).count() == 15


def test_a_frame_keeps_its_version(spark, uri):
    lance_dataset.write_dataset(numbers(10), uri)
    before = read(spark, uri)
    lance_dataset.write_dataset(numbers(5, 10), uri, mode="append")
    assert before.count() == 10
    assert before.filter("i >= 0").count() == 10
    lance_dataset.write_dataset(pa.table({"other": [1]}), uri, mode="overwrite")
    assert column(before) == list(range(10))


def test_empty_dataset(spark, uri):
    lance_dataset.write_dataset(numbers(0), uri)
    frame = read(spark, uri)
    assert frame.count() == 0
    assert frame.columns == ["i", "half", "name"]


def test_dataset_whose_rows_are_all_deleted(spark, uri):
    lance_dataset.write_dataset(numbers(10), uri).delete("true")
    assert read(spark, uri).collect() == []


def test_schema_given_by_the_user_selects_columns(spark, uri):
    lance_dataset.write_dataset(numbers(10), uri)
    frame = spark.read.format("lance").schema("name string, i bigint").load(uri)
    assert frame.first() == ("n0", 0)
    with pytest.raises(AnalysisException, match="Column 'i' is read as bigint, not as int"):
        spark.read.format("lance").schema("i int").load(uri).collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"versoin": "1"}, "did you mean 'version'"),
        ({"version": "7"}, "7"),
        ({"columns": "i,nam"}, "did you mean 'name'"),
        ({"columns": "i,,name"}, "an empty one"),
        ({"columns": "i,i"}, "names a column twice"),
        ({"batch_size": "0"}, "positive whole number"),
        ({"num_partitions": "2", "rows_per_partition": "3"}, "not both"),
        ({"storage_options": "{"}, "not a JSON object"),
    ],
)
def test_wrong_options(spark, uri, options, message):
    lance_dataset.write_dataset(numbers(3), uri)
    with pytest.raises(AnalysisException, match=message):
        read(spark, uri, **options)


def test_missing_dataset_and_wrong_filter(spark, uri):
    with pytest.raises(AnalysisException, match="DatasetNotFoundError"):
        read(spark, uri)
    lance_dataset.write_dataset(numbers(3), uri)
    with pytest.raises(AnalysisException, match="nix"):
        read(spark, uri, filter="nix = 1")


def test_joins_and_aggregates_in_sql(spark, uri):
    lance_dataset.write_dataset(numbers(100), uri, max_rows_per_file=40)
    read(spark, uri).createOrReplaceTempView("lance_numbers")
    row = spark.sql(
        "SELECT count(*), sum(a.i), max(b.name) FROM lance_numbers a JOIN lance_numbers b USING (i)"
    ).first()
    assert tuple(row) == (100, 4950, "n99")


@given(
    st.lists(st.integers(0, 50), max_size=12),
    st.integers(1, 20),
)
def test_partitions_cover_every_row_once(sizes, wanted):
    fragments = [(7 * i, rows) for i, rows in enumerate(sizes)]
    count = partition_count(sum(sizes), ReadOptions("x", num_partitions=wanted))
    partitions = plan_partitions(fragments, count)
    assert len(partitions) == count
    covered = [
        (part.fragment_id, row) for partition in partitions for part in partition.slices
        for row in range(part.start, part.stop)
    ]  # fmt: skip
    assert covered == [(fragment, row) for fragment, rows in fragments for row in range(rows)]
    shares = [sum(part.stop - part.start for part in partition.slices) for partition in partitions]
    assert max(shares) - min(shares) <= 1
    for partition in partitions:
        for part in partition.slices:
            assert part.whole == (part.stop - part.start == dict(fragments)[part.fragment_id])


def test_default_partition_count_uses_cores_and_bounds_shares(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    options = ReadOptions("x")
    assert partition_count(0, options) == 1
    assert partition_count(1000, options) == 1
    assert partition_count(40_000, options) == 2
    assert partition_count(1_000_000, options) == 8
    assert partition_count(100 * 512 * 1024, options) == 100


def test_options_are_checked():
    assert ReadOptions.parse({"path": "p", "version": "3"}).version == 3
    assert ReadOptions.parse({"path": "p", "version": "tag-3"}).version == "tag-3"
    assert ReadOptions.parse({"path": "p", "storage_options": '{"b": 1, "a": "x"}'}).storage_options == (
        ("a", "x"), ("b", "1"),
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match="No dataset given"):
        ReadOptions.parse({})


def test_random_slices_give_the_same_rows(spark, uri):
    generator = random.Random(7)
    sizes = [generator.randrange(1, 60) for _ in range(9)]
    start = 0
    for position, size in enumerate(sizes):
        lance_dataset.write_dataset(numbers(size, start), uri, mode="append" if position else "create")
        start += size
    for parts in (1, 2, 5, 13):
        assert column(read(spark, uri, num_partitions=parts)) == list(range(start))


def test_type_check_of_decimal_precision(spark, uri):
    table = pa.table({"d": pa.array([Decimal("1.50")], pa.decimal128(10, 2))})
    lance_dataset.write_dataset(table, uri)
    assert read(spark, uri).schema["d"].dataType == T.DecimalType(10, 2)
