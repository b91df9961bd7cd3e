"""Tests of taking rows in Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException

import lance_dataset
from lance_dataset.errors import DatasetNotFoundError, FieldNotFoundError, SchemaError
from lance_dataset.spark import take_rows


@pytest.fixture
def stored(uri):
    table = pa.table(
        {
            "i": np.arange(1000),
            "text": [f"t{i}" for i in range(1000)],
            "when": pa.array(range(1000), pa.timestamp("us", "UTC")),
            "small": pa.array([i % 256 for i in range(1000)], pa.uint8()),
        }
    )
    lance_dataset.write_dataset(table, uri, max_rows_per_file=300)
    return uri


def test_rows_come_in_the_order_of_their_numbers(spark, stored):
    numbers = [999, 0, 5, 5, 300, 299]
    rows = spark.createDataFrame([(f"k{i}", n) for i, n in enumerate(numbers)], "key string, number int")
    found = take_rows(rows, stored, "number", ["text", "small", "i"])
    assert found.columns == ["key", "number", "text", "small", "i"]
    assert [tuple(row) for row in found.collect()] == [(f"k{i}", n, f"t{n}", n % 256, n) for i, n in enumerate(numbers)]


def test_row_numbers_count_live_rows(spark, stored):
    lance_dataset.dataset(stored).delete("i < 10")
    found = take_rows(spark.range(0, 990, 100), stored, "id", ["i"])
    assert [row.i for row in found.collect()] == [n + 10 for n in range(0, 990, 100)]


def test_the_version_is_fixed_when_the_frame_is_made(spark, stored):
    newest = take_rows(spark.range(1), stored, "id", ["i"])
    lance_dataset.dataset(stored).delete("i = 0")
    assert newest.first().i == 0
    assert take_rows(spark.range(1), stored, "id", ["i"]).first().i == 1
    assert take_rows(spark.range(1), stored, "id", ["i"], version=1).first().i == 0


def test_all_columns_moments_and_empty_frames(spark, stored):
    found = take_rows(spark.range(3), stored, "id")
    assert found.selectExpr("cast(when as string) w").collect()[2].w == "1969-12-31 19:00:00.000002"
    assert found.columns == ["id", "i", "text", "when", "small"]
    assert take_rows(spark.range(0), stored, "id").collect() == []


def test_mistakes(spark, stored):
    with pytest.raises(FieldNotFoundError, match="did you mean 'id'"):
        take_rows(spark.range(1), stored, "ids")
    with pytest.raises(FieldNotFoundError, match="did you mean 'text'"):
        take_rows(spark.range(1), stored, "id", ["texts"])
    with pytest.raises(SchemaError, match="must be integers, but column 'x' is string"):
        take_rows(spark.sql("SELECT 'a' x"), stored, "x")
    with pytest.raises(SchemaError, match="in the row numbers and in the dataset"):
        take_rows(spark.range(1).withColumnRenamed("id", "i"), stored, "i")
    with pytest.raises(DatasetNotFoundError):
        take_rows(spark.range(1), stored + ".nix", "id")
    for sql, message in (("SELECT 1000 n", "1000|non-existent"), ("SELECT cast(null AS int) n", "holds null")):
        with pytest.raises(PythonException, match=message):
            take_rows(spark.sql(sql), stored, "n").collect()


def test_importing_without_pyspark_says_what_to_install(monkeypatch):
    import importlib
    import sys

    for name in [name for name in sys.modules if name.startswith(("pyspark", "lance_dataset.spark"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"pip install \"lance-dataset\[spark\]\""):
        importlib.import_module("lance_dataset.spark")
