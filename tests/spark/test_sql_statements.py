"""Statements of Spark SQL: some work, the others are refused in one line before a task runs."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import lance_dataset
from lance_dataset.errors import UnsupportedError


@pytest.fixture
def stored(uri):
    lance_dataset.write_dataset(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), uri)
    return uri


def rows(uri):
    return sorted(tuple(row.values()) for row in lance_dataset.dataset(uri).to_table().to_pylist())


def test_a_view_is_read_appended_to_and_overwritten(spark, stored):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW lance_view USING lance OPTIONS (path '{stored}', filter 'id < 3')")
    assert [row.name for row in spark.sql("SELECT name FROM lance_view ORDER BY id").collect()] == ["a", "b"]
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW lance_view USING lance OPTIONS (path '{stored}')")
    spark.sql("INSERT INTO lance_view VALUES (4, 'd')")
    spark.sql("INSERT INTO lance_view (name, id) VALUES ('e', 5)")
    assert rows(stored) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    assert spark.sql("SELECT * FROM lance_view").count() == 3
    spark.sql("INSERT OVERWRITE lance_view SELECT 7, 'x'")
    assert rows(stored) == [(7, "x")]
    spark.sql("DROP VIEW lance_view")


def only_line(error) -> str:
    """Return the message, which is one line for the reader, with Spark's state code on the next."""
    text = str(error.value)
    assert "Traceback" not in text
    first, *rest = text.strip().splitlines()
    assert [line.strip().partition(":")[0] for line in rest] in ([], ["SQLSTATE"])
    return first


@pytest.mark.parametrize("where", ["LOCATION '{uri}' COMMENT 'c'", "OPTIONS (path '{uri}')"])
def test_tables_of_the_catalog_are_refused(spark, stored, where):
    with pytest.raises(AnalysisException) as error:
        spark.sql(f"CREATE TABLE lance_refused USING lance {where.format(uri=stored)}")
    assert "Use a view: CREATE TEMPORARY VIEW" in only_line(error)
    with pytest.raises(AnalysisException) as error:
        spark.sql(f"CREATE TABLE lance_refused USING lance {where.format(uri=stored)} AS SELECT 1 id")
    assert "Use a view: CREATE TEMPORARY VIEW" in only_line(error)
    assert not spark.catalog.tableExists("lance_refused")


def test_tables_with_columns_are_made_without_asking_but_say_why_they_do_not_work(spark, stored):
    spark.sql(f"CREATE TABLE lance_unread (id bigint) USING lance OPTIONS (path '{stored}')")
    for statement in ("SELECT * FROM lance_unread", "INSERT INTO lance_unread VALUES (1)"):
        with pytest.raises(AnalysisException) as error:
            spark.sql(statement).collect()
        assert "If this is a table of the catalog" in only_line(error)
    spark.sql("DROP TABLE lance_unread")


def test_what_spark_would_refuse_late(spark, stored):
    frame = spark.sql("SELECT 4L id, 'd' name")
    with pytest.raises(UnsupportedError, match="saveAsTable does not work with the format lance"):
        frame.write.format("lance").option("path", stored).saveAsTable("lance_refused")
    for writer in (frame.write.format("lance").partitionBy("name"), frame.write.format("lance")):
        with pytest.raises(UnsupportedError, match="partitionBy is not supported"):
            writer.mode("append").save(stored, partitionBy=["name"])
    with pytest.raises(UnsupportedError, match="partitionBy is not supported"):
        frame.write.format("lance").mode("append").partitionBy("name").save(stored)
    assert lance_dataset.dataset(stored).version == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "nam = 'a'"}, "No field named 'nam'"),
        ({"versoin": "1"}, "did you mean 'version'"),
    ],
)
def test_wrong_options_are_found_at_load(spark, stored, options, message):
    with pytest.raises(AnalysisException) as error:
        spark.read.format("lance").options(**options).load(stored).columns  # noqa: B018
    assert message in only_line(error)


def test_the_module_that_spark_looks_for_does_not_fail_without_the_package():
    program = """
import sys
class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("lance_dataset"):
            raise ImportError("it is not there")
sys.meta_path.insert(0, Without)
import pyspark_lance
assert pyspark_lance.DefaultSource.name() == "lance"
try:
    pyspark_lance.DefaultSource({})
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "it is not there"
